package script

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gangd/pkg/api"
)

// figuresAlone compares what was derived, and not the words that it was asked for in: those are told, and asked anew.
var figuresAlone = cmp.Options{cmpopts.IgnoreFields(api.Spec{}, "Words"), cmp.Comparer(func(x, y *api.Asked) bool {
	plain := func(a *api.Asked) api.Asked {
		if a == nil {
			return api.Asked{}
		}
		b := *a
		b.ByWords, b.Told, b.TasksLeft = false, nil, false
		return b
	}
	return reflect.DeepEqual(plain(x), plain(y))
})}

// TestToldAsSlurmTells: of what was asked for a script is told what a Slurm told it for the same words (the record of
// e2e/beside's TestEnvironments), no more and no less.
func TestToldAsSlurmTells(t *testing.T) {
	text, err := os.ReadFile("../../../e2e/beside/testdata/environments.txt")
	if err != nil {
		t.Fatal(err)
	}
	variables := []string{"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_THREADS_PER_CORE", "SLURM_MEM_PER_NODE", "SLURM_MEM_PER_CPU", "SLURM_MEM_PER_GPU"}
	for _, w := range words {
		variables = append(variables, w.variable)
	}
	shapes := 0
	for _, part := range strings.Split(string(text), "=== ")[1:] {
		shape, rest, _ := strings.Cut(part, "\n")
		_, script, _ := strings.Cut(rest, "--- script\n")
		script, _, _ = strings.Cut(script, "--- ")
		var want []string
		for kv := range strings.SplitSeq(script, "\n") {
			if name, _, _ := strings.Cut(kv, "="); slices.Contains(variables, name) {
				want = append(want, kv)
			}
		}
		flags, _, err := SlurmFlags(strings.Fields(shape))
		if err != nil {
			t.Fatal(shape, err)
		}
		req, _, err := Build(Listed(flags), time.Now())
		if err != nil {
			t.Errorf("%s: %v", shape, err)
			continue
		}
		got := slices.Clone(req.Spec.Asked.Told)
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -Slurm +told\n%s", shape, diff)
		}
		shapes++
	}
	if shapes < 20 {
		t.Errorf("%d shapes in the record, want at least 20", shapes)
	}
}

// TestNothingToldOfSize: a gang of ranks is told in its own figures.
func TestNothingToldOfSize(t *testing.T) {
	for _, line := range []string{"--size=4 --gpus-per-rank=1", "--size=2 --launch=batch -c2", "-N2 --ranks-per-node=2 --gpus-per-node=2"} {
		flags, _, _ := Flags(strings.Fields(line))
		req, _, err := Build(flags, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if a := req.Spec.Asked; a != nil && (a.ByWords || a.Told != nil || a.TasksLeft) {
			t.Errorf("%s: %+v", line, a)
		}
	}
}

// TestKeywordsInAnyCase: of every option whose values the table lists, and of others, each keyword is taken in any case, as the same.
func TestKeywordsInAnyCase(t *testing.T) {
	more := map[string][]string{"hint": {"nomultithread", "multithread", "compute_bound", "memory_bound"}, "exclusive": {"user", "mcs"}, "gpu-bind": {"none", "closest", "single:1"},
		"distribution": {"block", "cyclic:block", "plane=2"}, "gres": {"none", "gpu:2"}, "gpus": {"gpu:1"}, "gpus-per-node": {"gpu:2"}, "export": {"ALL", "NONE", "NIL"},
		"open-mode": {"append", "a", "app", "truncate", "t", "tr"}, "time": {"unlimited", "infinite"}, "begin": {"now", "now+1hour"}, "mail-type": {"all", "begin,end", "none"},
		"kill-on-invalid-dep": {"yes", "no"}, "dependency": {"singleton", "afterok:1"}, "mem": {"1g", "1gb"}, "signal": {"usr1@10", "b:usr1", "sigusr1"}}
	for i := range Options {
		o := &Options[i]
		if !strings.Contains(o.Arg, "|") || strings.ContainsAny(o.Arg, "[,") || o.Set == nil || o.OnLine {
			continue
		}
		for word := range strings.SplitSeq(o.Arg, "|") {
			if word == strings.ToLower(word) {
				more[o.Long] = append(more[o.Long], word)
			}
		}
	}
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for option, values := range more {
		for _, value := range values {
			var first *Request
			for _, v := range []string{value, strings.ToUpper(value), strings.ToLower(value), strings.ToUpper(value[:1]) + strings.ToLower(value[1:])} {
				flags, _, err := SlurmFlags([]string{"--" + option + "=" + v})
				if err != nil {
					t.Errorf("--%s=%s: %v", option, v, err)
					continue
				}
				req, _, err := Build(flags, now)
				if err != nil {
					t.Errorf("--%s=%s: %v", option, v, err)
					continue
				}
				req.Used, req.Spec.Words, req.Export = nil, nil, strings.ToUpper(req.Export)
				if a := req.Spec.Asked; a != nil { // which repeats the word as it was written
					a.Told, a.GPUs, a.GPUsPerNode, a.GPUBind = nil, "", "", ""
				}
				if first == nil {
					first = req
				} else if diff := cmp.Diff(first.Spec, req.Spec); diff != "" || first.Export != req.Export {
					t.Errorf("--%s=%s is not %s: %s", option, v, value, diff)
				}
			}
		}
	}
}

// TestEmptyValuesOfSlurm: an option of sbatch with an empty value is as if it were not there, also over a directive; by gsubmit's own
// names it is a mistake.
func TestEmptyValuesOfSlurm(t *testing.T) {
	none, _, _ := Build(nil, time.Now())
	for _, long := range takeEmpty {
		at := slices.IndexFunc(Options, func(o Option) bool { return slices.Contains(o.Spellings(), long) })
		if at < 0 {
			t.Errorf("no option %s", long)
			continue
		}
		flags, _, err := SlurmFlags([]string{"--" + long + "="})
		if err != nil {
			t.Errorf("--%s=: %v", long, err)
			continue
		}
		some := "1"
		switch long {
		case "export":
			some = "HOME"
		case "propagate":
			some = "STACK"
		}
		directive, _, err := Directives("job.sh", []byte("#!/bin/sh\n#SBATCH --comment=kept\n#SBATCH --"+long+"="+some+"\n"))
		if err != nil {
			t.Errorf("--%s=1: %v", long, err)
			continue
		}
		req, warn, err := Build(append(slices.DeleteFunc(directive, func(s Setting) bool { return s.Option.Long == "comment" }), flags...), time.Now())
		switch {
		case Options[at].List == Refused && err != nil: // what it was over is refused all the same
		case err != nil:
			t.Errorf("--%s=: %v", long, err)
		case len(req.Used) > 0, cmp.Diff(none.Spec, req.Spec) != "":
			t.Errorf("--%s= is not as nothing: %v %s %v", long, req.Used, cmp.Diff(none.Spec, req.Spec), warn)
		}
	}
	flags, _, _ := Flags([]string{"--account="})
	if _, _, err := Build(flags, time.Now()); err == nil {
		t.Error("gsubmit takes an empty --account")
	}
}
