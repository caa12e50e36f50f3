package slurm

import (
	"errors"

	"gangd/pkg/api"
)

// refusals is what Slurm says of what gangd's controller refuses.
var refusals = map[api.Reason]string{
	api.ReasonPartition:        "Invalid partition name specified",
	api.ReasonPartitionState:   "Required partition not available (inactive or drain)",
	api.ReasonNode:             "Invalid node name specified",
	api.ReasonFeature:          BadFeature,
	api.ReasonPreferredFeature: "Invalid preferred feature specification",
	api.ReasonDependency:       "Job dependency problem",
	api.ReasonPool:             "Invalid license specification",
	api.ReasonTimeMin:          "Invalid time-min specification (exceeds job's time or other limits)",
	api.ReasonBegin:            "Incompatible begin and deadline time specification",
	api.ReasonPartitionAccess:  "User's group not permitted to use this partition",
	api.ReasonPartitionAccount: "Invalid account or account/partition combination specified",
	api.ReasonPartitionNodes:   "Node count specification invalid",
	api.ReasonTimeLimit:        "Requested time limit is invalid (missing or exceeds some limit)",
}

// Refusal is Slurm's line about a submission that was refused, what Slurm says before it, and
// what there is to say beside it: gangd's own sentence with the figures.
func Refusal(err error) (why, before, detail string) {
	var refused *api.Error
	if !errors.As(err, &refused) {
		return NoController, "", err.Error()
	}
	detail = refused.Error()
	if refused.Reason == api.ReasonPartition {
		if refused.Subject == "" {
			return "No partition specified or system default partition", "", detail
		}
		before = "invalid partition specified: " + refused.Subject
	}
	if why, ok := refusals[refused.Reason]; ok {
		return why, before, detail
	}
	switch {
	case refused.Code == api.CodeUnsatisfiable:
		switch refused.Reason {
		case api.ReasonMemory:
			before = "Memory specification can not be satisfied"
		case api.ReasonShape:
			before = "Socket, core and/or thread specification can not be satisfied"
		}
		return NotSatisfied, before, detail
	case refused.Code == api.CodeUnavailable, refused.Code == api.CodeOnHold:
		return NoController, "", detail
	case refused.Code == api.CodePermission:
		return AccessDenied, "", detail
	}
	return refused.Error(), "", ""
}
