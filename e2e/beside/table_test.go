package beside

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

//go:embed cases.txt
var table string

//go:embed prelude.sh
var prelude string

// kase is one row of the table.
type kase struct {
	area, title string
	script      string
	norms       []norm
	ignores     []ignore
	general     []ignore // of the area: lines that may differ in any of its cases
	streams     []string // that differ as a whole: stdout, stderr, exit
	why         string   // of streams
	slow        bool
	accounts    bool // needs sacct's database
	bound       bool // tasks are bound to CPUs
	line        int
}

// norm makes equal what differs between two runs of one system.
type norm struct {
	re   *regexp.Regexp
	text string
}

// ignore takes lines out of both, and says why they differ.
type ignore struct {
	re  *regexp.Regexp
	why string
}

func (k *kase) name() string { return k.area + ": " + k.title }

// reasons are why it differs, empty for a case that has to be the same.
func (k *kase) reasons() []string {
	var out []string
	if k.why != "" {
		out = append(out, k.why)
	}
	for _, i := range k.ignores {
		if !slices.Contains(out, i.why) {
			out = append(out, i.why)
		}
	}
	return out
}

// parse reads the table; it names the line of what it can't read.
func parse(text string) ([]*kase, error) {
	var all []*kase
	var k *kase
	var general kase // of the area
	area := ""
	for n, line := range strings.Split(text, "\n") {
		var err error
		switch {
		case strings.HasPrefix(line, "## "):
			area, k, general = strings.TrimPrefix(line, "## "), nil, kase{}
		case strings.HasPrefix(line, "=== "):
			k = &kase{area: area, title: strings.TrimPrefix(line, "=== "), line: n + 1, general: general.ignores, norms: slices.Clone(general.norms), bound: general.bound}
			all = append(all, k)
		case k == nil && (line == "" || strings.HasPrefix(line, "#")):
		case k == nil && strings.HasPrefix(line, "@"):
			err = general.say(line)
		case k == nil:
			err = fmt.Errorf("outside of a case")
		case k.script == "" && strings.HasPrefix(line, "@"):
			err = k.say(line)
		default:
			k.script += line + "\n"
		}
		if err != nil {
			return nil, fmt.Errorf("cases.txt:%d: %w: %s", n+1, err, line)
		}
	}
	return all, nil
}

// say reads one @ line.
func (k *kase) say(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "@slow":
		k.slow = true
		return nil
	case "@bound":
		k.bound = true
		return nil
	case "@accounting":
		k.accounts = true
		return nil
	case "@norm":
		p := strings.Split(rest, "/")
		if len(p) != 4 || p[0] != "" || p[3] != "" {
			return fmt.Errorf("want @norm /RE/TEXT/")
		}
		re, err := regexp.Compile("(?m)" + p[1])
		k.norms = append(k.norms, norm{re, p[2]})
		return err
	case "@ignore":
		end := strings.LastIndex(rest, "/ ")
		if !strings.HasPrefix(rest, "/") || end < 1 {
			return fmt.Errorf("want @ignore /RE/ WHY")
		}
		re, err := regexp.Compile(rest[1:end])
		k.ignores = append(k.ignores, ignore{re, rest[end+2:]})
		return err
	case "@differs":
		streams, why, ok := strings.Cut(rest, " ")
		if !ok {
			return fmt.Errorf("want @differs STREAM,... WHY")
		}
		k.streams, k.why = strings.Split(streams, ","), why
		for _, s := range k.streams {
			if !slices.Contains([]string{"stdout", "stderr", "exit"}, s) {
				return fmt.Errorf("want stdout, stderr or exit, not %q", s)
			}
		}
		return nil
	}
	return fmt.Errorf("want @norm, @ignore, @differs, @slow, @accounting or @bound")
}
