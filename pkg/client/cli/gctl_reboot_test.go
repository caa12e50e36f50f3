package cli

import (
	"testing"
	"time"

	"gangd/pkg/api"
)

// TestWhichNodesAreBack: a node is back under another boot alone, and not before its controller has seen the end of the reboot.
func TestWhichNodesAreBack(t *testing.T) {
	asked, told := &api.RebootPending{Asked: time.Unix(1, 0)}, &api.RebootPending{Asked: time.Unix(1, 0), Issued: time.Unix(2, 0)}
	for _, c := range []struct {
		n          api.Node
		want, fail string
	}{
		{api.Node{State: api.NodeUp, BootID: "1", Reboot: asked}, "n1 still works", ""},
		{api.Node{State: api.NodeRebooting, BootID: "1", Reboot: told}, "n1 reboots", ""},
		{api.Node{State: api.NodeUp, BootID: "2"}, "", ""},
		{api.Node{State: api.NodeDrained, BootID: "2", Reason: "health: x"}, "", ""},
		{api.Node{State: api.NodeSuspect, BootID: "2"}, "n1 reboots", ""},
		{api.Node{State: api.NodeUp, BootID: "1"}, "", "node n1 was not rebooted: somebody has taken that back"},
		{api.Node{State: api.NodeDrained, BootID: "1", Reason: "reboot failed: x"}, "", "node n1 was not rebooted: reboot failed: x"},
		{api.Node{State: api.NodeLost, BootID: "1", Reboot: told}, "", "node n1 is lost"},
	} {
		c.n.Name = "n1"
		got, err := rebooting([]api.Node{c.n, {Name: "n2", State: api.NodeLost}}, map[string]string{"n1": "1"})
		fail := ""
		if err != nil {
			fail = err.Error()
		}
		if got != c.want || fail != c.fail {
			t.Errorf("%+v: %q, %q, want %q, %q", c.n, got, fail, c.want, c.fail)
		}
	}
}
