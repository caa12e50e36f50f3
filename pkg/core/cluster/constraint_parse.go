package cluster

import (
	"strconv"
	"strings"

	"gangd/pkg/api"
)

type constraintParser struct {
	text  string
	at    int
	depth int
	names int
}

func (p *constraintParser) any() (*term, error) { return p.list("|", true, p.all) }

// all also takes a comma, which Slurm takes for &.
func (p *constraintParser) all() (*term, error) { return p.list("&,", false, p.leaf) }

func (p *constraintParser) list(seps string, any bool, part func() (*term, error)) (*term, error) {
	p.peek()
	from := p.at
	first, err := part()
	if err != nil || !p.sees(seps) {
		return first, err
	}
	t := &term{Features: &Features{any: any, parts: []*Features{first.Features}}, parts: []*term{first}, at: from}
	for p.sees(seps) {
		p.at++
		next, err := part()
		if err != nil {
			return nil, err
		}
		t.parts = append(t.parts, next)
		t.Features.parts = append(t.Features.parts, next.Features)
	}
	t.Features.text = strings.TrimSpace(p.text[from:p.at])
	return t, nil
}

// sees reports whether one of these bytes comes next.
func (p *constraintParser) sees(bytes string) bool {
	b := p.peek()
	return b != 0 && strings.IndexByte(bytes, b) >= 0
}

// leaf reads a name, what is in parentheses or what is in brackets, with a count.
func (p *constraintParser) leaf() (*term, error) {
	p.peek()
	from := p.at
	t, err := p.uncounted()
	if err != nil || p.peek() != '*' {
		return t, err
	}
	if j := t.joint(); j != nil {
		return nil, p.fail("'&', '|' or the end")
	}
	p.at++
	if t.count, err = p.number(); err != nil {
		return nil, err
	}
	return &term{Features: t.Features, count: t.count, at: from}, nil
}

func (p *constraintParser) uncounted() (*term, error) {
	switch p.peek() {
	case '(':
		return p.group(')')
	case '[':
		at := p.at
		t, err := p.group(']')
		if err != nil {
			return nil, err
		}
		return &term{Features: t.Features, bracket: t, at: at}, nil
	}
	from := p.at
	for p.at < len(p.text) && !strings.ContainsRune("&|()[]*!, \t", rune(p.text[p.at])) {
		p.at++
	}
	if p.at == from {
		return nil, p.fail("a feature")
	}
	if p.names++; p.names > maxFeatures {
		return nil, p.wrong(&term{at: from}, "more than "+strconv.Itoa(maxFeatures)+" features", "name fewer")
	}
	name := p.text[from:p.at]
	return &term{Features: &Features{text: name, feature: name}, at: from}, nil
}

// number reads a count of nodes.
func (p *constraintParser) number() (int, error) {
	p.peek()
	from := p.at
	for p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
		p.at++
	}
	n, err := strconv.Atoi(p.text[from:p.at])
	if err != nil || n < 1 || n > api.MaxGangSize {
		p.at = from
		return 0, p.fail("a number of nodes from 1 to " + strconv.Itoa(api.MaxGangSize))
	}
	return n, nil
}

func (p *constraintParser) group(end byte) (*term, error) {
	if p.depth++; p.depth > maxConstraintDepth {
		return nil, api.Errorf(api.CodeInvalid, "constraint %q: more than %d parentheses inside each other", p.text,
			maxConstraintDepth).About(api.ReasonFeature, p.text)
	}
	p.at++
	t, err := p.any()
	if err != nil {
		return nil, err
	}
	if p.peek() != end {
		return nil, p.fail("'" + string(end) + "'")
	}
	p.at++
	p.depth--
	return t, nil
}

// peek skips blanks and gives the next byte, 0 at the end.
func (p *constraintParser) peek() byte {
	for p.at < len(p.text) && (p.text[p.at] == ' ' || p.text[p.at] == '\t') {
		p.at++
	}
	if p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

func (p *constraintParser) fail(want string) error {
	found := "the end"
	if p.at < len(p.text) {
		found = "'" + p.text[p.at:p.at+1] + "'"
	}
	err := api.Errorf(api.CodeInvalid, "constraint %q: %s expected at column %d, found %s", p.text, want, p.at+1,
		found).About(api.ReasonFeature, p.text)
	err.Hint = "write features joined by & and |, such as a100&(ib|roce), alternatives for all nodes as [rack1|rack2], counts of nodes as " +
		"rack1*2"
	return err
}

// wrong refuses what can be read, but means nothing.
func (p *constraintParser) wrong(t *term, what, hint string) error {
	err := api.Errorf(api.CodeInvalid, "constraint %q: %s (column %d)", p.text, what, t.at+1).About(api.ReasonFeature, p.text)
	err.Hint = hint
	return err
}
