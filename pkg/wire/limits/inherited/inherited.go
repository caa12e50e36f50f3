// Package inherited reads the soft resource limits that a process was started with. Package syscall raises that of open files
// when it is initialized and tells nobody what it was, so this package imports nothing and is initialized before it; the
// kernel is asked by hand.
//
// Begin with Limits. It must not know what they are for.
package inherited

// Limit is one of them: its name without RLIMIT_, its number on Linux, and the soft limit.
type Limit struct {
	Name   string
	Number int
	Soft   uint64
	Known  bool
}

var limits = read()

func read() []Limit {
	all := []Limit{{Name: "CPU", Number: 0}, {Name: "FSIZE", Number: 1}, {Name: "DATA", Number: 2}, {Name: "STACK", Number: 3},
		{Name: "CORE", Number: 4},
		{Name: "RSS", Number: 5}, {Name: "NPROC", Number: 6}, {Name: "NOFILE", Number: 7}, {Name: "MEMLOCK", Number: 8}, {Name: "AS", Number: 9}}
	for i := range all {
		var l [2]uint64 // struct rlimit64: soft, hard
		all[i].Known = prlimit(uintptr(all[i].Number), &l) == 0
		all[i].Soft = l[0]
	}
	return all
}

// Limits are those that Slurm's --propagate names. The list is not to be changed.
func Limits() []Limit { return limits }
