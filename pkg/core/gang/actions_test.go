package gang

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
)

func (s *story) node() *simNode { return rapid.SampledFrom(s.nodes).Draw(s.rt, "node") }

func (s *story) job() int64 { return rapid.Int64Range(1, max(s.w.jobs.nextID, 2)).Draw(s.rt, "job") }

func (s *story) member(n *simNode) *simMember {
	if len(n.members) == 0 {
		s.rt.Skip("nothing there")
	}
	k := rapid.SampledFrom(slices.SortedFunc(maps.Keys(n.members), api.MemberKey.Compare)).Draw(s.rt, "member")
	return n.members[k]
}

func (s *story) submitAny(t *rapid.T) {
	spec := specOf(rapid.IntRange(1, 4).Draw(t, "size"))
	spec.NoRequeue = rapid.IntRange(0, 5).Draw(t, "no requeue") == 0
	if rapid.IntRange(0, 3).Draw(t, "batch") == 0 {
		spec.Launch = api.LaunchBatch
	}
	if spec.Launch == api.LaunchRanks && rapid.IntRange(0, 2).Draw(t, "roles") == 0 {
		first := rapid.IntRange(1, spec.Size).Draw(t, "ranks of the first role")
		spec.Roles = []api.Role{{Name: "head", Count: first, CPUsPerRank: 1, EndsGang: rapid.Bool().Draw(t, "head ends")}}
		if first < spec.Size {
			spec.Roles = append(spec.Roles, api.Role{Name: "rest", Count: spec.Size - first, CPUsPerRank: 1, EndsGang: rapid.Bool().Draw(t, "rest ends")})
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "ready gate") == 0 {
		spec.ReadyTimeout = 2 * time.Minute
	}
	if rapid.Bool().Draw(t, "retries") {
		spec.MaxRetries = intPtr(rapid.IntRange(0, 2).Draw(t, "max retries"))
	}
	if rapid.IntRange(0, 3).Draw(t, "notice") == 0 {
		spec.Notice = &api.Notice{Signal: "USR1", Lead: 20 * time.Second}
	}
	if s.nextID > 1 && rapid.IntRange(0, 2).Draw(t, "depends") == 0 {
		spec.Dependency = s.anyDependency(t)
		spec.InvalidDependency = rapid.SampledFrom([]string{"", api.InvalidCancel, api.InvalidWait}).Draw(t, "invalid")
	}
	ev := Submit{Spec: spec, SpecHash: fmt.Sprint("h", s.nextID), Partition: "main", Key: rapid.SampledFrom([]string{"", "k1", "k2", "k3"}).Draw(t, "key")}
	if rapid.IntRange(0, 4).Draw(t, "array") == 0 {
		ev.Array = &api.Array{Indices: []int{1, 2, 3}, Limit: rapid.IntRange(0, 2).Draw(t, "limit")}
	}
	if rapid.IntRange(0, 3).Draw(t, "deadline") == 0 {
		spec.Deadline = s.now.Wall.Add(time.Duration(rapid.IntRange(-1, 30).Draw(t, "deadline in minutes")) * time.Minute)
	}
	if n := rapid.IntRange(0, 4).Draw(t, "licences"); n > 2 {
		spec.Pools = []api.Pool{{Kind: "licence", Name: "l", Count: n - 2}}
	}
	spec.TimeMin = time.Duration(rapid.IntRange(0, 3).Draw(t, "least minutes")) * time.Minute
	ev.TimeLimit = time.Duration(rapid.IntRange(0, 3).Draw(t, "limit of")*10) * time.Minute
	before := s.w.jobs.nextID
	out := s.do(ev)
	if out.Applied && out.JobIDs[0] != before || !out.Applied && s.w.jobs.nextID != before {
		s.rt.Fatalf("ids %v, next was %d", out.JobIDs, before)
	}
}

// cronAny puts a table of some of three lines.
func (s *story) cronAny(t *rapid.T) {
	ev := PutCrontab{User: "ada", By: "ada"}
	for i, n := range rapid.SliceOfN(rapid.IntRange(0, 2), 0, 3).Draw(t, "lines") {
		l := cronLine(i+1, []string{"* * * * *", "*/5 * * * *", "@hourly"}[n], "", fmt.Sprint("cron", n))
		l.Submit.Spec.MaxRetries = intPtr(n)
		ev.Lines, ev.Text = append(ev.Lines, l), ev.Text+l.Submit.Spec.Cron.Schedule+" x\n"
	}
	s.do(ev)
}

func (s *story) updateAny(t *rapid.T) {
	ev := Update{Job: s.job()}
	if rapid.Bool().Draw(t, "name") {
		ev.Name = new(rapid.SampledFrom([]string{"job", "other"}).Draw(t, "as"))
	}
	if rapid.Bool().Draw(t, "time") {
		ev.TimeLimit = new(time.Duration(rapid.IntRange(0, 3).Draw(t, "hours")) * time.Hour)
	}
	if rapid.Bool().Draw(t, "priority") {
		ev.Priority = new(rapid.Int64Range(-2, 2).Draw(t, "to"))
	}
	if rapid.IntRange(0, 3).Draw(t, "begin") == 0 {
		ev.Begin = new(s.now.Wall.Add(time.Duration(rapid.IntRange(-1, 2).Draw(t, "minutes")) * time.Minute))
	}
	if rapid.IntRange(0, 2).Draw(t, "deadline") == 0 {
		ev.Deadline = new(s.now.Wall.Add(time.Duration(rapid.IntRange(-1, 60).Draw(t, "in minutes")) * time.Minute))
		if rapid.IntRange(0, 3).Draw(t, "no deadline") == 0 {
			ev.Deadline = new(time.Time{})
		}
	}
	if rapid.Bool().Draw(t, "limit") {
		ev.ArrayLimit = new(rapid.IntRange(0, 3).Draw(t, "elements"))
	}
	if s.nextID > 1 && rapid.Bool().Draw(t, "depends") {
		ev.Dependency = s.anyDependency(t)
		if rapid.Bool().Draw(t, "none") {
			ev.Dependency.On = nil
		}
	}
	s.do(ev)
}

func (s *story) anyDependency(t *rapid.T) *api.Dependency {
	d := &api.Dependency{Any: rapid.Bool().Draw(t, "any")}
	for range rapid.IntRange(1, 3).Draw(t, "conditions") {
		c := api.Condition{Kind: rapid.SampledFrom(api.DependencyKinds).Draw(t, "kind")}
		if c.Kind != api.AfterSingle {
			c.Job = rapid.Int64Range(max(1, s.nextID-6), s.nextID-1).Draw(t, "on")
			if rapid.IntRange(0, 3).Draw(t, "element") == 0 {
				c.Index = intPtr(rapid.IntRange(0, 3).Draw(t, "index"))
			}
		}
		if c.Kind == api.After {
			c.Delay = time.Duration(rapid.IntRange(0, 2).Draw(t, "delay")) * time.Minute
		}
		d.On = append(d.On, c)
	}
	return d
}

func (s *story) reserveAny(t *rapid.T) {
	var ids []int64
	for j := range s.w.Jobs() {
		if s.w.Candidate(j.ID) != nil {
			ids = append(ids, j.ID)
		}
	}
	if len(ids) == 0 || rapid.IntRange(0, 9).Draw(t, "any job") == 0 {
		ids = []int64{s.job()}
	}
	r := Admit{Job: rapid.SampledFrom(ids).Draw(t, "candidate")}
	size := 1
	if j := s.w.Job(r.Job); j != nil {
		size = len(j.Ranks)
	}
	if rapid.IntRange(0, 4).Draw(t, "cut") == 0 {
		r.TimeLimit = time.Duration(rapid.IntRange(0, 30).Draw(t, "to minutes")) * time.Minute
	}
	for range size {
		r.Slots = append(r.Slots, cluster.Slot{Node: s.node().name})
	}
	s.do(r)
}

// watchAny says something of a member's watchdogs, true or not: all that it may do is to end
// the epoch that it speaks of.
func (s *story) watchAny(t *rapid.T) {
	n := s.node()
	m := s.member(n)
	ev := Watched{Job: m.Job, Epoch: m.Epoch, Node: n.name}
	as := s.w.Desired(n.name)
	for _, a := range as {
		if a.MemberKey == m.MemberKey && a.Check != nil {
			ev.Watch.Round = a.Check.Round
		}
	}
	ev.Silent = rapid.SliceOfN(rapid.IntRange(-1, 5), 0, 2).Draw(t, "silent")
	state := rapid.SampledFrom([]api.CardsState{api.CardsQuiet, api.CardsQuiet, api.CardsBusy, api.CardsUnknown, "new"}).Draw(t, "cards")
	ev.Watch.Finding = &api.Finding{State: state, Count: 1, Readings: 3}
	if rapid.IntRange(0, 9).Draw(t, "hung") == 0 {
		ev.Watch.Hung, ev.Watch.Window = true, ev.Watch.Finding
	}
	ev.Watch.Idle = rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "idle")
	s.do(ev)
}

func (s *story) actions() map[string]func(*rapid.T) {
	reserve := func(t *rapid.T) { s.reserveAny(t) }
	obey := func(t *rapid.T) { s.obey(s.node()) }
	deliver := func(t *rapid.T) { s.deliver(t) }
	return map[string]func(*rapid.T){
		"submit": func(t *rapid.T) { s.submitAny(t) },
		"watch":  func(t *rapid.T) { s.watchAny(t) }, "watch2": func(t *rapid.T) { s.watchAny(t) },
		"reserve": reserve, "reserve2": reserve, "obey": obey, "obey2": obey, "obey3": obey,
		"deliver": deliver, "deliver2": deliver, "deliver3": deliver,
		"prepare": func(t *rapid.T) { s.prepareAny(t) }, "prepare2": func(t *rapid.T) { s.prepareAny(t) },
		"launch": func(t *rapid.T) { s.launch(t) }, "launch2": func(t *rapid.T) { s.launch(t) },
		"echo": func(t *rapid.T) { s.echo(t) }, "echo2": func(t *rapid.T) { s.echo(t) }, "echo3": func(t *rapid.T) { s.echo(t) },
		"settle": func(t *rapid.T) { s.settleDown() }, "settle2": func(t *rapid.T) { s.settleDown() },
		"lose a node": func(t *rapid.T) {
			n := s.node()
			if !n.session || len(n.members) == 0 {
				t.Skip()
			}
			s.cut(n)
			s.pass(31 * time.Second)
			s.settleDown()
			s.launch(t)
		},
		"all is well": func(t *rapid.T) { s.calm() },
		"exit":        func(t *rapid.T) { s.exitAny(t) },
		"stop by itself": func(t *rapid.T) {
			n := s.node()
			m := s.member(n)
			if m.Phase != api.PhaseRunning {
				t.Skip()
			}
			m.end(143, rapid.SampledFrom([]api.Cause{api.CauseTimeout, api.CauseStalled, api.CauseOOM}).Draw(t, "why"))
			n.tell(m)
		},
		"shim dies": func(t *rapid.T) {
			n := s.node()
			m := s.member(n)
			m.live, m.Phase = map[int]bool{}, api.PhaseLost
			n.tell(m)
		},
		"cut": func(t *rapid.T) {
			if n := s.node(); n.session {
				s.cut(n)
			}
		},
		"connect": func(t *rapid.T) { s.connect(s.node()) },
		"reboot": func(t *rapid.T) {
			n := s.node()
			if n.session {
				s.cut(n)
			}
			n.boot++
			n.members = map[api.MemberKey]*simMember{}
		},
		"time": func(t *rapid.T) {
			s.pass(rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, 16 * time.Second, 31 * time.Second, 3 * time.Minute, 6 * time.Minute}).Draw(t, "d"))
		},
		"cancel": func(t *rapid.T) {
			id := s.job()
			if out := s.do(Cancel{Job: id, Now: rapid.Bool().Draw(t, "now")}); out.Applied {
				s.cancelled[id] = s.w.Job(id).Epoch
			}
		},
		"preempt": func(t *rapid.T) { s.do(Preempt{Job: s.job(), For: "job 0"}) },
		"ready": func(t *rapid.T) {
			if j := s.w.Job(s.job()); j != nil {
				s.do(Ready{Job: j.ID, Epoch: j.Epoch - rapid.IntRange(0, 1).Draw(t, "old"), Ranks: []int{0, 1, rapid.IntRange(-1, 9).Draw(t, "rank")}})
			}
		},
		"requeue": func(t *rapid.T) { s.do(Requeue{Job: s.job()}) },
		"requeue ended": func(t *rapid.T) {
			s.do(Requeue{Job: s.job(), Ended: true, Hold: rapid.SampledFrom([]string{"", HeldUser}).Draw(t, "hold")})
		},
		"update":  func(t *rapid.T) { s.updateAny(t) },
		"cron":    func(t *rapid.T) { s.cronAny(t) },
		"hold":    func(t *rapid.T) { s.do(Hold{Job: s.job(), Admin: rapid.Bool().Draw(t, "admin")}) },
		"release": func(t *rapid.T) { s.do(Release{Job: s.job(), Admin: true}) },
		"drain node": func(t *rapid.T) {
			ev := NodeDrain{Node: s.node().name, Reason: "disk"}
			if rapid.Bool().Draw(t, "with a deadline") {
				ev.By = s.now.Wall.Add(time.Duration(rapid.IntRange(-10, 60).Draw(t, "in seconds")) * time.Second)
			}
			s.do(ev)
		},
		"ask for a reboot": func(t *rapid.T) {
			s.do(NodeReboot{Node: s.node().name, By: "root", Asap: rapid.Bool().Draw(t, "asap"),
				Then: rapid.SampledFrom([]api.RebootThen{api.RebootAsBefore, api.RebootResume, api.RebootDown}).Draw(t, "then")})
		},
		"cancel a reboot": func(t *rapid.T) { s.do(NodeRebootCancel{Node: s.node().name}) },
		"obey a reboot":   func(t *rapid.T) { s.rebootAsTold(t, s.node()) },
		"resume node":     func(t *rapid.T) { s.do(NodeResume{Node: s.node().name}) },
		"fence node": func(t *rapid.T) {
			n := s.node()
			if s.w.Node(n.name).State == api.NodeLost {
				n.members = map[api.MemberKey]*simMember{} // a person's word is true
				s.do(NodeFence{Node: n.name})
			}
		},
		"forget node": func(t *rapid.T) {
			n := s.node()
			if w := s.w.Node(n.name); w != nil && w.State == api.NodeLost && len(w.Left) == 0 && len(n.members) == 0 {
				s.do(NodeForget{Node: n.name})
				if s.w.Node(n.name) == nil {
					s.connect(n) // the property speaks of nodes that are known
				}
			}
		},
		"sample": func(t *rapid.T) {
			n := s.node()
			s.do(NodeSample{Node: n.name, Cards: []api.CardSample{{UUID: "GPU-" + n.name + "-0", StrangersBytes: int64(rapid.IntRange(0, 2).Draw(t, "gib")) << 30,
				Unhealthy: rapid.SampledFrom([]string{"", "xid 79"}).Draw(t, "bad")}}})
		},
		"restart": func(t *rapid.T) {
			if rapid.IntRange(0, 3).Draw(t, "really") == 0 {
				s.restart()
			}
		},
	}
}

// rebootAsTold is a node that does what it was told, or says why it can't. Nothing that runs ends by that.
func (s *story) rebootAsTold(t *rapid.T, n *simNode) {
	o := RebootOrder(s.w.Node(n.name))
	if o == nil || !n.session || o.Boot != fmt.Sprint("boot-", n.boot) {
		t.Skip()
	}
	for _, m := range n.members {
		if len(m.live) > 0 {
			s.rt.Fatalf("%s is told to reboot while ranks of job %d run there", n.name, m.Job)
		}
	}
	if rapid.IntRange(0, 2).Draw(t, "can't") == 0 {
		n.send(api.Actual{Reboot: &api.RebootActual{RebootOrder: *o, Failed: "no power"}})
		return
	}
	s.cut(n)
	n.boot++
	n.members = map[api.MemberKey]*simMember{}
}

// echo brings something that was said before once more.
func (s *story) echo(t *rapid.T) {
	n := s.node()
	if len(n.said) == 0 || !n.session {
		t.Skip()
	}
	s.do(NodeReport{Node: n.name, Actual: rapid.SampledFrom(n.said).Draw(t, "said")})
}

// deliver brings a report, any of those under way; once or twice.
func (s *story) deliver(t *rapid.T) {
	n := s.node()
	if len(n.outbox) == 0 || !n.session {
		t.Skip()
	}
	i := rapid.IntRange(0, len(n.outbox)-1).Draw(t, "which")
	a := n.outbox[i]
	if rapid.IntRange(0, 3).Draw(t, "keep") > 0 {
		n.outbox = slices.Delete(n.outbox, i, i+1)
	}
	s.do(NodeReport{Node: n.name, Actual: a})
	if out := s.do(NodeReport{Node: n.name, Actual: a}); out.Applied {
		s.rt.Fatalf("a repeat changed something: %+v", a)
	}
}

// launch brings a candidate to its start on nodes that all work: without it few histories
// would get to what happens after.
func (s *story) launch(t *rapid.T) {
	s.reserveAny(t)
	for range 3 {
		for _, n := range s.nodes {
			if !n.session {
				continue
			}
			s.obey(n)
			for _, k := range slices.SortedFunc(maps.Keys(n.members), api.MemberKey.Compare) {
				if m := n.members[k]; m.Phase == api.PhasePreparing {
					m.Phase = api.PhaseReady
					s.prepared[fmt.Sprint(n.name, k)] = true
					n.tell(m)
				}
			}
			for len(n.outbox) > 0 {
				a := n.outbox[0]
				n.outbox = n.outbox[1:]
				s.do(NodeReport{Node: n.name, Actual: a})
			}
		}
	}
}

func (s *story) prepareAny(t *rapid.T) {
	n := s.node()
	m := s.member(n)
	if m.Phase != api.PhasePreparing {
		t.Skip()
	}
	m.Phase = api.PhaseReady
	s.prepared[fmt.Sprint(n.name, m.MemberKey)] = true
	if k := rapid.IntRange(0, 9).Draw(t, "refuses"); k == 0 {
		m.Phase, m.Refusal = api.PhaseRefused, &api.Refusal{Text: "no", Blame: rapid.SampledFrom(blames).Draw(t, "whose fault")}
	}
	n.tell(m)
}

func (s *story) exitAny(t *rapid.T) {
	n := s.node()
	m := s.member(n)
	if len(m.live) == 0 {
		t.Skip()
	}
	r := rapid.SampledFrom(slices.Sorted(maps.Keys(m.live))).Draw(t, "rank")
	m.exit(r, rapid.SampledFrom([]int{0, 0, 0, 1, 128 + sigKill, 128 + sigTerm}).Draw(t, "code"))
	if len(m.live) == 0 {
		m.Phase = api.PhaseStopped
	}
	n.tell(m)
}
