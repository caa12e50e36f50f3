package noded

import (
	"os"
	"path/filepath"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/node/gpu/simgpu"
)

const (
	rootMount = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
	homeMount = "40 22 0:41 / /home rw shared:7 - nfs4 server:/home rw\n"
)

func TestLacks(t *testing.T) {
	info := filepath.Join(t.TempDir(), "mountinfo")
	write(t, filepath.Dir(info), "mountinfo", rootMount+homeMount+`41 22 0:42 / /a\040b rw - tmpfs t rw`+"\n")
	for _, c := range []struct {
		needs  Needs
		cards  int
		why    string
		memory int64
		want   string
	}{
		{Needs{}, 0, "no driver", 1, ""},
		{Needs{Cards: 8}, 8, "", 1, ""},
		{Needs{Cards: 8}, 9, "", 1, ""},
		{Needs{Cards: 8}, 5, "", 1, "5 of 8 cards"},
		{Needs{Cards: 8}, 8, "no driver", 1, "its cards can't be read: no driver"},
		{Needs{Memory: 64 << 30}, 0, "", 64 << 30, ""},
		{Needs{Memory: 64 << 30}, 0, "", 48 << 30, "memory of 48G, 64G expected"},
		{Needs{Memory: 64 << 30}, 0, "", 0, ""}, // it can't be told
		{Needs{Mounts: []string{"/home", "/home/", "/a b"}, MountInfo: info}, 0, "", 1, ""},
		{Needs{Mounts: []string{"/home/ada", "/home", "/scratch"}, MountInfo: info}, 0, "", 1, "nothing is mounted at /home/ada, /scratch"},
		{Needs{Cards: 2, Mounts: []string{"/scratch"}, MountInfo: info}, 1, "", 1, "1 of 2 cards; nothing is mounted at /scratch"},
		{Needs{Mounts: []string{"/proc"}}, 0, "", 1, ""},
		{Needs{Names: []string{"localhost"}}, 0, "", 1, ""},
		{Needs{Names: []string{"localhost", "not a name", "nor.this..one"}}, 0, "", 1,
			"not a name has no address here: lookup not a name: no such host; nor.this..one has no address here: lookup nor.this..one: no such host"},
		{Needs{Mounts: []string{"/home"}, MountInfo: "/nowhere"}, 0, "", 1, "its mounts can't be read: open /nowhere: no such file or directory"},
	} {
		if got := c.needs.lacks(t.Context(), c.cards, c.why, c.memory); got != c.want {
			t.Errorf("%+v: %q, want %q", c, got, c.want)
		}
	}
}

// TestLostHome: a mount that goes is told with the first member that is refused for it, at the latest, and
// with a hello before any work is taken; the node is fit again when it is back.
func TestLostHome(t *testing.T) {
	dir := t.TempDir()
	info := filepath.Join(dir, "mountinfo")
	mounts := func(text string) {
		if err := os.WriteFile(info+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(info+".new", info); err != nil {
			t.Fatal(err)
		}
	}
	mounts(rootMount)
	cards, err := simgpu.New("2x80G", "n1", "")
	if err != nil {
		t.Fatal(err)
	}
	c := newController(t)
	o := c.options(t.TempDir())
	o.GPU, o.Needs = cards, Needs{Cards: 2, Mounts: []string{"/home"}, MountInfo: info}
	c.run(o)
	c.until("a hello", func() bool { return len(c.hellos) > 0 })
	const lacks = "nothing is mounted at /home"
	if got := c.hellos[0].Health.Sick; got != lacks {
		t.Errorf("the hello says %q, want %q", got, lacks)
	}
	mounts(rootMount + homeMount)
	c.until("the node to be fit", func() bool { return c.health != nil && c.health.Sick == "" })
	k := c.desire(1, 1, 1, "#!/bin/sh\nexit 5\n")
	if a := c.untilPhase(k, api.PhaseStopped); a.Ranks[0].ExitCode != 5 {
		t.Errorf("%+v", a)
	}
	mounts(rootMount)
	k = c.desire(2, 1, 1, "#!/bin/sh\nexit 5\n")
	a := c.untilPhase(k, api.PhaseRefused)
	if a.Refusal.Blame != api.BlameUnfit || a.Refusal.Text != lacks {
		t.Errorf("%+v", a.Refusal)
	}
	c.mu.Lock()
	if c.health.Sick != lacks {
		t.Errorf("a member was refused before the node said why: %+v", c.health)
	}
	c.mu.Unlock()
	c.forget(k)
	c.untilGone(k)
}
