package auth

import (
	"slices"
	"strings"
	"testing"

	"gangd/pkg/api"
)

// callers are every kind of caller towards a thing of uid 1000, in the order of the
// columns below.
var callers = []struct {
	name string
	id   Identity
}{
	{"owner", Identity{Kind: KindUser, UID: 1000, User: "ada"}},
	{"admin", Identity{Kind: KindUser, UID: 2000, User: "eve", Admin: true}},
	{"admin-owner", Identity{Kind: KindUser, UID: 1000, User: "ada", Admin: true}},
	{"host", Identity{Kind: KindUser, UID: 0, User: "root", Admin: true, Host: true}},
	{"other", Identity{Kind: KindUser, UID: 3000, User: "bob"}},
	{"node", Identity{Kind: KindNode, Node: "n1"}},
	{"node-with-uid", Identity{Kind: KindNode, Node: "n1", UID: 1000, Admin: true}},
	{"login", Identity{Kind: KindLogin, Node: "login1", UID: 1000, Admin: true}},
	{"relay-owner", Identity{Kind: KindRelay, Node: "login1", UID: 1000, User: "ada"}},
	{"relay-other", Identity{Kind: KindRelay, Node: "login1", UID: 3000, User: "bob"}},
	{"relay-root", Identity{Kind: KindRelay, Node: "login1", UID: 0, User: "root"}},
	{"relay-admin", Identity{Kind: KindRelay, Node: "login1", UID: 1000, User: "ada", Admin: true}},
	{"none", Identity{Kind: KindNone, UID: 1000}},
	{"none-admin", Identity{Kind: KindNone, UID: 1000, Admin: true, Host: true}},
	{"zero", Identity{}},
	{"guest", Identity{Kind: KindGuest, UID: 1000, Admin: true}},
	{"unknown-kind", Identity{Kind: "god", UID: 1000, Admin: true, Host: true}},
}

// expected is written out by hand, one letter a caller: y or a dot for no.
var expected = map[Op]string{
	//             o a A h x n N l r R 0 a - - - g -
	OpSubmit:      "y y y y . . . . y . . y . . . . .",
	OpList:        "y y y y y . . . y y . y . . . . .",
	OpShow:        "y y y y y . . . y y . y . . . . .",
	OpWait:        "y y y y y . . . y y . y . . . . .",
	OpEvents:      "y y y y y . . . y y . y . . . . .",
	OpLive:        "y y y y y . . . y y . y . . . y .",
	OpWeb:         "y y y y y . . . y y . y . . . . .",
	OpLog:         "y y y y . . . . y . . y . . . . .",
	OpScript:      "y y y y . . . . y . . y . . . . .",
	OpStacks:      "y y y y . . . . y . . y . . . . .",
	OpCancel:      "y y y y . . . . y . . y . . . . .",
	OpSignal:      "y y y y . . . . y . . y . . . . .",
	OpStep:        "y y y y . . . . y . . y . . . . .",
	OpHold:        "y y y y . . . . y . . y . . . . .",
	OpRelease:     "y y y y . . . . y . . y . . . . .",
	OpRequeue:     "y y y y . . . . y . . y . . . . .",
	OpUpdate:      "y y y y . . . . y . . y . . . . .",
	OpNodes:       "y y y y y . . . y y . y . . . y .",
	OpNodeDrain:   ". y y y . . . . . . . . . . . . .",
	OpNodeResume:  ". y y y . . . . . . . . . . . . .",
	OpNodeFence:   ". y y y . . . . . . . . . . . . .",
	OpNodeReboot:  ". y y y . . . . . . . . . . . . .",
	OpNodeForget:  ". y y y . . . . . . . . . . . . .",
	OpCardDrain:   ". y y y . . . . . . . . . . . . .",
	OpCardResume:  ". y y y . . . . . . . . . . . . .",
	OpToken:       ". y y y . . . . . . . . . . . . .",
	OpPing:        "y y y y y y y y y y . y . . . . .",
	OpSession:     ". . . y . y y . . . . . . . . . .",
	OpMetrics:     "y y y y y . . . y y . y . . . . .",
	OpControllers: "y y y y y y y y y y . y . . . . .",
	OpLedger:      "y y y y y . . . y y . y . . . . .",
	OpOutbox:      "y y y y . . . . y . . y . . . . .",
	OpRetryOutbox: ". y y y . . . . . . . . . . . . .",
	OpVerify:      ". y y y . . . . . . . . . . . . .",
	OpPartition:   ". y y y . . . . . . . . . . . . .",
	OpNodeSet:     ". y y y . . . . . . . . . . . . .",
	OpCrontab:     "y y y y . . . . y . . y . . . . .",
	OpReserve:     ". y y y . . . . . . . . . . . . .",
	OpReload:      ". y y y . . . . . . . . . . . . .",
	OpBackup:      ". y y y . . . . . . . . . . . . .",
	"":            ". . . . . . . . . . . . . . . . .",
	"shutdown":    ". . . . . . . . . . . . . . . . .",
	"SUBMIT":      ". . . . . . . . . . . . . . . . .",
}

func TestAllowWholeTable(t *testing.T) {
	for _, op := range ops() {
		if _, ok := expected[op]; !ok {
			t.Errorf("%s is in the table and has no expectation", op)
		}
	}
	for op, row := range expected {
		letters := strings.Fields(row)
		if len(letters) != len(callers) {
			t.Fatalf("%s: %d expectations for %d callers", op, len(letters), len(callers))
		}
		for i, c := range callers {
			if got, want := Allow(op, c.id, 1000), letters[i] == "y"; got != want {
				t.Errorf("%s by %s: %v, want %v", op, c.name, got, want)
			}
		}
	}
}

func TestSessionNode(t *testing.T) {
	want := map[string]string{"host": "", "node": "n1", "node-with-uid": "n1"}
	for _, c := range callers {
		name, ok := SessionNode(c.id)
		if w, may := want[c.name]; ok != may || name != w {
			t.Errorf("%s: %q %v", c.name, name, ok)
		}
	}
}

func TestHiddenAndUnknownAnswerTheSame(t *testing.T) {
	for _, op := range ops() {
		for _, c := range callers {
			e := Refuse(op, c.id, 1000, "12", "ada")
			switch {
			case Allow(op, c.id, 1000):
				if e != nil {
					t.Errorf("%s by %s: %v", op, c.name, e)
				}
			case !Allow(OpShow, c.id, 1000):
				if *e != *noJob("12") {
					t.Errorf("%s by %s: %v differs from an unknown job's answer", op, c.name, e)
				}
			case e.Code != api.CodePermission:
				t.Errorf("%s by %s: %v", op, c.name, e)
			}
		}
	}
	other := callers[slices.IndexFunc(callers, func(c struct {
		name string
		id   Identity
	}) bool {
		return c.name == "other"
	})].id
	if got := Refuse(OpCancel, other, 1000, "12_3", "ada").Error(); got != "job 12_3 belongs to ada: only its owner or an admin may cancel it" {
		t.Error(got)
	}
	if got := Refuse(OpLog, other, 1000, "12", "ada").Error(); got != "job 12 belongs to ada: only its owner or an admin may read its output" {
		t.Error(got)
	}
}

// Who is refused what only admins may is told who they are; who may not see more is told nothing.
func TestDeniedSaysWhoMay(t *testing.T) {
	const who = "root and the users of the setting admins may, on the controller's host"
	for _, c := range []struct {
		op   Op
		id   Identity
		hint string
	}{
		{OpNodeDrain, Identity{Kind: KindUser, UID: 1001}, who},
		{OpBackup, Identity{Kind: KindRelay, UID: 1001}, who},
		{OpNodeDrain, Identity{Kind: KindRelay, UID: 1001, Why: "here not"}, "here not"},
		{OpNodeDrain, Nobody, ""},
		{OpSession, Identity{Kind: KindUser, UID: 1001}, ""},
	} {
		if e := Denied(c.op, c.id); e.Message != "not allowed: "+string(c.op) || e.Hint != c.hint || e.Code != api.CodePermission {
			t.Errorf("%s by %v: %+v", c.op, c.id.Kind, e)
		}
	}
}

func TestValidName(t *testing.T) {
	for s, want := range map[string]bool{
		"n1": true, "a": true, "gpu-1.rack2": true, strings.Repeat("a", 63): true,
		"": false, "N1": false, strings.Repeat("a", 64): false, "-a": false, "a-": false, ".": false, "..": false,
		"a..b": false, "a/b": false, "a b": false, "a\x00": false, "a\n": false, "ä": false, "a_b": false,
	} {
		if validName(s) != want {
			t.Errorf("%q: %v", s, !want)
		}
	}
}

// ops lists every operation of the table, in no order.
func ops() []Op {
	var out []Op
	for op := range table {
		out = append(out, op)
	}
	return out
}
