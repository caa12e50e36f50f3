package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// slurmSystem is a Slurm of four nodes on this machine, as root, with its own munge key,
// tuned for latency: no batch delay, no minimum scheduling interval.
type slurmSystem struct {
	dir     string
	daemons []*exec.Cmd
}

const slurmConf = `ClusterName=bench
SlurmctldHost=%[1]s(127.0.0.1)
SlurmctldPort=17817
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=%[2]s/munge.sock
StateSaveLocation=%[2]s/state
SlurmdSpoolDir=%[2]s/spool.%%n
SlurmctldPidFile=%[2]s/ctld.pid
SlurmdPidFile=%[2]s/d.%%n.pid
SlurmctldLogFile=%[2]s/ctld.log
SlurmdLogFile=%[2]s/d.%%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MaxArraySize=20000
MaxJobCount=50000
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
NodeName=n[1-4] NodeHostname=%[1]s NodeAddr=127.0.0.1 Port=[17821-17824] CPUs=8 RealMemory=2000 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
`

// slurmMissing says what keeps a Slurm from being run here; empty: nothing.
func slurmMissing() string {
	for _, p := range []string{"slurmctld", "slurmd", "sbatch", "squeue", "srun", "munged"} {
		if _, err := exec.LookPath(p); err != nil {
			return p + " is not installed (apt install slurmctld slurmd slurm-client munge)"
		}
	}
	if os.Getuid() != 0 {
		return "its daemons need root"
	}
	return ""
}

func (s *slurmSystem) name() string { return "slurm" }

func (s *slurmSystem) env() []string { return []string{"SLURM_CONF=" + s.dir + "/slurm.conf"} }

func (s *slurmSystem) start(ctx context.Context) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	host, _, _ = strings.Cut(host, ".")
	key := make([]byte, 1024)
	if _, err := rand.Read(key); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(s.dir, "state"), 0o755); err != nil {
		return err
	}
	for i := 1; i <= 4; i++ {
		if err := os.Mkdir(fmt.Sprintf("%s/spool.n%d", s.dir, i), 0o755); err != nil {
			return err
		}
	}
	for path, data := range map[string][]byte{"slurm.conf": fmt.Appendf(nil, slurmConf, host, s.dir), "munge.key": key} {
		if err := os.WriteFile(filepath.Join(s.dir, path), data, 0o400); err != nil {
			return err
		}
	}
	d := s.dir
	if err := s.daemon(exec.Command("munged", "--foreground", "--force", "--key-file="+d+"/munge.key", "--socket="+d+"/munge.sock",
		"--pid-file="+d+"/munged.pid", "--log-file="+d+"/munged.log", "--seed-file="+d+"/munged.seed")); err != nil {
		return err
	}
	time.Sleep(200 * time.Millisecond)
	if err := s.daemon(exec.Command("slurmctld", "-D", "-c")); err != nil {
		return err
	}
	for i := 1; i <= 4; i++ {
		if err := s.daemon(exec.Command("slurmd", "-D", "-N", fmt.Sprintf("n%d", i))); err != nil {
			return err
		}
	}
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until) && ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
		cmd := exec.Command("sinfo", "-h", "-o", "%t %D")
		cmd.Env = append(os.Environ(), s.env()...)
		if out, err := cmd.Output(); err == nil && strings.TrimSpace(string(out)) == "idle 4" {
			return nil
		}
	}
	return fmt.Errorf("its 4 nodes were not idle within 30 s, see %s", s.dir)
}

func (s *slurmSystem) daemon(cmd *exec.Cmd) error {
	cmd.Env = append(os.Environ(), s.env()...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.daemons = append(s.daemons, cmd)
	return nil
}

func (s *slurmSystem) stop() {
	for i := len(s.daemons) - 1; i >= 0; i-- {
		_ = s.daemons[i].Process.Signal(syscall.SIGTERM)
		_ = s.daemons[i].Wait()
	}
	s.daemons = nil
}

func (s *slurmSystem) submit(j job) []string {
	args := []string{"sbatch", "--parsable", "-o", "/dev/null", fmt.Sprintf("-N%d", j.ranks), fmt.Sprintf("-n%d", j.ranks)}
	if j.array > 0 {
		args = append(args, fmt.Sprintf("--array=1-%d", j.array))
	}
	if j.ranks == 1 {
		return append(args, j.script)
	}
	return append(args, "--wrap", "srun --mpi=none -o /dev/null "+j.script)
}

func (s *slurmSystem) queue() []string { return []string{"squeue", "-h", "-r", "-o", "%i"} }
