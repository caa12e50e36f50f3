// Package storetest is what every store has to do, as one suite that runs over each.
//
// Begin with Run. It must not know which database is under a store.
package storetest

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/gang"
)

// Place is where one store lives: it can be closed and opened again.
type Place interface {
	Open() (store.Store, error)
	// FromBackup is a new place with what the backup of a store of this kind holds.
	FromBackup(t *testing.T, path string) Place
}

// Run runs the suite; newPlace makes an empty place.
func Run(t *testing.T, newPlace func(t *testing.T) Place) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, p Place)
	}{
		{"an empty store", testEmpty},
		{"a job comes back as it was committed", testJob},
		{"nodes come back", testNodes},
		{"reservations come back", testReservations},
		{"changes of partitions come back", testPartitions},
		{"cron tables come back", testCrontabs},
		{"letters come back until they are gone", testLetters},
		{"elements of an array share one spec", testSharedSpec},
		{"texts of specs are read one by one", testTexts},
		{"ranks are written one by one", testRanks},
		{"ended jobs leave Load but not the store", testPurged},
		{"history filters", testHistory},
		{"events in order and in pages", testEvents},
		{"attempts in order", testEpochs},
		{"steps in order", testSteps},
		{"measures come back and go with their job", testMeasures},
		{"the ledger is added to and stays", testLedger},
		{"counters never go back", testCounters},
		{"counters are advanced", testAdvance},
		{"an empty batch is no commit", testEmptyBatch},
		{"claims come back", testClaims},
		{"values given to Commit are the caller's again", testNoAlias},
		{"opened twice", testLocked},
		{"closed", testClosed},
		{"a cancelled commit leaves nothing", testCancelled},
		{"backup", testBackup},
		{"checkpoints come back whole", testCheckpoints},
		{"ranks of a set are in step", testCheckpointsInStep},
		{"sets of tasks are apart", testCheckpointsOfTasks},
		{"a checkpoint that broke off leaves nothing", testCheckpointBroken},
		{"releases come back in order", testReleases},
		{"releases are bounded", testReleasesBounded},
		{"releases of steps are apart", testReleasesOfSteps},
		{"forgotten jobs are gone with all they had", testForget},
		{"numbers go on when all history is gone", testForgetAll},
		{"arrays are forgotten whole", testForgetArray},
		{"a large job is forgotten in pieces", testForgetLarge},
		{"events of nodes are forgotten by age", testForgetNodeEvents},
		{"texts of who never ran are dropped", testDropTexts},
		{"a job that waits asks for something else", testChangedSpec},
		{"runs of the controller are known", testRuns},
		{"random batches against a model", testModel},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, newPlace(t)) })
	}
}

// T0 is the time of the suite's jobs; with a zone, which has to come back.
var T0 = time.Date(2026, 3, 29, 1, 59, 59, 123456789, time.FixedZone("CET", 3600))

// Equal are the options under which what came back has to equal what was committed: nil
// and empty slices are one, and a node's sums are counted by whoever loads it.
var Equal = cmp.Options{cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(cluster.Node{})}

func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if d := cmp.Diff(want, got, Equal); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func mustOpen(t *testing.T, p Place) store.Store {
	t.Helper()
	s, err := p.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func mustCommit(t *testing.T, s store.Store, ch *gang.Changes) uint64 {
	t.Helper()
	if ch.Specs == nil {
		WithSpecs(ch)
	}
	before := s.Lineage()
	n, err := s.Commit(context.Background(), ch)
	if err != nil {
		t.Fatal(err)
	}
	if n != before+1 || s.Lineage() != n {
		t.Fatalf("commit after %d gave lineage %d, Lineage() says %d", before, n, s.Lineage())
	}
	return n
}

func mustLoad(t *testing.T, s store.Store, keep time.Time) *gang.Snapshot {
	t.Helper()
	saved, err := s.Load(context.Background(), keep)
	if err != nil {
		t.Fatal(err)
	}
	return saved
}

func mustVerify(t *testing.T, s store.Store) {
	t.Helper()
	found, err := s.Verify(context.Background())
	if err != nil || len(found) > 0 {
		t.Errorf("Verify: %q, %v", found, err)
	}
}

// script is that of all jobs of the suite.
const script = "#!/bin/sh\nexec true\n"

// WithSpecs puts the whole specs of its jobs into a batch, as Step does with those of new ones.
func WithSpecs(ch *gang.Changes) *gang.Changes {
	ch.Specs = map[string]*api.Spec{}
	for _, j := range ch.Jobs {
		if ch.Specs[j.SpecHash] != nil {
			continue
		}
		whole := *j.Spec
		whole.Name, whole.Script = j.Name, []byte(script)
		ch.Specs[j.SpecHash] = &whole
	}
	return ch
}

// NewJob is a job of so many ranks as Step makes it at its submission.
func NewJob(id int64, size int) *gang.Job {
	j := &gang.Job{
		ID: id, ArrayIndex: -1, User: "ada", UID: 1000, GID: 100, Name: "train", Partition: "gpu",
		Spec:     &api.Spec{Size: size, Launch: api.LaunchRanks, CPUsPerRank: 1, WorkDir: "/home/ada"},
		SpecHash: "hash-of-train", TextBytes: int64(len(script)), Priority: 10, Submit: T0, Eligible: T0, TimeLimit: time.Hour,
		Ranks: make([]gang.Rank, size), Wishes: new(gang.Wishes), Past: new(gang.Past),
	}
	for i := range j.Ranks {
		j.Ranks[i].State = api.RankBlocked
	}
	return j
}

// Submitted is the batch that submits jobs.
func Submitted(jobs ...*gang.Job) *gang.Changes {
	ch := &gang.Changes{Jobs: jobs}
	for _, j := range jobs {
		ch.NextID = max(ch.NextID, j.ID+1)
	}
	return WithSpecs(ch)
}

// end gives a copy of j that ended at a time.
func end(j *gang.Job, at time.Time) *gang.Job {
	c := j.Copy()
	c.End = at
	c.Verdict = &gang.Verdict{State: api.JobCompleted, Cause: api.CauseCompleted, Trigger: -1}
	return c
}

func testEmpty(t *testing.T, p Place) {
	s := mustOpen(t, p)
	same(t, "Load", mustLoad(t, s, time.Time{}), &gang.Snapshot{NextID: 1, NextSeq: 1})
	if _, err := s.Job(context.Background(), 1); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Job of nothing: %v", err)
	}
	if s.Lineage() != 0 {
		t.Errorf("lineage %d", s.Lineage())
	}
	mustVerify(t, s)
}

func testJob(t *testing.T, p Place) {
	s := mustOpen(t, p)
	j := NewJob(7, 3)
	j.Key = "key-of-7"
	j.Name = "a \"name\" <&> \u2028 \x01 ü"
	mustCommit(t, s, Submitted(j))

	ran := j.Copy()
	ran.Epoch, ran.Restarts, ran.Start, ran.Held = 2, 1, T0.Add(time.Second), "user"
	ran.Dependency = &api.Dependency{Any: true, On: []api.Condition{{Kind: api.After, Job: 3, Index: new(int), Delay: time.Minute},
		{Kind: api.AfterSingle}}}
	ran.Waits = "afterok:3(unfulfilled)"
	ran.Members = []gang.Member{{Node: "n1", State: gang.MemberRunning, Ranks: []int{0, 1}, Port: 29500},
		{Node: "n2", State: gang.MemberFenced, Ranks: []int{2}, Forced: true}}
	ran.Drain = &gang.Drain{Cause: api.CauseCrash, Trigger: 1, Text: "rank 1 exited 3", Started: T0, Moved: 2,
		Later: []api.Cause{api.CauseTimeout}}
	ran.Used = map[api.Cause]int{api.CauseCrash: 1}
	ran.Avoid = []string{"n3"}
	ran.Refusals, ran.Elsewhere = []gang.Refusal{{Node: "n3", Blame: api.BlameFiles, Text: "no such directory"}}, true
	ran.Ranks = []gang.Rank{
		{State: api.RankPreempting, Slot: cluster.Slot{Node: "n1", Cards: []string{"GPU-0", "GPU-1"}}, PID: 4711, Start: T0},
		{State: api.RankFailed, Slot: cluster.Slot{Node: "n1"}, PID: 4712, Start: T0, End: T0.Add(time.Minute), Exited: true, ExitCode: 3},
		{State: api.RankBlocked},
	}
	ch := &gang.Changes{Jobs: []*gang.Job{ran}, NextID: 8}
	for i, r := range ran.Ranks {
		ch.Ranks = append(ch.Ranks, gang.RankRow{Job: 7, Index: i, Rank: r})
	}
	mustCommit(t, s, ch)

	same(t, "Load", mustLoad(t, s, time.Time{}), &gang.Snapshot{Jobs: []*gang.Job{ran}, Keys: map[string]int64{"key-of-7": 7}, NextID: 8,
		NextSeq: 1})
	got, err := s.Job(context.Background(), 7)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "Job", got, ran)
	if got.Submit.Format(time.RFC3339Nano) != T0.Format(time.RFC3339Nano) {
		t.Errorf("the submit time came back as %v, was %v", got.Submit, T0)
	}
	mustVerify(t, s)
}

func testReservations(t *testing.T, p Place) {
	s := mustOpen(t, p)
	a := &api.Reservation{Name: "a", Start: T0, End: T0.Add(time.Hour), Nodes: []string{"n1", "n2"}, Users: []string{"ada"},
		Accounts: []string{"vision"}, Flags: []api.ReservationFlag{api.FlagDaily}, By: "root"}
	b := &api.Reservation{Name: "b", Start: T0, End: T0.Add(2 * time.Hour), Nodes: []string{"n3"}, Flags: []api.ReservationFlag{api.FlagMaint}}
	mustCommit(t, s, &gang.Changes{SiteChanges: gang.SiteChanges{Reservations: []gang.ReservationRow{{Name: "b", R: b}, {Name: "a", R: a}}}})
	same(t, "reservations", mustLoad(t, s, time.Time{}).Reservations, []*api.Reservation{a, b})
	later := *a
	later.End = T0.Add(3 * time.Hour)
	mustCommit(t, s, &gang.Changes{SiteChanges: gang.SiteChanges{Reservations: []gang.ReservationRow{{Name: "a", R: &later}, {Name: "b"}}}})
	same(t, "reservations after a change", mustLoad(t, s, time.Time{}).Reservations, []*api.Reservation{&later})
}

func testPartitions(t *testing.T, p Place) {
	s := mustOpen(t, p)
	limit := time.Minute
	file := &api.Partition{Name: "main", Default: true, IdleLimit: &limit}
	a := &api.PartitionChange{Name: "main", File: file, Partition: &api.Partition{Name: "main", State: api.PartitionDown}, By: "root",
		Time: T0}
	b := &api.PartitionChange{Name: "night", Partition: &api.Partition{Name: "night", Nodes: []string{"n1"}}, Time: T0}
	mustCommit(t, s, &gang.Changes{SiteChanges: gang.SiteChanges{Partitions: []gang.PartitionRow{{Name: "night", C: b},
		{Name: "main", C: a}}}})
	same(t, "partitions", mustLoad(t, s, time.Time{}).Partitions, []*api.PartitionChange{a, b})
	gone := *a
	gone.Partition = nil
	mustCommit(t, s, &gang.Changes{SiteChanges: gang.SiteChanges{Partitions: []gang.PartitionRow{{Name: "main", C: &gone}, {Name: "night"}}}})
	same(t, "partitions after a change", mustLoad(t, s, time.Time{}).Partitions, []*api.PartitionChange{&gone})
	// One commit may take some away and bring others, of each kind.
	cron := &api.Crontab{User: "ada", Text: "#\n", Time: T0}
	mustCommit(t, s, &gang.Changes{SiteChanges: gang.SiteChanges{Partitions: []gang.PartitionRow{{Name: "main"}, {Name: "night", C: b}},
		Reservations: []gang.ReservationRow{{Name: "none"}, {Name: "r", R: &api.Reservation{Name: "r", Start: T0}}},
		Crontabs:     []gang.CrontabRow{{User: "bob"}, {User: "ada", T: cron}}}})
	all := mustLoad(t, s, time.Time{})
	same(t, "partitions, one for another", all.Partitions, []*api.PartitionChange{b})
	same(t, "and the rest of the commit", all.Crontabs, []*api.Crontab{cron})
	if len(all.Reservations) != 1 {
		t.Errorf("reservations %+v", all.Reservations)
	}
}

func testCrontabs(t *testing.T, p Place) {
	s := mustOpen(t, p)
	a := &api.Crontab{User: "ada", Text: "@daily x\n", Lines: []api.CronLine{{First: 1, Last: 1, JobID: 3}}, By: "ada", Time: T0}
	b := &api.Crontab{User: "Zoe", Text: "#\n", Lines: []api.CronLine{}, Time: T0}
	mustCommit(t, s, &gang.Changes{SiteChanges: gang.SiteChanges{Crontabs: []gang.CrontabRow{{User: "ada", T: a}, {User: "Zoe", T: b}}}})
	same(t, "cron tables", mustLoad(t, s, time.Time{}).Crontabs, []*api.Crontab{b, a})
	off := *a
	off.Text, off.Lines = "#DISABLED: @daily x\n", nil
	mustCommit(t, s, &gang.Changes{SiteChanges: gang.SiteChanges{Crontabs: []gang.CrontabRow{{User: "ada", T: &off}, {User: "Zoe"}}}})
	same(t, "cron tables after a change", mustLoad(t, s, time.Time{}).Crontabs, []*api.Crontab{&off})
	mustVerify(t, s)
}

func testLetters(t *testing.T, p Place) {
	s := mustOpen(t, p)
	a := &api.Letter{ID: 32, User: "ada", To: "ada@uni.example", Type: api.NotifyEnd, Time: T0, JobID: 2, Ref: "2", JobName: "train",
		State: api.JobFailed, ExitCode: 3, Ran: time.Hour}
	b := &api.Letter{ID: 16, User: "ada", Target: "chat", Type: api.NotifyEnd, Time: T0, JobID: 1, Ref: "1_*", Draft: true,
		Array: &api.LetterArray{Count: 3, States: map[api.JobState]int{api.JobCompleted: 1}}}
	mustCommit(t, s, &gang.Changes{Letters: []gang.LetterRow{{ID: 32, Letter: a}, {ID: 16, Letter: b}}})
	same(t, "letters", mustLoad(t, s, time.Time{}).Letters, []*api.Letter{b, a})
	more := *b
	more.Rev, more.Draft = 1, false
	mustCommit(t, s, &gang.Changes{Letters: []gang.LetterRow{{ID: 16, Letter: &more}, {ID: 32}}})
	same(t, "letters after a delivery", mustLoad(t, s, time.Time{}).Letters, []*api.Letter{&more})
	mustVerify(t, s)
}

func testNodes(t *testing.T, p Place) {
	s := mustOpen(t, p)
	b := &gang.Node{Name: "n2", State: api.NodeLost, LostSince: T0, Admin: "broken fan", DrainUser: "ada", DrainTime: T0,
		Strikes: []gang.Strike{{Time: T0, Job: 7, User: "ada", Blame: api.BlameSite, Text: "no home"}}, BootID: "b"}
	a := &gang.Node{Name: "n1", State: api.NodeUp, LastSeen: T0, Connected: true, Hello: api.Hello{Node: "n1",
		Cards: []api.CardInfo{{Index: 0, UUID: "GPU-0", NUMA: -1}}}}
	mustCommit(t, s, &gang.Changes{Nodes: []*gang.Node{b, a}})
	up := *b
	up.State, up.LostSince = api.NodeUp, time.Time{}
	mustCommit(t, s, &gang.Changes{Nodes: []*gang.Node{&up}})
	same(t, "nodes", mustLoad(t, s, time.Time{}).Nodes, []*gang.Node{a, &up})
	mustCommit(t, s, &gang.Changes{Forgot: []string{"n2"}})
	same(t, "nodes, one forgotten", mustLoad(t, s, time.Time{}).Nodes, []*gang.Node{a})
	// Forgotten and back in one commit: it is there.
	mustCommit(t, s, &gang.Changes{Forgot: []string{"n1"}, Nodes: []*gang.Node{a}})
	same(t, "nodes, one back", mustLoad(t, s, time.Time{}).Nodes, []*gang.Node{a})
}

func testSharedSpec(t *testing.T, p Place) {
	s := mustOpen(t, p)
	var jobs []*gang.Job
	for i := range 50 {
		j := NewJob(int64(i+1), 1)
		j.ArrayID, j.ArrayIndex, j.Array = 1, i, &gang.ArrayInfo{Count: 50, Max: 49, Step: 1, Limit: 4}
		jobs = append(jobs, j)
	}
	mustCommit(t, s, Submitted(jobs...))
	other := NewJob(51, 1)
	other.SpecHash, other.Spec = "another", &api.Spec{WorkDir: "another", Size: 1}
	mustCommit(t, s, Submitted(other))

	got := mustLoad(t, s, time.Time{}).Jobs
	same(t, "jobs", got, append(jobs, other))
	for _, j := range got[:50] {
		if j.Spec != got[0].Spec {
			t.Fatal("two elements of an array have specs of their own")
		}
	}
}

// testChangedSpec: a job that asks for something else while it waits has the other spec from that commit on, also once it has ended.
func testChangedSpec(t *testing.T, p Place) {
	ctx := context.Background()
	s := mustOpen(t, p)
	j := NewJob(1, 1)
	mustCommit(t, s, Submitted(j, NewJob(2, 1)))
	for _, hash := range []string{"other", "third", "hash-of-train", "other"} {
		left := j.SpecHash
		j = j.Copy()
		j.SpecHash, j.Spec = hash, NewJob(1, 1).Spec
		if hash != "hash-of-train" {
			j.Spec.WorkDir = "/home/" + hash
		}
		ch := WithSpecs(&gang.Changes{Jobs: []*gang.Job{j}})
		ch.LeftSpecs = []string{left}
		mustCommit(t, s, ch)
		same(t, "jobs", mustLoad(t, s, time.Time{}).Jobs, []*gang.Job{j, NewJob(2, 1)})
		if _, err := s.Spec(ctx, left); (left == "hash-of-train") != (err == nil) {
			t.Errorf("the spec %s that the job had, and job 2 has hash-of-train: %v", left, err)
		}
		got, err := s.Spec(ctx, hash)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "its spec", got, WithSpecs(&gang.Changes{Jobs: []*gang.Job{j}}).Specs[hash])
	}
	mustVerify(t, s)
	mustCommit(t, s, &gang.Changes{Jobs: []*gang.Job{end(j, T0)}})
	got, err := s.Job(ctx, 1)
	if err != nil || got.SpecHash != "other" {
		t.Fatalf("the job after its end: %+v, %v", got, err)
	}
	mustVerify(t, s)
}

// testTexts: what makes a spec large is on the disk, and in memory only of whoever asks for it.
func testTexts(t *testing.T, p Place) {
	ctx := context.Background()
	s := mustOpen(t, p)
	j := NewJob(1, 1)
	j.SpecHash = "large"
	whole := *j.Spec
	whole.Script, whole.Env, whole.Args = []byte("#!/bin/sh\n\x00\xff"), []string{"A=" + strings.Repeat("ü<", 1<<20), "B="}, []string{"",
		"x y"}
	j.TextBytes = whole.TextBytes()
	mustCommit(t, s, &gang.Changes{Jobs: []*gang.Job{j, NewJob(2, 1)}, NextID: 3,
		Specs: map[string]*api.Spec{"large": &whole, "hash-of-train": WithSpecs(&gang.Changes{Jobs: []*gang.Job{NewJob(2,
			1)}}).Specs["hash-of-train"]}})
	for range 2 {
		got, err := s.Spec(ctx, "large")
		if err != nil {
			t.Fatal(err)
		}
		same(t, "the spec", got, &whole)
		same(t, "jobs in memory", mustLoad(t, s, time.Time{}).Jobs, []*gang.Job{j, NewJob(2, 1)})
		one, err := s.Job(ctx, 1)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "one job", one, j)
		if _, err := s.Spec(ctx, "larg"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a spec that is of no job: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = mustOpen(t, p)
	}
	mustCommit(t, s, &gang.Changes{Jobs: []*gang.Job{end(j, T0)}})
	mustForget(t, s, 1)
	if _, err := s.Spec(ctx, "large"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the spec of a forgotten job: %v", err)
	}
	lost := NewJob(3, 1)
	lost.SpecHash = "lost"
	if _, err := s.Commit(ctx, &gang.Changes{Jobs: []*gang.Job{lost}, NextID: 4}); err == nil ||
		!strings.Contains(err.Error(), "job 3 is new, and its spec lost is not in the batch") {
		t.Errorf("a new job without its spec: %v", err)
	}
}

func testRanks(t *testing.T, p Place) {
	s := mustOpen(t, p)
	j := NewJob(1, 4)
	mustCommit(t, s, Submitted(j))
	put := func(what string, r gang.Rank) {
		t.Helper()
		c := j.Copy()
		c.Epoch = 1
		c.Ranks = append([]gang.Rank(nil), j.Ranks...)
		c.Ranks[2] = r
		j = c
		mustCommit(t, s, &gang.Changes{Jobs: []*gang.Job{j}, Ranks: []gang.RankRow{{Job: 1, Index: 2, Rank: r}}})
		same(t, what, mustLoad(t, s, time.Time{}).Jobs, []*gang.Job{j})
	}
	reserved := gang.Rank{State: api.RankReserved, Slot: cluster.Slot{Node: "n1", Cards: []string{"GPU-1"}}}
	put("reserved", reserved)
	// Rolled back: the row of the rank may not stay behind.
	put("rolled back", gang.Rank{State: api.RankBlocked})
	// Blocked again, but with what it last did still on record.
	put("blocked again", gang.Rank{State: api.RankBlocked, Exited: true, ExitCode: 3})
	// Ranks change without their header.
	mustCommit(t, s, &gang.Changes{Ranks: []gang.RankRow{{Job: 1, Index: 0, Rank: reserved}}})
	if got := mustLoad(t, s, time.Time{}).Jobs[0]; got.Ranks[0].State != api.RankReserved {
		t.Errorf("rank 0 is %s", got.Ranks[0].State)
	}
	mustVerify(t, s)
}

func testPurged(t *testing.T, p Place) {
	s := mustOpen(t, p)
	old, young, live := NewJob(1, 1), NewJob(2, 1), NewJob(3, 1)
	old.Key, young.Key, live.Key = "k1", "k2", "k3"
	mustCommit(t, s, Submitted(old, young, live))
	old, young = end(old, T0), end(young, T0.Add(time.Hour))
	rank := gang.RankRow{Job: 1, Rank: gang.Rank{State: api.RankDone, Exited: true}}
	old.Ranks = []gang.Rank{rank.Rank}
	// An end on a live job is that of an earlier epoch.
	again := *live
	again.End = T0
	mustCommit(t, s, &gang.Changes{Jobs: []*gang.Job{old, young, &again}, Ranks: []gang.RankRow{rank},
		Epochs: []gang.EpochRow{}, Events: []api.Event{{Seq: 1, JobID: 1, Type: api.EventEnded, Time: T0}}, NextSeq: 2})
	mustCommit(t, s, &gang.Changes{Nodes: []*gang.Node{{Name: "n1"}}, Purged: []int64{1}})

	got := mustLoad(t, s, T0)
	same(t, "jobs in memory", got.Jobs, []*gang.Job{young, &again})
	same(t, "keys in memory", got.Keys, map[string]int64{"k2": 2, "k3": 3})
	same(t, "all jobs", len(mustLoad(t, s, T0.Add(-time.Nanosecond)).Jobs), 3)
	j, err := s.Job(context.Background(), 1)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "purged job", j, old)
	events, err := s.Events(context.Background(), 1, 0, 0)
	if err != nil || len(events) != 1 {
		t.Errorf("events of the purged job: %v, %v", events, err)
	}
}

func testCounters(t *testing.T, p Place) {
	s := mustOpen(t, p)
	mustCommit(t, s, &gang.Changes{Nodes: []*gang.Node{{Name: "n1"}}, NextID: 50, NextSeq: 90})
	mustCommit(t, s, &gang.Changes{Nodes: []*gang.Node{{Name: "n1"}}, NextID: 40, NextSeq: 80})
	got := mustLoad(t, s, time.Time{})
	if got.NextID != 50 || got.NextSeq != 90 {
		t.Errorf("next id %d, next seq %d", got.NextID, got.NextSeq)
	}
	lineage := s.Lineage()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, p)
	got = mustLoad(t, s, time.Time{})
	if got.NextID != 50 || got.NextSeq != 90 || s.Lineage() != lineage {
		t.Errorf("after reopening: next id %d, next seq %d, lineage %d (was %d)", got.NextID, got.NextSeq, s.Lineage(), lineage)
	}
}

func testAdvance(t *testing.T, p Place) {
	s := mustOpen(t, p)
	mustCommit(t, s, &gang.Changes{Nodes: []*gang.Node{{Name: "n1"}}, NextID: 50, NextSeq: 90})
	for _, step := range []struct {
		lineage, wantLineage uint64
		next, wantNext       int64
	}{{700, 700, 5000, 5000}, {3, 700, 60, 5000}} {
		if err := s.Advance(t.Context(), step.lineage, step.next); err != nil {
			t.Fatal(err)
		}
		if got := mustLoad(t, s, time.Time{}); s.Lineage() != step.wantLineage || got.NextID != step.wantNext || got.NextSeq != 90 {
			t.Errorf("advanced to (%d, %d): lineage %d, next id %d, next seq %d", step.lineage, step.next, s.Lineage(), got.NextID, got.NextSeq)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, p)
	if got := mustLoad(t, s, time.Time{}); s.Lineage() != 700 || got.NextID != 5000 {
		t.Errorf("after reopening: lineage %d, next id %d", s.Lineage(), got.NextID)
	}
}

func testEmptyBatch(t *testing.T, p Place) {
	s := mustOpen(t, p)
	mustCommit(t, s, Submitted(NewJob(1, 1)))
	n, err := s.Commit(context.Background(), &gang.Changes{NextID: 2, NextSeq: 1, Purged: []int64{9},
		Hints: gang.Hints{Dirty: []string{"n1"}, Queue: []int64{1}}})
	if err != nil || n != 1 {
		t.Errorf("an empty batch: lineage %d, %v", n, err)
	}
	mustCommit(t, s, &gang.Changes{NextID: 3}) // a counter moved: an id was given out
}

func testClaims(t *testing.T, p Place) {
	s := mustOpen(t, p)
	if got := mustLoad(t, s, time.Time{}).Claims; got != nil {
		t.Errorf("an empty store has claims %q", got)
	}
	first := []byte(`[1]`)
	mustCommit(t, s, &gang.Changes{Claims: first})
	first[1] = '9'
	mustCommit(t, s, Submitted(NewJob(1, 1))) // says nothing of claims
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, p)
	if got := mustLoad(t, s, time.Time{}).Claims; string(got) != "[1]" {
		t.Errorf("claims %q, want [1]", got)
	}
	mustCommit(t, s, &gang.Changes{Claims: []byte("[]")})
	if got := mustLoad(t, s, time.Time{}).Claims; string(got) != "[]" {
		t.Errorf("claims %q, want []", got)
	}
}

func testNoAlias(t *testing.T, p Place) {
	s := mustOpen(t, p)
	j := NewJob(1, 1)
	j.Avoid = []string{"n1"}
	mustCommit(t, s, Submitted(j))
	j.Avoid[0], j.Spec.WorkDir, j.Name = "n9", "changed", "changed"
	got := mustLoad(t, s, time.Time{}).Jobs[0]
	got.Avoid[0] = "n8"
	got = mustLoad(t, s, time.Time{}).Jobs[0]
	if got.Avoid[0] != "n1" || got.Spec.WorkDir != "/home/ada" || got.Name != "train" {
		t.Errorf("what was committed changed afterwards: %v %q %q", got.Avoid, got.Spec.WorkDir, got.Name)
	}
}

func testLocked(t *testing.T, p Place) {
	s := mustOpen(t, p)
	if second, err := p.Open(); !errors.Is(err, store.ErrLocked) {
		t.Errorf("a second open gave %v, %v", second, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, p)
}

func testClosed(t *testing.T, p Place) {
	ctx := context.Background()
	s := mustOpen(t, p)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, commit := s.Commit(ctx, Submitted(NewJob(1, 1)))
	_, load := s.Load(ctx, time.Time{})
	_, job := s.Job(ctx, 1)
	_, spec := s.Spec(ctx, "hash-of-train")
	_, jobs := s.Jobs(ctx, store.HistoryFilter{})
	_, epochs := s.Epochs(ctx, 1)
	_, events := s.Events(ctx, 1, 0, 0)
	_, verify := s.Verify(ctx)
	_, forget := s.Forget(ctx, []int64{1})
	for i, err := range []error{commit, load, job, spec, jobs, epochs, events, verify, s.Backup(ctx, filepath.Join(t.TempDir(), "b")),
		forget} {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("call %d on a closed store: %v", i, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
}

func testCancelled(t *testing.T, p Place) {
	s := mustOpen(t, p)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Commit(ctx, Submitted(NewJob(1, 1))); !errors.Is(err, context.Canceled) {
		t.Errorf("commit: %v", err)
	}
	if n := len(mustLoad(t, s, time.Time{}).Jobs); n != 0 {
		t.Errorf("%d jobs", n)
	}
	mustCommit(t, s, Submitted(NewJob(1, 1)))
}
