package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/gang"
	"gangd/pkg/lab/disk"
)

// A node is named once, in the order of its first rank, wherever its other ranks are.
func TestNodesOf(t *testing.T) {
	j := &gang.Job{Wishes: new(gang.Wishes), Past: &gang.Past{Attempt: gang.Attempt{Members: make([]gang.Member, 3)}}}
	for _, n := range []string{"b", "b", "a", "", "b", "c", "a"} {
		r := gang.Rank{}
		r.Slot.Node = n
		j.Ranks = append(j.Ranks, r)
	}
	if got := nodesOf(j); !slices.Equal(got, []string{"b", "a", "c"}) {
		t.Errorf("%v", got)
	}
}

func BenchmarkNodesOf(b *testing.B) {
	j := &gang.Job{Wishes: new(gang.Wishes), Past: &gang.Past{Attempt: gang.Attempt{Members: make([]gang.Member, 2048)}}, Ranks: make([]gang.Rank, 8*2048)}
	for i := range j.Ranks {
		j.Ranks[i].Slot.Node = fmt.Sprintf("n%05d", i/8)
	}
	for b.Loop() {
		nodesOf(j)
	}
}

// TestWhyOfWhatRunsOrWaits: who asks why hears what a job runs as, or what it waits for and what lets it go.
func TestWhyOfWhatRunsOrWaits(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 2)
	id, _ := r.running(2)
	begin := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	later, waits := spec(1), spec(2)
	later.Begin = begin
	array, err := r.Submit(t.Context(), &api.SubmitRequest{Spec: spec(1), Array: &api.Array{Indices: []int{0, 1, 2}, Limit: 1}}, me)
	if err != nil {
		t.Fatal(err)
	}
	laterID, waitsID := r.submit("", later), r.submit("", waits)
	why := func(id int64) string {
		t.Helper()
		got, err := r.Explain(t.Context(), r.view.job(id))
		if err != nil {
			t.Fatal(err)
		}
		return got.Why
	}
	if got := why(id); !strings.HasPrefix(got, "not waiting: RUNNING\nwaited ") || !strings.HasSuffix(got, " until it started on n1") {
		t.Error(got)
	}
	if got, want := why(laterID), fmt.Sprintf("begins at %s\nthat is in ", when.Clock(time.Now(), begin)); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, fmt.Sprintf("gctl update %d --begin=now lets it go at once", laterID)) {
		t.Errorf("%s\nwant %s...", got, want)
	}
	if got := why(waitsID); !strings.Contains(got, "in the queue; room for 0 of 2 ranks now, each needs 1 CPU\n") {
		t.Error(got)
	}
	lines := r.waitLines(&gang.Job{ID: array.JobID + 1, ArrayID: array.JobID, Array: &gang.ArrayInfo{Limit: 1}, Spec: &api.Spec{}, Wishes: new(gang.Wishes), Past: &gang.Past{}})
	if want := []string{fmt.Sprintf("gctl update %d --array-limit=2 lets one more run", array.JobID)}; !slices.Equal(lines, want) {
		t.Errorf("%q, want %q", lines, want)
	}
	reply, err := r.Submit(t.Context(), &api.SubmitRequest{Spec: spec(2), TestOnly: true}, me)
	if err != nil || !strings.HasPrefix(reply.Why, "would wait: ") || !strings.Contains(reply.Why, "room for 0 of 2 ranks now") {
		t.Errorf("%+v, %v", reply, err)
	}
}

// TestWaitsOfACronJob: between its times it waits for the next one, after a failure for its back-off.
func TestWaitsOfACronJob(t *testing.T) {
	r := newRig(t, disk.Open(t))
	now := time.Unix(1e9, 0).UTC()
	j := &gang.Job{ID: 7, Eligible: now.Add(time.Hour), Spec: &api.Spec{Cron: &api.Cron{Schedule: "0 * * * *"}}, Wishes: new(gang.Wishes), Past: &gang.Past{Attempt: gang.Attempt{Epoch: 3}}}
	if word, text := r.waits(j, now, true); word != "BeginTime" || text != "begins at 02:46:40, as its cron table says: 0 * * * *" {
		t.Error(word, text)
	}
	j.BackoffUntil = now.Add(time.Minute)
	if word, text := r.waits(j, now, true); word != "BeginTime" || text != "runs again at 01:47:40, after a back-off: an attempt failed, or it had ended" {
		t.Error(word, text)
	}
}

// TestShowsTheTrigger: rank 0 is named as who brought the end about, of a job and of an attempt, and nobody where nobody did.
func TestShowsTheTrigger(t *testing.T) {
	r := newRig(t, disk.Open(t))
	for _, trigger := range []int{-1, 0, 1} {
		j := &gang.Job{ID: 7, ArrayIndex: -1, Spec: &api.Spec{Size: 2}, Ranks: make([]gang.Rank, 2), Wishes: new(gang.Wishes), Past: &gang.Past{Setbacks: gang.Setbacks{Verdict: &gang.Verdict{State: api.JobFailed, Trigger: trigger}}}}
		drains := &gang.Job{ID: 7, ArrayIndex: -1, Spec: j.Spec, Ranks: j.Ranks, Wishes: new(gang.Wishes), Past: &gang.Past{Attempt: gang.Attempt{Drain: &gang.Drain{Trigger: trigger}}}}
		a := attempt(j.Spec, &gang.EpochRow{Job: 7, Trigger: trigger, Cause: api.CauseCrash, ExitCodes: []int{3, 4}}, 1)
		for what, got := range map[string]*int{"of the job": r.show(j, false).TriggerRank, "of a stop": r.show(drains, false).TriggerRank, "of the attempt": a.TriggerRank} {
			if (got != nil) != (trigger >= 0) || got != nil && *got != trigger {
				t.Errorf("rank %d, %s: %v", trigger, what, got)
			}
		}
	}
}

// TestShowNode: a node's figures are the sums of what is on it, and a gang that has it to itself shows.
func TestShowNode(t *testing.T) {
	res := &cluster.Node{Name: "n1", Has: cluster.Amounts{cluster.CPUs: 8}, Cards: []cluster.Card{{CardInfo: api.CardInfo{UUID: "a"}}, {CardInfo: api.CardInfo{UUID: "b", Index: 1}}}}
	grant := func(job int64, epoch int, exclusive bool) cluster.Grant {
		return cluster.Grant{MemberKey: api.MemberKey{Job: job, Epoch: epoch}, Takes: cluster.Amounts{cluster.CPUs: 2, cluster.Memory: 5}, Exclusive: exclusive}
	}
	res = res.Restore(grant(1, 1, true)).Restore(grant(1, 2, false)).Restore(grant(2, 1, false))
	got := showNode(&gang.Node{Name: "n1", Res: res})
	if !got.Exclusive || got.CPUsUsed != 6 || got.MemoryUsed != 15 || !slices.Equal(got.Jobs, []int64{1, 2}) || len(got.Cards) != 2 || got.Cards[1].UUID != "b" {
		t.Errorf("%+v", got)
	}
}

// TestQueuePlace: the first in the queue is the first.
func TestQueuePlace(t *testing.T) {
	r := newRig(t, disk.Open(t))
	ids := []int64{r.submit("", spec(1)), r.submit("", spec(1))}
	fill, err := r.Expect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		j := api.Job{JobID: id, State: api.JobPending}
		if fill(&j); j.QueuePlace != i+1 || j.QueueLength != 2 {
			t.Errorf("job %d is %d of %d", id, j.QueuePlace, j.QueueLength)
		}
	}
}

// TestStanding: how far a job is that another waits for; when it ends is said of what runs alone.
func TestStanding(t *testing.T) {
	start := time.Unix(1e9, 0).UTC()
	for want, past := range map[string]gang.Past{
		"job 7 is PENDING":  {},
		"job 7 is RESERVED": {Attempt: gang.Attempt{Epoch: 1, Members: []gang.Member{{Node: "n1"}}}},
	} {
		j := &gang.Job{ID: 7, ArrayIndex: -1, Spec: &api.Spec{}, TimeLimit: time.Hour, Ranks: []gang.Rank{{State: api.RankBlocked}}, Wishes: new(gang.Wishes), Past: &past}
		if past.Epoch > 0 {
			j.Ranks[0].State = api.RankReserved
		}
		if got := standing(j); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	r := newRig(t, disk.Open(t))
	r.node("n1", 4)
	id, _ := r.runningWith(1, func(s *api.Spec) { s.TimeLimit = time.Hour })
	j := r.view.job(id).Copy()
	j.Start = start
	if got, want := standing(j), fmt.Sprintf("job %d is RUNNING; it ends at the latest at 2001-09-09T02:46:40Z", id); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestWhyTellsTheLastTry: after an admission that came to nothing, which node refused and why.
func TestWhyTellsTheLastTry(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 4)
	id := r.submit("", spec(1))
	k := api.MemberKey{Job: id, Epoch: 1}
	refused := api.MemberActual{MemberKey: k, Phase: api.PhaseRefused, Refusal: &api.Refusal{Text: "no home", Blame: api.BlameSite}}
	if _, err := r.Do(t.Context(), gang.NodeReport{Node: "n1", Actual: api.Actual{Members: []api.MemberActual{refused}, Gone: []api.MemberKey{k}}}); err != nil {
		t.Fatal(err)
	}
	var why api.WhyReply
	if err := r.lastTry(t.Context(), r.view.job(id), &why); err != nil || !strings.HasPrefix(why.Why, "\nlast try: ") || !strings.Contains(why.Why, "no home") {
		t.Errorf("%+v, %v", why, err)
	}
}
