package cluster

import (
	"slices"
	"strconv"
	"strings"
)

// Constraint is what --constraint says of the nodes of a gang, in Slurm's operators:
// "a100&(ib|roce)" of each node, "[rack1|rack2]" of all of them the same one, "rack1*2" or
// "[rack1*2&rack2*4]" of at least so many, each counted once.
type Constraint struct {
	each   *Features   // of every node; nil: nothing
	same   []*Features // one of these, of every node; nil: nothing
	counts []Count
}

// Count is a condition that at least so many of a gang's nodes meet. A node counts for one
// of several counts only.
type Count struct {
	Features *Features
	Nodes    int
}

// Features is a condition on the features of a node: names joined by & and |, where & binds
// tighter, with parentheses.
type Features struct {
	text    string // as it was written
	feature string // of a leaf
	any     bool   // of the others: one of the parts is enough
	parts   []*Features
}

// String is the condition as it was written.
func (f *Features) String() string { return f.text }

// Met reports whether a node with these features meets the condition. None is met by all.
func (f *Features) Met(features []string) bool {
	if f == nil {
		return true
	}
	if f.parts == nil {
		return slices.Contains(features, f.feature)
	}
	for _, part := range f.parts {
		if part.Met(features) == f.any {
			return f.any
		}
	}
	return !f.any
}

func (f *Features) names(out []string) []string {
	if f == nil {
		return out
	}
	if f.parts == nil && !slices.Contains(out, f.feature) {
		out = append(out, f.feature)
	}
	for _, part := range f.parts {
		out = part.names(out)
	}
	return out
}

// Met reports whether a node with these features may be one of the gang's.
func (c *Constraint) Met(features []string) bool {
	if c == nil {
		return true
	}
	return c.each.Met(features) && (c.same == nil || slices.ContainsFunc(c.same, func(f *Features) bool { return f.Met(features) }))
}

// Names lists the features that are named, in order, each once.
func (c *Constraint) Names() (out []string) {
	if c == nil {
		return nil
	}
	out = c.each.names(out)
	for _, f := range c.same {
		out = f.names(out)
	}
	for _, n := range c.counts {
		out = n.Features.names(out)
	}
	return out
}

// Nodes is how many nodes are counted in all: no gang that meets it has fewer.
func (c *Constraint) Nodes() (sum int) {
	if c != nil {
		for _, n := range c.counts {
			sum += n.Nodes
		}
	}
	return sum
}

// joint: it says something of the nodes together, not only of each by itself.
func (c *Constraint) joint() bool { return c != nil && (c.same != nil || c.counts != nil) }

// alternatives are the constraint without alternatives, one for each of them in the order written.
func (c *Constraint) alternatives() []*Constraint {
	if c == nil || c.same == nil {
		return []*Constraint{c}
	}
	out := make([]*Constraint, len(c.same))
	for i, f := range c.same {
		each := f
		if c.each != nil {
			each = &Features{text: f.text, parts: []*Features{c.each, f}}
		}
		out[i] = &Constraint{each: each, counts: c.counts}
	}
	return out
}

// ParseConstraint reads Slurm's words for it. Empty text is no condition: nil.
func ParseConstraint(text string) (*Constraint, error) {
	p := constraintParser{text: text}
	if p.peek() == 0 {
		return nil, nil
	}
	t, err := p.any()
	if err != nil {
		return nil, err
	}
	if p.peek() != 0 {
		return nil, p.fail("'&', '|' or the end")
	}
	return p.constraint(t)
}

// What the texts of strangers may cost: recursion, names that each node is held against, and subsets
// of counts that a layout goes through.
const (
	maxFeatures        = 256
	maxConstraintDepth = 32
	maxAlternatives    = 64
	maxCounts          = 6
)

// term is what the parser makes of a piece: a condition on one node, or one that speaks of
// the nodes together, which may only stand at the top.
type term struct {
	*Features
	count   int     // of a counted one
	bracket *term   // what stands in brackets
	parts   []*term // of a list
	at      int     // where it begins
}

// joint reports whether anything in it speaks of nodes together, and gives the first.
func (t *term) joint() *term {
	if t.count > 0 || t.bracket != nil {
		return t
	}
	for _, part := range t.parts {
		if j := part.joint(); j != nil {
			return j
		}
	}
	return nil
}

// constraint takes apart what stands at the top.
func (p *constraintParser) constraint(t *term) (*Constraint, error) {
	c := &Constraint{}
	terms := []*term{t}
	if t.parts != nil && !t.any {
		terms = t.parts
	}
	var each []*Features
	bracketed := false
	for _, one := range terms {
		switch {
		case one.bracket != nil && bracketed:
			return nil, p.wrong(one, "only one pair of brackets is possible", "join what is in them")
		case one.bracket != nil:
			bracketed = true
			if err := p.inBrackets(c, one.bracket); err != nil {
				return nil, err
			}
		case one.count > 0:
			c.counts = append(c.counts, Count{one.Features, one.count})
		case one.joint() != nil:
			return nil, p.wrong(one.joint(), "a count and brackets can't be an alternative or stand in parentheses",
				"join them to the rest by &, or write alternatives in brackets, such as [rack1|rack2]")
		default:
			each = append(each, one.Features)
		}
	}
	if len(c.counts) > maxCounts {
		return nil, p.wrong(t, "more than "+strconv.Itoa(maxCounts)+" counts", "count fewer features")
	}
	switch len(each) {
	case 0:
	case 1:
		c.each = each[0]
	default:
		c.each = &Features{text: p.text, parts: each}
	}
	return c, p.oneCount(c, bracketed, t)
}

// oneCount refuses what Slurm would never find nodes for: counts beside each other are
// written in brackets, so that nobody takes "a*1&b*1" for one node with both.
func (p *constraintParser) oneCount(c *Constraint, bracketed bool, t *term) error {
	outside := 0
	for _, one := range append([]*term{t}, t.parts...) {
		if one.count > 0 {
			outside++
		}
	}
	if outside > 1 || outside == 1 && bracketed && len(c.counts) > 1 {
		var parts []string
		for _, n := range c.counts {
			parts = append(parts, n.Features.text+"*"+strconv.Itoa(n.Nodes))
		}
		return p.wrong(t, "several counts stand together in brackets", "write ["+strings.Join(parts, "&")+"]")
	}
	return nil
}

// inBrackets takes apart alternatives joined by |, or counts joined by &.
func (p *constraintParser) inBrackets(c *Constraint, t *term) error {
	terms := []*term{t}
	if t.parts != nil {
		terms = t.parts
	}
	counted := 0
	for _, one := range terms {
		if one.count > 0 {
			counted++
		} else if j := one.joint(); j != nil {
			return p.wrong(j, "a count and brackets can't stand inside of brackets so", "write [rack1*2&rack2*4] or [rack1|rack2]")
		}
	}
	switch {
	case counted == 0 && t.parts != nil && !t.any:
		return p.wrong(t, "in brackets & joins counts", "write "+t.text+" without brackets, or a count behind each feature, such as "+
			"[rack1*2&rack2*4]")
	case counted == 0:
		if len(terms) > maxAlternatives {
			return p.wrong(t, "more than "+strconv.Itoa(maxAlternatives)+" alternatives", "name fewer")
		}
		for _, one := range terms {
			c.same = append(c.same, one.Features)
		}
		return nil
	case counted < len(terms):
		return p.wrong(t, "in brackets each feature has a count or none has", "write a count behind each, such as [rack1*2&rack2*4]")
	case t.any && t.parts != nil:
		return p.wrong(t, "counts in brackets are joined by &", "write alternatives without counts, such as [rack1|rack2]")
	}
	for _, one := range terms {
		c.counts = append(c.counts, Count{one.Features, one.count})
	}
	return nil
}
