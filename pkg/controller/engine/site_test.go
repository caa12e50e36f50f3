package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/notify"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/disk"
)

// TestZones: a zone is read once, the site's own has no name, and one that is not known is looked for again.
func TestZones(t *testing.T) {
	zone := zones()
	if zone("") != time.Local {
		t.Error("without a name it is not the controller's own")
	}
	if z := zone("Europe/Berlin"); z == nil || z.String() != "Europe/Berlin" || zone("Europe/Berlin") != z {
		t.Errorf("%v, and then %v", z, zone("Europe/Berlin"))
	}
	for range 2 {
		if z := zone("Mars/Olympus"); z != nil {
			t.Errorf("%v", z)
		}
	}
}

// TestCrontab: the lines of a table become jobs, which come again at their times; a table that does not fit its jobs is refused with the line.
func TestCrontab(t *testing.T) {
	r := atNoon(t, func(*Options) {})
	ada := Caller{UID: 1000, User: "ada"}
	put := func(text string, jobs ...api.CronJob) (*api.CrontabReply, error) {
		return r.PutCrontab(t.Context(), &api.CrontabRequest{Text: text, Jobs: jobs}, ada, "root")
	}
	line := func(first, last int, edit func(*api.Spec)) api.CronJob {
		s := spec(1)
		edit(&s)
		return api.CronJob{First: first, Last: last, Spec: s}
	}
	plain := func(*api.Spec) {}
	const table = "CRON_TZ=UTC\n#GANG --time=1\n0 13 * * * a\n30 14 * * * b\n"
	for _, c := range []struct {
		text    string
		jobs    []api.CronJob
		want    string
		subject string
	}{
		{"x y\n", nil, "", "1-1"},
		{table, nil, "the table has 2 lines with a time, and jobs for 0, or for others", ""},
		{table, []api.CronJob{line(2, 3, plain), line(3, 4, plain)}, "the table has 2 lines with a time, and jobs for 2, or for others", ""},
		{table, []api.CronJob{line(2, 3, plain), line(4, 5, plain)}, "the table has 2 lines with a time, and jobs for 2, or for others", ""},
		{table, []api.CronJob{line(2, 3, plain), line(4, 4, func(s *api.Spec) { s.Begin = noon })}, "--begin does not go with a line of a cron table, which is due again and again", "4-4"},
	} {
		_, err := put(c.text, c.jobs...)
		if err == nil || c.want != "" && err.Error() != c.want {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
		var e *api.Error
		if errors.As(err, &e); e.Code != api.CodeInvalid || e.Subject != c.subject || (c.subject != "") != (e.Reason == api.ReasonCronLine) {
			t.Errorf("%q: %+v, want lines %s", c.text, e, c.subject)
		}
	}
	if got := r.Crontab("ada"); got.User != "ada" || got.Text != "" || got.Lines == nil || len(got.Lines) != 0 || got.SchemaVersion != api.SchemaVersion {
		t.Errorf("of nobody's table: %+v", got)
	}
	got, err := put(table, line(2, 3, plain), line(4, 4, func(s *api.Spec) { s.Switches = 1 }))
	if err != nil {
		t.Fatal(err)
	}
	now := noon.Add(time.Millisecond)
	want := &api.CrontabReply{SchemaVersion: api.SchemaVersion, Warnings: []string{"line 3: no node has joined this cluster yet: the job waits for the first one that fits",
		"line 4: --switches has no effect: the site names no switches", "line 4: no node has joined this cluster yet: the job waits for the first one that fits"},
		Crontab: api.Crontab{User: "ada", Text: table, By: "root", Time: now, Lines: []api.CronLine{
			{First: 2, Last: 3, JobID: 1, Cron: api.Cron{Schedule: "0 13 * * *", Zone: "UTC"}, Next: noon.Add(time.Hour)},
			{First: 4, Last: 4, JobID: 2, Cron: api.Cron{Schedule: "30 14 * * *", Zone: "UTC"}, Next: noon.Add(150 * time.Minute)}}}}
	differs(t, "the table", got, want)
	if _, err := r.Act(t.Context(), "hold", &api.ActionRequest{JobQuery: byID(2)}, ada, anyone); err != nil {
		t.Fatal(err)
	}
	want.Warnings, want.Lines[1].Next = nil, time.Time{}
	differs(t, "with one that is held", r.Crontab("ada"), want)
	runs := r.view.job(1).Copy()
	runs.Ranks = []gang.Rank{{State: api.RankRunning}}
	r.view.mu.Lock()
	r.view.putJob(runs)
	r.view.mu.Unlock()
	want.Lines[0].Next = time.Time{}
	differs(t, "with one that runs", r.Crontab("ada"), want)
	if got := ofLine(1, 2, errLeft); errText(got) != "left" || errLeft.Subject != "" {
		t.Errorf("%v, and the error itself became %+v", got, errLeft)
	}
	if plain := errors.New("x"); ofLine(1, 2, plain) != plain {
		t.Error("an error of another kind is another")
	}
}

// TestPartitionsAtRunTime: one that is made takes jobs, one that is taken away does not, and the configuration's hold again when a person says so.
func TestPartitionsAtRunTime(t *testing.T) {
	r := newRig(t, disk.Open(t))
	root := Caller{User: "root", Admin: true}
	names := func() (out []string) {
		for _, p := range r.ShowNodes().Partitions {
			out = append(out, p.Name+" "+string(p.State))
		}
		return out
	}
	has := func(want ...string) {
		t.Helper()
		if got := names(); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if err := r.PutPartition(t.Context(), &api.PartitionRequest{Name: "a b"}, false, root); errText(err) != `partition name "a b": want 1 to 64 letters, digits, '_', '.' and '-'` {
		t.Errorf("%v", err)
	}
	if err := r.PutPartition(t.Context(), &api.PartitionRequest{Name: "night"}, true, root); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("a change of none: %v", err)
	}
	if err := r.PutPartition(t.Context(), &api.PartitionRequest{Name: "night"}, false, root); err != nil {
		t.Error(err)
	}
	if err := r.PutPartition(t.Context(), &api.PartitionRequest{Name: "night"}, false, root); err == nil {
		t.Error("it was made twice")
	}
	if err := r.PutPartition(t.Context(), &api.PartitionRequest{Name: "night", State: new(api.PartitionDown)}, true, root); err != nil {
		t.Error(err)
	}
	up := names()[0]
	has(up, "night "+string(api.PartitionDown))
	if changes := r.ShowNodes().Changes; len(changes) != 1 || changes[0].Name != "night" || changes[0].By != "root" {
		t.Errorf("%+v", changes)
	}
	if err := r.DropPartition(t.Context(), "night", root); err != nil {
		t.Error(err)
	}
	has(up)
	if err := r.DropPartition(t.Context(), "night", root); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("twice: %v", err)
	}
	if err := r.PutPartition(t.Context(), &api.PartitionRequest{Name: "day"}, false, root); err != nil {
		t.Error(err)
	}
	if err := r.ResetPartitions(t.Context(), root); err != nil {
		t.Error(err)
	}
	has(up)
}

// TestOutboxIsShown: what waits, by address, with how the last tries went, and what was given up; of others for admins alone.
func TestOutboxIsShown(t *testing.T) {
	r := newRig(t, disk.Open(t))
	letter := func(id int64, user, to string, at int, edit func(*api.Letter)) *api.Letter {
		l := &api.Letter{ID: id, User: user, Target: "mail", To: to, Type: api.NotifyEnd, Time: noon.Add(time.Duration(at)), JobID: id}
		edit(l)
		return l
	}
	plain := func(*api.Letter) {}
	letters := []*api.Letter{letter(1, "ada", "a@x", 1, plain), letter(2, "bob", "b@x", 2, plain), letter(3, "ada", "a@x", 3, plain), letter(4, "ada", "c@x", 4, plain),
		letter(5, "ada", "a@x", 5, func(l *api.Letter) { l.Draft = true }), letter(6, "ada", "a@x", 6, func(l *api.Letter) { l.GivenUp = noon }), letter(7, "bob", "b@x", 7, func(l *api.Letter) { l.GivenUp = noon }),
		letter(8, "ada", "a@x", 8, func(l *api.Letter) { l.Type = api.NotifyReport })}
	ada := shownOutbox(letters, []notify.Line{{Address: notify.Address{User: "ada", Target: "mail", To: "c@x"}, Tries: 2, Next: noon.Add(time.Hour), Error: "no mail today"}}, Caller{User: "ada"})
	want := &api.OutboxReply{SchemaVersion: api.SchemaVersion, Lines: []api.OutboxLine{
		{User: "ada", Target: "mail", To: "a@x", Waiting: 2, Oldest: noon.Add(1)},
		{User: "ada", Target: "mail", To: "c@x", Waiting: 1, Oldest: noon.Add(4), Tries: 2, Next: noon.Add(time.Hour), Error: "no mail today"},
		{User: "ada", Target: "mail", To: "a@x", Report: true, Waiting: 1, Oldest: noon.Add(8)}}, GivenUp: []api.Letter{*letters[5]}}
	differs(t, "one's own", ada, want)
	all := shownOutbox(letters, nil, Caller{User: "root", Admin: true})
	if len(all.Lines) != 4 || len(all.GivenUp) != 2 || all.Lines[1].User != "bob" {
		t.Errorf("everybody's: %+v", all)
	}
	if got, err := r.Outbox(t.Context(), Caller{User: "ada"}); err != nil || got.Lines == nil || got.GivenUp == nil || len(got.Lines)+len(got.GivenUp) != 0 {
		t.Errorf("of nothing: %+v, %v", got, err)
	}
	if err := r.RetryOutbox(t.Context()); err != nil {
		t.Errorf("nothing was given up: %v", err)
	}
}

// TestOutboxTells: that letters have changed is told once, however often they did before anybody looks.
func TestOutboxTells(t *testing.T) {
	o := outbox{changed: make(chan struct{}, 1)}
	if o.tell(&gang.Changes{}); len(o.changed) != 0 {
		t.Error("told of a commit without letters")
	}
	for range 2 {
		if o.tell(&gang.Changes{Letters: make([]gang.LetterRow, 1)}); len(o.changed) != 1 {
			t.Error("not told of letters")
		}
	}
}

// TestRefs: a letter that was given up keeps why.
func TestRefs(t *testing.T) {
	got := refs([]*api.Letter{{ID: 3, Rev: 1}, {ID: 4}}, "no")
	differs(t, "refs", got, []gang.LetterRef{{ID: 3, Rev: 1, Error: "no"}, {ID: 4, Error: "no"}})
}

// TestTimeLimit: what partitions make of the limit that is asked for: one of those that are named has to allow it.
func TestTimeLimit(t *testing.T) {
	e := still()
	e.own.Policy.Partitions = []api.Partition{{Name: "both", Default: true, DefaultTime: time.Hour, MaxTime: 2 * time.Hour}, {Name: "most", MaxTime: 2 * time.Hour}, {Name: "none"}}
	for _, c := range []struct {
		named       string
		asked, want time.Duration
		err         string
	}{
		{"both", 0, time.Hour, ""}, {"both", time.Minute, time.Minute, ""}, {"both", 2 * time.Hour, 2 * time.Hour, ""},
		{"both", 2*time.Hour + 1, 0, "time limit 2 h is above the 2 h that partition both allows; ask for --time=120 or less (minutes)"},
		{"most", 0, 0, "time limit unlimited is above the 2 h that partition most allows; ask for --time=120 or less (minutes)"},
		{"none", 0, 0, ""}, {"none", 99 * time.Hour, 99 * time.Hour, ""}, {"both,none", 99 * time.Hour, 99 * time.Hour, ""}, {"none,both", 0, 0, ""},
	} {
		s := spec(1)
		s.Partition, s.TimeLimit = c.named, c.asked
		ev, _, err := e.resolve(t.Context(), &api.SubmitRequest{Spec: s}, me)
		if errText(err) != c.err || err == nil && ev.TimeLimit != c.want {
			t.Errorf("%s of %s: %+v, %v, want %s, %s", c.asked, c.named, ev, err, c.want, c.err)
		}
		var refused *api.Error
		if errors.As(err, &refused) && refused.Reason != api.ReasonTimeLimit {
			t.Errorf("its reason is %s", refused.Reason)
		}
	}
}

// TestPartition: a job is of the site's default one, or of those it names, of which the first decides.
func TestPartition(t *testing.T) {
	e := still()
	e.own.Policy.Partitions = []api.Partition{{Name: "main", Default: true}, {Name: "night"}, {Name: "drain", State: api.PartitionDrain}}
	for asked, c := range map[string]struct{ first, all, err string }{
		"": {"main", "main", ""}, "night": {"night", "night", ""}, "night,main": {"night", "night,main", ""},
		"main,dya":   {"", "", `no partition "dya"; partitions here: main, night, drain`},
		"main,drain": {"", "", "partition drain takes no jobs: it is drain; ginfo -s lists the others"},
	} {
		first, all, err := e.partition(&api.Spec{Partition: asked})
		if errText(err) != c.err || strings.Join(all, ",") != c.all || err == nil && first.Name != c.first {
			t.Errorf("%q: %+v of %v, %v", asked, first, all, err)
		}
	}
	var refused *api.Error
	if _, _, err := e.partition(&api.Spec{Partition: "x"}); !errors.As(err, &refused) || refused.Reason != api.ReasonPartition || refused.Subject != "x" {
		t.Errorf("%+v", refused)
	}
	e.own.Policy.Partitions[0].State = api.PartitionDrain
	if _, _, err := e.partition(&api.Spec{}); errText(err) != "partition main takes no jobs: it is drain; ginfo -s lists the others" {
		t.Errorf("the default one takes none: %v", err)
	}
	e.own.Policy.Partitions = e.own.Policy.Partitions[1:]
	if _, _, err := e.partition(&api.Spec{}); errText(err) != "no partition was asked for and the site has no default one; name one with --partition; ginfo -s lists them" {
		t.Errorf("without a default: %v", err)
	}
}

// TestComponentPartitions: each component has its own, or the job's, and the gang all of these.
func TestComponentPartitions(t *testing.T) {
	e := still()
	s := &api.Spec{Partition: "night", Roles: []api.Role{{Component: &api.Component{}}, {Component: &api.Component{Partition: "main,night"}}, {Component: &api.Component{Partition: "main"}}}}
	shared := s.Roles[0].Component
	if err := e.componentPartitions(s); err != nil || s.Partition != "night,main" || s.Roles[0].Component.Partition != "night" || s.Roles[1].Component.Partition != "main,night" || s.Roles[2].Component.Partition != "main" {
		t.Errorf("%v: %q, %+v", err, s.Partition, s.Roles)
	}
	if shared.Partition != "" {
		t.Errorf("what was asked for became %+v", shared)
	}
	s.Roles[2].Component.Partition = "x"
	if err := e.componentPartitions(s); errText(err) != `component 2: no partition "x"; partitions here: main, night` {
		t.Errorf("%v", err)
	}
	s = &api.Spec{Partition: "x", Roles: []api.Role{{}}}
	if err := e.componentPartitions(s); err != nil || s.Partition != "x" {
		t.Errorf("of no components: %v, %q", err, s.Partition)
	}
}

// TestSubmitWithinTheSite: what the site fills in, allows to some, and refuses; nothing of a refused one is kept.
func TestSubmitWithinTheSite(t *testing.T) {
	e := still()
	e.own.Policy.MaxMinRun = time.Hour
	e.own.Policy.Accounts = []order.Account{{Name: "vision", Users: []string{"ada"}}, {Name: "speech", Users: []string{"bob"}}}
	e.own.Policy.Partitions = []api.Partition{{Name: "main", Default: true, DefaultTime: time.Hour, MaxTime: 2 * time.Hour}, {Name: "night"}}
	e.own.Settings.Ports = "12000-12003"
	root := Caller{UID: 0, User: "root", Admin: true}
	const alone = "no node has joined this cluster yet: the job waits for the first one that fits"
	for _, c := range []struct {
		what     string
		edit     func(*api.SubmitRequest)
		who      Caller
		err      string
		priority int64
		limit    time.Duration
		warnings []string
	}{
		{"as it is", func(*api.SubmitRequest) {}, me, "", 0, time.Hour, []string{alone}},
		{"nice", func(r *api.SubmitRequest) { r.Spec.Nice = 5 }, me, "", -5, time.Hour, []string{alone}},
		{"of an admin", func(r *api.SubmitRequest) { r.Spec.Nice, r.Spec.Priority = 5, new(int64(100)) }, root, "", 95, time.Hour, []string{alone}},
		{"below 0", func(r *api.SubmitRequest) { r.Spec.Priority = new(int64(-3)) }, me, "", -3, time.Hour, []string{alone}},
		{"not nice", func(r *api.SubmitRequest) { r.Spec.Nice = -5 }, root, "", 5, time.Hour, []string{alone}},
		{"in another", func(r *api.SubmitRequest) { r.Spec.Partition = "night" }, me, "", 0, 0, []string{alone}},
		{"switches", func(r *api.SubmitRequest) { r.Spec.Switches = 1 }, me, "", 0, time.Hour, []string{"--switches has no effect: the site names no switches", alone}},
		{"an hour of its own", func(r *api.SubmitRequest) { r.Spec.MinRun = time.Hour }, me, "", 0, time.Hour, []string{alone}},
		{"more", func(r *api.SubmitRequest) { r.Spec.MinRun = time.Hour + 1 }, me, "the minimum run of 1 h is above the 1 h that this site allows; ask for --min-run=3600 or less (seconds)", 0, 0, nil},
		{"too long", func(r *api.SubmitRequest) { r.Spec.TimeLimit = 3 * time.Hour }, me, "time limit 3 h is above the 2 h that partition main allows; ask for --time=120 or less (minutes)", 0, 0, nil},
		{"another's account", func(r *api.SubmitRequest) { r.Spec.Account = "speech" }, me, "account speech is not open to ada; open to ada: vision", 0, 0, nil},
		{"a bad feature", func(r *api.SubmitRequest) { r.Spec.Constraint = "a&" }, me, "*", 0, 0, nil},
		{"a bad preferred feature", func(r *api.SubmitRequest) { r.Spec.Prefer = "a&" }, me, "*", 0, 0, nil},
		{"a bad feature of a role", func(r *api.SubmitRequest) {
			r.Spec.Roles = []api.Role{{Name: "a", Count: 1, CPUsPerRank: 1, Constraint: "a&"}}
		}, me, "*", 0, 0, nil},
		{"more ports than there are", func(r *api.SubmitRequest) { r.Spec.Ports = 5 }, me, "*", 0, 0, nil},
		{"as many", func(r *api.SubmitRequest) { r.Spec.Ports = 4 }, me, "", 0, time.Hour, []string{alone}},
		{"a deadline that is over", func(r *api.SubmitRequest) { r.Spec.Deadline = noon }, me, "the deadline 12:00:00 is not after now; give a later --deadline", 0, 0, nil},
		{"an address of none", func(r *api.SubmitRequest) { r.Spec.Notify = []api.Notify{{To: "x", Target: "nowhere"}} }, me, "*", 0, 0, nil},
		{"a role and no size", func(r *api.SubmitRequest) { r.Spec.Size = 0 }, me, "size 0: want 1 to 65536 ranks", 0, 0, nil},
		{"an array that comes again", func(r *api.SubmitRequest) {
			r.Spec.Cron, r.Array = &api.Cron{}, &api.Array{Indices: []int{0}}
		}, me, "an array does not go with a line of a cron table, which is due again and again", 0, 0, nil},
	} {
		r := &api.SubmitRequest{Key: "k", Spec: spec(1)}
		c.edit(r)
		ev, warnings, err := e.resolve(t.Context(), r, c.who)
		if c.err == "*" && err != nil || err != nil && err.Error() == c.err {
			if ev != nil || warnings != nil {
				t.Errorf("%s: refused with %+v, %v", c.what, ev, warnings)
			}
			continue
		}
		if err != nil || c.err != "" {
			t.Errorf("%s: %v, want %q", c.what, err, c.err)
			continue
		}
		account := map[string]string{"ada": "vision"}[c.who.User]
		if ev.Priority != c.priority || ev.TimeLimit != c.limit || !slices.Equal(warnings, c.warnings) || ev.Spec.Account != account || ev.User != c.who.User || ev.UID != c.who.UID || ev.GID != c.who.GID {
			t.Errorf("%s: %+v, %q", c.what, ev, warnings)
		}
		if ev.Key != fmt.Sprint(c.who.UID, " k") || ev.SpecHash != hashSpec(ev.Spec) || len(ev.SpecHash) != 32 {
			t.Errorf("%s: key %q, hash %q", c.what, ev.Key, ev.SpecHash)
		}
	}
	e.own.Policy.Switches = []api.Switch{{Name: "s1"}}
	r := &api.SubmitRequest{Spec: spec(1)}
	r.Spec.Switches = 1
	if _, warnings, err := e.resolve(t.Context(), r, me); err != nil || !slices.Equal(warnings, []string{alone}) {
		t.Errorf("where switches are known: %q, %v", warnings, err)
	}
	if ownKey(3, "") != "" || ownKey(3, "a") == ownKey(4, "a") {
		t.Errorf("keys %q, %q and %q", ownKey(3, ""), ownKey(3, "a"), ownKey(4, "a"))
	}
}

// TestFullest: how many ranks a node may have, of a heterogeneous job those of its widest component.
func TestFullest(t *testing.T) {
	component := func(count, perNode int) api.Role {
		return api.Role{Count: count, Component: &api.Component{RanksPerNode: perNode}}
	}
	for want, s := range map[int]api.Spec{9: {Size: 9}, 3: {Size: 9, RanksPerNode: 3}, 2: {Size: 2, RanksPerNode: 5}, 4: {Size: 6, Roles: []api.Role{component(4, 0), component(2, 0)}}, 5: {Size: 20, RanksPerNode: 1, Roles: []api.Role{component(10, 5), component(10, 2)}}} {
		if got := fullest(&s); got != want {
			t.Errorf("%+v: %d, want %d", s, got, want)
		}
	}
}

// TestCardsOnSeveralNodes: cards that no node has so many of are taken from several where the job left that open, else it is refused.
func TestCardsOnSeveralNodes(t *testing.T) {
	e := still()
	for _, name := range []string{"n1", "n2"} {
		res := &cluster.Node{Name: name, Has: cluster.Amounts{cluster.CPUs: 8, cluster.Memory: 1 << 30}, Ready: true, Partitions: []string{"main"}, Cards: []cluster.Card{{CardInfo: api.CardInfo{UUID: name + "a", VRAMBytes: 1 << 30}, State: api.CardOK}}}
		e.view.putNode(&gang.Node{Name: name, State: api.NodeUp, Res: res.Counted()})
	}
	s := spec(1)
	s.Launch, s.GPUsPerRank, s.Asked = api.LaunchBatch, 2, &api.Asked{Spread: true}
	whole := s
	ev, _, err := e.resolve(t.Context(), &api.SubmitRequest{Spec: s}, me)
	if err != nil || ev.Spec.Size != 2 || ev.Spec.GPUsPerRank != 1 || ev.SpecHash != hashSpec(ev.Spec) || ev.SpecHash == hashSpec(&whole) {
		t.Errorf("%+v, %v", ev, err)
	}
	s.Asked = nil
	if _, _, err := e.resolve(t.Context(), &api.SubmitRequest{Spec: s}, me); api.CodeOf(err) != api.CodeUnsatisfiable {
		t.Errorf("on one node: %v", err)
	}
	s.GPUsPerRank, s.Asked = 3, &api.Asked{Spread: true}
	if _, _, err := e.resolve(t.Context(), &api.SubmitRequest{Spec: s}, me); api.CodeOf(err) != api.CodeUnsatisfiable {
		t.Errorf("more than there are: %v", err)
	}
	s.GPUsPerRank = 1
	if ev, warnings, err := e.resolve(t.Context(), &api.SubmitRequest{Spec: s}, me); err != nil || ev.Spec.Size != 1 || warnings != nil {
		t.Errorf("one card: %+v, %v, %v", ev, warnings, err)
	}
}
