package noded

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/client/cli"
	"gangd/pkg/controller/engine"
	"gangd/pkg/core/gang"
	"gangd/pkg/lab/disk"
	"gangd/pkg/node/gpu"
)

// What greport says is what the ledger says, and that is the sum over the attempts that gacct says there were: by day and
// cause, over midnights, whatever was measured of them. Each job has an account of its own.
func TestReportIsTheSumOfAttempts(t *testing.T) {
	s := newScriptedSite(t, disk.Open(t), 3, 4)
	s.beat = 9 * time.Second
	plays := map[string][]play{} // by the name of a job, one an epoch
	s.load = func(k api.MemberKey, b *api.AssignmentBody) play {
		p := plays[b.Name][min(k.Epoch, len(plays[b.Name]))-1]
		p.phases = slices.Clone(p.phases)
		return p
	}
	round := 0
	var whole api.LedgerFigures
	rapid.Check(t, func(rt *rapid.T) {
		round++
		if rapid.Bool().Draw(rt, "late") {
			s.sleepUntilLate()
		}
		var ids []int64
		var accounts []string
		cancel := map[int64]time.Duration{}
		for i := range rapid.IntRange(1, 3).Draw(rt, "jobs") {
			name := fmt.Sprintf("r%d-%d", round, i)
			for range rapid.IntRange(1, 3).Draw(rt, "epochs") {
				p := play{exit: rapid.IntRange(0, 1).Draw(rt, "exit"), blind: rapid.IntRange(0, 5).Draw(rt, "blind") == 0}
				for range rapid.IntRange(1, 3).Draw(rt, "phases") {
					p.phases = append(p.phases, phase{time.Duration(rapid.IntRange(1, 1_500_000).Draw(rt, "ms")) * time.Millisecond, float64(rapid.IntRange(0, 40).Draw(rt, "cpus")) / 10, 1 << 30,
						gpu.Sample{Utilization: rapid.IntRange(-1, 100).Draw(rt, "use"), UsedBytes: 1 << 30, PowerWatts: rapid.IntRange(0, 700).Draw(rt, "watts")}})
				}
				plays[name] = append(plays[name], p)
			}
			retries := rapid.IntRange(0, 2).Draw(rt, "retries")
			sp := api.Spec{Name: name, Account: name, Size: rapid.IntRange(1, 3).Draw(rt, "size"), CPUsPerRank: rapid.IntRange(1, 4).Draw(rt, "asked"), GPUsPerRank: rapid.IntRange(0, 2).Draw(rt, "cards"),
				MaxRetries: &retries}
			id := s.submit(sp, 0)
			ids, accounts = append(ids, id), append(accounts, name)
			if rapid.IntRange(0, 3).Draw(rt, "cancel") == 0 {
				cancel[id] = s.now + time.Duration(rapid.IntRange(0, 2000).Draw(rt, "after"))*time.Second
			}
		}
		for over, steps := false, 0; !over; steps++ {
			if steps > 10_000 { // more than a day
				rt.Fatalf("the jobs do not end")
			}
			for id, at := range cancel {
				if s.now >= at {
					delete(cancel, id)
					s.cancel(id)
				}
			}
			if s.step() {
				if steps%100 == 0 {
					s.runningIsBookedAsRunning(rt, ids, accounts)
				}
				continue
			}
			s.nodes[0].tell(api.Actual{})
			over = !slices.ContainsFunc(ids, func(id int64) bool {
				j, err := s.engine.One(t.Context(), api.JobRef{ID: id, Index: -1}, engine.Caller{})
				if err != nil {
					rt.Fatal(err)
				}
				return !gang.JobState(j).Ended()
			})
		}
		got := s.attempts(ids...)
		for i := range got.Jobs {
			s.reportIsSum(rt, &got.Jobs[i], got.Attempts, &whole)
		}
	})
	table := strings.Split(strings.TrimSpace(string(s.command(cli.NewGreport(nil), "usage", "--from=2026-03-01", "--to=2030-01-01", "--by=user", "--format=csv"))), "\n")
	line := strings.Split(table[len(table)-1], ",")
	const hour = 3600_000.0
	if len(table) != 2 || line[1] != strconv.FormatFloat(float64(whole.CardMS)/hour, 'f', -1, 64) || line[2] != strconv.FormatFloat(float64(whole.CPUMS)/hour, 'f', -1, 64) || line[6] != fmt.Sprint(whole.Attempts) {
		t.Errorf("%q, want %g card-hours, %g CPU-hours, %d attempts", table, float64(whole.CardMS)/hour, float64(whole.CPUMS)/hour, whole.Attempts)
	}
	if found, err := s.engine.Verify(t.Context()); err != nil || len(found) > 0 {
		t.Errorf("%q, %v", found, err)
	}
}

// sleepUntilLate goes on to ten minutes before a midnight.
func (s *site) sleepUntilLate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	const day = 24 * time.Hour
	now := siteBegan.Add(s.now)
	late := now.Truncate(day).Add(day - 10*time.Minute)
	if late.Before(now) {
		late = late.Add(day)
	}
	s.now += late.Sub(now)
}

// runningIsBookedAsRunning: no cause is in the ledger of which no attempt has ended.
func (s *site) runningIsBookedAsRunning(rt *rapid.T, ids []int64, accounts []string) {
	ledger, err := s.engine.Ledger(s.t.Context(), &api.LedgerQuery{By: []string{"cause"}, Accounts: accounts})
	if err != nil {
		rt.Fatal(err)
	}
	causes := map[api.Cause]bool{"": true}
	got := s.attempts(ids...)
	for i := range got.Attempts {
		causes[got.Attempts[i].Cause] = true
	}
	for _, r := range ledger.Rows {
		if !causes[r.Cause] {
			rt.Errorf("%s is in the ledger, and no attempt has ended so: %+v", r.Cause, r)
		}
	}
}

// booked is by what attempts of a job are counted.
type booked struct {
	day   string
	cause api.Cause
}

// bookedOf counts the attempts of a job anew. What was measured is of the day of the end alone here: sums over days are compared.
func bookedOf(rt *rapid.T, j *api.Job, all []api.Attempt) (days map[booked]*api.LedgerFigures, sum api.LedgerFigures, cards int64) {
	days = map[booked]*api.LedgerFigures{}
	for i := range all {
		a := &all[i]
		if a.JobID != j.JobID {
			continue
		}
		if a.EndTime.IsZero() {
			rt.Fatalf("attempt %d of job %d has not ended", a.Attempt, a.JobID)
		}
		lost := a.Cause != api.CauseCompleted && a.Cause != api.CauseCancelled
		for from := a.StartTime; ; {
			to := from.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
			last := !to.Before(a.EndTime)
			if last {
				to = a.EndTime
			}
			k := booked{from.UTC().Format(time.DateOnly), a.Cause}
			if days[k] == nil {
				days[k] = &api.LedgerFigures{}
			}
			f := api.LedgerFigures{}
			ms := to.Sub(a.StartTime).Milliseconds() - from.Sub(a.StartTime).Milliseconds()
			f.CardMS, f.CPUMS = ms*int64(j.Size*j.GPUsPerRank), ms*int64(j.Size*j.CPUsPerRank)
			if lost {
				f.LostCardMS, f.LostCPUMS = f.CardMS, f.CPUMS
			}
			if from.Equal(a.StartTime) {
				f.Starts = 1
			}
			if last {
				f.Attempts = 1
			}
			days[k].Add(f)
			sum.Add(f)
			if last {
				break
			}
			from = to
		}
		for _, m := range a.Measures {
			if m.CPUSeconds != nil {
				sum.UsedCPUMS += int64(math.Round(*m.CPUSeconds * 1000))
			}
			for _, c := range m.Cards {
				cards++
				if c.Joules != nil {
					sum.Joules += int64(*c.Joules)
				}
				if u := c.Utilization; u != nil && c.IdleSeconds != nil {
					sum.SeenCardMS += int64(u.Seconds * 1000)
					sum.BusyCardMS += int64(u.Seconds * u.Mean * 10)
					sum.IdleCardMS += int64(*c.IdleSeconds * 1000)
					if m.Start != nil && m.Start.CardUse != nil {
						sum.StartCardMS += int64(*m.Start.CardUse * 1000)
					}
				}
			}
		}
	}
	return days, sum, cards
}

// reportIsSum compares greport and the ledger with the attempts of one job.
func (s *site) reportIsSum(rt *rapid.T, j *api.Job, all []api.Attempt, whole *api.LedgerFigures) {
	days, want, cards := bookedOf(rt, j, all)
	whole.Add(want)
	options := []string{"--from=2026-03-01", "--to=2030-01-01", "-A", j.Account}
	var said api.LedgerFigures
	for _, by := range []string{"day,cause,user,account,partition", "month,card_type,cause"} {
		var report api.LedgerReply
		if err := json.Unmarshal(s.command(cli.NewGreport(nil), append(options, "usage", "--format=json", "--by="+by)...), &report); err != nil {
			rt.Fatal(err)
		}
		said = api.LedgerFigures{}
		for _, r := range report.Rows {
			said.Add(r.LedgerFigures)
			if by[0] == 'm' {
				continue
			}
			if r.User != j.User || r.Account != j.Account || r.Partition != j.Partition {
				rt.Errorf("job %d of %s, %s in %s is in the ledger as %+v", j.JobID, j.User, j.Account, j.Partition, r.LedgerKey)
			}
			k := booked{r.Day, r.Cause}
			w := days[k]
			if w == nil {
				rt.Errorf("job %d: %+v is in the ledger, and no attempt: %+v", j.JobID, k, r)
				continue
			}
			delete(days, k)
			got := api.LedgerFigures{Attempts: r.Attempts, Starts: r.Starts, CardMS: r.CardMS, CPUMS: r.CPUMS, LostCardMS: r.LostCardMS, LostCPUMS: r.LostCPUMS}
			if got != *w {
				rt.Errorf("job %d, %+v: greport says %+v, the attempts %+v", j.JobID, k, got, *w)
			}
		}
		ledger, err := s.engine.Ledger(s.t.Context(), &api.LedgerQuery{By: []string{"account"}, Accounts: []string{j.Account}})
		if err != nil {
			rt.Fatal(err)
		}
		if none := (api.LedgerFigures{}); len(ledger.Rows) > 1 || len(ledger.Rows) == 0 && said != none || len(ledger.Rows) == 1 && ledger.Rows[0].LedgerFigures != said {
			rt.Errorf("job %d by %s: greport says %+v, the ledger %+v", j.JobID, by, said, ledger.Rows)
		}
	}
	if len(days) > 0 {
		rt.Errorf("job %d: not in the ledger: %v", j.JobID, days)
	}
	for _, x := range []struct {
		name      string
		got, want int64
		off       int64 // each attempt and card is cut to whole milliseconds and joules
	}{{"used CPUs", said.UsedCPUMS, want.UsedCPUMS, want.Attempts * 3}, {"joules", said.Joules, want.Joules, cards}, {"cards seen", said.SeenCardMS, want.SeenCardMS, 2 * cards},
		{"cards busy", said.BusyCardMS, want.BusyCardMS, 2 * cards}, {"cards idle", said.IdleCardMS, want.IdleCardMS, 2 * cards}, {"cards before their first use", said.StartCardMS, want.StartCardMS, 2 * cards}} {
		if max(x.got-x.want, x.want-x.got) > x.off {
			rt.Errorf("job %d: %s: the ledger says %d, the attempts %d", j.JobID, x.name, x.got, x.want)
		}
	}
	completed := int64(0)
	for i := range all {
		if all[i].JobID == j.JobID && all[i].Cause == api.CauseCompleted {
			completed++
		}
	}
	// Of a job that was to run again that is when it was next.
	if want.Attempts == 1 && !j.EligibleTime.After(j.StartTime) && said.WaitMS != j.StartTime.Sub(j.EligibleTime).Milliseconds() {
		rt.Errorf("job %d waited %v, and greport says %d ms", j.JobID, j.StartTime.Sub(j.EligibleTime), said.WaitMS)
	}
	if want.Attempts > 0 {
		health := strings.Split(strings.TrimSpace(string(s.command(cli.NewGreport(nil), append(options, "health", "--format=csv", "--by=account")...))), "\n")
		if line := strings.Split(health[len(health)-1], ","); len(health) != 2 || line[1] != fmt.Sprint(want.Attempts) || line[2] != fmt.Sprint(completed) {
			rt.Errorf("job %d with %d attempts, %d completed, is %q in greport health", j.JobID, want.Attempts, completed, health)
		}
	}
}
