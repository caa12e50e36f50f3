package why

import (
	"slices"
	"strconv"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
)

// change is one thing asked for differently.
type change struct {
	Option string // the option, or "without" it
	Ask    func(s *api.Spec)
	// less marks a figure that was lowered: any smaller one does as well.
	less bool
}

// maxTries bounds the values of one option that are tried.
const maxTries = 64

// NearestAsks lists the changes that make try succeed, each of one option alone and by as
// little as possible, at most limit of them. nodes are what is free, or could be.
func NearestAsks(d *cluster.Need, nodes []*cluster.Node, limit int, try func(*cluster.Ask) bool) []change {
	var out []change
	for _, values := range options(d, nodes) {
		for _, ch := range values[:min(maxTries, len(values))] {
			s := *d.Ask.Asked()
			ch.Ask(&s)
			if try(d.Ask.With(&s)) {
				out = append(out, ch)
				break
			}
		}
		if len(out) == limit {
			break
		}
	}
	return out
}

// options lists for each option the values to try, the nearest to what was asked first.
// What costs the gang least comes first: less VRAM, then sharing, then fewer ranks.
func options(d *cluster.Need, nodes []*cluster.Node) [][]change {
	s := d.Ask.Asked()
	// No more is tried than some node has: from 1000 cards down to 8 is more than maxTries.
	cards := 0
	for _, n := range nodes {
		cards = max(cards, len(n.Cards))
	}
	out := [][]change{vrams(d, nodes)}
	if d.WantsCards() && d.VRAM > 0 && !d.Share {
		out = append(out, []change{{Option: "--share", Ask: func(s *api.Spec) { s.Share = true }}})
	}
	out = append(out,
		sizes(d, nodes),
		nodeCounts(s, len(nodes)),
		cardCounts(s, cards))
	for r := range cluster.Resources {
		out = append(out, lessOf(cluster.Resource(r), d, nodes))
	}
	return append(out, dropped(s, d.Ask.Refused)...)
}

// dropped are the changes that take one option back. What refused the gang stays left out: nobody asked for that.
func dropped(s *api.Spec, refused []string) [][]change {
	var out [][]change
	drop := func(asked bool, option string, ask func(s *api.Spec)) {
		if asked {
			out = append(out, []change{{Option: "the same without " + option, Ask: ask}})
		}
	}
	drop(s.GPUType != "", "the card type "+s.GPUType, func(s *api.Spec) { s.GPUType = "" })
	drop(s.MinCompute != "", "--min-compute", func(s *api.Spec) { s.MinCompute = "" })
	drop(s.Shape != (api.CPUShape{}), "--sockets-per-node, --cores-per-socket and --threads-per-core",
		func(s *api.Spec) { s.Shape = api.CPUShape{} })
	drop(s.Exclusive, "--exclusive", func(s *api.Spec) { s.Exclusive = false })
	drop(s.RanksPerNode > 0, "--ranks-per-node", func(s *api.Spec) { s.RanksPerNode = 0 })
	drop(s.MinNodes > 0 || s.MaxNodes > 0, "--nodes", func(s *api.Spec) { s.MinNodes, s.MaxNodes = 0, 0 })
	drop(s.Constraint != "", "--constraint", func(s *api.Spec) { s.Constraint = "" })
	drop(len(s.NodeList) > 0, "--nodelist", func(s *api.Spec) { s.NodeList = nil })
	drop(len(s.Exclude) > len(refused), "--exclude", func(s *api.Spec) { s.Exclude = slices.Clone(refused) })
	return out
}

// cardCounts are fewer cards, in the words that asked for them: --gpus counts those of the whole
// gang, and a type stands before the number of all but ours.
func cardCounts(s *api.Spec, most int) []change {
	asked, groups, set := s.GPUsPerRank, s.Size, func(s *api.Spec, n int) { s.GPUsPerRank = n }
	option := "--gpus-per-rank="
	if s.GPUsPerNode > 0 {
		asked, groups, set = s.GPUsPerNode, max(s.MinNodes, 1), func(s *api.Spec, n int) { s.GPUsPerNode = n }
		option = "--gpus-per-node="
	}
	each := 1
	if a := s.Asked; a != nil && a.CardsBy != "" {
		option = "--" + a.CardsBy + "="
		switch a.CardsBy {
		case "gpus":
			each = groups
		case "gres":
			option += "gpu:"
		}
		if s.GPUType != "" {
			option += s.GPUType + ":"
		}
	}
	return countsOf(option, each, min(asked, most+1), set)
}

func counts(option string, asked int, set func(*api.Spec, int)) []change {
	return countsOf(option, 1, asked, set)
}

// countsOf is counts of an option whose value is each times what is set.
func countsOf(option string, each, asked int, set func(*api.Spec, int)) []change {
	var out []change
	for n := asked - 1; n >= 1; n-- {
		out = append(out, change{Option: option + strconv.Itoa(n*each), Ask: func(s *api.Spec) { set(s, n) }, less: true})
	}
	return out
}

// nodeCounts are fewer nodes with as many ranks on each, where a number of nodes was asked for.
func nodeCounts(s *api.Spec, known int) []change {
	asked := s.MinNodes
	if asked == 0 || asked != s.MaxNodes || s.Size%asked != 0 {
		return nil
	}
	ranks := s.Size / asked
	return counts("--nodes=", min(asked, known+1), func(s *api.Spec, n int) { s.MinNodes, s.MaxNodes, s.Size = n, n, n*ranks })
}

// sizes begins at the ranks that there is room for, wherever they are.
func sizes(d *cluster.Need, nodes []*cluster.Node) []change {
	room := 0
	for _, n := range nodes {
		if room < d.Size && d.Admits(n) {
			room += d.Ranks(n)
		}
	}
	s, option := d.Ask.Asked(), "--size="
	if s.Launch == api.LaunchBatch {
		if s.RanksPerNode > 0 && s.MinNodes == s.MaxNodes && s.MinNodes*s.RanksPerNode == s.Size {
			return nil // nodes were asked for, not tasks: nodeCounts
		}
		option = "--ntasks="
	}
	return counts(option, min(room+1, d.Size), func(s *api.Spec, n int) { s.Size = n })
}

// vrams are the amounts that some card has, in whole G, below the one asked for.
func vrams(d *cluster.Need, nodes []*cluster.Node) []change {
	if d.VRAM == 0 || !d.WantsCards() {
		return nil
	}
	return amounts("--vram=", d.VRAM, func(s *api.Spec, v int64) { s.VRAMBytes = v }, func(see func(int64)) {
		for _, n := range nodes {
			if !d.Admits(n) {
				continue
			}
			for i := range n.Cards {
				if d.MatchesCard(&n.Cards[i]) {
					see(n.FreeVRAM(i))
				}
			}
		}
	})
}

// lessOf are smaller figures of a resource: of what is asked for by rank, else of what is by member.
func lessOf(r cluster.Resource, d *cluster.Need, nodes []*cluster.Node) []change {
	row := &cluster.Resources[r]
	figure, asked := &row.Rank, d.PerRank[r]
	if asked == 0 {
		figure, asked = &row.Member, d.PerMember[r]
	}
	switch {
	case asked == 0:
		return nil
	case row.One != "":
		var most int64
		for _, n := range nodes {
			most = max(most, n.Has[r])
		}
		return counts("--"+figure.Option+"=", int(min(asked, most+1)), func(s *api.Spec, n int) { figure.Set(s, int64(n)) })
	}
	return amounts("--"+figure.Option+"=", asked, figure.Set, func(see func(int64)) {
		for _, n := range nodes {
			if d.Admits(n) {
				see(n.Free(r))
			}
		}
	})
}

func amounts(option string, asked int64, set func(*api.Spec, int64), each func(see func(int64))) []change {
	const unit = 1 << 30
	seen := make(map[int64]bool)
	var values []int64
	each(func(v int64) {
		if v = v / unit * unit; v > 0 && v < asked && !seen[v] {
			seen[v] = true
			values = append(values, v)
		}
	})
	slices.Sort(values)
	slices.Reverse(values)
	var out []change
	for _, v := range values {
		out = append(out, change{Option: option + cluster.Size(v), Ask: func(s *api.Spec) { set(s, v) }, less: true})
	}
	return out
}
