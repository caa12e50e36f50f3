package adopt

import (
	"bytes"
	"os"
	"os/user"
	"strings"
	"testing"

	"gangd/pkg/shim"
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
		"unknown":             {"nobody-of-that-name", "account", []string{at}, 1, "gadopt: access denied: user: unknown user"},
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
