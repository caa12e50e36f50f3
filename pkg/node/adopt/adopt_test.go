package adopt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/core/checksum"
	"gangd/pkg/core/cpus"
	"gangd/pkg/node/proc"
	"gangd/pkg/node/shim"
)

// TestProgram: what pam_exec sees: 0 lets a login pass, and nothing else does.
func TestProgram(t *testing.T) {
	if _, err := user.Lookup("nobody"); err != nil {
		t.Skip(err)
	}
	if g, err := user.LookupGroup("nogroup"); err != nil || g.Gid != "65534" {
		t.Skip("nobody is in another group here")
	}
	state := t.TempDir()
	if err := os.Mkdir(state+"/"+shim.MembersDir, 0o755); err != nil {
		t.Fatal(err)
	}
	at := "--state-dir=" + state
	for name, x := range map[string]struct {
		user, kind string
		args       []string
		code       int
		want       string // in what is said; empty: nothing is
	}{
		"no job":              {"nobody", "account", []string{at}, 1, "gadopt: access denied: nobody has no running job on this node\n"},
		"as a session":        {"nobody", "open_session", []string{at}, 1, "gadopt: access denied: nobody has no running job on this node\n"},
		"root":                {"root", "account", []string{at}, 0, ""},
		"of a group":          {"nobody", "account", []string{at, "--allow-groups=staff,nogroup"}, 0, ""},
		"of no such group":    {"nobody", "account", []string{at, "--allow-groups=staff"}, 1, "has no running job"},
		"a session's end":     {"nobody", "close_session", []string{at}, 0, ""},
		"unknown":             {"nobody-of-that-name", "account", []string{at}, 1, "gadopt: access denied: user nobody-of-that-name: not known on this host"},
		"no state":            {"nobody", "account", []string{at + "x"}, 1, "gadopt: access denied: open " + state + "x/"},
		"one of two states":   {"nobody", "account", []string{at, at + "x"}, 1, "gadopt: access denied: open " + state + "x/"},
		"by hand":             {"nobody", "", []string{at}, 2, "gadopt is started by pam_exec, as: account required"},
		"as another type":     {"nobody", "auth", []string{at}, 2, `(PAM_TYPE is "auth")`},
		"a relative state":    {"root", "account", []string{"--state-dir=x"}, 2, `gadopt: "--state-dir=x": want --state-dir=DIR (absolute`},
		"an unknown option":   {"root", "account", []string{at, "--allow-group=x"}, 2, `gadopt: "--allow-group=x": want`},
		"an option, no value": {"root", "account", []string{at, "--allow-groups"}, 2, `gadopt: "--allow-groups": want`},
	} {
		t.Setenv("PAM_USER", x.user)
		t.Setenv("PAM_TYPE", x.kind)
		var said bytes.Buffer
		code := Main(x.args, &said, &said)
		if got := said.String(); code != x.code || !strings.Contains(got, x.want) || (x.want == "") != (got == "") {
			t.Errorf("%s: %d, %q; want %d, %q", name, code, got, x.code, x.want)
		}
	}
}

// TestCPUs: where nothing but their affinity keeps processes to the CPUs of their job, a login is kept to them as well.
func TestCPUs(t *testing.T) {
	all, err := proc.Affinity(0)
	if err != nil || len(all) < 2 {
		t.Skipf("needs two CPUs, there are %s (%v)", all, err)
	}
	const uid = 65534
	tried := 0
	for kind, found := range proc.DetectAll() {
		if found.CPUSet {
			continue // the job's group does it
		}
		tried++
		place := found.Place(fmt.Sprintf("adopt.%d", os.Getpid()), "")
		c, err := proc.Make(place, proc.Limits{})
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		login := exec.Command("sleep", "1000")
		if err := login.Start(); err != nil {
			t.Fatal(err)
		}
		own := cpus.Of(all[len(all)-1])
		spec := shim.Spec{MemberKey: api.MemberKey{Job: 7, Epoch: 1}, UID: uid, Machine: &cpus.Topology{CPUs: []cpus.CPU{{ID: own[0]}}}}
		spec.SetPlace(place)
		dir := t.TempDir()
		member := filepath.Join(dir, shim.MembersDir, "7.1")
		if err := os.MkdirAll(member, 0o700); err != nil {
			t.Fatal(err)
		}
		write := func(name string, record any) {
			b, err := json.Marshal(record)
			if err == nil {
				err = os.WriteFile(filepath.Join(member, name), []byte(checksum.Add(b, name)), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		write(shim.SpecFile, &spec)
		write(shim.StateFile, &shim.State{MemberActual: api.MemberActual{MemberKey: spec.MemberKey, Phase: api.PhaseRunning, Ranks: []api.RankActual{{}}}})
		key, err := Run(&Login{Name: "nobody", UID: uid, PID: login.Process.Pid, States: []string{dir}})
		its, unread := proc.Affinity(login.Process.Pid)
		if err != nil || key == nil || *key != spec.MemberKey || unread != nil || its.String() != own.String() {
			t.Errorf("%s: in %v (%v), on CPUs %s (%v), want %s", kind, key, err, its, unread, own)
		}
		_ = login.Process.Kill()
		_ = login.Wait()
		if gone, err := c.Remove(); !gone || err != nil {
			t.Errorf("%s: removed %v, %v", kind, gone, err)
		}
	}
	if tried == 0 {
		t.Skip("no control groups without cpuset here")
	}
}
