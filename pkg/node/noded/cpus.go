package noded

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"gangd/pkg/api"
	"gangd/pkg/core/cpus"
	"gangd/pkg/node/proc"
	"gangd/pkg/node/shim"
)

// CPUs is which CPUs this node gives to members, each to one.
type CPUs struct {
	Bind bool     // members get CPUs of their own, where there are as many as are offered
	Must bool     // with Bind: the daemon does not go without it
	Only cpus.Set // these are for jobs, and no others; empty: all that this process may use
	Near bool     // memory is taken at the NUMA nodes of a member's CPUs, and nowhere else
	Sys  string   // read instead of /sys; for tests
}

// cpuPool is who has which CPUs. Without a pool nobody is bound.
type cpuPool struct {
	mu   sync.Mutex
	topo *cpus.Topology
	pool *cpus.Pool[api.MemberKey]
	mems cpus.Set // NUMA nodes with memory, where members are bound to those near them; nil: they are not
	why  string   // nobody is bound
}

// openCPUs looks at the machine. offered is how many CPUs the site says that there are, 0: all.
func openCPUs(o CPUs, offered int, cards []api.CardInfo) (*cpuPool, error) {
	topo, err := o.topology()
	switch {
	case err != nil && (o.Must || len(o.Only) > 0):
		return nil, fmt.Errorf("CPUs of this machine: %w", err)
	case err != nil:
		return &cpuPool{why: err.Error()}, nil
	}
	p := &cpuPool{topo: topo}
	switch {
	case !o.Bind:
		p.why = "cpu_bind is none"
	case offered > len(topo.CPUs) && o.Must:
		return nil, fmt.Errorf("cpus is %d, and the machine has %d CPUs for jobs (%s): with cpu_bind = \"cores\" in gnoded.toml there can't "+
			"be more", offered, len(topo.CPUs), topo.All())
	case offered > len(topo.CPUs):
		p.why = fmt.Sprintf("%d CPUs are offered, and the machine has %d for jobs", offered, len(topo.CPUs))
	default:
		var numa []int
		for _, c := range cards {
			numa = append(numa, c.NUMA)
		}
		p.pool = cpus.NewPool[api.MemberKey](topo, numa)
	}
	if o.Near {
		return p, p.openMemory(cmp.Or(o.Sys, proc.SysFS))
	}
	return p, nil
}

// openMemory finds out where memory is.
func (p *cpuPool) openMemory(sys string) (err error) {
	if p.pool == nil {
		return fmt.Errorf("memory_near: needs CPUs that are bound, and they are not: %s", p.why)
	}
	if p.mems, err = proc.MemoryNodes(sys); err != nil {
		return fmt.Errorf("memory_near: %w", err)
	}
	return nil
}

// memoryNodes are where the memory of who has these CPUs is taken. Nodes without memory, and all of a machine, are
// no choice.
func (p *cpuPool) memoryNodes(s cpus.Set) cpus.Set {
	near := cpus.Of(p.topo.NUMA(s)...).And(p.mems)
	if len(near) == len(p.mems) {
		return nil
	}
	return near
}

// topology is the part of the machine that is for jobs.
func (o *CPUs) topology() (*cpus.Topology, error) {
	topo, err := proc.Topology(cmp.Or(o.Sys, proc.SysFS))
	if err != nil {
		return nil, err
	}
	if o.Sys == "" {
		may, err := proc.Affinity(0)
		if err != nil {
			return nil, err
		}
		topo = topo.Only(may)
	}
	if len(o.Only) > 0 {
		if missing := slices.DeleteFunc(slices.Clone(o.Only), topo.All().Has); len(missing) > 0 {
			return nil, fmt.Errorf("cpu_list: there is no CPU %s here that may be used; there are %s", missing, topo.All())
		}
		topo = topo.Only(o.Only)
	}
	if len(topo.CPUs) == 0 {
		return nil, errors.New("none may be used")
	}
	return topo, nil
}

// count is the CPUs for jobs, 0: not known.
func (p *cpuPool) count() int {
	if p.topo == nil {
		return 0
	}
	return len(p.topo.CPUs)
}

// shape is that of the CPUs for jobs; one socket where more or fewer are offered than there are, or where its
// sockets are not equal.
func (p *cpuPool) shape(offered int) api.CPUShape {
	var s api.CPUShape
	if p.topo != nil {
		s.Sockets, s.Cores, s.Threads = p.topo.Shape()
	}
	return s.OrFlat(offered)
}

// give takes CPUs for a member that is being prepared, and writes them into its spec.
func (p *cpuPool) give(s *shim.Spec, node int, body *api.AssignmentBody, spec *api.Spec, cards []api.CardInfo) *api.Refusal {
	if p.pool == nil {
		return nil
	}
	asks, ranks := asksOf(node, body, spec, cards)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pool.Give(s.MemberKey) // of a try before
	sets, ok := p.pool.Take(s.MemberKey, asks)
	if !ok {
		want := 0
		for _, a := range asks {
			want += a.CPUs
		}
		return nodeFault("%d CPUs asked, %d of %d are free here (%s)", want, len(p.pool.Free()), len(p.topo.CPUs), p.pool.Free())
	}
	if spec.Exclusive { // nobody else may use the others
		p.pool.Keep(s.MemberKey, p.pool.Free())
	}
	s.Machine = p.topo.Only(p.pool.Held(s.MemberKey))
	s.MemoryNodes = p.memoryNodes(s.CPUSet())
	if spec.Exclusive || s.Batch {
		return nil
	}
	var told []cpus.Set
	for i := range s.Ranks {
		if at := slices.Index(ranks, s.Ranks[i].Rank); at >= 0 {
			s.Ranks[i].CPUs = rankCPUs(spec.CPUBind, p.topo, s.Machine, sets[at])
			if spec.CPUBind != api.BindNone {
				told = append(told, s.Ranks[i].CPUs)
			}
		}
	}
	for i := range s.Ranks {
		s.Ranks[i].Env = append(s.Ranks[i].Env, cpus.Environ(told, false)...)
	}
	return nil
}

// rankCPUs is what of its member's CPUs a rank may use, by --cpu-bind.
func rankCPUs(bind string, machine, member *cpus.Topology, own cpus.Set) cpus.Set {
	switch bind {
	case api.BindNone:
		return nil
	case api.BindNUMA:
		return member.Near(member.All(), machine.NUMA(own))
	}
	return own
}

// asksOf is what the ranks of a node need, and which they are. A rank without a card of its own is
// near those of its member.
func asksOf(node int, body *api.AssignmentBody, spec *api.Spec, cards []api.CardInfo) (asks []cpus.Ask, ranks []int) {
	numa := func(uuids []string) (out []int) {
		for _, c := range cards {
			if c.NUMA >= 0 && slices.Contains(uuids, c.UUID) {
				out = append(out, c.NUMA)
			}
		}
		return out
	}
	var member []string
	for _, p := range body.Ranks {
		if p.Node == node {
			member = append(member, p.Cards...)
		}
	}
	for r, p := range body.Ranks {
		if p.Node != node {
			continue
		}
		near := p.Cards
		if len(near) == 0 {
			near = member
		}
		asks = append(asks, cpus.Ask{CPUs: spec.FiguresOf(r).CPUs, Near: numa(near), OneThread: spec.ThreadsPerCore == 1})
		ranks = append(ranks, r)
	}
	return asks, ranks
}

// keep counts CPUs as those of a member that a daemon before has given them to.
func (p *cpuPool) keep(k api.MemberKey, s cpus.Set) {
	if p.pool == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pool.Keep(k, s)
}

// keepCPUs finds out what a member that was adopted has: by its record, else by what its processes
// may use.
func (m *member) keepCPUs() {
	if m.d.cpus.pool == nil {
		return
	}
	s := m.spec.CPUSet()
	if m.bare {
		if s = proc.CPUsOf(m.spec.Place()); len(s) == len(m.d.cpus.topo.CPUs) {
			return // it was not bound
		}
	}
	m.d.cpus.keep(m.key, s)
}

// takeBack: nothing of the member runs any more.
func (p *cpuPool) takeBack(k api.MemberKey) {
	if p.pool == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pool.Give(k)
}
