package notify

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"gangd/pkg/api"
)

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func letter(id int64, user string) *api.Letter {
	return &api.Letter{ID: id, User: user, To: user + "@uni.example", Type: api.NotifyEnd, Time: t0, JobID: id, Ref: fmt.Sprint(id), JobName: "train", State: api.JobCompleted}
}

func many(n int, user string) (all []*api.Letter) {
	for i := range n {
		all = append(all, letter(int64(i+1), user))
	}
	return all
}

var errDown = errors.New("connection refused")

// Waits double to ten minutes, and after a day the letter is given up, once.
func TestBackOffAndGivingUp(t *testing.T) {
	q := newQueue(&Site{Burst: 1})
	all := many(1, "ada")
	q.Set(all)
	now := t0
	var waits []time.Duration
	for {
		b, at := q.Next(now)
		if b == nil {
			waits = append(waits, at.Sub(now))
			now = at
			continue
		}
		q.Set(all) // a commit of somebody else's meanwhile
		if given := q.Done(b, now, errDown); len(given) > 0 {
			if given[0].ID != 1 || now.Sub(t0) < GiveUp || now.Sub(t0) > GiveUp+lastRetry {
				t.Fatalf("given up %v after %v", given[0].ID, now.Sub(t0))
			}
			break
		}
		if l := q.Lines(); len(l) != 1 || l[0].Error != errDown.Error() || l[0].Waiting != 1 {
			t.Fatalf("lines %+v", l)
		}
	}
	for i, w := range waits {
		if want := min(firstRetry<<min(i, 10), lastRetry); w != want {
			t.Fatalf("wait %d is %v, want %v", i, w, want)
		}
	}
	if b, at := q.Next(now.Add(time.Hour)); b != nil || !at.IsZero() {
		t.Errorf("what was given up goes on: %v %v", b, at)
	}
}

// A server that fails every second time: each letter is delivered, with its own id, and none is lost.
func TestEverySecondDeliveryFails(t *testing.T) {
	q := newQueue(&Site{Burst: 1})
	q.Set(many(3, "ada"))
	q.Set(append(many(3, "ada"), letter(10, "bob")))
	got := map[int64]int{}
	now := t0
	for turn := 0; ; turn++ {
		b, at := q.Next(now)
		if b == nil {
			if at.IsZero() {
				break
			}
			now = at
			continue
		}
		if turn%2 == 0 {
			q.Done(b, now, errDown)
			continue
		}
		for _, l := range b.Letters {
			got[l.ID]++
		}
		q.Done(b, now, nil)
	}
	if fmt.Sprint(got) != "map[1:1 2:1 3:1 10:1]" {
		t.Errorf("delivered %v", got)
	}
}

// A flood of one user becomes few deliveries, and nobody else waits for it.
func TestAFloodIsADigest(t *testing.T) {
	q := newQueue(&Site{Rate: 60, Burst: 3})
	now, deliveries, letters := t0, 0, 0
	var all []*api.Letter
	for i := range 600 { // a job ends each second
		now = t0.Add(time.Duration(i) * time.Second)
		all = append(all, letter(int64(i+1), "ada"))
		q.Set(all)
		for {
			b, _ := q.Next(now)
			if b == nil {
				break
			}
			deliveries++
			letters += len(b.Letters)
			all = all[len(b.Letters):]
			q.Done(b, now, nil)
		}
	}
	if deliveries < 10 || deliveries > 14 || letters+len(all) != 600 || len(all) > 60 {
		t.Errorf("%d deliveries of %d letters, %d wait", deliveries, letters, len(all))
	}
	q.Set(append(all, letter(1000, "bob")))
	if b, _ := q.Next(now); b == nil || b.Letters[0].User != "bob" {
		t.Errorf("bob waits for ada: %v", b)
	}
	// Failures bother nobody, so they take nothing off the budget.
	q = newQueue(&Site{Rate: 1, Burst: 1})
	q.Set(many(1, "ada"))
	b, _ := q.Next(now)
	q.Done(b, now, errDown)
	if b, at := q.Next(now.Add(firstRetry)); b == nil {
		t.Errorf("the next try waits until %v", at)
	}
}

// One delivery an address at a time; drafts and what was given up never go.
func TestOneAtATime(t *testing.T) {
	q := newQueue(&Site{Burst: 1})
	draft, gone := letter(2, "ada"), letter(3, "ada")
	draft.Draft, gone.GivenUp = true, t0
	q.Set([]*api.Letter{letter(1, "ada"), draft, gone})
	b, _ := q.Next(t0)
	if b == nil || len(b.Letters) != 1 {
		t.Fatalf("%+v", b)
	}
	grown := letter(1, "ada")
	grown.Rev = 1
	q.Set([]*api.Letter{grown, letter(4, "ada")})
	if b, _ := q.Next(t0); b != nil {
		t.Fatal("a second delivery to the same address while one is under way")
	}
	q.Done(b, t0, nil)
	// What grew meanwhile goes once more, whole.
	if b, _ := q.Next(t0); b == nil || len(b.Letters) != 2 || b.Letters[0].Rev != 1 {
		t.Errorf("then %+v", b)
	}
}

// Reports go one by one, whatever a user's budget, and take nothing off it.
func TestReportsHaveNoBudget(t *testing.T) {
	q := newQueue(&Site{Rate: 1, Burst: 1})
	all := many(3, "ada")
	for _, l := range all[:2] {
		l.Type, l.To = api.NotifyReport, "n1"
	}
	q.Set(all)
	var got []string
	for {
		b, _ := q.Next(t0)
		if b == nil {
			break
		}
		got = append(got, fmt.Sprint(len(b.Letters), b.Letters[0].ID))
		if len(got) > 3 {
			break
		}
		defer q.Done(b, t0, nil)
		if b.Letters[0].Type == api.NotifyReport {
			q.Done(b, t0, nil)
		}
	}
	if fmt.Sprint(got) != "[1 3 1 1 1 2]" {
		t.Errorf("delivered %v", got)
	}
}
