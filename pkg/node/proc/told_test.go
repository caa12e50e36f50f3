package proc

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// told runs a shell script by [ForkExecTold] and gives its pid, its status and its output.
func told(t *testing.T, script string, env ...string) (int, syscall.WaitStatus, string) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	pid, err := ForkExecTold("/bin/sh", []string{"sh", "-c", script}, &syscall.ProcAttr{Dir: "/", Env: env,
		Files: []uintptr{0, out.Fd(), out.Fd()}, Sys: &syscall.SysProcAttr{Setsid: true}}, "MY_PID", nil)
	if err != nil {
		t.Fatal(err)
	}
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &ws, 0, nil); err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(out.Name())
	return pid, ws, string(b)
}

func TestForkExecTold(t *testing.T) {
	pid, ws, out := told(t, `echo "$MY_PID $$ $A"; ls -l /proc/$$/fd/1 >/dev/null; exit 7`, "MY_PID=12", "A=b")
	if want := fmt.Sprintf("%d %d b\n", pid, pid); out != want || ws.ExitStatus() != 7 {
		t.Errorf("%q, want %q; status %d", out, want, ws.ExitStatus())
	}
	// Nobody traces it any more, and its children are told as they are.
	_, _, out = told(t, `grep TracerPid /proc/$$/status; sh -c 'echo $MY_PID' | grep -c .`)
	if out != "TracerPid:\t0\n1\n" {
		t.Errorf("%q", out)
	}
	if _, err := ForkExecTold("/nonexistent", []string{"x"}, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{}}, "P", nil); err != syscall.ENOENT {
		t.Errorf("no program: %v", err)
	}
}

// Signals that come while the child is stopped at its start are not lost, and do not keep it.
func TestForkExecToldUnderSignals(t *testing.T) {
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			pids, _ := All()
			for _, pid := range pids {
				if s, ok := ReadStat(pid); ok && s.PPID == os.Getpid() {
					_ = unix.Kill(pid, unix.SIGCONT)
					_ = unix.Kill(pid, unix.SIGHUP)
					_ = unix.Kill(pid, unix.SIGKILL)
				}
			}
		}
	}()
	for range 50 {
		started := time.Now()
		_, ws, _ := told(t, "exec sleep 600")
		if !ws.Signaled() || time.Since(started) > time.Minute {
			t.Errorf("status %v after %s", ws, time.Since(started))
		}
	}
	close(stop)
	<-done
}

// A program that has rights of its own keeps them.
func TestForkExecToldSparesElevated(t *testing.T) {
	sh := filepath.Join(t.TempDir(), "sh")
	if out, err := exec.Command("cp", "/bin/sh", sh).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if elevated(sh) {
		t.Error("a plain program")
	}
	if err := os.Chmod(sh, 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	if !elevated(sh) {
		t.Error("a set-uid program")
	}
}

func BenchmarkForkExecTold(b *testing.B) {
	for name, start := range map[string]func(*syscall.ProcAttr) (int, error){
		"plain": func(a *syscall.ProcAttr) (int, error) { return syscall.ForkExec("/bin/true", []string{"true"}, a) },
		"told": func(a *syscall.ProcAttr) (int, error) {
			return ForkExecTold("/bin/true", []string{"true"}, a, "MY_PID", nil)
		},
	} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				pid, err := start(&syscall.ProcAttr{Sys: &syscall.SysProcAttr{}})
				if err != nil {
					b.Fatal(err)
				}
				var ws syscall.WaitStatus
				_, _ = syscall.Wait4(pid, &ws, 0, nil)
			}
		})
	}
}
