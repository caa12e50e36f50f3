package e2e

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"gangd/pkg/api"
)

// adversary is a line between nodes and their controller that repeats what the nodes
// report, brings back old reports, and holds everything up for a while.
type adversary struct {
	t        *testing.T
	target   string
	listener net.Listener
	conns    sync.WaitGroup

	mu     sync.Mutex
	open   map[net.Conn]bool
	frames int // reports that were repeated or brought back
}

func newAdversary(t *testing.T, path, target string) *adversary {
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	a := &adversary{t: t, target: target, listener: l, open: map[net.Conn]bool{}}
	a.conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			a.conns.Go(func() { a.serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		a.mu.Lock()
		for c := range a.open {
			c.Close()
		}
		a.mu.Unlock()
		a.conns.Wait()
	})
	return a
}

func (a *adversary) serve(node net.Conn) {
	gangd, err := net.Dial("unix", a.target)
	if err != nil {
		node.Close()
		return
	}
	for _, c := range []net.Conn{node, gangd} {
		a.mu.Lock()
		a.open[c] = true
		a.mu.Unlock()
		defer func() {
			c.Close()
			a.mu.Lock()
			delete(a.open, c)
			a.mu.Unlock()
		}()
	}
	a.conns.Go(func() {
		_, _ = io.Copy(node, gangd)
		node.Close()
	})
	a.reports(bufio.NewReader(node), gangd)
}

// reports passes on what the node sends: the upgrade as it is, then frame by frame.
func (a *adversary) reports(from *bufio.Reader, to io.Writer) {
	for line := ""; line != "\r\n"; {
		var err error
		if line, err = from.ReadString('\n'); err != nil {
			return
		}
		if _, err = io.WriteString(to, line); err != nil {
			return
		}
	}
	var old [][]byte
	for {
		raw, text, err := readFrame(from)
		if err != nil {
			return
		}
		send := [][]byte{raw}
		if bytes.Contains(text, []byte(`"actual"`)) {
			if len(old) > 0 && rand.IntN(2) == 0 {
				send = append(send, old[rand.IntN(len(old))])
			}
			if rand.IntN(3) == 0 {
				send = append(send, raw)
			}
			rand.Shuffle(len(send), func(i, j int) { send[i], send[j] = send[j], send[i] })
			time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
			old = append(old, raw)
		}
		a.mu.Lock()
		a.frames += len(send) - 1
		a.mu.Unlock()
		for _, f := range send {
			if _, err := to.Write(f); err != nil {
				return
			}
		}
	}
}

// readFrame gives one WebSocket frame as it came, and its payload in the clear.
func readFrame(from *bufio.Reader) (raw, text []byte, err error) {
	take := func(n int) []byte {
		if err != nil {
			return make([]byte, n)
		}
		b := make([]byte, n)
		_, err = io.ReadFull(from, b)
		raw = append(raw, b...)
		return b
	}
	head := take(2)
	size := int(head[1] & 0x7f)
	switch size {
	case 126:
		size = int(binary.BigEndian.Uint16(take(2)))
	case 127:
		size = int(binary.BigEndian.Uint64(take(8)))
	}
	mask := make([]byte, 4)
	if head[1]&0x80 != 0 {
		mask = take(4)
	}
	text = bytes.Clone(take(size))
	for i := range text {
		text[i] ^= mask[i%4]
	}
	return raw, text, err
}

// Many drains under replayed, repeated and late acks: what is stale is refused and counted,
// no fresh epoch is touched, each drain begins and completes once.
func TestReplayedAcks(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=3")
	proxy := filepath.Join(c.dir, "p")
	a := newAdversary(t, proxy, filepath.Join(c.dir, "run", "gangd.sock"))
	for i := range 3 {
		name := fmt.Sprintf("n%d", i+1)
		conf := filepath.Join(c.dir, "etc", name+".toml")
		b, err := os.ReadFile(conf)
		if err != nil {
			t.Fatal(err)
		}
		b = regexp.MustCompile(`(?m)^controller = .*\n`).ReplaceAll(b, nil)
		if err := os.WriteFile(conf, append(b, []byte("controller = \"unix:"+proxy+"\"\n")...), 0o600); err != nil {
			t.Fatal(err)
		}
		c.restart(name)
	}
	id := c.submit(c.script("b.sh", beating))
	n := rounds(12)
	for epoch := 1; epoch <= n; epoch++ {
		c.epochRuns(id, epoch)
		time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
		c.must("gctl", "requeue", fmt.Sprint(id))
	}
	c.epochRuns(id, n+1)
	s := c.seen(id)
	for epoch := 1; epoch <= n; epoch++ {
		if d := s.overlap(epoch); d > 0 {
			t.Errorf("epochs %d and %d overlap by %s", epoch, epoch+1, d)
		}
		if len(s.term[epoch]) != 3 {
			t.Errorf("epoch %d: %d of 3 ranks were told to end", epoch, len(s.term[epoch]))
		}
	}
	if len(s.term[n+1]) != 0 {
		t.Errorf("the last epoch was told to end")
	}
	time.Sleep(200 * time.Millisecond) // for what is late
	j := c.job(id)
	if j.State != api.JobRunning || j.Epoch != n+1 || j.RestartCount != n {
		t.Errorf("the gang is %s in epoch %d after %d restarts, want RUNNING, %d, %d", j.State, j.Epoch, j.RestartCount, n+1, n)
	}
	for _, r := range j.Ranks {
		if r.State != api.RankRunning || r.ExitCode != nil || !running(r.PID) {
			t.Errorf("rank %d is %+v", r.Rank, r)
		}
	}
	for cause, b := range j.Budgets {
		if b.Used != 0 {
			t.Errorf("%s is charged %d", cause, b.Used)
		}
	}
	for _, typ := range []api.EventType{api.EventDrainStarted, api.EventDrainCompleted} {
		if got := len(c.eventsOf(id, typ)); got != n {
			t.Errorf("%d %s events, want %d", got, typ, n)
		}
	}
	refused := c.eventsOf(id, api.EventStaleRefused)
	counted := c.metric("gang_stale_reports_total")
	if len(refused) == 0 || counted != float64(len(refused)) {
		t.Errorf("%d stale_refused events, gang_stale_reports_total is %v", len(refused), counted)
	}
	for _, ev := range refused {
		if ev.ClaimedEpoch > ev.Epoch {
			t.Errorf("an epoch was refused that nobody could know of: %+v", ev)
		}
	}
	a.mu.Lock()
	t.Logf("%d drains, %d reports repeated or brought back, %d refused by name", n, a.frames, len(refused))
	a.mu.Unlock()
}
