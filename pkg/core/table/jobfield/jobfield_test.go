package jobfield

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gangd/pkg/api"
)

// TestIndexRanges holds what squeue 22.05 writes for the same arrays.
func TestIndexRanges(t *testing.T) {
	step := func(first, last, by int) (v []int) {
		for i := first; i <= last; i += by {
			v = append(v, i)
		}
		return v
	}
	for _, c := range []struct {
		v    []int
		want string
	}{
		{[]int{7}, "7"}, {[]int{1, 5}, "1,5"}, {[]int{1, 3, 5}, "1,3,5"}, {step(0, 10, 2), "0,2,4,6,8,10"}, {step(0, 12, 2), "0-12:2"},
		{step(0, 50, 10), "0-50:10"}, {step(100, 500, 100), "100,200,300,400,500"}, {step(0, 30, 10), "0,10,20,30"},
		{step(0, 15, 1), "0-15"}, {append(step(1, 9, 2), 20), "1,3,5,7,9,20"}, {append(step(7, 30, 1), 40), "7-30,40"},
		{step(1, 100, 3), "1-100:3"}, {nil, ""},
	} {
		if got := IndexRanges(c.v); got != c.want {
			t.Errorf("%v: %s, want %s", c.v, got, c.want)
		}
	}
}

// TestSplitOff: elements that were changed stand alone in squeue, and what is left of the array,
// held ones too, in one row.
func TestSplitOff(t *testing.T) {
	jobs := make([]api.Job, 6)
	for i := range jobs {
		jobs[i] = api.Job{JobID: int64(i + 26), ArrayJobID: 26, ArrayIndex: new(i), State: api.JobPending, Name: "wrap", Reason: "BeginTime", TimeLimitSeconds: 60}
	}
	jobs[1].Name = "one"
	jobs[2].Reason, jobs[2].Held = "JobHeldAdmin", "admin"
	jobs[4].TimeLimitSeconds = 120
	rows := Fold{}.Rows(jobs)
	var got []string
	for i := range rows {
		got = append(got, ID(&rows[i]))
	}
	if want := []string{"26_[0,2-3,5]", "26_1", "26_4"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := reason(&rows[0]); got != "BeginTime,JobHeldAdmin" {
		t.Errorf("they wait because of %s", got)
	}
	for j, want := range map[*api.Job]int64{&jobs[0]: 4294901760, &jobs[2]: 0, {Priority: -100}: 4294901660, {Priority: 1 << 40}: 1<<32 - 2} {
		if got := SlurmPriority(j); got != want {
			t.Errorf("priority %d of %+v is shown as %d, want %d", j.Priority, j, got, want)
		}
	}
}

// TestLongLists: an id is at most 31 bytes and a list of elements 63, as in squeue.
func TestLongLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := rapid.SliceOfNDistinct(rapid.IntRange(0, 500), 1, 60, rapid.ID[int]).Draw(t, "set")
		var jobs []api.Job
		for i := range set {
			jobs = append(jobs, api.Job{JobID: int64(i + 26), ArrayJobID: 26, ArrayIndex: &set[i], State: api.JobPending})
		}
		rows := Fold{View: &View{BitLen: 64, Cut: 31}}.Rows(jobs)
		if len(rows) != 1 {
			t.Fatalf("%d rows", len(rows))
		}
		if id := ID(&rows[0]); len(id) > 31 {
			t.Fatalf("%q is %d bytes", id, len(id))
		}
		if list := arrayTask(&rows[0]); len(list) > 63 {
			t.Fatalf("%q is %d bytes", list, len(list))
		}
	})
}

// TestEveryLetter: each letter and each name stands once in each of the two lists, and every
// field can be shown of a job that has nothing.
func TestEveryLetter(t *testing.T) {
	for name, fields := range map[string][]Field{"squeue": Squeue.Fields, "gqueue": Gqueue.Fields} {
		letters, names := map[byte]bool{}, map[string]bool{}
		for i := range fields {
			f := &fields[i]
			if f.Letter != 0 && letters[f.Letter] {
				t.Errorf("%s: %%%c stands twice", name, f.Letter)
			}
			letters[f.Letter] = true
			for _, n := range f.Names {
				if names[n] {
					t.Errorf("%s: %s stands twice", name, n)
				}
				names[n] = true
			}
			r := &Row{Job: &api.Job{}}
			_ = f.Text(r)
			if f.Compare != nil && f.Compare(r, r) != 0 {
				t.Errorf("%s: %%%c is not equal to itself", name, f.Letter)
			}
		}
		for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
			if !letters[c] {
				t.Errorf("%s lacks %%%c", name, c)
			}
		}
	}
}

// TestNoStart: a job that waits has used no time, whatever start is expected of it.
func TestNoStart(t *testing.T) {
	r := &Row{Job: &api.Job{State: api.JobPending, ExpectedStart: Now().Add(-time.Hour)}}
	if Used(r) != 0 {
		t.Error(Used(r))
	}
}

// TestAskedByNode: what was asked for by node counts on each of them, in squeue's fields as in gqueue's.
func TestAskedByNode(t *testing.T) {
	byNode := &Row{Job: &api.Job{Size: 4, CPUsPerRank: 2, MinNodes: 2, RanksPerNode: 2, GPUsPerNode: 2, MemoryPerNode: 1536 << 20, Asked: &api.Asked{GPUsPerNode: "a100:2"}, Switches: 1,
		Budgets: map[api.Cause]api.Budget{api.CauseRequeued: {}}}}
	byRank := &Row{Job: &api.Job{Size: 4, MinNodes: 2, GPUsPerRank: 1, MemoryBytes: 1 << 30, Asked: &api.Asked{GPUsPerTask: "1", CPUsPerGPU: 3, GPUBind: "none"}, AsAsked: api.AsAsked{Allocation: true}}}
	own := &Row{Job: &api.Job{Size: 2, MinNodes: 1, GPUsPerRank: 2}}
	for _, c := range []struct {
		r    *Row
		name string
		want string
	}{
		{byNode, "tres-alloc", "cpu=8,mem=3G,node=2,billing=8,gres/gpu=4"}, {byNode, "minmemory", "1.50G"}, {byNode, "tres-per-node", "gres:gpu:a100:2"},
		{byNode, "requeue", "0"}, {byNode, "reqswitch", "1"}, {byNode, "batchflag", "1"},
		{byRank, "tres-alloc", "cpu=4,mem=4G,node=2,billing=4,gres/gpu=4"}, {byRank, "tres-per-node", "N/A"}, {byRank, "tres-per-task", "gres:gpu:1"},
		{byRank, "cpus-per-tres", "gres:gpu:3"}, {byRank, "tres-bind", "gpu:none"}, {byRank, "requeue", "1"}, {byRank, "batchflag", "0"},
		{own, "tres-per-node", "gres:gpu:4"},
	} {
		if got := Squeue.Name(c.name).Text(c.r); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if got := Gqueue.Name("gpus").Text(byNode); got != "4" {
		t.Errorf("gqueue counts %s cards", got)
	}
}

// TestOutputPath: a restart and the first node are in the name as they are, and %a of what is left of an array is Slurm's word for that.
func TestOutputPath(t *testing.T) {
	r := &Row{Job: &api.Job{JobID: 14, ArrayJobID: 12, ArrayIndex: new(2), Name: "x", WorkDir: "/home/ada", RestartCount: 3}}
	for want, pattern := range map[string]string{"/home/ada/x-12_2.r3": "%x-%A_%a.r%r", "/tmp/12": "/tmp/%j", "": ""} {
		if got := OutputPath(r, 12, pattern); got != want {
			t.Errorf("%s: %s, want %s", pattern, got, want)
		}
	}
	r.Folded, r.Nodes = []int{2, 3}, []string{"n1", "n2"}
	if got := OutputPath(r, 12, "%a.%N"); got != "/home/ada/4294967294.n1" {
		t.Error(got)
	}
}
