package limits

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gangd/e2e/tally"
	"gangd/pkg/api"
)

// vmEnv names the directory that scripts/vm-kernel fills: vmlinuz and busybox.
const vmEnv = "GANG_VM"

// bootPatience is ten times what the slowest of them takes on a machine that does nothing else.
const bootPatience = 40 * time.Minute

type machine struct {
	name  string
	hosts []guestHost
}

// share is what a run of everything has time for: memory, processes and CPUs of jobs with a kernel of cgroup v2 alone, as root
// and as a user.
var share = []machine{{"v2", []guestHost{{place: "root", want: api.LimitEnforced}, {place: "user", want: api.LimitEnforced}}}}

// machines are the hosts that are played: what is mounted, how limits must hold there, and
// which of the packages' own tests run too.
var machines = []machine{
	{"v2", []guestHost{
		{place: "root", want: api.LimitEnforced, units: true},
		{place: "container", want: api.LimitEnforced},
		{place: "unit", want: api.LimitEnforced},
		{place: "old unit", want: api.LimitEnforced},
		{place: "user", want: api.LimitEnforced},
		{place: "undelegated", want: api.LimitSampled},
	}},
	{"v1", []guestHost{{place: "root", want: api.LimitEnforced, units: true}}},
	{"mixed", []guestHost{{place: "root", want: api.LimitEnforced, units: true}}},
	{"none", []guestHost{{place: "root", want: api.LimitSampled, units: true}}},
}

// unitTests are the tests of containment below pkg/node that run in a machine too.
var unitTests = map[string]string{
	"proc": "^(TestLimits|TestSidesGoWithADeadShim|TestDetect|TestBaseTidiedAway|TestFreshOnly|TestDenyDevices)$",
	"shim": "^(TestMemoryLimit|TestProcessLimit|TestWithinLimits)$",
}

// TestVM boots a machine of each kind, and runs the tests in it.
func TestVM(t *testing.T) {
	dir := os.Getenv(vmEnv)
	if dir == "" {
		tally.Skip(t, "needs a kernel: make vm brings one and runs this")
	}
	if _, err := os.Stat(filepath.Join(dir, "busybox")); err != nil {
		tally.Skip(t, "needs a kernel: make vm brings one: %v", err)
	}
	tally.Need(t, "qemu-system-x86_64")
	initrd, all := pack(t, dir), machines
	if os.Getenv("GANG_E2E_CHAOS") != "" {
		all = share
	}
	for _, m := range all {
		t.Run(m.name, func(t *testing.T) { boot(t, dir, initrd, m.name, m.hosts) })
	}
}

func boot(t *testing.T, dir, initrd, mounts string, hosts []guestHost) {
	line := "console=ttyS0 quiet panic=-1 random.trust_cpu=on " + guestMounts + "=" + mounts
	for _, h := range hosts {
		line += " " + guestHosts + "=" + h.String()
	}
	ctx, cancel := context.WithTimeout(context.Background(), bootPatience)
	defer cancel()
	args := []string{"-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio", "-smp", "2", "-m", "2048",
		"-object", "memory-backend-ram,id=m0,size=1G", "-object", "memory-backend-ram,id=m1,size=1G", "-numa", "node,memdev=m0,cpus=0", "-numa", "node,memdev=m1,cpus=1", "-cpu", "max", "-accel", "tcg",
		"-kernel", filepath.Join(dir, "vmlinuz"), "-initrd", initrd, "-append", line}
	began := time.Now()
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if testing.Verbose() {
		w := io.MultiWriter(&out, os.Stdout) // as it comes
		cmd.Stdout, cmd.Stderr = w, w
	}
	err := cmd.Run()
	if err != nil || !bytes.Contains(out.Bytes(), []byte(guestVerdict+"passed")) {
		t.Errorf("not passed: %v after %s\n%s", err, time.Since(began).Round(time.Second), bytes.ReplaceAll(out.Bytes(), []byte("\r"), nil))
	}
	tally.Did("virtual machines with cgroups as "+mounts, 1)
}

// pack makes the machine's file system: static programs, the test programs, and a shell.
func pack(t *testing.T, dir string) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	tree := t.TempDir()
	bin := filepath.Join(tree, "bin")
	for _, d := range []string{"bin", "proc", "sys", "dev", "tmp", "run", "etc", "home"} {
		if err := os.Mkdir(filepath.Join(tree, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	build := func(args ...string) {
		t.Helper()
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	programs := []string{"gangd", "gnoded", "gshim", "gstep", "gsubmit", "gqueue", "gctl", "ginfo"}
	args := []string{"build", "-trimpath", "-ldflags=-s -w", "-o", bin + "/"}
	for _, p := range programs {
		args = append(args, "./cmd/"+p)
	}
	build(args...)
	build("test", "-c", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(tree, "init"), "./e2e/limits")
	for name := range unitTests {
		build("test", "-c", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(bin, name+".test"), "./pkg/node/"+name)
	}
	busybox, err := os.ReadFile(filepath.Join(dir, "busybox"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"bin/busybox": string(busybox),
		"etc/passwd": "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\nada:x:1000:1000::/home:/bin/sh\n", "etc/group": "root:x:0:\nnogroup:x:65534:\nada:x:1000:\n"} {
		if err := os.WriteFile(filepath.Join(tree, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"sh", "dd", "sleep", "mkfifo", "seq", "setsid", "cat", "id", "grep", "env", "nohup", "true", "kill", "rm", "mkdir", "date", "tail", "sort", "touch", "mv"} {
		if err := os.Symlink("busybox", filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "initrd")
	if err := os.WriteFile(path, cpio(t, tree), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// cpio packs a tree as the kernel unpacks it ("newc").
func cpio(t *testing.T, tree string) []byte {
	t.Helper()
	var b bytes.Buffer
	inode := 0
	entry := func(name string, mode uint32, data []byte) {
		inode++
		pad := func() {
			for b.Len()%4 != 0 {
				b.WriteByte(0)
			}
		}
		fmt.Fprintf(&b, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x", inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name)+1, 0)
		b.WriteString(name + "\x00")
		pad()
		b.Write(data)
		pad()
	}
	const dirMode, fileMode, linkMode = 0o040000, 0o100000, 0o120000
	err := filepath.WalkDir(tree, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == tree {
			return err
		}
		name := strings.TrimPrefix(path, tree+"/")
		switch {
		case e.IsDir():
			entry(name, dirMode|0o755, nil)
		case e.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			entry(name, linkMode|0o777, []byte(to))
			return err
		default:
			data, err := os.ReadFile(path)
			entry(name, fileMode|0o755, data)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	entry("TRAILER!!!", 0, nil)
	return b.Bytes()
}
