package cpus

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var histories = flag.Int("cpus.histories", 300, "random histories of TestAnyHistory")

// machine is a file of testdata: the CPUs of core n are n and n + the number of cores.
func machine(t *testing.T, name string) (topo *Topology, cards []int) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	topo = &Topology{Distance: map[[2]int]int{}}
	cores, row := 0, 0
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		switch f[0] {
		case "cores":
			cores, _ = strconv.Atoi(f[1])
		case "numa":
			n, _ := strconv.Atoi(f[1])
			set, err := Parse(f[2])
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range set {
				topo.CPUs = append(topo.CPUs, CPU{ID: id, Core: id % cores, NUMA: n})
			}
		case "distance":
			for col, text := range f[1:] {
				topo.Distance[[2]int{row, col}], _ = strconv.Atoi(text)
			}
			row++
		case "cards":
			for _, text := range f[1:] {
				n, _ := strconv.Atoi(text)
				cards = append(cards, n)
			}
		}
	}
	slices.SortFunc(topo.CPUs, func(a, b CPU) int { return a.ID - b.ID })
	return topo, cards
}

var machines = []string{"dgx-a100", "dgx-h100", "dgx-b200", "two-sockets", "one-socket", "dgx-2"}

// TestNearCards: on every machine a gang that has all cards gets for each rank whole cores at the NUMA
// node of its card.
func TestNearCards(t *testing.T) {
	for _, name := range machines {
		topo, cards := machine(t, name)
		p := NewPool[string](topo, cards)
		perCard := map[int]int{}
		for _, n := range cards {
			perCard[n]++
		}
		threads := len(topo.Cores(topo.All())[0])
		asks := make([]Ask, len(cards))
		for i, n := range cards { // so many that all cores near cards are used
			each := len(topo.At(n)) / perCard[n]
			asks[i] = Ask{CPUs: each - each%threads, Near: []int{n}}
		}
		got, ok := p.Take("all", asks)
		if !ok {
			t.Fatalf("%s: not enough", name)
		}
		for i, s := range got {
			if numa := topo.NUMA(s); !slices.Equal(numa, []int{cards[i]}) {
				t.Errorf("%s: the rank with card %d at NUMA node %d has CPUs %s at %v", name, i, cards[i], s, numa)
			}
			for _, core := range topo.Cores(s) {
				if len(core) != threads {
					t.Errorf("%s: rank %d has a part of a core: %v of %s", name, i, core, s)
				}
			}
		}
	}
}

// TestChoice: who gets what on machines that are partly taken.
func TestChoice(t *testing.T) {
	rank := func(cpus int, near ...int) Ask { return Ask{CPUs: cpus, Near: near} }
	for _, c := range []struct {
		name, machine string
		before        [][]Ask // gangs that are there
		asks          []Ask
		want          string
	}{
		{"a rank near its card", "dgx-h100", nil, []Ask{rank(4, 1)}, "56-57,168-169"},
		{"an odd CPU has a core of its own", "dgx-h100", nil, []Ask{rank(3, 0)}, "0-1,112"},
		{"a second gang has other cores", "dgx-h100", [][]Ask{{rank(3, 0)}}, []Ask{rank(2, 0)}, "2,114"},
		{"one thread of each core", "dgx-h100", nil, []Ask{{CPUs: 4, OneThread: true, Near: []int{0}}}, "0-3"},
		{"no card: where no cards are", "dgx-a100", nil, []Ask{rank(16)}, "0-7,128-135"},
		{"no card: where it fits most tightly", "dgx-a100", [][]Ask{{rank(24, 6)}}, []Ask{rank(8)}, "108-111,236-239"},
		{"no card: in one NUMA node if there is one", "dgx-a100", [][]Ask{{rank(24, 0)}, {rank(24, 2)}, {rank(24, 4)}, {rank(24, 6)}}, []Ask{rank(16)}, "16-23,144-151"},
		{"the near NUMA node is full: the next one", "dgx-a100", [][]Ask{{rank(32, 3)}}, []Ask{rank(2, 3)}, "0,128"},
		{"half of it is: both", "dgx-h100", [][]Ask{{rank(110, 0)}}, []Ask{rank(4, 0)}, "55-56,167-168"},
		{"ranks without cards stay together", "two-sockets", [][]Ask{{rank(20, 0)}}, []Ask{rank(2), rank(2), rank(2)}, "1,3,5,7,9,11"},
		{"two cards of one rank", "dgx-h100", nil, []Ask{rank(2, 1, 1)}, "56,168"},
		{"all of a machine", "one-socket", nil, []Ask{rank(64)}, "0-63"},
		{"what others left over, at the end", "one-socket", [][]Ask{slices.Repeat([]Ask{rank(1)}, 32)}, []Ask{rank(32)}, "32-63"},
	} {
		topo, cards := machine(t, c.machine)
		p := NewPool[int](topo, cards)
		for i, b := range c.before {
			if _, ok := p.Take(i, b); !ok {
				t.Fatalf("%s: gang %d does not fit", c.name, i)
			}
		}
		_, ok := p.Take(-1, c.asks)
		if got := p.Held(-1).String(); !ok || got != c.want {
			t.Errorf("%s: %s (%v), want %s", c.name, got, ok, c.want)
		}
	}
}

// TestNotEnough: nothing is taken in parts.
func TestNotEnough(t *testing.T) {
	topo, _ := machine(t, "one-socket")
	p := NewPool[string](topo, nil)
	p.Keep("old", Of(0, 1, 2))
	if got, ok := p.Take("x", []Ask{{CPUs: 60}, {CPUs: 2}}); ok || len(p.Held("x")) > 0 {
		t.Errorf("62 of 61 free: %v", got)
	}
	if _, ok := p.Take("x", []Ask{{CPUs: 60}, {CPUs: 1}}); !ok {
		t.Error("61 of 61 free are refused")
	}
}

// TestAnyHistory: gangs come and go, daemons are started again with what is written down. No CPU has
// two holders, none is lost, and what is free by count can be had. Run it whole with -cpus.histories=100000.
func TestAnyHistory(t *testing.T) {
	for seed := range *histories {
		r := rand.New(rand.NewPCG(uint64(seed), 0))
		topo, cards := machine(t, machines[r.IntN(len(machines))])
		part := topo.Only(topo.All()[r.IntN(len(topo.CPUs)/2):])
		if err := history(r, part, cards); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func history(r *rand.Rand, topo *Topology, cards []int) error {
	p := NewPool[int](topo, cards)
	alive := map[int]int{} // CPUs asked for, by gang
	free := len(topo.CPUs)
	for step := range 40 {
		switch r.IntN(5) {
		case 0, 1, 2:
			asks, n := make([]Ask, 1+r.IntN(8)), 0
			for i := range asks {
				asks[i] = Ask{CPUs: r.IntN(12), OneThread: r.IntN(4) == 0}
				if r.IntN(2) == 0 {
					asks[i].Near = []int{cards[r.IntN(len(cards))]}
				}
				n += asks[i].CPUs
			}
			got, ok := p.Take(step, asks)
			if ok != (n <= free) {
				return fmt.Errorf("step %d: %d CPUs of %d free: %v", step, n, free, ok)
			}
			if !ok {
				continue
			}
			for i := range got {
				if len(got[i]) != asks[i].CPUs {
					return fmt.Errorf("step %d: rank %d has %d CPUs of %d", step, i, len(got[i]), asks[i].CPUs)
				}
			}
			alive[step], free = n, free-n
		case 3:
			if len(alive) > 0 {
				k := slices.Sorted(maps.Keys(alive))[r.IntN(len(alive))]
				p.Give(k)
				free += alive[k]
				delete(alive, k)
			}
		case 4: // another daemon finds what this one wrote down
			again := NewPool[int](topo, cards)
			for k := range alive {
				text := p.Held(k).String()
				s, err := Parse(text)
				if err != nil {
					return err
				}
				again.Keep(k, s)
			}
			p = again
		}
		seen := map[int]int{}
		for k, n := range alive {
			if len(p.Held(k)) != n {
				return fmt.Errorf("step %d: gang %d holds %d of %d", step, k, len(p.Held(k)), n)
			}
			for _, id := range p.Held(k) {
				if other, twice := seen[id]; twice {
					return fmt.Errorf("step %d: CPU %d is held by gangs %d and %d", step, id, other, k)
				}
				seen[id] = k
			}
		}
		if got := len(p.Free()); got != free || got+len(seen) != len(topo.CPUs) {
			return fmt.Errorf("step %d: %d free and %d held of %d", step, got, len(seen), len(topo.CPUs))
		}
	}
	return nil
}

func TestLists(t *testing.T) {
	for text, want := range map[string]string{"0-3,8": "0-3,8", "8,1,2,1": "1-2,8", "": "", " 5\n": "5", "0,2,4": "0,2,4"} {
		s, err := Parse(text)
		if err != nil || s.String() != want {
			t.Errorf("%q: %q, %v", text, s, err)
		}
		if back, err := parseMask(s.Mask()); err != nil || !slices.Equal(back, s) {
			t.Errorf("%s: %v, %v", s.Mask(), back, err)
		}
	}
	for _, bad := range []string{"a", "3-1", "-1", "1-", "+1", "1,,2", "70000", "0-65535,0-65535,0-65535"} {
		if s, err := Parse(bad); err == nil {
			t.Errorf("%q: %s", bad, s)
		}
	}
	if m := Of(4, 5, 70).Mask(); m != "0x400000000000000030" {
		t.Error(m)
	}
	for _, bad := range []string{"", "0x", "g", "-1"} {
		if s, err := parseMask(bad); err == nil {
			t.Errorf("mask %q: %s", bad, s)
		}
	}
}
