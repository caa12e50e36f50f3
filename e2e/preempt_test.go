package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
)

// TestPreemptionOfACheckpointingGang: a gang of a higher priority takes the place of one
// that checkpoints. That one is told in time, hands over, waits, and goes on where it was;
// nothing is charged to it.
func TestPreemptionOfACheckpointingGang(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=2", "--gpus=2x80G", "--set", "preempt=tier")
	low := c.script("low.sh", `#!/bin/bash
n=$(base64 -d <<< "$CHECKPOINT_DATA"); n=${n:-0}
echo "epoch $GANG_EPOCH from $n" >> from.$GANG_RANK
trap stop=1 USR1
while [ $n -lt 150 ]; do
	sleep 0.02 & wait $!
	n=$((n + 1)); echo $n >> count.$GANG_RANK
	if [ -n "$stop" ]; then
		gckpt put - <<< "$n"; echo "$n" >> saved.$GANG_RANK
		exec sleep 600
	fi
done
`)
	id := c.submit("--size=4", "--gpus-per-rank=1", "--signal=B:USR1@2", low)
	c.wait(id, api.JobRunning)
	c.until("every rank works", func() bool {
		for r := range 4 {
			if len(lines(t, c.tmp+fmt.Sprintf("/count.%d", r))) < 5 {
				return false
			}
		}
		return true
	})
	high := c.submit("--priority=10", "--size=4", "--gpus-per-rank=1", "-o", "/dev/null", "--wrap", "sleep 1")
	if got := c.wait(high, api.JobRunning, api.JobCompleted); got.StartTime.Sub(got.SubmitTime) < time.Second {
		t.Errorf("started %s after its submission: the notice is two seconds", got.StartTime.Sub(got.SubmitTime))
	}
	c.wait(high, api.JobCompleted)
	job := c.wait(id, api.JobCompleted)
	if job.Epoch != 2 || job.RestartCount != 1 {
		t.Errorf("epoch %d, %d restarts", job.Epoch, job.RestartCount)
	}
	for cause, b := range job.Budgets {
		if b.Used != 0 {
			t.Errorf("%s is charged %d", cause, b.Used)
		}
	}
	story := c.story(id)
	for _, want := range []string{"preempted for job " + fmt.Sprint(high), "notice USR1, 2 s before the end: preempted", "drain completed"} {
		if !strings.Contains(story, want) {
			t.Errorf("its story lacks %q:\n%s", want, story)
		}
	}
	for r := range 4 {
		saved := lines(t, c.tmp+fmt.Sprintf("/saved.%d", r))
		if len(saved) != 1 {
			t.Fatalf("rank %d saved %q", r, saved)
		}
		from := lines(t, c.tmp+fmt.Sprintf("/from.%d", r))
		if want := fmt.Sprintf("epoch 2 from %s", saved[0]); len(from) != 2 || from[1] != want {
			t.Errorf("rank %d began %q, want the second %q", r, from, want)
		}
		for i, l := range lines(t, c.tmp+fmt.Sprintf("/count.%d", r)) {
			if l != fmt.Sprint(i+1) {
				t.Fatalf("rank %d counted %s in place of %d", r, l, i+1)
			}
		}
	}
}

// TestNobodyOptsOutOfPreemption: neither what a gang may not run again for, nor a rank that
// is done, nor a long --min-run keeps the taker waiting for longer than the site allows, by
// tier and by quota. Each victim gets its notice, ends PREEMPTED, and is charged nothing.
func TestNobodyOptsOutOfPreemption(t *testing.T) {
	t.Parallel()
	slack := 10 * time.Second // a twentieth of that is usual
	if os.Getenv("GANG_E2E_CHAOS") != "" {
		slack = 500 * time.Millisecond
	}
	for _, by := range []struct {
		name          string
		set           []string
		victim, taker []string
	}{
		{"tier", []string{"--set", "preempt=tier"}, nil, []string{"--priority=10"}},
		{"quota", nil, []string{"-A", "lent"}, []string{"-A", "own"}},
	} {
		t.Run(by.name, func(t *testing.T) {
			c := start(t, append([]string{"--nodes=1", "--gpus=2x80G", "--set", "grace=1s", "--set", "min_run_max=3s"}, by.set...)...)
			if by.name == "quota" {
				c.configure("[[account]]\nname = \"own\"\nquota = 2\n[[account]]\nname = \"lent\"\n")
			}
			script := c.script("victim.sh", `#!/bin/bash
[ "$GANG_RANK$1" = 0done ] && exit 0
trap 'echo told >> told.$GANG_JOB_ID.$GANG_RANK; exit 0' USR1
echo up > up.$GANG_JOB_ID.$GANG_RANK
while :; do sleep 0.05 & wait $!; done
`)
			submit := func(args ...string) int64 {
				return c.submit(append(append([]string{"--size=2", "--gpus-per-rank=1", "-o", "/dev/null"}, by.victim...), args...)...)
			}
			notice := "--signal=B:USR1@1"
			if _, errs, code := c.run("gsubmit", "--min-run=10d", script); code != 1 || !strings.Contains(errs, "the minimum run of 10 d is above the 3 s that this site allows") {
				t.Errorf("--min-run=10d: status %d, %s", code, errs)
			}
			for _, tt := range []struct {
				name string
				args []string
				ends bool
			}{
				{"no requeue", []string{"--no-requeue", notice, script}, true},
				{"requeue=crash", []string{"--requeue=crash", notice, script}, true},
				{"a rank is done", []string{notice, script, "done"}, true},
				{"min-run", []string{"--min-run=3s", notice, script}, false},
			} {
				id := submit(tt.args...)
				c.wait(id, api.JobRunning)
				told := 2
				if tt.name == "a rank is done" {
					told = 1
					c.until("rank 0 is done", func() bool { return c.job(id).Ranks[0].State == api.RankDone })
				}
				c.until("the others can hear the notice", func() bool {
					up, err := filepath.Glob(c.tmp + fmt.Sprintf("/up.%d.*", id))
					return err == nil && len(up) == told
				})
				taker := c.submit(append(append([]string{"--size=2", "--gpus-per-rank=1", "-o", "/dev/null"}, by.taker...), "--wrap", "sleep 0.5")...)
				if !tt.ends { // protected for a while, and said so
					num := strconv.FormatInt(id, 10)
					want := regexp.MustCompile("could make room, but protected: job " + num + ` until [-0-9 ]*\d\d:\d\d:\d\d \(its --min-run\)`)
					if why := c.must("gqueue", "--why", strconv.FormatInt(taker, 10)); !want.MatchString(why) {
						t.Errorf("%s: why:\n%s\nlacks %s", tt.name, why, want)
					}
					if show := c.must("gctl", "show", "job", num); !strings.Contains(show, " SafeBy=min-run") {
						t.Errorf("%s: gctl show job:\n%s", tt.name, show)
					}
					if line := c.must("gqueue", "-h", "-j", num, "-O", "safeuntil"); !strings.HasPrefix(line, "20") {
						t.Errorf("%s: gqueue -O safeuntil: %q", tt.name, line)
					}
				}
				took := c.wait(taker, api.JobRunning, api.JobCompleted)
				want, most := api.JobPreempted, 2*time.Second+slack // lead and grace
				if !tt.ends {
					want, most = api.JobRunning, most+3*time.Second
				}
				if d := took.StartTime.Sub(took.SubmitTime); d > most {
					t.Errorf("%s: the taker started after %s, want at most %s", tt.name, d, most)
				} else {
					t.Logf("%s: the taker started after %s", tt.name, d)
				}
				job := c.wait(id, want)
				for cause, b := range job.Budgets {
					if b.Used != 0 {
						t.Errorf("%s: %s is charged %d", tt.name, cause, b.Used)
					}
				}
				witnesses, err := filepath.Glob(c.tmp + fmt.Sprintf("/told.%d.*", id))
				if err != nil || len(witnesses) != told {
					t.Errorf("%s: told were %v, want %d ranks", tt.name, witnesses, told)
				}
				if len(c.eventsOf(id, api.EventNotice)) != 1 {
					t.Errorf("%s: not one notice:\n%s", tt.name, c.story(id))
				}
				if !tt.ends {
					c.must("gcancel", "--now", strconv.FormatInt(id, 10))
				}
			}
		})
	}
}

// TestResumesAfterItsTimeLimit: a gang that saves and exits 0 in the lead of its limit goes on
// in another run, behind who waits, charged nothing; when all its runs together took what it
// asked for it ends TIMEOUT.
func TestResumesAfterItsTimeLimit(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=1", "--gpus=1x80G", "--set", "grace=1s")
	script := c.script("resume.sh", `#!/bin/bash
n=$(base64 -d <<< "$CHECKPOINT_DATA"); n=${n:-0}
echo "$GANG_EPOCH $n" >> runs
trap 'gckpt put - <<< $((n + 1)); exit 0' USR1
while :; do sleep 0.05 & wait $!; done
`)
	args := []string{"--gpus-per-rank=1", "--time=3s", "--signal=B:USR1@1", "-o", "/dev/null"}
	if _, errs, code := c.run("gsubmit", append(args, "--requeue=timeout", script)...); code != 2 || !strings.Contains(errs, "needs a bound on all its runs together") {
		t.Errorf("without a bound: status %d, %s", code, errs)
	}
	id := c.submit(append(args, "--requeue=timeout", "--max-time-total=8s", script)...)
	c.wait(id, api.JobRunning)
	other := c.submit("--gpus-per-rank=1", "--time=1h", "-o", "/dev/null", "--wrap", "sleep 0.2")
	job := c.wait(id, api.JobTimeout)
	if job.Epoch != 3 && job.Epoch != 4 || job.RestartCount != job.Epoch-1 || !strings.Contains(job.Verdict, "of the 8 s that it asked for (--max-time-total)") {
		t.Errorf("epoch %d, %d restarts, %s", job.Epoch, job.RestartCount, job.Verdict)
	}
	for cause, b := range job.Budgets {
		if b.Used != 0 {
			t.Errorf("%s is charged %d", cause, b.Used)
		}
	}
	for i, l := range lines(t, c.tmp+"/runs") {
		if l != fmt.Sprintf("%d %d", i+1, i) {
			t.Errorf("run %d began with %q", i+1, l)
		}
	}
	between := c.job(other)
	if second := c.eventsOf(id, api.EventStarted)[1]; between.State != api.JobCompleted || between.StartTime.After(second.Time) {
		t.Errorf("who waited is %s since %s, the second run began at %s", between.State, between.StartTime, second.Time)
	}
}

// configure adds to the configuration of gangd, and has it read anew.
func (c *cluster) configure(text string) {
	c.t.Helper()
	path := filepath.Join(c.dir, "etc", "gangd.toml")
	b, err := os.ReadFile(path)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(path, append(b, "\n"+text...), 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.kill("gangd")
	c.restart("gangd")
}
