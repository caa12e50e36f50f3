package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/clipperhouse/displaywidth"

	"gangd/pkg/api"
	"gangd/pkg/client/output"
	"gangd/pkg/core/table/column"
	"gangd/pkg/core/table/jobfield"
)

// topView is what gtop shows.
type topView int

const (
	topQueue topView = iota
	topCards
	topText // why a job waits, a job, its output, the keys
)

// top is the state of gtop: what was told, and what is looked at. Drawing it needs nothing else.
type top struct {
	jobs  map[int64]api.Job
	nodes map[string]api.Node
	place map[int64]int // in the queue, of those that could start; 1 is next
	start map[int64]api.QueueStart
	told  bool
	lost  time.Time // since when no controller answers; zero: it does

	view        topView
	me          string
	mine, ended bool
	filter      string
	typing      bool  // the keys go into the filter
	at          int64 // the job that is selected
	first       int   // of the rows that are seen
	body        int   // lines that there are for them
	title       string
	text        []string
	unended     map[int]string // lines of ranks that have no end yet, below the text
	tail        bool           // the text is followed at its end
	ask         string         // a question that waits for y
	note        string         // what became of the last action
}

func newTop(me string) *top {
	return &top{jobs: map[int64]api.Job{}, nodes: map[string]api.Node{}, me: me}
}

// ordered takes in how the queue goes.
func (t *top) ordered(o api.QueueOrder) {
	t.place, t.start = map[int64]int{}, map[int64]api.QueueStart{}
	for i, id := range o.Jobs() {
		t.place[id] = i + 1
	}
	for _, s := range o.Starts {
		t.start[s.Job] = s
	}
}

// rows are the jobs that are wanted: those that run first, the longest first; those that wait in the order of the
// queue, behind them those that wait for something else; those that have ended, the newest first. The page has the same order.
func (t *top) rows() []api.Job {
	var out []api.Job
	for _, j := range t.jobs {
		if !t.ended && j.State.Ended() || t.mine && j.User != t.me || !t.matches(&j) {
			continue
		}
		out = append(out, j)
	}
	rank := func(j *api.Job) int {
		switch {
		case j.State.Ended():
			return 3
		case j.State == api.JobPending && t.place[j.JobID] == 0:
			return 2
		case j.State == api.JobPending:
			return 1
		}
		return 0
	}
	slices.SortFunc(out, func(a, b api.Job) int {
		by := cmp.Compare(rank(&a), rank(&b))
		switch {
		case by != 0:
		case rank(&a) == 3:
			by = b.EndTime.Compare(a.EndTime)
		case rank(&a) == 0:
			by = a.StartTime.Compare(b.StartTime)
		default:
			by = cmp.Compare(t.place[a.JobID], t.place[b.JobID])
		}
		return cmp.Or(by, cmp.Compare(a.JobID, b.JobID))
	})
	return out
}

func (t *top) matches(j *api.Job) bool {
	f := strings.ToLower(t.filter)
	return f == "" || strings.HasPrefix(topRef(j), f) || slices.ContainsFunc([]string{j.Name, j.User, j.Partition, strings.Join(j.Nodes, ",")},
		func(s string) bool { return strings.Contains(strings.ToLower(s), f) })
}

func topRef(j *api.Job) string {
	if j.ArrayIndex != nil {
		return fmt.Sprintf("%d_%d", j.ArrayJobID, *j.ArrayIndex)
	}
	return fmt.Sprint(j.JobID)
}

// draw gives the lines of a screen. None is wider than the screen.
func (t *top) draw(s *screen, now time.Time) []string {
	lines := []string{t.head(s, now)}
	t.body = max(1, s.height-2)
	switch t.view {
	case topQueue:
		lines = append(lines, t.queue(s, now, t.body)...)
	case topCards:
		lines = append(lines, t.cards(s, t.body)...)
	case topText:
		lines = append(lines, t.page(s, t.body)...)
	}
	for len(lines) < s.height-1 {
		lines = append(lines, "")
	}
	return append(lines[:s.height-1], t.foot(s))
}

func (t *top) head(s *screen, now time.Time) string {
	run, wait := 0, 0
	for _, j := range t.jobs {
		switch {
		case j.State == api.JobPending:
			wait++
		case !j.State.Ended():
			run++
		}
	}
	up, cards, used := 0, 0, 0
	for _, n := range t.nodes {
		if n.State == api.NodeUp {
			up++
		}
		cards += len(n.Cards)
		for i := range n.Cards {
			if len(n.Cards[i].Jobs) > 0 {
				used++
			}
		}
	}
	text := fmt.Sprintf("gangd  %d run, %d wait  nodes %d/%d  cards %d/%d", run, wait, up, len(t.nodes), used, cards) + t.choice()
	style := bold
	switch {
	case !t.lost.IsZero():
		text, style = fmt.Sprintf("gangd does not answer since %s; jobs are not affected", t.lost.Local().Format("15:04:05")), red
	case !t.told:
		text = "gangd  asking"
	}
	clock := now.Local().Format("15:04:05")
	return s.paint(style, fit(text, s.width-len(clock)-1)) + " " + clock
}

func (t *top) foot(s *screen) string {
	switch {
	case t.ask != "":
		return s.paint(yellow, fit(t.ask+" y/n", s.width))
	case t.typing:
		return fit("/"+t.filter+"_", s.width)
	case t.note != "":
		return fit(t.note, s.width)
	}
	keys := "q quit  / filter  w why  l log  e ended  m mine  n cards  c cancel  ? help"
	if t.view != topQueue {
		keys = "q quit  esc back  arrows move  g G begin end  ? help"
	}
	return s.paint(faint, fit(keys, s.width))
}

// choice says which jobs are shown.
func (t *top) choice() (text string) {
	if t.filter != "" {
		text += ", matching " + t.filter
	}
	if t.mine {
		text += ", mine"
	}
	if t.ended {
		text += ", ended too"
	}
	return text
}

// queue shows as much of each job as the width has room for.
func (t *top) queue(s *screen, now time.Time, height int) []string {
	rows := t.rows()
	wide := s.width >= 120
	name := 14
	if wide {
		name = 20 + (min(s.width, 200)-120)/8
	}
	at := slices.IndexFunc(rows, func(j api.Job) bool { return j.JobID == t.at })
	if at < 0 && len(rows) > 0 {
		at, t.at = 0, rows[0].JobID
	}
	t.first = window(t.first, at, height-1, len(rows))
	seen := rows[t.first:min(len(rows), t.first+height-1)]
	ref := len("JOB")
	for i := range seen {
		ref = max(ref, len(topRef(&seen[i])))
	}
	line := func(mark, place, id, n, user, part, state, age, cards, starts, where string) string {
		parts := []string{mark + fit(id, ref), fit(n, name), fit(user, 8)}
		rest := s.width - 1 - ref - 1 - name - 1 - 8 - 1 - stateWidth - 1 - 9 - 1 - 5 - 1
		if wide {
			parts = append(parts, fit(part, 12))
			rest -= 13 + 1 + placeWidth + 1 + startsWidth
			cards = right(cards, 5) + " " + right(place, placeWidth) + " " + right(starts, startsWidth)
		} else {
			cards = right(cards, 5)
		}
		return strings.Join(append(parts, state, fit(age, 9), cards), " ") + " " + fit(where, max(1, rest))
	}
	lines := []string{s.paint(faint, line(" ", "PLACE", "JOB", "NAME", "USER", "PARTITION", fit("STATE", stateWidth), "TIME", "CARDS",
		"STARTS", "NODES OR REASON"))}
	for i := range seen {
		j := &seen[i]
		age, where := "", strings.Join(j.Nodes, ",")
		if !j.StartTime.IsZero() {
			end := now
			if !j.EndTime.IsZero() {
				end = j.EndTime
			}
			age = jobfield.Elapsed(end.Sub(j.StartTime))
		}
		if j.State == api.JobPending {
			where = "(" + j.Reason + ")"
		}
		state := s.paint(stateStyle(j.State), fit(string(j.State), stateWidth))
		mark := " "
		if t.first+i == at {
			state, mark = fit(string(j.State), stateWidth), ">"
		}
		place, starts := "", ""
		if n := t.place[j.JobID]; n > 0 && j.State == api.JobPending {
			place, starts = fmt.Sprint(n), t.starts(j.JobID, now)
		}
		text := line(mark, place, topRef(j), j.Name, j.User, j.Partition, state, age, fmt.Sprint(j.Cards), starts, where)
		if t.first+i == at && s.colour {
			text = "\x1b[7m" + text + styleEnd
		}
		lines = append(lines, text)
	}
	if len(rows) == 0 && t.told {
		lines = append(lines, "no jobs"+t.choice())
	}
	return lines
}

// placeWidth has room for any place that somebody counts to, startsWidth for a day and a time.
const (
	placeWidth  = 5
	startsWidth = 12
)

// starts says when a job is expected to start.
func (t *top) starts(id int64, now time.Time) string {
	s, known := t.start[id]
	switch {
	case !known:
		return "-"
	case s.At.IsZero():
		return "now"
	case s.At.Sub(now) < 20*time.Hour:
		return s.At.Local().Format("15:04")
	}
	return s.At.Local().Format("01-02 15:04")
}

// right is a figure at the end of its column.
func right(s string, width int) string {
	s = fit(s, width)
	trimmed := strings.TrimRight(s, " ")
	return strings.Repeat(" ", len(s)-len(trimmed)) + trimmed
}

// stateWidth has room for every state but two.
const stateWidth = 10

// cards shows each card as a bar of its memory, with whose it is.
func (t *top) cards(s *screen, height int) []string {
	var lines []string
	for _, name := range sortedNodes(t.nodes) {
		n := t.nodes[name]
		text := fmt.Sprintf("%s  %s  %d/%d CPUs", column.Printable(n.Name), n.State, n.CPUsUsed, n.CPUs)
		style := plain
		if n.State != api.NodeUp {
			style = red
			text += "  " + column.Printable(nodeReason(&n))
		}
		lines = append(lines, s.paint(style, fit(text, s.width)))
		for i := range n.Cards {
			lines = append(lines, t.card(s, &n.Cards[i]))
		}
	}
	t.first = max(0, min(t.first, len(lines)-height))
	return lines[t.first:min(len(lines), t.first+height)]
}

const vramWidth = 20

func (t *top) card(s *screen, c *api.Card) string {
	used := 0
	if c.VRAMBytes > 0 {
		used = int(min(vramWidth, (c.UsedBytes*vramWidth+c.VRAMBytes-1)/c.VRAMBytes))
	}
	busy := "   ?"
	if c.Utilization >= 0 {
		busy = fmt.Sprintf("%3d%%", c.Utilization)
	}
	whose := "free"
	if len(c.Jobs) > 0 {
		whose = "job"
		for _, id := range c.Jobs {
			j, known := t.jobs[id]
			if !known {
				whose += fmt.Sprintf(" %d", id)
				continue
			}
			whose += " " + topRef(&j) + " " + column.Printable(j.User)
		}
	}
	style := plain
	if c.State != api.CardOK {
		whose, style = string(c.State)+" "+column.Printable(c.Reason), red
	}
	if c.StrangersBytes > 0 {
		whose += fmt.Sprintf(", strangers use %d MiB", c.StrangersBytes>>20)
	}
	text := fmt.Sprintf("  %2d [%s%s] %4d/%d GiB %s  %s", c.Index, strings.Repeat("#", used), strings.Repeat(".", vramWidth-used),
		c.UsedBytes>>30, c.VRAMBytes>>30, busy, whose)
	return s.paint(style, fit(text, s.width))
}

func sortedNodes(nodes map[string]api.Node) []string {
	var names []string
	for name := range nodes {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return names
}

// page shows a text.
func (t *top) page(s *screen, height int) []string {
	lines := []string{s.paint(bold, fit(t.title, s.width))}
	text := slices.Clip(t.text)
	if !t.tail { // sentences: an output shows its lines as they are
		text = strings.Split(output.Fold(strings.Join(text, "\n"), s.width), "\n")
	}
	for _, rank := range slices.Sorted(maps.Keys(t.unended)) {
		text = append(text, t.unended[rank])
	}
	most := max(0, len(text)-(height-1))
	if t.tail {
		t.first = most
	}
	t.first = max(0, min(t.first, most))
	for _, l := range text[t.first:min(len(text), t.first+height-1)] {
		lines = append(lines, fit(l, s.width))
	}
	return lines
}

// window moves the first row that is seen so that the selected one is.
func window(first, at, height, rows int) int {
	first = min(first, at)
	if at >= first+height {
		first = at - height + 1
	}
	return max(0, min(first, rows-1))
}

// fit cuts and fills a text to so many columns; 0 leaves it.
func fit(text string, width int) string {
	text = column.Printable(text)
	if width <= 0 {
		return text
	}
	w := displaywidth.String(text)
	if w > width {
		var b strings.Builder
		w = 0
		for _, r := range text {
			n := displaywidth.Rune(r)
			if w+n > width {
				break
			}
			w += n
			b.WriteRune(r)
		}
		text = b.String()
	}
	return text + strings.Repeat(" ", width-w)
}
