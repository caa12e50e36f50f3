package conf

import (
	"strings"
	"time"
)

// weight remembers a PriorityWeight, whose meaning depends on the others.
func weight(of string) func(*site, Item) {
	return func(s *site, item Item) {
		n := s.number(item)
		if n < 0 {
			return
		}
		s.weights[of] = n
		at := len(s.result.Entries)
		s.say(item, None, "")
		s.pending = append(s.pending, func() { s.judgeWeight(&s.result.Entries[at], of) })
	}
}

// orders are what the heaviest weight is taken for.
var orders = map[string]struct{ order, text string }{
	"fairshare": {"fair", "who used least goes first; there are no shares of users, [[account]] has shares of accounts"},
	"age":       {"fifo", "the heaviest weight: in the order of submission"},
	"size":      {"largest-first", "the heaviest weight: the largest gang goes first"},
}

// judgeWeight says what became of one weight, when all are known.
func (s *site) judgeWeight(e *Entry, of string) {
	o, has := orders[of]
	switch {
	case s.weights[of] == 0:
		e.Outcome, e.Text = Taken, "it counts for nothing"
	case of == "partition":
		e.Outcome, e.Text = Different, "the tier of a partition goes before everything else"
	case of == "qos":
		e.Text = "there is no quality of service; --partition and --priority choose"
	case of == "assoc":
		e.Text = "accounts have a share and a quota, no priority"
	case has && of == s.heaviest():
		e.Outcome, e.Text = Different, says("order", `"`+o.order+`"`, o.text)
	default:
		e.Text = noFuzzPrio
	}
}

// heaviest is which of the weights that order knows is the heaviest, empty for none.
func (s *site) heaviest() string {
	best := ""
	for _, of := range []string{"fairshare", "age", "size"} {
		if of == "size" && s.favorSmall {
			continue
		}
		if s.weights[of] > 0 && (best == "" || s.weights[of] > s.weights[best]) {
			best = of
		}
	}
	return best
}

func (s *site) priorityType(item Item) {
	switch strings.ToLower(item.Value) {
	case "priority/basic":
		s.set["order"] = `"fifo"`
		s.say(item, Taken, `order = "fifo"`)
	case "priority/multifactor":
		s.say(item, Different, noFuzzPrio)
	default:
		s.wrong(item, "want priority/basic or priority/multifactor")
	}
}

// settleOrder takes the heaviest weight for the order, unless the type says it.
func (s *site) settleOrder() {
	if h := s.heaviest(); h != "" && s.set["order"] == "" {
		s.set["order"] = `"` + orders[h].order + `"`
	}
}

func (s *site) halfLife(item Item) {
	d, ok := s.time(item)
	switch {
	case !ok:
	case d < time.Minute:
		s.say(item, None, "use is always forgotten at last; fair_half_life keeps its default")
	default:
		s.set["fair_half_life"] = duration(d)
		s.say(item, Taken, says("fair_half_life", s.set["fair_half_life"], ""))
	}
}
