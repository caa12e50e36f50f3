package script

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gangd/pkg/api"
)

func component(i, ranks, cpus int, c api.Component) api.Role {
	return api.Role{Name: api.ComponentName(i), Count: ranks, CPUsPerRank: cpus, Component: &c}
}

// Each component has what is written for it, what earlier ones hand down, and what the environment says.
func TestComponents(t *testing.T) {
	cards := component(1, 4, 2, api.Component{Partition: "gpu", MinNodes: 2, MaxNodes: 2, RanksPerNode: 2, GPUsPerNode: 2, Asked: &api.Asked{CardsBy: "gres", CPUsPerTask: 2}})
	for _, c := range []struct {
		name, text, args string
		want             []api.Role
		limit            time.Duration
		warnings         string // parts of it, with "|" between
	}{
		{"two on the command line", "", "-n1 : -n4", []api.Role{component(0, 1, 1, api.Component{}), component(1, 4, 1, api.Component{})}, 0, ""},
		{"by directives", "#SBATCH -n1 -p cpu\n#SBATCH hetjob\n#SBATCH -N2 --ntasks-per-node=2 -c2 --gres=gpu:2 -p gpu", "",
			[]api.Role{component(0, 1, 1, api.Component{Partition: "cpu"}), cards}, 0, ""},
		{"by the old word", "#SBATCH -n1\n#SBATCH packjob\n#SBATCH -n2", "", []api.Role{component(0, 1, 1, api.Component{}), component(1, 2, 1, api.Component{})}, 0, ""},
		{"the command line above the directives, component by component", "#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -n2", "-n3 : -c2",
			[]api.Role{component(0, 3, 1, api.Component{}), component(1, 2, 2, api.Component{Asked: &api.Asked{CPUsPerTask: 2}})}, 0, ""},
		{"tasks are not handed down, times are", "", "-n3 -t 5 : -c2", []api.Role{component(0, 3, 1, api.Component{}), component(1, 1, 2, api.Component{Asked: &api.Asked{CPUsPerTask: 2}})}, 5 * time.Minute, ""},
		{"the longest time counts", "", "-t 5 : -t 10 : -n2", []api.Role{component(0, 1, 1, api.Component{}), component(1, 1, 1, api.Component{}), component(2, 2, 1, api.Component{})}, 10 * time.Minute, ""},
		{"excluded nodes are handed down", "", "-x n1 : -w n2", []api.Role{component(0, 1, 1, api.Component{Exclude: []string{"n1"}}),
			component(1, 1, 1, api.Component{Exclude: []string{"n1"}, NodeList: []string{"n2"}})}, 0, ""},
		{"what one gang has once", "", "-J a : -J b -o x", []api.Role{component(0, 1, 1, api.Component{}), component(1, 1, 1, api.Component{JobName: "b"})}, 0,
			"component 1: --output=x has no effect"},
		{"a name is handed down", "", "-J a : -n2", []api.Role{component(0, 1, 1, api.Component{}), component(1, 2, 1, api.Component{})}, 0, ""},
	} {
		r, warn, err := buildOf(c.text, strings.Fields(c.args)...)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if d := cmp.Diff(c.want, r.Spec.Roles); d != "" {
			t.Errorf("%s: (-want +got)\n%s", c.name, d)
		}
		size := 0
		for _, role := range c.want {
			size += role.Count
		}
		if s := &r.Spec; s.Size != size || s.Launch != api.LaunchBatch || s.TimeLimit != c.limit || s.MinNodes+s.RanksPerNode+s.GPUsPerNode > 0 || s.Exclude != nil || s.Partition != "" {
			t.Errorf("%s: the whole is %+v", c.name, s)
		}
		var said []string
		for _, w := range warn {
			said = append(said, w.String())
		}
		for _, want := range strings.Split(c.warnings, "|") {
			if text := strings.Join(said, "\n"); !strings.Contains(text, want) || want == "" && text != "" {
				t.Errorf("%s: %q is not said: %s", c.name, want, text)
			}
		}
	}
}

func TestComponentsRefused(t *testing.T) {
	for args, want := range map[string]string{
		"-n1 : -N3-2":                      "--nodes=3-2: the range runs backwards; write --nodes=2-3",
		"-n1 : -n3 --gpus=2":               "component 1: --gpus=2: 2 cards can't be shared out evenly over 3 ranks; write --gpus-per-rank=N or --gpus-per-node=N",
		"-n1 : --reservation=r":            "component 1: --reservation=r: the components are one gang, which has one --reservation; write it for component 0 alone",
		"--size=2 : -n1":                   "--size=2: a heterogeneous job has components instead; leave it out, or submit without \":\" and hetjob",
		"-n1 : --mem=1G --mem-per-cpu=1G":  "component 1: --mem-per-cpu=1G contradicts --mem=1G; keep one of them",
		strings.Repeat(": ", api.MaxRoles): "more than 32 components; join some of them",
	} {
		_, _, err := buildOf("", strings.Fields(args)...)
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}
