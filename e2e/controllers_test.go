package e2e

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"gangd/e2e/tally"
	"gangd/e2e/trial"
	"gangd/pkg/api"
	"gangd/pkg/controller/leader"
	"gangd/pkg/controller/store/pgserver"
	"gangd/pkg/controller/store/pgserver/pgtest"
)

// severalSize is how much a site of several controllers has to do, and for how often.
type severalSize struct {
	rounds, waiting, submitters, gangs int
	// pause of each submitter, so that what waits after 250 rounds is not ten times what waited before the first.
	pause time.Duration
}

func sizeOfSeveral() severalSize {
	if n := rounds(1); n > 1 {
		waiting, err := strconv.Atoi(os.Getenv("GANG_E2E_WAITING"))
		if err != nil {
			waiting = 10_000
		}
		return severalSize{n, waiting, 8, 20, 100 * time.Millisecond}
	}
	return severalSize{1, 50, 3, 2, 0}
}

// severalWays are what happens to the leader, or to the database. Each is over when do returns or, where it gives a
// function, when that does: submissions go on meanwhile.
var severalWays = []struct {
	name string
	long bool // not in CI
	do   func(s *several) (over func())
}{
	{"kill -9", false, func(s *several) func() { return s.signal(syscall.SIGKILL) }},
	{"TERM", false, func(s *several) func() { return s.signal(syscall.SIGTERM) }},
	{"STOP for 10 s, CONT", true, func(s *several) func() {
		pid, _ := s.leader()
		s.kill(pid, syscall.SIGSTOP)
		return func() {
			time.Sleep(10*time.Second - time.Since(s.began))
			s.kill(pid, syscall.SIGCONT)
			s.until("who stood still to end", func() bool { return !running(pid) })
		}
	}},
	{"cut from the database for 10 s", true, func(s *several) func() {
		pid, name := s.leader()
		s.lines[name].Refuse()
		return func() {
			time.Sleep(10*time.Second - time.Since(s.began))
			s.lines[name].Restore()
			s.until("who was cut off to end", func() bool { return !running(pid) })
		}
	}},
	{"pg_ctl restart -m immediate", true, func(s *several) func() {
		if err := s.database.Stop(syscall.SIGQUIT); err != nil {
			s.t.Fatal(err)
		}
		time.Sleep(rand.N(2 * leader.TTL)) // some leaders keep their seat
		if err := s.database.Restart(context.Background()); err != nil {
			s.t.Fatal(err)
		}
		s.began = time.Now() // what counts is how long it takes from here
		return nil
	}},
}

// several is a cluster of two controllers under submissions.
type several struct {
	*cluster
	size     severalSize
	began    time.Time // of what happens in the round
	database *pgserver.Server
	lines    map[string]*pgtest.Proxy // of each controller to the database
	keepers  sync.WaitGroup
	whole    *testing.T // not one of its parts, which end before keepers do
	starting sync.Mutex
	over     chan struct{} // nobody starts controllers again

	mu    sync.Mutex
	acked []int64
	when  []time.Time
	bad   []string
}

var severalNames = []string{"gangd", "gangd2"}

// startSeveral brings up two controllers. Where they are to be hurt in more ways than by signals, each has a line
// of its own to a database that is this process's child.
func startSeveral(t *testing.T, size severalSize, args ...string) *several {
	t.Helper()
	return startSeveralIn(t, trial.Bin(t), size, args...)
}

// startSeveralIn does so with programs of a directory.
func startSeveralIn(t *testing.T, bin string, size severalSize, args ...string) *several {
	t.Helper()
	if _, err := pgserver.Find(); err != nil {
		tally.Lack(t, "initdb")
	}
	s := &several{size: size, whole: t, over: make(chan struct{}), lines: map[string]*pgtest.Proxy{}}
	s.cluster = startIn(t, bin, append([]string{"--controllers=2", "--postgres", "--nodes=2", "--cpus=64", "--set=heartbeat=1s", "--set=user_jobs=0"}, args...)...)
	t.Cleanup(func() { close(s.over); s.keepers.Wait() })
	s.until("both controllers to be able to lead", func() bool {
		b, _ := os.ReadFile(filepath.Join(s.dir, "state", "n1", "controllers"))
		return strings.Contains(string(b), "gangd2") && strings.Contains(string(b), `"version":3`)
	})
	if size.rounds > 1 {
		s.takeDatabase() // under which a leader may end
	}
	s.startKeepers()
	return s
}

// takeDatabase makes the database a child of this process, and gives each controller a line of its own to it.
func (s *several) takeDatabase() {
	s.t.Helper()
	dir := filepath.Join(s.dir, "postgres")
	if err := pgserver.StopIn(s.t.Context(), dir); err != nil {
		s.t.Fatal(err)
	}
	s.database = pgtest.Run(s.t, s.dir, "postgres", pgserver.Options{})
	old := pgserver.URL(dir)
	for _, name := range severalNames {
		s.lines[name] = pgtest.NewProxy(s.t, s.tmp, name, s.database)
		s.editConfig(name, old, s.lines[name].URL(s.database, pgserver.Database))
		s.restart(name)
	}
}

// editConfig changes the file of a daemon.
func (s *several) editConfig(name, old, new string) {
	s.t.Helper()
	path := filepath.Join(s.dir, "etc", name+".toml")
	b, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(b), old) {
		s.t.Fatalf("%s has no %q: %v", path, old, err)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(b), old, new)), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// keep starts a controller again whenever it has ended, as its service manager would.
func (s *several) keep(name string) {
	for {
		select {
		case <-s.over:
			return
		case <-time.After(100 * time.Millisecond):
		}
		b, err := os.ReadFile(filepath.Join(s.dir, "run", name+".pid"))
		if err != nil {
			continue // it is being started
		}
		if pid, err := strconv.Atoi(strings.Fields(string(b))[0]); err == nil && !running(pid) {
			s.starting.Lock() // one at a time, as gangd dev wants it
			out, errs, code := s.run("gangd", "dev", "--restart="+name, "--dir="+s.dir)
			s.starting.Unlock()
			if code != 0 { // it may have ended again at once: without the database, say
				s.whole.Logf("%s is not up again: %s%s", name, out, errs)
			}
		}
	}
}

// Two controllers on one database: whatever happens to the leader, submissions go on within seconds, none
// that was acknowledged is lost or done twice, and no rank notices.
func TestControllers(t *testing.T) {
	t.Parallel()
	s := startSeveral(t, sizeOfSeveral())
	gangs := s.gangs(s.size.gangs)
	var waiting []int64
	for left := s.size.waiting; left > 0; left -= api.MaxArraySize {
		waiting = append(waiting, s.submit("-c", "64", fmt.Sprintf("--array=0-%d", min(left, api.MaxArraySize)-1), "--wrap=true"))
	}
	for _, way := range severalWays {
		if way.long && s.size.rounds == 1 {
			continue
		}
		t.Run(way.name, func(t *testing.T) {
			all := *s.cluster
			s.cluster.t = t
			defer func() { *s.cluster = all }()
			var gaps []time.Duration
			for range s.size.rounds {
				gaps = append(gaps, s.round(way.do))
				if t.Failed() {
					break
				}
			}
			slices.Sort(gaps)
			at := func(p int) time.Duration { return gaps[min(len(gaps)*p/100, len(gaps)-1)].Round(time.Millisecond) }
			t.Logf("%d rounds, last to first acknowledged submission p50 %s, p99 %s, max %s", len(gaps), at(50), at(99), at(100))
			tally.Did(way.name+" of one of two controllers", len(gaps))
		})
	}
	s.audit(gangs, waiting)
}

// A gang's ranks write down when they begin, hold a lock while they live, and end when they are released.
const severalScript = `#!/bin/sh
exec 9>>%[1]s/lock.$GANG_JOB_ID.$GANG_RANK
flock -n 9 || echo "overlap of job $GANG_JOB_ID rank $GANG_RANK" >> %[1]s/overlaps
echo "$GANG_JOB_ID $GANG_EPOCH $GANG_RANK" >> %[1]s/witness
while [ ! -e %[1]s/release ]; do sleep 0.2 9>&-; done
`

// gangs starts some that run on both nodes.
func (s *several) gangs(n int) (ids []int64) {
	script := s.script("gang.sh", fmt.Sprintf(severalScript, s.tmp))
	for range n {
		ids = append(ids, s.submit("--size=2", "--ranks-per-node=1", script))
	}
	for _, id := range ids {
		s.wait(id, api.JobRunning)
	}
	return ids
}

// leader is the process that leads.
func (s *several) leader() (pid int, name string) {
	s.until("somebody to lead", func() bool {
		out, _, code := s.run("gctl", "ping", "--json")
		var p api.PingReply
		if code != 0 || json.Unmarshal([]byte(out), &p) != nil {
			return false
		}
		pid, name = p.PID, ""
		for _, n := range severalNames {
			b, _ := os.ReadFile(filepath.Join(s.dir, "run", n+".pid"))
			if f := strings.Fields(string(b)); len(f) > 0 && f[0] == strconv.Itoa(pid) {
				name = n
			}
		}
		return name != ""
	})
	return pid, name
}

func (s *several) kill(pid int, sig syscall.Signal) {
	s.t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		s.t.Fatal(err)
	}
}

// signal sends one that ends the leader.
func (s *several) signal(sig syscall.Signal) func() {
	pid, _ := s.leader()
	s.kill(pid, sig)
	return func() { s.until("the leader to end", func() bool { return !running(pid) }) }
}

// bothUp waits until each controller runs and answers.
func (s *several) bothUp() {
	s.t.Helper()
	for _, name := range severalNames {
		path := filepath.Join(s.dir, "run", name+".sock")
		get := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: unixDial(path)}, Timeout: time.Second}
		s.until(name+" to answer", func() bool {
			resp, err := get.Get("http://gangd/readyz")
			if err != nil {
				return false
			}
			resp.Body.Close()
			return resp.StatusCode == http.StatusOK
		})
	}
}

// round is one: submitters at work, something happens, and they go on. It gives the longest time between two
// acknowledged submissions since it began.
func (s *several) round(do func(*several) func()) time.Duration {
	s.t.Helper()
	s.bothUp()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	from := len(s.acked)
	for range s.size.submitters {
		all.Go(func() {
			for ctx.Err() == nil {
				s.ask()
				time.Sleep(s.size.pause)
			}
		})
	}
	since := func(t time.Time) (n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, at := range s.when[from:] {
			if at.After(t) {
				n++
			}
		}
		return n
	}
	s.until("submissions before", func() bool { return since(time.Time{}) > s.size.submitters })
	s.began = time.Now()
	over := do(s)
	// A leader that was killed is missed after its time has run out.
	s.until("submissions after", func() bool { return since(s.began.Add(2500*time.Millisecond)) > s.size.submitters })
	if over != nil {
		over()
	}
	cancel()
	all.Wait()
	when := slices.Clone(s.when[from:])
	slices.SortFunc(when, time.Time.Compare)
	longest := time.Duration(0)
	before := s.began
	for _, at := range when {
		if at.After(s.began) {
			longest, before = max(longest, at.Sub(before)), at
		}
	}
	if longest > severalLimit {
		s.t.Logf("%v without an acknowledged submission; the controllers said\n%s", longest, s.saidSince(s.began))
	}
	return longest
}

// severalLimit is what a fail-over may take before it is worth looking into.
const severalLimit = 4500 * time.Millisecond

// saidSince are the lines of the controllers' logs from a moment on.
func (s *several) saidSince(when time.Time) string {
	from := "time=" + when.UTC().Format("2006-01-02T15:04:05.000")
	var out []string
	for _, name := range severalNames {
		for _, line := range lines(s.t, filepath.Join(s.dir, "log", name+".log")) {
			if line >= from && len(out) < 100 {
				out = append(out, name+" "+line)
			}
		}
	}
	return strings.Join(out, "\n")
}

// ask submits one job, which has to be acknowledged.
func (s *several) ask() {
	out, errs, code := s.run("gsubmit", "--parsable", "--hold", "--wrap=true")
	id, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
	s.mu.Lock()
	defer s.mu.Unlock()
	if code != 0 || err != nil {
		s.bad = append(s.bad, fmt.Sprintf("gsubmit: exit %d, %q: %s", code, out, errs))
		return
	}
	s.acked, s.when = append(s.acked, id), append(s.when, time.Now())
}

// audit looks at what was promised, and ends all that runs.
func (s *several) audit(gangs, waiting []int64) {
	s.t.Helper()
	tally.Checked(s.t, "gsubmit exits 0 throughout", s.bad...)
	var jobs struct{ Jobs []api.Job }
	s.client().Decode(&jobs, "gqueue", "--json", "--timeout=2m") // of a hundred thousand
	there := map[int64]bool{}
	for i := range jobs.Jobs {
		there[jobs.Jobs[i].JobID] = true
	}
	var lost, twice []string
	seen := map[int64]bool{}
	for _, id := range s.acked {
		if !there[id] {
			lost = append(lost, fmt.Sprintf("job %d", id))
		}
		if seen[id] {
			twice = append(twice, fmt.Sprintf("job %d", id))
		}
		seen[id] = true
	}
	tally.Checked(s.t, "an acknowledged job is there", lost...)
	tally.Checked(s.t, "an id is given out once", twice...)
	s.t.Logf("%d submissions were acknowledged", len(s.acked))
	for _, id := range waiting {
		s.must("gcancel", "--timeout=2m", strconv.FormatInt(id, 10)) // of ten thousand elements
	}
	s.release(gangs, 1)
	if s.database != nil {
		tally.Checked(s.t, "who was replaced writes nothing", s.staleWrites()...)
	}
}

// release lets gangs end, and looks whether they did in their only epoch, without a rank beside another of its own.
func (s *several) release(gangs []int64, epoch int) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.tmp, "release"), nil, 0o644); err != nil {
		s.t.Fatal(err)
	}
	var ended []string
	for _, id := range gangs {
		if j := s.wait(id, api.JobCompleted); j.Epoch != epoch {
			ended = append(ended, fmt.Sprintf("job %d completed in epoch %d\n%s", id, j.Epoch, s.story(id)))
		}
	}
	if n := len(lines(s.t, filepath.Join(s.tmp, "witness"))); n != 2*epoch*len(gangs) {
		ended = append(ended, fmt.Sprintf("%d ranks were started, of %d gangs of 2 in %d epochs", n, len(gangs), epoch))
	}
	tally.Checked(s.t, "no rank is ended or started again by a take-over", ended...)
	tally.Checked(s.t, "no rank lives beside its successor", lines(s.t, filepath.Join(s.tmp, "overlaps"))...)
}

// staleWrites are commits of a term after those of a later one, and gaps in their numbers.
func (s *several) staleWrites() (bad []string) {
	s.t.Helper()
	db, err := sql.Open("pgx", s.database.URL(pgserver.Database))
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	var commits, terms int
	if err := db.QueryRow("SELECT count(*), count(DISTINCT term) FROM commit_log").Scan(&commits, &terms); err != nil {
		s.t.Fatal(err)
	}
	s.t.Logf("%d commits in %d terms", commits, terms)
	rows, err := db.Query("SELECT lineage FROM (SELECT lineage, term, lag(lineage) OVER w AS before, lag(term) OVER w AS led FROM commit_log WINDOW w AS (ORDER BY lineage)) AS x " +
		"WHERE led > term OR before != lineage - 1")
	if err != nil {
		s.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			s.t.Fatal(err)
		}
		bad = append(bad, fmt.Sprintf("commit %d", n))
	}
	return bad
}

// The database is away, or all controllers are, for three leases: ranks run on, and what ended meanwhile is recorded
// once.
func TestNobodyLeads(t *testing.T) {
	t.Parallel()
	chaos(t)
	const lease = 6 * time.Second
	s := startSeveral(t, severalSize{rounds: 2}, "--set=lease="+lease.String(), "--set=node_timeout=3s", "--set=grace=2s")
	gangs := s.gangs(4)
	for _, way := range []struct {
		name       string
		away, back func()
	}{
		{"the database is away", func() {
			if err := s.database.Stop(syscall.SIGQUIT); err != nil {
				s.t.Fatal(err)
			}
		}, func() {
			if err := s.database.Restart(context.Background()); err != nil {
				s.t.Fatal(err)
			}
		}},
		{"both controllers are stopped", s.stopKeepers, s.startKeepers},
	} {
		s.bothUp()
		ends := s.submit("--size=2", "--ranks-per-node=1", "--wrap=sleep "+fmt.Sprint(lease.Seconds()))
		s.wait(ends, api.JobRunning)
		way.away()
		time.Sleep(3 * lease)
		way.back()
		s.bothUp()
		j := s.wait(ends, api.JobCompleted)
		n := 0
		for _, e := range s.events(ends) {
			if e.Type == api.EventEnded {
				n++
			}
		}
		if j.Epoch != 1 || n != 1 {
			t.Errorf("%s: what ended meanwhile completed in epoch %d, with %d ends on record\n%s", way.name, j.Epoch, n, s.story(ends))
		}
		tally.Did(way.name+" for three leases", 1)
	}
	s.release(gangs, 1)
}

// stopKeepers ends the controllers, for as long as nobody starts them.
func (s *several) stopKeepers() {
	close(s.over)
	s.keepers.Wait()
	s.over = make(chan struct{})
	for _, name := range severalNames {
		pid := s.pid(name)
		s.kill(pid, syscall.SIGTERM)
		s.until(name+" to end", func() bool { return !running(pid) })
	}
}

func (s *several) startKeepers() {
	for _, name := range severalNames {
		s.keepers.Go(func() { s.keep(name) })
	}
}

// A standby is promoted under submissions: they go on, directly and through a pooler, and nothing is lost where it was
// a synchronous one.
func TestPromotionUnderControllers(t *testing.T) {
	t.Parallel()
	chaos(t)
	for _, pooled := range []bool{false, true} {
		t.Run(fmt.Sprint("pooled=", pooled), func(t *testing.T) {
			var gaps []time.Duration
			for range rounds(2) {
				gaps = append(gaps, promoted(t, pooled))
			}
			slices.Sort(gaps)
			t.Logf("%d rounds, first acknowledged submission after the promotion: p50 %s, max %s", len(gaps), gaps[len(gaps)/2], gaps[len(gaps)-1])
			tally.Did("promotion of a synchronous standby", len(gaps))
		})
	}
}

// severalOnPair is two controllers on a primary with a standby.
func severalOnPair(t *testing.T, pooled bool) (s *several, a, b *pgserver.Server, pooler *pgtest.Bouncer) {
	t.Helper()
	if _, err := pgserver.Find(); err != nil {
		tally.Lack(t, "initdb")
	}
	dir := pgtest.Dir(t)
	a = pgtest.Run(t, dir, "a", pgserver.Options{})
	b = pgtest.Run(t, dir, "b", pgserver.Options{Of: a})
	url := a.URL(pgserver.Database, b)
	if pooled {
		pooler = pgtest.NewBouncer(t, a)
		url = pooler.URL(pgserver.Database)
	}
	s = &several{size: severalSize{rounds: 2, submitters: 8}, whole: t, over: make(chan struct{}), database: b}
	s.cluster = start(t, "--controllers=2", "--nodes=2", "--cpus=64", "--set=heartbeat=1s", "--set=database="+url)
	t.Cleanup(func() { close(s.over); s.keepers.Wait() })
	s.startKeepers()
	return s, a, b, pooler
}

// replicas waits until the primary has a standby in this state of synchrony.
func replicas(t *testing.T, primary *pgserver.Server, state string) {
	t.Helper()
	db, err := sql.Open("pgx", primary.URL(pgserver.Database))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for give := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		n := 0
		err := db.QueryRow("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = $1", state).Scan(&n)
		if err == nil && n == 1 {
			return
		}
		if time.Now().After(give) {
			t.Fatalf("no standby became %s: %v", state, err)
		}
	}
}

// promoted is one round: how long it took from the promotion to the first acknowledged submission.
func promoted(t *testing.T, pooled bool) time.Duration {
	s, a, b, pooler := severalOnPair(t, pooled)
	gangs := s.gangs(4)
	if err := errors.Join(a.Set("synchronous_standby_names = '*'"), a.Signal(syscall.SIGHUP)); err != nil {
		t.Fatal(err)
	}
	replicas(t, a, "sync")
	gap := s.round(func(s *several) func() {
		if err := errors.Join(a.Stop(syscall.SIGKILL), b.Promote(context.Background())); err != nil {
			t.Fatal(err)
		}
		s.began = time.Now()
		if pooled {
			pooler.To(t, b)
		}
		return nil
	})
	s.audit(gangs, nil)
	return gap
}

// A replica that lacks some commits is put in place: gangd holds, with both numbers.
func TestReplicaLacksCommits(t *testing.T) {
	t.Parallel()
	chaos(t)
	for _, lacks := range []int{1, 7, 40} {
		t.Run(fmt.Sprint(lacks), func(t *testing.T) {
			s, a, b, _ := severalOnPair(t, false)
			s.gangs(2)
			replicas(t, a, "async")
			time.Sleep(2 * time.Second) // nodes hear of the newest commit with a beat
			if err := b.Stop(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			for range lacks {
				s.submit("--hold", "--wrap=true")
			}
			time.Sleep(2 * time.Second)
			if err := errors.Join(a.Stop(syscall.SIGKILL), b.Restart(t.Context()), b.Promote(t.Context())); err != nil {
				t.Fatal(err)
			}
			var held string
			s.until("the next leader to hold", func() bool {
				var p api.PingReply
				out, _, code := s.run("gctl", "ping", "--json")
				if code != 0 || json.Unmarshal([]byte(out), &p) != nil {
					return false
				}
				held = p.Hold
				return held != ""
			})
			if len(regexp.MustCompile(`commit [0-9]+`).FindAllString(held, -1)) < 2 {
				t.Errorf("it holds without both numbers: %s", held)
			}
			t.Log(held)
			if _, _, code := s.run("gsubmit", "--hold", "--wrap=true"); code == 0 {
				t.Error("a job was accepted on hold")
			}
			tally.Did("replica put in place that lacks commits", 1)
		})
	}
}

// The controllers are upgraded one after the other under submissions, the one that leads last: nobody notices.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	chaos(t)
	const newer = "9.9.9"
	from, dir := trial.Bin(t), t.TempDir()
	all, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if err := exec.Command("cp", "--reflink=auto", filepath.Join(from, f.Name()), dir).Run(); err != nil && !f.IsDir() {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-ldflags", "-s -w -X gangd/pkg/api.Version="+newer, "-o", filepath.Join(dir, "newer"), "gangd/cmd/gangd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s := startSeveralIn(t, dir, severalSize{rounds: 1, submitters: 8})
	gangs := s.gangs(4)
	version := func() string {
		var p api.PingReply
		s.client().Decode(&p, "gctl", "ping", "--json")
		return p.Version
	}
	before := version()
	gap := s.round(func(s *several) func() {
		if err := os.Rename(filepath.Join(dir, "newer"), filepath.Join(dir, "gangd")); err != nil {
			t.Fatal(err)
		}
		_, leads := s.leader()
		for _, name := range severalNames {
			if name == leads {
				continue
			}
			pid := s.pid(name)
			s.kill(pid, syscall.SIGTERM)
			s.until(name+" to end", func() bool { return !running(pid) })
			s.bothUp()
		}
		if got := version(); got != before {
			t.Errorf("the newer one leads, %s, before the older was told to end", got)
		}
		return s.signal(syscall.SIGTERM)
	})
	s.bothUp()
	if got := version(); got != newer || before == newer {
		t.Errorf("version %s leads, before it was %s", got, before)
	}
	t.Logf("longest time between two acknowledged submissions: %s", gap)
	s.audit(gangs, nil)
	tally.Did("both controllers upgraded under load", 1)
}
