package noded

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/watchdog"
	"gangd/pkg/lab/tool"
	"gangd/pkg/node/gpu"
	"gangd/pkg/node/gpu/simgpu"
	"gangd/pkg/node/proc"
	"gangd/pkg/node/shim"
)

// What real ranks do on their machine is seen whatever their idle cards show: loading into
// memory and reading a file are work, waiting and a line of a log now and then are not.
func TestCheckSeesProcesses(t *testing.T) {
	tool.Need(t, "python3")
	c := newController(t)
	o := c.options(t.TempDir())
	cards, err := simgpu.New("4x80G", "n1", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cards.Close() })
	o.GPU = cards
	c.run(o)
	python := func(text string) string { // without the mark of its gang
		return "#!/bin/sh\n(exec /usr/bin/env -i \"$(command -v python3)\" - <<'PY'\nimport os, time\n" + text + "PY\n)\n"
	}
	const up = "open('up', 'w').close()\n"
	ranks := []struct {
		name, script string
		want         api.CardsState
	}{
		{"loads into memory", python("b = []\n" + up + "while len(b) < 400:\n    b.append(b'x' * (2 << 20)); time.sleep(0.02)\ntime.sleep(600)\n"), api.CardsMoving},
		{"reads a file", python("open('data', 'wb').write(bytes(1 << 20))\nn = os.open('data', os.O_RDONLY)\n" + up + "while True:\n    os.pread(n, 1 << 20, 0); time.sleep(0.01)\n"), api.CardsMoving},
		{"writes a line now and then", python(up + "while True:\n    print('waiting for the others', flush=True); time.sleep(0.05)\n"), api.CardsQuiet},
		{"hangs", "#!/bin/sh\ntouch up\nsleep 600\n", api.CardsQuiet},
	}
	var keys []api.MemberKey
	var work []string
	for i, r := range ranks {
		keys = append(keys, c.desire(int64(i+1), 1, 1, r.script, func(a *api.Assignment, s *api.Spec) {
			s.GPUsPerRank = 1
			a.Body.Ranks[0].Cards = []string{fmt.Sprintf("GPU-sim-n1-%d", i)}
			work = append(work, s.WorkDir)
		}))
	}
	for i, k := range keys {
		c.untilPhase(k, api.PhaseRunning)
		waitFile(t, filepath.Join(work[i], "up"))
		c.order(k, func(a *api.Assignment) { a.Check = &api.Check{Round: 7, Readings: 3, Interval: 400 * time.Millisecond} })
	}
	for i, k := range keys {
		var f *api.Finding
		c.until("an answer", func() bool {
			at := slices.IndexFunc(c.notes, func(n api.MemberNote) bool { return n.MemberKey == k && n.Watch != nil && n.Watch.Round == 7 })
			if at >= 0 {
				f = c.notes[at].Watch.Finding
			}
			return at >= 0
		})
		if f.State != ranks[i].want || len(f.Hosts) != 1 || f.Cards[0].State != api.CardsQuiet {
			t.Errorf("a rank that %s: %+v", ranks[i].name, f)
		}
	}
}

// uses and holds are processes of a simulated card.
func uses(process, utilization int) string {
	return fmt.Sprintf(`{"pid":%d,"used":"1G","utilization":%d}`, process, utilization)
}

func holds(process int) string { return fmt.Sprintf(`{"pid":%d,"used":"1G"}`, process) }

// Who uses a card besides a gang is told apart where the driver says who did, is not where it
// does not, and is named.
func TestReadingOfOthers(t *testing.T) {
	mine, stranger, second := process(t, job(1), 0), process(t, job(0), 0), process(t, job(2), 0)
	who := newOwners(func(int) (api.MemberKey, bool) { return job(0), false }).of(stranger.Process.Pid).who()
	me, them, job2 := mine.Process.Pid, stranger.Process.Pid, second.Process.Pid
	const gib = int64(1) << 30
	for _, c := range []struct {
		name   string
		shared bool
		steer  string
		want   watchdog.Reading
	}{
		{"alone", false, `"utilization":60,"processes":[` + holds(me) + `]`, watchdog.Reading{Utilization: 60, AtMost: 60, UsedBytes: gib}},
		{"a stranger works", false, `"utilization":60,"processes":[` + uses(me, 0) + "," + uses(them, 60) + `]`,
			watchdog.Reading{UsedBytes: 2 * gib, Others: fmt.Sprintf("%s (pid %d)", who, them)}},
		{"both work", false, `"utilization":60,"processes":[` + uses(me, 40) + "," + uses(them, 20) + `]`,
			watchdog.Reading{Utilization: 40, AtMost: 40, UsedBytes: 2 * gib, Others: fmt.Sprintf("%s (pid %d)", who, them)}},
		{"it is not said who works", false, `"utilization":60,"processes":[` + holds(me) + "," + holds(them) + `]`,
			watchdog.Reading{AtMost: 60, UsedBytes: 2 * gib, Others: fmt.Sprintf("%s (pid %d)", who, them)}},
		{"strangers without a process", false, `"utilization":60,"used_by_strangers":"3G","processes":[` + holds(me) + `]`, watchdog.Reading{AtMost: 60, UsedBytes: gib}},
		{"another gang on a shared card", true, `"utilization":60,"used":"9G","processes":[` + uses(me, 0) + "," + uses(job2, 60) + `]`,
			watchdog.Reading{UsedBytes: gib, Others: fmt.Sprintf("job 2 (sleep, pid %d)", job2)}},
		{"another gang that is not listed", true, `"utilization":60,"used":"9G","processes":[` + holds(me) + `]`, watchdog.Reading{AtMost: 60, UsedBytes: gib, Others: "job 2"}},
		{"no figure", false, `"utilization":-1,"processes":[` + holds(me) + `]`, watchdog.Reading{Utilization: -1, AtMost: -1, UsedBytes: gib}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := simulate(t, "1x80G")
			s.read()
			s.mustGive(job(1), card0(20, c.shared, 0))
			if c.shared {
				s.mustGive(job(2), card0(20, true, 0))
			}
			s.steer(`{"0":{` + c.steer + `}}`)
			s.read()
			if got := s.c.reading(job(1), "GPU-sim-n1-0"); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

// The server of CUDA MPS works for others: whose work it does is hidden, and so is a process
// that is not there.
func TestWhose(t *testing.T) {
	for o, want := range map[owner]gpu.Whose{
		{}:                          gpu.Hidden,
		{start: 7, comm: "python"}:  gpu.Other,
		{start: 7, comm: mpsServer}: gpu.Hidden,
		{start: 7, ours: true, key: job(1), comm: mpsServer}: gpu.Own,
		{start: 7, ours: true, key: job(2)}:                  gpu.Other,
	} {
		if got := o.whose(job(1)); got != want {
			t.Errorf("%+v: %v, want %v", o, got, want)
		}
	}
	if len(mpsServer) != 15 {
		t.Error("the kernel cuts names of processes at 15 bytes")
	}
}

// A descendant of a shim that has shed the mark of its gang is found by its ancestors.
func TestMarkedAbove(t *testing.T) {
	d := &daemon{state: &stateDir{id: "t"}, jobs: map[int64][]*member{}}
	m := &member{key: job(3)}
	d.jobs[3] = []*member{m}
	if k, ok := d.memberOf(os.Getpid()); ok {
		t.Fatalf("this test is of %v", k)
	}
	m.shimPID.Store(int64(os.Getppid()))
	if k, ok := d.memberOf(os.Getpid()); !ok || k != job(3) {
		t.Errorf("%v %v", k, ok)
	}
	m.over.Store(true)
	if _, ok := d.memberOf(os.Getpid()); ok {
		t.Error("of a member that is over")
	}
	marked := process(t, job(4), 0)
	if k, ok := d.memberOf(marked.Process.Pid); !ok || k != job(4) {
		t.Errorf("%v %v", k, ok)
	}
}

func TestUsageOfNobody(t *testing.T) {
	d := &daemon{jobs: map[int64][]*member{1: {{key: job(1)}}}}
	for _, n := range []int64{1, 2} {
		if got := d.usageOf(job(n)); got != proc.UnknownUsage {
			t.Errorf("%+v", got)
		}
	}
	m := d.jobs[1][0]
	m.known.Store(&shim.Spec{Containment: "group"}) // its shim is not known yet
	if got := d.usageOf(job(1)); got != proc.UnknownUsage {
		t.Errorf("%+v", got)
	}
}

// The one that takes stacks is a child of the shim like a rank, and none.
func TestTakesStacks(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "dump"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tail, err := exec.LookPath("tail")
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[[2]string]bool{{"gshim", "dump"}: true, {"python", "dump"}: false} {
		p := &exec.Cmd{Path: tail, Args: []string{args[0], args[1], "-f"}, Dir: dir}
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		defer end(p)
		shows(t, p, "cmdline")
		if got := takesStacks(proc.Stat{PID: p.Process.Pid}); got != want {
			t.Errorf("%v: %v", args, got)
		}
	}
}
