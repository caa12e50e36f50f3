package grun

import (
	"slices"
	"strings"
	"testing"

	"gangd/pkg/core/cmdline"
)

// TestSallocVariables: each stands for an option that is there, and what it says is taken as on the command line; what a
// job around says is no word of salloc's.
func TestSallocVariables(t *testing.T) {
	for long, name := range sallocVariables {
		if !slices.ContainsFunc(options, func(o Option) bool { return o.Long == long }) {
			t.Errorf("%s stands for --%s, which is no option", name, long)
		}
	}
	t.Setenv("SLURM_NTASKS", "7")
	t.Setenv("SALLOC_PARTITION", "gpu")
	t.Setenv("SALLOC_TIMELIMIT", "5")
	t.Setenv("SALLOC_GPUS", "2")
	t.Setenv("SALLOC_ACCOUNT", "")
	a, err := take("salloc", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(a.alloc)
	if got := strings.Join(a.alloc, " "); got != "--gpus=2 --partition=gpu --time=5" || a.step.Tasks != 0 {
		t.Errorf("%s, %d tasks", got, a.step.Tasks)
	}
	s, err := take("srun", 0, nil)
	if err != nil || s.step.Tasks != 7 {
		t.Errorf("srun: %d tasks, %v", s.step.Tasks, err)
	}
}

// TestSlurmsKeywords: keywords are taken in any case by Slurm's names.
func TestSlurmsKeywords(t *testing.T) {
	for option, values := range map[string][]string{"open-mode": {"append", "truncate", "app"}, "hint": {"nomultithread", "multithread"}, "gpu-bind": {"none", "single:1", "per_task:2"},
		"distribution": {"block", "cyclic", "plane=2"}, "gres": {"none"}, "gpus": {"gpu:1"}} {
		at := slices.IndexFunc(options, func(o Option) bool { return o.Long == option })
		for _, v := range values {
			for _, w := range []string{v, strings.ToUpper(v), strings.ToUpper(v[:1]) + v[1:]} {
				if err := new(ask).apply(given{o: &options[at], value: w}); err != nil {
					t.Errorf("--%s=%s: %v", option, w, err)
				}
			}
		}
	}
}

// TestEmptyOfSlurm: an empty value is none by Slurm's names.
func TestEmptyOfSlurm(t *testing.T) {
	for i := range options {
		o := &options[i]
		if o.Kind != cmdline.Required || o.List == cmdline.Refused || !slices.Contains(strings.Fields("account comment constraint dependency exclude export gpus gpus-per-node input job-name nodelist output reservation"), o.Long) {
			continue
		}
		if err := (&ask{slurms: true}).apply(given{o: o, value: ""}); err != nil {
			t.Errorf("--%s=: %v", o.Long, err)
		}
	}
}
