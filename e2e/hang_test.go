package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gangd/e2e/trial"
	"gangd/pkg/api"
)

// spoken is what a program has written so far.
type spoken struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *spoken) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *spoken) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// attended is a `gangd dev` in the foreground, which watches its daemons.
func attended(t *testing.T, args ...string) (*cluster, *spoken) {
	t.Helper()
	c, out := unstarted(t, trial.Bin(t)), &spoken{}
	cmd := exec.Command(filepath.Join(c.bin, "gangd"), append([]string{"dev", "--isolate=false", "--dir=" + c.dir}, args...)...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("gangd dev: %v\n%s", err, out)
		}
	})
	c.until("the cluster is up", func() bool { return strings.Contains(out.String(), "export GANG_DIR=") })
	return c, out
}

// A daemon that hangs, gangd as well as gnoded, is replaced before the lease ends: no rank hears
// of it. GANG_E2E_CHAOS has it hang for three leases of 10 s.
func TestAHungDaemonCostsNoRank(t *testing.T) {
	t.Parallel()
	lease, enough := "3s", 4*time.Second // longer than the lease, from the moment it hung
	if os.Getenv("GANG_E2E_CHAOS") != "" {
		lease, enough = "10s", 30*time.Second
	}
	for name, silent := range map[string]string{"gangd": "gangd gave no sign of life for ", "n1": "n1 gave no sign of life for "} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, out := attended(t, "--nodes=2", "--gpus=1x1G", "--set", "lease="+lease, "--set", "heartbeat=200ms", "--set", "grace=1s")
			id := c.submit("--size=2", "--ranks-per-node=1", c.script("b.sh", "#!/bin/bash\n#GANG --output=/dev/null\n"+
				"trap 'echo told >> told.$GANG_RANK' TERM\nexec {never}<> <(:)\nwhile :; do read -t 0.2 -u $never; done\n"))
			c.wait(id, api.JobRunning)
			hung := time.Now()
			if err := syscall.Kill(c.pid(name), syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			c.until(name+" is replaced", func() bool { return strings.Contains(out.String(), silent) })
			c.until("the nodes are back", func() bool {
				_, _, code := c.run("gctl", "ping")
				if code != 0 {
					return false
				}
				for _, n := range c.nodes() {
					if n.State != api.NodeUp || n.Name == name && n.LastSeen.Before(hung) {
						return false
					}
				}
				return true
			})
			time.Sleep(time.Until(hung.Add(enough)))
			j := c.job(id)
			if j.State != api.JobRunning || j.Epoch != 1 {
				t.Errorf("the gang is %s in epoch %d, want RUNNING in 1\n%s", j.State, j.Epoch, c.story(id))
			}
			if told, _ := filepath.Glob(filepath.Join(c.tmp, "told.*")); len(told) > 0 {
				t.Errorf("ranks were told to end: %v\n%s", told, c.story(id))
			}
		})
	}
}
