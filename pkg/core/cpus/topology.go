package cpus

import "slices"

// CPU is one, and where it is.
type CPU struct {
	ID   int `json:"id"`
	Core int `json:"core"` // CPUs of the same number are threads of one core
	NUMA int `json:"numa"`
	// Socket is the package that the core is in.
	Socket int `json:"socket,omitempty"`
}

// Topology is a machine, or the part of it that is there for jobs.
type Topology struct {
	CPUs []CPU `json:"cpus"` // by ID
	// Distance is how far a NUMA node is from another, as the kernel reports it; nil or a miss: 10
	// to itself, 20 to all others.
	Distance map[[2]int]int `json:"-"`
}

// Distances of NUMA nodes where the kernel reports none.
const (
	near = 10
	far  = 20
)

func (t *Topology) distance(a, b int) int {
	if d, ok := t.Distance[[2]int{a, b}]; ok {
		return d
	}
	if a == b {
		return near
	}
	return far
}

// All is every CPU of it.
func (t *Topology) All() Set {
	out := make(Set, len(t.CPUs))
	for i, c := range t.CPUs {
		out[i] = c.ID
	}
	return out
}

// Only is the part of it that is in the set.
func (t *Topology) Only(s Set) *Topology {
	out := &Topology{Distance: t.Distance}
	for _, c := range t.CPUs {
		if s.Has(c.ID) {
			out.CPUs = append(out.CPUs, c)
		}
	}
	return out
}

// NUMA is the NUMA nodes that the CPUs of the set are at, ascending.
func (t *Topology) NUMA(s Set) []int {
	var out []int
	for _, c := range t.CPUs {
		if s.Has(c.ID) {
			out = append(out, c.NUMA)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Shape is how many sockets there are, cores of each and threads of a core; all 0 where they are not equal.
func (t *Topology) Shape() (sockets, cores, threads int) {
	perSocket, perCore := map[int]map[int]bool{}, map[int]int{}
	for _, c := range t.CPUs {
		if perSocket[c.Socket] == nil {
			perSocket[c.Socket] = map[int]bool{}
		}
		perSocket[c.Socket][c.Core] = true
		perCore[c.Core]++
	}
	for _, c := range t.CPUs {
		if threads == 0 {
			cores, threads = len(perSocket[c.Socket]), perCore[c.Core]
		}
		if len(perSocket[c.Socket]) != cores || perCore[c.Core] != threads {
			return 0, 0, 0
		}
	}
	return len(perSocket), cores, threads
}

// At is the CPUs of one NUMA node.
func (t *Topology) At(numa int) Set {
	var out Set
	for _, c := range t.CPUs {
		if c.NUMA == numa {
			out = append(out, c.ID)
		}
	}
	return out
}

// Cores are the CPUs of the set by core: the cores in the order of their first CPU.
func (t *Topology) Cores(s Set) []Set {
	var out []Set
	at := map[int]int{}
	for _, c := range t.CPUs {
		if !s.Has(c.ID) {
			continue
		}
		i, seen := at[c.Core]
		if !seen {
			i = len(out)
			at[c.Core] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], c.ID)
	}
	return out
}

// Near are the CPUs of the set at the NUMA nodes of the list; none of them: the whole set.
func (t *Topology) Near(s Set, numa []int) Set {
	var out Set
	for _, c := range t.CPUs {
		if s.Has(c.ID) && slices.Contains(numa, c.NUMA) {
			out = append(out, c.ID)
		}
	}
	if len(out) == 0 {
		return s
	}
	return out
}
