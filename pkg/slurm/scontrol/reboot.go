package scontrol

import (
	"slices"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/core/hostlist"
)

// reboot is scontrol reboot [ASAP] [nextstate=RESUME|DOWN] [reason=TEXT] ALL|NODES, the words before the nodes in any order.
func (c *call) reboot(args []string) int {
	req := &api.NodeAction{}
	for len(args) > 1 {
		key, value, given := strings.Cut(args[0], "=")
		switch {
		case !given && strings.EqualFold(key, "ASAP"):
			req.Asap = true
		case given && strings.EqualFold(key, "nextstate"):
			switch strings.ToUpper(value) {
			case "RESUME":
				req.Then = api.RebootResume
			case "DOWN":
				req.Then = api.RebootDown
			default:
				c.say("Invalid state: %s\nValid states: DOWN, RESUME", value)
				return 1
			}
		case given && strings.EqualFold(key, "reason"):
			req.Reason = value
		default:
			return c.ofNodes("reboot", "scontrol_reboot_nodes error", args, req)
		}
		args = args[1:]
	}
	return c.ofNodes("reboot", "scontrol_reboot_nodes error", args, req)
}

func (c *call) cancelReboot(args []string) int {
	return c.ofNodes("cancel-reboot", "slurm_update error", args, &api.NodeAction{})
}

// ofNodes does something to nodes that are all known, ALL meaning each. The first that refuses is said, after all were asked.
func (c *call) ofNodes(action, what string, args []string, req *api.NodeAction) int {
	if len(args) > 1 {
		c.say("too many arguments for keyword:%s", strings.ReplaceAll(action, "cancel-", "cancel_"))
		return 1
	}
	reply, err := c.client.Nodes(c.ctx)
	if err != nil {
		return c.failed(what, err)
	}
	var known []string
	for i := range reply.Nodes {
		known = append(known, reply.Nodes[i].Name)
	}
	names := known
	if !strings.EqualFold(args[0], "ALL") {
		names, err = hostlist.Expand(args[0])
		if err != nil || len(names) == 0 || slices.ContainsFunc(names, func(n string) bool { return !slices.Contains(known, n) }) {
			return c.failed(what, &inSlurmsWords{slurmErrors[errNode]})
		}
	}
	var first error
	for _, n := range names {
		if err := c.client.NodeAction(c.ctx, n, action, req); err != nil && first == nil {
			first = err
		}
	}
	switch {
	case first == nil:
		return 0
	case api.ReasonOf(first) == api.ReasonNoReboot:
		c.say("RebootProgram isn't defined")
		c.errorf("%v", first)
		return 1
	}
	return c.failed(what, forOperators(first))
}
