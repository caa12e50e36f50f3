package sim

import (
	"math/rand/v2"

	"gangd/pkg/api"
	"gangd/pkg/core/hostlist"
)

// ports are asked for by half of the jobs of every third schedule, by dice of their own. They
// are so few (see [Settings]) that gangs come short of them.
func ports(d *rand.Rand, sc *Scenario) {
	if d.IntN(3) > 0 {
		return
	}
	for i := range sc.Jobs {
		if d.IntN(2) == 0 {
			sc.Jobs[i].Ports = 1 + d.IntN(3)
		}
	}
}

// neighbours: no two gangs with processes on a machine were told the same port, those that a
// KILL did not end yet too.
func (t *truth) neighbours() {
	if t.onOld {
		return
	}
	for _, m := range t.r.machines {
		n := t.r.world().Node(m.name)
		told := map[string]api.MemberKey{}
		for _, p := range m.procs {
			if n == nil || p.frozen() || p.killed && (n.State != api.NodeUp || t.fenced[placed{p.key.Job, m.name}]) {
				continue // as for I9
			}
			mine, err := hostlist.Expand("[" + p.s.spec.body.Ports + "]")
			if p.s.spec.body.Ports != "" && err != nil {
				t.r.fail("I13", "job %d epoch %d was told the ports %q: %v", p.key.Job, p.key.Epoch, p.s.spec.body.Ports, err)
				return
			}
			for _, port := range mine {
				if other, taken := told[port]; taken && other != p.key {
					t.r.fail("I13", "job %d epoch %d and job %d epoch %d live on %s, both with port %s", other.Job, other.Epoch, p.key.Job, p.key.Epoch,
						m.name, port)
					return
				}
				told[port] = p.key
			}
		}
	}
}
