package client

import (
	"strings"
	"testing"
)

// What there is to do differs: a person has a cluster to name or to start, a job's user an admin to ask.
func TestHintNamesWhoCanMendIt(t *testing.T) {
	before := siteDirs
	t.Cleanup(func() { siteDirs = before })
	for _, tt := range []struct {
		name, dir, told, job string
		at, hint             string
	}{
		{"a person", "", "", "", DefaultSocket, "set GANG_DIR to the directory of your cluster, or start one: gangd dev"},
		{"a person on a site's host", "", "", "", DefaultSocket, "this host is of a site: gangd, or on a node or login host gnoded, answers there when it runs (systemctl status gangd gnoded)"},
		{"as gnoded.toml writes it", "", "unix:/none/r.sock", "12", "/none/r.sock",
			`in a job the relay of its node answers there: ask an admin to see on n3 that gnoded runs (systemctl status gnoded) and that /etc/gangd/gnoded.toml does not say socket = "none"`},
		{"with a cluster", "/none", "", "", "/none/run/gangd.sock", "is gangd running? (gctl ping, gangd dev)"},
		{"in a job of it", "/none", "", "12", "/none/run/gangd.sock", "is gangd running? (gctl ping, gangd dev)"},
		{"in a job", "", "/none/r.sock", "12", "/none/r.sock",
			`in a job the relay of its node answers there: ask an admin to see on n3 that gnoded runs (systemctl status gnoded) and that /etc/gangd/gnoded.toml does not say socket = "none"`},
	} {
		siteDirs = nil
		if strings.Contains(tt.name, "site") {
			siteDirs = []string{"/none", t.TempDir()}
		}
		t.Setenv("GANG_DIR", tt.dir)
		t.Setenv("GANG_CONTROLLER", tt.told)
		t.Setenv("GANG_JOB_ID", tt.job)
		t.Setenv("SLURMD_NODENAME", "n3")
		c := New()
		_, err := c.Ping(t.Context())
		if err == nil && tt.dir+tt.told == "" {
			continue // this machine has a controller
		}
		if err == nil || c.Socket() != tt.at || !strings.HasPrefix(err.Error(), "can't reach the controller at "+tt.at+": ") || !strings.HasSuffix(err.Error(), "; "+tt.hint) {
			t.Errorf("%s: %s: %v", tt.name, c.Socket(), err)
		}
	}
}
