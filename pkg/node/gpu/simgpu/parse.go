package simgpu

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"gangd/pkg/api"
)

// maxCards bounds the cards of one node: far above any machine, low enough that a slip
// (8000x80G) is refused.
const maxCards = 256

// Parse makes the cards of a node from a text:
//
//	8x80G                    eight cards of 80 GiB
//	4xA100:40G+4xH100:80G    four of each, with models
//	2xH100:80G/4             two cards, each cut into four MIG instances of 20 GiB
//	A100:40G                 one card
//	0                        none; an empty text too
//
// Cards of one term are linked with each other, as by an NVSwitch; MIG instances are not.
// The first half of all cards is at NUMA node 0, the second at 1. UUIDs are made from the
// node's name and the number of the card: GPU-sim-n1-0, MIG-sim-n1-0-3.
func Parse(text, node string) ([]api.CardInfo, error) {
	if text == "" || text == "0" {
		return nil, nil
	}
	var cards []api.CardInfo
	physical := 0
	for term := range strings.SplitSeq(text, "+") {
		t, err := parseTerm(term)
		if err != nil {
			return nil, fmt.Errorf("simulated cards: %w", err)
		}
		if len(cards)+t.count*max(1, t.slices) > maxCards {
			return nil, fmt.Errorf("simulated cards %q: more than %d cards", text, maxCards)
		}
		cards = t.add(cards, node, physical)
		physical += t.count
	}
	for i := range cards {
		cards[i].NUMA = i * 2 / len(cards)
	}
	return cards, nil
}

type term struct {
	count, slices int // slices 0: not cut up
	model         string
	vram          int64
}

// leastVRAM is less than any card has: who wrote 80 meant 80G.
const leastVRAM = 1 << 20

func parseTerm(text string) (term, error) {
	t := term{count: 1}
	rest := text
	if n, after, ok := strings.Cut(rest, "x"); ok && digits(n) {
		count, err := strconv.Atoi(n)
		if err != nil || count < 1 || count > maxCards {
			return t, fmt.Errorf("%q: the count is not in 1..%d", text, maxCards)
		}
		t.count, rest = count, after
	}
	if r, n, ok := strings.Cut(rest, "/"); ok {
		slices, err := strconv.Atoi(n)
		if err != nil || slices < 1 || slices > 7 {
			return t, fmt.Errorf("%q: a card is cut into 1 to 7 MIG instances, not %q", text, n)
		}
		t.slices, rest = slices, r
	}
	if model, size, ok := strings.Cut(rest, ":"); ok {
		if model == "" {
			return t, fmt.Errorf("%q: no model before the colon", text)
		}
		t.model, rest = model, size
	}
	vram, err := parseSize(rest)
	if err != nil || vram == 0 {
		return t, fmt.Errorf("%q is not a size of VRAM; write 8x80G or 4xA100:40G+4xH100:80G", cmp.Or(rest, text))
	}
	if vram < leastVRAM {
		return t, fmt.Errorf("%q are %d bytes, and a card has more; write %sG", rest, vram, strings.TrimRight(rest, "bB"))
	}
	t.vram = vram
	if t.model == "" {
		t.model = "Simulated " + strings.ToUpper(rest)
	}
	return t, nil
}

func (t term) add(cards []api.CardInfo, node string, physical int) []api.CardInfo {
	first := len(cards)
	for c := range t.count {
		card := api.CardInfo{
			UUID: fmt.Sprintf("GPU-sim-%s-%d", node, physical+c), Model: t.model, VRAMBytes: t.vram,
			PCI: fmt.Sprintf("00000000:%02X:00.0", physical+c+1), Compute: "9.0", Driver: "simulated",
		}
		if t.slices == 0 {
			card.Index = len(cards)
			for peer := range t.count {
				if peer != c {
					card.Peers = append(card.Peers, first+peer)
				}
			}
			cards = append(cards, card)
			continue
		}
		for i := range t.slices {
			mig := card
			mig.Index, mig.MIG = len(cards), true
			mig.UUID = fmt.Sprintf("MIG-sim-%s-%d-%d", node, physical+c, i)
			mig.Model = fmt.Sprintf("%s MIG 1/%d", t.model, t.slices)
			mig.VRAMBytes = t.vram / int64(t.slices)
			cards = append(cards, mig)
		}
	}
	return cards
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// parseSize reads bytes with a unit of powers of 1024: 80G, 43.1G, 512M, 1024, 80GiB.
func parseSize(s string) (int64, error) {
	text := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(s), "B"), "I")
	shift := 0
	if n := len(text); n > 0 {
		if i := strings.IndexByte("KMGT", text[n-1]); i >= 0 {
			shift, text = 10*(i+1), text[:n-1]
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	bytes := v * math.Exp2(float64(shift))
	if err != nil || !digits(strings.Replace(text, ".", "", 1)) || bytes >= 1<<62 {
		return 0, fmt.Errorf("%q is not a size such as 40G", s)
	}
	return int64(bytes), nil
}
