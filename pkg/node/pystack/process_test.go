package pystack

import (
	"bufio"
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const program = `
import sys, threading, time
def pause(): time.sleep(1000)
def überall_日(): pause()
def inner(n):
    if n: return inner(n - 1)
    print("there", flush=True); pause()
class Work:
    def outer(self): inner(3)
def gen():
    überall_日()
    yield 1
threading.Thread(target=lambda: list(gen()), daemon=True).start()
time.sleep(0.1)
Work().outer()
`

// pythons are the interpreters of this machine, by version: of a checkout of pyenv too.
func pythons(t *testing.T) (out []string) {
	t.Helper()
	home, _ := os.UserHomeDir()
	all, _ := filepath.Glob(filepath.Join(cmp.Or(os.Getenv("PYENV_ROOT"), filepath.Join(home, ".pyenv")), "versions/3.*/bin/python3.[0-9]*"))
	if _, err := os.Stat("/usr/bin/python3"); err == nil {
		all = append(all, "/usr/bin/python3")
	}
	for _, p := range all {
		if base := filepath.Base(p); !strings.Contains(base, "-") && !strings.HasSuffix(base, "m") {
			out = append(out, p)
		}
	}
	return out
}

func start(t *testing.T, python string) int {
	t.Helper()
	c := exec.Command(python, "-c", program)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(line, err)
	}
	return c.Process.Pid
}

// TestVersions: main thread and others of each Python that is here, in the program and in libpython.
func TestVersions(t *testing.T) {
	all := pythons(t)
	if len(all) == 0 {
		t.Skip("python3 is not here")
	}
	for _, python := range all {
		t.Run(python, func(t *testing.T) {
			t.Parallel()
			pid := start(t, python)
			p, err := Find(pid)
			if minor, _ := fmt.Sscanf(filepath.Base(python), "python3.%d", new(int)); minor == 1 && slices.Contains([]string{"python3.6", "python3.7"}, filepath.Base(python)) {
				if err == nil {
					t.Fatal("a version that is not known was read")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time from what was kept
				threads, err := p.Threads()
				for end := time.Now().Add(10 * time.Second); time.Now().Before(end) && (err != nil || !strings.HasPrefix(names(threads[0]), "pause")); time.Sleep(time.Millisecond) {
					threads, err = p.Threads() // it says that it is there a moment before it is
				}
				if err != nil || len(threads) != 2 {
					t.Fatal(threads, err)
				}
				if got := names(threads[0]); !threads[0].Main || got != "pause inner inner inner inner outer <module>" {
					t.Errorf("main: %v %s", threads[0], got)
				}
				if got := names(threads[1]); threads[1].Main || !strings.HasPrefix(got, "pause überall_日 gen <lambda> run _bootstrap_inner") {
					t.Errorf("the other: %v %s", threads[1], got)
				}
			}
		})
	}
}

func names(t Thread) string {
	var out []string
	for _, f := range t.Frames {
		out = append(out, f.Function)
	}
	return strings.Join(out, " ")
}

func TestNoPython(t *testing.T) {
	c := exec.Command("sleep", "100")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	if p, err := Find(c.Process.Pid); err == nil {
		t.Error(p)
	}
	if p, err := Find(1 << 30); err == nil {
		t.Error(p)
	}
}

// noise is memory that answers anything: pointers that mostly lead to more of it.
type noise struct {
	rng   *rand.Rand
	reads int
}

func (n *noise) Read(p []byte, _ uint64) bool {
	n.reads++
	for i := range p {
		p[i] = byte(n.rng.Uint32())
	}
	if len(p) == 5 && n.rng.IntN(2) == 0 {
		copy(p, "code\x00")
	}
	return n.rng.IntN(50) > 0
}

// TestAnyMemory: a process that means ill costs a bounded number of reads, and nothing of it is believed that is too long.
func TestAnyMemory(t *testing.T) {
	for seed := range uint64(200) {
		for v, l := range layouts {
			m := &noise{rng: rand.New(rand.NewPCG(seed, uint64(v)))}
			r := reader{memory: m, l: l, left: 5000, names: map[uint64]Frame{}}
			threads, _ := r.threads(4096)
			if m.reads > 5000 || len(threads) > mostThreads {
				t.Fatal(v, seed, m.reads, len(threads))
			}
			for _, th := range threads {
				if len(th.Frames) > mostFrames {
					t.Fatal(len(th.Frames))
				}
			}
		}
	}
}

// TestCircle: frames that lead to themselves end.
func TestCircle(t *testing.T) {
	r := reader{memory: circle{}, l: layouts[11], left: mostReads, names: map[uint64]Frame{}}
	_, _ = r.threads(4096)
	if r.left == mostReads {
		t.Error("nothing was read")
	}
}

type circle struct{}

func (circle) Read(p []byte, _ uint64) bool {
	for i := range p {
		p[i] = 0
	}
	p[1] = 16
	return true
}
