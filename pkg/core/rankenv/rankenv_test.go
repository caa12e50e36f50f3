package rankenv

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gangd/pkg/api"
)

// two nodes: ranks 0 1 2 on n1, 3 on n2.
func member() *Member {
	return &Member{
		MemberKey: api.MemberKey{Job: 12, Epoch: 2},
		Spec: &api.Spec{Size: 4, Launch: api.LaunchRanks, CPUsPerRank: 2, WorkDir: "/work", SubmitHost: "login1",
			Env: []string{"HOME=/home/ann", "PATH=/opt/bin:/bin", "PWD=/home/ann/p", "A=1", "A=2"}},
		Body: &api.AssignmentBody{Name: "train", User: "ann", UID: 1000, GID: 100, Partition: "gpu", RestartCount: 1,
			Nodes: []api.Place{{Name: "n1", Address: "10.0.0.1"}, {Name: "n2", Address: "10.0.0.2"}},
			Ranks: []api.RankPlace{{Node: 0, Cards: []string{"GPU-b"}}, {Node: 0, Cards: []string{"GPU-a"}}, {Node: 0, Cards: []string{"GPU-b"}}, {Node: 1}}},
		NodeList: "n[1-2]", Marker: "12.2@n1", BinDir: "/usr/lib/gangd/bin", Shell: "/bin/bash", CardIndex: map[string]int{"GPU-a": 0, "GPU-b": 3},
	}
}

func TestWholeEnvironment(t *testing.T) {
	m := member()
	got := slices.Clone(m.Environ()[1])
	slices.Sort(got)
	want := strings.Split(strings.TrimSpace(`
A=2
CUDA_VISIBLE_DEVICES=GPU-b,GPU-a
GANG_EPOCH=2
GANG_JOB_ID=12
GANG_JOB_NAME=train
GANG_LOCAL_RANK=1
GANG_LOCAL_SIZE=3
GANG_MEMBER=12.2@n1
GANG_NNODES=2
GANG_NODELIST=n[1-2]
GANG_NODE_RANK=0
GANG_PEERS=10.0.0.1,10.0.0.1,10.0.0.1,10.0.0.2
GANG_RANK=1
GANG_RESTART_COUNT=1
GANG_SIZE=4
HOME=/home/ann
HOSTNAME=n1
LOCAL_RANK=1
LOCAL_WORLD_SIZE=3
LOGNAME=ann
MASTER_ADDR=10.0.0.1
PATH=/opt/bin:/bin:/usr/lib/gangd/bin
PWD=/work
PYTHONUNBUFFERED=1
RANK=1
SHELL=/bin/bash
SLURMD_NODENAME=n1
SLURM_CLUSTER_NAME=gangd
SLURM_CPUS_ON_NODE=6
SLURM_CPUS_PER_TASK=2
SLURM_GPUS_ON_NODE=2
SLURM_JOBID=12
SLURM_JOB_CPUS_PER_NODE=6,2
SLURM_JOB_GID=100
SLURM_JOB_GPUS=3,0
SLURM_JOB_ID=12
SLURM_JOB_NAME=train
SLURM_JOB_NODELIST=n[1-2]
SLURM_JOB_NUM_NODES=2
SLURM_JOB_PARTITION=gpu
SLURM_JOB_UID=1000
SLURM_JOB_USER=ann
SLURM_LOCALID=1
SLURM_NNODES=2
SLURM_NODEID=0
SLURM_NODELIST=n[1-2]
SLURM_NPROCS=4
SLURM_NTASKS=4
SLURM_PRIO_PROCESS=0
SLURM_PROCID=1
SLURM_RESTART_COUNT=1
SLURM_SUBMIT_DIR=/home/ann/p
SLURM_SUBMIT_HOST=login1
SLURM_TASKS_PER_NODE=3,1
SLURM_TOPOLOGY_ADDR=n1
SLURM_TOPOLOGY_ADDR_PATTERN=node
USER=ann
WORLD_SIZE=4`), "\n")
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func lookup(list []string, name string) (string, bool) {
	for _, kv := range list {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v, true
		}
	}
	return "", false
}

func TestEnvironment(t *testing.T) {
	index := 3
	cases := []struct {
		name   string
		change func(*Member)
		want   map[string]string // "-": absent
	}{
		{"the second node", func(m *Member) { m.Node = 1 }, map[string]string{"RANK": "3", "LOCAL_RANK": "0", "GANG_NODE_RANK": "1",
			"SLURM_PROCID": "3", "SLURM_LOCALID": "0", "LOCAL_WORLD_SIZE": "1", "SLURMD_NODENAME": "n2", "SLURM_CPUS_ON_NODE": "2",
			"CUDA_VISIBLE_DEVICES": "", "SLURM_GPUS_ON_NODE": "-", "SLURM_JOB_GPUS": "-", "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "-"}},
		{"licences", func(m *Member) {
			m.Spec.Pools = []api.Pool{{Kind: "licence", Name: "matlab", Count: 2}, {Kind: "licence", Name: "ansys", Count: 1}}
		}, map[string]string{"SLURM_JOB_LICENSES": "matlab:2,ansys:1"}},
		{"without licences", func(*Member) {}, map[string]string{"SLURM_JOB_LICENSES": "-"}},
		{"rank 0 elsewhere", func(m *Member) { m.Body.Ranks[0].Node = 1 }, map[string]string{"MASTER_ADDR": "10.0.0.2", "RANK": "1"}},
		{"batch", func(m *Member) { m.Spec.Launch = api.LaunchBatch }, map[string]string{"RANK": "-", "WORLD_SIZE": "-", "LOCAL_RANK": "-",
			"SLURM_PROCID": "0", "GANG_RANK": "0", "GANG_SIZE": "4", "SLURM_NTASKS": "4", "MASTER_ADDR": "10.0.0.1"}},
		{"array", func(m *Member) {
			b := m.Body
			b.ArrayJobID, b.ArrayIndex, b.ArrayCount, b.ArrayMin, b.ArrayMax, b.ArrayStep = 10, &index, 5, 1, 9, 2
		}, map[string]string{"SLURM_ARRAY_JOB_ID": "10", "SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_COUNT": "5", "SLURM_ARRAY_TASK_MIN": "1",
			"SLURM_ARRAY_TASK_MAX": "9", "SLURM_ARRAY_TASK_STEP": "2", "SLURM_JOB_ID": "12"}},
		{"submitted from inside a job", func(m *Member) {
			m.Spec.Env = append(m.Spec.Env, "SLURM_STEP_ID=4", "SLURM_JOB_ID=7", "GANG_ROLE=worker", "GANG_DIR=/d", "RANK=9", "MASTER_PORT=1",
				"CUDA_VISIBLE_DEVICES=GPU-z", "SLURM_ARRAY_TASK_ID=1", "SLURM_EXPORT_ENV=A=1", "OLDPWD=/x", "NOTIFY_SOCKET=@a")
		}, map[string]string{"SLURM_STEP_ID": "-", "SLURM_JOB_ID": "12", "GANG_ROLE": "-", "GANG_DIR": "/d", "RANK": "0", "MASTER_PORT": "-",
			"CUDA_VISIBLE_DEVICES": "GPU-b,GPU-a", "SLURM_ARRAY_TASK_ID": "-", "SLURM_EXPORT_ENV": "A=1", "OLDPWD": "-", "NOTIFY_SOCKET": "-", "PWD": "/work"}},
		{"cards by number", func(m *Member) {
			m.CardNames = map[string]string{"GPU-a": "0", "GPU-b": "3"}
			m.Spec.Env = append(m.Spec.Env, "CUDA_DEVICE_ORDER=FASTEST_FIRST")
		}, map[string]string{"CUDA_VISIBLE_DEVICES": "3,0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "SLURM_JOB_GPUS": "3,0"}},
		{"cards shared out by cards, two tasks", func(m *Member) {
			m.Spec.Launch, m.Spec.Asked = api.LaunchBatch, &api.Asked{Tasks: 2}
		}, map[string]string{"SLURM_NTASKS": "2", "SLURM_TASKS_PER_NODE": "1(x2)", "SLURM_OVERCOMMIT": "-"}},
		{"cards of several nodes", func(m *Member) {
			m.Spec.Launch, m.Spec.Asked = api.LaunchBatch, &api.Asked{Spread: true}
		}, map[string]string{"SLURM_NTASKS": "2", "SLURM_TASKS_PER_NODE": "1(x2)"}},
		{"more tasks than ranks", func(m *Member) {
			m.Spec.Launch, m.Spec.Asked = api.LaunchBatch, &api.Asked{Tasks: 9}
		}, map[string]string{"SLURM_NTASKS": "9", "SLURM_TASKS_PER_NODE": "3,1", "SLURM_OVERCOMMIT": "1"}},
		{"a node with a relay", func(m *Member) {
			m.Commands = "/r/s"
			m.Spec.Env = append(m.Spec.Env, "GANG_DIR=/of/login1", "GANG_CONTROLLER=/outer")
		},
			map[string]string{"GANG_CONTROLLER": "/r/s", "GANG_DIR": "-"}},
		{"a node without", func(m *Member) { m.Spec.Env = append(m.Spec.Env, "GANG_CONTROLLER=/outer") }, map[string]string{"GANG_CONTROLLER": "-"}},
		{"an empty submit environment", func(m *Member) { m.Spec.Env = nil; m.Home = "/root" }, map[string]string{"HOME": "/root", "USER": "ann",
			"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/lib/gangd/bin", "SLURM_SUBMIT_DIR": "/work", "PYTHONUNBUFFERED": "1"}},
		{"what the person set", func(m *Member) {
			m.Spec.Env = []string{"PYTHONUNBUFFERED=", "PATH=/usr/lib/gangd/bin:/bin", "broken", "=x", "NUL=a\x00b"}
		}, map[string]string{"PYTHONUNBUFFERED": "", "PATH": "/usr/lib/gangd/bin:/bin", "NUL": "-"}},
		{"a card the node does not know", func(m *Member) { m.CardIndex = nil }, map[string]string{"SLURM_JOB_GPUS": "-", "SLURM_GPUS_ON_NODE": "2"}},
		{"roles", func(m *Member) {
			m.Spec.Roles = []api.Role{{Name: "coordinator", Count: 1, CPUsPerRank: 1}, {Name: "data-loader", Count: 3, CPUsPerRank: 4}}
			m.Spec.Env = append(m.Spec.Env, "GANG_ROLE_PEERS_OLD=a", "GANG_ROLE_RANK=7")
		}, map[string]string{"GANG_ROLE": "coordinator", "GANG_ROLE_RANK": "0", "GANG_ROLE_SIZE": "1", "GANG_ROLES": "coordinator,data-loader",
			"GANG_ROLE_PEERS_COORDINATOR": "10.0.0.1", "GANG_ROLE_PEERS_DATA_LOADER": "10.0.0.1,10.0.0.1,10.0.0.2", "GANG_ROLE_PEERS_OLD": "-",
			"SLURM_CPUS_PER_TASK": "1", "SLURM_CPUS_ON_NODE": "9", "SLURM_JOB_CPUS_PER_NODE": "9,4"}},
		{"the second role", func(m *Member) {
			m.Node = 1
			m.Spec.Roles = []api.Role{{Name: "coordinator", Count: 1, CPUsPerRank: 1}, {Name: "worker", Count: 3, CPUsPerRank: 4}}
		}, map[string]string{"GANG_ROLE": "worker", "GANG_ROLE_RANK": "2", "GANG_ROLE_SIZE": "3", "SLURM_CPUS_PER_TASK": "4", "SLURM_CPUS_ON_NODE": "4", "GANG_RANK": "3"}},
		{"figures as they were asked for", func(m *Member) {
			m.Spec.Launch, m.Spec.GPUsPerRank, m.Spec.MemoryPerNode = api.LaunchBatch, 1, 5<<20
			m.Spec.Asked = &api.Asked{MemoryPerCPU: 100<<20 + 1, MemoryPerGPU: 1 << 20, GPUs: "a100:2", CPUsPerGPU: 4}
		}, map[string]string{"SLURM_MEM_PER_NODE": "-", "SLURM_MEM_PER_CPU": "101", "SLURM_MEM_PER_GPU": "1", "SLURM_GPUS": "a100:2",
			"SLURM_GPUS_PER_TASK": "-", "SLURM_GPUS_PER_NODE": "-", "SLURM_CPUS_PER_GPU": "4"}},
		{"CPUs as they were asked for", func(m *Member) {
			m.Spec.Launch, m.Spec.CPUsPerRank, m.Spec.Asked = api.LaunchBatch, 1, &api.Asked{CPUsPerTask: 1}
		}, map[string]string{"SLURM_CPUS_PER_TASK": "1"}},
		{"CPUs of tasks, shared out over their cards", func(m *Member) {
			m.Spec.Launch, m.Spec.CPUsPerRank, m.Spec.Asked = api.LaunchBatch, 3, &api.Asked{CPUsPerTask: 4, Tasks: 2}
		}, map[string]string{"SLURM_CPUS_PER_TASK": "4"}},
		{"cards of --gres have no words", func(m *Member) {
			m.Spec.Launch, m.Spec.GPUsPerRank, m.Spec.Asked = api.LaunchBatch, 1, &api.Asked{}
		}, map[string]string{"SLURM_GPUS": "-", "SLURM_GPUS_PER_TASK": "-", "SLURM_GPUS_PER_NODE": "-", "SLURM_GPUS_ON_NODE": "2"}},
		{"components", func(m *Member) {
			m.Spec.Launch, m.Spec.Account = api.LaunchBatch, "lab"
			m.Spec.Roles = []api.Role{{Name: "component-0", Count: 3, CPUsPerRank: 1, Component: &api.Component{Partition: "cpu", Asked: &api.Asked{MemoryPerNode: 1 << 30}}},
				{Name: "component-1", Count: 1, CPUsPerRank: 4, GPUsPerRank: 1, Component: &api.Component{Partition: "gpu", RanksPerNode: 1, Asked: &api.Asked{GPUsPerTask: "1"}}}}
		}, map[string]string{"SLURM_HET_SIZE": "2", "SLURM_PACK_SIZE": "2", "SLURM_NTASKS": "3", "SLURM_JOB_NODELIST": "n1", "SLURM_NNODES": "1", "SLURM_JOB_PARTITION": "cpu",
			"SLURM_JOB_CPUS_PER_NODE": "3", "SLURM_TASKS_PER_NODE": "3", "SLURM_MEM_PER_NODE": "1024", "SLURM_CPUS_ON_NODE": "3", "SLURM_CPUS_PER_TASK": "-",
			"SLURM_JOB_ID_HET_GROUP_0": "12", "SLURM_JOB_ID_HET_GROUP_1": "12", "SLURM_JOB_NODELIST_HET_GROUP_0": "n1", "SLURM_JOB_NODELIST_HET_GROUP_1": "n2",
			"SLURM_JOB_PARTITION_HET_GROUP_1": "gpu", "SLURM_JOB_CPUS_PER_NODE_HET_GROUP_1": "4", "SLURM_NTASKS_HET_GROUP_0": "3", "SLURM_NTASKS_PACK_GROUP_1": "1",
			"SLURM_JOB_ACCOUNT_HET_GROUP_1": "lab", "SLURM_CPUS_PER_TASK_HET_GROUP_0": "-", "SLURM_CPUS_PER_TASK_HET_GROUP_1": "4", "SLURM_NTASKS_PER_NODE_HET_GROUP_1": "1",
			"SLURM_MEM_PER_NODE_HET_GROUP_0": "1024", "SLURM_MEM_PER_NODE_HET_GROUP_1": "-", "SLURM_GPUS_PER_TASK_HET_GROUP_1": "1",
			"GANG_SIZE": "4", "GANG_NODELIST": "n[1-2]", "GANG_ROLE": "component-0"}},
		{"figures of the job", func(m *Member) { m.Spec.RanksPerNode, m.Spec.MemoryPerNode, m.Spec.Account = 3, 2<<30, "lab" },
			map[string]string{"SLURM_NTASKS_PER_NODE": "3", "SLURM_MEM_PER_NODE": "2048", "SLURM_JOB_ACCOUNT": "lab"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := member()
			c.change(m)
			list := m.Environ()[0]
			for name, want := range c.want {
				got, ok := lookup(list, name)
				if !ok {
					got = "-"
				}
				if got != want {
					t.Errorf("%s=%s, want %s", name, got, want)
				}
			}
			names := map[string]bool{}
			for _, kv := range list {
				name, _, ok := strings.Cut(kv, "=")
				if !ok || name == "" || names[name] {
					t.Errorf("%q: no name, or twice", kv)
				}
				names[name] = true
			}
		})
	}
}

func TestPerNode(t *testing.T) {
	for _, c := range []struct {
		counts []int
		want   string
	}{{[]int{2, 2, 2}, "2(x3)"}, {[]int{2, 2, 1}, "2(x2),1"}, {[]int{1}, "1"}, {[]int{1, 2, 2}, "1,2(x2)"}} {
		if got := api.PerNode(c.counts); got != c.want {
			t.Errorf("%v: %s, want %s", c.counts, got, c.want)
		}
	}
}

func TestPeersTooLong(t *testing.T) {
	m := member()
	m.Body.Ranks = make([]api.RankPlace, api.MaxGangSize)
	if v, ok := lookup(m.Environ()[0], "GANG_PEERS"); ok {
		t.Errorf("GANG_PEERS of %d bytes: no exec takes it", len(v))
	}
}

func BenchmarkEnviron(b *testing.B) {
	m := member()
	for b.Loop() {
		m.Environ()
	}
}

func TestSocketsAndCheckpoint(t *testing.T) {
	m := member()
	m.Sockets = func(r int) (string, string) {
		if r == 2 {
			return "", ""
		}
		return "/m/n", "/m/g"
	}
	m.Watchdog = 90 * time.Second
	m.Spec.Env = append(m.Spec.Env, "NOTIFY_SOCKET=/outer", "WATCHDOG_PID=7", "CHECKPOINT_DATA=b3V0ZXI=")
	m.Checkpoints = map[int]Checkpoint{0: {File: "/m/c0", Data: []byte("a\x00b")}, 1: {File: "/m/c1", Data: make([]byte, api.MaxCheckpointEnv)}}
	want := []map[string]string{
		{"NOTIFY_SOCKET": "/m/n", "GANG_SOCKET": "/m/g", "WATCHDOG_USEC": "90000000", "GANG_CHECKPOINT_FILE": "/m/c0", "CHECKPOINT_DATA": "YQBi"},
		{"NOTIFY_SOCKET": "/m/n", "GANG_SOCKET": "/m/g", "WATCHDOG_USEC": "90000000", "GANG_CHECKPOINT_FILE": "/m/c1"},
		{},
	}
	for r, env := range m.Environ() {
		got := map[string]string{}
		for _, kv := range env {
			name, value, _ := strings.Cut(kv, "=")
			if name == "NOTIFY_SOCKET" || name == "GANG_SOCKET" || strings.HasPrefix(name, "WATCHDOG") || strings.Contains(name, "CHECKPOINT") {
				got[name] = value
			}
		}
		if diff := cmp.Diff(want[r], got); diff != "" {
			t.Errorf("rank %d: -want +got\n%s", r, diff)
		}
	}
}
