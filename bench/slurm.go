package main

import (
	"context"
	"fmt"

	"gangd/e2e/slurmlab"
)

// slurmSystem is a Slurm of four nodes on this machine.
type slurmSystem struct {
	dir     string
	running *slurmlab.Slurm
}

func (s *slurmSystem) name() string { return "slurm" }

func (s *slurmSystem) env() []string { return s.running.Env() }

func (s *slurmSystem) start(ctx context.Context) (err error) {
	s.running, err = slurmlab.Start(ctx, slurmlab.Options{Dir: s.dir, Nodes: 4, CPUs: 8, Memory: 2000})
	return err
}

func (s *slurmSystem) stop() {
	if s.running != nil {
		s.running.Stop()
	}
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
