package attack

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gangd/e2e/tally"
	"gangd/e2e/trial"
	"gangd/pkg/api"
	"gangd/pkg/lab/nasty"
)

// asked calls fn with each list and text of each call. body makes it at its largest, as JSON; empty: it can't be said, or not be sent.
func asked(fn func(path, field string, body func() string)) {
	for _, c := range nasty.Calls() {
		for _, f := range nasty.Fields(c.Body) {
			fn(c.Path, f.Name, func() string {
				text, err := json.Marshal(f.Body())
				if err != nil || len(text) > 16<<20 {
					return ""
				}
				return string(text)
			})
		}
	}
}

// fields: every list and text of every call at its largest.
func fields(s *site) (out []try) {
	n := 0
	asked(func(path, field string, body func() string) {
		n++
		out = append(out, try{"fields", path + " " + field, "a request of eve's with it at its largest", "an answer, and ada's submission is taken beside it", n%60 > 0, func() error {
			text := body()
			if text == "" {
				return errNoTry
			}
			beside := make(chan error, 1)
			go func() {
				var r api.SubmitReply
				err := s.ada.call("POST", "/v1/jobs", map[string]any{"key": fmt.Sprintf("beside%d", n), "spec": s.ada.spec(map[string]any{"hold": true})}).decode(&r)
				if err == nil {
					err = s.ada.call("POST", "/v1/cancel", map[string]any{"refs": []string{fmt.Sprint(r.JobID)}}).err
				}
				beside <- err
			}()
			a := s.eve.call("POST", path, text)
			if err := <-beside; err != nil {
				return fmt.Errorf("ada: %w", err)
			}
			s.eve.call("POST", "/v1/cancel", map[string]any{"users": []string{s.eve.name}, "now": true})
			if a.err == nil && (a.code < 500 || a.code == http.StatusServiceUnavailable) {
				return nil
			}
			return fmt.Errorf("answered %d %.200s, %w", a.code, a.body, a.err)
		}})
	})
	return out
}

// underWay is which requests are being answered, and which were lately.
type underWay struct {
	mu   sync.Mutex
	last []span // the latest
}

type span struct {
	what         string
	began, ended time.Time // zero: it has not
}

// begin notes a request until over is called.
func (u *underWay) begin(what string) (over func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last = slices.DeleteFunc(u.last, func(s span) bool { return !s.ended.IsZero() && time.Since(s.ended) > time.Minute })
	began := time.Now()
	u.last = append(u.last, span{what: what, began: began})
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		i := slices.IndexFunc(u.last, func(s span) bool { return s.what == what && s.began.Equal(began) })
		u.last[i].ended = time.Now()
	}
}

// since are those that were under way at any time after a moment, and for how long.
func (u *underWay) since(t time.Time) (out []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, s := range u.last {
		switch {
		case s.ended.IsZero():
			out = append(out, fmt.Sprintf("%s (for %s)", s.what, time.Since(s.began).Round(time.Millisecond)))
		case s.ended.After(t):
			out = append(out, fmt.Sprintf("%s (took %s)", s.what, s.ended.Sub(s.began).Round(time.Millisecond)))
		}
	}
	return out
}

// TestFieldsAmongManyJobs: while 30,000 jobs wait and eve sends each field of each request at its largest, three at a time, the submissions
// of ada take no more than 100 ms more than in between, and a cancel of an admin's no more than a second. GANG_E2E_ROUNDS: so many of the
// fields, from all calls.
func TestFieldsAmongManyJobs(t *testing.T) {
	if os.Getenv("GANG_E2E_CHAOS") == "" {
		t.Skip("takes minutes: make attack runs it")
	}
	s := buildWith(t, "user_jobs = 50000")
	indices := make([]int, api.MaxArraySize)
	for i := range indices {
		indices[i] = i
	}
	// crowd sees to it that so many of eve's wait: her own cancels may end them.
	// One that is released doesn't start: what is measured is the controller, and not this machine beside thousands of jobs.
	crowds, tomorrow := 0, time.Now().Add(24*time.Hour)
	crowd := func() {
		a := s.eve.call("POST", "/v1/query", map[string]any{"users": []string{s.eve.name}, "names": []string{"many"}, "states": []string{"PENDING"}, "lines": true})
		for waiting := strings.Count(a.body, "\tmany\t"); waiting < nasty.Jobs; waiting += len(indices) {
			crowds++
			var r api.SubmitReply
			if err := s.eve.call("POST", "/v1/jobs", map[string]any{"key": fmt.Sprintf("many%d", crowds), "spec": s.eve.spec(map[string]any{"name": "many", "hold": true, "begin": tomorrow}), "array": api.Array{Indices: indices}}).decode(&r); err != nil {
				t.Fatal(err)
			}
		}
	}
	crowd()
	type request struct {
		path, field string
		body        func() string
	}
	var all []request
	asked(func(path, field string, body func() string) { all = append(all, request{path, field, body}) })
	if n := trial.Rounds(len(all)); n < len(all) {
		some := make([]request, n)
		for i := range some {
			some[i] = all[i*len(all)/n]
		}
		all = some
	}
	// In turns, so that what else this machine does is in both.
	var submits, cancels [2][]time.Duration
	under := &underWay{}
	slow := map[time.Duration]string{}
	took := func(what string, began time.Time) time.Duration {
		d := time.Since(began)
		if beside := under.since(began); d > 50*time.Millisecond && len(beside) > 0 {
			slow[d] = what + " beside " + strings.Join(beside, ", ")
		}
		return d
	}
	key := 0
	watch := func(which int, over <-chan struct{}) {
		for {
			select {
			case <-over:
				return
			default:
			}
			key++
			began := time.Now()
			var r api.SubmitReply
			if err := s.ada.call("POST", "/v1/jobs", map[string]any{"key": fmt.Sprintf("w%d", key), "spec": s.ada.spec(map[string]any{"hold": true})}).decode(&r); err != nil {
				t.Errorf("ada's submission: %v", err)
				return
			}
			submits[which] = append(submits[which], took("a submission of ada's", began))
			began = time.Now()
			if a := s.root.call("POST", "/v1/cancel", map[string]any{"refs": []string{fmt.Sprint(r.JobID)}}); a.code != http.StatusOK {
				t.Errorf("an admin's cancel: %d %.200s %v", a.code, a.body, a.err)
				return
			}
			cancels[which] = append(cancels[which], took("a cancel of an admin's", began))
		}
	}
	const turn, atOnce = 30, 3
	calls := 0
	for part := range slices.Chunk(all, turn) {
		idle := make(chan struct{})
		time.AfterFunc(2*time.Second, func() { close(idle) })
		crowd()
		watch(0, idle)
		over, work := make(chan struct{}), make(chan request)
		watched := make(chan struct{})
		go func() { defer close(watched); watch(1, over) }()
		ended := make(chan struct{})
		for range atOnce {
			go func() {
				defer func() { ended <- struct{}{} }()
				for q := range work {
					text := q.body()
					if text == "" {
						continue
					}
					over := under.begin(q.path + " " + q.field)
					a := s.eve.call("POST", q.path, text)
					if over(); a.err != nil || a.code >= 500 && a.code != http.StatusServiceUnavailable {
						t.Errorf("%s %s: %d %.200s %v", q.path, q.field, a.code, a.body, a.err)
					}
				}
			}()
		}
		for _, q := range part {
			calls++
			work <- q
		}
		close(work)
		for range atOnce {
			<-ended
		}
		close(over)
		<-watched
		// What eve has made beside the crowd goes, so that this is one crowd all the time.
		s.eve.call("POST", "/v1/cancel", map[string]any{"users": []string{s.eve.name}, "names": []string{"x"}, "now": true})
	}
	at := func(list []time.Duration, share float64) time.Duration {
		slices.Sort(list)
		if len(list) == 0 {
			t.Fatal("nothing was measured")
		}
		return list[min(len(list)-1, int(share*float64(len(list))))].Round(time.Millisecond / 10)
	}
	for i, what := range []string{"idle", "beside eve"} {
		fmt.Printf("%-10s %5d submissions of ada's: p50 %s p99 %s most %s; cancels of an admin's: p50 %s p99 %s most %s\n", what, len(submits[i]), at(submits[i], .5), at(submits[i], .99), at(submits[i], 1),
			at(cancels[i], .5), at(cancels[i], .99), at(cancels[i], 1))
	}
	fmt.Printf("%d requests of eve's while %d jobs wait, which were submitted anew %d times\n", calls, nasty.Jobs, crowds-nasty.Jobs/api.MaxArraySize)
	durations := slices.Sorted(maps.Keys(slow))
	for i, d := range slices.Backward(durations) {
		if i >= len(durations)-20 {
			t.Logf("%s: %s", d.Round(time.Millisecond), slow[d])
		}
	}
	tally.Did("requests with a field at its largest", calls)
	var late []string
	if more := at(submits[1], .99) - at(submits[0], .99); more > 100*time.Millisecond {
		late = append(late, more.String())
	}
	tally.Checked(t, "p99 of another's submissions more than 100 ms above idle", late...)
	late = nil
	if most := at(cancels[1], 1); most > time.Second {
		late = append(late, most.String())
	}
	tally.Checked(t, "an admin's cancel over a second", late...)
	if err := s.stands(); err != nil {
		tally.Checked(t, "the site after the largest requests", err.Error())
	}
}
