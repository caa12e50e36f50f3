package hosts

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gangd/e2e/tally"
	"gangd/pkg/api"
)

// meetMain is a rank that meets the others over the network: rank 0 listens where gangd has
// told all of them, the others connect and say on which host they are.
func meetMain() {
	name, _ := os.Hostname()
	at := net.JoinHostPort(os.Getenv("MASTER_ADDR"), os.Getenv("MASTER_PORT"))
	size, _ := strconv.Atoi(os.Getenv("GANG_SIZE"))
	if os.Getenv("GANG_RANK") != "0" {
		for range 600 {
			if c, err := net.Dial("tcp", at); err == nil {
				_, err = fmt.Fprintln(c, name)
				exitIf(err)
				exitIf(c.Close())
				os.Exit(0)
			}
			time.Sleep(50 * time.Millisecond)
		}
		os.Exit(3)
	}
	l, err := net.Listen("tcp", at)
	exitIf(err)
	met := []string{name}
	for range size - 1 {
		c, err := l.Accept()
		exitIf(err)
		line, err := bufio.NewReader(c).ReadString('\n')
		exitIf(err)
		met = append(met, strings.TrimSpace(line))
	}
	slices.Sort(met)
	fmt.Println(met)
	os.Exit(0)
}

func exitIf(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(4)
	}
}

// A gang over three hosts: the ranks find each other by what gangd tells them, over the
// hosts' own network.
func TestGangOverHosts(t *testing.T) {
	l := build(t, options{nodes: 3})
	id := l.submit("--size=3", "--ranks-per-node=1", "-o", filepath.Join(l.tmp, "out.%t"), "--wrap", "exec env "+role+"=meet "+l.self)
	l.wait(id, api.JobCompleted)
	b, err := os.ReadFile(filepath.Join(l.tmp, "out.0"))
	if got := string(b); err != nil || got != "[n1 n2 n3]\n" {
		t.Errorf("the ranks met on %q, %v", got, err)
	}
}

// A power cut of one host: everything there is gone without a word. The new boot id is the
// proof, so the gang runs again at once, and not before.
func TestHostReboots(t *testing.T) {
	l := build(t, options{nodes: 2, gangd: []string{`heartbeat = "200ms"`, `node_timeout = "1s"`, `grace = "1s"`, `drain_slack = "1s"`}})
	id := l.submit("--size=2", "--ranks-per-node=1", "--wrap", l.rank("done", 3))
	l.runs(id, 1, 2)
	l.reboot("n2")
	tally.Did("power cut of a host", 1)
	l.until("the gang has drained", func() bool { return l.job(id).State == api.JobPending })
	if j := l.job(id); j.Epoch != 1 || !strings.Contains(j.Why, "n2") {
		t.Errorf("epoch %d, waits because %q: want it to wait for n2", j.Epoch, j.Why)
	}
	l.gnoded("n2")
	l.runs(id, 2, 2)
	l.touch("done")
	j := l.wait(id, api.JobFailed)
	if j.ExitCode == nil || *j.ExitCode != 3 || j.Budgets[api.CauseNodeLost].Used != 1 {
		t.Errorf("ended with %v, node-lost %+v", j.ExitCode, j.Budgets[api.CauseNodeLost])
	}
	tally.Checked(t, "epochs that overlap", overlaps(l.witnesses(id))...)
}
