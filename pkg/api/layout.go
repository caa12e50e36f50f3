package api

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// Layout is where the ranks of a gang sit, in as few words as its names allow: a thousand nodes whose names count up
// are one [Series]. Every node of the gang is sent the same one, so that a start costs a node what its own part does.
type Layout struct {
	Names     []Series `json:"names"`
	Addresses []Series `json:"addresses"`
	Switches  []Series `json:"switches,omitempty"` // none: nobody knows any
	Ranks     []Deal   `json:"ranks"`
	CPUs      []Deal   `json:"cpus,omitempty"` // [Place].CPUs: Each of Nodes nodes has so many
}

// Series are Count texts that differ in one number: Before, a number of at least Width digits, After. The first has
// First, each next one more; with Same all are alike.
type Series struct {
	Before string `json:"before,omitempty"`
	First  uint64 `json:"first"`
	Width  int    `json:"width,omitempty" bound:"..255"` // 0: there is no number, only Before
	After  string `json:"after,omitempty"`
	Count  int    `json:"count" bound:"..65536"`
	Same   bool   `json:"same,omitempty"`
}

// Deal gives the ranks that follow, Each to a node, to Nodes nodes from the one with index First.
type Deal struct {
	First int `json:"first" bound:"..65535"`
	Nodes int `json:"nodes" bound:"..65536"`
	Each  int `json:"each" bound:"..1048576"`
}

// NewLayout is the layout of a gang.
func NewLayout(nodes []Place, ranks []RankPlace) *Layout {
	l := &Layout{Names: series(nodes, func(p *Place) string { return p.Name }),
		Addresses: series(nodes, func(p *Place) string { return p.Address }),
		Ranks:     deals(ranks)}
	if slices.ContainsFunc(nodes, func(p Place) bool { return p.Switches != "" }) {
		l.Switches = series(nodes, func(p *Place) string { return p.Switches })
	}
	for i := range nodes {
		if n := len(l.CPUs) - 1; nodes[i].CPUs > 0 && n >= 0 && l.CPUs[n].Each == nodes[i].CPUs && l.CPUs[n].First+l.CPUs[n].Nodes == i {
			l.CPUs[n].Nodes++
		} else if nodes[i].CPUs > 0 {
			l.CPUs = append(l.CPUs, Deal{First: i, Nodes: 1, Each: nodes[i].CPUs})
		}
	}
	return l
}

// places are the nodes of the gang. An error is the sender's fault.
func (l *Layout) places() ([]Place, error) {
	names, err := texts(l.Names, maxLayout)
	if err != nil {
		return nil, fmt.Errorf("names: %w", err)
	}
	addresses, err := texts(l.Addresses, len(names))
	if err != nil {
		return nil, fmt.Errorf("addresses: %w", err)
	}
	switches, err := texts(l.Switches, len(names))
	if err != nil {
		return nil, fmt.Errorf("switches: %w", err)
	}
	if len(addresses) != len(names) || len(switches) != len(names) && len(switches) != 0 {
		return nil, fmt.Errorf("%d names, %d addresses, %d switches", len(names), len(addresses), len(switches))
	}
	out := make([]Place, len(names))
	for i := range out {
		out[i] = Place{Name: names[i], Address: addresses[i]}
		if len(switches) > 0 {
			out[i].Switches = switches[i]
		}
	}
	for _, d := range l.CPUs {
		if d.First < 0 || d.Nodes < 0 || d.Each < 0 || d.First > len(out) || d.Nodes > len(out)-d.First {
			return nil, fmt.Errorf("CPUs of %d nodes from %d, of %d", d.Nodes, d.First, len(out))
		}
		for i := range d.Nodes {
			out[d.First+i].CPUs = d.Each
		}
	}
	return out, nil
}

// rankPlaces are where the ranks of the gang sit, without their cards.
func (l *Layout) rankPlaces() ([]RankPlace, error) {
	size := 0
	for _, d := range l.Ranks {
		if d.First < 0 || d.Nodes < 0 || d.Each < 0 || d.Nodes > maxLayout || d.Each > maxLayout || size+d.Nodes*d.Each > maxLayout {
			return nil, fmt.Errorf("%d ranks on each of %d nodes from %d", d.Each, d.Nodes, d.First)
		}
		size += d.Nodes * d.Each
	}
	out := make([]RankPlace, 0, size)
	for _, d := range l.Ranks {
		for n := range d.Nodes {
			for range d.Each {
				out = append(out, RankPlace{Node: d.First + n})
			}
		}
	}
	return out, nil
}

// For is the body as it is sent to a node of that name.
func (b *AssignmentBody) For(node string) *AssignmentBody {
	at := slices.IndexFunc(b.Nodes, func(p Place) bool { return p.Name == node })
	if b.Layout == nil || at < 0 {
		return b
	}
	part := &GangPart{Layout: b.Layout, Node: at}
	for _, p := range b.Ranks {
		if p.Node == at {
			part.Cards = append(part.Cards, p.Cards)
		}
	}
	if !slices.ContainsFunc(part.Cards, func(cards []string) bool { return len(cards) > 0 }) {
		part.Cards = nil
	}
	c := *b
	c.Nodes, c.Ranks, c.Layout, c.Part = nil, nil, nil, part
	return &c
}

// Whole puts Nodes and Ranks in the place of Part; of other nodes' ranks no cards are known then. An error is the
// sender's fault.
func (b *AssignmentBody) Whole() (err error) {
	p := b.Part
	if p == nil {
		return nil
	}
	if p.Layout == nil {
		return errors.New("a part without a layout")
	}
	if b.Nodes, err = p.places(); err != nil {
		return err
	}
	if b.Ranks, err = p.rankPlaces(); err != nil {
		return err
	}
	own := p.Cards
	for r := range b.Ranks {
		if b.Ranks[r].Node == p.Node && len(own) > 0 {
			b.Ranks[r].Cards, own = own[0], own[1:]
		}
	}
	if len(own) > 0 {
		return fmt.Errorf("cards of %d ranks more than node %d has", len(own), p.Node)
	}
	b.Part = nil
	return nil
}

// maxLayout bounds what a layout may stand for: above any gang.
const maxLayout = 1 << 20

func series(nodes []Place, text func(*Place) string) []Series {
	var out []Series
	for i := range nodes {
		s := text(&nodes[i])
		if n := len(out); n > 0 && out[n-1].takes(s) {
			continue
		}
		out = append(out, cut(s))
	}
	return out
}

// takes adds a text to the series if it is the next one.
func (s *Series) takes(text string) bool {
	same := s.Same || s.Count == 1
	if same && text == s.at(0) {
		s.Same = true
	} else if s.Same || s.Width == 0 || text != s.at(s.Count) {
		return false
	}
	s.Count++
	return true
}

func (s *Series) at(i int) string {
	if s.Width == 0 {
		return s.Before
	}
	if s.Same {
		i = 0
	}
	return string(s.append(nil, i))
}

// append adds text i of a series with a number.
func (s *Series) append(b []byte, i int) []byte {
	var digits [20]byte
	number := strconv.AppendUint(digits[:0], s.First+uint64(i), 10)
	b = append(b, s.Before...)
	for range s.Width - len(number) {
		b = append(b, '0')
	}
	return append(append(b, number...), s.After...)
}

// cut begins a series with a text: its last run of digits is what counts, where it is a number of at most 18 digits.
func cut(text string) Series {
	digit := func(c byte) bool { return c >= '0' && c <= '9' }
	end := len(text)
	for end > 0 && !digit(text[end-1]) {
		end--
	}
	from := end
	for from > 0 && digit(text[from-1]) {
		from--
	}
	if from == end || end-from > 18 {
		return Series{Before: text, Count: 1}
	}
	first, _ := strconv.ParseUint(text[from:end], 10, 64) // digits only, and not too many
	return Series{Before: text[:from], First: first, Width: end - from, After: text[end:], Count: 1}
}

func texts(all []Series, most int) ([]string, error) {
	size := 0
	for i := range all {
		s := &all[i]
		if s.Count < 0 || s.Width < 0 || s.Width > 255 || size+s.Count > most {
			return nil, fmt.Errorf("%d of %q", s.Count, s.Before)
		}
		size += s.Count
	}
	out := make([]string, 0, size)
	for i := range all {
		s := &all[i]
		if s.Same || s.Width == 0 {
			one := s.at(0)
			for range s.Count {
				out = append(out, one)
			}
			continue
		}
		// All of a series are cut from one text: a gang of thousands of nodes is put together on each of them.
		var text []byte
		ends := make([]int, s.Count)
		for i := range ends {
			text = s.append(text, i)
			ends[i] = len(text)
		}
		whole, from := string(text), 0
		for _, end := range ends {
			out = append(out, whole[from:end])
			from = end
		}
	}
	return out, nil
}

func deals(ranks []RankPlace) []Deal {
	var out []Deal
	for i := 0; i < len(ranks); {
		each := 1
		for i+each < len(ranks) && ranks[i+each].Node == ranks[i].Node {
			each++
		}
		if n := len(out) - 1; n >= 0 && out[n].Each == each && out[n].First+out[n].Nodes == ranks[i].Node {
			out[n].Nodes++
		} else {
			out = append(out, Deal{First: ranks[i].Node, Nodes: 1, Each: each})
		}
		i += each
	}
	return out
}
