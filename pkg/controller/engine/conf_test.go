package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/disk"
)

// another is the configuration of a rig with something changed.
func (r *rig) another(change func(*Conf)) *Conf {
	c := *r.conf().Conf
	c.Policy.Partitions = slices.Clone(c.Policy.Partitions)
	change(&c)
	return &c
}

func (r *rig) reconfigure(change func(*Conf)) {
	r.t.Helper()
	took := false
	if err := r.Reconfigure(r.t.Context(), r.another(change), "by ada: some", func() { took = true }); err != nil || !took {
		r.t.Fatalf("%v, took %v", err, took)
	}
}

// TestReconfigure: with its answer everything that was changed is in force, for who waits and who comes, and it is on record.
func TestReconfigure(t *testing.T) {
	r := newRigWith(t, disk.Open(t), func(o *Options) { o.Settings.Grace = time.Minute })
	r.node("n1", 4)
	r.submit("a", spec(1))
	r.reconfigure(func(c *Conf) {
		c.Settings.Grace = 7 * time.Second
		c.Settings.UserJobs = 1
		c.Policy.Partitions = append(c.Policy.Partitions, api.Partition{Name: "night", MaxTime: time.Hour})
		c.Operator = "bob"
	})
	if p := r.Ping(); p.Site.Grace != 7*time.Second || p.Site.Operator != "bob" {
		t.Errorf("%+v", p.Site)
	}
	if r.find("night") == nil || !slices.Contains(r.world.Node("n1").Res.Partitions, "night") {
		t.Errorf("n1 is in %v", r.world.Node("n1").Res.Partitions)
	}
	if _, err := r.Submit(t.Context(), &api.SubmitRequest{Spec: spec(1)}, me); err == nil || !strings.Contains(err.Error(), "1 job") {
		t.Errorf("beyond user_jobs: %v", err)
	}
	if s := r.Settings(); s.Grace != 7*time.Second {
		t.Errorf("nodes are told %+v", s)
	}
	evs, _ := r.events(t.Context())
	if last := evs[len(evs)-1]; last.Type != api.EventReconfigured || last.Text != "by ada: some" {
		t.Errorf("%+v", last)
	}
	if found := r.world.Verify(); len(found) > 0 {
		t.Error(found)
	}
}

// events are all that there are.
func (r *rig) events(ctx context.Context) ([]api.Event, error) {
	return r.store.Events(ctx, 0, 0, 1<<20)
}

// TestReconfigurationJudgesWhoWaits: a job that the new configuration lets start starts, and one that it keeps says why.
func TestReconfigurationJudgesWhoWaits(t *testing.T) {
	r := newRigWith(t, disk.Open(t), func(o *Options) {
		o.Policy.Partitions = []api.Partition{{Name: "main", Default: true, State: api.PartitionDown}}
	})
	r.node("n1", 4)
	id := r.submit("a", spec(1))
	if got := r.state(id); got != api.JobPending {
		t.Fatalf("in a partition that is down it is %s", got)
	}
	r.reconfigure(func(c *Conf) { c.Policy.Partitions[0].State = api.PartitionUp })
	if got := r.state(id); got != api.JobReserved {
		t.Errorf("up again by the file it is %s", got)
	}
	long := r.submit("b", func() api.Spec { s := spec(4); s.TimeLimit = 2 * time.Hour; return s }())
	r.reconfigure(func(c *Conf) { c.Policy.Partitions[0].MaxTime = time.Hour })
	if j, err := r.One(t.Context(), api.JobRef{ID: long, Index: -1}, me); err != nil || gang.JobState(j) != api.JobPending {
		t.Errorf("%v, %v", j, err)
	}
	if word, _ := r.awaitsPartition(r.view.job(long)); word != gang.WordPartitionTime {
		t.Errorf("kept by %q", word)
	}
}

// TestNoCallSeesHalfAChange: two keys that change together are never seen apart, and no submission is taken by a configuration that
// is not in force any more: what it was judged by is what its round goes by.
func TestNoCallSeesHalfAChange(t *testing.T) {
	r := newRigWith(t, disk.Open(t), func(o *Options) {
		o.Settings.UserJobs, o.Policy.UserCards = 1000, 1000
		o.Policy.Accounts = []order.Account{{Name: "a0"}}
	})
	var stop atomic.Bool
	var wait sync.WaitGroup
	wait.Go(func() {
		for !stop.Load() {
			if c := r.conf(); c.Settings.UserJobs != c.policy.UserCards {
				t.Errorf("%d jobs with %d cards", c.Settings.UserJobs, c.policy.UserCards)
				return
			}
		}
	})
	var taken atomic.Int64
	for range 4 {
		wait.Go(func() {
			for !stop.Load() {
				account := r.conf().policy.Accounts[0].Name
				s := spec(1)
				s.Account = account
				if _, err := r.Submit(context.Background(), &api.SubmitRequest{Spec: s}, me); err == nil {
					taken.Add(1)
				} else if api.CodeOf(err) != api.CodeInvalid { // no account of that name any more
					t.Errorf("%v", err)
				}
			}
		})
	}
	reloads := 0
	for ; reloads < 60 || taken.Load() < 60; reloads++ {
		i := reloads
		r.reconfigure(func(c *Conf) {
			c.Settings.UserJobs, c.Policy.UserCards = 1001+i+int(taken.Load()), 1001+i+int(taken.Load())
			c.Policy.Accounts = []order.Account{{Name: fmt.Sprint("a", i+1)}}
		})
	}
	stop.Store(true)
	wait.Wait()
	evs, err := r.events(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	now := "a0"
	n := 0
	for i := range evs {
		switch evs[i].Type {
		case api.EventReconfigured:
			n++
			now = fmt.Sprint("a", n)
		case api.EventSubmitted:
			if j := r.view.job(evs[i].JobID); j != nil && j.Spec.Account != now {
				t.Errorf("job %d of account %s was taken when %s alone was there", j.ID, j.Spec.Account, now)
			}
		}
	}
	if n != reloads {
		t.Errorf("%d reconfigurations on record", n)
	}
}

// TestNobodyGoesByTheStart: what the engine was started with holds until the first reload, and nobody reads it behind [New].
func TestNobodyGoesByTheStart(t *testing.T) {
	var fields []string
	for f := range reflect.TypeFor[Conf]().Fields() {
		fields = append(fields, f.Name)
	}
	wrong := regexp.MustCompile(`\.opt\.(Conf|` + strings.Join(fields, "|") + `)\b`)
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if found := wrong.Find(text); found != nil && !strings.HasSuffix(name, "_test.go") {
			t.Errorf("%s has %s: want e.conf()", name, found)
		}
	}
}

// TestReconfigurationOrdersWhoWaits: everybody who waits is in the queue of the new policy, in its order.
func TestReconfigurationOrdersWhoWaits(t *testing.T) {
	r := newRigWith(t, disk.Open(t), func(o *Options) { o.Policy.Order = order.OrderFIFO })
	r.node("n1", 2)
	r.submit("runs", spec(2))
	small, large := r.submit("a", spec(1)), r.submit("b", spec(2))
	waits := func() (ids []int64) {
		t.Helper()
		if err := r.inspect(t.Context(), func() {
			for _, c := range r.plan.queue.Slice() {
				ids = append(ids, c.Job)
			}
		}); err != nil {
			t.Fatal(err)
		}
		return ids
	}
	if got := waits(); !slices.Equal(got, []int64{small, large}) {
		t.Fatalf("by submission %v wait", got)
	}
	r.reconfigure(func(c *Conf) { c.Policy.Order = order.OrderLargest })
	if got := waits(); !slices.Equal(got, []int64{large, small}) {
		t.Errorf("largest first %v wait, want %d, %d", got, large, small)
	}
}
