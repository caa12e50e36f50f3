package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gangd/pkg/lab/tool"
)

// slurmNames is a directory with gangd's programs by Slurm's names, for tools that call them.
func (c *cluster) slurmNames() string {
	c.t.Helper()
	dir := filepath.Join(c.dir, "names")
	c.must("gangd", "slurm-links", dir)
	return dir
}

// fromBin is a program of another directory as [cluster.run] finds it.
func (c *cluster) fromBin(dir, name string) string {
	c.t.Helper()
	path, err := filepath.Rel(c.bin, filepath.Join(dir, name))
	if err != nil {
		c.t.Fatal(err)
	}
	return path
}

// tool runs a program of this machine that finds gangd by Slurm's names.
func (c *cluster) tool(name string, args ...string) string {
	c.t.Helper()
	cmd := exec.Command("env", append([]string{name}, args...)...) // looks it up in the PATH below
	cmd.Dir = c.tmp
	cmd.Env = append(os.Environ(), "GANG_DIR="+c.dir, "PATH="+filepath.Join(c.dir, "names")+":"+os.Getenv("PATH"), "USER=root",
		"OMP_NUM_THREADS=1", "HOME="+c.tmp)
	out, err := cmd.CombinedOutput()
	if err != nil {
		logs, _ := filepath.Glob(filepath.Join(c.tmp, "*.out"))
		for _, l := range logs {
			b, _ := os.ReadFile(l)
			c.t.Logf("%s:\n%s", filepath.Base(l), b[max(0, len(b)-3000):])
		}
		c.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// minutes leaves a test to make chaos whose time is not gangd's.
func minutes(t *testing.T) {
	t.Helper()
	if os.Getenv("GANG_E2E_CHAOS") == "" {
		t.Skip("takes minutes: make chaos runs this")
	}
}

func (c *cluster) file(name string) string {
	c.t.Helper()
	b, err := os.ReadFile(filepath.Join(c.tmp, name))
	if err != nil {
		c.t.Fatal(err)
	}
	return string(b)
}

const snakefile = `rule all:
    input: "total.txt"

rule part:
    output: "part-{n}.txt"
    shell: "echo {wildcards.n} > {output}"

rule total:
    input: expand("part-{n}.txt", n=range(1, 4))
    output: "total.txt"
    shell: "cat {input} | paste -sd' ' > {output}"
`

// snakemakeStatus is what people write for --cluster-status: a job's state in its words.
const snakemakeStatus = `#!/bin/bash
case $(sacct -j "$1" -X -n -P -o State | head -n 1) in
COMPLETED) echo success ;;
PENDING | RUNNING | COMPLETING | REQUEUED | "") echo running ;;
*) echo failed ;;
esac
`

// TestSnakemake runs a workflow of three jobs and one that needs them, by a submit command
// with a status script, and by snakemake's own Slurm executor.
func TestSnakemake(t *testing.T) {
	t.Parallel()
	tool.Need(t, "snakemake")
	minutes(t) // it asks for states every 10 s, by its own executor every 30 s
	help, _ := exec.Command("snakemake", "--help").CombinedOutput()
	for name, args := range map[string][]string{
		"cluster": {"--cluster", "sbatch --parsable -o job-%j.out", "--cluster-status", "./status", "--max-status-checks-per-second", "5"},
		"slurm":   {"--slurm", "--default-resources", "slurm_partition=main", "mem_mb=100", "runtime=5", "--max-status-checks-per-second", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(string(help), args[0]+" ") {
				t.Skipf("this snakemake has no %s", args[0])
			}
			c := start(t, "--nodes=2", "--gpus=2x80G")
			c.slurmNames()
			c.script("Snakefile", snakefile)
			c.script("status", snakemakeStatus)
			c.tool("snakemake", append([]string{"-j", "3", "--latency-wait", "30"}, args...)...)
			if got := c.file("total.txt"); got != "1 2 3\n" {
				t.Errorf("the workflow made %q", got)
			}
		})
	}
}

const ringProgram = `#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
  int rank, size, sum = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("size %d sum %d\n", size, sum);
  MPI_Finalize();
  return 0;
}
`

// Both "nodes" are one machine: messages in shared memory would take them for one process
// space and their files for each other's, so they go by TCP.
const mpiScript = `#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=2 --time=5
#SBATCH -o mpi.out
export OMPI_MCA_btl=tcp,self OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpirun ./ring
`

// needsMPI skips also where the compiler is there without its headers, as openmpi-bin alone brings it.
func needsMPI(t *testing.T, packages, compiler string, programs ...string) {
	t.Helper()
	tool.Need(t, append(programs, compiler)...)
	if out, err := exec.Command(compiler, "-include", "mpi.h", "-E", "-x", "c", "/dev/null").CombinedOutput(); err != nil {
		t.Skipf("%s finds no headers, wants Debian's %s: %s", compiler, packages, out)
	}
}

// TestMpirun: Open MPI reads the allocation from its SLURM_ variables and starts its daemons
// on the nodes by srun.
func TestMpirun(t *testing.T) {
	t.Parallel()
	needsMPI(t, "openmpi-bin libopenmpi-dev", "mpicc", "mpirun")
	c := start(t, "--nodes=2", "--gpus=2x80G")
	c.slurmNames()
	c.script("ring.c", ringProgram)
	c.script("job.sh", mpiScript)
	c.tool("mpicc", "ring.c", "-o", "ring")
	c.tool("sbatch", "-W", "job.sh")
	if got := c.file("mpi.out"); got != "size 4 sum 6\n" {
		t.Errorf("the job wrote %q", got)
	}
}

// abortIsNamed: of a step that a task has aborted it is said which.
func (c *cluster) abortIsNamed() {
	c.t.Helper()
	all := c.must(c.fromBin(c.slurmNames(), "sacct"), "-nPo", "systemcomment")
	if n := regexp.MustCompile(`(?m)^task 5 aborted \(.*\) on n\d$`).FindAllString(all, -1); len(n) != 1 {
		c.t.Errorf("sacct names who aborted in %q:\n%s", n, all)
	}
}

// TestMPICH: a program of MPICH is started by srun alone, which serves it PMI; one that aborts ends
// the step.
func TestMPICH(t *testing.T) {
	t.Parallel()
	needsMPI(t, "mpich libmpich-dev", "mpicc.mpich")
	c := start(t, "--nodes=4", "--gpus=1x80G")
	c.slurmNames()
	c.script("ring.c", ringProgram)
	c.script("abort.c", strings.Replace(ringProgram, "MPI_Finalize", "if (rank == 5) MPI_Abort(MPI_COMM_WORLD, 3);\n  for (;;) sleep(1);\n  MPI_Finalize", 1))
	c.tool("mpicc.mpich", "ring.c", "-o", "ring")
	c.tool("mpicc.mpich", "-include", "unistd.h", "abort.c", "-o", "abort")
	// What MPICH talks through looks for devices in the machine's /sys, where those of the clusters of other tests come and go.
	devices := ""
	if os.Geteuid() == 0 {
		devices = "export UCX_NET_DEVICES=eth0,lo; " // of a node of gangd dev
	}
	c.tool("sbatch", "-W", "-N4", "-n8", "--time=5", "-o", "mpi.out", "--wrap", devices+`srun --mpi=pmi2 ./ring; SLURM_MPI_TYPE=pmi2 srun ./abort > abort.out 2>&1; echo "abort $?"`)
	if got := c.file("mpi.out"); !regexp.MustCompile(`^size 8 sum 28\nabort [1-9]\d*\n$`).MatchString(got) {
		t.Errorf("the job wrote %q", got)
	}
	c.abortIsNamed()
	if got, want := c.file("abort.out"), "srun: error: mpi/pmi2: task 5 aborted StepId="; !strings.Contains(got, want) {
		t.Errorf("an abort wrote %q, want %q", got, want)
	}
}

// TestOpenMPI: a program of Open MPI is started by srun alone, which serves it PMIx, also where the site says so and the step nothing;
// one that aborts ends the step.
func TestOpenMPI(t *testing.T) {
	needsMPI(t, "openmpi-bin libopenmpi-dev", "mpicc.openmpi")
	if found, _ := filepath.Glob("/usr/lib/*-linux-gnu/libpmix.so.2"); len(found) == 0 {
		t.Skip("no libpmix.so.2, wants Debian's libpmix2")
	}
	c := start(t, "--nodes=4", "--gpus=1x80G", "--set", "mpi_default=pmix")
	c.slurmNames()
	c.script("ring.c", ringProgram)
	c.script("abort.c", strings.Replace(ringProgram, "MPI_Finalize", "if (rank == 5) MPI_Abort(MPI_COMM_WORLD, 3);\n  for (;;) sleep(1);\n  MPI_Finalize", 1))
	c.tool("mpicc.openmpi", "ring.c", "-o", "ring")
	c.tool("mpicc.openmpi", "-include", "unistd.h", "abort.c", "-o", "abort")
	c.tool("sbatch", "-W", "-N4", "-n8", "--time=5", "-o", "mpi.out", "--wrap", `export OMPI_MCA_btl=tcp,self
left() { ls -d /tmp/gangd-pmix-* 2>/dev/null | wc -l; }
before=$(left)
srun --mpi=pmix ./ring; srun ./ring; srun --mpi=pmix_v4 -N2 -n3 ./ring; srun --mpi=pmix ./abort > abort.out 2>&1; echo "abort $?"
srun --mpi=pmix sh -c 'ls -d /tmp/gangd-pmix-* 2>/dev/null | wc -l' | sort -u | grep -c '^0$'; echo $(($(left) - before))`)
	if got := c.file("mpi.out"); !regexp.MustCompile(`^(size 8 sum 28\n){2}size 3 sum 3\nabort [1-9]\d*\n0\n0\n$`).MatchString(got) {
		t.Errorf("the job wrote %q", got)
	}
	c.abortIsNamed()
	if got, want := c.file("abort.out"), "srun: error: mpi/pmix: task 5 aborted StepId="; !strings.Contains(got, want) || strings.Contains(got, "N/A") {
		t.Errorf("an abort wrote %q, want %q", got, want)
	}
}

// Debian's torch 1.13 can't read the default of --redirects under Python 3.11; 1 is one
// that it can. The rendezvous is on the first node, under a port of the job's own.
const torchrunScript = `#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=1 --time=5
#SBATCH -o torch.out
scontrol show hostnames "$SLURM_JOB_NODELIST"
srun bash -c 'exec /usr/bin/python3 -m torch.distributed.run --redirects=1 --tee=1 --nnodes=$SLURM_NNODES --nproc_per_node=2 \
  --node_rank=$SLURM_NODEID --master_addr=$MASTER_ADDR --master_port=$MASTER_PORT sum.py'
`

const sumProgram = `import torch, torch.distributed as dist
dist.init_process_group("gloo")
t = torch.tensor([float(dist.get_rank())])
dist.all_reduce(t)
if dist.get_rank() == 0:
    open("sum.txt", "w").write("size %d sum %d\n" % (dist.get_world_size(), int(t.item())))
dist.destroy_process_group()
`

// TestTorchrun: a launcher on each node by srun, two ranks under each.
func TestTorchrun(t *testing.T) {
	t.Parallel()
	tool.Need(t, "/usr/bin/python3:torch.distributed.run")
	minutes(t) // six interpreters load torch
	c := start(t, "--nodes=2", "--gpus=2x80G")
	c.slurmNames()
	c.script("sum.py", sumProgram)
	c.script("job.sh", torchrunScript)
	c.tool("sbatch", "-W", "job.sh")
	if got := c.file("sum.txt"); got != "size 4 sum 6\n" {
		t.Errorf("the job wrote %q\n%s", got, c.file("torch.out"))
	}
}
