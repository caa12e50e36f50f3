package cpus

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The kinds of [Binding].
const (
	ByDefault = ""         // by cores where the tasks' CPUs are all there are, else not at all
	ByNone    = "none"     // every task may use all
	ByCores   = "cores"    // each task its share of the cores
	ByThreads = "threads"  // each task its share of the CPUs, cores broken up if they have to be
	ByNUMA    = "ldoms"    // each task the NUMA nodes of its share
	ByMap     = "map_cpu"  // task n the nth CPU of Sets, which is begun again at its end
	ByMask    = "mask_cpu" // likewise, a set each
)

// Binding is what --cpu-bind asks for.
type Binding struct {
	Kind      string `json:"kind,omitempty"`
	Sets      []Set  `json:"sets,omitempty"`
	Verbose   bool   `json:"verbose,omitempty"`
	OneThread bool   `json:"one_thread,omitempty"` // of each core (--hint=nomultithread, --threads-per-core=1)
}

// ParseBinding reads a value of --cpu-bind.
func ParseBinding(text string) (b Binding, err error) {
	for {
		word, rest, more := strings.Cut(text, ",")
		if word != "v" && word != "verbose" && word != "q" && word != "quiet" {
			break
		}
		b.Verbose = word[0] == 'v'
		if !more {
			return b, nil
		}
		text = rest
	}
	kind, list, _ := strings.Cut(text, ":")
	switch kind {
	case "none", "no":
		b.Kind = ByNone
	case "core", "cores":
		b.Kind = ByCores
	case "thread", "threads", "rank":
		b.Kind = ByThreads
	case "ldom", "ldoms", "rank_ldom":
		b.Kind = ByNUMA
	case "map_cpu", "mask_cpu":
		b.Kind = kind
		b.Sets, err = parseSets(kind, list)
		return b, err
	default:
		return b, fmt.Errorf("%q: want none, cores, threads, ldoms, map_cpu:LIST or mask_cpu:LIST", text)
	}
	if list != "" {
		return b, fmt.Errorf("%q: %s takes no list", text, kind)
	}
	return b, nil
}

// maxSets bounds a list of --cpu-bind.
const maxSets = 1 << 12

// parseSets reads CPUs or masks for the tasks in turn: 0,2,4 or 0x3*2,0xC.
func parseSets(kind, list string) (out []Set, err error) {
	if list == "" {
		return nil, fmt.Errorf("%s wants a list: %s:0,1", kind, kind)
	}
	for item := range strings.SplitSeq(list, ",") {
		value, times, repeated := strings.Cut(item, "*")
		n := 1
		if repeated {
			if n, err = strconv.Atoi(times); err != nil || n < 1 || n > maxSets {
				return nil, fmt.Errorf("%q: want a value, or value*TIMES", item)
			}
		}
		var s Set
		if kind == ByMask {
			s, err = parseMask(value)
		} else {
			var id uint64
			if id, err = strconv.ParseUint(value, 0, 16); err == nil {
				s = Of(int(id))
			}
		}
		if err != nil || len(s) == 0 {
			return nil, fmt.Errorf("%q is no CPU of a %s list", item, kind)
		}
		if len(out)+n > maxSets {
			return nil, fmt.Errorf("a list of more than %d", maxSets)
		}
		out = append(out, slices.Repeat([]Set{s}, n)...)
	}
	return out, nil
}

// Tasks says which of the CPUs of a step on one node each of its tasks there may use; perTask is
// what each asked for.
func (b *Binding) Tasks(t *Topology, tasks, perTask int) ([]Set, error) {
	all := t.All()
	one := all
	if b.OneThread {
		one = nil
		for _, core := range t.Cores(all) {
			one = append(one, core[0])
		}
	}
	kind := b.Kind
	if kind == ByDefault {
		kind = ByNone
		if tasks*perTask == len(all) || b.OneThread && tasks*perTask == len(one) {
			kind = ByCores
		}
	}
	out := make([]Set, tasks)
	for i := range out {
		switch kind {
		case ByNone:
			out[i] = one
		case ByCores, ByThreads, ByNUMA:
			out[i] = t.share(one, i, tasks, perTask, kind == ByCores)
			if kind == ByNUMA {
				out[i] = t.Near(one, t.NUMA(out[i]))
			}
		case ByMap, ByMask:
			out[i] = b.Sets[i%len(b.Sets)]
			if missing := slices.DeleteFunc(slices.Clone(out[i]), all.Has); len(missing) > 0 {
				return nil, fmt.Errorf("--cpu-bind: CPU %s is not the step's: it has %s here", missing, all)
			}
		}
	}
	return out, nil
}

// share is the nth part of the CPUs, of so many each; a task beyond the last begins again. whole:
// cores that no other task is on, where there are enough of them for all.
func (t *Topology) share(s Set, n, tasks, each int, whole bool) Set {
	if each <= 0 || each >= len(s) {
		return s
	}
	cores := t.Cores(s)
	if need := (each*len(cores)-1)/len(s) + 1; whole && tasks*need <= len(cores) {
		return Of(slices.Concat(cores[n*need : (n+1)*need]...)...)
	}
	line := slices.Concat(cores...) // core by core, so that neighbours in it share one
	at := n % (len(line) / each) * each
	return Of(line[at : at+each]...)
}

// Environ is how Slurm tells the tasks of a node what each may use; nil: all of it.
func Environ(sets []Set, verbose bool) []string {
	kind, list, say := "none", "", "quiet"
	if sets != nil {
		masks := make([]string, len(sets))
		for i, s := range sets {
			masks[i] = s.Mask()
		}
		kind, list = "mask_cpu:", strings.Join(masks, ",")
	}
	if verbose {
		say = "verbose"
	}
	return []string{"SLURM_CPU_BIND=" + say + "," + kind + list, "SLURM_CPU_BIND_VERBOSE=" + say, "SLURM_CPU_BIND_TYPE=" + kind,
		"SLURM_CPU_BIND_LIST=" + list}
}
