package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/cli/fake"
)

// topOf is a screen of the fake's cluster.
func topOf() *top {
	t := newTop("ada")
	c := fake.Small()
	for _, j := range c.Jobs {
		t.jobs[j.JobID] = j
	}
	for _, n := range c.Nodes {
		t.nodes[n.Name] = n
	}
	t.told = true
	return t
}

var topScreens = []struct {
	name string
	set  func(*top)
}{
	{"queue", func(*top) {}},
	{"ended", func(t *top) { t.ended = true }},
	{"mine", func(t *top) { t.mine, t.filter = true, "tr" }},
	{"filter", func(t *top) { t.typing, t.filter = true, "grac" }},
	{"cards", func(t *top) { t.view = topCards }},
	{"why", func(t *top) {
		t.view, t.title, t.text = topText, "why job 13 waits", strings.Split(fake.Small().Why[13], "\n")
	}},
	{"ask", func(t *top) { t.ask = "cancel job 12?" }},
	{"lost", func(t *top) { t.lost = fake.Now.Add(-time.Minute) }},
}

// What is drawn is in the golden files, at the smallest size and a large one; no line is wider than the
// screen, and there are as many as it has.
func TestTopScreens(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		var out strings.Builder
		for _, c := range topScreens {
			s := &screen{terminal: true, width: size[0], height: size[1]}
			m := topOf()
			c.set(m)
			lines := m.draw(s, fake.Now)
			if len(lines) != size[1] {
				t.Errorf("%s at %v: %d lines", c.name, size, len(lines))
			}
			fmt.Fprintf(&out, "== %s\n", c.name)
			for _, l := range lines {
				if textWidth(l) > size[0] {
					t.Errorf("%s at %v: %d columns: %q", c.name, size, textWidth(l), l)
				}
				out.WriteString(strings.TrimRight(l, " ") + "\n")
			}
			if m := topOf(); size[0] == 80 {
				c.set(m)
				s.colour = true
				if !strings.Contains(strings.Join(m.draw(s, fake.Now), ""), "\x1b[") {
					t.Errorf("%s has no colour where there are some", c.name)
				}
			}
		}
		if strings.Contains(out.String(), "\x1b") {
			t.Error("a colour where there are none")
		}
		golden(t, fmt.Sprintf("gtop-%dx%d.txt", size[0], size[1]), out.String())
	}
}

// A name of a job can't move the cursor, nor be wider than its column.
func TestTopShowsNamesAsText(t *testing.T) {
	m := topOf()
	j := m.jobs[12]
	j.Name = "\x1b[2J\x07界界界界界界界界界界界界界界"
	m.jobs[12] = j
	s := &screen{terminal: true, width: 80, height: 24}
	for _, l := range m.draw(s, fake.Now) {
		if strings.ContainsAny(l, "\x1b\x07") || textWidth(l) > 80 {
			t.Errorf("%d columns: %q", textWidth(l), l)
		}
	}
}

func TestTopKeys(t *testing.T) {
	p := &topProgram{top: topOf(), do: make(chan func(), 64), stop: func() {}}
	p.ctx = t.Context()
	ids := func() (out []int64) {
		for _, j := range p.rows() {
			out = append(out, j.JobID)
		}
		return out
	}
	all := ids()
	p.at = all[0]
	press := func(keys ...string) {
		for _, k := range keys {
			p.key(k)
		}
	}
	press("j")
	if p.at != all[1] {
		t.Errorf("j: job %d of %v", p.at, all)
	}
	press("G")
	if p.at != all[len(all)-1] {
		t.Errorf("G: job %d of %v", p.at, all)
	}
	press("\x1b[A", "g")
	if p.at != all[0] {
		t.Errorf("g: job %d of %v", p.at, all)
	}
	press("/", "g", "r", "x", "\x7f", "a")
	if p.filter != "gra" || !p.typing || !slices.Equal(ids(), []int64{14}) {
		t.Errorf("filter %q: %v", p.filter, ids())
	}
	press("\r")
	if p.typing || p.filter != "gra" {
		t.Error("Enter did not keep it")
	}
	press("/", "\x1b")
	if p.filter != "" || p.typing {
		t.Error("Esc did not drop it")
	}
	press("e")
	if len(ids()) <= len(all) {
		t.Errorf("e: %v", ids())
	}
	press("e", "m")
	for _, j := range p.rows() {
		if j.User != "ada" {
			t.Errorf("m: %s", j.User)
		}
	}
	press("m", "n")
	if p.view != topCards {
		t.Error("n")
	}
	press("?")
	if p.view != topText || p.title != "keys" {
		t.Error("?")
	}
	press("\x1b")
	if p.view != topQueue {
		t.Error("Esc")
	}
	p.at = 12
	press("c")
	if p.ask != "cancel job 12?" || p.job != (api.JobRef{ID: 12, Index: -1}) {
		t.Errorf("c: %q %v", p.ask, p.job)
	}
	press("n")
	if p.ask != "" || p.view != topQueue {
		t.Error("no is no key of its own")
	}
	stopped := false
	p.stop = func() { stopped = true }
	if press("q"); !stopped {
		t.Error("q")
	}
}

func TestSplitKeys(t *testing.T) {
	for in, want := range map[string][]string{
		"jk": {"j", "k"}, "\x1b": {"\x1b"}, "\x1b[A\x1b[6~q": {"\x1b[A", "\x1b[6~", "q"}, "\x1bOB": {"\x1bOB"}, "": nil,
	} {
		if got := splitKeys(in); !slices.Equal(got, want) {
			t.Errorf("%q: %q", in, got)
		}
	}
}
