package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/gang"
	"gangd/pkg/lab/disk"
)

// atNoon is an engine that runs at a noon that does not end.
func atNoon(t *testing.T, edit func(*Options)) *rig {
	return newRigWith(t, disk.Open(t), func(o *Options) {
		o.Clock = &handClock{gang.Instant{Wall: noon.Add(time.Millisecond), Mono: time.Hour}}
		edit(o)
	})
}

// TestReserve: what a request asks for is what is kept, what it leaves open stays as it was, and what can't be is refused.
func TestReserve(t *testing.T) {
	r := atNoon(t, func(*Options) {})
	for i := range 4 {
		r.node(fmt.Sprint("n", i+1), 4)
	}
	hour, none := time.Hour, 0
	late := noon.Add(24 * time.Hour)
	talk := api.Reservation{Name: "talk", Start: late, End: late.Add(time.Hour), Nodes: []string{"n1", "n2"}, Users: []string{"ada", "bob"}, Accounts: []string{"vision"}, Flags: []api.ReservationFlag{api.FlagDaily}, By: "root"}
	with := func(edit func(*api.Reservation)) api.Reservation { x := talk; edit(&x); return x }
	root := Caller{User: "root", Admin: true}
	for _, c := range []struct {
		what   string
		req    api.ReservationRequest
		change bool
		want   api.Reservation // where it is taken
		err    string
	}{
		{"a change of none", api.ReservationRequest{Name: "talk", End: &late}, true, api.Reservation{}, `no reservation "talk"; there are none`},
		{"a bad name", api.ReservationRequest{Name: "a b"}, false, api.Reservation{}, `reservation name "a b": want 1 to 64 letters, digits, '_', '.' and '-'`},
		{"no such node", api.ReservationRequest{Name: "talk", Start: &late, Duration: &hour, Nodes: &[]string{"n1", "n9"}, Users: &[]string{"ada"}}, false, api.Reservation{}, `no node "n9"; nodes are n[1-4]`},
		{"all is no node among others", api.ReservationRequest{Name: "talk", Start: &late, Duration: &hour, Nodes: &[]string{"n1", "all"}, Users: &[]string{"ada"}}, false, api.Reservation{}, `no node "all"; nodes are n[1-4]`},
		{"no such flag", api.ReservationRequest{Name: "talk", Start: &late, Duration: &hour, Nodes: &[]string{"n1"}, Flags: &[]api.ReservationFlag{"x"}}, false, api.Reservation{}, `flag "x" is not known`},
		{"no nodes", api.ReservationRequest{Name: "talk", Start: &late, Duration: &hour, NodeCount: &none, Users: &[]string{"ada"}}, false, api.Reservation{}, "a reservation of 0 nodes; nodecnt=1 is the fewest"},
		{"new", api.ReservationRequest{Name: "talk", Start: &late, Duration: &hour, Nodes: &[]string{"n2", "n1", "n2"}, Users: &[]string{"bob", "ada"}, Accounts: &[]string{"vision"}, Flags: &[]api.ReservationFlag{api.FlagDaily}}, false, talk, ""},
		{"later, as long", api.ReservationRequest{Name: "talk", Start: new(late.Add(hour))}, true, with(func(x *api.Reservation) { x.Start, x.End = late.Add(hour), late.Add(2*hour) }), ""},
		{"back", api.ReservationRequest{Name: "talk", Start: &late, End: new(late.Add(hour))}, true, talk, ""},
		{"longer", api.ReservationRequest{Name: "talk", Duration: new(3 * hour)}, true, with(func(x *api.Reservation) { x.End = late.Add(3 * hour) }), ""},
		{"an end, and for others", api.ReservationRequest{Name: "talk", End: new(late.Add(hour)), Users: &[]string{"eve"}, Accounts: &[]string{}, Flags: &[]api.ReservationFlag{}}, true,
			with(func(x *api.Reservation) { x.Users, x.Accounts, x.Flags = []string{"eve"}, nil, nil }), ""},
		{"three nodes", api.ReservationRequest{Name: "talk", NodeCount: new(3)}, true,
			with(func(x *api.Reservation) {
				x.Users, x.Accounts, x.Flags, x.Nodes, x.Picked = []string{"eve"}, nil, nil, []string{"n1", "n2", "n3"}, true
			}), ""},
		{"picked they stay", api.ReservationRequest{Name: "talk", Duration: new(2 * hour)}, true,
			with(func(x *api.Reservation) {
				x.Users, x.Accounts, x.Flags, x.Nodes, x.Picked, x.End = []string{"eve"}, nil, nil, []string{"n1", "n2", "n3"}, true, late.Add(2*hour)
			}), ""},
		{"one of these two", api.ReservationRequest{Name: "talk", NodeCount: new(1), Nodes: &[]string{"n3", "n4"}}, true,
			with(func(x *api.Reservation) {
				x.Users, x.Accounts, x.Flags, x.Nodes, x.Picked, x.End = []string{"eve"}, nil, nil, []string{"n3"}, true, late.Add(2*hour)
			}), ""},
		{"all by name", api.ReservationRequest{Name: "talk", Nodes: &[]string{"all"}}, true,
			with(func(x *api.Reservation) {
				x.Users, x.Accounts, x.Flags, x.Nodes, x.End = []string{"eve"}, nil, nil, []string{"n1", "n2", "n3", "n4"}, late.Add(2*hour)
			}), ""},
		{"another, now", api.ReservationRequest{Name: "now", Start: new(noon.Add(-time.Minute + 2*time.Millisecond)), Duration: &hour, NodeCount: new(1), Users: &[]string{"ada"}}, false,
			api.Reservation{Name: "now", Start: noon, End: noon.Add(hour), Nodes: []string{"n1"}, Users: []string{"ada"}, Picked: true, By: "root", Active: true}, ""},
		{"a minute ago", api.ReservationRequest{Name: "past", Start: new(noon.Add(-time.Minute)), Duration: &hour, NodeCount: new(1), Users: &[]string{"ada"}}, false, api.Reservation{}, "the start time 2026-03-01T11:59:00Z has passed; starttime=now starts at once"},
		{"there already", api.ReservationRequest{Name: "talk", Start: &late, Duration: &hour, NodeCount: new(1), Users: &[]string{"ada"}}, false, api.Reservation{}, "there is a reservation talk already"},
	} {
		got, err := r.Reserve(t.Context(), &c.req, c.change, root)
		if text := errText(err); text != c.err && !(strings.Contains(c.err, "already") && strings.Contains(text, "talk")) {
			t.Errorf("%s: got %s\nwant %s", c.what, text, c.err)
		}
		if err == nil && got != nil {
			differs(t, c.what, *got, c.want)
		}
	}
	names := func(rs []api.Reservation) (out []string) {
		for i := range rs {
			out = append(out, fmt.Sprint(rs[i].Name, " ", rs[i].Active))
		}
		return out
	}
	all, err := r.Reservations()
	if got := names(all); err != nil || !slices.Equal(got, []string{"now true", "talk false"}) {
		t.Errorf("%v, %v", got, err)
	}
	some, err := r.Reservations("talk")
	if got := names(some); err != nil || !slices.Equal(got, []string{"talk false"}) {
		t.Errorf("%v, %v", got, err)
	}
	if some, err := r.Reservations("talk", "x"); errText(err) != `no reservation "x"; reservations are now, talk` || some != nil {
		t.Errorf("%v, %v", some, err)
	}
	if err := r.Unreserve(t.Context(), "talk", root); err != nil {
		t.Error(err)
	}
	if err := r.Unreserve(t.Context(), "talk", root); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("twice: %v", err)
	}
	if all, _ := r.Reservations(); len(all) != 1 {
		t.Errorf("%v are left", names(all))
	}
}

// TestActive: from its start on, and not any more at its end.
func TestActive(t *testing.T) {
	r := &api.Reservation{Start: noon, End: noon.Add(time.Hour)}
	for after, want := range map[time.Duration]bool{-1: false, 0: true, time.Hour - 1: true, time.Hour: false} {
		if got := shownAt(r, noon.Add(after)); got.Active != want {
			t.Errorf("%s after its start: %t", after, got.Active)
		}
	}
}

// TestMayReserve: a job for a reservation is of who it is for, and has its nodes.
func TestMayReserve(t *testing.T) {
	e := still()
	put := func(name string, users, accounts []string) {
		e.view.reservations[name] = &api.Reservation{Name: name, Nodes: []string{"n1", "n3"}, Users: users, Accounts: accounts}
	}
	put("users", []string{"ada", "bob"}, nil)
	put("both", []string{"ada"}, []string{"vision", "speech"})
	put("accounts", nil, []string{"vision", "speech"})
	put("nobody", nil, nil)
	nodes := []*cluster.Node{{Name: "n1"}, {Name: "n2"}, {Name: "n3"}}
	for _, c := range []struct {
		name, user, account string
		code                api.Code
		want                string
	}{
		{"users", "bob", "", "", ""}, {"both", "ada", "speech", "", ""}, {"accounts", "eve", "vision", "", ""},
		{"users", "eve", "", api.CodePermission, "reservation users is not for eve; it is for ada, bob"},
		{"users", "eve", "vision", api.CodePermission, "reservation users is not for eve under account vision; it is for ada, bob"},
		{"both", "ada", "x", api.CodePermission, "reservation both is not for ada under account x; it is for work under vision, speech: --account=vision"},
		{"both", "eve", "vision", api.CodePermission, "reservation both is not for eve under account vision; it is for ada"},
		{"accounts", "ada", "", api.CodePermission, "reservation accounts is not for ada; it is for work under vision, speech: --account=vision"},
		{"nobody", "ada", "", api.CodePermission, "reservation nobody is not for ada; it is for nobody: nodes are worked on"},
		{"none", "ada", "", api.CodeInvalid, `no reservation "none"; reservations are accounts, both, nobody, users`},
	} {
		got, err := e.mayReserve(c.name, c.user, c.account, nodes)
		if errText(err) != c.want || err != nil && api.CodeOf(err) != c.code {
			t.Errorf("%s for %s: %v, want %s", c.name, c.user, err, c.want)
		}
		if err == nil && (len(got) != 2 || got[0] != nodes[0] || got[1] != nodes[2]) {
			t.Errorf("%s for %s has %v", c.name, c.user, got)
		}
	}
	if len(nodes) != 3 || nodes[1].Name != "n2" {
		t.Errorf("the nodes that there are became %v", nodes)
	}
}

// TestShowReservations: on a node is the one that goes on there; of two, maintenance.
func TestShowReservations(t *testing.T) {
	e := still()
	put := func(name string, start, end time.Duration, nodes []string, flags ...api.ReservationFlag) {
		e.view.reservations[name] = &api.Reservation{Name: name, Start: noon.Add(start), End: noon.Add(end), Nodes: nodes, Flags: flags}
	}
	put("a-maint", -1, time.Hour, []string{"n1"}, api.FlagMaint)
	put("b-now", -1, 2*time.Hour, []string{"n1", "n2", "n3"})
	put("c-maint", -1, 3*time.Hour, []string{"n2"}, api.FlagMaint)
	put("d-later", 1, 4*time.Hour, []string{"n4"})
	nodes := []api.Node{{Name: "n1"}, {Name: "n2"}, {Name: "n3"}, {Name: "n4"}}
	e.showReservations(nodes)
	differs(t, "on nodes", nodes, []api.Node{
		{Name: "n1", Reservation: &api.NodeReservation{Name: "a-maint", Maint: true, Until: noon.Add(time.Hour)}},
		{Name: "n2", Reservation: &api.NodeReservation{Name: "c-maint", Maint: true, Until: noon.Add(3 * time.Hour)}},
		{Name: "n3", Reservation: &api.NodeReservation{Name: "b-now", Until: noon.Add(2 * time.Hour)}}, {Name: "n4"}})
}

// TestJobsOfAReservation: a job for one is planned on its nodes alone, and hears in whose name it is refused.
func TestJobsOfAReservation(t *testing.T) {
	r := atNoon(t, func(*Options) {})
	r.node("n1", 4)
	r.node("n2", 8)
	if _, err := r.Reserve(t.Context(), &api.ReservationRequest{Name: "talk", Start: new(noon.Add(time.Hour)), Duration: new(time.Hour), Nodes: &[]string{"n1"}, Users: &[]string{"ada"}}, false, Caller{User: "root"}); err != nil {
		t.Fatal(err)
	}
	s := spec(1)
	s.Reservation, s.CPUsPerRank = "talk", 4
	id := r.submit("", s)
	if why, err := r.Explain(t.Context(), r.view.job(id)); err != nil || why.Reason != "Reservation" {
		t.Errorf("%+v, %v", why, err)
	}
	fill, err := r.Expect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	shown := r.show(r.view.job(id), false)
	if fill(&shown); !shown.ExpectedStart.Equal(noon.Add(time.Hour)) {
		t.Errorf("expected to start at %s", shown.ExpectedStart)
	}
	shown.Reason, shown.ExpectedStart = "Resources", time.Time{}
	if fill(&shown); !shown.ExpectedStart.IsZero() {
		t.Errorf("though something else keeps it, expected at %s", shown.ExpectedStart)
	}
	fillSure, err := r.Expect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	runs := r.show(r.view.job(id), false)
	runs.State = api.JobRunning
	if fillSure(&runs); !runs.ExpectedStart.IsZero() {
		t.Errorf("what runs is expected to start at %s", runs.ExpectedStart)
	}
	shown.Reason, shown.Reservation = "Reservation", "gone"
	if fill(&shown); !shown.ExpectedStart.IsZero() {
		t.Errorf("of a reservation that there is none of expected at %s", shown.ExpectedStart)
	}
	s.CPUsPerRank = 5
	if _, err := r.Submit(t.Context(), &api.SubmitRequest{Spec: s}, me); err == nil || !strings.HasPrefix(err.Error(), "in reservation talk: ") || api.CodeOf(err) != api.CodeUnsatisfiable {
		t.Errorf("more than it has: %v", err)
	}
	if _, err := r.Submit(t.Context(), &api.SubmitRequest{Spec: s}, Caller{UID: 1, User: "eve"}); errText(err) != "reservation talk is not for eve; it is for ada" {
		t.Errorf("who it is not for: %v", err)
	}
}
