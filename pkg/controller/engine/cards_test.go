package engine

import (
	"context"
	"errors"
	"strings"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/gang"
	"gangd/pkg/lab/disk"
)

// TestCardOf: a card is found by its index or its UUID; else it is said which there are.
func TestCardOf(t *testing.T) {
	n := &gang.Node{Name: "n1", Res: &cluster.Node{Cards: []cluster.Card{{CardInfo: api.CardInfo{UUID: "GPU-a"}}, {CardInfo: api.CardInfo{UUID: "GPU-b", Index: 1}}}}}
	for _, c := range []struct{ card, uuid, err string }{
		{"0", "GPU-a", ""}, {"1", "GPU-b", ""}, {"GPU-b", "GPU-b", ""},
		{"2", "", `node n1 has no card "2"; its cards are 0 to 1, or their UUIDs as ginfo --json has them`},
		{"x", "", `node n1 has no card "x"; its cards are 0 to 1, or their UUIDs as ginfo --json has them`},
	} {
		uuid, err := cardOf(n, c.card)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if uuid != c.uuid || text != c.err {
			t.Errorf("%s: %q, %s", c.card, uuid, text)
		}
	}
	if _, err := cardOf(&gang.Node{Name: "n2", Res: &cluster.Node{}}, "0"); err == nil || err.Error() != `node n2 has no card "0"; it has none at all` || err.Code != api.CodeNotFound {
		t.Errorf("of none: %v", err)
	}
}

// resumer is a node that hears that a card is good.
type resumer struct {
	told []string
	err  error
}

func (r *resumer) ResumeCard(_ context.Context, node, uuid string) error {
	r.told = append(r.told, node+" "+uuid)
	return r.err
}

// TestCardActions: a card that is drained has the reason, one that is resumed is told of to its node, and what that says is the answer.
func TestCardActions(t *testing.T) {
	r := newRig(t, disk.Open(t))
	if _, err := r.NodeHello(t.Context(), &api.Hello{Protocol: api.SessionProtocol, Node: "n1", BootID: "b", CPUs: 4, MemoryBytes: 1 << 30, Cards: []api.CardInfo{{UUID: "GPU-a", VRAMBytes: 1 << 30}}}); err != nil {
		t.Fatal(err)
	}
	card := func() string {
		c := &r.view.node("n1").Res.Cards[0]
		why, by, _ := strings.Cut(c.Drained, " [")
		if why != "" && !strings.HasPrefix(by, "ada@20") {
			t.Errorf("%q does not say who and when", c.Drained)
		}
		return string(c.State) + " " + why
	}
	var node resumer
	for _, c := range []struct {
		action, node, card, reason string
		says                       error
		err, want                  string
	}{
		{"drain", "n9", "0", "x", nil, `no node "n9"; nodes are n1`, "ok "},
		{"drain", "n1", "1", "x", nil, `node n1 has no card "1"; its cards are 0 to 0, or their UUIDs as ginfo --json has them`, "ok "},
		{"drain", "n1", "0", "fan", nil, "", "quarantined fan"},
		{"resume", "n1", "GPU-a", "", nil, "", "ok "},
		{"drain", "n1", "GPU-a", "", nil, "", "quarantined no reason given"},
		{"resume", "n1", "0", "", api.Errorf(api.CodeConflict, "Xid 79"), "node n1: Xid 79", "ok "},
		{"resume", "n1", "0", "", api.Errorf(api.CodeUnavailable, "node n1 is not connected"), "node n1 is not connected; try again when it is up", "ok "},
		{"resume", "n1", "0", "", errors.New("cut"), "node n1: cut", "ok "},
	} {
		node = resumer{err: c.says}
		err := r.CardAction(t.Context(), c.action, c.node, c.card, c.reason, "ada", &node)
		if errText(err) != c.err || card() != c.want {
			t.Errorf("%s %s on %s: %v, and it is %s; want %s, and %s", c.action, c.card, c.node, err, card(), c.err, c.want)
		}
		if told := len(node.told) == 1 && node.told[0] == "n1 GPU-a"; told != (c.action == "resume") {
			t.Errorf("%s: the node was told %q", c.action, node.told)
		}
	}
	r.view.setHold("HOLD: a test")
	for _, action := range []string{"drain", "resume"} {
		node = resumer{}
		if err := r.CardAction(t.Context(), action, "n1", "0", "fan", "ada", &node); api.CodeOf(err) != api.CodeOnHold || node.told != nil {
			t.Errorf("%s on hold: %v, and the node was told %q", action, err, node.told)
		}
	}
}
