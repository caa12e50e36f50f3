package shim

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gangd/pkg/api"
	"gangd/pkg/node/proc"
)

// program is gshim, built once for all tests, or what GANG_TEST_GSHIM names: mutants are in a
// gshim of their own.
var program = os.Getenv("GANG_TEST_GSHIM")

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "gshim")
	if err != nil {
		panic(err)
	}
	if program == "" {
		program = filepath.Join(dir, "gshim")
		build := exec.Command("go", "build", "-o", program, "gangd/cmd/gshim")
		build.Env = append(os.Environ(), "CGO_ENABLED=0") // as make build does: with cgo not all threads of it give up privileges
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build gshim: %v\n%s", err, out)
			os.Exit(1)
		}
	}
	_ = os.Chmod(dir, 0o755)
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	for _, c := range proc.DetectAll() {
		_ = os.Remove(c.Dir)
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

var serial atomic.Int64

// kinds are the containments that this machine allows.
func kinds(t testing.TB) map[string]proc.Cgroups {
	out := proc.DetectAll()
	out[proc.Group] = proc.Cgroups{Kind: proc.Group}
	return out
}

var detect = sync.OnceValue(func() proc.Cgroups { return proc.Detect("") })

// testSpec is a member of n ranks in the best containment of the machine.
func testSpec(t testing.TB, n int) *Spec { return specIn(t, detect(), n) }

func specIn(t testing.TB, base proc.Cgroups, n int) *Spec {
	dir := t.TempDir()
	id := serial.Add(1)
	s := &Spec{MemberKey: api.MemberKey{Job: id, Epoch: 1}, Node: "n1", Dir: filepath.Join(dir, "m"), WorkDir: dir, Umask: 0o022,
		OpenMode: "append", StopSignal: "TERM", Grace: 15 * time.Second}
	if base.Dir != "" {
		_ = os.Mkdir(base.Dir, 0o755)
	}
	s.SetPlace(base.Place(fmt.Sprintf("test.%d.%d", os.Getpid(), id), fmt.Sprintf("GANG_MEMBER=%d.1.n1.%d", id, os.Getpid())))
	for i := range n {
		s.Ranks = append(s.Ranks, RankSpec{Rank: i, Env: []string{"PATH=" + os.Getenv("PATH"), s.Marker, "GANG_RANK=" + strconv.Itoa(i)},
			Output: filepath.Join(dir, fmt.Sprintf("out.%d", i))})
	}
	t.Cleanup(func() {
		if err := proc.KillContainment(s.Place(), 10*time.Second); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	return s
}

// startShim starts and waits for ready.
func startShim(t testing.TB, s *Spec, script string) *Conn {
	t.Helper()
	c, err := start(program, s, []byte(script))
	return started(t, c, err)
}

// started waits for a shim to be ready, and ends it with the test.
func started(t testing.TB, c *Conn, err error) *Conn {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endShim(c) })
	if st := until(t, c, api.PhaseReady, api.PhaseRefused); st.Phase != api.PhaseReady {
		t.Fatalf("refused: %+v", st.Refusal)
	}
	return c
}

// endShim leaves no shim behind, whatever the test did.
func endShim(c *Conn) {
	_ = c.Send(Command{Stop: &api.Stop{}})
	_ = c.Send(Command{Bye: true})
	timeout := time.After(10 * time.Second)
	for {
		select {
		case _, ok := <-c.Answers():
			if !ok {
				_ = c.Close()
				return
			}
			_ = c.Send(Command{Bye: true})
		case <-timeout:
			_ = c.Close()
			return
		}
	}
}

// until reads answers up to a state of one of the phases.
func until(t testing.TB, c *Conn, phases ...api.MemberPhase) *State {
	t.Helper()
	return untilState(t, c, func(s *State) bool {
		for _, p := range phases {
			if s.Phase == p {
				return true
			}
		}
		return false
	})
}

func untilState(t testing.TB, c *Conn, ok func(*State) bool) *State {
	t.Helper()
	timeout := time.After(30 * time.Second)
	for {
		select {
		case a, open := <-c.Answers():
			if !open {
				log, _ := os.ReadFile(filepath.Join(c.Dir, LogFile))
				t.Fatalf("the connection ended; shim.log: %s", log)
			}
			if a.State != nil && ok(a.State) {
				return a.State
			}
		case <-timeout:
			t.Fatal("no such state within 30 s")
		}
	}
}

func output(t testing.TB, s *Spec, rank int) string {
	b, err := os.ReadFile(s.Ranks[rank].Output)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// start makes the member's directory, writes spec and script, and starts the program at
// shimPath, for this member alone, in a session of its own. The first answer is the state ready or refused. The
// shim's last words, should it crash, go to the caller's standard error; it
// stays in the cgroup of the caller: under systemd the daemon's unit needs
// KillMode=process. After an error the directory may be there.
func start(shimPath string, spec *Spec, script []byte) (*Conn, error) {
	if err := makeDir(spec, script); err != nil {
		return nil, err
	}
	file, pid, err := launch(shimPath, spec.Dir)
	if err != nil {
		return nil, err
	}
	return newConn(spec.Dir, file, pid), nil
}
