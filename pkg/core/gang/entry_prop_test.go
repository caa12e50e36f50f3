package gang

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gangd/pkg/api"
)

// maybe draws a value, or none.
func maybe[T any](t *rapid.T, what string, from ...T) *T {
	if rapid.Bool().Draw(t, "no "+what) {
		return nil
	}
	return new(rapid.SampledFrom(from).Draw(t, what))
}

func drawPartition(t *rapid.T, name string) api.Partition {
	p := api.Partition{Name: name, Default: name == "main"}
	limitPartition(&p, drawRequest(t, name))
	return p
}

func drawRequest(t *rapid.T, name string) *api.PartitionRequest {
	lists := func(of ...string) [][]string { return [][]string{{"ALL"}, {}, of[:1], of} }
	return &api.PartitionRequest{Name: name, Tier: maybe(t, "tier", 0, 1),
		MaxTime: maybe(t, "max time", 0, 10*time.Minute, time.Hour), State: maybe(t, "state", api.PartitionUp, api.PartitionUp, api.PartitionDown, api.PartitionDrain, api.PartitionInactive),
		AllowUsers: maybe(t, "users", lists("ada", "bob")...), AllowGroups: maybe(t, "groups", lists("staff", "guests")...),
		AllowAccounts: maybe(t, "accounts", lists("lab", "proj")...), DenyAccounts: maybe(t, "denied", lists("proj", "lab")...),
		MinNodes: maybe(t, "min nodes", 0, 1, 2), MaxNodes: maybe(t, "max nodes", 0, 2, 3)}
}

// limitPartition is what a request makes of a partition, written once more for the tests.
func limitPartition(p *api.Partition, r *api.PartitionRequest) {
	set := func(to *[]string, from *[]string) {
		if from != nil {
			if *to = *from; len(*from) == 0 || (*from)[0] == "ALL" {
				*to = nil
			}
		}
	}
	set(&p.AllowUsers, r.AllowUsers)
	set(&p.AllowGroups, r.AllowGroups)
	set(&p.AllowAccounts, r.AllowAccounts)
	set(&p.DenyAccounts, r.DenyAccounts)
	for _, n := range []struct {
		to   *int
		from *int
	}{{&p.MinNodes, r.MinNodes}, {&p.MaxNodes, r.MaxNodes}, {&p.Tier, r.Tier}} {
		if n.from != nil {
			*n.to = *n.from
		}
	}
	if r.MaxTime != nil {
		p.MaxTime = *r.MaxTime
	}
	if r.State != nil {
		p.State = *r.State
	}
}

// startsBy is in which of its partitions a job may be started, said in another way than the code does.
func startsBy(parts map[string]api.Partition, j *Job, groups []string) []string {
	least, most := max(1, j.Spec.MinNodes), j.Spec.Size
	if j.Spec.MaxNodes > 0 {
		most = min(most, j.Spec.MaxNodes)
	}
	var out []string
	for name := range strings.SplitSeq(j.Partition, ",") {
		p, there := parts[name]
		person := len(p.AllowUsers) == 0 && len(p.AllowGroups) == 0 || slices.Contains(p.AllowUsers, j.User)
		for _, g := range groups {
			person = person || slices.Contains(p.AllowGroups, g)
		}
		account := slices.Contains(p.AllowAccounts, j.Spec.Account) || len(p.AllowAccounts) == 0 && !slices.Contains(p.DenyAccounts, j.Spec.Account)
		short := p.MaxTime == 0 || j.TimeLimit > 0 && j.TimeLimit <= p.MaxTime
		narrow := p.MaxNodes == 0 || least <= p.MaxNodes
		if there && (p.State == "" || p.State == "drain") && person && account && short && narrow && most >= p.MinNodes {
			out = append(out, name)
		}
	}
	return out
}

// TestWhoWaitsIsJudgedAgain: after any changes of partitions by people and by the file, of groups, names and jobs, whoever waits may
// be started where what is submitted now may be, and who plans has been told of all who may be started elsewhere than before.
func TestWhoWaitsIsJudgedAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := New(settings())
		now := Instant{Wall: epoch0, Mono: mono0}
		for _, n := range []string{"n1", "n2", "n3"} {
			w.Step(now, helloOf(n))
		}
		w.SetPartitions([]api.Partition{{Name: "main", Default: true}, {Name: "night"}})
		people := map[uint32]string{1000: "ada", 1001: "bob", 1002: "eve"}
		seen := map[int64]string{} // as who plans knows them
		submit := func(s *api.Spec, uid uint32, named string, limit time.Duration) int64 {
			return w.Step(now, Submit{Spec: s, SpecHash: hashOf(s), UID: uid, User: people[uid], Partition: named, TimeLimit: limit}).JobIDs[0]
		}
		drawSpec := func() *api.Spec {
			s := specOf(rapid.IntRange(1, 4).Draw(t, "ranks"))
			s.MinNodes = rapid.IntRange(0, s.Size).Draw(t, "nodes")
			s.MaxNodes = rapid.SampledFrom([]int{0, max(1, s.MinNodes)}).Draw(t, "most nodes")
			s.Account = rapid.SampledFrom([]string{"", "lab", "proj"}).Draw(t, "account")
			return s
		}
		named := rapid.SampledFrom([]string{"main", "night", "main,night", "night,main"})
		limits := rapid.SampledFrom([]time.Duration{0, time.Minute, 30 * time.Minute, 2 * time.Hour})
		users := rapid.SampledFrom([]uint32{1000, 1001, 1002})
		var ids []int64
		for range rapid.IntRange(5, 12).Draw(t, "jobs") {
			ids = append(ids, submit(drawSpec(), users.Draw(t, "user"), named.Draw(t, "in"), limits.Draw(t, "limit")))
		}
		for range rapid.IntRange(1, 15).Draw(t, "changes") {
			switch name := rapid.SampledFrom([]string{"main", "night"}).Draw(t, "which"); rapid.IntRange(0, 7).Draw(t, "change") {
			case 0, 1:
				w.Step(now, PutPartition{Ask: *drawRequest(t, name), Old: true, By: "root"})
			case 2:
				w.SetPartitions([]api.Partition{drawPartition(t, "main"), drawPartition(t, "night")})
			case 3:
				w.Step(now, ResetPartitions{By: "root"})
			case 4:
				of := rapid.SampledFrom([][]string{{}, {"staff"}, {"guests"}, {"guests", "staff"}})
				w.Step(now, Groups{Of: map[uint32][]string{users.Draw(t, "whose"): of.Draw(t, "of")}})
			case 5:
				uid := users.Draw(t, "who")
				people[uid] = rapid.SampledFrom([]string{"ada", "bob", "eve", "zoe"}).Draw(t, "is called")
				w.Step(now, Named{UID: uid, User: people[uid]})
			case 6:
				w.Step(now, Update{Job: rapid.SampledFrom(ids).Draw(t, "job"), TimeLimit: maybe(t, "limit", 0, time.Minute, 2*time.Hour), Partition: maybe(t, "to", "main", "night,main")})
			case 7:
				s := drawSpec()
				w.Step(now, Update{Job: rapid.SampledFrom(ids).Draw(t, "job"), Spec: s, SpecHash: hashOf(s)})
			}
			if bad := w.Verify(); len(bad) > 0 {
				t.Fatal(bad)
			}
			parts := map[string]api.Partition{}
			for _, p := range w.Partitions() {
				parts[p.Name] = p
			}
			touched, _ := w.TakeQueue()
			for _, id := range ids {
				e := w.jobs.byID[id]
				want := startsBy(parts, e.job, w.site.partitions.groups[e.job.UID])
				var got []string
				c := w.Candidate(id)
				if c != nil {
					got = c.Ask.Partitions
				}
				if !slices.Equal(got, want) {
					t.Fatalf("job %d of %s (%v), %s, %s, account %q, nodes %d-%d of %d: starts in %v, want %v of %+v", id, e.job.User, w.site.partitions.groups[e.job.UID], e.job.Partition,
						e.job.TimeLimit, e.job.Spec.Account, e.job.Spec.MinNodes, e.job.Spec.MaxNodes, e.job.Spec.Size, got, want, parts)
				}
				key := ""
				if c != nil {
					key = c.Ask.Key
				}
				if slices.Contains(touched, id) {
					seen[id] = key
				} else if seen[id] != key {
					t.Fatalf("job %d may be started otherwise, %q, and who plans knows %q", id, key, seen[id])
				}
				s := *e.job.Spec
				s.Name = "job"
				fresh := submit(&s, e.job.UID, e.job.Partition, e.job.TimeLimit)
				twin := w.Candidate(fresh)
				if (twin == nil) != (c == nil) || c != nil && twin.Ask.Key != key {
					t.Fatalf("job %d waits otherwise than the same that is submitted now: %+v, %+v", id, c, twin)
				}
				w.Step(now, Cancel{Job: fresh})
			}
			w.TakeQueue()
			w.Take()
		}
	})
}
