package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gangd/e2e/trial"
	"gangd/pkg/api"
	"gangd/pkg/lab/tool"
)

// peersProgram is a rank, or a task, that has a connection to each of the others, on nodes that are hosts, and leaves at once when one
// of them is closed: sys.argv is a directory, how the culprit ends, which one that is, and how the others leave.
const peersProgram = `
import os, select, signal, socket, subprocess, sys, time
where, how, culprit, leave = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
rank = int(os.environ.get("SLURM_PROCID", os.environ.get("GANG_RANK")))
if int(os.environ.get("GANG_RESTART_COUNT", "0")): sys.exit(0)
os.chdir(where)

def put(name, text=""):
    with open(name + ".new", "w") as f: f.write(text)
    os.rename(name + ".new", name)

def hog(): # more than its node gives it, page by page
    all = []
    while True: all.append(bytearray(b"x" * 4000000))

server = socket.create_server((socket.gethostname(), 0))
put("at.%d" % rank, "%s %d" % (socket.gethostname(), server.getsockname()[1]))
peers = []
for lower in range(rank):
    while not os.path.exists("at.%d" % lower): time.sleep(0.01)
    host, port = open("at.%d" % lower).read().split()
    peers.append(socket.create_connection((host, int(port))))
for higher in range(rank + 1, 4): peers.append(server.accept()[0])
put("up.%d" % rank)

while True:
    gone, _, _ = select.select(peers, [], [], 0.01)
    if gone:
        if leave == "exception": raise ConnectionError("a peer has closed its connection")
        os._exit(9)
    if rank == culprit and os.path.exists("go"): break
if how == "killed": os.kill(os.getpid(), signal.SIGKILL)
if how == "exit": os._exit(3)
if how == "abort": os.abort()
if how == "exception": raise ValueError("its own fault")
if how == "card": os._exit(4) # as a library does that can't reach its card
if how == "oom": hog()
if how == "oom of a child":
    subprocess.call([sys.executable, "-c", "a = []\nwhile True: a.append(bytearray(b'x' * 4000000))"])
    os._exit(1)
while True: time.sleep(1) # somebody ends its node
`

// blameCase is one way in which a gang ends.
type blameCase struct {
	name   string
	how    string // what the culprit does
	leave  string // what the others do: "exit" at once, or "exception"
	cause  api.Cause
	state  string                      // of the job, where that is over then
	strike func(b *blame, node string) // what is done to the culprit's node when all are up; nil: nothing
	heal   func(b *blame, node string) // so that it can be told
}

// blame is a cluster of hosts on which gangs end, with a page and one who is told.
type blame struct {
	*cluster
	names string
	page  *http.Client
	at    string // of the page

	mu   sync.Mutex
	told map[int64][]api.Letter // by job
}

// inside are the processes of a node's network namespace, which is all of it.
func (b *blame) inside(node string) (pids []int) {
	b.t.Helper()
	of := func(pid int) string {
		to, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
		return to
	}
	home := of(b.pid(node))
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		if pid, _ := strconv.Atoi(filepath.Base(dir)); home != "" && of(pid) == home {
			pids = append(pids, pid)
		}
	}
	return pids
}

// strikeAll sends a signal to all that runs on a node.
func (b *blame) strikeAll(pids []int, sig syscall.Signal) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, sig)
	}
}

// cutOff takes the network of a node down: nothing of it reaches anybody.
func (b *blame) cutOff(node string) {
	b.t.Helper()
	if out, err := exec.Command("nsenter", "-t", strconv.Itoa(b.pid(node)), "-n", "ip", "link", "set", "eth0", "down").CombinedOutput(); err != nil {
		b.t.Fatalf("%v: %s", err, out)
	}
}

func (b *blame) killedWithReset(node string) { b.strikeAll(b.inside(node), syscall.SIGKILL) }

func (b *blame) killedSilently(node string) {
	b.cutOff(node)
	b.strikeAll(b.inside(node), syscall.SIGKILL)
}

// rebooted: as systemd ends a machine.
func (b *blame) rebooted(node string) {
	pids := b.inside(node)
	b.strikeAll(pids, syscall.SIGTERM)
	time.Sleep(time.Second)
	b.strikeAll(append(pids, b.left(node, pids)...), syscall.SIGKILL)
}

// left are processes of a node that were started since.
func (b *blame) left(node string, pids []int) (more []int) {
	if !running(b.pid(node)) {
		return nil
	}
	for _, pid := range b.inside(node) {
		if !slices.Contains(pids, pid) {
			more = append(more, pid)
		}
	}
	return more
}

func (b *blame) daemonKilled(node string) { _ = syscall.Kill(b.pid(node), syscall.SIGKILL) }

func (b *blame) back(node string) { b.restart(node) }

// backAnew: its kernel is another one.
func (b *blame) backAnew(node string) {
	b.t.Helper()
	if err := os.WriteFile(b.boot(node), []byte("00000000-1111-2222-3333-444444444444\n"), 0o644); err != nil {
		b.t.Fatal(err)
	}
	b.restart(node)
}

// boot is what a node says of its kernel from its next start on, where there is such a file.
func (b *blame) boot(node string) string { return filepath.Join(b.bin, "boot."+node) }

func (b *blame) cardsGone(node string) {
	b.steer(node, `{"0":{"gone":true},"1":{"gone":true},"2":{"gone":true},"3":{"gone":true},"4":{"gone":true}}`)
}

var blameCases = []blameCase{
	{name: "SIGKILL", how: "killed", leave: "exit", cause: api.CauseCrash, state: "FAILED"},
	{name: "os._exit", how: "exit", leave: "exit", cause: api.CauseCrash, state: "FAILED"},
	{name: "abort", how: "abort", leave: "exit", cause: api.CauseCrash, state: "FAILED"},
	{name: "exception", how: "exception", leave: "exception", cause: api.CauseCrash, state: "FAILED"},
	{name: "out of memory", how: "oom", leave: "exit", cause: api.CauseOOM, state: "OUT_OF_MEMORY"},
	{name: "a child out of memory", how: "oom of a child", leave: "exit", cause: api.CauseOOM, state: "OUT_OF_MEMORY"},
	{name: "node killed", how: "nothing", leave: "exit", cause: api.CauseNodeLost, strike: (*blame).killedWithReset},
	{name: "node killed without a reset", how: "nothing", leave: "exit", cause: api.CauseNodeLost, strike: (*blame).killedSilently},
	{name: "node shut down", how: "nothing", leave: "exit", cause: api.CauseNodeLost, strike: (*blame).rebooted},
	{name: "node rebooted", how: "nothing", leave: "exit", cause: api.CauseNodeLost, strike: (*blame).rebooted, heal: (*blame).backAnew},
	{name: "gnoded dead", how: "nothing", leave: "exit", cause: api.CauseNodeLost, strike: (*blame).daemonKilled},
	{name: "a rank ends while its gnoded is dead", how: "exit", leave: "exit", cause: api.CauseCrash, state: "FAILED", strike: (*blame).daemonKilled, heal: (*blame).back},
	{name: "card lost", how: "card", leave: "exit", cause: api.CauseNodeLost, strike: (*blame).cardsGone},
}

// TestWhoIsBlamed: gangs of four ranks on four hosts, each connected to all others, which leave at once when one does. However one of them
// ends, cause and trigger are its own, or it is said that another may have been the first; one budget is charged; and all who tell
// of it use the same words. Likewise where srun runs them.
func TestWhoIsBlamed(t *testing.T) {
	t.Parallel()
	tool.Need(t, "/usr/bin/python3", "ip", "nsenter")
	rounds, batch := 1, 1
	if os.Getenv("GANG_E2E_CHAOS") != "" {
		rounds, batch = 20, 5
	}
	if n, _ := strconv.Atoi(os.Getenv("GANG_E2E_ROUNDS")); n > 0 {
		rounds, batch = n, min(n, 5)
	}
	for _, launch := range []string{"gang", "srun"} {
		for _, c := range blameCases {
			if rounds == 1 && !slices.Contains([]string{"gang SIGKILL", "gang node killed", "srun out of memory"}, launch+" "+c.name) {
				continue // seconds each: make ends
			}
			t.Run(launch+"/"+c.name, func(t *testing.T) {
				var wrong []string
				ties := 0
				for n := 0; n < rounds; n += batch {
					t.Run(fmt.Sprint("from ", n), func(t *testing.T) {
						b := newBlame(t)
						w, said := b.play(c, launch == "srun", n, min(batch, rounds-n))
						wrong, ties = append(wrong, w...), ties+said
					})
				}
				t.Logf("%d rounds, %d wrong, %d ties", rounds, len(wrong), ties)
				for _, w := range wrong {
					t.Error(w)
				}
			})
		}
	}
}

func newBlame(t *testing.T) *blame {
	c := unstarted(t, programs(t))
	b := &blame{cluster: c, at: "http://" + trial.FreeAddress(t), told: map[int64][]api.Letter{}}
	_, errs, code := c.run("gangd", "dev", "--detach", "--isolate", "--nodes=4", "--gpus=5x80G", "--dir="+c.dir, "--set=cpus=16", "--set=memory=16G",
		"--web="+strings.TrimPrefix(b.at, "http://"), "--set=node_timeout=3s", "--set=retry_backoff=50ms", "--set=grace=2s")
	if code != 0 {
		if strings.Contains(errs, "--isolate:") && os.Getenv("GANG_E2E_CHAOS") == "" {
			t.Skipf("no hosts in namespaces on this machine: %s", errs)
		}
		t.Fatalf("gangd dev: exit %d\n%s", code, errs)
	}
	b.names = c.slurmNames()
	b.listen()
	c.script("peers.py", peersProgram)
	return b
}

// programs is a directory with all of them, in which a node's daemon takes its kernel for another where [blame.boot] says so.
func programs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	all, err := filepath.Glob(trial.Bin(t) + "/*")
	if err != nil || len(all) == 0 {
		t.Fatal("build the programs first (make e2e does)", err)
	}
	for _, path := range all {
		to := filepath.Join(dir, filepath.Base(path))
		switch filepath.Base(path) {
		case "gnoded":
			err = os.WriteFile(to+".sh", fmt.Appendf(nil, `#!/bin/sh
name=${1##*/}; boot=%s/boot.${name%%.toml}
[ ! -e $boot ] || mount --bind $boot /proc/sys/kernel/random/boot_id
exec %s "$@"
`, dir, path), 0o755)
			if err == nil {
				err = copied(to+".sh", to)
			}
		case "gangd": // it looks for the others where it is itself
			err = copied(path, to)
		default:
			err = os.Symlink(path, to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// copied is a copy of a program that can be run at once: what this process has open to write is so too in what another test forks
// meanwhile, and a program is busy for as long as anybody has.
func copied(from, to string) error { return exec.Command("cp", from, to).Run() }

// listen has the site tell of jobs, and logs in at its page.
func (b *blame) listen() {
	t := b.t
	t.Helper()
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var d struct{ Events []api.Letter }
		if err := json.NewDecoder(r.Body).Decode(&d); err != nil {
			t.Error(err)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, l := range d.Events {
			b.told[l.JobID] = append(b.told[l.JobID], l)
		}
	}))
	t.Cleanup(hook.Close)
	conf, err := os.OpenFile(filepath.Join(b.dir, "etc", "gangd.toml"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conf, "\n[[notify]]\nname = \"robot\"\nurl = %q\nprivate = true\n", hook.URL)
	conf.Close()
	b.kill("gangd")
	b.restart("gangd")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b.page = &http.Client{Jar: jar}
	res, err := b.page.Get(strings.TrimSpace(b.must("gctl", "web")))
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res, err)
	}
	res.Body.Close()
}

// notice is what was told of the end of a job's first attempt, once it has been.
func (b *blame) notice(id int64) (l api.Letter) {
	b.t.Helper()
	b.until("the notice of an end", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		i := slices.IndexFunc(b.told[id], func(l api.Letter) bool { return l.Type == api.NotifyFail || l.Type == api.NotifyRequeue })
		if i >= 0 {
			l = b.told[id][i]
		}
		return i >= 0
	})
	return l
}

// shown is a job as its page has it.
func (b *blame) shown(id int64) (d api.JobDetail) {
	b.t.Helper()
	res, err := b.page.Get(fmt.Sprintf("%s/v1/jobs/%d", b.at, id))
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&d); err != nil || res.StatusCode != http.StatusOK {
		b.t.Fatal(res.Status, err)
	}
	return d
}

// play ends so many gangs at the same time in the same way.
func (b *blame) play(c blameCase, srun bool, first, n int) (wrong []string, ties int) {
	t := b.t
	t.Helper()
	type one struct {
		id      int64
		dir     string
		culprit int
	}
	var all []one
	for i := range n {
		o := one{dir: filepath.Join(b.tmp, fmt.Sprint("r", first+i)), culprit: (first + i) % 4}
		if c.strike != nil {
			o.culprit = 1 + first%3 // one node for all of them, and not that of the script
		}
		if err := os.MkdirAll(o.dir, 0o755); err != nil {
			t.Fatal(err)
		}
		call := fmt.Sprintf("/usr/bin/python3 %s/peers.py %s '%s' %d %s", b.tmp, o.dir, c.how, o.culprit, c.leave)
		args := []string{"--gpus-per-rank=1", "--mem-per-rank=150M", "--nodelist=n[1-4]"}
		if srun {
			args = []string{"--nodes=4", "--ntasks-per-node=1", "--gpus-per-node=1", "--mem=150M"}
			call = b.names + "/srun " + call
		} else {
			args = append(args, "--size=4", "--ranks-per-node=1")
		}
		o.id = b.submit(append(args, "--requeue", "--notify=robot:FAIL,REQUEUE", "-o", o.dir+"/out", b.script(fmt.Sprint("job", i, ".sh"), "#!/bin/bash\n"+call+"\n"))...)
		all = append(all, o)
	}
	for _, o := range all {
		b.until("all ranks to be up", func() bool {
			up, _ := filepath.Glob(o.dir + "/up.?")
			return len(up) == 4
		})
	}
	node := b.nodeOf(all[0].id, all[0].culprit)
	for _, o := range all {
		if at := b.nodeOf(o.id, o.culprit); c.strike != nil && at != node {
			t.Fatalf("rank %d of job %d is on %s, and not on %s", o.culprit, o.id, at, node)
		}
	}
	if c.strike != nil {
		c.strike(b, node)
	}
	for _, o := range all {
		if err := os.WriteFile(o.dir+"/go", nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if c.heal != nil {
		time.Sleep(500 * time.Millisecond) // peers have told how they ended meanwhile
		c.heal(b, node)
	}
	for _, o := range all {
		d := b.attempt(o.id)
		if text, tie := b.judge(c, srun, d, o.culprit); text != "" {
			wrong = append(wrong, fmt.Sprintf("%s\n%s", text, b.story(o.id)))
		} else if tie {
			ties++
		}
	}
	return wrong, ties
}

// nodeOf is where a rank, or the only task of a member, is.
func (b *blame) nodeOf(id int64, rank int) string {
	b.t.Helper()
	return b.job(id).Nodes[rank]
}

// attempt waits for the judgement of a job's first attempt.
func (b *blame) attempt(id int64) (d api.JobDetail) {
	b.t.Helper()
	b.client().Until(2*time.Minute, "the end of an attempt", func() bool {
		d = api.JobDetail{}
		if err := json.Unmarshal([]byte(b.must("gctl", "show", "job", "--json", fmt.Sprint(id))), &d); err != nil {
			b.t.Fatal(err)
		}
		return len(d.Attempts) > 0 && !d.Attempts[0].EndTime.IsZero() && d.Attempts[0].Cause != ""
	})
	return d
}

// judge says what is wrong with what is told of an end.
func (b *blame) judge(c blameCase, srun bool, d api.JobDetail, culprit int) (wrong string, tie bool) {
	a, j := d.Attempts[0], d.Job
	fault := func(format string, args ...any) (string, bool) {
		return fmt.Sprintf("job %d, culprit %d: ", j.JobID, culprit) + fmt.Sprintf(format, args...), false
	}
	if a.Cause != c.cause {
		return fault("%s, want %s: %s", a.Cause, c.cause, a.Text)
	}
	trigger := -1
	if a.TriggerRank != nil {
		trigger = *a.TriggerRank
	}
	own := srun && c.cause != api.CauseNodeLost // of a batch script the trigger is the script, and the step says more
	if own {
		i := slices.IndexFunc(a.Steps, func(s api.Step) bool { return s.StepID == "0" })
		if i < 0 || a.Steps[i].TriggerTask == nil {
			return fault("no task is named: %+v", a.Steps)
		}
		s := a.Steps[i]
		trigger, a.TiedRanks = *s.TriggerTask, s.TiedTasks
		if !strings.HasSuffix(a.Text, "; step 0: "+s.Text) {
			return fault("the step says %q, and the attempt %q", s.Text, a.Text)
		}
		if got := b.must(b.fromBin(b.names, "sacct"), "-nPo", "systemcomment", "-j", fmt.Sprintf("%d.0", j.JobID)); strings.TrimSpace(got) != s.Text {
			return fault("sacct says of the step %q, want %q", got, s.Text)
		}
	}
	switch {
	case trigger == culprit:
	case slices.Contains(a.TiedRanks, culprit):
		tie = true
	default:
		return fault("rank %d, want %d: %s", trigger, culprit, a.Text)
	}
	for cause, budget := range j.Budgets {
		want := 0
		if cause == c.cause || cause == api.CauseCrash && c.cause == api.CauseOOM {
			want = 1
		}
		if budget.Used != want {
			return fault("budget %s: %d used", cause, budget.Used)
		}
	}
	if c.state != "" && string(j.State) != c.state {
		return fault("it is %s, want %s", j.State, c.state)
	}
	// The same words everywhere.
	if a.Text == "" {
		return fault("no words: %+v", a)
	}
	words := a.Text
	if c.state != "" {
		words = j.Verdict
		if !strings.Contains(words, a.Text) {
			return fault("the verdict is %q, and the attempt's %q", words, a.Text)
		}
	}
	row := strings.Split(strings.SplitN(b.must("gacct", "-P", "--noheader", fmt.Sprint(j.JobID)), "\n", 2)[0], "|")
	if len(row) < 5 || row[3] != string(c.cause) || row[len(row)-1] != words {
		return fault("gacct says %q, want %q", row, words)
	}
	state := map[api.Cause]string{api.CauseCrash: "FAILED", api.CauseOOM: "OUT_OF_MEMORY", api.CauseNodeLost: "NODE_FAIL"}[c.cause]
	sacct, _, _ := strings.Cut(b.must(b.fromBin(b.names, "sacct"), "-DnPXo", "state,systemcomment", "-j", fmt.Sprint(j.JobID)), "\n")
	if sacct != state+"|"+words {
		return fault("sacct: %q, want %s and %q", sacct, state, words)
	}
	over := b.eventsOf(j.JobID, api.EventDrainCompleted)
	if len(over) == 0 || over[0].Cause != c.cause || !samePlace(over[0].Trigger, a.TriggerRank) || over[0].Text != "" && over[0].Text != a.Text {
		return fault("the event of the drain's end: %+v, want %s of %v: %q", over, c.cause, a.TriggerRank, a.Text)
	}
	if c.state == "" && over[0].Text != words {
		return fault("the event says %q, want %q", over[0].Text, words)
	}
	if ended := b.eventsOf(j.JobID, api.EventEnded); c.state != "" &&
		(len(ended) != 1 || ended[0].Cause != c.cause || string(ended[0].State) != c.state || ended[0].Text != words) {
		return fault("the event of the end: %+v, want %q", ended, words)
	}
	page := b.shown(j.JobID)
	if p := page.Attempts[0]; p.Cause != c.cause || p.Text != a.Text || !samePlace(p.TriggerRank, a.TriggerRank) || c.state != "" && page.Job.Verdict != words {
		return fault("the page has %s, %q, %q", p.Cause, p.Text, page.Job.Verdict)
	}
	if l := b.notice(j.JobID); l.Cause != c.cause || l.Text != words {
		return fault("the notice %s says %s, %q, want %q", l.Type, l.Cause, l.Text, words)
	}
	return "", tie
}

func samePlace(a, b *int) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }
