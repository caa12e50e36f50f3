package noded

import (
	"bytes"
	"context"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"testing"

	"gangd/pkg/api"
)

// TestAnotherUser: with root, ranks and log readers are the job's user, and what that user
// may not do is refused.
func TestAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to become another user")
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Skip(err)
	}
	uid, _ := strconv.ParseUint(u.Uid, 10, 32)
	gid, _ := strconv.ParseUint(u.Gid, 10, 32)
	c := newController(t)
	// t.TempDir is below a directory of root's alone.
	base, err := os.MkdirTemp("", "gnr")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	work := filepath.Join(base, "w")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	_ = os.Chmod(base, 0o755)
	_ = os.Chmod(filepath.Dir(program), 0o755)
	_ = os.Chown(work, int(uid), int(gid))
	o := c.options(filepath.Join(base, "s"))
	o.SingleUser = false
	c.run(o)
	as := func(dir string) func(*api.Assignment, *api.Spec) {
		return func(a *api.Assignment, s *api.Spec) {
			a.Body.User, a.Body.UID, a.Body.GID, s.WorkDir = "nobody", uint32(uid), uint32(gid), dir
		}
	}
	k := c.desire(1, 1, 1, "#!/bin/sh\nid -u\n", as(work))
	if a := c.untilPhase(k, api.PhaseStopped); a.Ranks[0].ExitCode != 0 {
		t.Fatalf("%+v", a.Ranks)
	}
	q := api.LogRead{Path: filepath.Join(work, "gang-1.out"), User: "nobody", UID: uint32(uid), GID: uint32(gid)}
	var b bytes.Buffer
	if err := c.hub.ReadLog(context.Background(), "n1", q, &b); err != nil || b.String() != u.Uid+"\n" {
		t.Errorf("log %q, %v", b.String(), err)
	}
	secret := filepath.Join(base, "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	q.Path = secret
	if err := c.hub.ReadLog(context.Background(), "n1", q, &b); api.CodeOf(err) != api.CodePermission {
		t.Errorf("root's file: %v", err)
	}
	private := filepath.Join(base, "p")
	if err := os.Mkdir(private, 0o700); err != nil {
		t.Fatal(err)
	}
	k = c.desire(2, 1, 1, "#!/bin/sh\n", as(private))
	if a := c.untilPhase(k, api.PhaseRefused); a.Refusal == nil || a.Refusal.Blame != api.BlameFiles {
		t.Errorf("a directory that the user may not enter: %+v", a.Refusal)
	}
}
