package cli

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/lab/sitetest"
)

// topOf is a screen of the small site.
func topOf(tb testing.TB) *top {
	t := newTop("ada")
	c := small(tb)
	for _, j := range c.jobs {
		t.jobs[j.JobID] = j
	}
	for _, n := range c.nodes {
		t.nodes[n.Name] = n
	}
	t.told = true
	t.ordered(api.QueueOrder{Order: "13"})
	return t
}

// topScreens are drawn here, and reached by keys on a terminal of tmux.
var topScreens = []struct {
	name string
	set  func(*top, *shown)
}{
	{"queue", func(*top, *shown) {}},
	{"ended", func(t *top, _ *shown) { t.ended = true }},
	{"mine", func(t *top, _ *shown) { t.mine, t.filter = true, "tr" }},
	{"filter", func(t *top, _ *shown) { t.typing, t.filter = true, "grac" }},
	{"cards", func(t *top, _ *shown) { t.view = topCards }},
	{"why", func(t *top, c *shown) {
		t.view, t.title, t.text = topText, "why job 13 waits", append([]string{"job 13 is PENDING (" + c.job(13).Reason + ")"}, strings.Split(c.why, "\n")...)
	}},
	{"job", func(t *top, c *shown) {
		t.view, t.title, t.text = topText, "job 12", jobLines(c.train)
	}},
	{"log", func(t *top, _ *shown) {
		t.view, t.title, t.tail = topText, "output of job 12", true
		t.text = []string{"0: epoch 1, rank 0", "0: epoch 2, rank 0", "0: step 1200 loss 2.31", "1: epoch 2, rank 1", "3: (open /home/ada/run/gang-12.3.out: permission denied)"}
	}},
	{"keys", func(t *top, _ *shown) { t.view, t.title, t.text = topText, "keys", strings.Split(topHelp, "\n") }},
	{"held", func(t *top, _ *shown) {
		j := t.jobs[13]
		j.Reason, t.at, t.note = "JobHeldUser", 13, "hold job 13: done"
		t.jobs[13] = j
	}},
	{"ask", func(t *top, _ *shown) { t.ask = "cancel job 12?" }},
	{"lost", func(t *top, _ *shown) { t.lost = sitetest.Now }},
}

// What is drawn is in the golden files, at the smallest size and a large one; no line is wider than the
// screen, and there are as many as it has.
func TestTopScreens(t *testing.T) {
	for _, size := range [][2]int{{60, 24}, {80, 24}, {120, 40}, {200, 50}} {
		var out strings.Builder
		for _, c := range topScreens {
			s := &screen{terminal: true, width: size[0], height: size[1]}
			m := topOf(t)
			c.set(m, small(t))
			lines := m.draw(s, sitetest.Now)
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
			m = topOf(t)
			c.set(m, small(t))
			s.colour = true
			coloured := strings.Join(m.draw(s, sitetest.Now), "\n")
			if !strings.Contains(coloured, "\x1b[") {
				t.Errorf("%s has no colour where there are some", c.name)
			}
			if uncoloured(coloured) != strings.Join(lines, "\n") {
				t.Errorf("%s at %v is another text in colour:\n%s\nand not\n%s", c.name, size, uncoloured(coloured), strings.Join(lines, "\n"))
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
	m := topOf(t)
	j := m.jobs[12]
	j.Name = "\x1b[2J\x07界界界界界界界界界界界界界界"
	m.jobs[12] = j
	s := &screen{terminal: true, width: 80, height: 24}
	for _, l := range m.draw(s, sitetest.Now) {
		if strings.ContainsAny(l, "\x1b\x07") || textWidth(l) > 80 {
			t.Errorf("%d columns: %q", textWidth(l), l)
		}
	}
}

func TestTopKeys(t *testing.T) {
	p := &topProgram{top: topOf(t), do: make(chan func(), 64), stop: func() {}}
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
	for _, k := range [][2]string{{"\x1b[F", "\x1b[H"}, {"\x1bOF", "\x1bOH"}, {"\x1b[4~", "\x1b[1~"}, {"\x1b[B", "\x1b[A"}, {"\x1bOB", "\x1bOA"}} {
		if press(k[0]); p.at == all[0] {
			t.Errorf("%q does nothing", k[0])
		}
		if press(k[1]); p.at != all[0] {
			t.Errorf("%q: job %d of %v", k[1], p.at, all)
		}
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
		"jk": {"j", "k"}, "\x1b": {"", "\x1b"}, "\x1b[A\x1b[6~q": {"\x1b[A", "\x1b[6~", "q"}, "\x1bOB": {"\x1bOB"}, "": nil,
		"j\x1b[6": {"j", "", "\x1b[6"}, "\x1bq": {"\x1b", "q"}, "ü\xc3": {"ü", "", "\xc3"},
	} {
		got, rest := splitKeys(in)
		if rest != "" {
			got = append(got, "", rest)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q", in, got)
		}
	}
}

// Of a line that is a little different a part is written again, and a terminal that is told so shows what was drawn.
func TestTopWritesWhatDiffers(t *testing.T) {
	for _, colour := range []bool{false, true} {
		p := &topProgram{top: topOf(t)}
		s := &screen{terminal: true, colour: colour, width: 80, height: 24}
		shown := make([]string, s.height)
		paint := func() int {
			var b bytes.Buffer
			p.paintAll(&b, s)
			for _, part := range strings.Split(strings.TrimPrefix(b.String(), "\x1b[2J"), "\x1b[K") {
				if part == "" {
					continue
				}
				var row, col int
				at, text, _ := strings.Cut(part, "H")
				if _, err := fmt.Sscanf(at, "\x1b[%d;%d", &row, &col); err != nil {
					t.Fatalf("%q: %v", part, err)
				}
				if strings.Count(text, "\x1b")%2 != 0 {
					t.Errorf("%q begins within a style", text)
				}
				shown[row-1] = strings.TrimRight(fit(shown[row-1], col)[:len(fit(shown[row-1], col))-1]+unstyled(text), " ")
			}
			for i, l := range p.draw(s, now()) {
				if want := strings.TrimRight(unstyled(l), " "); shown[i] != want {
					t.Errorf("line %d is %q, and was drawn as %q", i, shown[i], want)
				}
			}
			return b.Len()
		}
		paint()
		if n := paint(); n != 0 {
			t.Errorf("%d bytes of nothing", n)
		}
		for _, set := range []struct {
			most int
			set  func(*api.Job)
		}{{40, func(j *api.Job) { j.StartTime = j.StartTime.Add(time.Second) }}, {30, func(j *api.Job) { j.Nodes = []string{"n4"} }}, {90, func(j *api.Job) { j.Name = "träin 界" }}, {100, func(j *api.Job) { j.Name = "tr" }},
			{1000, func(j *api.Job) { j.State = api.JobPending }}} {
			j := p.jobs[20] // not the selected one, of which all is written
			set.set(&j)
			p.jobs[20] = j
			if n := paint(); n == 0 || n > set.most {
				t.Errorf("%d bytes, at most %d wanted", n, set.most)
			}
		}
		for _, k := range []string{"j", "n", "?", "\x1b", "e", "k"} {
			p.key(k)
			paint()
		}
	}
}

// A line of output is what a terminal would be left with, and a progress bar is seen before its line ends.
func TestTopShowsOutputAsATerminal(t *testing.T) {
	p := &topProgram{top: topOf(t), do: make(chan func(), 64), ctx: t.Context()}
	p.write("", nil, true)
	w := &topLog{p: p, ctx: t.Context(), rest: map[int]string{}}
	for _, c := range []struct{ write, want string }{
		{"a\tb\r\n", "a       b"},
		{"\x1b[31mred\x1b[0m", "a       b|red"},
		{" or not\n\r 1%", "a       b|red or not| 1%"},
		{"\r 20%\r", "a       b|red or not| 20%"},
		{"\r done\nend", "a       b|red or not| done|end"},
	} {
		if _, err := w.Write([]byte(c.write)); err != nil {
			t.Fatal(err)
		}
		(<-p.do)()
		lines := p.page(&screen{width: 40}, 10)
		for i := range lines {
			lines[i] = strings.TrimRight(lines[i], " ")
		}
		if got := strings.Join(lines[1:], "|"); got != c.want {
			t.Errorf("after %q: %q, want %q", c.write, got, c.want)
		}
	}
	w.width = 2
	for rank, text := range []string{"\r 5%", "\r 7%"} {
		if err := w.add(&api.LogPiece{Rank: rank + 1, Data: []byte(text)}); err != nil {
			t.Fatal(err)
		}
		(<-p.do)()
	}
	if got := p.unended; len(got) != 3 || got[1] != " 1:  5%" || got[2] != " 2:  7%" {
		t.Errorf("%v", got)
	}
}

// Those that wait stand in the order of the queue, with their place and start where there is room.
func TestTopOrder(t *testing.T) {
	m := topOf(t)
	for i, id := range []int64{31, 32, 33} {
		m.jobs[id] = api.Job{JobID: id, Name: "w", User: "ada", State: api.JobPending, Reason: "Priority", Cards: 4 + i}
	}
	m.ordered(api.QueueOrder{Order: "33,31", Starts: []api.QueueStart{{Job: 33}, {Job: 31, At: sitetest.Now.Add(40 * time.Minute)}}})
	var ids []int64
	for _, j := range m.rows() {
		if j.JobID > 30 {
			ids = append(ids, j.JobID)
		}
	}
	if !slices.Equal(ids, []int64{33, 31, 32}) {
		t.Errorf("%v", ids)
	}
	text := strings.Join(m.draw(&screen{width: 140, height: 30}, sitetest.Now), "\n")
	for _, want := range []string{"PLACE       STARTS", " 1          now (Priority)", " 2        " + sitetest.Now.Add(40*time.Minute).Local().Format("15:04") + " (Priority)"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
