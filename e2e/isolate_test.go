package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gangd/e2e/trial"
	"gangd/pkg/lab/tool"
)

// hostProgram is what frameworks do on their nodes: each listens at the same port under its host's name, and
// the ranks of all nodes find the first by its name.
const hostProgram = `
import os, socket, sys, time
port, me, rank = 29500, socket.gethostname(), int(os.environ["SLURM_PROCID"])
assert me == os.environ["SLURMD_NODENAME"], me
assert not socket.gethostbyname(me).startswith("127."), me
server = socket.create_server((me, port))
if rank == 0:
    names = sorted(server.accept()[0].makefile().read() for _ in range(2))
    print(me, "was called by", *names)
else:
    for _ in range(1000):
        try:
            c = socket.create_connection(("n1", port))
            break
        except OSError:
            time.sleep(0.01)
    c.sendall(me.encode())
`

// isolated brings up a cluster whose nodes are hosts of their own.
func isolated(t *testing.T) *cluster {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: nodes are hosts in namespaces")
	}
	tool.Need(t, "ip")
	c := unstarted(t, trial.Bin(t))
	_, errs, code := c.run("gangd", "dev", "--detach", "--isolate", "--nodes=3", "--gpus=1x80G", "--dir="+c.dir)
	if code != 0 {
		if strings.Contains(errs, "--isolate:") && os.Getenv("GANG_E2E_CHAOS") == "" {
			t.Skipf("no hosts in namespaces on this machine: %s", errs)
		}
		t.Fatalf("gangd dev --isolate: exit %d\n%s", code, errs)
	}
	return c
}

// TestIsolatedNodes: nodes of gangd dev have host names and networks of their own, which a gnoded that
// is started again finds as they were, and of which nothing is left at the end.
func TestIsolatedNodes(t *testing.T) {
	tool.Need(t, "/usr/bin/python3")
	t.Parallel()
	c := isolated(t)
	c.script("host.py", hostProgram)
	if out, errs, code := c.run("grun", "-N3", "/usr/bin/python3", "host.py"); code != 0 || out != "n1 was called by n2 n3\n" {
		t.Errorf("exit %d: %q %s", code, out, errs)
	}
	c.must("gangd", "dev", "--restart=n2", "--dir="+c.dir)
	if out, errs, code := c.run("grun", "-N3", "/usr/bin/python3", "host.py"); code != 0 || out != "n1 was called by n2 n3\n" {
		t.Errorf("after n2 was started again: exit %d: %q %s", code, out, errs)
	}

	number, err := os.ReadFile(filepath.Join(c.dir, "run", "bridge"))
	if err != nil {
		t.Fatal(err)
	}
	bridge := "/sys/class/net/gangdev" + strings.TrimSpace(string(number))
	if _, err := os.Stat(bridge); err != nil {
		t.Fatal(err)
	}
	c.must("gangd", "dev", "--stop", "--dir="+c.dir)
	if _, err := os.Stat(bridge); err == nil {
		t.Errorf("%s is left", bridge)
	}
	if mounts, _ := os.ReadFile("/proc/self/mountinfo"); strings.Contains(string(mounts), c.dir) {
		t.Errorf("mounts are left:\n%s", mounts)
	}
}

// TestIsolatedMpirun: Open MPI as it comes, which takes ranks of one host for one memory.
func TestIsolatedMpirun(t *testing.T) {
	needsMPI(t, "openmpi-bin libopenmpi-dev", "mpicc", "mpirun")
	t.Parallel()
	c := isolated(t)
	c.slurmNames()
	c.script("ring.c", ringProgram)
	c.script("job.sh", strings.Replace(mpiScript, "OMPI_MCA_btl=tcp,self ", "", 1))
	c.tool("mpicc", "ring.c", "-o", "ring")
	c.tool("sbatch", "-W", "job.sh")
	if got := c.file("mpi.out"); got != "size 4 sum 6\n" {
		t.Errorf("the job wrote %q", got)
	}
}

// TestWhoIsolates: without root there is nothing to isolate with, which is said only to who asked for it.
func TestWhoIsolates(t *testing.T) {
	t.Parallel()
	c := unstarted(t, trial.Programs(t))
	cmd := exec.Command(filepath.Join(c.bin, "gangd"), "dev", "--detach", "--isolate", "--nodes=2", "--dir="+c.dir)
	if os.Geteuid() == 0 {
		cmd = exec.Command("setpriv", append([]string{"--reuid=65534", "--regid=65534", "--clear-groups"}, cmd.Args...)...)
		if err := os.Chown(c.dir, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "--isolate: namespaces of a network need root") {
		t.Errorf("%v: %s", err, out)
	}
}
