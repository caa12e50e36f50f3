package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

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

// blame is a cluster of hosts on which gangs end.
type blame struct {
	*cluster
	names string
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
	{name: "node rebooted", how: "nothing", leave: "exit", cause: api.CauseNodeLost, strike: (*blame).rebooted},
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
	c := unstarted(t, built(t))
	_, errs, code := c.run("gangd", "dev", "--detach", "--isolate", "--nodes=4", "--gpus=5x80G", "--dir="+c.dir, "--set=cpus=16", "--set=memory=16G",
		"--set=node_timeout=3s", "--set=retry_backoff=50ms", "--set=grace=2s")
	if code != 0 {
		if strings.Contains(errs, "--isolate:") && os.Getenv("GANG_E2E_CHAOS") == "" {
			t.Skipf("no hosts in namespaces on this machine: %s", errs)
		}
		t.Fatalf("gangd dev: exit %d\n%s", code, errs)
	}
	b := &blame{cluster: c}
	b.names = c.slurmNames()
	c.script("peers.py", peersProgram)
	return b
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
		o.id = b.submit(append(args, "--requeue", "-o", o.dir+"/out", b.script(fmt.Sprint("job", i, ".sh"), "#!/bin/bash\n"+call+"\n"))...)
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
	own := srun && c.cause != api.CauseNodeLost // of a batch script the trigger is the script
	switch {
	case own || trigger == culprit:
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
	if text := b.must("gacct", fmt.Sprint(j.JobID)); !srun && !strings.Contains(text, a.Text) && !strings.Contains(j.Verdict, a.Text) {
		return fault("gacct does not say %q:\n%s", a.Text, text)
	}
	if c.state == "" {
		return "", tie
	}
	sacct := strings.Fields(b.must(b.fromBin(b.names, "sacct"), "-nPXo", "state", "-j", fmt.Sprint(j.JobID)))
	if len(sacct) != 1 || sacct[0] != c.state {
		return fault("sacct: %v, want %s", sacct, c.state)
	}
	ended := b.eventsOf(j.JobID, api.EventEnded)
	if len(ended) != 1 || ended[0].Cause != c.cause || string(ended[0].State) != c.state || ended[0].Text != j.Verdict || !strings.Contains(j.Verdict, a.Text) {
		return fault("the event %+v, the verdict %q, the attempt %q", ended, j.Verdict, a.Text)
	}
	return "", tie
}
