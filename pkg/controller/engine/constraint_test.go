package engine

import (
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/controller/store/sqlitestore"
)

// TestConstraintIsChanged: what a waiting job's nodes shall have is changed in the job alone,
// of one element of an array not of the others, and is known after a restart.
func TestConstraintIsChanged(t *testing.T) {
	dir := t.TempDir()
	open := func() *sqlitestore.Store {
		st, err := sqlitestore.Open(t.Context(), dir, sqlitestore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	st := open()
	r := newRig(t, st)
	s := spec(2)
	s.Constraint, s.Prefer = "rack1", "fast"
	s.Roles = []api.Role{{Name: "a", Count: 1, CPUsPerRank: 1, Constraint: "rack1"}, {Name: "b", Count: 1, CPUsPerRank: 1, Constraint: "big"}}
	id, other := r.submit("", s), r.submit("", s)
	for _, c := range []struct {
		constraint, prefer *string
		want               string
	}{
		{new("[rack1|rack2]"), nil, ""},
		{nil, new("[a|b]&c*2"), ""},
		{new("rack1*"), nil, `constraint "rack1*": a number of nodes from 1 to 65536 expected at column 7, found the end; write features joined by & and |, such as a100&(ib|roce), alternatives for all nodes as [rack1|rack2], counts of nodes as rack1*2`},
	} {
		reply, err := r.Update(t.Context(), &api.UpdateRequest{JobQuery: byID(id), Constraint: c.constraint, Prefer: c.prefer}, me, anyone, nil)
		if err == nil && reply.Results[0].Error != nil {
			err = reply.Results[0].Error
		}
		if errText(err) != c.want {
			t.Errorf("%v: %v", c, err)
		}
	}
	check := func(when string) {
		t.Helper()
		got, old := r.show(r.view.job(id), false), r.show(r.view.job(other), false)
		if got.Constraint != "[rack1|rack2]" || got.Prefer != "[a|b]&c*2" || got.Roles[0].Constraint != "[rack1|rack2]" || got.Roles[1].Constraint != "big" {
			t.Errorf("%s: %q, rather %q, roles %+v", when, got.Constraint, got.Prefer, got.Roles)
		}
		if old.Constraint != "rack1" || old.Prefer != "fast" || old.Roles[0].Constraint != "rack1" {
			t.Errorf("%s: the other one has %q, rather %q, roles %+v", when, old.Constraint, old.Prefer, old.Roles)
		}
	}
	check("changed")
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	st = open()
	r = newRig(t, st)
	check("after a restart")
	_ = r.end()
	_ = st.Close()
}
