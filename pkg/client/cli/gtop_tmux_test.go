package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/lab/sitetest"
	"gangd/pkg/lab/tool"
)

// terminal is gtop in tmux, before the small site.
type terminal struct {
	t      *testing.T
	s      *sitetest.Site
	dir    string
	sock   string
	golden map[string]string // what is drawn, by the name of the screen
	end    string            // a file that is there when gtop has ended
}

func topInTmux(t *testing.T, size string, env ...string) *terminal {
	t.Helper()
	tool.Need(t, "tmux")
	x := &terminal{t: t, s: sitetest.Small(t), dir: t.TempDir(), sock: filepath.Join(t.TempDir(), "s"), end: filepath.Join(t.TempDir(), "end")}
	x.s.Serve(x.dir)
	x.sized(size)
	cols, rows, _ := strings.Cut(size, "x")
	cmd := x.command("new-session", "-d", "-x", cols, "-y", rows, "stty -g >"+x.end+".before; echo before; gtop; stty -g >"+x.end+"; echo after; sleep 600")
	cmd.Env = append(append(os.Environ(), "GANG_DIR="+x.dir, "TERM=xterm", "TMUX=", "LC_ALL=C.UTF-8"), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	t.Cleanup(func() { _ = x.command("kill-server").Run() })
	return x
}

// sized reads what is drawn at a size.
func (x *terminal) sized(size string) {
	x.t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "golden", "gtop-"+size+".txt"))
	if err != nil {
		x.t.Fatal(err)
	}
	x.golden = map[string]string{}
	for part := range strings.SplitSeq("\n"+string(b), "\n== ") {
		name, text, _ := strings.Cut(part, "\n")
		x.golden[name] = strings.TrimRight(text, "\n")
	}
}

func (x *terminal) command(args ...string) *exec.Cmd {
	return exec.Command("tmux", append([]string{"-S", x.sock}, args...)...)
}

func (x *terminal) tmux(args ...string) string {
	x.t.Helper()
	out, err := x.command(args...).CombinedOutput()
	if err != nil {
		x.t.Fatalf("tmux %v: %v %s", args, err, out)
	}
	return string(out)
}

func (x *terminal) keys(keys ...string) { x.tmux(append([]string{"send-keys"}, keys...)...) }

func (x *terminal) screen() string {
	lines := strings.Split(x.tmux("capture-pane", "-p"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// until waits for something of the screen.
func (x *terminal) until(what string, ok func(screen string) bool) {
	x.t.Helper()
	text := ""
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if text = x.screen(); ok(text) {
			return
		}
	}
	x.t.Fatalf("the screen is not %s:\n%s", what, text)
}

// is waits until the screen is that of this name.
func (x *terminal) is(name string) {
	x.t.Helper()
	x.until(name+":\n"+x.golden[name]+"\n-- but", func(text string) bool { return text == x.golden[name] })
}

func (x *terminal) has(what string) {
	x.t.Helper()
	x.until("one with "+what, func(text string) bool { return strings.Contains(text, what) })
}

// at waits until a job is the selected one.
func (x *terminal) at(job string) {
	x.t.Helper()
	x.has("\n>" + job + " ")
}

func (x *terminal) asked(what string) {
	x.t.Helper()
	x.until("behind a call "+what, func(string) bool {
		return slices.ContainsFunc(x.s.Asked(), func(a string) bool { return strings.Contains(a, what) })
	})
}

// Every key, at the smallest size and a large one: what tmux shows is what was drawn, in the golden files of
// TestTopScreens.
func TestTopInTmux(t *testing.T) {
	for _, size := range []string{"80x24", "200x50"} {
		t.Run(size, func(t *testing.T) {
			x := topInTmux(t, size, "NO_COLOR=1")
			x.is("queue")
			for _, k := range [][2]string{{"j", "20_1"}, {"Down", "20_0"}, {"k", "20_1"}, {"Up", "12"}, {"NPage", "20_7"}, {"PPage", "12"}, {"Space", "20_7"}, {"g", "12"}, {"G", "20_7"}, {"Home", "12"}, {"End", "20_7"}, {"g", "12"}, {"j", "20_1"}, {"j", "20_0"}, {"j", "13"}} {
				x.keys(k[0])
				x.at(k[1])
			}
			x.keys("w")
			x.is("why")
			x.keys("Escape", "h")
			x.is("held")
			x.keys("h")
			x.has("release job 13: done")
			x.asked("POST /v1/release")
			x.keys("g")
			x.is("queue")
			x.keys("e")
			x.is("ended")
			x.keys("e", "m", "/", "t", "r", "Enter")
			x.has("no jobs, matching tr, mine") // nobody here is ada
			x.keys("m", "/", "BSpace", "BSpace", "g", "r", "a", "c")
			x.is("filter")
			x.keys("Escape")
			x.at("14")
			x.keys("g", "n")
			x.is("cards")
			x.keys("Escape", "g")
			x.at("12")
			x.keys("Enter")
			x.is("job")
			x.keys("Escape", "l")
			lines := func(text string) []string { return slices.Sorted(strings.SplitSeq(text, "\n")) }
			x.until("log, its ranks in any order", func(text string) bool { return slices.Equal(lines(text), lines(x.golden["log"])) })
			x.keys("?")
			x.is("keys")
			x.keys("Escape", "g", "c")
			x.is("ask")
			x.keys("n")
			x.is("queue")
			if err := os.WriteFile(strings.TrimSpace(x.tmux("display-message", "-p", "#{pane_tty}")), []byte("\x1b[5;5Hsomebody writes"), 0); err != nil {
				t.Fatal(err)
			}
			x.has("somebody writes")
			x.keys("C-l")
			x.is("queue")
			x.s.Die()
			x.is("lost")
			x.s.Serve(x.dir)
			x.is("queue")
			x.keys("c", "y")
			x.has("cancel job 12: done")
			x.asked("POST /v1/cancel")
			x.s.End(12, sitetest.Stopped)
			x.until("one without the ended job", func(text string) bool { return !strings.Contains(text, "train-llm") })
			x.keys("q")
			x.ended()
		})
	}
}

// ended waits until gtop has, and holds that the terminal is as it was.
func (x *terminal) ended() {
	x.t.Helper()
	x.has("after")
	if text := x.screen(); !strings.HasPrefix(text, "before\nafter") || x.tmux("display-message", "-p", "#{alternate_on} #{cursor_flag}") != "0 1\n" {
		x.t.Errorf("the screen is not as it was:\n%s", text)
	}
	was, err := os.ReadFile(x.end + ".before")
	is, err2 := os.ReadFile(x.end)
	if err != nil || err2 != nil || string(was) != string(is) {
		x.t.Errorf("the terminal was set to %q, and is to %q: %v", was, is, errors.Join(err, err2))
	}
}

// A terminal that becomes larger is filled, colours are there unless they are not wanted, and ctrl-c ends, too.
func TestTopOnAnotherTerminal(t *testing.T) {
	x := topInTmux(t, "80x24", "NO_COLOR=")
	x.is("queue")
	if text := x.tmux("capture-pane", "-p", "-e"); !strings.Contains(text, "\x1b[") {
		t.Errorf("no colours:\n%q", text)
	}
	x.tmux("resize-window", "-x", "200", "-y", "50")
	x.sized("200x50")
	x.is("queue")
	x.keys("C-c")
	x.ended()

	x = topInTmux(t, "80x24", "NO_COLOR=1")
	x.is("queue")
	if text := x.tmux("capture-pane", "-p", "-e"); strings.Contains(text, "\x1b") {
		t.Errorf("colours:\n%q", text)
	}
}

// A controller that is far away, or says nothing: what is known is shown by every key that asks nothing, at once.
func TestTopKeysDoNotWait(t *testing.T) {
	x := topInTmux(t, "80x24", "NO_COLOR=1")
	x.is("queue")
	thaw := x.s.Freeze()
	x.keys("g", "j", "j", "j")
	x.at("13")
	x.keys("w")
	x.has("asking")
	x.keys("n")
	x.is("cards")
	x.keys("?")
	x.is("keys")
	x.keys("Escape", "g", "c")
	x.is("ask")
	x.keys("n", "e")
	x.is("ended")
	x.keys("e", "g", "j", "j", "j", "w")
	x.has("asking")
	thaw()
	x.is("why")
}
