package order

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
)

// TestOrders: each order of the same gangs, first to last.
func TestOrders(t *testing.T) {
	ledger := NewLedger(0)
	for range 200 {
		// Everyone uses a tenth of the limit; lea has used much, max little.
		ledger.Add(Usage{Peer: Peer{User: "lea", Cards: 8}, Ran: time.Hour, Ended: epoch0, Whole: time.Hour, Limit: 10 * time.Hour})
	}
	ledger.Add(Usage{Peer: Peer{User: "max", Cards: 1}, Ran: time.Hour, Ended: epoch0})
	list := []*Candidate{
		{Job: 1, Terms: &Terms{User: "lea", Size: 4, TimeLimit: time.Hour}},
		{Job: 2, Terms: &Terms{User: "max", Size: 1, TimeLimit: 10 * time.Hour}},
		{Job: 3, Terms: &Terms{User: "lea", Size: 2, TimeLimit: 2 * time.Hour}},
		{Job: 4, Terms: &Terms{User: "max", Size: 1}},
		{Job: 5, Terms: &Terms{User: "eva", Size: 8}},
		{Job: 6, Terms: &Terms{User: "eva", Size: 1, TimeLimit: time.Minute, Priority: -1}},
		{Job: 7, Terms: &Terms{User: "lea", Size: 1, TimeLimit: 20 * time.Hour, Priority: 5, Tier: 0}},
		{Job: 8, Terms: &Terms{User: "lea", Size: 1, TimeLimit: 90 * time.Hour, Tier: 1}},
		{Job: 9, Terms: &Terms{User: "lea", Size: 1, TimeLimit: 10 * time.Hour, Attained: 50 * time.Minute}},
	}
	for _, tt := range []struct {
		order Order
		want  string
	}{
		// 9 has nearly done what most do; 1 and 3 need the same and 1 is larger; without a
		// limit the larger one goes first.
		{OrderService, "[8 7 9 1 3 2 5 4 6]"},
		{OrderFair, "[8 7 5 2 4 1 3 9 6]"},
		{OrderLargest, "[5 1 3 8 7 2 4 9 6]"},
		{OrderFIFO, "[8 7 1 2 3 4 5 9 6]"},
	} {
		q := NewQueue(&Policy{Order: tt.order}, ledger)
		for i, c := range slices.Backward(list) {
			c.Submit = epoch0.Add(time.Duration(i) * time.Second)
			c.Ask = cluster.AskOf(&api.Spec{Size: c.Size, GPUsPerRank: 1}, []string{"gpu"})
			q.Insert(c)
		}
		var got []int64
		for _, c := range q.Slice() {
			got = append(got, c.Job)
		}
		if fmt.Sprint(got) != tt.want {
			t.Errorf("%s: %v, want %s", tt.order, got, tt.want)
		}
	}
}

// TestQueueIsASortedMap compares with sorting a map after each change.
func TestQueueIsASortedMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ledger := NewLedger(0)
		q := NewQueue(&Policy{Order: rapid.SampledFrom(Orders).Draw(t, "order"), UserCards: rapid.IntRange(0, 1).Draw(t, "caps"), GuardAfter: 5 * time.Hour}, ledger)
		model := make(map[int64]bool)
		asks := map[int]*cluster.Ask{}
		for size := 1; size <= 2; size++ {
			asks[size] = cluster.AskOf(&api.Spec{Size: size, GPUsPerRank: 1}, []string{"gpu"})
		}
		draw := func(job int64) *Candidate {
			size := rapid.IntRange(1, 2).Draw(t, "size")
			return &Candidate{Job: job, Submit: epoch0, Terms: &Terms{Priority: rapid.Int64Range(0, 2).Draw(t, "priority"), Size: size, Ask: asks[size],
				User: rapid.SampledFrom([]string{"lea", "max"}).Draw(t, "user"), TimeLimit: time.Duration(rapid.IntRange(0, 2).Draw(t, "limit")) * time.Hour}}
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			job := rapid.Int64Range(1, 12).Draw(t, "job")
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0, 1:
				q.Insert(draw(job))
				model[job] = true
			case 2:
				if q.Remove(job) != model[job] {
					t.Fatalf("remove of job %d reports the wrong thing", job)
				}
				delete(model, job)
			case 3:
				ledger.Add(Usage{Peer: Peer{"lea", "", 1, job}, Ran: time.Hour, Ended: epoch0, Whole: time.Hour, Limit: 2 * time.Hour})
				q.Refresh(epoch0)
			case 4:
				like := draw(0)
				many := make([]*Candidate, sortFrom)
				for i := range many {
					c := like.Apart()
					c.Job = job + int64(i)
					c.Priority += int64(i % 2)
					many[i], model[c.Job] = c, true
				}
				q.Update(many, nil)
			case 5:
				gone := make([]int64, sortFrom)
				for i := range gone {
					gone[i] = job + int64(i) // half of them do not wait
					delete(model, gone[i])
				}
				c := draw(200)
				q.Update([]*Candidate{c}, gone)
				model[c.Job] = true
			}
			checkQueue(t, q, model)
			checkQueue(t, q.Clone(), model)
		}
	})
}

func checkQueue(t *rapid.T, q *Queue, model map[int64]bool) {
	if q.Len() != len(model) || !slices.IsSortedFunc(q.order, Compare) || !slices.IsSortedFunc(q.byAge, CompareAge) || len(q.byAge) != q.Len() {
		t.Fatalf("queue %v, want %v in order", q.Slice(), model)
	}
	turns := 0
	for _, c := range q.order {
		if c.turn != 0 {
			turns++
		}
	}
	if len(q.byTurn) != turns || !slices.IsSortedFunc(q.byTurn, compareTurn) {
		t.Fatalf("%d of %d with a turn, in its order: %v", len(q.byTurn), turns, q.byTurn)
	}
	inClasses := 0
	for k, cl := range q.classes {
		if cl.key != k || len(cl.order) == 0 || !slices.IsSortedFunc(cl.order, Compare) {
			t.Fatalf("class %+v", cl)
		}
		inClasses += len(cl.order)
		for _, c := range cl.order {
			if q.JobClass(c.Job) != cl || !model[c.Job] || q.Get(c.Job) != c || q.Slice()[q.Position(c.Job)] != c {
				t.Fatalf("job %d is not where it belongs", c.Job)
			}
		}
	}
	if len(q.firsts) != len(q.classes) || !slices.IsSortedFunc(q.firsts, func(a, b *JobClass) int { return Compare(a.order[0], b.order[0]) }) {
		t.Fatalf("%d of %d classes in the order of their firsts: %v", len(q.firsts), len(q.classes), q.firsts)
	}
	slots := make(map[int]bool)
	for _, cl := range q.firsts {
		if slots[cl.slot] || cl.slot >= q.slots || q.classes[cl.key] != cl {
			t.Fatalf("class %+v has a slot of another, or is not one", cl)
		}
		slots[cl.slot] = true
	}
	if inClasses != q.Len() {
		t.Fatalf("%d in classes, %d in all", inClasses, q.Len())
	}
	var need int64
	for _, c := range q.order {
		need += c.need
	}
	if q.backlog != need {
		t.Fatalf("the queue keeps %d, its candidates need %d", q.backlog, need)
	}
}

// TestTermsAreShared: candidates have the terms that they came with, and those that came with the same have one value of them.
func TestTermsAreShared(t *testing.T) {
	q := NewQueue(&Policy{}, nil)
	asks := []*cluster.Ask{cluster.AskOf(&api.Spec{Size: 1}, []string{"gpu"}), cluster.AskOf(&api.Spec{Size: 1}, []string{"gpu"})}
	plain := Terms{Size: 1, Ask: asks[0], User: "lea"}
	wants := []Terms{plain}
	for _, edit := range []func(*Terms){
		func(t *Terms) { t.Tier = 1 }, func(t *Terms) { t.Priority = 1 }, func(t *Terms) { t.Nice = 1 }, func(t *Terms) { t.Size = 2 }, func(t *Terms) { t.Ask = asks[1] },
		func(t *Terms) { t.Avoid = []string{"n1"} }, func(t *Terms) { t.User = "max" }, func(t *Terms) { t.Account = "a" }, func(t *Terms) { t.TimeLimit = 1 },
		func(t *Terms) { t.Stop = 1 }, func(t *Terms) { t.TimeMin = 1 }, func(t *Terms) { t.Deadline = epoch0 }, func(t *Terms) { t.Attained = 1 }, func(t *Terms) { t.KeepsWork = true },
	} {
		other := plain
		edit(&other)
		wants = append(wants, other)
	}
	if n := reflect.TypeFor[Terms]().NumField(); n != len(wants) { // all but order, and plain
		t.Fatalf("%d fields, %d are tried", n-1, len(wants)-1)
	}
	for i := range wants {
		terms := plain // which are the ones remembered then where the hash is the same
		q.Insert(&Candidate{Job: int64(1000 + i), Submit: epoch0, Terms: &terms})
		for k := range 2 {
			terms := wants[i]
			q.Insert(&Candidate{Job: int64(2*i + k), Submit: epoch0, Terms: &terms})
		}
	}
	for i := range wants {
		a, b := q.Get(int64(2*i)).Terms, q.Get(int64(2*i+1)).Terms
		got := *a
		if got.rank = (rank{}); a != b || !reflect.DeepEqual(got, wants[i]) {
			t.Errorf("%+v and %+v, want %+v once", *a, *b, wants[i])
		}
	}
}

// TestBacklogIsTheSum: what a queue keeps of what all need yet is what a recount finds,
// whatever came, went and was learnt.
func TestBacklogIsTheSum(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := NewLedger(0)
		q := NewQueue(&Policy{Preempt: PreemptService}, l)
		now := epoch0
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			now = now.Add(time.Minute)
			job := int64(rapid.IntRange(1, 12).Draw(rt, "job"))
			switch rapid.IntRange(0, 3).Draw(rt, "what") {
			case 0, 1:
				c := candidate(job, api.Spec{Size: rapid.IntRange(1, 9).Draw(rt, "size"), GPUsPerRank: 1})
				c.TimeLimit = time.Duration(rapid.SampledFrom([]int{0, 1, 24, 400}).Draw(rt, "limit")) * time.Hour
				c.Attained = c.TimeLimit / 100 * time.Duration(rapid.IntRange(0, 120).Draw(rt, "ran"))
				q.Insert(c)
			case 2:
				q.Remove(job)
			default:
				l.Add(Usage{Peer: Peer{User: "u", Cards: 1}, Ran: time.Hour, Ended: now, Whole: time.Hour, Limit: 24 * time.Hour})
				q.Refresh(now)
			}
			var sum int64
			for _, c := range q.Slice() {
				sum += c.need
			}
			if q.backlog != sum || q.Clone().backlog != sum {
				rt.Fatalf("the queue keeps %d, its %d candidates need %d", q.backlog, q.Len(), sum)
			}
		}
	})
}

// BenchmarkUpdate: an array of 10,000 in a queue of 100,000 changes.
func BenchmarkUpdate(b *testing.B) {
	cs := make([]*Candidate, 100_000)
	for i := range cs {
		cs[i] = &Candidate{Job: int64(i + 1), Submit: epoch0, Terms: &Terms{Size: 1, User: fmt.Sprint(i % 7), TimeLimit: time.Hour, Ask: cluster.AskOf(&api.Spec{Size: 1}, []string{"gpu"})}}
	}
	q := NewQueue(&Policy{GuardAfter: time.Hour}, NewLedger(0))
	q.Update(cs, nil)
	for b.Loop() {
		q.Update(cs[:10_000], nil)
	}
}

// TestTermsThatDiffer: what differs in one thing is not shared, and is of another class where that can decide on a start.
func TestTermsThatDiffer(t *testing.T) {
	one, other := cluster.AskOf(&api.Spec{Size: 1}, []string{"gpu"}), cluster.AskOf(&api.Spec{Size: 2}, []string{"gpu"})
	base := Terms{Ask: one, Avoid: []string{"n1"}, User: "lea", Account: "lab", Deadline: epoch0, TimeLimit: time.Hour}
	if again := base; !again.same(&base) {
		t.Error("the same terms differ")
	}
	policies := map[string]Policy{"any": {}, "user": {UserCards: 1}, "account": {Accounts: []Account{{Name: "lab"}}}, "preempt": {Preempt: PreemptService}, "tier": {Preempt: PreemptTier}}
	apart := map[string]string{"Ask": "any", "Avoid": "any", "TimeLimit": "any", "Stop": "any", "TimeMin": "any", "Deadline": "any", "User": "user", "Account": "account", "KeepsWork": "preempt"}
	for i := range reflect.TypeFor[Terms]().NumField() {
		field := reflect.TypeFor[Terms]().Field(i)
		if field.Anonymous {
			continue
		}
		terms := base
		switch v := reflect.ValueOf(&terms).Elem().Field(i); v.Interface().(type) {
		case string:
			v.SetString("max")
		case bool:
			v.SetBool(true)
		case *cluster.Ask:
			v.Set(reflect.ValueOf(other))
		case []string:
			v.Set(reflect.ValueOf([]string{"n2"}))
		case time.Time:
			v.Set(reflect.ValueOf(epoch0.Add(1)))
		default:
			v.SetInt(v.Int() + 1)
		}
		if terms.same(&base) || base.same(&terms) {
			t.Errorf("of another %s they are the same", field.Name)
		}
		for name, p := range policies {
			q := NewQueue(&p, nil)
			is := q.key(&Candidate{Terms: &terms}) != q.key(&Candidate{Terms: &base})
			if want := apart[field.Name] == "any" || apart[field.Name] == name; is != want {
				t.Errorf("policy %s, another %s: another class %t", name, field.Name, is)
			}
		}
	}
	noDeadline := base
	noDeadline.Deadline = time.Time{}
	if k := NewQueue(&Policy{}, nil).key(&Candidate{Terms: &noDeadline}); k.deadline != 0 {
		t.Error(k)
	}
}

// TestSharedTerms: those that come with the same terms as somebody before share them.
func TestSharedTerms(t *testing.T) {
	q, ask := NewQueue(&Policy{}, nil), cluster.AskOf(&api.Spec{Size: 1}, []string{"gpu"})
	for job := range int64(3) {
		q.Insert(&Candidate{Job: job + 1, Submit: epoch0, Terms: &Terms{Size: 1, Ask: ask, TimeLimit: time.Duration(job/2) * time.Hour}})
	}
	if a, b, c := q.Get(1), q.Get(2), q.Get(3); a.Terms != b.Terms || a.Terms == c.Terms {
		t.Errorf("%p %p %p", a.Terms, b.Terms, c.Terms)
	}
}

// TestPlacesOfClasses: a class that is gone leaves its number to the next.
func TestPlacesOfClasses(t *testing.T) {
	q := NewQueue(&Policy{}, nil)
	for n := range int64(20) {
		q.Insert(candidate(1, api.Spec{Size: 1, CPUsPerRank: int(n + 1)}))
		q.Insert(candidate(2, api.Spec{Size: 1, CPUsPerRank: int(n + 100)}))
		if a, b := q.JobClass(1).slot, q.JobClass(2).slot; a == b || q.slots > 3 {
			t.Fatalf("%d and %d of %d", a, b, q.slots)
		}
		q.Remove(2)
	}
}

// TestAFewChangesOfAQueue: they are as if each were made by itself.
func TestAFewChangesOfAQueue(t *testing.T) {
	for _, n := range []int{1, sortFrom - 2, sortFrom - 1, sortFrom, sortFrom + 1} {
		at, one := NewQueue(&Policy{Order: OrderFIFO}, nil), NewQueue(&Policy{Order: OrderFIFO}, nil)
		var cs []*Candidate
		for i := range n {
			cs = append(cs, candidate(int64(n-i), api.Spec{Size: 1 + i%3, CPUsPerRank: 1}))
		}
		for _, q := range []*Queue{at, one} {
			q.Insert(candidate(1, api.Spec{Size: 9, CPUsPerRank: 1}))
			q.Insert(candidate(1000, api.Spec{Size: 9, CPUsPerRank: 1}))
		}
		at.Update(cs, []int64{1000})
		one.Remove(1000)
		for _, c := range cs {
			one.Insert(c)
		}
		if a, b := jobsOfQueue(at), jobsOfQueue(one); !slices.Equal(a, b) || at.Len() != n || at.Position(1) != 0 || at.Position(1000) != -1 || at.JobClass(1000) != nil {
			t.Errorf("%d: %v, want %v", n, a, b)
		}
	}
}

func jobsOfQueue(q *Queue) (out []int64) {
	for _, c := range q.Slice() {
		out = append(out, c.Job)
	}
	return out
}

// TestSharesOfAnAccount: what an account has used counts by its share, and who used nothing is first.
func TestSharesOfAnAccount(t *testing.T) {
	l := NewLedger(0)
	l.Add(Usage{Peer: Peer{User: "lea", Cards: 4}, Account: "lab", Ran: 10 * time.Hour, Ended: epoch0})
	l.Add(Usage{Peer: Peer{User: "max", Cards: 1}, Ran: time.Hour, Ended: epoch0})
	p := &Policy{Accounts: []Account{{Name: "lab", Share: 4}, {Name: "own"}}}
	of := func(user, account string) int64 {
		return p.shareBucket(l, &Candidate{Terms: &Terms{User: user, Account: account}})
	}
	if got := p.shareBucket(nil, &Candidate{Terms: &Terms{User: "lea"}}); got != 0 {
		t.Errorf("without a ledger: %d", got)
	}
	if of("eva", "") >= of("max", "") || of("max", "") >= of("lea", "") {
		t.Errorf("by user: eva %d, max %d, lea %d", of("eva", ""), of("max", ""), of("lea", ""))
	}
	if lab := of("eva", "lab"); lab >= of("lea", "") || lab <= of("max", "") {
		t.Errorf("a fourth of what lea used: %d; lea %d, max %d", lab, of("lea", ""), of("max", ""))
	}
	if got := of("lea", "own"); got != of("eva", "") {
		t.Errorf("an account that used nothing: %d", got)
	}
	p.Accounts[0].Share = 0
	if got := of("max", "lab"); got != of("lea", "") {
		t.Errorf("no share counts as 1: %d, want %d", got, of("lea", ""))
	}
}

// TestWhoMayDelayABackfill: a higher tier, and who is ahead of its taker for more than being shorter.
func TestWhoMayDelayABackfill(t *testing.T) {
	at := func(tier, priority int64, size int, bucket int64, minute int) *Candidate {
		c := candidate(int64(minute+1), api.Spec{Size: size})
		c.Tier, c.Priority, c.bucket, c.Submit = tier, priority, bucket, epoch0.Add(time.Duration(minute)*time.Minute)
		return c
	}
	for _, tt := range []struct {
		name  string
		order Order
		c, of *Candidate
		move  bool
		want  bool
	}{
		{"a higher tier", OrderService, at(1, 0, 1, 9, 9), at(0, 5, 9, 1, 0), false, true},
		{"a higher tier of a move", OrderService, at(1, 0, 1, 9, 9), at(0, 5, 9, 1, 0), true, true},
		{"a higher priority", OrderService, at(1, 5, 1, 9, 9), at(1, 4, 9, 1, 0), false, true},
		{"a lower tier", OrderService, at(0, 9, 9, 1, 0), at(1, 0, 1, 9, 9), false, false},
		{"shorter", OrderService, at(0, 0, 1, 1, 0), at(0, 0, 1, 2, 9), false, false},
		{"as short and larger", OrderService, at(0, 0, 2, 1, 9), at(0, 0, 1, 1, 0), false, true},
		{"as short and larger than that of a move", OrderService, at(0, 0, 2, 1, 9), at(0, 0, 1, 1, 0), true, false},
		{"as short and earlier", OrderService, at(0, 0, 1, 1, 0), at(0, 0, 1, 1, 9), false, true},
		{"as short and later", OrderService, at(0, 0, 1, 1, 9), at(0, 0, 1, 1, 0), false, false},
		{"itself", OrderService, at(0, 0, 1, 1, 0), at(0, 0, 1, 1, 0), false, false},
		{"earlier in turn", OrderFIFO, at(0, 0, 1, 0, 0), at(0, 0, 1, 0, 9), false, true},
		{"later in turn", OrderFIFO, at(0, 0, 9, 0, 9), at(0, 0, 1, 0, 0), false, false},
		{"who used less", OrderFair, at(0, 0, 1, 1, 9), at(0, 0, 1, 2, 0), false, true},
		{"a larger one of a lower tier", OrderLargest, at(0, 0, 9, 0, 9), at(5, 5, 1, 0, 0), false, true},
		{"a smaller one of a higher tier", OrderLargest, at(5, 5, 1, 0, 0), at(0, 0, 9, 0, 9), false, false},
	} {
		p := &Policy{Order: tt.order}
		for _, c := range []*Candidate{tt.c, tt.of} {
			c.rank = p.rankOf(c.Terms)
		}
		if got := p.MayDelay(tt.c, tt.of, tt.move); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

// TestRetier: a queue in which tiers have changed is as one into which the candidates came with these.
func TestRetier(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, want := NewQueue(&Policy{}, NewLedger(0)), NewQueue(&Policy{}, NewLedger(0))
		tiers := map[int64]int64{}
		n := rapid.IntRange(0, 30).Draw(t, "n")
		for job := range int64(n) {
			c := candidate(job, api.Spec{Size: 1 + int(job)%3})
			c.Tier = rapid.Int64Range(0, 2).Draw(t, "was")
			q.Insert(c)
			tiers[job] = rapid.Int64Range(0, 2).Draw(t, "is")
			other := c.Apart()
			other.Tier = tiers[job]
			want.Insert(other)
		}
		before := q.Clone()
		list := fmt.Sprint(order(before))
		q.Retier(func(job int64) int64 { return tiers[job] })
		for _, c := range q.Slice() {
			if c.Tier != tiers[c.Job] || q.Get(c.Job) != c {
				t.Errorf("job %d: tier %d, want %d", c.Job, c.Tier, tiers[c.Job])
			}
		}
		if !slices.Equal(order(q), order(want)) || q.Backlog() != want.Backlog() || len(q.Classes()) != len(want.Classes()) {
			t.Errorf("%v, want %v", order(q), order(want))
		}
		for i, cl := range q.Classes() {
			if cl.First().Job != want.Classes()[i].First().Job {
				t.Errorf("class %d begins with %d, want %d", i, cl.First().Job, want.Classes()[i].First().Job)
			}
		}
		if fmt.Sprint(order(before)) != list {
			t.Error("a clone has changed")
		}
	})
}

func order(q *Queue) (jobs []int64) {
	for _, c := range q.Slice() {
		jobs = append(jobs, c.Job)
	}
	return jobs
}
