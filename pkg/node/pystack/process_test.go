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
	"strconv"
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
				threads, err := p.Threads(nil)
				for end := time.Now().Add(10 * time.Second); time.Now().Before(end) && (err != nil || !strings.HasPrefix(names(threads[0]), "pause")); time.Sleep(time.Millisecond) {
					threads, err = p.Threads(nil) // it says that it is there a moment before it is
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
			r := reader{memory: m, l: l, left: 5000, codes: map[uint64]*code{}, asked: func(string) bool { return true }}
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
	r := reader{memory: circle{}, l: layouts[11], left: mostReads, codes: map[uint64]*code{}}
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

// programOf is a program of calls within calls, drawn from how functions are written: it prints the lines that Python itself says its
// calls are at, the innermost first, and waits there. Each function f is given a tag one larger than its caller's.
func programOf(rng *rand.Rand) (text string, depth int, first int64) {
	var b strings.Builder
	b.WriteString("import time, traceback\n" +
		"def lines(): return \" \".join(str(f.lineno) for f in reversed(traceback.extract_stack()[:-1]))\n" +
		"def f0(tag, peer, name=\"x\"): print(lines(), flush=True); time.sleep(1000)\n")
	depth = 1 + rng.IntN(12)
	for i := range depth {
		fmt.Fprintf(&b, "def f%d(tag, peer, name=\"x\"):\n", i+1)
		indent := "    "
		say := func(format string, args ...any) { b.WriteString(indent + fmt.Sprintf(format, args...) + "\n") }
		for range rng.IntN(6) {
			switch rng.IntN(7) {
			case 0:
				b.WriteString(strings.Repeat("\n", rng.IntN(300)))
			case 1:
				for k := range rng.IntN(120) { // more instructions than one entry of a table is about
					say("v%d = peer + %d if peer else [%d, name]", k, k, k)
				}
			case 2:
				say("for k in range(1):")
				indent += "    "
			case 3:
				say("try: peer += 1")
				say("finally: peer -= 1")
			case 4:
				say("while peer > 10**9: peer -= 1")
				say("if peer < 0:")
				say("    name = name + name; peer = 0")
			case 5:
				say("both = [k for k in (lambda x: [x,\n%s    x + 1])(peer)]", indent)
			case 6:
				say("with open(\"/dev/null\"):")
				indent += "    "
			}
		}
		switch rng.IntN(3) {
		case 0:
			say("f%d(tag + 1, peer)", i)
		case 1:
			say("f%d(\n\n%s  tag + 1,\n%s  peer,\n%s)", i, indent, indent, indent)
		case 2:
			say("x = (1,\n%s  2, f%d(tag + 1, [peer][\n%s 0]), 3)", indent, i, indent)
		}
	}
	first = []int64{-int64(depth) / 2, 0, 7, 1 << 30, 1<<30 - 3, 1 << 40, -1 << 31, -1 << 45}[rng.IntN(8)]
	fmt.Fprintf(&b, "f%d(%d, 3)\n", depth, first)
	return b.String(), depth, first
}

// TestLines: calls are at the lines that Python says, and what they were given as a tag is read, of each version.
func TestLines(t *testing.T) {
	all := pythons(t)
	if len(all) == 0 {
		t.Skip("python3 is not here")
	}
	seed := uint64(time.Now().UnixNano())
	for _, python := range all {
		if slices.Contains([]string{"python3.6", "python3.7"}, filepath.Base(python)) {
			continue
		}
		t.Run(python, func(t *testing.T) {
			t.Parallel()
			for k := range uint64(3) {
				rng := rand.New(rand.NewPCG(seed, k))
				text, depth, tag := programOf(rng)
				file := filepath.Join(t.TempDir(), "drawn.py")
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				pid, want := startAt(t, python, file)
				p, err := Find(pid)
				if err != nil {
					t.Fatal(err)
				}
				var got string
				for end := time.Now().Add(10 * time.Second); got != want && time.Now().Before(end); time.Sleep(time.Millisecond) {
					threads, err := p.Threads(func(name string) bool { return name == "tag" })
					if err != nil {
						continue
					}
					var lines []string
					for i, f := range threads[0].Frames {
						lines = append(lines, strconv.Itoa(f.Line))
						if i > depth { // of a module
							continue
						}
						if wantTag := []Value{{"tag", tag + int64(depth-i)}}; !slices.Equal(f.Values, wantTag) {
							t.Fatalf("seed %d %d: call %d: %v, want %v\n%s", seed, k, i, f.Values, wantTag, text)
						}
					}
					got = strings.Join(lines, " ")
				}
				if got != want {
					t.Errorf("seed %d %d: lines %s, want %s\n%s", seed, k, got, want, text)
				}
			}
		})
	}
}

// TestOtherValues: what is no number, or too large for one, has no value.
func TestOtherValues(t *testing.T) {
	for _, python := range pythons(t) {
		if slices.Contains([]string{"python3.6", "python3.7"}, filepath.Base(python)) {
			continue
		}
		t.Run(python, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "values.py")
			text := "import time\ndef f(tag, a_tag=True, b_tag='x', c_tag=2**70, d_tag=None, e_tag=1.5, f_tag=2):\n" +
				"  inner = lambda: f_tag\n  print('there', flush=True); time.sleep(1000)\nf(5)\n"
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			pid, _ := startAt(t, python, file)
			p, err := Find(pid)
			if err != nil {
				t.Fatal(err)
			}
			threads, err := p.Threads(func(string) bool { return true })
			if err != nil || len(threads[0].Frames) != 2 || !slices.Equal(threads[0].Frames[0].Values, []Value{{"tag", 5}}) {
				t.Fatal(threads, err)
			}
		})
	}
}

// startAt starts a program and gives the first line that it prints.
func startAt(t *testing.T, python, file string) (pid int, line string) {
	t.Helper()
	c := exec.Command(python, file)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	line, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(line, err)
	}
	return c.Process.Pid, strings.TrimSpace(line)
}
