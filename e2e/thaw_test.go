package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gangd/pkg/api"
)

// sleeper beats into a file for each epoch, five times a second and without a fork, so that
// many of them fit on a machine. When it finds that it has stood still it claims an end of its
// own, as a thawed process of an old epoch well may: success, failure, or none.
const sleeper = `#!/bin/bash
#GANG --size=3 --ranks-per-node=1 --output=/dev/null --grace=1
trap 'exit 0' TERM
exec {never}<> <(:)
while :; do
	now=${EPOCHREALTIME%.*}
	if [ -n "$before" ] && [ $((now - before)) -ge GAP ]; then
		echo "thawed $EPOCHREALTIME" >> e.$SLURM_JOB_ID.$GANG_RANK.$GANG_EPOCH
		[ $GANG_RANK = 0 ] && exit 0
		[ $GANG_RANK = 1 ] && exit 9
	fi
	before=$now
	echo "live $EPOCHREALTIME" >> e.$SLURM_JOB_ID.$GANG_RANK.$GANG_EPOCH
	read -t 0.2 -u $never
done
`

// life is from the first to the last sign that the ranks of one epoch gave.
type life struct {
	first, last time.Time
	thawed      int
}

func (c *cluster) life(id int64, epoch int) life {
	c.t.Helper()
	var l life
	files, err := filepath.Glob(filepath.Join(c.tmp, fmt.Sprintf("e.%d.*.%d", id, epoch)))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, name := range files {
		for _, line := range lines(c.t, name) {
			var word, clock string
			if _, err := fmt.Sscan(line, &word, &clock); err != nil {
				c.t.Fatalf("witness line %q", line)
			}
			at := clockOf(c.t, clock)
			if l.first.IsZero() || at.Before(l.first) {
				l.first = at
			}
			if at.After(l.last) {
				l.last = at
			}
			if word == "thawed" {
				l.thawed++
			}
		}
	}
	return l
}

// jobs shows all jobs in one question.
func (c *cluster) jobs() map[int64]api.Job {
	c.t.Helper()
	var r api.JobsReply
	if err := json.Unmarshal([]byte(c.must("gqueue", "--json", "-t", "all")), &r); err != nil {
		c.t.Fatal(err)
	}
	out := map[int64]api.Job{}
	for _, j := range r.Jobs {
		out[j.JobID] = j
	}
	return out
}

// untilAll waits until a condition holds for every one of some jobs.
func (c *cluster) untilAll(what string, ids []int64, give time.Duration, ok func(api.Job) bool) {
	c.t.Helper()
	for end := time.Now().Add(give); ; time.Sleep(100 * time.Millisecond) {
		all := c.jobs()
		i := slices.IndexFunc(ids, func(id int64) bool { return !ok(all[id]) })
		if i < 0 {
			return
		}
		if time.Now().After(end) {
			j := all[ids[i]]
			c.t.Fatalf("after %s job %d is %s in epoch %d (%s), still not: %s\n%s", give, j.JobID, j.State, j.Epoch, j.Why, what, c.story(j.JobID))
		}
	}
}

// Nodes are frozen whole (daemon, shims, ranks) under many gangs at once, for longer than
// node_timeout and than the drain takes, then thawed in any order. No gang runs again before its
// frozen member is known gone, no two epochs of a gang ever overlap, and nothing that a thawed
// rank of an old epoch claims is taken. The long form freezes for a minute, a hundred gangs
// and more.
func TestThawedNodes(t *testing.T) {
	t.Parallel()
	// A session ends after 3 s of silence, and its node is lost node_timeout later.
	gangs, frozenFor, tries := 5, 8*time.Second, 4
	if rounds(1) > 1 {
		gangs, frozenFor, tries = 25, time.Minute, rounds(1)
	}
	gap := int(frozenFor.Seconds()) - 2
	c := start(t, "--nodes=8", "--cpus=16", "--set", "node_timeout=3s", "--set", "drain_slack=1s", "--set", "node_lost_retries=1000")
	job := c.script("s.sh", strings.Replace(sleeper, "GAP", strconv.Itoa(gap), 1))
	var ids []int64
	for range gangs {
		ids = append(ids, c.submit(job))
	}
	tried, claims := 0, 0
	for round := 1; tried < tries; round++ {
		c.untilAll("it runs and its pids are known", ids, patience, func(j api.Job) bool {
			return j.State == api.JobRunning && !slices.ContainsFunc(j.Ranks, func(r api.Rank) bool { return r.PID == 0 })
		})
		before := c.jobs()
		var used []string
		for _, id := range ids {
			used = append(used, before[id].Nodes...)
		}
		slices.Sort(used)
		used = slices.Compact(used)
		rand.Shuffle(len(used), func(i, k int) { used[i], used[k] = used[k], used[i] })
		frozen := used[:1+rand.IntN(3)] // of 8: a majority would be taken for a fault of the controller's own line
		var hit []int64
		for _, id := range ids {
			if slices.ContainsFunc(before[id].Nodes, func(n string) bool { return slices.Contains(frozen, n) }) {
				hit = append(hit, id)
			}
		}
		pids := c.everythingOn(frozen, before)
		freeze(t, pids...)
		began := time.Now()
		t.Cleanup(func() { thaw(pids...) })
		time.Sleep(frozenFor)
		for id, j := range c.jobs() {
			if slices.Contains(hit, id) && (j.State != api.JobPending || j.Epoch != before[id].Epoch) {
				t.Errorf("round %d: with a frozen member job %d is %s in epoch %d, want PENDING in %d\n%s", round, id, j.State, j.Epoch, before[id].Epoch, c.story(id))
			}
		}
		rand.Shuffle(len(pids), func(i, k int) { pids[i], pids[k] = pids[k], pids[i] })
		thaw(pids...)
		c.untilAll("it runs again", hit, patience, func(j api.Job) bool { return j.State == api.JobRunning && j.Epoch > before[j.JobID].Epoch })
		t.Logf("round %d: %d gangs with a member on a node that was frozen for %s, all run again", round, len(hit), time.Since(began).Round(time.Second))
		tried += len(hit)
	}
	time.Sleep(time.Second) // for what is late
	worst := time.Duration(-1 << 62)
	for _, id := range ids {
		j := c.job(id)
		for epoch := 1; epoch <= j.Epoch; epoch++ {
			l := c.life(id, epoch)
			claims += l.thawed
			if next := c.life(id, epoch+1); !next.first.IsZero() {
				if worst = max(worst, l.last.Sub(next.first)); !l.last.Before(next.first) {
					t.Errorf("epochs %d and %d of job %d overlap by %s\n%s", epoch, epoch+1, id, l.last.Sub(next.first), c.story(id))
				}
			}
		}
		if crash := j.Budgets[api.CauseCrash]; j.State != api.JobRunning || crash.Used != 0 {
			t.Errorf("job %d is %s, crash %d used: a claim of an old epoch was taken\n%s", id, j.State, crash.Used, c.story(id))
		}
		for _, r := range j.Ranks {
			if r.State != api.RankRunning || r.ExitCode != nil || !running(r.PID) {
				t.Errorf("rank %d of job %d took a result of an old epoch: %+v", r.Rank, id, r)
			}
		}
	}
	t.Logf("%d tries, 0 overlaps wanted: the closest two epochs came was %s apart; %d thawed ranks saw that they had stood still and claimed an end",
		tried, -worst, claims)
}

// everythingOn are all processes of some nodes: the daemon, then shims and ranks.
func (c *cluster) everythingOn(nodes []string, jobs map[int64]api.Job) (pids []int) {
	c.t.Helper()
	for _, node := range nodes {
		pids = append(pids, c.pid(node))
		states, err := filepath.Glob(filepath.Join(c.dir, "state", node, "m", "*", "state.json"))
		if err != nil {
			c.t.Fatal(err)
		}
		for _, path := range states {
			b, err := os.ReadFile(path)
			if err != nil {
				continue // a member that is over
			}
			var s struct {
				ShimPID int `json:"shim_pid"`
			}
			if err := json.Unmarshal(b, &s); err != nil {
				c.t.Fatalf("%s: %v", path, err)
			}
			if s.ShimPID != 0 && syscall.Kill(s.ShimPID, 0) == nil {
				pids = append(pids, s.ShimPID)
			}
		}
		for _, j := range jobs {
			for _, r := range j.Ranks {
				if r.Node == node && r.State == api.RankRunning {
					pids = append(pids, r.PID)
				}
			}
		}
	}
	return pids
}
