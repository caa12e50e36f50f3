package slurm

import (
	"errors"

	"gangd/pkg/api"
	"gangd/pkg/client"
)

// The texts of Slurm's errors that tools look for.
const (
	NoController = "Unable to contact slurm controller (connect failure)"
	InvalidJob   = "Invalid job id specified"
	AccessDenied = "Access/permission denied"
	AlreadyEnded = "Job/step already completing or completed"
	Disabled     = "Requested operation is presently disabled"
	BadGres      = "Invalid generic resource (gres) specification"
	BadFeature   = "Invalid feature specification"
	NotSatisfied = "Requested node configuration is not available"
)

// Words is what Slurm says of an error, as slurm_strerror does; gangd's own words where Slurm
// has none for it. Where no controller answers a second line says in gangd's what is to be done.
func Words(err error) string {
	var refused *api.Error
	switch {
	case Away(err):
		return NoController + "\ngangd: " + err.Error()
	case !errors.As(err, &refused):
		return err.Error()
	}
	switch refused.Code {
	case api.CodeNotFound:
		return InvalidJob
	case api.CodePermission:
		return AccessDenied
	case api.CodeAlreadyEnded:
		return AlreadyEnded
	}
	switch refused.Reason {
	case api.ReasonFeature:
		return BadFeature
	case api.ReasonNoRequeue:
		return Disabled
	case api.ReasonComponent:
		return NotOneComponent
	}
	return refused.Error()
}

// Away reports that no controller answered.
func Away(err error) bool {
	var unreachable *client.UnreachableError
	return errors.As(err, &unreachable) || api.CodeOf(err) == api.CodeUnavailable
}

// PreemptMode is Slurm's word for what becomes of gangs that give way: they run again. With
// an older controller, which does not say who gives way, nobody does.
func PreemptMode(preempt string) string {
	if preempt == "" || preempt == "off" {
		return "OFF"
	}
	return "REQUEUE"
}
