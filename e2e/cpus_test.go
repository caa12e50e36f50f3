package e2e

import (
	"runtime"
	"testing"
)

// TestStepsAreBound: tasks have CPUs of the allocation's, by --cpu-bind, and steps side by side have different ones.
func TestStepsAreBound(t *testing.T) {
	t.Parallel()
	if runtime.NumCPU() < 2 {
		t.Skip("needs two CPUs")
	}
	c := start(t, "--nodes=1", "--set", "cpu_bind=cores", "--set", "cpu_list=0,1", "--set", "cpus=2")
	slurmNames(t, c)
	own := `sh -c 'echo $SLURM_PROCID $(nproc) $(taskset -cp $$ | sed "s/.*: //;s/,/-/") $SLURM_CPU_BIND'`
	for _, x := range []struct{ name, script, want string }{
		{"a task each", `srun ` + own, "0 1 0 quiet,mask_cpu:0x1,0x2\n1 1 1 quiet,mask_cpu:0x1,0x2\n"},
		{"one task, no word", `srun -n1 ` + own, "0 2 0-1 quiet,mask_cpu:0x3\n"},
		{"one task, by cores", `srun -n1 --cpu-bind=cores ` + own, "0 1 0 quiet,mask_cpu:0x1\n"},
		{"not bound", `srun --cpu-bind=none ` + own, "0 2 0-1 quiet,none\n1 2 0-1 quiet,none\n"},
		{"by a list", `srun --cpu-bind=map_cpu:1,0 ` + own, "0 1 1 quiet,mask_cpu:0x2,0x1\n1 1 0 quiet,mask_cpu:0x2,0x1\n"},
		{"from the environment", `SLURM_CPU_BIND=none srun -n1 ` + own, "0 2 0-1 quiet,none\n"},
		{"an exact step has its own", `srun -n1 --exact ` + own, "0 1 0 quiet,mask_cpu:0x1\n"},
		{"two of them have different ones", `f() { srun -n1 --exact sh -c 'taskset -cp $$ | sed "s/.*: //"; touch '$1'; while [ ! -e '$2' ]; do sleep 0.02; done'; }; f a b & f b a; wait; rm a b`, "0\n1\n"},
		{"what overlaps has all", `srun -n1 --exact sh -c 'touch a; while [ ! -e b ]; do sleep 0.02; done' & while [ ! -e a ]; do sleep 0.02; done; srun -n1 --overlap ` + own + `; touch b; wait; rm a b`,
			"0 2 0-1 quiet,mask_cpu:0x3\n"},
		{"a step of a task is not bound by what the task was told", `srun -n1 --cpu-bind=cores sh -c 'srun -n1 --overlap nproc'`, "2\n"},
		{"a CPU that is not the step's", `srun -n1 --cpu-bind=map_cpu:7 ` + own + `; echo rc $?`,
			"rc 1\nslurmstepd: error: --cpu-bind: CPU 7 is not the step's: it has 0-1 here\nsrun: error: n1: task 0: Exited with exit code 1\n"},
	} {
		t.Run(x.name, func(t *testing.T) {
			c.t = t
			if got := c.batch(x.script, "-n2"); got != x.want {
				t.Errorf("%q, want %q", got, x.want)
			}
		})
	}
	c.t = t
}
