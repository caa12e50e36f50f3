package script

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gangd/pkg/api"
)

// buildOf reads a script's directives and flags as gsubmit does, without environment.
func buildOf(text string, args ...string) (*Request, []Warning, error) {
	flags, _, err := Flags(args)
	if err != nil {
		return nil, nil, err
	}
	lines, warn, err := Directives("job.sh", []byte(text))
	if err != nil {
		return nil, nil, err
	}
	r, w, err := Build(append(flags, lines...), time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC))
	return r, append(warn, w...), err
}

// A role has what the job asks for, but for what it says itself.
func TestBuildRoles(t *testing.T) {
	role := func(name string, n int) api.Role { return api.Role{Name: name, Count: n, CPUsPerRank: 1} }
	worker := api.Role{Name: "worker", Count: 3, CPUsPerRank: 4, MemoryPerRank: 8 << 30, GPUsPerRank: 1, VRAMBytes: 40 << 30}
	for _, c := range []struct {
		text, args string
		want       []api.Role
	}{
		{"", "--role coordinator:1 --role worker:3,gpus-per-rank=1,vram=40G,cpus=4,mem=8G", []api.Role{role("coordinator", 1), worker}},
		{"", "--role=coordinator:1\tworker:3,gpus=1,vram=40G,cpus-per-task=4,mem-per-rank=8G", []api.Role{role("coordinator", 1), worker}},
		{"#GANG --role=a:1\n#GANG --role=b:2", "", []api.Role{role("a", 1), role("b", 2)}},
		{"#GANG --role=a:1 --role=b:2", "--role=c:3", []api.Role{role("c", 3)}},
		{"#SBATCH --nodes=2 --mem=4G\n#GANG --role=a:1", "", []api.Role{role("a", 1)}},
		{"", "--role=a:1 --role=b:3 --size=4", []api.Role{role("a", 1), role("b", 3)}},
		{"#GANG --size=9", "--role=a:1", []api.Role{role("a", 1)}},
		{"", "--gpus-per-rank=h100:2 --vram=40G --cpus-per-gpu=6 --mem-per-gpu=10G --role=a:1,gpus=0 --role=b:1", []api.Role{role("a", 1),
			{Name: "b", Count: 1, CPUsPerRank: 12, MemoryPerRank: 20 << 30, GPUsPerRank: 2, GPUType: "h100", VRAMBytes: 40 << 30}}},
		{"", "--vram=40G --role=a:1 --role=b:1,gpus=0", []api.Role{{Name: "a", Count: 1, CPUsPerRank: 1, GPUsPerRank: 1, VRAMBytes: 40 << 30}, role("b", 1)}},
		{"", "--mem-per-cpu=1G --constraint=ib --role=a:1,cpus=3,ends=gang --role=b:1,constraint=big", []api.Role{
			{Name: "a", Count: 1, CPUsPerRank: 3, MemoryPerRank: 3 << 30, Constraint: "ib", EndsGang: true},
			{Name: "b", Count: 1, CPUsPerRank: 1, MemoryPerRank: 1 << 30, Constraint: "big"}}},
	} {
		var args []string
		for _, w := range strings.Split(c.args, " ") {
			if w != "" {
				args = append(args, strings.ReplaceAll(w, "\t", " "))
			}
		}
		r, _, err := buildOf("#!/bin/sh\n"+c.text+"\n", args...)
		if err != nil {
			t.Errorf("%s %s: %v", c.text, c.args, err)
			continue
		}
		size := 0
		for _, x := range c.want {
			size += x.Count
		}
		if d := cmp.Diff(c.want, r.Spec.Roles, figuresAlone); d != "" || r.Spec.Size != size || r.Spec.Launch != api.LaunchRanks {
			t.Errorf("%s %s: %d %s\n%s", c.text, c.args, r.Spec.Size, r.Spec.Launch, d)
		}
	}
}

func TestBuildDerives(t *testing.T) {
	two := 2
	for _, c := range []struct {
		args string
		want api.Spec
	}{
		{"", api.Spec{Size: 1, Launch: "batch", CPUsPerRank: 1}},
		{"--size=4", api.Spec{Size: 4, Launch: "ranks", CPUsPerRank: 1}},
		{"--size=4 --launch=batch", api.Spec{Size: 4, Launch: "batch", CPUsPerRank: 1}},
		{"-N2", api.Spec{Size: 2, Launch: "batch", CPUsPerRank: 1, RanksPerNode: 1, MinNodes: 2, MaxNodes: 2}},
		{"-N 2-4", api.Spec{Size: 2, Launch: "batch", CPUsPerRank: 1, RanksPerNode: 1, MinNodes: 2, MaxNodes: 2}},
		{"-n8", api.Spec{Size: 8, Launch: "batch", CPUsPerRank: 1}},
		{"-N2 -n8", api.Spec{Size: 8, Launch: "batch", CPUsPerRank: 1, MinNodes: 2, MaxNodes: 2}},
		{"-N2 --tasks-per-node=4", api.Spec{Size: 8, Launch: "batch", CPUsPerRank: 1, RanksPerNode: 4, MinNodes: 2, MaxNodes: 2}},
		{"--ntasks-per-node=4", api.Spec{Size: 4, Launch: "batch", CPUsPerRank: 1, RanksPerNode: 4}},
		{"-n4 -N4 --ntasks-per-node=4", api.Spec{Size: 4, Launch: "batch", CPUsPerRank: 1, RanksPerNode: 1, MinNodes: 4, MaxNodes: 4}},
		{"-n5 -N4 --ntasks-per-node=4", api.Spec{Size: 5, Launch: "batch", CPUsPerRank: 1, MinNodes: 4, MaxNodes: 4}},
		{"--size=8 -N2", api.Spec{Size: 8, Launch: "ranks", CPUsPerRank: 1, MinNodes: 2, MaxNodes: 2}},
		{"--ranks-per-node=2 -N3", api.Spec{Size: 6, Launch: "batch", CPUsPerRank: 1, RanksPerNode: 2, MinNodes: 3, MaxNodes: 3}},

		{"-C rack2*2", api.Spec{Size: 2, Launch: "batch", CPUsPerRank: 1, RanksPerNode: 1, Constraint: "rack2*2"}},
		{"-C [rack1*1&(rack2|rack3)*2]", api.Spec{Size: 3, Launch: "batch", CPUsPerRank: 1, RanksPerNode: 1, Constraint: "[rack1*1&(rack2|rack3)*2]"}},
		{"-N2-4 -C rack2*3", api.Spec{Size: 3, Launch: "batch", CPUsPerRank: 1, RanksPerNode: 1, MinNodes: 2, MaxNodes: 3, Constraint: "rack2*3"}},
		{"-N1 -C rack2*3", api.Spec{Size: 1, Launch: "batch", CPUsPerRank: 1, RanksPerNode: 1, MinNodes: 1, MaxNodes: 1, Constraint: "rack2*3"}},
		{"-n8 -C rack2*3 --prefer=fast", api.Spec{Size: 8, Launch: "batch", CPUsPerRank: 1, Constraint: "rack2*3", Prefer: "fast"}},
		{"-C a*x&*9999999999", api.Spec{Size: 1, Launch: "batch", CPUsPerRank: 1, Constraint: "a*x&*9999999999"}},

		{"--gpus-per-node=4", api.Spec{Size: 1, Launch: "batch", CPUsPerRank: 1, GPUsPerRank: 4, Asked: &api.Asked{GPUsPerNode: "4", CardsBy: "gpus-per-node"}}},
		{"-N2 --gres=gpu:a100:4", api.Spec{Size: 2, Launch: "batch", CPUsPerRank: 1, RanksPerNode: 1, MinNodes: 2, MaxNodes: 2, GPUsPerRank: 4, GPUType: "a100", Asked: &api.Asked{CardsBy: "gres"}}},
		{"--size=4 --gpus-per-node=8", api.Spec{Size: 4, Launch: "ranks", CPUsPerRank: 1, GPUsPerNode: 8}},
		{"--size=4 -G8", api.Spec{Size: 4, Launch: "ranks", CPUsPerRank: 1, GPUsPerRank: 2}},
		{"-N2 -n4 -G2", api.Spec{Size: 4, Launch: "batch", CPUsPerRank: 1, MinNodes: 2, MaxNodes: 2, GPUsPerNode: 1, Asked: &api.Asked{GPUs: "2", CardsBy: "gpus"}}},
		{"-N2 --ntasks-per-node=4 --gpus-per-task=1 --gres=gpu:4", api.Spec{Size: 8, Launch: "batch", CPUsPerRank: 1, RanksPerNode: 4, MinNodes: 2, MaxNodes: 2, GPUsPerRank: 1, Asked: &api.Asked{GPUsPerTask: "1", CardsBy: "gpus-per-task"}}},
		{"--vram=40G", api.Spec{Size: 1, Launch: "batch", CPUsPerRank: 1, GPUsPerRank: 1, VRAMBytes: 40 << 30, Asked: &api.Asked{}}},
		{"--gpus=2 --gres=gmem:40G", api.Spec{Size: 1, Launch: "batch", CPUsPerRank: 1, GPUsPerRank: 2, VRAMBytes: 40 << 30, Asked: &api.Asked{GPUs: "2", CardsBy: "gpus", Spread: true}}},
		{"-N2 --gpus=3 -c4", api.Spec{Size: 3, Launch: "batch", CPUsPerRank: 3, MinNodes: 2, MaxNodes: 2, GPUsPerRank: 1, Asked: &api.Asked{CPUsPerTask: 4, GPUs: "3", CardsBy: "gpus", Tasks: 2}}},
		{"-N2 --gpus=15 --cpus-per-gpu=2", api.Spec{Size: 15, Launch: "batch", CPUsPerRank: 2, MinNodes: 2, MaxNodes: 2, GPUsPerRank: 1, Asked: &api.Asked{GPUs: "15", CPUsPerGPU: 2, CardsBy: "gpus", Tasks: 2}}},
		{"--gpus=12 -n1", api.Spec{Size: 1, Launch: "batch", CPUsPerRank: 1, GPUsPerRank: 12, Asked: &api.Asked{GPUs: "12", CardsBy: "gpus"}}},
		{"--gpus=16 --gpus-per-node=8 --gpus-per-task=4 -N2 -n4", api.Spec{Size: 4, Launch: "batch", CPUsPerRank: 1, RanksPerNode: 2, MinNodes: 2, MaxNodes: 2, GPUsPerRank: 4,
			Asked: &api.Asked{GPUs: "16", GPUsPerNode: "8", GPUsPerTask: "4", CardsBy: "gpus-per-task"}}},
		{"--gpus=16 --gres=gpu:8", api.Spec{Size: 2, Launch: "batch", CPUsPerRank: 1, RanksPerNode: 1, MinNodes: 2, MaxNodes: 2, GPUsPerRank: 8, Asked: &api.Asked{GPUs: "16", CardsBy: "gpus"}}},
		{"-N2 -n4 --gpus-per-node=2 --cpus-per-gpu=3", api.Spec{Size: 4, Launch: "batch", CPUsPerRank: 3, MinNodes: 2, MaxNodes: 2, GPUsPerNode: 2, Asked: &api.Asked{GPUsPerNode: "2", CPUsPerGPU: 3, CardsBy: "gpus-per-node"}}},
		{"--gpus=2 --ntasks-per-gpu=1", api.Spec{Size: 2, Launch: "batch", CPUsPerRank: 1, GPUsPerRank: 1, Asked: &api.Asked{GPUs: "2", CardsBy: "gpus"}}},
		{"--gpus=2 --ntasks-per-gpu=2 -c3", api.Spec{Size: 2, Launch: "batch", CPUsPerRank: 6, GPUsPerRank: 1, Asked: &api.Asked{CPUsPerTask: 3, GPUs: "2", CardsBy: "gpus", Tasks: 4}}},
		{"-N2 --gres=gpu:1 --ntasks-per-gpu=2", api.Spec{Size: 4, Launch: "batch", CPUsPerRank: 1, RanksPerNode: 2, MinNodes: 2, MaxNodes: 2, GPUsPerNode: 1, Asked: &api.Asked{CardsBy: "gres"}}},
		{"-n1 --ntasks-per-gpu=1", api.Spec{Size: 1, Launch: "batch", CPUsPerRank: 1, GPUsPerRank: 1, Asked: &api.Asked{}}},
		{"--gpus=1 --gpus-per-node=1", api.Spec{Size: 1, Launch: "batch", CPUsPerRank: 1, RanksPerNode: 1, MinNodes: 1, MaxNodes: 1, GPUsPerRank: 1,
			Asked: &api.Asked{GPUs: "1", GPUsPerNode: "1", CardsBy: "gpus-per-node"}}},
		{"-n3 --ntasks-per-gpu=3", api.Spec{Size: 1, Launch: "batch", CPUsPerRank: 3, GPUsPerRank: 1, Asked: &api.Asked{Tasks: 3}}},
		{"--gpus=4 --gpus-per-task=2", api.Spec{Size: 2, Launch: "batch", CPUsPerRank: 1, GPUsPerRank: 2, Asked: &api.Asked{GPUs: "4", GPUsPerTask: "2", CardsBy: "gpus-per-task"}}},
		{"--size=8 --gpus-per-rank=1 --gpus-per-node=4", api.Spec{Size: 8, Launch: "ranks", CPUsPerRank: 1, RanksPerNode: 4, GPUsPerRank: 1}},
		{"-N1 -n2 --gres=gpu:4 --gpus-per-task=1", api.Spec{Size: 2, Launch: "batch", CPUsPerRank: 1, MinNodes: 1, MaxNodes: 1, GPUsPerNode: 4, Asked: &api.Asked{GPUsPerTask: "1", CardsBy: "gpus-per-task"}}},
		{"-N2 --gpus-per-socket=2 --sockets-per-node=2", api.Spec{Size: 4, Launch: "batch", CPUsPerRank: 1, RanksPerNode: 2, MinNodes: 2, MaxNodes: 2, GPUsPerNode: 4,
			Shape: api.CPUShape{Sockets: 2}, Asked: &api.Asked{GPUsPerSocket: "2", CardsBy: "gpus-per-socket"}}},
		{"-B 2:*:1", api.Spec{Size: 1, Launch: "batch", CPUsPerRank: 1, Shape: api.CPUShape{Sockets: 2, Threads: 1}}},
		{"-B *:8-16", api.Spec{Size: 1, Launch: "batch", CPUsPerRank: 1, Shape: api.CPUShape{Cores: 8}}},
		{"--cores-per-socket=8 --threads-per-core=2", api.Spec{Size: 1, Launch: "batch", CPUsPerRank: 1, ThreadsPerCore: 2, Shape: api.CPUShape{Cores: 8, Threads: 2}}},
		{"--gres=VRAM:40G -n2 --gpus-per-task=1", api.Spec{Size: 2, Launch: "batch", CPUsPerRank: 1, GPUsPerRank: 1, VRAMBytes: 40 << 30, Asked: &api.Asked{GPUsPerTask: "1", CardsBy: "gpus-per-task"}}},
		{"-N2 --gpus-per-node=4 --gres=gpumem:40g", api.Spec{Size: 2, Launch: "batch", CPUsPerRank: 1, RanksPerNode: 1, MinNodes: 2, MaxNodes: 2, GPUsPerRank: 4, VRAMBytes: 40 << 30, Asked: &api.Asked{GPUsPerNode: "4", CardsBy: "gpus-per-node"}}},
		{"-N2 --gres=gmem:40G", api.Spec{Size: 2, Launch: "batch", CPUsPerRank: 1, RanksPerNode: 1, MinNodes: 2, MaxNodes: 2, GPUsPerRank: 1, VRAMBytes: 40 << 30, Asked: &api.Asked{CardsBy: "gres"}}},
		{"--gres=gpu:2,VRAM:24G --share", api.Spec{Size: 1, Launch: "batch", CPUsPerRank: 1, GPUsPerRank: 2, VRAMBytes: 24 << 30, Share: true, Asked: &api.Asked{CardsBy: "gres"}}},

		{"-c4 --mem-per-cpu=2G", api.Spec{Size: 1, Launch: "batch", CPUsPerRank: 4, MemoryPerRank: 8 << 30, Asked: &api.Asked{CPUsPerTask: 4, MemoryPerCPU: 2 << 30}}},
		{"--mem=16000", api.Spec{Size: 1, Launch: "batch", CPUsPerRank: 1, MemoryPerRank: 16000 << 20, Asked: &api.Asked{MemoryPerNode: 16000 << 20}}},
		{"--size=2 --mem=4G", api.Spec{Size: 2, Launch: "ranks", CPUsPerRank: 1, MemoryPerNode: 4 << 30}},
		{"--mem=0", api.Spec{Size: 1, Launch: "batch", CPUsPerRank: 1}},
		{"--gpus-per-rank=2 --mem-per-gpu=10G --cpus-per-gpu=6", api.Spec{Size: 1, Launch: "batch", CPUsPerRank: 12, GPUsPerRank: 2, MemoryPerRank: 20 << 30, Asked: &api.Asked{MemoryPerGPU: 10 << 30, GPUsPerTask: "2", CPUsPerGPU: 6, CardsBy: "gpus-per-rank"}}},
		{"--size=4 --gpus-per-node=8 --mem-per-gpu=1G", api.Spec{Size: 4, Launch: "ranks", CPUsPerRank: 1, GPUsPerNode: 8, MemoryPerNode: 8 << 30}},

		{"-t 10 --signal=B:USR1@60 --grace=30", api.Spec{Size: 1, Launch: "batch", CPUsPerRank: 1, TimeLimit: 10 * time.Minute,
			Notice: &api.Notice{Signal: "USR1", Lead: time.Minute, Scope: "batch"}, Grace: 30 * time.Second}},
		{"-t UNLIMITED --stop-signal=int", api.Spec{Size: 1, Launch: "batch", CPUsPerRank: 1, StopSignal: "INT"}},
		{"--stall-timeout=90 --gpu-watch -G1", api.Spec{Size: 1, Launch: "batch", CPUsPerRank: 1, GPUsPerRank: 1, StallTimeout: 90 * time.Second, GPUWatch: true, Asked: &api.Asked{GPUs: "1", CardsBy: "gpus"}}},
		{"--stall-timeout=off", api.Spec{Size: 1, Launch: "batch", CPUsPerRank: 1, StallTimeout: api.WatchdogOff}},
		{"--requeue=crash,stalled --max-retries=2", api.Spec{Size: 1, Launch: "batch", CPUsPerRank: 1, MaxRetries: &two,
			RequeueCauses: []api.Cause{"crash", "stalled"}}},
		{"--no-requeue --nice -H --exclusive", api.Spec{Size: 1, Launch: "batch", CPUsPerRank: 1, NoRequeue: true, Nice: 100, Hold: true, Exclusive: true}},
		{"-C a100&nvlink -A acc --comment=x -J name --open-mode=t -i in", api.Spec{Size: 1, Launch: "batch", CPUsPerRank: 1,
			Constraint: "a100&nvlink", Account: "acc", AsAsked: api.AsAsked{Comment: "x"}, Name: "name", OpenMode: "truncate", Input: "in"}},
		{"-b now+1hour --part=gpu", api.Spec{Size: 1, Launch: "batch", CPUsPerRank: 1, Partition: "gpu", Begin: time.Date(2030, 1, 1, 13, 0, 0, 0, time.UTC)}},
	} {
		r, warn, err := buildOf("", strings.Fields(c.args)...)
		if err != nil || len(warn) > 0 {
			t.Errorf("%s: %v %v", c.args, warn, err)
			continue
		}
		if d := cmp.Diff(c.want, r.Spec, figuresAlone); d != "" {
			t.Errorf("%s: -want +got\n%s", c.args, d)
		}
	}
}

// TestClash: words that count cards have to agree, and which rule they break has a code.
func TestClash(t *testing.T) {
	for args, want := range map[string]Clash{
		"--gpus-per-node=8 --gres=gpu:9 -N1":                         ClashOnNode,
		"--gpus-per-task=1 --cpus-per-gpu=1 --cpus-per-task=2 -N1":   ClashCPUs,
		"--gpus-per-task=1 --gpus-per-node=1 -n2 -N1":                ClashOnNode,
		"--gpus-per-socket=1 -N1":                                    ClashSockets,
		"--gpus-per-task=1 --gpus-per-node=2 --ntasks-per-node=1":    ClashTasksOfNode,
		"--gres=gpu:2 --gpus=1":                                      ClashOrder,
		"--gpus-per-socket=2 --sockets-per-node=1 --gpus=1":          ClashOrder,
		"--gpus-per-task=1 -n2 --gpus=1":                             ClashTasks,
		"--gres=gpu:2 --gpus=3":                                      ClashNotByNode,
		"--gres=gpu:2 --gpus-per-socket=1 --sockets-per-node=1":      ClashSocketCount,
		"--gres=gpu:2 --gpus=4 -N1":                                  ClashNodes,
		"--gpus=3 --gpus-per-task=2 -N1":                             ClashNotByTask,
		"--gpus=4 --gpus-per-task=2 -n1":                             ClashTasks,
		"--gpus=1 -N2":                                               ClashFewer,
		"--gpus-per-node=3 --gpus-per-task=2":                        ClashPartOfNode,
		"--gpus-per-rank=2 --gpus-per-node=8 --ranks-per-node=2 -N2": ClashTasksOfNode,
		"--ntasks-per-gpu=2 --gpus-per-task=1 -n2":                   ClashTasksOfCard,
		"--ntasks-per-gpu=2 --gpus=2 --ntasks-per-node=1":            ClashTasksByNode,
	} {
		_, _, err := buildOf("", strings.Fields(args)...)
		var e *Error
		if !errors.As(err, &e) || e.Clash != want {
			t.Errorf("%s: %v, want clash %d", args, err, want)
		} else if want == ClashNodes && e.Nodes != (ClashText{2, 1, 1}) {
			t.Errorf("%s: %+v", args, e.Nodes)
		}
	}
}

// TestBuildSources: within one source rivals contradict, across sources the closer stays.
func TestBuildSources(t *testing.T) {
	for _, c := range []struct {
		name, text, args string
		want             api.Spec
	}{
		{"GANG replaces sbatch's count of tasks, not its nodes", "#SBATCH -N4 --ntasks-per-node=1 --gres=gpu:8\n#GANG --size=32 --gpus-per-rank=1\n", "",
			api.Spec{Size: 32, Launch: "ranks", CPUsPerRank: 1, MinNodes: 4, MaxNodes: 4, GPUsPerRank: 1}},
		{"a flag's tasks replace a script's size", "#GANG --size=32\n", "-n2", api.Spec{Size: 2, Launch: "batch", CPUsPerRank: 1}},
		{"memory by another word", "#SBATCH --mem=4G\n", "--mem-per-cpu=1G", api.Spec{Size: 1, Launch: "batch", CPUsPerRank: 1, MemoryPerRank: 1 << 30, Asked: &api.Asked{MemoryPerCPU: 1 << 30}}},
		{"requeue switched off by flag", "#GANG --requeue --max-retries=3\n", "--no-requeue", api.Spec{Size: 1, Launch: "batch", CPUsPerRank: 1, NoRequeue: true}},
		{"one size in each kind", "#SBATCH --size=2\n#GANG --size=3\n#SBATCH --size=4\n", "", api.Spec{Size: 3, Launch: "ranks", CPUsPerRank: 1}},
		{"the last wins in one kind", "#GANG --size=3 --size=5\n#GANG --size=7\n", "", api.Spec{Size: 7, Launch: "ranks", CPUsPerRank: 1}},
	} {
		r, warn, err := buildOf(c.text, strings.Fields(c.args)...)
		if err != nil || len(warn) > 0 {
			t.Errorf("%s: %v %v", c.name, warn, err)
			continue
		}
		if d := cmp.Diff(c.want, r.Spec, figuresAlone); d != "" {
			t.Errorf("%s: -want +got\n%s", c.name, d)
		}
	}
}

func TestBuildWarns(t *testing.T) {
	for _, c := range []struct{ text, args, want string }{
		{"", "-N4 -n2", "--nodes=4: 2 ranks can't fill 4 nodes, 2 nodes are asked for"},
		{"#GANG --time=1\n#SBATCH --signal=TERM@120\n", "", "job.sh:2:9: --signal=TERM@120: the lead (2m) is not shorter than the time limit, --time=1 (job.sh:1:7): " +
			"the notice comes at the start; write a shorter lead, --signal=TERM@6, or a longer --time"},
		{"#SBATCH --signal=R:USR1\n", "", "job.sh:1:9: --signal=R:USR1: R: has no effect: there are no reservations that a job could overlap"},
		{"", "--signal=KILL", "--signal=KILL: KILL can't be caught: it is no notice, and has no effect"},
		{"#SBATCH -o 100%\n", "", `job.sh:1:9: --output=100%: "%" stands for nothing and stays in the name; ` +
			`there are %j job, %x name, %A array, %a index, %u user, %N node, %n node number, %t rank, %r restart, %%`},
	} {
		_, warn, err := buildOf(c.text, strings.Fields(c.args)...)
		if err != nil || len(warn) != 1 || warn[0].String() != c.want {
			t.Errorf("%q %s: %v %v, want %q", c.text, c.args, warn, err, c.want)
		}
	}
}

func TestEnviron(t *testing.T) {
	s, warn, err := Environ([]string{"PATH=/bin", "SBATCH_ARRAY_INX=0-3", "GSUBMIT_HOLD=1", "GSUBMIT_SHARE=no", "SBATCH_EXCLUSIVE=",
		"GSUBMIT_GPUS_PER_RANK=2", "SBATCH_PARTITION=", "SBATCH_MEM_BIND=x", "SBATCH_FOO=1"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range s {
		got = append(got, s[i].String())
	}
	if d := cmp.Diff([]string{"--gpus-per-rank=2", "--hold", "--array=0-3", "--exclusive"}, got); d != "" {
		t.Error(d)
	}
	if len(warn) != 1 || warn[0].String() != "SBATCH_FOO: this variable sets no option" {
		t.Error(warn)
	}
}
