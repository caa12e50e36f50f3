package e2e

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gangd/e2e/tally"
	"gangd/pkg/api"
)

// cuttable stands before a controller, and keeps from it all that some nodes say, and from them what it says, as a
// network does that is cut: nothing is refused and nothing ends.
type cuttable struct {
	to     string
	who    func(from net.Addr) string // the node that a connection is of
	mu     sync.Mutex
	change *sync.Cond
	cut    map[string]bool
	closed bool
	conns  []net.Conn
	wg     sync.WaitGroup
}

func newCuttable(t *testing.T, address, to string, who func(net.Addr) string) *cuttable {
	t.Helper()
	c := &cuttable{to: to, who: who, cut: map[string]bool{}}
	c.change = sync.NewCond(&c.mu)
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	c.wg.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			c.wg.Go(func() { c.serve(from) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		c.mu.Lock()
		c.closed = true
		for _, conn := range c.conns {
			conn.Close()
		}
		c.change.Broadcast()
		c.mu.Unlock()
		c.wg.Wait()
	})
	return c
}

// set cuts nodes off, or no longer.
func (c *cuttable) set(cut bool, nodes ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range nodes {
		c.cut[n] = cut
	}
	c.change.Broadcast()
}

// wait returns when a node is not cut off, false: at the end.
func (c *cuttable) wait(node string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.cut[node] && !c.closed {
		c.change.Wait()
	}
	return !c.closed
}

func (c *cuttable) keep(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns = append(c.conns, conn)
	return !c.closed
}

func (c *cuttable) serve(from net.Conn) {
	defer from.Close()
	node := c.who(from.RemoteAddr())
	if !c.keep(from) || !c.wait(node) {
		return
	}
	to, err := net.Dial("tcp", c.to)
	if err != nil {
		return
	}
	defer to.Close()
	if !c.keep(to) {
		return
	}
	var back sync.WaitGroup
	defer back.Wait()
	back.Go(func() { c.pass(node, from, to) })
	c.pass(node, to, from)
}

// pass copies one direction, with its end.
func (c *cuttable) pass(node string, to, from net.Conn) {
	buf := make([]byte, 1<<16)
	for {
		n, err := from.Read(buf)
		if !c.wait(node) {
			return
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			if err == io.EOF {
				_ = to.(*net.TCPConn).CloseWrite()
			} else {
				to.Close()
			}
			return
		}
	}
}

// nodeOf gives which of these daemons of the site a connection on this machine is of.
func (s *site) nodeOf(names ...string) func(net.Addr) string {
	return func(from net.Addr) string {
		a := from.(*net.TCPAddr)
		ip := a.IP.To4()
		end := fmt.Sprintf("%02X%02X%02X%02X:%04X", ip[3], ip[2], ip[1], ip[0], a.Port)
		b, _ := os.ReadFile("/proc/net/tcp")
		socket := ""
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) > 9 && f[1] == end {
				socket = "socket:[" + f[9] + "]"
			}
		}
		all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, path := range all {
			b, _ := os.ReadFile(path)
			i := slices.IndexFunc(names, func(n string) bool { return strings.Contains(string(b), filepath.Join(s.dir, n+".toml")) })
			if i < 0 {
				continue
			}
			fds, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "fd", "*"))
			for _, fd := range fds {
				if to, _ := os.Readlink(fd); to == socket {
					return names[i]
				}
			}
		}
		return ""
	}
}

// severed is a site of two controllers over TLS with a line that can be cut between each of them and each node.
type severed struct {
	*pair
	lines map[string]*cuttable // by controller
}

const severedLease = 6 * time.Second

func startSevered(t *testing.T, lines []string, nodes ...string) *severed {
	t.Helper()
	chaos(t)
	at := func(host string) string {
		l, err := net.Listen("tcp", host+":0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return l.Addr().String()
	}
	front := map[string]string{"a": at("127.0.0.3"), "b": at("127.0.0.4")}
	p := startPair(t, front, lines...)
	s := &severed{pair: p, lines: map[string]*cuttable{}}
	who := p.nodeOf(nodes...)
	s.lines["a"] = newCuttable(t, front["a"], p.address, who)
	p.address = front["a"] // for nodes
	s.lines["b"] = newCuttable(t, front["b"], p.b, who)
	for _, n := range nodes {
		p.node(n, `cards = "none"`, "cpus = 4", "min_uid = 0")
		p.must("gnoded", "join", p.conf(n), p.line())
		p.up(n)
	}
	p.must("gangd", "controller", "join", p.conf("b"), strings.TrimSpace(p.must("gangd", "controller", "new")))
	p.spawn("b", "gangd", nil, p.conf("b"))
	p.until("b answers", func() bool { _, _, code := p.on.Run("gctl", "ping"); return code == 0 })
	p.untilState("b", api.ControllerStandsBy)
	return s
}

// gang starts one that runs wherever it is put, each rank with a lock of its own.
func (s *severed) gang(size int) int64 {
	return s.submit(fmt.Sprint("--size=", size), "--ranks-per-node=1", s.script("gang.sh", fmt.Sprintf(severalScript, s.tmp)))
}

// The leader is cut from all nodes for 10 s: submissions are taken throughout, and no rank notices.
func TestLeaderCutFromNodes(t *testing.T) {
	t.Parallel()
	s := startSevered(t, nil, "n1", "n2")
	var gangs []int64
	for range 4 {
		gangs = append(gangs, s.gang(2))
	}
	for _, id := range gangs {
		s.wait(id, api.JobRunning)
	}
	var longest time.Duration
	for i := range rounds(1) {
		s.lines["a"].set(true, "n1", "n2")
		last := time.Now()
		for end := last.Add(10 * time.Second); time.Now().Before(end); {
			s.submit("--hold", "--wrap", "true")
			longest, last = max(longest, time.Since(last)), time.Now()
		}
		s.lines["a"].set(false, "n1", "n2")
		for _, n := range []string{"n1", "n2"} {
			log := filepath.Join(s.dir, n+".log")
			s.until(n+" to find the leader again", func() bool {
				b, _ := os.ReadFile(log)
				return strings.Count(string(b), "session opened") > i+1
			})
		}
		tally.Did("leader cut from the nodes", 1)
	}
	t.Logf("longest time between two acknowledged submissions: %s", longest)
	for _, id := range gangs {
		if j := s.job(id); j.State != api.JobRunning || j.Epoch != 1 {
			t.Errorf("job %d is %s in epoch %d\n%s", id, j.State, j.Epoch, s.story(id))
		}
	}
	s.noOverlap()
}

// One controller is dead and the other cut from one node: that node's ranks end by themselves, and only then the gang
// runs elsewhere.
func TestOneDeadTheOtherCut(t *testing.T) {
	t.Parallel()
	s := startSevered(t, []string{fmt.Sprintf("lease = %q", severedLease), `node_timeout = "3s"`, `grace = "2s"`, `drain_slack = "3s"`}, "n1", "n2", "n3")
	for range rounds(1) {
		id := s.gang(1)
		at := s.wait(id, api.JobRunning).Nodes[0]
		s.kill("b", syscall.SIGKILL)
		s.lines["a"].set(true, at)
		began := time.Now()
		s.until("the gang to run elsewhere", func() bool { j := s.job(id); return j.State == api.JobRunning && j.Epoch == 2 })
		if took := time.Since(began); took < severedLease-2*time.Second {
			t.Errorf("it ran elsewhere after %s, its lease is %s", took, severedLease)
		}
		if now := s.job(id).Nodes[0]; now == at {
			t.Errorf("it runs on %s again, which is cut off", now)
		}
		s.noOverlap()
		s.lines["a"].set(false, at)
		s.must("gcancel", fmt.Sprint(id))
		s.wait(id, api.JobCancelled)
		s.spawn("b", "gangd", nil, s.conf("b"))
		s.until("b answers", func() bool { _, _, code := s.on.Run("gctl", "ping"); return code == 0 })
		s.untilNode(at, "up")
		tally.Did("one controller dead, the other cut from a node", 1)
	}
}

func (s *severed) noOverlap() {
	s.t.Helper()
	tally.Checked(s.t, "no rank lives beside its successor", lines(s.t, filepath.Join(s.tmp, "overlaps"))...)
}
