package sinfo

import (
	"fmt"
	"slices"
	"strings"

	"gangd/pkg/api"
)

// nodeState is a state of Slurm's: a base, and what is said beside it.
type nodeState struct {
	base            string // idle, mixed, allocated, down, unknown
	drain           bool
	mute            bool // does not respond: a star behind it
	reserved, maint bool
	// asked: to be rebooted, told: it reboots
	asked, told bool
}

// stateOf is Slurm's view of a node.
func stateOf(n *api.Node) nodeState {
	s := nodeState{base: "idle"}
	switch {
	case n.CPUs > 0 && UsedCPUs(n) >= n.CPUs:
		s.base = "allocated"
	case n.CPUsUsed > 0 || len(n.Jobs) > 0:
		s.base = "mixed"
	}
	switch n.State {
	case api.NodeSuspect:
		s.mute = true
	case api.NodeLost:
		s.base, s.mute = "down", true
	case api.NodeUnknown:
		s.base, s.mute = "unknown", true
	case api.NodeDraining, api.NodeDrained:
		s.drain = true
	case api.NodeRebooting:
		s.base = "down" // as Slurm has it from when it has told the node
	}
	if r := n.Reboot; r != nil {
		s.asked, s.told = r.Issued.IsZero(), !r.Issued.IsZero()
		s.drain = s.drain || r.Asap
	}
	if n.Down {
		s.base, s.drain = "down", false
	}
	if r := n.Reservation; r != nil {
		s.reserved, s.maint = true, r.Maint
	}
	return s
}

// word is the base, or what an idle node is called that is reserved.
func (s nodeState) word() string {
	switch {
	case s.base != "idle" || s.drain || s.mute:
	case s.maint:
		return "maint"
	case s.reserved:
		return "reserved"
	}
	return s.base
}

// UsedCPUs is how many CPUs nobody else can have.
func UsedCPUs(n *api.Node) int {
	if n.Exclusive {
		return n.CPUs
	}
	return min(n.CPUsUsed, n.CPUs)
}

// long is the state as %T writes it, compact as %t.
func (s nodeState) long() string {
	return s.text("allocated", "mixed", "unknown", "draining", "drained", "reboot")
}
func (s nodeState) compact() string { return s.text("alloc", "mix", "unk", "drng", "drain", "boot") }

func (s nodeState) text(allocated, mixed, unknown, draining, drained, reboot string) string {
	word, works := s.word(), s.base == "mixed" || s.base == "allocated"
	switch {
	case works || s.maint && s.base == "idle":
	case s.told:
		return reboot + "^"
	case s.asked && s.mute:
		return reboot + "*"
	case s.asked:
		return reboot
	}
	switch {
	case s.drain && works:
		word = draining
	case s.drain:
		word = drained
	case s.base == "allocated":
		word = allocated
	case s.base == "mixed":
		word = mixed
	case s.base == "unknown":
		word = unknown
	case word == "reserved" && allocated == "alloc": // the compact form
		word = "resv"
	}
	switch {
	case s.told && works:
		word += "^"
	case s.asked && works:
		word += "@"
	case s.mute:
		word += "*"
	}
	return word
}

// number is what sinfo orders states by: Slurm's own numbers, flags above the base.
func (s nodeState) number() int64 {
	n := int64(slices.Index([]string{"unknown", "down", "idle", "allocated", "error", "mixed", "future", "reserved", "maint"}, s.word()))
	if s.drain {
		n += 1 << 9
	}
	if s.mute {
		n += 1 << 10
	}
	if s.asked {
		n += 1 << 16
	}
	if s.told {
		n += 1 << 20
	}
	return n
}

// use is how many of a node's parts are allocated, idle, other.
func (s nodeState) use(used, total int) (a, i, o int) {
	switch {
	case s.base == "down" || s.base == "unknown":
		return 0, 0, total
	case s.drain:
		return used, 0, total - used
	}
	return used, total - used, 0
}

// knownStates is what -t takes, in the order in which an abbreviation is looked up.
var knownStates = strings.Split("unknown,down,idle,allocated,?,mixed,future,drain,drained,draining,no_respond,reserved,perfctrs,cloud,"+
	"completing,powering_down,powered_down,power_down,powering_up,fail,maint,reboot,reboot^,unknown", ",")

// wanted is a filter of states. A name matches the base whatever is said beside it, as in
// Slurm: idle takes a drained node too.
type wanted struct{ names []string }

func parseStates(list string) (w wanted, err error) {
	for _, name := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == '&' }) {
		lower := strings.ToLower(name)
		if short, ok := map[string]string{"alloc": "allocated", "mix": "mixed", "drng": "draining", "unk": "unknown", "comp": "completing",
			"resv": "reserved"}[lower]; ok {
			lower = short
		}
		i := slices.IndexFunc(knownStates, func(s string) bool { return s == lower })
		if i < 0 {
			i = slices.IndexFunc(knownStates, func(s string) bool { return strings.HasPrefix(s, lower) })
		}
		if i < 0 {
			return w, fmt.Errorf("Bad state string: \"%s\"\nsinfo: error: valid states: %s", name, strings.Join(knownStates, ","))
		}
		w.names = append(w.names, knownStates[i])
	}
	return w, nil
}

func (w wanted) takes(s nodeState) bool {
	if len(w.names) == 0 {
		return true
	}
	return slices.ContainsFunc(w.names, func(name string) bool {
		switch name {
		case "drain":
			return s.drain
		case "drained":
			return s.drain && s.base != "mixed" && s.base != "allocated"
		case "draining":
			return s.drain && (s.base == "mixed" || s.base == "allocated")
		case "no_respond":
			return s.mute
		case "reboot":
			return s.asked
		case "reboot^":
			return s.told
		}
		return s.word() == name
	})
}
