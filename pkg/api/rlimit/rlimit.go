// Package rlimit is soft resource limits that travel from a process to the processes that are started for it elsewhere: those of
// sbatch to a script, those of srun to the tasks of its step. What travels is chosen by the words of Slurm's --propagate.
//
// The package is pure; pkg/wire/limits reads and sets them.
//
// Begin with Soft. It must not know jobs, steps or processes.
package rlimit

import (
	"fmt"
	"slices"
	"strings"
)

// Soft is soft limits by their names, without RLIMIT_; [Unlimited]: none.
type Soft map[string]int64

// Unlimited stands for no limit.
const Unlimited = -1

// All and None are words of --propagate.
const (
	All  = "ALL"
	None = "NONE"
)

// Names are all that travel, those that Slurm knows.
var Names = []string{"CPU", "FSIZE", "DATA", "STACK", "CORE", "RSS", "NPROC", "NOFILE", "MEMLOCK", "AS"}

// Choose reads --propagate: ALL (or nothing), NONE, or names with commas, RLIMIT_ before them or not. It gives those of the limits.
func (s Soft) Choose(list string) (Soft, error) {
	switch list {
	case "", All:
		return s, nil
	case None:
		return nil, nil
	}
	out := Soft{}
	for _, word := range strings.Split(list, ",") {
		name := strings.TrimPrefix(strings.TrimSpace(word), "RLIMIT_")
		if !slices.Contains(Names, name) {
			return nil, fmt.Errorf("bad limit %q: want ALL, NONE, or some of %s", word, strings.Join(Names, ","))
		}
		if n, ok := s[name]; ok {
			out[name] = n
		}
	}
	return out, nil
}
