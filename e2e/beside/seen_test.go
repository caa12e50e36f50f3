package beside

import (
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// seen is what a case showed on one system.
type seen struct {
	stdout, stderr string
	exit           int
	first, last    int // ids of the case's jobs; last < first: none
	dir            string
	late           bool // it did not end in time
}

// everywhere is what differs between any two runs.
var everywhere = []norm{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d`), "<time>"},
	{regexp.MustCompile(`case\.sh: line \d+:`), "case.sh:"},
}

var number = regexp.MustCompile(`\d+`)

// equal makes equal in text what must differ, and leaves out what the case ignores.
func (k *kase) equal(text string, s *seen) string {
	text = strings.ReplaceAll(text, s.dir, "<dir>")
	for _, n := range append(slices.Clone(everywhere), k.norms...) {
		text = n.re.ReplaceAllString(text, n.text)
	}
	names := s.names()
	text = number.ReplaceAllStringFunc(text, func(d string) string {
		if name, ok := names[d]; ok {
			return name
		}
		return d
	})
	ignores := append(slices.Clone(k.ignores), k.general...)
	if len(ignores) == 0 {
		return text
	}
	var kept []string
	for _, line := range strings.Split(text, "\n") {
		if !slices.ContainsFunc(ignores, func(i ignore) bool { return i.re.MatchString(line) }) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// names numbers the ids of the case's jobs in the order in which they were seen: one of the
// two may use up ids that the other does not.
func (s *seen) names() map[string]string {
	out := map[string]string{}
	for _, d := range number.FindAllString(s.stdout+" "+s.stderr, -1) {
		if n, err := strconv.Atoi(d); err == nil && n >= s.first && n <= s.last && out[d] == "" {
			out[d] = fmt.Sprintf("J%d", len(out)+1)
		}
	}
	return out
}

// verdict is what became of a case.
type verdict string

const (
	same      verdict = "same"
	justified verdict = "differs, justified"
	differs   verdict = "DIFFERS, UNJUSTIFIED"
	needless  verdict = "SAME, JUSTIFIED NEEDLESSLY"
)

// judge compares what a case showed on both.
func (k *kase) judge(slurm, gangd *seen) (verdict, string) {
	if slurm.late {
		return differs, "it did not end on Slurm in " + limit.String() + "\n"
	}
	var diffs []string
	raw := false
	for _, st := range []struct{ name, s, g string }{
		{"stdout", slurm.stdout, gangd.stdout}, {"stderr", slurm.stderr, gangd.stderr},
		{"exit", slurm.status(), gangd.status()},
	} {
		plain := kase{norms: k.norms}
		if plain.equal(st.s, slurm) == plain.equal(st.g, gangd) {
			continue
		}
		raw = true
		s, g := k.equal(st.s, slurm), k.equal(st.g, gangd)
		if s != g && !slices.Contains(k.streams, st.name) {
			diffs = append(diffs, st.name+":\n"+lineDiff(s, g))
		}
	}
	switch {
	case len(diffs) > 0:
		return differs, strings.Join(diffs, "")
	case raw:
		return justified, ""
	case len(k.reasons()) > 0:
		return needless, ""
	}
	return same, ""
}

func (s *seen) status() string {
	if s.late {
		return "did not end"
	}
	return strconv.Itoa(s.exit)
}

// lineDiff shows the lines that only one of the two has.
func lineDiff(slurm, gangd string) string {
	s, g := strings.Split(slurm, "\n"), strings.Split(gangd, "\n")
	var out strings.Builder
	count := map[string]int{}
	for _, l := range s {
		count[l]++
	}
	var extra []string
	for _, l := range g {
		if count[l] > 0 {
			count[l]--
		} else {
			extra = append(extra, l)
		}
	}
	moved := true
	for _, l := range s {
		if count[l] > 0 {
			count[l]--
			moved = false
			fmt.Fprintf(&out, "    slurm| %s\n", l)
		}
	}
	for _, l := range extra {
		moved = false
		fmt.Fprintf(&out, "    gangd| %s\n", l)
	}
	if moved {
		sort.Strings(s)
		fmt.Fprintf(&out, "    the same %d lines in another order\n", len(s))
	}
	return out.String()
}
