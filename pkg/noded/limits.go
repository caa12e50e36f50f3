package noded

import (
	"gangd/pkg/api"
	"gangd/pkg/proc"
)

// processShare is the part of the machine's processes that one member may have unless the site
// says otherwise: what a fork bomb leaves is enough for the others and for those who end it.
const processShare = 4

// processesOf is how many processes a member may have, 0: any number.
func processesOf(o *Options) int64 {
	if o.Processes > 0 {
		return o.Processes
	}
	return proc.ProcessRoom() / processShare
}

// limits says how far members are held to what they asked for.
func (d *Daemon) limits() api.NodeLimits {
	how := func(held bool, otherwise string) string {
		if held {
			return api.LimitEnforced
		}
		return otherwise
	}
	c := &d.cgroups
	sets := api.LimitNone
	if d.cpus.pool != nil {
		sets = how(c.CPUSet, api.LimitAdvised)
	}
	return api.NodeLimits{CPUSets: sets, Memory: how(c.Memory, api.LimitSampled), Processes: how(c.PIDs, api.LimitSampled), CPUs: how(c.CPUs, api.LimitNone), Reason: c.Why}
}

// cpusOf is what the ranks of a node asked for together.
func cpusOf(spec *api.Spec, body *api.AssignmentBody, node int) (n int) {
	for r, p := range body.Ranks {
		if p.Node == node {
			n += spec.FiguresOf(r).CPUs
		}
	}
	return n
}
