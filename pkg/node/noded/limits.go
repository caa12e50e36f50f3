package noded

import "gangd/pkg/api"

// processShare is the part of the machine's processes that one member may have unless the site
// says otherwise: what a fork bomb leaves is enough for the others.
const processShare = 4

// limitProcesses settles how many processes a member may have, and that all of them leave room
// for this daemon. The site's figure does not go beyond that: a bomb could then end the daemon,
// which could not start again to end the bomb.
func (d *daemon) limitProcesses() {
	most := d.cgroups.KeepRoom()
	switch asked := d.opts.Processes; {
	case asked == 0:
		d.processes = most / processShare
	case most > 0 && asked > most:
		d.log.Warn("job_processes is more than jobs may have here together", "job_processes", asked, "together", most)
		d.processes = most
	default:
		d.processes = asked
	}
}

// limits says how far members are held to what they asked for.
func (d *daemon) limits() api.NodeLimits {
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
	return api.NodeLimits{CPUSets: sets, Memory: how(c.Memory, api.LimitSampled), Processes: how(c.PIDs, api.LimitSampled),
		CPUs: how(c.CPUs, api.LimitNone), Reason: c.Why}
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
