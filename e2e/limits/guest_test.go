package limits

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
)

// Words of the kernel's command line, and of the machine's last line.
const (
	guestMounts  = "gang.mounts" // "v2", "v1", "mixed", "none"
	guestHosts   = "gang.host"
	guestVerdict = "gang.verdict="
)

// guestHost is one place in a machine where a cluster is brought up.
type guestHost struct {
	place string // one of [places]
	want  string // how limits must hold there
	units bool   // and the packages' own tests
}

func (h guestHost) String() string {
	return fmt.Sprintf("%s:%s:%t", strings.ReplaceAll(h.place, " ", "_"), h.want, h.units)
}

func parseHost(s string) guestHost {
	f := strings.Split(s, ":")
	return guestHost{strings.ReplaceAll(f[0], "_", " "), f[1], f[2] == "true"}
}

func TestMain(m *testing.M) {
	if os.Getpid() == 1 {
		guest()
	}
	if place := os.Getenv(placeEnv); place != "" {
		_ = os.Unsetenv(placeEnv)
		runtime.LockOSThread() // user and name spaces are this thread's, until it is the whole process again
		err := enterPlace(place)
		if err == nil {
			err = syscall.Exec("/proc/self/exe", os.Args, os.Environ())
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// guest is the life of a machine's first process.
func guest() {
	err := errors.Join(mountAll(), inPlaces())
	if err != nil {
		fmt.Println(err)
		fmt.Println(guestVerdict + "failed")
	} else {
		fmt.Println(guestVerdict + "passed")
	}
	time.Sleep(100 * time.Millisecond) // the line is on its way to a serial console
	_ = syscall.Reboot(syscall.LINUX_REBOOT_CMD_RESTART)
	select {}
}

const cgroupRoot = "/sys/fs/cgroup"

func mountAll() error {
	var errs []error
	mount := func(fs, dir, data string) {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			errs = append(errs, err)
			return
		}
		if err := syscall.Mount(fs, dir, fs, 0, data); err != nil {
			errs = append(errs, fmt.Errorf("mount %s at %s: %w", fs, dir, err))
		}
	}
	mount("proc", "/proc", "")
	mount("sysfs", "/sys", "")
	mount("devtmpfs", "/dev", "")
	mount("tmpfs", "/dev/shm", "mode=1777")
	mount("tmpfs", "/tmp", "mode=1777")
	mount("tmpfs", "/run", "")
	v1 := func() {
		mount("tmpfs", cgroupRoot, "")
		for _, c := range []string{"memory", "pids", "freezer", "cpuset"} {
			mount("cgroup", filepath.Join(cgroupRoot, c), c)
		}
	}
	switch commandLine(guestMounts)[0] {
	case "v2":
		mount("cgroup2", cgroupRoot, "")
	case "v1":
		v1()
	case "mixed":
		v1()
		mount("cgroup2", filepath.Join(cgroupRoot, "unified"), "")
	}
	return errors.Join(errs...)
}

// commandLine gives the values of a word of the kernel's.
func commandLine(word string) (values []string) {
	b, _ := os.ReadFile("/proc/cmdline")
	for _, f := range strings.Fields(string(b)) {
		if v, ok := strings.CutPrefix(f, word+"="); ok {
			values = append(values, v)
		}
	}
	return values
}

// inPlaces runs all tests in all places, each in a process of its own.
func inPlaces() error {
	var errs []error
	run := func(place, want, name string, args ...string) {
		began := time.Now()
		cmd := exec.Command(name, args...)
		cmd.Dir = "/tmp"
		cmd.Env = []string{"PATH=/bin", "HOME=/tmp", "TMPDIR=/tmp", "GANG_TEST_GSHIM=/bin/gshim", binEnv + "=/bin", wantEnv + "=" + want, placeEnv + "=" + place}
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stdout
		err := cmd.Run()
		fmt.Printf("== %s: %s: %v in %s\n", place, name, err, time.Since(began).Round(100*time.Millisecond))
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", place, name, err))
		}
	}
	for _, value := range commandLine(guestHosts) {
		h := parseHost(value)
		if h.units {
			for name, tests := range unitTests {
				run(h.place, h.want, "/bin/"+name+".test", "-test.run="+tests)
			}
		}
		run(h.place, h.want, "/init", "-test.run=^(TestLimits|TestSpinners)$", "-test.v")
		reap()
	}
	return errors.Join(errs...)
}

// reap takes what came to the first process.
func reap() {
	for {
		if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
			return
		}
	}
}

// placeEnv tells a test program in a machine where to go before it runs anything.
const placeEnv = "GANG_LIMITS_PLACE"

// user is who has the delegated subtree.
const user = 1000

// enterPlace makes this process one that was started there.
func enterPlace(place string) error {
	enter := func(group string) error {
		dir := filepath.Join(cgroupRoot, group)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		// As a service manager: the groups above have the controllers, the last one enables none itself.
		for at := cgroupRoot; at != dir; {
			if err := os.WriteFile(filepath.Join(at, "cgroup.subtree_control"), []byte("+memory +pids +cpu +cpuset"), 0o644); err != nil {
				return err
			}
			rest, _ := strings.CutPrefix(dir, at+"/")
			first, _, _ := strings.Cut(rest, "/")
			at = filepath.Join(at, first)
		}
		return os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0o644)
	}
	delegate := func(group string) error {
		return unix.Setxattr(filepath.Join(cgroupRoot, group), "trusted.delegate", []byte("1"), 0)
	}
	manager := func() error { return os.MkdirAll("/run/systemd/system", 0o755) }
	switch place {
	case "root":
		return nil
	case "container":
		// The group that it is in looks like the root of a hierarchy of its own, with processes in it.
		return errors.Join(enter("box"), unix.Unshare(unix.CLONE_NEWNS|unix.CLONE_NEWCGROUP),
			unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Unmount(cgroupRoot, 0),
			unix.Mount("cgroup2", cgroupRoot, "cgroup2", 0, ""))
	case "unit": // with DelegateSubgroup=
		return errors.Join(manager(), enter("system.slice/gnoded.service"), delegate("system.slice/gnoded.service"),
			os.Mkdir(cgroupRoot+"/system.slice/gnoded.service/gnoded", 0o755),
			os.WriteFile(cgroupRoot+"/system.slice/gnoded.service/gnoded/cgroup.procs", []byte("0"), 0o644))
	case "old unit": // a service manager that knows no DelegateSubgroup=
		return errors.Join(manager(), enter("system.slice/old.service"), delegate("system.slice/old.service"))
	case "user":
		err := enter("user.slice/gnoded.scope")
		for _, name := range []string{"", "/cgroup.procs", "/cgroup.subtree_control", "/cgroup.threads"} {
			err = errors.Join(err, os.Chown(cgroupRoot+"/user.slice/gnoded.scope"+name, user, user))
		}
		return errors.Join(err, unix.Setgroups(nil), unix.Setresgid(user, user, user), unix.Setresuid(user, user, user))
	case "undelegated":
		return errors.Join(enter("user.slice/session-1.scope"), unix.Setgroups(nil), unix.Setresgid(user, user, user), unix.Setresuid(user, user, user))
	}
	return fmt.Errorf("no place %q", place)
}

// TestGuestHost: what is written on a kernel's command line is read again.
func TestGuestHost(t *testing.T) {
	for _, m := range machines {
		for _, h := range m.hosts {
			if got := parseHost(h.String()); got != h || strings.ContainsAny(h.String(), " =") || h.want != api.LimitEnforced && h.want != api.LimitSampled {
				t.Errorf("%q is read as %+v", h, got)
			}
		}
	}
}
