package conf

import (
	"slices"
	"strconv"
	"strings"

	"gangd/pkg/core/hostlist"
)

// gresKeys is every key of gres.conf; as nodeKeys.
var gresKeys = map[string]string{
	"nodename": "", "name": "", "count": "", "file": "", "multiplefiles": "", "type": "", "autodetect": "",
	"cores": "the kernel says which CPUs are near which card",
	"cpus":  "the kernel says which CPUs are near which card",
	"links": "gnoded asks the driver how cards are linked",
	"flags": "gnoded asks the driver what cards can",
}

// gresLine reads a line of gres.conf: how many cards which node has, to be compared.
func (s *site) gresLine(l Line) {
	v := map[string]string{}
	for _, i := range l.Items {
		v[strings.ToLower(i.Key)] = i.Value
	}
	isGPU := strings.EqualFold(v["name"], "gpu")
	for _, i := range l.Items {
		s.gresItem(i, isGPU)
	}
	if isGPU {
		s.countCards(l, v)
	}
}

func (s *site) gresItem(item Item, isGPU bool) {
	key := strings.ToLower(item.Key)
	why, ok := gresKeys[key]
	switch {
	case !ok:
		s.unknown(item, []string{"NodeName", "Name", "Count", "File", "MultipleFiles", "Type", "AutoDetect", "Cores", "Links", "Flags"})
	case why != "":
		s.say(item, None, why)
	case key == "autodetect":
		s.say(item, Taken, "gnoded finds the cards by NVML")
	case key == "name":
		t, known := gresWords[strings.ToLower(item.Value)]
		if !known {
			t = gresWords[""]
		}
		s.say(item, t.outcome, t.text)
	case key == "nodename":
		s.say(item, Taken, "")
	case !isGPU:
		s.say(item, None, gresWords[""].text)
	case key == "type":
		s.say(item, Different, "the model is what the driver says (ginfo shows it), --gpus=MODEL:N matches it")
	case key == "count":
		if s.number(item) >= 0 {
			s.say(item, Different, "gnoded finds the cards; the number is compared with Gres of the node")
		}
	default:
		s.say(item, Different, "gnoded finds the cards and their device files")
	}
}

// countCards adds the cards of a line to its nodes'.
func (s *site) countCards(l Line, v map[string]string) {
	files := v["file"] + v["multiplefiles"]
	if files == "" && v["count"] == "" {
		return // AutoDetect says it
	}
	count := 1
	if n, err := strconv.Atoi(v["count"]); err == nil {
		count = n
	} else if files != "" {
		count = countFiles(files)
	}
	names := []string{""}
	if v["nodename"] != "" {
		names = s.hosts(Item{"NodeName", v["nodename"]})
	}
	for _, name := range names {
		s.cards[name] += count
	}
	s.pending = append(s.pending, func() { s.compareCards(l, names) })
}

// countFiles counts what /dev/nvidia[0-3] names; paths are no host names, what stands in
// the brackets is like theirs.
func countFiles(files string) int {
	clean := strings.Map(func(r rune) rune {
		if r == '/' || r == '.' || r == '_' {
			return 'x'
		}
		return r
	}, files)
	names, err := hostlist.Expand(clean)
	if err != nil || len(names) > maxNodes {
		return 1
	}
	return len(names)
}

// compareCards refuses two files that do not agree: what the node has is then not known.
func (s *site) compareCards(l Line, names []string) {
	for _, n := range s.nodes {
		if !slices.Contains(names, n.name) && !slices.Contains(names, "") || n.gpus < 0 {
			continue
		}
		if has := s.cards[n.name] + s.cards[""]; has != n.gpus {
			s.errs = append(s.errs, l.at("node %s has %d gpu here and Gres=gpu:%d at %s:%d", n.name, has, n.gpus, n.line.File, n.line.N))
			return
		}
	}
}

// topologyLine reads a line of topology.conf, which gangd reads itself (topology_file).
func (s *site) topologyLine(l Line) {
	s.set["topology_file"] = quote(l.File)
	for _, i := range l.Items {
		switch {
		case i.is("SwitchName"), i.is("Switches"):
			s.say(i, Taken, "")
		case i.is("Nodes"):
			s.hosts(i)
			s.say(i, Taken, "")
		case i.is("LinkSpeed"):
			s.say(i, None, "the speed of links is not weighed")
		default:
			s.unknown(i, []string{"SwitchName", "Nodes", "Switches", "LinkSpeed"})
		}
	}
	if !l.Items[0].is("SwitchName") {
		s.errs = append(s.errs, l.at("want SwitchName= first"))
	}
}
