package attack

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/e2e/tally"
	"gangd/e2e/trial"
)

// try is one thing that somebody tries. A long one is left to `make attack`.
type try struct {
	heading string
	name    string
	what    string // is tried
	expect  string // in words; do looks whether it came so
	long    bool
	do      func() error // nil: it held
}

// errNoTry: it can't be tried.
var errNoTry = errors.New("no try")

// TestAttack makes every try (GANG_E2E_TRIES: those whose HEADING/NAME it matches), and then looks whether the site works as before.
func TestAttack(t *testing.T) {
	s := build(t)
	all := os.Getenv("GANG_E2E_CHAOS") != ""
	var tries []try
	for _, of := range []func(*site) []try{
		othersJobs, paths, mounts, draining, imports, starts, claims, numbers, sizes, connections, secrets, accounts, inside, trustedFiles, submissionKeys, bounds, doors, printed, second, page, outputs, texts, fields, memories,
	} {
		tries = append(tries, of(s)...)
	}
	some := regexp.MustCompile(os.Getenv("GANG_E2E_TRIES")) // of HEADING/NAME; empty: all
	seen, broke, done := map[string]bool{}, map[string][]string{}, map[string]int{}
	var order []string
	for _, x := range tries {
		if seen[x.heading+"/"+x.name] {
			t.Errorf("two tries are %s/%s", x.heading, x.name)
		}
		seen[x.heading+"/"+x.name] = true
		if x.long && !all || !some.MatchString(x.heading+"/"+x.name) {
			continue
		}
		if done[x.heading]++; !slices.Contains(order, x.heading) {
			order = append(order, x.heading)
		}
		began := time.Now()
		err := x.do()
		if errors.Is(err, errNoTry) {
			done[x.heading]--
			continue
		}
		if err == nil {
			err = s.stands()
		}
		word, why := "HELD", ""
		if err != nil {
			word, why = "BROKE", ": "+err.Error()
			broke[x.heading] = append(broke[x.heading], x.name+why)
		}
		if all || err != nil {
			fmt.Printf("%-5s %s/%s: %s; expected: %s%s (%d ms)\n", word, x.heading, oneLine(x.name), oneLine(x.what), x.expect, oneLine(why), time.Since(began).Milliseconds())
		}
	}
	n := 0
	for _, h := range order {
		fmt.Printf("%4d tries, %d broke: %s\n", done[h], len(broke[h]), h)
		tally.Did("tries: "+h, done[h])
		tally.Checked(t, "broken: "+h, broke[h]...)
		n += done[h]
	}
	fmt.Printf("%4d tries\n", n)
	if all && some.String() == "" && n < 1200 {
		t.Errorf("%d tries, and at least 1,200 are promised", n)
	}
	s.works()
}

func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}

// works: after all of it both nodes start jobs, and memory and store agree.
func (s *site) works() {
	s.t.Helper()
	for _, n := range []string{"n1", "n2"} {
		id := s.ada.submit(map[string]any{"node_list": []string{n}, "gpus_per_rank": 1})
		if j, err := s.ended(id); err != nil || j.State != "COMPLETED" {
			s.t.Errorf("ada's job on %s ended %s: %s, %v", n, j.State, j.Verdict, err)
		}
	}
	var found struct{ Findings []string }
	if err := s.root.call("GET", "/v1/verify", nil).decode(&found); err != nil || len(found.Findings) > 0 {
		s.t.Errorf("verify: %v, %v", found.Findings, err)
	}
}

func tlsDial(address string, conf *tls.Config) (net.Conn, error) {
	return tls.DialWithDialer(&net.Dialer{Timeout: trial.Patience}, "tcp", address, conf)
}
