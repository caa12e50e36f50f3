// Package tool has tests say which programs they need that a bare machine lacks.
//
// A bare machine has what Debian's required packages bring, Go, gcc and make. make test runs every test as on
// such a machine first, with all other programs hidden (scripts/bare), and then once more, with all that
// is installed, those that said by Need what they missed. So a test that uses a program without saying so
// fails wherever it is run, and not only on the one machine where nobody happened to have installed it.
package tool

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Missing begins the reason of a test that is skipped for lack of a program. scripts/gotest knows the test by it.
const Missing = "not installed: "

// packages are Debian's, by what tests ask for: a program, or a module of one as python3:MODULE.
var packages = map[string]string{
	"bash":                          "bash",
	"cat":                           "coreutils",
	"chromium":                      "chromium-headless-shell",
	"env":                           "coreutils",
	"getent":                        "libc-bin",
	"git":                           "git",
	"groff":                         "groff",
	"debootstrap":                   "debootstrap",
	"initdb":                        "postgresql",
	"ionice":                        "util-linux",
	"ip":                            "iproute2",
	"iptables":                      "iptables",
	"libnss_extrausers.so.2":        "libnss-extrausers",
	"lua5.4":                        "lua5.4",
	"mandoc":                        "mandoc",
	"mpicc.mpich":                   "libmpich-dev",
	"mpifort":                       "libopenmpi-dev",
	"mpicc":                         "libopenmpi-dev",
	"mpicc.openmpi":                 "libopenmpi-dev",
	"mpirun":                        "openmpi-bin",
	"nice":                          "coreutils",
	"nsenter":                       "util-linux",
	"perl":                          "perl-base",
	"pgbouncer":                     "pgbouncer",
	"pgrep":                         "procps",
	"podman":                        "podman",
	"ps":                            "procps",
	"prlimit":                       "util-linux",
	"python3":                       "python3",
	"python3:torch":                 "python3-torch",
	"python3:torch.distributed.run": "python3-torch",
	"qemu-system-x86_64":            "qemu-system-x86",
	"setpriv":                       "util-linux",
	"sleep":                         "coreutils",
	"snakemake":                     "snakemake",
	"ssh":                           "openssh-client",
	"sshd":                          "openssh-server",
	"strace":                        "strace",
	"systemd-notify":                "systemd",
	"tmux":                          "tmux",
	"taskset":                       "util-linux",
	"time":                          "time",
	"useradd":                       "passwd",
}

// Need skips a test on a machine that lacks one of the programs, which are named as the test runs them.
func Need(t testing.TB, names ...string) {
	t.Helper()
	if why := Lacks(t, names...); why != "" {
		t.Skip(why)
	}
}

// NeedLibrary skips a test on a machine that lacks a library that programs load by name.
func NeedLibrary(t testing.TB, name string) {
	t.Helper()
	for _, dir := range []string{"/usr/lib", "/usr/lib/*", "/lib", "/lib/*"} {
		if found, _ := filepath.Glob(filepath.Join(dir, name)); len(found) > 0 {
			return
		}
	}
	Lack(t, name)
}

// Lack skips a test that has looked for a program itself.
func Lack(t testing.TB, name string) {
	t.Helper()
	t.Skip(Reason(t, name))
}

// Lacks is why a test can't run here that needs these programs; empty: it can.
func Lacks(t testing.TB, names ...string) string {
	t.Helper()
	for _, name := range names {
		program, module, _ := strings.Cut(name, ":")
		_, err := exec.LookPath(program)
		if err == nil && module != "" {
			err = exec.Command(program, "-c", "import "+module).Run()
		}
		if err != nil {
			return Reason(t, name)
		}
	}
	return ""
}

// Reason is the reason of a test that is skipped for lack of a program.
func Reason(t testing.TB, name string) string {
	t.Helper()
	program, module, _ := strings.Cut(name, ":")
	key := filepath.Base(program)
	if module != "" {
		key += ":" + module
	}
	pkg := packages[key]
	if pkg == "" {
		t.Fatalf("pkg/lab/tool does not say which package has %s", key)
	}
	return fmt.Sprintf("%s%s (apt-get install %s)", Missing, name, pkg)
}
