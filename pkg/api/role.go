package api

import "strings"

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
