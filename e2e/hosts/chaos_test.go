package hosts

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gangd/e2e/tally"
	"gangd/pkg/api"
)

// chaosTimes: a node is lost after 4 s, so the longest cuts drain gangs; the lease is longer
// than any cut, so what a cut node did is always told in the end.
var chaosTimes = []string{`heartbeat = "200ms"`, `node_timeout = "4s"`, `lease = "30s"`, `grace = "1s"`, `drain_slack = "10s"`,
	`start_timeout = "10s"`, `retry_backoff = "50ms"`, `retry_backoff_max = "500ms"`, "node_lost_retries = 1000000",
	"launch_retries = 1000000", "launch_strikes = 1000000", `keep_ended = "3h"`}

// load is gangs of 1 to 4 ranks that live up to some seconds and end with codes of their own;
// a fourth leaves processes behind that try to escape.
type load struct {
	l      *lab
	stop   atomic.Bool
	wg     sync.WaitGroup
	mu     sync.Mutex
	acked  map[string]int64    // name -> id
	asked  map[string]bool     // names, acknowledged or not
	ids    map[int64]int       // times that an id was given out
	over   map[int64]time.Time // when a cancel was acknowledged
	killed bool                // shims were killed or hosts lost their power, and with that what their ranks had ended with
}

func (l *lab) load(clients int, pause time.Duration) *load {
	o := &load{l: l, acked: map[string]int64{}, asked: map[string]bool{}, ids: map[int64]int{}, over: map[int64]time.Time{}}
	for c := range clients {
		o.wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(c), 1))
			for i := 0; !o.stop.Load(); i++ {
				o.submit(fmt.Sprintf("c%d.%d", c, i), r)
				time.Sleep(pause/2 + rand.N(pause))
			}
		})
	}
	return o
}

func (o *load) submit(name string, r *rand.Rand) {
	size := 1 + r.IntN(4)
	codes := make([]string, size)
	for i := range codes {
		codes[i] = "0"
	}
	if r.IntN(2) == 0 {
		codes[r.IntN(size)] = strconv.Itoa(1 + r.IntN(99))
	}
	args := []string{"--parsable", "-o", "/dev/null", "--job-name=" + name, fmt.Sprintf("--size=%d", size)}
	if r.IntN(2) == 0 {
		args = append(args, "--ranks-per-node=1")
	}
	escape := ""
	if r.IntN(4) == 0 {
		escape = "escape"
	}
	ms := strconv.Itoa(20 + r.IntN(1500))
	o.mu.Lock()
	o.asked[name] = true
	o.mu.Unlock()
	out, errs, code := o.l.run("gsubmit", append(args, "--wrap", o.l.rank(ms, strings.Join(codes, ","), escape))...)
	id, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
	if code == api.ExitUnreachable {
		return // not acknowledged
	}
	if code != 0 || err != nil {
		o.l.t.Errorf("gsubmit: exit %d: %s%s", code, out, errs)
		o.stop.Store(true)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.acked[name] = id
	o.ids[id]++
}

// end lets what runs come to its end on nodes that are all up; that many jobs were to be queued.
func (o *load) end(jobs int) {
	o.l.t.Helper()
	o.stop.Store(true)
	o.wg.Wait()
	for _, name := range o.l.names() {
		o.l.untilNode(name, api.NodeUp)
	}
	o.l.within(3*time.Minute, "the queue is empty", func() bool { return o.l.must("gqueue", "-h") == "" })
	if len(o.acked) < jobs {
		o.l.t.Errorf("only %d jobs, of %d", len(o.acked), jobs)
	}
}

// meddle cancels and requeues jobs and takes nodes out of service and back, at any moment,
// until the load stops.
func (o *load) meddle() {
	for !o.stop.Load() {
		time.Sleep(rand.N(400 * time.Millisecond))
		o.mu.Lock()
		var newest int64
		for id := range o.ids {
			newest = max(newest, id)
		}
		o.mu.Unlock()
		if newest == 0 {
			continue
		}
		id := max(1, newest-rand.Int64N(12))
		switch rand.IntN(8) {
		case 0:
			node := o.l.anyNode()
			_, _, _ = o.l.run("gctl", "node", "drain", node, "--reason=chaos")
			time.Sleep(rand.N(500 * time.Millisecond))
			o.l.until("the node is in service again", func() bool { _, _, code := o.l.run("gctl", "node", "resume", node); return code == 0 })
			tally.Did("node drained and resumed", 1)
		case 1, 2, 3:
			if _, _, code := o.l.run("gctl", "requeue", fmt.Sprint(id)); code == 0 {
				tally.Did("gang requeued", 1)
			}
		default:
			if _, _, code := o.l.run("gcancel", fmt.Sprint(id)); code == 0 {
				o.mu.Lock()
				if o.over[id].IsZero() {
					o.over[id] = time.Now()
				}
				o.mu.Unlock()
				tally.Did("gang cancelled", 1)
			}
		}
	}
}

// killer kills and starts a host's daemon again, n times, on one of the hosts.
func (l *lab) killer(n int, what string, pick func() string, start func(host string)) {
	for range n {
		time.Sleep(rand.N(1500 * time.Millisecond))
		host := pick()
		l.kill9(host)
		tally.Did(what, 1)
		if rand.IntN(4) == 0 {
			time.Sleep(rand.N(3 * time.Second))
		}
		start(host)
	}
}

// cutter cuts hosts off, n times, in every way that this machine can, some of them flapping.
func (l *lab) cutter(n int) {
	kinds := []cut{cutBoth, cutOut, cutIn, cutReset, cutReject, cutCable}
	for range n {
		time.Sleep(rand.N(time.Second))
		c := kinds[rand.IntN(len(kinds))]
		if !c.usable() {
			c = cutCable
		}
		host := l.anyNode()
		if rand.IntN(8) == 0 {
			host = "ctl" // all nodes vanish at once
		}
		l.cut(host, c)
		if rand.IntN(4) == 0 {
			for range rand.IntN(6) {
				time.Sleep(rand.N(200 * time.Millisecond))
				l.heal(host)
				time.Sleep(rand.N(100 * time.Millisecond))
				if err := l.tryCut(host, c); err != nil {
					l.t.Error(err)
				}
			}
		}
		time.Sleep(rand.N(4 * time.Second))
		l.heal(host)
	}
}

func (l *lab) anyNode() string { return l.names()[rand.IntN(l.opt.nodes)] }

// Everything at once: kill -9 of gangd and of gnodeds, cuts of every kind, and a load of
// gangs. When it is over nothing may be lost, doubled, invented or left.
func TestChaos(t *testing.T) {
	long(t)
	n := rounds(200)
	l := build(t, options{nodes: 4, gangd: chaosTimes})
	o := l.load(3, 250*time.Millisecond)
	began := time.Now()
	var actors sync.WaitGroup
	actors.Go(func() {
		l.killer(n, "kill -9 of gangd", func() string { return "ctl" }, func(string) { l.gangd() })
	})
	actors.Go(func() { l.killer(n, "kill -9 of gnoded", l.anyNode, l.gnoded) })
	actors.Go(func() { l.cutter(n / 2) })
	o.wg.Go(o.meddle)
	actors.Wait()
	o.end(n)
	t.Logf("%d jobs in %s", len(o.acked), time.Since(began).Round(time.Second))
	o.audit()
}

// A host's shims are killed too, and its ranks with a frozen daemon in front: each such gang
// ends or runs again, and nothing of it is left.
func TestChaosOfShims(t *testing.T) {
	long(t)
	n := rounds(50)
	l := build(t, options{nodes: 4, gangd: chaosTimes})
	o := l.load(3, 250*time.Millisecond)
	for range n {
		time.Sleep(rand.N(300 * time.Millisecond))
		host := l.hosts[l.anyNode()]
		frozen := rand.IntN(3) == 0
		if frozen {
			_ = l.daemon(host.name).signal(syscall.SIGSTOP)
		}
		for _, p := range host.processes() {
			if p.name == "gshim" && rand.IntN(2) == 0 && syscall.Kill(p.pid, syscall.SIGKILL) == nil {
				tally.Did("kill -9 of gshim", 1)
			}
		}
		if frozen {
			tally.Did("gnoded frozen and thawed", 1)
			time.Sleep(rand.N(3 * time.Second))
			_ = l.daemon(host.name).signal(syscall.SIGCONT)
		}
	}
	o.end(n / 2)
	o.killed = true
	o.audit()
}

// Hosts lose their power under load and come back with another boot id.
func TestChaosOfPower(t *testing.T) {
	long(t)
	n := rounds(20)
	l := build(t, options{nodes: 4, gangd: chaosTimes})
	o := l.load(3, 250*time.Millisecond)
	o.wg.Go(o.meddle)
	for range n {
		time.Sleep(rand.N(2 * time.Second))
		name := l.anyNode()
		l.reboot(name)
		tally.Did("power cut of a host", 1)
		time.Sleep(rand.N(3 * time.Second))
		l.gnoded(name)
	}
	o.end(n)
	o.killed = true
	o.audit()
}
