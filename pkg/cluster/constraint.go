package cluster

import (
	"slices"
	"strings"

	"gangd/pkg/api"
)

// Constraint is a condition on the features of a node: names joined by & and |, where &
// binds tighter, with parentheses.
type Constraint struct {
	feature string // of a leaf
	any     bool   // of the others: one of the parts is enough
	parts   []*Constraint
}

// ParseConstraint reads "a100&(ib|roce)". Empty text is no condition: nil.
func ParseConstraint(text string) (*Constraint, error) {
	p := constraintParser{text: text}
	if p.peek() == 0 {
		return nil, nil
	}
	c, err := p.any()
	if err != nil {
		return nil, err
	}
	if p.peek() != 0 {
		return nil, p.fail("'&', '|' or the end")
	}
	return c, nil
}

// Met reports whether a node with these features meets the condition.
func (c *Constraint) Met(features []string) bool {
	if c == nil {
		return true
	}
	if c.parts == nil {
		return slices.Contains(features, c.feature)
	}
	for _, part := range c.parts {
		if part.Met(features) == c.any {
			return c.any
		}
	}
	return !c.any
}

// Names lists the features that are named, in order, each once.
func (c *Constraint) Names() []string {
	if c == nil {
		return nil
	}
	if c.parts == nil {
		return []string{c.feature}
	}
	var out []string
	for _, part := range c.parts {
		for _, name := range part.Names() {
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// maxConstraintDepth bounds the recursion: the text comes from anybody.
const maxConstraintDepth = 32

type constraintParser struct {
	text  string
	at    int
	depth int
}

func (p *constraintParser) any() (*Constraint, error) { return p.list('|', true, p.all) }
func (p *constraintParser) all() (*Constraint, error) { return p.list('&', false, p.leaf) }

func (p *constraintParser) list(sep byte, any bool, part func() (*Constraint, error)) (*Constraint, error) {
	first, err := part()
	if err != nil || p.peek() != sep {
		return first, err
	}
	c := &Constraint{any: any, parts: []*Constraint{first}}
	for p.peek() == sep {
		p.at++
		next, err := part()
		if err != nil {
			return nil, err
		}
		c.parts = append(c.parts, next)
	}
	return c, nil
}

func (p *constraintParser) leaf() (*Constraint, error) {
	if p.peek() == '(' {
		return p.group()
	}
	from := p.at
	for p.at < len(p.text) && !strings.ContainsRune("&|()[]*!, \t", rune(p.text[p.at])) {
		p.at++
	}
	if p.at == from {
		return nil, p.fail("a feature")
	}
	return &Constraint{feature: p.text[from:p.at]}, nil
}

func (p *constraintParser) group() (*Constraint, error) {
	if p.depth++; p.depth > maxConstraintDepth {
		return nil, api.Errorf(api.CodeInvalid, "constraint %q: more than %d parentheses inside each other", p.text, maxConstraintDepth)
	}
	p.at++
	c, err := p.any()
	if err != nil {
		return nil, err
	}
	if p.peek() != ')' {
		return nil, p.fail("')'")
	}
	p.at++
	p.depth--
	return c, nil
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
	err := api.Errorf(api.CodeInvalid, "constraint %q: %s expected at column %d, found %s", p.text, want, p.at+1, found)
	err.Hint = "write features joined by & and |, such as a100&(ib|roce)"
	return err
}
