package slurmlab

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// patience is for a daemon to answer; all are up within 3 s on two quiet cores.
	patience = 60 * time.Second
	// farewell is for a daemon to end after TERM: slurmctld saves its state.
	farewell = 15 * time.Second
	look     = 100 * time.Millisecond
)

// Slurm is a running cluster.
type Slurm struct {
	o       Options
	daemons []*exec.Cmd
	ports   []int
}

// Missing says what keeps a Slurm from being run here; empty: nothing.
func Missing() string {
	for _, p := range []string{"slurmctld", "slurmd", "sbatch", "squeue", "srun", "munged"} {
		if _, err := exec.LookPath(p); err != nil {
			return "not installed: " + p + " (apt-get install slurmctld slurmd slurm-client munge)"
		}
	}
	if os.Getuid() != 0 {
		return "Slurm's daemons need root"
	}
	return ""
}

// MissingAccounting says what [Options.Accounting] lacks here; empty: nothing.
func MissingAccounting() string {
	for _, p := range []string{"slurmdbd", "mariadbd", "mariadb-install-db", "mariadb"} {
		if _, err := exec.LookPath(p); err != nil {
			return "not installed: " + p + " (apt-get install slurmdbd mariadb-server)"
		}
	}
	return ""
}

// Start brings a cluster up and returns when every node is idle.
func Start(ctx context.Context, o Options) (*Slurm, error) {
	s := &Slurm{o: o}
	if err := s.start(ctx); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

func (s *Slurm) start(ctx context.Context) error {
	if err := s.lay(); err != nil {
		return err
	}
	d := s.o.Dir
	if err := s.daemon("munged", "--foreground", "--force", "--key-file="+d+"/munge.key", "--socket="+d+"/munge.sock",
		"--pid-file="+d+"/munged.pid", "--log-file="+d+"/munged.log", "--seed-file="+d+"/munged.seed"); err != nil {
		return err
	}
	if err := until(ctx, "munged's socket", func() bool { _, err := os.Stat(d + "/munge.sock"); return err == nil }); err != nil {
		return err
	}
	if s.o.Accounting {
		if err := s.account(ctx); err != nil {
			return err
		}
	}
	if err := s.daemon("slurmctld", "-D", "-c"); err != nil {
		return err
	}
	for i := 1; i <= s.o.Nodes; i++ {
		if err := s.daemon("slurmd", "-D", "-N", fmt.Sprintf("n%d", i)); err != nil {
			return err
		}
	}
	want := fmt.Sprintf("idle %d", s.o.Nodes)
	return until(ctx, "its idle nodes", func() bool { return s.says(want, "sinfo", "-h", "-o", "%t %D") })
}

// lay makes the directory with all that the daemons read.
func (s *Slurm) lay() error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	host, _, _ = strings.Cut(host, ".")
	if s.ports, err = freePorts(s.o.Nodes + 3); err != nil {
		return err
	}
	d := s.o.Dir
	for _, sub := range append([]string{"state"}, s.spools()...) {
		if err := os.MkdirAll(filepath.Join(d, sub), 0o755); err != nil {
			return err
		}
	}
	key := make([]byte, 1024)
	if _, err := rand.Read(key); err != nil {
		return err
	}
	files := map[string]string{"slurm.conf": slurmConf(s.o, host, s.ports), "munge.key": string(key), "gres.conf": gresConf(s.o),
		"slurmdbd.conf": fmt.Sprintf(dbdConf, d, s.ports[s.o.Nodes+1], s.ports[s.o.Nodes+2])}
	for name, text := range files {
		mode := os.FileMode(0o600) // munged and slurmdbd refuse files that others may read
		if name == "slurm.conf" || name == "gres.conf" {
			mode = 0o644
		}
		if err := os.WriteFile(filepath.Join(d, name), []byte(text), mode); err != nil {
			return err
		}
	}
	return s.cards()
}

// cards makes what slurmd takes for the cards' devices: it wants device files, and opens
// none. They are /dev/null's.
func (s *Slurm) cards() error {
	for i := range s.o.GPUs {
		if err := unix.Mknod(filepath.Join(s.o.Dir, fmt.Sprintf("nvidia%d", i)), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))); err != nil {
			return err
		}
	}
	return nil
}

func (s *Slurm) spools() []string {
	var out []string
	for i := 1; i <= s.o.Nodes; i++ {
		out = append(out, fmt.Sprintf("spool.n%d", i))
	}
	return out
}

// freePorts finds ports by taking and letting them go: another process may be quicker, and
// then a daemon does not come up and Start says so.
func freePorts(n int) ([]int, error) {
	var held []net.Listener
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	var out []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		held = append(held, l)
		out = append(out, l.Addr().(*net.TCPAddr).Port)
	}
	return out, nil
}

// Env is what a command of this Slurm needs in its environment.
func (s *Slurm) Env() []string { return []string{"SLURM_CONF=" + s.o.Dir + "/slurm.conf"} }

func (s *Slurm) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), s.Env()...)
	return cmd
}

// says reports whether a command succeeds and prints this one line.
func (s *Slurm) says(want, name string, args ...string) bool {
	out, err := s.command(name, args...).Output()
	return err == nil && strings.TrimSpace(string(out)) == want
}

func (s *Slurm) daemon(name string, args ...string) error {
	cmd := s.command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.daemons = append(s.daemons, cmd)
	return nil
}

// Stop ends the daemons, and with the nodes' what runs on them.
func (s *Slurm) Stop() {
	if len(s.daemons) > 0 {
		_ = s.command("scancel", "-u", "root").Run()
	}
	for i := len(s.daemons) - 1; i >= 0; i-- {
		p := s.daemons[i]
		_ = p.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(farewell, func() { _ = p.Process.Kill() })
		_ = p.Wait()
		kill.Stop()
	}
	s.daemons = nil
}

// until waits for a state of a daemon, which can only be asked for.
func until(ctx context.Context, what string, ok func() bool) error {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(look) {
		if ok() {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return errors.New("slurm: " + what + " were not there within " + patience.String())
}
