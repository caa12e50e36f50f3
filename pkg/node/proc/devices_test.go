package proc

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestDenyDevices: a process born into the group can't open what is kept from it, and can all
// else; outside nothing changes.
func TestDenyDevices(t *testing.T) {
	dir := DetectAll()[Cgroup2].Dir
	if dir == "" {
		t.Skip("no cgroup v2 that may be written")
	}
	if err := DevicesDeniable(Cgroup2, dir); err != nil {
		t.Skip(err)
	}
	full, err := DeviceAt("/dev/full")
	if err != nil {
		t.Fatal(err)
	}
	random, err := DeviceAt("/dev/urandom")
	if err != nil {
		t.Fatal(err)
	}
	group := filepath.Join(dir, "test.devices")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c, err := Make(Place{Kind: Cgroup2, Dir: group}, Limits{Deny: []Device{random, full}})
	if err != nil {
		t.Fatal(err)
	}
	defer KillContainment(Place{Kind: Cgroup2, Dir: group}, 5*time.Second)
	attr := &syscall.SysProcAttr{}
	if err := c.Enter(attr); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", "for d in null full zero urandom random; do (: </dev/$d) 2>/dev/null && echo $d; done; (: <"+os.Args[0]+") && echo file")
	cmd.SysProcAttr = attr
	out, err := cmd.Output()
	c.Leave()
	if got := strings.Join(strings.Fields(string(out)), " "); err != nil || got != "null zero random file" {
		t.Errorf("opened %q, %v", got, err)
	}
	if f, err := os.Open("/dev/full"); err != nil {
		t.Errorf("outside: %v", err)
	} else {
		f.Close()
	}
}

func TestDeviceAt(t *testing.T) {
	if d, err := DeviceAt("/dev/null"); err != nil || d != (Device{1, 3}) {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := DeviceAt("/etc/passwd"); err == nil || err.Error() != "/etc/passwd is no character device" {
		t.Error(err)
	}
	if _, err := DeviceAt("/dev/nonesuch"); err == nil || err.Error() != "/dev/nonesuch: no such file or directory" {
		t.Error(err)
	}
	for kind, want := range map[string]string{Cgroup1: "cgroup v1", Group: "no cgroups"} {
		if err := DevicesDeniable(kind, ""); err == nil || err.Error() != want {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
