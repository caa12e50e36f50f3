package shim

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/core/stacks"
	"gangd/pkg/lab/tool"
)

// waitingRanks is a gang of which rank 2 is elsewhere: started by a shell, with a helper beside it, as scripts do.
const waitingRanks = `#!/bin/bash
echo up
python3 -c '
import os, threading, time
def all_reduce():
    e = threading.Event()
    print("there", flush=True)
    e.wait()
def pause():
    print("there", flush=True)
    time.sleep(1000)
threading.Thread(target=lambda: time.sleep(1000), daemon=True).start()
pause() if os.environ["GANG_RANK"] == "2" else all_reduce()
' | cat
`

func untilThere(t *testing.T, s *Spec) {
	t.Helper()
	for i := range s.Ranks {
		untilFile(t, s.Ranks[i].Output, "there")
	}
}

func compared(m *api.MemberStacks) api.Stacks {
	return stacks.Compare(stacks.Gang{Job: 1, Members: []stacks.Member{{Node: "n1", Stacks: m}}})
}

func untilLook(t *testing.T, c *Conn, number uint64) *api.MemberStacks {
	t.Helper()
	end := time.After(30 * time.Second)
	for {
		select {
		case a, ok := <-c.Answers():
			if !ok {
				t.Fatal("the shim has hung up")
			}
			if a.Look == number {
				return a.Stacks
			}
		case <-end:
			t.Fatal("no look within 30 s")
		}
	}
}

// A look on request names the rank that is elsewhere by its Python frames, several at a time are answered, nothing is written
// to logs, and the ranks run on.
func TestLook(t *testing.T) {
	tool.Need(t, "python3")
	s := testSpec(t, 4)
	c := startShim(t, s, waitingRanks)
	_ = c.Send(Command{Go: &Go{}})
	until(t, c, api.PhaseRunning)
	untilThere(t, s)
	_ = c.Send(Command{Look: 7}, Command{Look: 8})
	for _, n := range []uint64{7, 8} {
		got := compared(untilLook(t, c, n))
		if want := "rank 2 on n1 sleeps in pause (<string>), 3 others are in all_reduce (<string>)"; got.Text != want {
			t.Errorf("look %d: %q %+v", n, got.Text, got)
		}
	}
	if b, _ := os.ReadFile(s.Ranks[0].Output); strings.Contains(string(b), "====") {
		t.Errorf("log: %s", b)
	}
	_ = c.Send(Command{Stop: &api.Stop{Cause: api.CauseCancelled, Signal: "TERM", Grace: 20 * time.Second}})
	if st := until(t, c, api.PhaseStopped); st.Stacks != nil {
		t.Errorf("kept: %+v", st.Stacks)
	}
}

// What was seen before a stop for a stall, and shortly before the time limit, comes with the end, as the user's.
func TestStacksComeWithTheEnd(t *testing.T) {
	tool.Need(t, "python3")
	for _, cause := range []api.Cause{api.CauseStalled, api.CauseTimeout} {
		t.Run(string(cause), func(t *testing.T) {
			s := testSpec(t, 4)
			if os.Geteuid() == 0 {
				s = asNobody(t, 4)
			}
			if cause == api.CauseTimeout {
				s.TimeLimit = 4 * time.Second
			}
			c := startShim(t, s, waitingRanks)
			_ = c.Send(Command{Go: &Go{}})
			until(t, c, api.PhaseRunning)
			untilThere(t, s)
			if cause == api.CauseStalled {
				_ = c.Send(Command{Stacks: TakeStacks})
				_ = c.Send(Command{Stop: &api.Stop{Cause: cause, Signal: "TERM", Grace: 20 * time.Second, Dump: 10 * time.Second}})
			}
			st := until(t, c, api.PhaseStopped)
			if st.Stacks == nil {
				t.Fatal("nothing was kept")
			}
			got := compared(st.Stacks)
			if want := "rank 2 on n1 sleeps in pause (<string>), 3 others are in all_reduce (<string>)"; got.Text != want {
				t.Errorf("%q %+v", got.Text, got)
			}
		})
	}
}

// A rank whose every thread is stopped is seen to be, and is still read.
func TestLookAtStopped(t *testing.T) {
	tool.Need(t, "python3")
	s := testSpec(t, 3)
	c := startShim(t, s, "#!/bin/bash\nexec python3 -c '\nimport os, signal, threading\ndef all_reduce():\n    e = threading.Event()\n    print(\"there\", flush=True)\n    if os.environ[\"GANG_RANK\"] == \"1\": os.kill(os.getpid(), signal.SIGSTOP)\n    e.wait()\nall_reduce()'\n")
	_ = c.Send(Command{Go: &Go{}})
	until(t, c, api.PhaseRunning)
	untilThere(t, s)
	for end := time.Now().Add(20 * time.Second); ; {
		_ = c.Send(Command{Look: 1})
		got := compared(untilLook(t, c, 1))
		if got.Text == "rank 1 on n1 is stopped in all_reduce (<string>), 2 others are in all_reduce (<string>)" {
			return
		}
		if time.Now().After(end) {
			t.Fatal(got.Text)
		}
	}
}

// A program of a version that is not read here answers by faulthandler where it says that it does, and only where its words
// are its own.
func TestFaulthandlerAnswers(t *testing.T) {
	tool.Need(t, "python3")
	c := exec.Command("python3", "-c", "import faulthandler, signal, time\nfaulthandler.register(signal.SIGUSR1)\ndef pause():\n  print('there', flush=True)\n  time.sleep(1000)\npause()")
	c.Env = append(os.Environ(), stacksSignal+"=USR1")
	dir := t.TempDir()
	f, err := os.Create(dir + "/err")
	if err != nil {
		t.Fatal(err)
	}
	o, err := os.Create(dir + "/out")
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr, c.Stdout = f, o
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	untilFile(t, dir+"/out", "there")
	p := &leading{candidate: candidate{StackProcess: api.StackProcess{PID: c.Process.Pid}}, blind: true, python: true}
	p.main = []api.ThreadStack{{Does: api.DoesSleep}}
	l := &looker{spec: &Spec{}, all: []*leading{p}}
	if got := l.faulthandler(p, time.Now().Add(10*time.Second)); len(got) != 1 || !slices.Equal(got[0].Frames, []string{"pause (<string>)", "<module> (<string>)"}) {
		t.Error(got)
	}
	other := &leading{candidate: candidate{StackProcess: api.StackProcess{PID: os.Getpid()}}}
	l.all = append(l.all, other)
	if got := l.faulthandler(p, time.Now().Add(10*time.Second)); len(got) != 1 {
		t.Error(got)
	}
	l.all[1] = &leading{candidate: candidate{StackProcess: api.StackProcess{PID: c.Process.Pid}}}
	if got := l.faulthandler(p, time.Now().Add(time.Second)); got != nil {
		t.Error("the words of two in one file were believed")
	}
	// Without a handler the signal would end it.
	d := exec.Command("sleep", "1000")
	d.Env, d.Stderr = c.Env, f
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Process.Kill(); _ = d.Wait() })
	deaf := &leading{candidate: candidate{StackProcess: api.StackProcess{PID: d.Process.Pid}}}
	if got := l.faulthandler(deaf, time.Now().Add(time.Second)); got != nil || unix.Kill(d.Process.Pid, 0) != nil {
		t.Error(got)
	}
}

// py-spy is asked for what can't be read here.
func TestPySpyIsAsked(t *testing.T) {
	bin := t.TempDir()
	text := "#!/bin/sh\necho 'Thread 1 (idle): \"MainThread\"'\necho '    recv (distributed_c10d.py:12)'\n"
	if err := os.WriteFile(bin+"/py-spy", []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	p := &leading{candidate: candidate{StackProcess: api.StackProcess{PID: os.Getpid()}, exe: "python3.99"}, blind: true, python: true}
	p.main = []api.ThreadStack{{Does: api.DoesLock}, {Does: api.DoesLock}}
	l := &looker{spec: &Spec{Ranks: []RankSpec{{Env: []string{"PATH=" + bin + ":/usr/bin:/bin"}}}}, all: []*leading{p}}
	for end := time.Now().Add(20 * time.Second); ; { // a machine that is busy may take longer than a look waits
		l.ask()
		got := l.result()
		if slices.Equal(got.Groups[0].Threads[0].Frames, []string{"recv (distributed_c10d.py)"}) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%+v", got)
		}
	}
}
