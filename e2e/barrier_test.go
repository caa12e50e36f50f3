package e2e

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gangd/pkg/api"
)

// deafener is a line between a node and its controller on which the node can be made deaf:
// what it says arrives, what it is told does not.
type deafener struct {
	deaf  atomic.Bool
	conns sync.WaitGroup
}

func newDeafener(t *testing.T, path, target string) *deafener {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	d := &deafener{}
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	d.conns.Go(func() {
		for {
			node, err := l.Accept()
			if err != nil {
				return
			}
			gangd, err := net.Dial("unix", target)
			if err != nil {
				node.Close()
				continue
			}
			mu.Lock()
			open[node], open[gangd] = true, true
			mu.Unlock()
			d.conns.Go(func() { _, _ = io.Copy(gangd, node); gangd.Close() })
			d.conns.Go(func() { _, _ = io.Copy(told{node, &d.deaf}, gangd); node.Close() })
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for c := range open {
			c.Close()
		}
		mu.Unlock()
		d.conns.Wait()
	})
	return d
}

// told throws away what a deaf node is told.
type told struct {
	net.Conn
	deaf *atomic.Bool
}

func (w told) Write(b []byte) (int, error) {
	if w.deaf.Load() {
		return len(b), nil
	}
	return w.Conn.Write(b)
}

// through makes a node reach its controller by another socket.
func (c *cluster) through(name, socket string) {
	c.t.Helper()
	conf := filepath.Join(c.dir, "etc", name+".toml")
	b, err := os.ReadFile(conf)
	if err != nil {
		c.t.Fatal(err)
	}
	b = regexp.MustCompile(`(?m)^controller = .*\n`).ReplaceAll(b, nil)
	if err := os.WriteFile(conf, append(b, []byte("controller = \"unix:"+socket+"\"\n")...), 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.restart(name)
}

// The controller is killed in the instant of a release: one rank has heard and goes on, the
// other has not and comes again to a controller that has to know. The first never comes
// back to that barrier: it waits at the next.
func TestControllerKilledAtARelease(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=2")
	socket := filepath.Join(c.dir, "p")
	d := newDeafener(t, socket, filepath.Join(c.dir, "run", "gangd.sock"))
	c.through("n2", socket)
	id := c.submit("--size=2", "--ranks-per-node=1", "-o", "out.%t", c.script("meet.sh", `#!/bin/bash
for phase in $(seq `+strconv.Itoa(rounds(3))+`); do
	echo "at $phase"
	[ $SLURMD_NODENAME = n1 ] && while [ ! -e go.$phase ]; do sleep 0.02; done
	gbarrier --timeout=50s odd.$((phase % 2)) || exit 1
	echo "past $phase"
done
`))
	rank := map[string]string{} // by node
	for _, r := range c.wait(id, api.JobRunning).Ranks {
		rank[r.Node] = strconv.Itoa(r.Rank)
	}
	says := func(node, word string) func() bool {
		return func() bool {
			got := lines(t, filepath.Join(c.tmp, "out."+rank[node]))
			return len(got) > 0 && got[len(got)-1] == word
		}
	}
	for phase := 1; phase <= rounds(3); phase++ {
		at, past := fmt.Sprintf("at %d", phase), fmt.Sprintf("past %d", phase)
		next := fmt.Sprintf("at %d", phase+1)
		if phase == rounds(3) {
			next = past
		}
		c.until("n2 waits", says("n2", at))
		time.Sleep(200 * time.Millisecond) // for its arrival; one that comes later makes the round an easy one
		d.deaf.Store(true)
		c.touch(fmt.Sprintf("go.%d", phase))
		c.until("n1 is past the barrier", says("n1", next))
		if !says("n2", at)() {
			t.Fatalf("phase %d: the deaf node has heard", phase)
		}
		c.kill("gangd")
		d.deaf.Store(false)
		c.restart("gangd")
		c.until("n2 is past the barrier too", says("n2", next))
	}
	c.wait(id, api.JobCompleted)
}

// Ranks that meet all the time, while the controller is killed at any time: nobody passes
// alone, nobody waits for ever.
func TestControllerKilledBetweenBarriers(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=3")
	const phases = 40
	id := c.submit("--size=3", "--ranks-per-node=1", "-o", "out.%t", c.script("meet.sh", fmt.Sprintf(`#!/bin/bash
for phase in $(seq %d); do
	: > came.$phase.$GANG_RANK
	gbarrier --timeout=50s phase || { echo "phase $phase: $?"; exit 1; }
	for r in 0 1 2; do [ -e came.$phase.$r ] || { echo "passed $phase without $r"; exit 1; }; done
done
`, phases)))
	c.wait(id, api.JobRunning)
	kills := 0
	for ; kills < rounds(4) && !c.job(id).State.Ended(); kills++ {
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
		c.kill("gangd")
		time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
		c.restart("gangd")
	}
	j := c.wait(id, api.JobCompleted, api.JobFailed)
	if j.State != api.JobCompleted {
		var said []string
		for rank := range 3 {
			said = append(said, lines(t, filepath.Join(c.tmp, fmt.Sprintf("out.%d", rank)))...)
		}
		t.Errorf("the job is %s: %s\n%s", j.State, strings.Join(said, "; "), c.story(id))
	}
	t.Logf("%d barriers of 3 ranks through %d kills of the controller", phases, kills)
}
