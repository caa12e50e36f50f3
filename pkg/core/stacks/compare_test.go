package stacks

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
)

// drawn is what one rank of a drawn gang does.
type drawn struct {
	kind    string
	threads []api.ThreadStack
}

var (
	outermost = []string{"train (train.py)", "main (train.py)", "<module> (train.py)"}
	allReduce = drawn{"bash/python3.11", []api.ThreadStack{{Does: api.DoesLock, In: "futex", Frames: append([]string{"all_reduce (distributed_c10d.py)"}, outermost...)}}}
)

func with(does string, frames ...string) drawn {
	return drawn{allReduce.kind, []api.ThreadStack{{Does: does, Frames: append(slices.Clone(frames), outermost...)}}}
}

// oddities are the ways in which a rank may not be where the others are.
var oddities = map[string]drawn{
	"sleeps":            with(api.DoesSleep, "pause (train.py)"),
	"spins":             with(api.DoesRun, "spin (train.py)"),
	"spins in C":        with(api.DoesRun, "all_reduce (distributed_c10d.py)"),
	"another tag":       with(api.DoesLock, "recv (distributed_c10d.py)"),
	"stuck disk":        with(api.DoesDisk, "read_shard (train.py)"),
	"stopped":           with(api.DoesStop, "all_reduce (distributed_c10d.py)"),
	"deeper":            with(api.DoesLock, "wait (threading.py)", "all_reduce (distributed_c10d.py)"),
	"frames unreadable": {allReduce.kind, []api.ThreadStack{{Does: api.DoesDisk, In: "folio_wait_bit_common"}}},
	"another program":   {"bash/rsync", []api.ThreadStack{{Does: api.DoesPoll, In: "select"}}},
	"its child":         {"bash/python3.11/cp", []api.ThreadStack{{Does: api.DoesDisk}}},
}

// gangOf puts ranks on nodes as a gang has them.
func gangOf(rng *rand.Rand, nodes int, ranks []drawn) Gang {
	g := Gang{Job: 12}
	byNode := make([][]Process, nodes)
	for r, d := range ranks {
		g.Running = append(g.Running, r)
		n := r * nodes / len(ranks)
		byNode[n] = append(byNode[n], Process{StackProcess: api.StackProcess{Rank: r, PID: 100 + rng.IntN(1<<20)}, Kind: d.kind, Threads: d.threads})
	}
	for n := range byNode {
		rng.Shuffle(len(byNode[n]), func(i, k int) { byNode[n][i], byNode[n][k] = byNode[n][k], byNode[n][i] })
		g.Members = append(g.Members, Member{Node: fmt.Sprintf("n%d", n+1), Stacks: Pack(byNode[n])})
	}
	return g
}

func oddRanks(s *api.Stacks) (out []int) {
	for _, o := range s.Odd {
		out = append(out, o.Rank)
	}
	return out
}

// TestOddities: each way of being odd, for gangs of each size, names exactly that rank, whichever it is and wherever it runs.
func TestOddities(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for name, odd := range oddities {
		for size := 3; size <= 64; size++ {
			ranks := slices.Repeat([]drawn{allReduce}, size)
			who := rng.IntN(size)
			ranks[who] = odd
			s := Compare(gangOf(rng, 1+rng.IntN(size), ranks))
			if !slices.Equal(oddRanks(&s), []int{who}) {
				t.Errorf("%s: rank %d of %d: named %v: %s", name, who, size, oddRanks(&s), s.Text)
			}
			if !strings.HasPrefix(s.Text, fmt.Sprintf("rank %d on n", who)) || !strings.HasSuffix(s.Text, fmt.Sprintf("%d others are in all_reduce (distributed_c10d.py)", size-1)) {
				t.Errorf("%s: %q", name, s.Text)
			}
		}
	}
}

// TestNobody: who waits alike, who is busy with this and that, and what has no large group name nobody.
func TestNobody(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		size := 1 + rng.IntN(40)
		ranks := slices.Repeat([]drawn{allReduce}, size)
		what := rng.IntN(5)
		for r := range ranks {
			switch what {
			case 0: // alike
			case 1: // two halves
				if r%2 == 0 {
					ranks[r] = oddities["another tag"]
				}
			case 2: // everybody elsewhere
				ranks[r] = with(api.DoesLock, fmt.Sprintf("f%c%c (x.py)", 'a'+r%26, 'a'+r/26))
			case 3: // some were seen to move, and some could not be read
				switch rng.IntN(4) {
				case 0:
					ranks[r] = drawn{allReduce.kind, []api.ThreadStack{{Does: api.DoesMove, Frames: outermost[rng.IntN(3):]}}}
				case 1:
					ranks[r] = drawn{allReduce.kind, []api.ThreadStack{{Does: api.DoesLock}}}
				}
			case 4: // all compute
				ranks[r] = drawn{allReduce.kind, []api.ThreadStack{{Does: api.DoesRun, Frames: outermost[rng.IntN(3):]}}}
			}
		}
		if what == 2 && size < 4 || what == 1 && size < 4 {
			continue // a third of three is one
		}
		s := Compare(gangOf(rng, 1+rng.IntN(size), ranks))
		if len(s.Odd) > 0 {
			t.Fatalf("%d of kind %d: %v %s", size, what, oddRanks(&s), s.Text)
		}
	}
}

// TestSides: roles and steps are no oddity, and each is compared with its own.
func TestSides(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	ranks := append(slices.Repeat([]drawn{allReduce}, 8), slices.Repeat([]drawn{with(api.DoesPoll, "serve (server.py)")}, 3)...)
	role := func(r int) string {
		if r < 8 {
			return "train"
		}
		return "serve"
	}
	g := gangOf(rng, 3, ranks)
	g.Role = role
	if s := Compare(g); len(s.Odd) > 0 || !strings.HasPrefix(s.Text, "all 8 ranks are in all_reduce") {
		t.Error(s.Text)
	}
	ranks[9] = oddities["stopped"]
	g = gangOf(rng, 3, ranks)
	g.Role = role
	if s := Compare(g); !slices.Equal(oddRanks(&s), []int{9}) || s.Odd[0].Role != "serve" {
		t.Error(s.Text)
	}
	// A script and the tasks of its step.
	var all []Process
	all = append(all, Process{StackProcess: api.StackProcess{Rank: 0, PID: 1}, Kind: "bash", Threads: []api.ThreadStack{{Does: api.DoesChild}}})
	for i := range 4 {
		d := allReduce
		if i == 2 {
			d = oddities["sleeps"]
		}
		all = append(all, Process{StackProcess: api.StackProcess{Rank: -1, Step: 5, Task: i, PID: 10 + i}, Kind: d.kind, Threads: d.threads})
	}
	s := Compare(Gang{Job: 12, Running: []int{0}, Members: []Member{{Node: "n1", Stacks: Pack(all)}}})
	if want := "task 2 of step 12.5 on n1 sleeps in pause (train.py), 3 others are in all_reduce (distributed_c10d.py)"; s.Text != want {
		t.Errorf("%q", s.Text)
	}
}

// TestWorkers: of ranks that each have several processes the one is named by its pid.
func TestWorkers(t *testing.T) {
	var all []Process
	for r := range 2 {
		for k := range 4 {
			d := allReduce
			if r == 1 && k == 3 {
				d = oddities["another tag"]
			}
			all = append(all, Process{StackProcess: api.StackProcess{Rank: r, PID: 100*r + k}, Kind: d.kind, Threads: d.threads})
		}
	}
	s := Compare(Gang{Running: []int{0, 1}, Members: []Member{{Node: "n1", Stacks: Pack(all)}}})
	if want := "process 103 of rank 1 on n1 is in recv (distributed_c10d.py), 7 others are in all_reduce (distributed_c10d.py)"; s.Text != want {
		t.Errorf("%q", s.Text)
	}
}

// TestHelpers: where all main threads wait alike, a thread that everybody has once tells; one that rank 0 alone has does not.
func TestHelpers(t *testing.T) {
	join := api.ThreadStack{Does: api.DoesLock, Frames: []string{"join (threading.py)", "main (train.py)", "<module> (train.py)"}}
	thread := func(does, at string) api.ThreadStack {
		return api.ThreadStack{Does: does, Frames: []string{at, "loop (train.py)", "run (threading.py)", "_bootstrap (threading.py)"}}
	}
	ranks := make([]drawn, 6)
	for r := range ranks {
		ranks[r] = drawn{"python3", []api.ThreadStack{join, thread(api.DoesLock, "all_reduce (distributed_c10d.py)")}}
	}
	ranks[0].threads = append(slices.Clone(ranks[0].threads), api.ThreadStack{Does: api.DoesPoll, Frames: []string{"write (log.py)", "run (threading.py)"}})
	rng := rand.New(rand.NewPCG(7, 8))
	if s := Compare(gangOf(rng, 2, ranks)); len(s.Odd) > 0 {
		t.Error(s.Text)
	}
	ranks[4].threads = []api.ThreadStack{join, thread(api.DoesSleep, "pause (train.py)")}
	if s := Compare(gangOf(rng, 2, ranks)); !slices.Equal(oddRanks(&s), []int{4}) || !strings.Contains(s.Text, "rank 4 on n2 has a thread that is in pause (train.py)") {
		t.Error(s.Text)
	}
}

// TestMissing: who was not seen is said, and not named.
func TestMissing(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	g := gangOf(rng, 4, slices.Repeat([]drawn{allReduce}, 8))
	g.Members[3].Stacks = nil
	s := Compare(g)
	if len(s.Odd) > 0 || !slices.Equal(s.Missing, []int{6, 7}) || !slices.Equal(s.Unreached, []string{"n4"}) ||
		s.Text != "all 6 ranks are in all_reduce (distributed_c10d.py): nobody stands out; nothing was seen of ranks 6, 7; no answer from n4" {
		t.Errorf("%+v", s)
	}
	if s := Compare(Gang{Running: []int{0}}); s.Text != "no process could be looked at" {
		t.Error(s.Text)
	}
	two := Compare(gangOf(rng, 1, []drawn{allReduce, oddities["sleeps"]}))
	if len(two.Odd) > 0 || !strings.HasPrefix(two.Text, "2 ranks: too few to compare") {
		t.Error(two.Text)
	}
}

// TestOrderIsNothing: neither the order of nodes and groups nor pids change who is named.
func TestOrderIsNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	names := make([]drawn, 0, len(oddities))
	for _, k := range slices.Sorted(func(yield func(string) bool) {
		for k := range oddities {
			if !yield(k) {
				return
			}
		}
	}) {
		names = append(names, oddities[k])
	}
	for range 500 {
		ranks := slices.Repeat([]drawn{allReduce}, 3+rng.IntN(30))
		for range rng.IntN(6) {
			ranks[rng.IntN(len(ranks))] = names[rng.IntN(len(names))]
		}
		a := Compare(gangOf(rng, 1, ranks))
		g := gangOf(rng, 1+rng.IntN(len(ranks)), ranks)
		rng.Shuffle(len(g.Members), func(i, k int) { g.Members[i], g.Members[k] = g.Members[k], g.Members[i] })
		for i := range g.Members {
			gs := g.Members[i].Stacks.Groups
			rng.Shuffle(len(gs), func(i, k int) { gs[i], gs[k] = gs[k], gs[i] })
		}
		b := Compare(g)
		if !slices.Equal(oddRanks(&a), oddRanks(&b)) {
			t.Fatalf("%v %v\n%s\n%s", oddRanks(&a), oddRanks(&b), a.Text, b.Text)
		}
		if most := max(1, len(ranks)/3); len(a.Odd) > most {
			t.Fatalf("%d of %d named", len(a.Odd), len(ranks))
		}
	}
}

// TestBounds: what is kept of a large gang that is everywhere is small.
func TestBounds(t *testing.T) {
	var all []Process
	for r := range 1500 {
		frames := make([]string, 40)
		for i := range frames {
			frames[i] = strings.Repeat(fmt.Sprintf("f%d\x1b[31m", i%7), 100)
		}
		all = append(all, Process{StackProcess: api.StackProcess{Rank: r, PID: r}, Kind: strings.Repeat("x", 500) + fmt.Sprint(r), Threads: slices.Repeat([]api.ThreadStack{{Does: api.DoesRun, Frames: frames}}, 10)})
	}
	m := Pack(all)
	size, n := 0, m.More
	for i := range m.Groups {
		size += sizeOf(&m.Groups[i])
		n += m.Groups[i].Count
		if strings.ContainsRune(m.Groups[i].Threads[0].Frames[0], 0x1b) {
			t.Fatal("a terminal's command came through")
		}
	}
	if size > api.MaxStackBytes || n != len(all) {
		t.Error(size, n)
	}
	s := Compare(Gang{Time: time.Now(), Members: []Member{{Node: "n1", Stacks: m}}})
	if len(s.Text) > 4096 || len(s.Groups) > api.MaxStackGroups {
		t.Error(len(s.Text))
	}
}

func TestJoin(t *testing.T) {
	a := api.ThreadStack{Does: api.DoesLock, Frames: []string{"x", "b", "a"}}
	b := api.ThreadStack{Does: api.DoesLock, Frames: []string{"y", "b", "a"}}
	if got := Join([]api.ThreadStack{a, b}); got.Does != api.DoesLock || !slices.Equal(got.Frames, []string{"b", "a"}) {
		t.Error(got)
	}
	if got := Join([]api.ThreadStack{a, {Does: api.DoesRun}, a}); got.Does != api.DoesMove || !slices.Equal(got.Frames, a.Frames) {
		t.Error(got)
	}
	if got := Join([]api.ThreadStack{{Does: api.DoesLock}, a}); !slices.Equal(got.Frames, a.Frames) {
		t.Error(got)
	}
}

func TestSeen(t *testing.T) {
	for _, c := range []struct {
		state      byte
		call, wait string
		does       string
	}{
		{'R', "", "", api.DoesRun}, {'T', "futex", "", api.DoesStop}, {'D', "read", "folio_wait_bit_common", api.DoesDisk},
		{'S', "futex", "futex_wait_queue", api.DoesLock}, {'S', "", "futex_wait_queue_me", api.DoesLock}, {'S', "clock_nanosleep", "", api.DoesSleep},
		{'S', "", "hrtimer_nanosleep", api.DoesSleep}, {'S', "", "ep_poll", api.DoesPoll}, {'S', "", "do_epoll_wait", api.DoesPoll}, {'S', "", "poll_schedule_timeout.constprop.0", api.DoesPoll},
		{'S', "wait4", "do_wait", api.DoesChild}, {'S', "", "", api.DoesOther}, {'S', "ioctl", "nv_wait", api.DoesOther},
	} {
		if got := Seen(c.state, c.call, c.wait); got.Does != c.does {
			t.Errorf("%c %s %s: %v", c.state, c.call, c.wait, got)
		}
	}
}
