package api

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// MaxRoles bounds the roles of one gang. Each is placed by itself, so that many of one rank
// each would cost a plan what as many gangs do.
const MaxRoles = 32

// MaxRoleName bounds the name of a role, in bytes.
const MaxRoleName = 32

// Role is a part of a gang whose ranks do the same thing and need the same. Ranks are
// numbered in the order of the roles. The figures are those of each of its ranks and stand
// in place of the spec's own: who makes a spec has filled in what the role left open.
type Role struct {
	Name          string `json:"name"`  // [a-z][a-z0-9-]*, unique in the gang
	Count         int    `json:"count"` // ranks
	CPUsPerRank   int    `json:"cpus_per_rank" bound:"..65536"`
	MemoryPerRank int64  `json:"memory_per_rank,omitempty" bound:"..70368744177664"` // bytes, 0: no figure
	GPUsPerRank   int    `json:"gpus_per_rank,omitempty" bound:"..65536"`
	GPUType       string `json:"gpu_type,omitempty"`
	VRAMBytes     int64  `json:"vram_bytes,omitempty" bound:"..70368744177664"` // per card, 0: no figure
	Constraint    string `json:"constraint,omitempty"`                          // node features
	// EndsGang: when all ranks of this role are done, the work of the gang is done; the
	// ranks of other roles are stopped.
	EndsGang bool `json:"ends_gang,omitempty"`
	// Component: the role is a component of a heterogeneous job. Either all roles of a gang are, or none.
	Component *Component `json:"component,omitempty"`
}

// Component is what a component of a heterogeneous job asks for beyond what a role does. Such a
// job runs its script once, in its first component. No node has ranks of two components, so that
// a figure by node says something here, and steps find the nodes of a component apart.
type Component struct {
	JobName       string   `json:"job_name,omitempty" bound:"len=1024"` // empty: the gang's
	Partition     string   `json:"partition,omitempty"`                 // one of the gang's, or a comma list of them; empty: any of the gang's
	MinNodes      int      `json:"min_nodes,omitempty" bound:"..65536"`
	MaxNodes      int      `json:"max_nodes,omitempty" bound:"..65536"`
	RanksPerNode  int      `json:"ranks_per_node,omitempty" bound:"..65536"`
	GPUsPerNode   int      `json:"gpus_per_node,omitempty" bound:"..65536"`
	MemoryPerNode int64    `json:"memory_per_node,omitempty" bound:"..70368744177664"`
	MinCompute    string   `json:"min_compute,omitempty"`
	Shape         CPUShape `json:"shape,omitzero"`
	NodeList      []string `json:"node_list,omitempty" bound:"len=255"`
	Exclude       []string `json:"exclude,omitempty" bound:"len=255"`
	Asked         *Asked   `json:"asked,omitempty"`
	// Numbered: it has an id of its own, the job's plus its place, which no other job has. The controller says so of jobs that are submitted;
	// those of older ones have none.
	Numbered bool `json:"numbered,omitempty"`
}

// WantsCards: each of its ranks, or its nodes, asks for some.
func (r *Role) WantsCards() bool {
	return r.GPUsPerRank > 0 || r.Component != nil && r.Component.GPUsPerNode > 0
}

// IDs is how many ids a job of this spec has: one, or one for each of its components.
func (s *Spec) IDs() int64 {
	if n := s.Components(); n > 0 && s.Roles[0].Component.Numbered {
		return int64(n)
	}
	return 1
}

// Components is how many components a heterogeneous job has, 0 of any other.
func (s *Spec) Components() int { return components(s.Roles) }

func components(roles []Role) int {
	if len(roles) == 0 || roles[0].Component == nil {
		return 0
	}
	return len(roles)
}

// Part is the spec as if the ranks of its role i were all of it.
func (s *Spec) Part(i int) *Spec {
	r, part := &s.Roles[i], *s
	part.Roles, part.Size = nil, r.Count
	part.CPUsPerRank, part.MemoryPerRank = r.CPUsPerRank, r.MemoryPerRank
	part.GPUsPerRank, part.GPUType, part.VRAMBytes = r.GPUsPerRank, r.GPUType, r.VRAMBytes
	if part.Constraint = r.Constraint; r.Constraint != s.Constraint {
		part.Prefer = "" // it would be taken instead of what the role asks for itself
	}
	if c := r.Component; c != nil {
		part.Name = cmp.Or(c.JobName, s.Name)
		part.MinNodes, part.MaxNodes, part.RanksPerNode = c.MinNodes, c.MaxNodes, c.RanksPerNode
		part.GPUsPerNode, part.MemoryPerNode, part.MinCompute, part.Asked = c.GPUsPerNode, c.MemoryPerNode, c.MinCompute, c.Asked
		part.Shape = c.Shape
		part.NodeList, part.Exclude = c.NodeList, append(c.Exclude[:len(c.Exclude):len(c.Exclude)], s.Exclude...)
	}
	return &part
}

// ComponentAt is the component of a rank, -1 where there are none.
func (s *Spec) ComponentAt(rank int) int {
	for i := range s.Components() {
		if rank -= s.Roles[i].Count; rank < 0 {
			return i
		}
	}
	return -1
}

// PartAt is the spec of the component of a rank, or the spec itself where there are none.
func (s *Spec) PartAt(rank int) *Spec {
	if i := s.ComponentAt(rank); i >= 0 {
		return s.Part(i)
	}
	return s
}

// ComponentName is the name of the role that is component i.
func ComponentName(i int) string { return "component-" + strconv.Itoa(i) }

// HasComponent says whether a component has one of these names.
func (s *Spec) HasComponent(names []string) bool {
	return slices.ContainsFunc(s.Roles[:s.Components()], func(r Role) bool { return slices.Contains(names, r.Component.JobName) })
}

// Split is jobs with the components of each heterogeneous one in its place.
func Split(jobs []Job) []Job {
	if !slices.ContainsFunc(jobs, func(j Job) bool { return len(j.Components) > 0 }) {
		return jobs
	}
	var out []Job
	for k := range jobs {
		if len(jobs[k].Components) == 0 {
			out = append(out, jobs[k])
		}
		for i := range jobs[k].Components {
			out = append(out, jobs[k].Part(i))
		}
	}
	return out
}

// Part is the job as if its component i were all of it, as Slurm's commands show it.
func (j *Job) Part(i int) Job {
	part, c := *j, &j.Components[i]
	part.Component, part.Name = &i, cmp.Or(c.Name, j.Name)
	part.ComponentID, part.ComponentIDs = c.JobID, j.componentIDs()
	part.Size, part.MinNodes, part.Nodes, part.Partition = c.Size, c.MinNodes, c.Nodes, c.Partition
	part.NodeCPUs = c.NodeCPUs
	part.Roles, part.Components = nil, nil
	first := 0
	for k := range i {
		first += j.Components[k].Size
	}
	if len(j.Ranks) == j.Size {
		part.Ranks = j.Ranks[first : first+c.Size]
	}
	if i < len(j.Roles) {
		r := &j.Roles[i]
		part.CPUsPerRank, part.MemoryBytes, part.GPUsPerRank, part.VRAMBytes, part.Constraint =
			r.CPUsPerRank, r.MemoryPerRank, r.GPUsPerRank, r.VRAMBytes, r.Constraint
		if o := r.Component; o != nil {
			part.GPUsPerNode, part.MemoryPerNode, part.RanksPerNode = o.GPUsPerNode, o.MemoryPerNode, o.RanksPerNode
			part.NodeList, part.Exclude, part.Asked, part.Shape = o.NodeList, o.Exclude, o.Asked, o.Shape
		}
	}
	return part
}

// componentIDs are the ids of all components, as 12-14; empty where they have none of their own.
func (j *Job) componentIDs() string {
	last := j.Components[len(j.Components)-1].JobID
	if last == 0 {
		return ""
	}
	return strconv.FormatInt(j.JobID, 10) + "-" + strconv.FormatInt(last, 10)
}

// ID is the job's id, or that of the component that it is where that has one of its own.
func (j *Job) ID() int64 { return cmp.Or(j.ComponentID, j.JobID) }

// WithIDs is which of some components were asked for by these references: all of a job that was named by its own id.
func WithIDs(parts []Job, refs []JobRef) []Job {
	asked := make(map[int64]bool, len(refs))
	for _, r := range refs {
		asked[r.ID] = true
	}
	return slices.DeleteFunc(parts, func(j Job) bool {
		return j.ComponentID != 0 && len(refs) > 0 && !asked[j.JobID] && !asked[j.ComponentID]
	})
}

// RoleAt gives the role of a rank and the rank's number within it; nil for a gang without
// roles.
func (s *Spec) RoleAt(rank int) (r *Role, index int) {
	for i := range s.Roles {
		if rank < s.Roles[i].Count {
			return &s.Roles[i], rank
		}
		rank -= s.Roles[i].Count
	}
	return nil, rank
}

// RoleName is the name of a rank's role, empty for a gang without roles.
func (s *Spec) RoleName(rank int) string {
	if r, _ := s.RoleAt(rank); r != nil {
		return r.Name
	}
	return ""
}

// RoleRanks gives the first rank of a role and how many there are; ok is false when the
// gang has no such role.
func (s *Spec) RoleRanks(name string) (first, count int, ok bool) {
	for i := range s.Roles {
		if s.Roles[i].Name == name {
			return first, s.Roles[i].Count, true
		}
		first += s.Roles[i].Count
	}
	return 0, 0, false
}

// RankFigures are what one rank asks for.
type RankFigures struct {
	CPUs   int
	Memory int64 // bytes
	GPUs   int
}

// FiguresOf are those of a rank: its role's, or the spec's own.
func (s *Spec) FiguresOf(rank int) RankFigures {
	if r, _ := s.RoleAt(rank); r != nil {
		return RankFigures{CPUs: max(1, r.CPUsPerRank), Memory: r.MemoryPerRank, GPUs: r.GPUsPerRank}
	}
	return RankFigures{CPUs: max(1, s.CPUsPerRank), Memory: s.MemoryPerRank, GPUs: s.GPUsPerRank}
}

// RoleNameOK reports whether a name may be a role's: it becomes part of the name of an
// environment variable, so that nothing may be lost when it is written in capitals.
func RoleNameOK(name string) bool {
	if name == "" || len(name) > MaxRoleName || name[0] < 'a' || name[0] > 'z' {
		return false
	}
	return !strings.ContainsFunc(name, func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' })
}
