package hosts

import (
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"gangd/e2e/tally"
)

// cut is a way in which a host loses the others.
type cut string

const (
	cutBoth   cut = "both ways" // packets are dropped
	cutOut    cut = "outward"   // only what it sends is lost
	cutIn     cut = "inward"    // only what it is sent is lost
	cutReset  cut = "reset"     // connections are broken and new ones refused
	cutReject cut = "rejected"  // a firewall answers "port unreachable"
	cutCable  cut = "cable unplugged"
)

// rules are the iptables arguments that make a cut.
var rules = map[cut][][]string{
	cutBoth:   {{"INPUT", "-j", "DROP"}, {"OUTPUT", "-j", "DROP"}},
	cutOut:    {{"OUTPUT", "-j", "DROP"}},
	cutIn:     {{"INPUT", "-j", "DROP"}},
	cutReset:  {{"OUTPUT", "-p", "tcp", "-j", "REJECT", "--reject-with", "tcp-reset"}, {"INPUT", "-p", "tcp", "-j", "REJECT", "--reject-with", "tcp-reset"}},
	cutReject: {{"OUTPUT", "-p", "tcp", "-j", "REJECT"}},
}

// firewall is the iptables that works in a network of its own here, "" for none.
var firewall = sync.OnceValue(func() string {
	for _, prog := range []string{"iptables", "iptables-legacy", "iptables-nft"} {
		out, err := exec.Command("unshare", "-n", prog, "-A", "INPUT", "-p", "tcp", "-j", "REJECT", "--reject-with", "tcp-reset").CombinedOutput()
		if err == nil && !strings.Contains(string(out), "Error") {
			return prog
		}
	}
	return ""
})

// needFirewall skips a test of cuts that only a packet filter can make.
func needFirewall(t *testing.T) {
	t.Helper()
	tally.Need(t, "iptables")
	if firewall() == "" {
		tally.Skip(t, "needs a kernel that lets iptables work in a network namespace, for one-way cuts and resets")
	}
}

// usable reports whether this machine can make the cut.
func (c cut) usable() bool { return c == cutCable || firewall() != "" }

// cut makes a host lose the others.
func (l *lab) cut(name string, c cut) {
	l.t.Helper()
	whom := "a node"
	if name == "ctl" {
		whom = "the controller"
	}
	tally.Did("network cut of "+whom+", "+string(c), 1)
	if err := l.tryCut(name, c); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) tryCut(name string, c cut) error {
	if c == cutCable {
		return l.sw.inside("ip", "link", "set", name, "down")
	}
	if rules[c] == nil {
		return fmt.Errorf("no cut %q", c)
	}
	for _, r := range rules[c] {
		// Its own loopback is not the network.
		if err := l.hosts[name].inside(append([]string{firewall(), "-w", "-A", r[0], map[string]string{"INPUT": "-i", "OUTPUT": "-o"}[r[0]], "eth0"}, r[1:]...)...); err != nil {
			return err
		}
	}
	return nil
}

// heal undoes every cut of a host.
func (l *lab) heal(name string) {
	l.t.Helper()
	if err := l.tryHeal(name); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) tryHeal(name string) error {
	if err := l.sw.inside("ip", "link", "set", name, "up"); err != nil || firewall() == "" {
		return err
	}
	return l.hosts[name].inside(firewall(), "-w", "-F")
}
