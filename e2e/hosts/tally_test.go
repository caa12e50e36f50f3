package hosts

import (
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"testing"
)

// tally is what all tests of a run have done and found, for the table of make chaos.
var tally = &counts{done: map[string]int{}, wrong: map[string]int{}}

type counts struct {
	mu    sync.Mutex
	order []string
	done  map[string]int
	wrong map[string]int // by what was checked; present with 0 once it was
}

// did counts something that was done to the cluster.
func did(what string, n int) {
	tally.mu.Lock()
	defer tally.mu.Unlock()
	tally.done[what] += n
}

// checked says that a property was looked at, and fails the test for each violation.
func checked(t *testing.T, property string, violations ...string) {
	t.Helper()
	tally.mu.Lock()
	if _, ok := tally.wrong[property]; !ok {
		tally.order = append(tally.order, property)
	}
	tally.wrong[property] += len(violations)
	tally.mu.Unlock()
	for i, v := range violations {
		if i == 20 {
			t.Errorf("%s: and %d more", property, len(violations)-i)
			return
		}
		t.Errorf("%s: %s", property, v)
	}
}

// write appends the table to a file, for a run of several packages.
func (c *counts) write(path string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if path == "" || len(c.done)+len(c.wrong) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString("| done to several hosts with real daemons | times |\n|---|---:|\n")
	names := make([]string, 0, len(c.done))
	for n := range c.done {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		fmt.Fprintf(&b, "| %s | %d |\n", n, c.done[n])
	}
	b.WriteString("\n| looked for | found |\n|---|---:|\n")
	for _, n := range c.order {
		fmt.Fprintf(&b, "| %s | %d |\n", n, c.wrong[n])
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(b.String())
	return err
}
