package engine

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/disk"
)

// limited is a site whose limits change under a job that waits.
type limited struct {
	*rig
	t      *testing.T
	store  store.Store
	policy order.Policy
	look   atomic.Pointer[lookup]
}

// lookup says of which groups everybody is.
type lookup func(among []string) ([]string, error)

func newLimited(t *testing.T) *limited {
	l := &limited{t: t, store: disk.Open(t)}
	l.answer([]string{"staff"}, nil)
	l.policy = order.Policy{Partitions: []api.Partition{{Name: "main", Default: true}, {Name: "night"}}, BackfillDepth: 1,
		Accounts: []order.Account{{Name: "lab", Default: true}, {Name: "proj"}}}
	l.begin()
	return l
}

func (l *limited) answer(of []string, err error) {
	look := lookup(func(among []string) ([]string, error) {
		return slices.DeleteFunc(slices.Clone(among), func(g string) bool { return !slices.Contains(of, g) }), err
	})
	l.look.Store(&look)
}

func (l *limited) begin() {
	l.rig = newRigWith(l.t, l.store, func(o *Options) {
		o.Policy = l.policy
		o.Policy.Partitions, o.Policy.Accounts = slices.Clone(l.policy.Partitions), slices.Clone(l.policy.Accounts)
		o.GroupsOf = func(_ context.Context, _ uint32, among []string) ([]string, error) { return (*l.look.Load())(among) }
	})
	for _, n := range []string{"n1", "n2"} {
		h := &api.Hello{Protocol: api.SessionProtocol, Node: n, BootID: "b", Address: "127.0.0.1", CPUs: 4, MemoryBytes: 1 << 34,
			Cards: []api.CardInfo{{UUID: n + "-0", VRAMBytes: 1 << 34}, {Index: 1, UUID: n + "-1", VRAMBytes: 1 << 34}}}
		if _, err := l.NodeHello(l.t.Context(), h); err != nil {
			l.t.Fatal(err)
		}
	}
}

// edit has the controller start again with another configuration.
func (l *limited) edit(change func(p *order.Policy)) {
	l.t.Helper()
	if err := l.end(); err != nil {
		l.t.Fatal(err)
	}
	l.policy.Partitions, l.policy.Accounts = slices.Clone(l.policy.Partitions), slices.Clone(l.policy.Accounts)
	change(&l.policy)
	l.begin()
}

func (l *limited) partition(r api.PartitionRequest) {
	l.t.Helper()
	if r.Name == "" {
		r.Name = "main"
	}
	if err := l.PutPartition(l.t.Context(), &r, true, Caller{User: "root", Admin: true}); err != nil {
		l.t.Fatal(err)
	}
}

func (l *limited) reserve(change bool, r api.ReservationRequest) {
	l.t.Helper()
	if _, err := l.Reserve(l.t.Context(), &r, change, Caller{User: "root", Admin: true}); err != nil {
		l.t.Fatal(err)
	}
}

func (l *limited) regroup(of ...string) {
	l.answer(of, nil)
	l.do(gang.Groups{Of: map[uint32][]string{1000: of}})
}

func (l *limited) do(ev gang.Event) {
	l.t.Helper()
	if _, err := l.Do(l.t.Context(), ev); err != nil {
		l.t.Fatal(err)
	}
}

// TestLimitsThatChange: in whatever way a limit is changed under a job that waits, it is held back by what holds now, its owner is told by
// Slurm's word and a sentence, and it starts as soon as the limit lets it.
func TestLimitsThatChange(t *testing.T) {
	hour, short := time.Hour, 10*time.Minute
	talk := func(l *limited) {
		l.reserve(false, api.ReservationRequest{Name: "talk", Start: new(time.Now()), Duration: new(2 * hour), Nodes: &[]string{"n1"}, Users: &[]string{"ada"}})
	}
	inTalk := func(s *api.Spec) { s.Reservation = "talk" }
	none := func(*limited) {}
	for _, c := range []struct {
		what   string
		first  func(l *limited)
		spec   func(s *api.Spec)
		change func(l *limited)
		word   string
		text   string
		back   func(l *limited)
	}{
		{"a shorter longest time", none, func(*api.Spec) {}, func(l *limited) { l.partition(api.PartitionRequest{MaxTime: &short}) },
			"PartitionTimeLimit", "its time limit is 1 h, and partition main allows 10 min by now", func(l *limited) { l.partition(api.PartitionRequest{MaxTime: &hour}) }},
		{"the same, by the file", none, func(*api.Spec) {}, func(l *limited) { l.edit(func(p *order.Policy) { p.Partitions[0].MaxTime = short }) },
			"PartitionTimeLimit", "allows 10 min by now", func(l *limited) { l.edit(func(p *order.Policy) { p.Partitions[0].MaxTime = hour }) }},
		{"a longest time, of a job without one", none, func(s *api.Spec) { s.TimeLimit = 0 }, func(l *limited) { l.partition(api.PartitionRequest{MaxTime: &hour}) },
			"PartitionTimeLimit", "its time limit is unlimited", func(l *limited) { l.partition(api.PartitionRequest{MaxTime: new(time.Duration)}) }},
		{"down", none, func(*api.Spec) {}, func(l *limited) { l.partition(api.PartitionRequest{State: new(api.PartitionDown)}) },
			"PartitionDown", "an admin lets nothing start", func(l *limited) { l.partition(api.PartitionRequest{State: new(api.PartitionUp)}) }},
		{"inactive, by the file", none, func(*api.Spec) {}, func(l *limited) { l.edit(func(p *order.Policy) { p.Partitions[0].State = api.PartitionInactive }) },
			"PartitionInactive", "an admin lets nothing start", func(l *limited) { l.edit(func(p *order.Policy) { p.Partitions[0].State = api.PartitionUp }) }},
		{"fewer nodes", none, func(s *api.Spec) { s.Size, s.MinNodes = 2, 2 }, func(l *limited) { l.partition(api.PartitionRequest{MaxNodes: new(1)}) },
			"PartitionNodeLimit", "the job takes at least 2 nodes, and partition main allows 1", func(l *limited) { l.partition(api.PartitionRequest{MaxNodes: new(0)}) }},
		{"fewer nodes, by the file", none, func(s *api.Spec) { s.Size, s.RanksPerNode = 2, 1 }, func(l *limited) { l.edit(func(p *order.Policy) { p.Partitions[0].MaxNodes = 1 }) },
			"PartitionNodeLimit", "the job takes at least 2 nodes, and partition main allows 1", func(l *limited) { l.edit(func(p *order.Policy) { p.Partitions[0].MaxNodes = 2 }) }},
		{"more nodes", none, func(s *api.Spec) { s.Size, s.MaxNodes = 2, 1 }, func(l *limited) { l.partition(api.PartitionRequest{MinNodes: new(2)}) },
			"PartitionNodeLimit", "the job takes at most 1 node, and partition main wants 2", func(l *limited) { l.partition(api.PartitionRequest{MinNodes: new(0)}) }},
		{"other users", none, func(*api.Spec) {}, func(l *limited) { l.partition(api.PartitionRequest{AllowUsers: &[]string{"bob"}}) },
			"AccountNotAllowed", "partition main is not open to ada: it is for users bob", func(l *limited) { l.partition(api.PartitionRequest{AllowUsers: &[]string{"bob", "ada"}}) }},
		{"other groups", none, func(*api.Spec) {}, func(l *limited) { l.partition(api.PartitionRequest{AllowGroups: &[]string{"guests"}}) },
			"AccountNotAllowed", "partition main is not open to ada: it is for groups guests", func(l *limited) { l.partition(api.PartitionRequest{AllowGroups: &[]string{"ALL"}}) }},
		{"another group of his", func(l *limited) { l.partition(api.PartitionRequest{AllowGroups: &[]string{"staff"}}) }, func(*api.Spec) {}, func(l *limited) { l.regroup() },
			"AccountNotAllowed", "it is for groups staff", func(l *limited) { l.regroup("staff") }},
		{"another name of its own", func(l *limited) { l.partition(api.PartitionRequest{AllowUsers: &[]string{"ada"}}) }, func(*api.Spec) {}, func(l *limited) { l.do(gang.Named{UID: 1000, User: "zoe"}) },
			"AccountNotAllowed", "partition main is not open to zoe", func(l *limited) { l.do(gang.Named{UID: 1000, User: "ada"}) }},
		{"other accounts", none, func(*api.Spec) {}, func(l *limited) { l.partition(api.PartitionRequest{AllowAccounts: &[]string{"proj"}}) },
			"AccountNotAllowed", "partition main is not open to account lab: it is for accounts proj", func(l *limited) { l.partition(api.PartitionRequest{AllowAccounts: &[]string{"lab"}}) }},
		{"his account is denied, by the file", none, func(*api.Spec) {}, func(l *limited) { l.edit(func(p *order.Policy) { p.Partitions[0].DenyAccounts = []string{"lab"} }) },
			"AccountNotAllowed", "it is closed to accounts lab", func(l *limited) { l.edit(func(p *order.Policy) { p.Partitions[0].DenyAccounts = nil }) }},
		{"no partition any more", none, func(s *api.Spec) { s.Partition = "night" }, func(l *limited) { l.edit(func(p *order.Policy) { p.Partitions = p.Partitions[:1] }) },
			"PartitionInactive", "partition night is not there any more", func(l *limited) {
				l.edit(func(p *order.Policy) { p.Partitions = append(p.Partitions, api.Partition{Name: "night"}) })
			}},
		{"fewer cards of a user", none, func(s *api.Spec) { s.GPUsPerRank = 2 }, func(l *limited) { l.edit(func(p *order.Policy) { p.UserCards = 1 }) },
			"QOSMaxGRESPerUser", "ada has 0 cards and asks for 2 more, at most 1", func(l *limited) { l.edit(func(p *order.Policy) { p.UserCards = 2 }) }},
		{"fewer cards of an account", none, func(s *api.Spec) { s.GPUsPerRank = 2 }, func(l *limited) { l.edit(func(p *order.Policy) { p.Accounts[0].Cards = 1 }) },
			"AssocGrpGRES", "account lab has 0 cards and 2 more are asked for", func(l *limited) { l.edit(func(p *order.Policy) { p.Accounts[0].Cards = 0 }) }},
		{"an account of others", none, func(*api.Spec) {}, func(l *limited) { l.edit(func(p *order.Policy) { p.Accounts[0].Users = []string{"bob"} }) },
			"InvalidAccount", "account lab is not open to ada any more", func(l *limited) { l.edit(func(p *order.Policy) { p.Accounts[0].Users = []string{"ada"} }) }},
		{"no account any more", none, func(s *api.Spec) { s.Account = "proj" }, func(l *limited) { l.edit(func(p *order.Policy) { p.Accounts = p.Accounts[:1] }) },
			"InvalidAccount", "account proj is not there any more", func(l *limited) {
				l.edit(func(p *order.Policy) { p.Accounts = append(p.Accounts, order.Account{Name: "proj"}) })
			}},
		{"a reservation of others", talk, inTalk, func(l *limited) { l.reserve(true, api.ReservationRequest{Name: "talk", Users: &[]string{"bob"}}) },
			"Reservation", "reservation talk is not for ada", func(l *limited) { l.reserve(true, api.ReservationRequest{Name: "talk", Users: &[]string{"ada"}}) }},
		{"a reservation of later", talk, inTalk, func(l *limited) {
			l.reserve(true, api.ReservationRequest{Name: "talk", Start: new(time.Now().Add(hour)), Duration: new(2 * hour)})
		},
			"Reservation", "begins", func(l *limited) {
				l.reserve(true, api.ReservationRequest{Name: "talk", Start: new(time.Now()), Duration: new(2 * hour)})
			}},
		{"no reservation any more", talk, inTalk, func(l *limited) { l.do(gang.DropReservation{Name: "talk", By: "root"}) },
			"ReservationDeleted", "its reservation talk is not there any more", talk},
		{"maintenance on all nodes", none, func(*api.Spec) {}, func(l *limited) {
			l.reserve(false, api.ReservationRequest{Name: "fix", Start: new(time.Now()), Duration: new(2 * hour), Nodes: &[]string{"n1", "n2"}, Flags: &[]api.ReservationFlag{api.FlagMaint}})
		}, "ReqNodeNotAvail", "reservation fix", func(l *limited) { l.do(gang.DropReservation{Name: "fix", By: "root"}) }},
		{"another partition of its own", func(l *limited) { l.partition(api.PartitionRequest{Name: "night", State: new(api.PartitionDown)}) }, func(*api.Spec) {},
			func(l *limited) { l.do(gang.Update{Job: 1, Partition: new("night")}) }, "PartitionDown", "partition night is down", func(l *limited) { l.do(gang.Update{Job: 1, Partition: new("main")}) }},
	} {
		t.Run(c.what, func(t *testing.T) {
			l := newLimited(t)
			c.first(l)
			s := spec(1)
			s.TimeLimit, s.Hold = hour, true
			c.spec(&s)
			id := l.submit("", s)
			c.change(l)
			l.do(gang.Release{Job: id, Admin: true})
			if got := l.state(id); got != api.JobPending {
				t.Fatalf("it is %s", got)
			}
			why, err := l.Explain(t.Context(), l.view.job(id))
			if err != nil || why.Reason != c.word || !strings.Contains(why.Why, c.text) {
				t.Errorf("%s: %q, %v; want %s: %q", why.Reason, why.Why, err, c.word, c.text)
			}
			if shown := l.show(l.view.job(id), false); shown.Reason != c.word {
				t.Errorf("in a list: %s", shown.Reason)
			}
			// Who submits the same now is refused, or waits for the same.
			s.Hold = false
			reply, err := l.Submit(t.Context(), &api.SubmitRequest{Key: "again", Spec: s}, me)
			if err == nil {
				if got := l.state(reply.JobID); !strings.HasSuffix(c.what, "of its own") && got != api.JobPending {
					t.Errorf("the same, submitted now, is %s", got)
				}
				l.do(gang.Cancel{Job: reply.JobID, By: "ada"})
			}
			c.back(l)
			if got := l.state(id); got != api.JobReserved {
				why, _ := l.Explain(t.Context(), l.view.job(id))
				t.Errorf("afterwards it is %s: %+v", got, why)
			}
		})
	}
}

// TestPartitionsRefuse: what a partition does not allow is refused at the submission by a sentence and Slurm's reason, and one of
// several partitions that allows it is enough.
func TestPartitionsRefuse(t *testing.T) {
	l := newLimited(t)
	l.partition(api.PartitionRequest{Name: "night", AllowUsers: &[]string{"bob"}, AllowGroups: &[]string{"guests"}})
	l.partition(api.PartitionRequest{AllowAccounts: &[]string{"lab"}, MinNodes: new(1), MaxNodes: new(1)})
	for _, c := range []struct {
		spec   func(s *api.Spec)
		reason api.Reason
		err    string
	}{
		{func(*api.Spec) {}, "", ""},
		{func(s *api.Spec) { s.Partition = "night" }, api.ReasonPartitionAccess, "partition night is not open to ada: it is for users bob and groups guests; ginfo -s lists the others; gctl show partition says who may use which"},
		{func(s *api.Spec) { s.Partition = "night,main" }, "", ""},
		{func(s *api.Spec) { s.Account = "proj" }, api.ReasonPartitionAccount, "partition main is not open to account proj: it is for accounts lab; name another account with --account, or another partition"},
		{func(s *api.Spec) { s.Size, s.MinNodes = 2, 2 }, api.ReasonPartitionNodes, "the job takes at least 2 nodes, and partition main allows 1; ask for --nodes=1 or fewer, or for another partition"},
		{func(s *api.Spec) { s.Size = 8 }, "", "8 ranks do not fit on exactly 1 node, though every node were empty: each rank needs 1 CPU; ask for --size=4 or less"},
	} {
		s := spec(1)
		s.Hold = true
		c.spec(&s)
		_, err := l.Submit(t.Context(), &api.SubmitRequest{Spec: s}, me)
		if errText(err) != c.err || api.ReasonOf(err) != c.reason {
			t.Errorf("%+v: %s: %v\nwant %s: %s", s, api.ReasonOf(err), err, c.reason, c.err)
		}
	}
	root := Caller{User: "root", Admin: true}
	for _, c := range []struct {
		ask api.PartitionRequest
		err string
	}{
		{api.PartitionRequest{Name: "main", AllowAccounts: &[]string{"labs"}}, `no account "labs"; did you mean lab?`},
		{api.PartitionRequest{Name: "main", MinNodes: new(3), MaxNodes: new(2)}, "the fewest nodes of a job in partition main, 3, are above its most, 2"},
		{api.PartitionRequest{Name: "main", MinNodes: new(2)}, "the fewest nodes of a job in partition main, 2, are above its most, 1"},
	} {
		if err := l.PutPartition(t.Context(), &c.ask, true, root); errText(err) != c.err {
			t.Errorf("%+v: %v, want %s", c.ask, err, c.err)
		}
	}
}

// TestGroupsAreLookedUpAgain: whoever is of another group than when he submitted is judged by it, and who can't be looked up stays of those that he was of.
func TestGroupsAreLookedUpAgain(t *testing.T) {
	l := newLimited(t)
	l.partition(api.PartitionRequest{AllowGroups: &[]string{"staff", "guests"}})
	s := spec(1)
	s.Hold = true
	id := l.submit("", s)
	if got := l.toldGroups()[1000]; !slices.Equal(got, []string{"staff"}) {
		t.Fatalf("of %v", got)
	}
	l.answer(nil, context.DeadlineExceeded)
	if of := l.regrouped(t.Context()); len(of) > 0 {
		t.Errorf("a directory that does not answer: %v", of)
	}
	if _, err := l.Submit(t.Context(), &api.SubmitRequest{Spec: s}, me); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("who submits then: %v", err)
	}
	l.answer(nil, nil)
	of := l.regrouped(t.Context())
	if len(of) != 1 || len(of[1000]) != 0 {
		t.Fatalf("of no group any more: %v", of)
	}
	l.do(gang.Groups{Of: of})
	l.do(gang.Release{Job: id, Admin: true})
	if why, err := l.Explain(t.Context(), l.view.job(id)); err != nil || why.Reason != gang.WordPartitionAccess {
		t.Errorf("%+v, %v", why, err)
	}
}
