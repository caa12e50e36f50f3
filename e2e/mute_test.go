package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gangd/pkg/api"
)

// typed is a command that somebody runs, and what came of it up to now.
type typed struct {
	cmd *exec.Cmd
	mu  sync.Mutex
	out bytes.Buffer
}

func (x *typed) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.out.Write(p)
}

func (x *typed) text() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.out.String()
}

// Who waits at a terminal sees for what, in every command that waits; nothing of it is in a pipe, or where it is not wanted.
func TestWaitingIsNeverMute(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=2", "--gpus=1x80G")
	free := filepath.Join(c.tmp, "free")
	hold := fmt.Sprintf("while [ ! -e %s ]; do sleep 0.05; done", free)
	for _, node := range []string{"n1", "n2"} {
		c.wait(c.submit("-w", node, "-o", "/dev/null", "--gpus-per-rank=1", "--wrap", hold), api.JobRunning)
	}
	trace := c.script("trace.csv", "job_id,user,submit_s,duration_s,gpus\n1,ada,0,60,1\n2,ada,0,60,1\n")
	kept := filepath.Join(c.tmp, "kept")
	for _, of := range []string{"", "0", "1"} { // one is copied by one
		c.must("gangd", "backup", kept+of)
	}
	job := "-o /dev/null -w n1 --gpus-per-rank=1 --wrap 'sleep 1'"
	commands := []struct{ line, want string }{
		{"gsubmit --wait " + job, " in the queue"},
		{"gsubmit -f " + job, " in the queue"},
		{"grun -n1 --gpus=1 -w n1 true", " in the queue"},
		{"gctl node drain n2 --reason=fan --wait", "n2: 1 job runs"},
		{"gangsim --cluster=1x1 " + trace, "jobs over ["},
		{"gangd store copy --from=" + kept + " --to=" + filepath.Join(c.tmp, "copy"), "rows copied and compared"},
	}
	begin := func(line string, terminal bool) *typed {
		x := &typed{cmd: exec.Command("sh", "-c", line)}
		if terminal {
			x.cmd = exec.Command("script", "-qec", line, "/dev/null")
		}
		x.cmd.Dir, x.cmd.Stdout, x.cmd.Stderr = c.tmp, x, x
		x.cmd.Env = append(os.Environ(), "GANG_DIR="+c.dir, "PATH="+c.bin+":"+os.Getenv("PATH"), "TERM=xterm")
		if err := x.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return x
	}
	var shown, mute []*typed
	for i, x := range commands {
		shown = append(shown, begin(x.line, true))
		for k, line := range []string{strings.Replace(x.line, " ", " --no-progress ", 1), x.line} {
			if i >= 3 {
				line = strings.NewReplacer("/copy", fmt.Sprint("/copy", k), "/kept", fmt.Sprint("/kept", k)).Replace(x.line)
				if k == 0 {
					line += " --no-progress"
				}
			}
			mute = append(mute, begin(line, k == 0))
		}
	}
	for i, x := range shown {
		c.until(commands[i].line+" says "+commands[i].want, func() bool { return strings.Contains(x.text(), "\r") && strings.Contains(x.text(), commands[i].want) })
	}
	if err := os.WriteFile(free, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range append(shown, mute...) {
		if err := x.cmd.Wait(); err != nil {
			t.Errorf("%q: %v\n%s", x.cmd.Args, err, x.text())
		}
	}
	for i, x := range shown {
		if text := x.text(); strings.LastIndex(text, "\r\x1b[K") < strings.LastIndex(text, commands[i].want) {
			t.Errorf("%s leaves its line:\n%q", commands[i].line, text)
		}
	}
	for i, x := range mute {
		if text := x.text(); strings.Contains(text, "\x1b[K") || strings.Contains(text, commands[i/2].want) {
			t.Errorf("%q says\n%q", x.cmd.Args, text)
		}
	}
}
