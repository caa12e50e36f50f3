package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/lab/tool"
	"gangd/pkg/node/proc"
)

// together is a gang of PyTorch that hangs in one way after the other, as draws/N says, until draws/N.go is there. In each way one
// rank is elsewhere, or all wait alike.
const together = `#!/usr/bin/python3
import json, os, signal, socket, sys, threading, time
from datetime import timedelta
import torch, torch.distributed as dist
draws, d, main = os.environ["DRAWS"], {}, threading.get_ident()
dist.init_process_group("gloo", timeout=timedelta(hours=2))
rank, size = dist.get_rank(), dist.get_world_size()
side = dist.new_group(list(range(size)), timeout=timedelta(hours=2))
class Released(Exception): pass
def released(*_): raise Released()
def file(n, what): return os.path.join(draws, "%d%s" % (n, what))
def until(path):
    while not os.path.exists(path): time.sleep(0.03)
def beat():
    address = os.environ.get("NOTIFY_SOCKET", "")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.sendto(b"WATCHDOG=1", "\0" + address[1:] if address[:1] == "@" else address)
def sleeps(n): time.sleep(100000)
def spins(n):
    while True: pass
def another_tag(n): dist.recv(torch.zeros(1), src=(rank + 1) % size, tag=1000 + n, group=side)
def stuck_disk(n):
    with open(os.environ["STUCK"] + str(n)) as f: f.read()
def stopped(n): until(file(n, ".go"))
def tag_alone(n): dist.recv(torch.zeros(1), src=(rank + 1) % size, tag=tag_of(n, rank, d), group=side)
def line_alone(n):
    if rank == d["odd"]: dist.recv(torch.zeros(1), src=(rank + 1) % size, tag=2000 + n, group=side)
    else: dist.recv(torch.zeros(1), src=(rank + 1) % size, tag=2000 + n, group=side)
def all_wait(n): dist.recv(torch.zeros(1), src=(rank + 1) % size, tag=2000 + n, group=side)
def all_sleep(n): time.sleep(100000)
def all_spin(n):
    while True: pass
def all_poll(n):
    work = dist.irecv(torch.zeros(1), src=(rank + 1) % size, tag=2000 + n, group=side)
    while not os.path.exists(file(n, ".go")): time.sleep(0.01) # gloo never calls a receipt completed by itself
    work.wait()
def all_events(n): threading.Event().wait()
def all_tags(n): dist.recv(torch.zeros(1), src=(rank + 1) % size, tag=tag_of(n, rank, d), group=side)
def all_lines(n):
    if rank % 2: dist.recv(torch.zeros(1), src=(rank + 1) % size, tag=2000 + n, group=side)
    else: dist.recv(torch.zeros(1), src=(rank + 1) % size, tag=2000 + n, group=side)
def tag_of(n, rank, d):
    if d["how"] == "all_tags": return 10000 * (n + 1) + rank
    return 3000 + n + (100000 if rank == d["odd"] else 0)
def at(n, how):
    # Says that the main thread has come to where it shall hang: it is in that function, and does not run but where it spins.
    seen = 0
    while seen < 3:
        time.sleep(0.02)
        f, names = sys._current_frames()[main], set()
        while f: f, _ = f.f_back, names.add(f.f_code.co_name)
        state = open("/proc/self/task/%d/stat" % os.getpid()).read().rpartition(")")[2].split()[0]
        seen = seen + 1 if names & {how, "all_reduce"} and (state != "R" or "spin" in how) else 0
    open(file(n, ".at.%d" % rank), "w").write(str(os.getpid()))
def helper():
    # Who sends what others wait for, once they may go on.
    n = 0
    while True:
        until(file(n, ".in.%d" % rank))
        d = json.load(open(file(n, "")))
        how, before = d["how"], (rank - 1) % size
        at(n, how)
        until(file(n, ".go"))
        if how == "another_tag" and before == d["odd"]: dist.send(torch.zeros(1), dst=before, tag=1000 + n, group=side)
        if how in ("tag_alone", "all_tags"): dist.send(torch.zeros(1), dst=before, tag=tag_of(n, before, d), group=side)
        if how in ("line_alone", "all_wait", "all_poll", "all_lines"): dist.send(torch.zeros(1), dst=before, tag=2000 + n, group=side)
        n += 1
def writer():
    while True:
        print(time.time(), flush=True)
        time.sleep(0.2)
threading.Thread(target=helper, daemon=True).start()
if rank == 0: threading.Thread(target=writer, daemon=True).start()
n = 0
while True:
    until(file(n, ""))
    d = json.load(open(file(n, "")))
    if d["how"] == "end": break
    if d.get("beat"): beat()
    try:
        signal.signal(signal.SIGUSR2, released)
        open(file(n, ".in.%d" % rank), "w").write(str(os.getpid()))
        if d["odd"] in (-1, rank) or d["how"] in ("tag_alone", "line_alone"): globals()[d["how"]](n)
    except Released: pass
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    dist.all_reduce(torch.ones(1))
    n += 1
`

// stuckDisk is a file system on which whoever reads waits, until the file that it is given is there.
const stuckDisk = `#!/usr/bin/python3
import ctypes, os, struct, sys, time
at, go = sys.argv[1], sys.argv[2]
fd = os.open("/dev/fuse", os.O_RDWR)
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(b"stuck", at.encode(), b"fuse", 6, b"fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other" % fd) != 0:
    sys.exit("mount: " + os.strerror(ctypes.get_errno()))
print("mounted", flush=True)
held, node = [], 1
def attr(ino): return struct.pack("<QQQQQQIIIIIIIIII", ino, 4096, 8, 0, 0, 0, 0, 0, 0, 0o40755 if ino == 1 else 0o100644, 1, 0, 0, 0, 4096, 0)
def answer(unique, body=b"", error=0): os.write(fd, struct.pack("<IiQ", 16 + len(body), error, unique) + body)
import select
os.set_blocking(fd, False)
while True:
    if held and os.path.exists(go):
        for u in held: answer(u, b"x")
        held = []
    if not select.select([fd], [], [], 0.02)[0]: continue
    try: b = os.read(fd, 1 << 17)
    except BlockingIOError: continue
    except OSError: break
    length, op, unique, ino = struct.unpack_from("<IIQQ", b)
    if op == 26: answer(unique, struct.pack("<IIIIHHII", 7, 31, 0, 0, 0, 0, 4096, 0) + b"\0" * 32)
    elif op == 1:
        node += 1 # each file is new: nothing of it is in memory
        answer(unique, struct.pack("<QQQQII", node, 0, 0, 0, 0, 0) + attr(node))
    elif op == 3: answer(unique, struct.pack("<QII", 0, 0, 0) + attr(ino))
    elif op == 14: answer(unique, struct.pack("<QII", 0, 0, 0))
    elif op == 15: held.append(unique)
    elif op in (2, 36, 42): pass
    elif op in (18, 25): answer(unique)
    else: answer(unique, b"", -38)
`

// ways are those in which one rank is elsewhere, alikes those in which nobody is.
var (
	ways   = []string{"sleeps", "spins", "another_tag", "stuck_disk", "stopped", "tag_alone", "line_alone"}
	alikes = []string{"all_wait", "all_sleep", "all_spin", "all_poll", "all_events", "all_tags", "all_lines"}
)

// hanging is a gang of together.
type hanging struct {
	*cluster
	id          int64
	size, n     int
	draws, disk string
}

// mountStuck mounts the file system, or says why it can't be: before a cluster that shall see it is started.
func mountStuck(t *testing.T) (dir, why string) {
	t.Helper()
	if os.Geteuid() != 0 {
		return "", "only root mounts"
	}
	dir = filepath.Join(t.TempDir(), "stuck")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/usr/bin/python3", "-c", stuckDisk, dir, dir+".go")
	out, err := os.Create(dir + ".out")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	t.Cleanup(func() {
		_ = unix.Unmount(dir, unix.MNT_DETACH)
		_ = cmd.Process.Kill()
		<-done
	})
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		b, _ := os.ReadFile(out.Name())
		if strings.Contains(string(b), "mounted") {
			return dir, ""
		}
		if len(b) > 0 {
			return "", string(b)
		}
	}
	t.Fatal("the file system was not mounted within a minute")
	return "", ""
}

func (c *cluster) hangingGang(size int, disk string) *hanging {
	c.t.Helper()
	h := &hanging{cluster: c, size: size, draws: filepath.Join(c.tmp, fmt.Sprintf("draws.%d", time.Now().UnixNano())), disk: disk}
	if err := os.Mkdir(h.draws, 0o755); err != nil {
		c.t.Fatal(err)
	}
	c.setenv("DRAWS", h.draws)
	c.setenv("STUCK", filepath.Join(disk, "shard"))
	h.id = c.submit("--launch=ranks", "--size="+strconv.Itoa(size), "--gpus-per-rank=1", "--stall-retries=0", c.script("together.py", together))
	return h
}

// hang has the ranks hang, and waits until each of them says that it does.
func (h *hanging) hang(how string, odd int, beat bool) {
	h.t.Helper()
	b, _ := json.Marshal(map[string]any{"how": how, "odd": odd, "beat": beat})
	if how == "stuck_disk" {
		_ = os.Remove(h.disk + ".go")
	}
	name := filepath.Join(h.draws, strconv.Itoa(h.n))
	if err := os.WriteFile(name+".new", b, 0o644); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		h.t.Fatal(err)
	}
	pids := h.pids()
	if how == "stopped" {
		if err := unix.Kill(pids[odd], unix.SIGSTOP); err != nil {
			h.t.Fatal(err)
		}
		h.until("the rank is stopped", func() bool {
			st, ok := proc.ReadStat(pids[odd])
			return ok && st.State == 'T'
		})
	}
}

// pids are those of the ranks, once each hangs.
func (h *hanging) pids() (out []int) {
	h.t.Helper()
	for r := range h.size {
		for end := time.Now().Add(15 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
			b, _ := os.ReadFile(filepath.Join(h.draws, fmt.Sprintf("%d.at.%d", h.n, r)))
			if pid, err := strconv.Atoi(string(b)); err == nil {
				out = append(out, pid)
				break
			}
			if time.Now().After(end) {
				h.t.Fatalf("rank %d has not come to draw %d\n%s", r, h.n, h.story(h.id))
			}
		}
	}
	return out
}

// release lets them go on.
func (h *hanging) release(how string, odd int) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.draws, fmt.Sprintf("%d.go", h.n)), nil, 0o644); err != nil {
		h.t.Fatal(err)
	}
	pids := h.pids()
	switch how {
	case "sleeps", "spins":
		_ = unix.Kill(pids[odd], unix.SIGUSR2)
	case "all_sleep", "all_spin", "all_events":
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGUSR2)
		}
	case "stopped":
		_ = unix.Kill(pids[odd], unix.SIGCONT)
	case "stuck_disk":
		if err := os.WriteFile(h.disk+".go", nil, 0o644); err != nil {
			h.t.Fatal(err)
		}
	}
	h.n++
}

func (h *hanging) stacks() (out api.StacksReply) {
	h.t.Helper()
	text := h.must("gctl", "stacks", "--json", strconv.FormatInt(h.id, 10))
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		h.t.Fatalf("%v\n%s", err, text)
	}
	return out
}

func named(s *api.Stacks) (out []int) {
	for _, o := range s.Odd {
		out = append(out, o.Rank)
	}
	return out
}

// A gang of PyTorch hangs because one rank is elsewhere: it is named while it hangs, by gctl stacks, and when the watchdog stops it, in
// the event, the end and what is kept.
func TestOddOneOut(t *testing.T) {
	t.Parallel()
	tool.Need(t, "/usr/bin/python3:torch")
	c := start(t, append([]string{"--nodes=2", "--gpus=2x80G"}, quickWatch...)...)
	h := c.hangingGang(4, c.tmp)
	h.hang("sleeps", 2, false)
	want := "rank 2 on n2 sleeps in sleeps (script), 3 others are in all_reduce (distributed_c10d.py)"
	c.until("the rank that sleeps is named", func() bool { return h.stacks().Stacks.Text == want })
	h.release("sleeps", 2)
	h.hang("all_tags", -1, false)
	if s := h.stacks().Stacks; len(s.Odd) > 0 || s.Text != "all 4 ranks are in recv (distributed_c10d.py): nobody stands out" {
		t.Errorf("all wait, each for a tag of its own: %s", s.Text)
	}
	h.release("all_tags", -1)
	h.hang("tag_alone", 3, false)
	want = fmt.Sprintf("rank 3 on n2 is in recv (distributed_c10d.py) with tag %d, 3 others are in recv (distributed_c10d.py) with tag %d", 103000+h.n, 3000+h.n)
	c.until("the rank that waits for another tag is named", func() bool { return h.stacks().Stacks.Text == want })
	h.release("tag_alone", 3)
	h.hang("another_tag", 1, true)
	c.wait(h.id, api.JobFailed)
	want = "rank 1 on n1 is in recv (distributed_c10d.py), 3 others are in all_reduce (distributed_c10d.py)"
	if ev := c.event(h.id, 1, api.EventStacks); ev == nil || ev.Text != want {
		t.Errorf("event %+v\n%s", ev, c.story(h.id))
	}
	if a := c.attempts(h.id)[0]; a.Stacks == nil || a.Stacks.Text != want || !strings.HasSuffix(a.Text, "; "+want) || len(a.Stacks.Groups) > 0 {
		t.Errorf("attempt %+v", a)
	}
	if s := h.stacks(); s.Live || !slices.Equal(named(&s.Stacks), []int{1}) || len(s.Stacks.Groups) != 2 {
		t.Errorf("kept %+v", s)
	}
	for _, args := range [][]string{{"gqueue", "--why"}, {"gctl", "stacks"}, {"gctl", "events"}, {"gctl", "show", "job"}, {"gacct", "-j"}} {
		if out := c.must(args[0], append(args[1:], strconv.FormatInt(h.id, 10))...); !strings.Contains(out, want) {
			t.Errorf("%v says\n%s", args, out)
		}
	}
}

// drawSizes are the gangs of a hundred draws: one of many ranks takes longer.
var drawSizes = []struct{ ranks, draws int }{{4, 40}, {7, 36}, {16, 16}, {32, 8}}

// TestOddOneOutDraws is what is promised: of 100 gangs of 4 to 32 ranks in which one is elsewhere it is named in 95, of 100 in which
// all wait alike nobody is in 98, and a stop waits for it no longer than a second. GANG_STACKS=N draws so many of each.
func TestOddOneOutDraws(t *testing.T) {
	t.Parallel()
	draws, _ := strconv.Atoi(os.Getenv("GANG_STACKS"))
	if draws == 0 {
		t.Skip("minutes: GANG_STACKS=100 draws 100 of each kind (make stacks)")
	}
	tool.Need(t, "/usr/bin/python3:torch") // seconds
	disk, why := mountStuck(t)
	ways := ways
	if why != "" {
		t.Logf("no stuck disk: %s", why)
		ways = slices.DeleteFunc(slices.Clone(ways), func(how string) bool { return how == "stuck_disk" })
	}
	c := start(t, "--nodes=4", "--gpus=8x80G", "--set", "stall_timeout=5s", "--set", "stall_confirm_interval=1s", "--set", "heartbeat=500ms", "--set", "node_timeout=60s")
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	var odd, alike counted
	for _, size := range drawSizes {
		h := c.hangingGang(size.ranks, disk)
		n := max(1, size.draws*draws/100)
		for range n - 1 {
			how, who := ways[odd.drawn%len(ways)], rng.IntN(size.ranks)
			odd.count(t, h.draw(how, who), "%d ranks, %s, rank %d", size.ranks, how, who)
		}
		for range n {
			how := alikes[alike.drawn%len(alikes)]
			alike.count(t, h.draw(how, -1), "%d ranks, %s", size.ranks, how)
		}
		// The last one is ended by the watchdog.
		how, who := []string{"sleeps", "another_tag", "tag_alone"}[rng.IntN(3)], rng.IntN(size.ranks)
		h.hang(how, who, true)
		c.wait(h.id, api.JobFailed)
		began, seen, ended := c.event(h.id, 1, api.EventDrainStarted), c.event(h.id, 1, api.EventStacks), c.event(h.id, 1, api.EventEnded)
		if began == nil || seen == nil || ended == nil {
			t.Fatal(c.story(h.id))
		}
		odd.count(t, h.look(who), "%d ranks, %s, rank %d, stalled", size.ranks, how, who)
		took := ended.Time.Sub(began.Time)
		t.Logf("%d ranks, stalled: from the decision %.3f s to who is named, %.3f s to the verdict", size.ranks, seen.Time.Sub(began.Time).Seconds(), took.Seconds())
		if took > time.Second {
			t.Errorf("%d ranks: from the decision to the verdict it took %s", size.ranks, took)
		}
	}
	t.Logf("named %d of %d, nobody named in %d of %d", odd.right, odd.drawn, alike.right, alike.drawn)
	if 100*odd.right < 95*odd.drawn || 100*alike.right < 98*alike.drawn {
		t.Errorf("named %d of %d, nobody named in %d of %d", odd.right, odd.drawn, alike.right, alike.drawn)
	}
}

// counted are draws of one kind, and those that were right.
type counted struct{ drawn, right int }

func (n *counted) count(t *testing.T, l looked, format string, args ...any) {
	n.drawn++
	if l.right {
		n.right++
	}
	t.Logf("%s: %.2fs: %s", fmt.Sprintf(format, args...), l.took.Seconds(), l.text)
}

// looked is what a look at a gang said.
type looked struct {
	right bool
	took  time.Duration
	text  string // with all stacks where it is wrong
}

// draw has the ranks hang, looks, and lets them go on.
func (h *hanging) draw(how string, odd int) looked {
	h.t.Helper()
	h.hang(how, odd, false)
	l := h.look(odd)
	h.release(how, odd)
	return l
}

// look asks who is odd; -1: nobody shall be.
func (h *hanging) look(odd int) looked {
	h.t.Helper()
	begin := time.Now()
	s := h.stacks().Stacks
	var want []int
	if odd >= 0 {
		want = []int{odd}
	}
	l := looked{right: slices.Equal(named(&s), want), took: time.Since(begin), text: s.Text}
	if !l.right {
		b, _ := json.Marshal(s.Groups)
		l.text = fmt.Sprintf("WRONG: %s\n%s", s.Text, b)
	}
	return l
}
