// Package when reads and writes times as Slurm's commands do.
//
// The package is pure: the time it is now is given.
//
// Begin with Parse, Stamp and Span. It must not know what a time is for.
package when

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Error is a time that can't be read: where in the text.
type Error struct {
	Text string
	Pos  int
}

func (e *Error) Error() string {
	return fmt.Sprintf("Invalid time specification (pos=%d): %s", e.Pos, e.Text)
}

// Tense says which of two readings is meant where the day is left out.
type Tense int

// The tenses.
const (
	Future Tense = iota // the next time that the clock shows so much
	Past                // today, and a date without a year is this year's or the last one's
)

// Parse reads a time: 2026-11-21[T08:30[:00]], 11/21[/26], 112126, 08:30[:00] [am|pm],
// now[+-]COUNT[UNIT], today, tomorrow, midnight, noon, fika, teatime, uts1795250387, and a
// date and a clock together.
func Parse(s string, now time.Time, t Tense) (time.Time, error) {
	p := &parser{text: s, now: now, tense: t}
	p.day = -1
	for p.skip(); p.pos < len(s); p.skip() {
		if !p.item() {
			return time.Time{}, &Error{s, p.pos}
		}
		if !p.at.IsZero() {
			return p.at, nil
		}
	}
	return p.result(), nil
}

type parser struct {
	text  string
	pos   int
	now   time.Time
	tense Tense

	at               time.Time // whole, as of now+1hour
	year, month, day int       // day -1: no date; year 0: without
	clock            time.Duration
	hasClock         bool
}

func (p *parser) rest() string { return p.text[p.pos:] }

// skip passes blanks, and what may stand between a date and a clock, or a clock and a day's name.
func (p *parser) skip() {
	for p.pos < len(p.text) {
		c := p.text[p.pos]
		dated := (c == 'T' || c == 't' || c == '-') && p.day >= 0 && !p.hasClock
		timed := c == '-' && p.day < 0 && p.hasClock
		if c != ' ' && (p.pos == 0 || !dated && !timed) {
			return
		}
		p.pos++
	}
}

func (p *parser) blanks() {
	for p.pos < len(p.text) && p.text[p.pos] == ' ' {
		p.pos++
	}
}

// named are the words for a time of the day.
var named = []struct {
	word  string
	clock time.Duration
}{
	{"midnight", 0}, {"elevenses", 11 * time.Hour}, {"noon", 12 * time.Hour}, {"fika", 15 * time.Hour}, {"teatime", 16 * time.Hour},
}

func (p *parser) item() bool {
	switch {
	case p.word("today"):
		p.date(p.now)
		return true
	case p.word("tomorrow"):
		p.date(p.now.AddDate(0, 0, 1))
		return true
	case p.word("now"):
		return p.fromNow()
	case p.word("uts"):
		n, ok := p.number(18)
		p.at = time.Unix(int64(n), 0).In(p.now.Location())
		return ok
	}
	for _, w := range named {
		if p.word(w.word) {
			p.clock, p.hasClock = w.clock, true
			return true
		}
	}
	return p.digits()
}

// word passes a word at the head.
func (p *parser) word(w string) bool {
	r := p.rest()
	if len(r) < len(w) || !strings.EqualFold(r[:len(w)], w) {
		return false
	}
	p.pos += len(w)
	return true
}

func (p *parser) date(t time.Time) {
	p.year, p.month, p.day = t.Year(), int(t.Month()), t.Day()
}

// units are those behind now+1; a word may be cut short.
var units = []struct {
	word string
	unit time.Duration
}{
	{"seconds", time.Second}, {"minutes", time.Minute}, {"hours", time.Hour}, {"days", 24 * time.Hour}, {"weeks", 7 * 24 * time.Hour},
}

// maxCount keeps now+N weeks far from overflow: a hundred years of seconds.
const maxCount = 3200000000

func (p *parser) fromNow() bool {
	p.at = p.now
	p.blanks()
	if p.pos == len(p.text) {
		return true
	}
	sign := time.Duration(1)
	switch p.text[p.pos] {
	case '+':
	case '-':
		sign = -1
	default:
		return false
	}
	p.pos++
	p.blanks()
	n, ok := p.number(10)
	if !ok {
		return false
	}
	unit := time.Second
	if tail := strings.ToLower(strings.TrimSpace(p.rest())); tail != "" {
		unit = 0
		for _, u := range units {
			if strings.HasPrefix(u.word, tail) {
				unit = u.unit
				break
			}
		}
	}
	if unit == 0 || n > maxCount/int(unit/time.Second) {
		return false
	}
	p.at, p.pos = p.now.Add(sign*time.Duration(n)*unit), len(p.text)
	return true
}

// number reads at most so many digits.
func (p *parser) number(most int) (int, bool) {
	n := 0
	for n < most && p.pos+n < len(p.text) && p.text[p.pos+n] >= '0' && p.text[p.pos+n] <= '9' {
		n++
	}
	if n == 0 {
		return 0, false
	}
	v, err := strconv.Atoi(p.text[p.pos : p.pos+n])
	p.pos += n
	return v, err == nil
}

// digits reads a clock or a date, by what stands behind the first number.
func (p *parser) digits() bool {
	n := 0
	for p.pos+n < len(p.text) && p.text[p.pos+n] >= '0' && p.text[p.pos+n] <= '9' {
		n++
	}
	behind := byte(0)
	if p.pos+n < len(p.text) {
		behind = p.text[p.pos+n]
	}
	switch {
	case n == 4 && behind == '-' && p.day < 0:
		return p.iso()
	case n <= 2 && n > 0 && !p.hasClock && (behind == ':' || half(p.text[p.pos+n:])):
		return p.readClock()
	case n <= 2 && n > 0 && (behind == '/' || behind == '.') && p.day < 0:
		return p.american(behind)
	case (n == 6 || n == 4) && p.day < 0 && behind != ':':
		return p.packed(n)
	}
	return false
}

func (p *parser) iso() bool {
	y, _ := p.number(4)
	p.pos++
	m, ok := p.number(2)
	if !ok || p.pos >= len(p.text) || p.text[p.pos] != '-' {
		return false
	}
	p.pos++
	d, ok := p.number(2)
	return ok && p.setDate(y, m, d)
}

// american is MM/DD or MM/DD/YY.
func (p *parser) american(sep byte) bool {
	m, _ := p.number(2)
	p.pos++
	d, ok := p.number(2)
	if !ok {
		return false
	}
	y := 0
	if p.pos < len(p.text) && p.text[p.pos] == sep {
		p.pos++
		from := p.pos
		if y, ok = p.number(4); !ok || p.pos-from != 2 && p.pos-from != 4 {
			return false
		}
		if y < 100 {
			y += 2000
		}
	}
	return p.setDate(y, m, d)
}

// packed is MMDD or MMDDYY.
func (p *parser) packed(n int) bool {
	from := p.pos
	m, _ := p.number(2)
	d, _ := p.number(2)
	y := 0
	if n == 6 {
		y, _ = p.number(2)
		y += 2000
	}
	if p.pos < len(p.text) && strings.IndexByte(" Tt-", p.text[p.pos]) < 0 {
		return false
	}
	ok := p.setDate(y, m, d)
	if !ok {
		p.pos = from
	}
	return ok
}

func (p *parser) setDate(y, m, d int) bool {
	if m < 1 || m > 12 || d < 1 || d > 31 || y != 0 && (y < 1970 || y > 9999) {
		return false
	}
	p.year, p.month, p.day = y, m, d
	return true
}

// half says whether a half of the day stands at the head: 4pm, which Slurm does not take, is plain to people.
func half(s string) bool {
	s = strings.ToLower(strings.TrimLeft(s, " "))
	return strings.HasPrefix(s, "am") || strings.HasPrefix(s, "pm")
}

func (p *parser) readClock() bool {
	h, ok := p.number(2)
	m, sec := 0, 0
	if p.pos < len(p.text) && p.text[p.pos] == ':' {
		p.pos++
		m, ok = p.number(2)
	}
	if ok && p.pos < len(p.text) && p.text[p.pos] == ':' {
		p.pos++
		sec, ok = p.number(2)
	}
	if !ok || m > 59 || sec > 59 || h > 23 {
		return false
	}
	p.blanks()
	switch {
	case p.word("am"):
		if h == 0 || h > 12 {
			return false
		}
		h %= 12
	case p.word("pm"):
		if h == 0 || h > 12 {
			return false
		}
		h = h%12 + 12
	}
	p.clock, p.hasClock = time.Duration(h)*time.Hour+time.Duration(m)*time.Minute+time.Duration(sec)*time.Second, true
	return true
}

// result puts date and clock together.
func (p *parser) result() time.Time {
	n := p.now
	switch {
	case p.day < 0 && !p.hasClock:
		return time.Date(n.Year(), n.Month(), n.Day(), 0, 0, 0, 0, n.Location())
	case p.day < 0:
		p.date(n)
		if t := p.build(); p.tense == Past || !t.Before(n) {
			return t
		}
		p.date(n.AddDate(0, 0, 1))
		return p.build()
	case p.year == 0:
		p.year = n.Year()
		t := p.build()
		switch today := time.Date(n.Year(), n.Month(), n.Day(), 0, 0, 0, 0, n.Location()); {
		case p.tense == Future && t.Before(today):
			p.year++
		case p.tense == Past && t.After(n):
			p.year--
		}
	}
	return p.build()
}

func (p *parser) build() time.Time {
	h, m, s := int(p.clock/time.Hour), int(p.clock/time.Minute)%60, int(p.clock/time.Second)%60
	return time.Date(p.year, time.Month(p.month), p.day, h, m, s, 0, p.now.Location())
}

// Layout is how Slurm's commands write a time.
const Layout = "2006-01-02T15:04:05"

// Stamp is a time as Slurm's commands write it; a zero one is what none says.
func Stamp(t time.Time, none string) string {
	if t.IsZero() {
		return none
	}
	return t.Local().Format(Layout)
}

// Clock is a time in a sentence, where now is: of today its clock alone, of another day the day too.
func Clock(now, t time.Time) string {
	t = t.In(now.Location())
	if y, m, d := t.Date(); y == now.Year() && m == now.Month() && d == now.Day() {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

// Told writes the instants in a text of the controller, which are as JSON has them, as Clock does where now is: whoever shows a
// text knows who reads it, and whoever made it does not.
func Told(now time.Time, text string) string {
	var b strings.Builder
	for {
		from, to, t := instant(text)
		if to == 0 {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:from])
		b.WriteString(Clock(now, t))
		text = text[to:]
	}
}

// instant finds the first instant of a text; to is 0 where there is none.
func instant(text string) (from, to int, t time.Time) {
	const day = len(time.DateOnly)
	for at := 0; ; at++ {
		next := strings.IndexByte(text[at:], 'T')
		if next < 0 {
			return 0, 0, t
		}
		if at += next; at < day {
			continue
		}
		from, to = at-day, at
		for to < len(text) && strings.IndexByte("0123456789T:.+-Z", text[to]) >= 0 {
			to++
		}
		for end := to; end > at; end-- { // a full stop may follow
			if t, err := time.Parse(time.RFC3339, text[from:end]); err == nil {
				return from, end, t
			}
		}
	}
}

// Span is a span of time: [D-]HH:MM:SS.
func Span(d time.Duration) string {
	s := int64(max(0, d) / time.Second)
	days, clock := s/86400, fmt.Sprintf("%02d:%02d:%02d", s/3600%24, s/60%60, s%60)
	if days > 0 {
		return strconv.FormatInt(days, 10) + "-" + clock
	}
	return clock
}

// Words is a span of time as people say it, in its two largest units: 300 ms, 90 s, 12 min, 1 h 30 min, 3 d 4 h.
func Words(d time.Duration) string {
	switch d = max(0, d); {
	case d == 0:
		return "0 s"
	case d < time.Second:
		return strconv.FormatInt(max(1, d.Milliseconds()), 10) + " ms"
	case d < 2*time.Minute:
		return strconv.FormatInt(int64(d/time.Second), 10) + " s"
	}
	large, small := time.Minute, time.Second
	names := [2]string{"min", "s"}
	switch {
	case d >= 24*time.Hour:
		large, small, names = 24*time.Hour, time.Hour, [2]string{"d", "h"}
	case d >= time.Hour:
		large, small, names = time.Hour, time.Minute, [2]string{"h", "min"}
	}
	text := fmt.Sprintf("%d %s", d/large, names[0])
	if rest := d % large / small; rest > 0 {
		text += fmt.Sprintf(" %d %s", rest, names[1])
	}
	return text
}

// Limit is a time limit in seconds, 0: none.
func Limit(seconds int64) string {
	if seconds == 0 {
		return "UNLIMITED"
	}
	return Span(time.Duration(seconds) * time.Second)
}

// CPUSpan is processor time: MM:SS.mmm, from an hour on [D-]HH:MM:SS, none 00:00:00.
func CPUSpan(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second)).Round(time.Millisecond)
	if d >= time.Hour || d <= 0 {
		return Span(d)
	}
	ms := int64(d / time.Millisecond)
	return fmt.Sprintf("%02d:%02d.%03d", ms/60000, ms/1000%60, ms%1000)
}
