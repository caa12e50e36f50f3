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
		{"all that one may have of its own", "", "-n4 -N2 --ntasks-per-node=2 -c3 --gpus-per-task=a100:2 --vram=24G --min-compute=8.0 -C a --mem-per-cpu=1G -p p -w n[1-3] -x n9 -B 2:4:1 : -n1 --gpus=1", []api.Role{
			{Name: api.ComponentName(0), Count: 4, CPUsPerRank: 3, MemoryPerRank: 3 << 30, GPUsPerRank: 2, GPUType: "a100", VRAMBytes: 24 << 30, Constraint: "a", Component: &api.Component{Partition: "p", MinNodes: 2, MaxNodes: 2, RanksPerNode: 2,
				MinCompute: "8.0", Shape: api.CPUShape{Sockets: 2, Cores: 4, Threads: 1}, NodeList: []string{"n1", "n2", "n3"}, Exclude: []string{"n9"},
				Asked: &api.Asked{CPUsPerTask: 3, MemoryPerCPU: 1 << 30, GPUsPerTask: "a100:2", CardsBy: "gpus-per-task"}}},
			{Name: api.ComponentName(1), Count: 1, CPUsPerRank: 1, GPUsPerRank: 1, Component: &api.Component{Exclude: []string{"n9"}, Asked: &api.Asked{GPUs: "1", CardsBy: "gpus"}}}}, 0, ""},
		{"memory of a node", "", "-n4 -N2 --mem=8G --gpus-per-node=1 : -n2 -N1 --mem=2G", []api.Role{
			{Name: api.ComponentName(0), Count: 4, CPUsPerRank: 1, Component: &api.Component{MinNodes: 2, MaxNodes: 2, GPUsPerNode: 1, MemoryPerNode: 8 << 30, Asked: &api.Asked{MemoryPerNode: 8 << 30, GPUsPerNode: "1", CardsBy: "gpus-per-node"}}},
			{Name: api.ComponentName(1), Count: 2, CPUsPerRank: 1, Component: &api.Component{MinNodes: 1, MaxNodes: 1, MemoryPerNode: 2 << 30, Asked: &api.Asked{MemoryPerNode: 2 << 30}}}}, 0, ""},
		{"the first has no limit", "", "-n1 : -t 5 -n1", []api.Role{component(0, 1, 1, api.Component{}), component(1, 1, 1, api.Component{})}, 0, ""},
		{"a later one has none", "", "-t 5 : -t 0 : -t 9", []api.Role{component(0, 1, 1, api.Component{}), component(1, 1, 1, api.Component{}), component(2, 1, 1, api.Component{})}, 0, ""},
		{"a later one has less", "", "-t 5 : -t 4", []api.Role{component(0, 1, 1, api.Component{}), component(1, 1, 1, api.Component{})}, 5 * time.Minute, ""},
		{"what a later one says as the first", "", "-A a -n1 : -A a -n1", []api.Role{component(0, 1, 1, api.Component{}), component(1, 1, 1, api.Component{})}, 0, ""},
		{"a name is handed down", "", "-J a : -n2", []api.Role{component(0, 1, 1, api.Component{}), component(1, 2, 1, api.Component{})}, 0, ""},
	} {
		r, warn, err := buildOf(c.text, strings.Fields(c.args)...)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if d := cmp.Diff(c.want, r.Spec.Roles, figuresAlone); d != "" {
			t.Errorf("%s: (-want +got)\n%s", c.name, d)
		}
		size := 0
		for _, role := range c.want {
			size += role.Count
		}
		whole := r.Spec
		whole.Roles, whole.Name, whole.Output, whole.Account = nil, "", "", ""
		if d := cmp.Diff(api.Spec{Size: size, Launch: api.LaunchBatch, CPUsPerRank: 1, TimeLimit: c.limit}, whole, figuresAlone); d != "" {
			t.Errorf("%s: the whole (-want +got)\n%s", c.name, d)
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
		"-n1 : -n3 --gpus=2":               "component 1: --gpus=2: 2 cards can't be shared out evenly over 3 ranks; write --gpus=3, or --gpus-per-node=N",
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
