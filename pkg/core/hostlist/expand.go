package hostlist

import (
	"strconv"
	"strings"

	"gangd/pkg/api"
)

// MaxHosts bounds one expansion: "n[0-9999999]" is a typo, not a cluster.
const MaxHosts = 65536

// maxDigits keeps every number of a range within int.
const maxDigits = 9

// Expand lists the names of a host list, in the order written, each once. Commas (and
// blanks or line ends, as in a hosts file) separate; empty text is an empty list.
func Expand(text string) ([]string, error) {
	return expand(parser{text: text, seen: make(map[string]bool)})
}

// Repeated is the same with each name as often, and where, it stands.
func Repeated(text string) ([]string, error) { return expand(parser{text: text}) }

func expand(p parser) ([]string, error) {
	text := p.text
	for p.skip(); p.at < len(text); p.skip() {
		if err := p.item(); err != nil {
			return nil, err
		}
	}
	return p.out, nil
}

type parser struct {
	text string
	at   int
	out  []string
	made int             // names so far, repeats included
	seen map[string]bool // nil: repeats are kept
}

func separator(b byte) bool { return b == ',' || b == ' ' || b == '\t' || b == '\n' || b == '\r' }

func (p *parser) skip() {
	for p.at < len(p.text) && separator(p.text[p.at]) {
		p.at++
	}
}

// item reads one name with any number of brackets: r[1-2]n[01-16].
func (p *parser) item() error {
	from := p.at
	names := []string{""}
	for p.at < len(p.text) && !separator(p.text[p.at]) {
		var ends []string
		var err error
		if p.text[p.at] == '[' {
			ends, err = p.bracket()
		} else {
			ends, err = p.literal()
		}
		if err != nil {
			return err
		}
		// Repeats count: a long text of the same range again and again is work as well.
		if len(names)*len(ends)+p.made > MaxHosts {
			return api.Errorf(api.CodeInvalid, "host list %s: column %d: more than %d hosts", quote(p.text), from+1, MaxHosts)
		}
		names = product(names, ends, p.anotherBracket())
	}
	p.made += len(names)
	for _, n := range names {
		if p.seen != nil {
			if p.seen[n] {
				continue
			}
			p.seen[n] = true
		}
		p.out = append(p.out, n)
	}
	return nil
}

// anotherBracket reports whether the name being read has one more.
func (p *parser) anotherBracket() bool {
	i := strings.IndexAny(p.text[p.at:], "[, \t\n\r")
	return i >= 0 && p.text[p.at+i] == '['
}

// product puts each tail behind each head. What comes in front of the last bracket counts up from the left, as in Slurm.
func product(heads, tails []string, fromLeft bool) []string {
	if len(tails) == 1 && len(heads) == 1 {
		return []string{heads[0] + tails[0]}
	}
	out := make([]string, 0, len(heads)*len(tails))
	if fromLeft {
		for _, t := range tails {
			for _, h := range heads {
				out = append(out, h+t)
			}
		}
		return out
	}
	for _, h := range heads {
		for _, t := range tails {
			out = append(out, h+t)
		}
	}
	return out
}

func (p *parser) literal() ([]string, error) {
	from := p.at
	for p.at < len(p.text) && p.text[p.at] != '[' && !separator(p.text[p.at]) {
		c := p.text[p.at]
		if !nameByte(c) {
			return nil, p.fail(p.at, "a host name")
		}
		p.at++
	}
	return []string{p.text[from:p.at]}, nil
}

// nameByte allows what host names are made of, and the underscore that sites use.
func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_'
}

func (p *parser) bracket() ([]string, error) {
	open := p.at
	p.at++
	var out []string
	for {
		lo, width, err := p.number()
		if err != nil {
			return nil, err
		}
		hi := lo
		if p.peek() == '-' {
			p.at++
			if hi, err = p.upper(lo); err != nil {
				return nil, err
			}
		}
		if len(out)+hi-lo >= MaxHosts {
			return nil, api.Errorf(api.CodeInvalid, "host list %s: column %d: more than %d hosts", quote(p.text), open+1, MaxHosts)
		}
		for i := lo; i <= hi; i++ {
			out = append(out, pad(i, width))
		}
		switch p.peek() {
		case ',':
			p.at++
		case ']':
			p.at++
			return out, nil
		default:
			return nil, p.fail(p.at, "',', '-' or ']'")
		}
	}
}

// number reads digits and how wide they are padded, 0: not at all.
func (p *parser) number() (value, width int, err error) {
	from := p.at
	for p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
		p.at++
	}
	digits := p.text[from:p.at]
	if digits == "" || len(digits) > maxDigits {
		want := "a number"
		if digits != "" {
			want = "a number of at most " + strconv.Itoa(maxDigits) + " digits"
		}
		return 0, 0, p.fail(from, want)
	}
	value, err = strconv.Atoi(digits)
	if len(digits) > 1 && digits[0] == '0' {
		width = len(digits)
	}
	return value, width, err
}

func (p *parser) upper(lo int) (int, error) {
	from := p.at
	hi, _, err := p.number()
	if err == nil && hi < lo {
		err = api.Errorf(api.CodeInvalid, "host list %s: column %d: range ends at %d before it begins at %d", quote(p.text), from+1, hi, lo)
	}
	return hi, err
}

func (p *parser) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

func (p *parser) fail(at int, want string) error {
	found := "the end"
	if at < len(p.text) {
		found = strconv.QuoteToASCII(p.text[at : at+1])
	}
	return api.Errorf(api.CodeInvalid, "host list %s: %s expected at column %d, found %s", quote(p.text), want, at+1, found)
}

// quote keeps a message readable whatever was pasted.
func quote(text string) string {
	if len(text) > 60 {
		text = text[:57] + "..."
	}
	return strconv.QuoteToASCII(text)
}

func pad(n, width int) string {
	s := strconv.Itoa(n)
	if len(s) < width {
		s = strings.Repeat("0", width-len(s)) + s
	}
	return s
}
