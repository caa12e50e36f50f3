package stacks

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gangd/pkg/api"
)

// waiting is a rank that waits in recv, called at a line of a program, for a message of a tag.
func waiting(line int, tag int64) drawn {
	return drawn{"python3", []api.ThreadStack{ThreadOf(api.ThreadStack{Does: api.DoesLock, In: "futex"}, []Call{
		{Frame: "wrapper (c10d_logger.py)", Line: 72},
		{Frame: "recv (distributed_c10d.py)", Line: 1640, Values: []api.StackValue{{Name: "tag", Value: tag}}},
		{Frame: "exchange (train.py)", Line: line},
		{Frame: "<module> (train.py)", Line: 90},
	})}}
}

// blurred is a rank of which the lines are not known.
func blurred(d drawn) drawn {
	t := d.threads[0]
	t.Lines, t.Values = nil, nil
	return drawn{d.kind, []api.ThreadStack{t}}
}

// TestPlaces: who is in the same function as all others is named by another line or another tag, in gangs of up to 256 ranks,
// whichever of the others are not known so well.
func TestPlaces(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	for range 200 {
		size := fewestTags + rng.IntN(253)
		ranks := make([]drawn, size)
		for r := range ranks {
			ranks[r] = waiting(10, 7)
			if rng.IntN(10) == 0 && size > 40 {
				ranks[r] = blurred(ranks[r])
			}
		}
		who := rng.IntN(size)
		odd, want := waiting(12, 7), "is in recv (distributed_c10d.py) from line 12 of exchange (train.py), %d others are in recv (distributed_c10d.py) from line 10 of exchange (train.py)"
		if rng.IntN(2) == 0 {
			odd, want = waiting(10, 1007), "is in recv (distributed_c10d.py) with tag 1007, %d others are in recv (distributed_c10d.py) with tag 7"
		}
		ranks[who] = odd
		s := Compare(gangOf(rng, 1+rng.IntN(size), ranks))
		if !slices.Equal(oddRanks(&s), []int{who}) || !strings.HasSuffix(s.Text, fmt.Sprintf(want, size-1)) {
			t.Fatalf("rank %d of %d: named %v: %s", who, size, oddRanks(&s), s.Text)
		}
		if g := s.Groups[s.Odd[0].Group]; !slices.Equal(g.Threads[0].Lines, odd.threads[0].Lines) || !slices.Equal(g.Threads[0].Values, odd.threads[0].Values) {
			t.Fatalf("shown: %+v", g)
		}
	}
}

// TestPlacesOfNobody: tags by ranks, lines by halves, and what is not known name nobody.
func TestPlacesOfNobody(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	kinds := map[string]func(size, r int) drawn{
		"alike":        func(int, int) drawn { return waiting(10, 7) },
		"a tag each":   func(_, r int) drawn { return waiting(10, int64(r)) },
		"a tag a pair": func(_, r int) drawn { return waiting(10, int64(r/2)) },
		"two tags":     func(_, r int) drawn { return waiting(10, int64(r%2)) },
		"two lines":    func(_, r int) drawn { return waiting(10+r%2, 7) },
		"three lines":  func(_, r int) drawn { return waiting(10+r%3, 7) },
		"a line each":  func(_, r int) drawn { return waiting(10+r, 7) },
		"two tags and one": func(size, r int) drawn {
			return or(r == size-1, waiting(10, 3), or(r < size/2, waiting(10, 1), waiting(10, 2)))
		},
		"a call unknown":   func(_, r int) drawn { return or(r == 1, waiting(0, 7), waiting(10, 7)) },
		"one is not known": func(_, r int) drawn { return or(r == 1, blurred(waiting(12, 9)), waiting(10, 7)) },
		"one without frames": func(_, r int) drawn {
			return or(r == 1, drawn{"python3", []api.ThreadStack{{Does: api.DoesLock}}}, waiting(10, 7))
		},
	}
	for name, kind := range kinds {
		for size := fewestTags; size <= 256; size += 1 + rng.IntN(30) {
			ranks := make([]drawn, size)
			for r := range ranks {
				ranks[r] = kind(size, r)
			}
			if s := Compare(gangOf(rng, 1+rng.IntN(size), ranks)); len(s.Odd) > 0 {
				t.Fatalf("%s: %d ranks: named %v: %s", name, size, oddRanks(&s), s.Text)
			}
		}
	}
}

func or(is bool, a, b drawn) drawn {
	if is {
		return a
	}
	return b
}

// TestUnknownPlaces: of twelve, or a multiple, so many are at one line, so many at other ones, and of the others it is not known.
func TestUnknownPlaces(t *testing.T) {
	rng := rand.New(rand.NewPCG(19, 20))
	for _, c := range []struct {
		one, others int
		named       bool
	}{
		{11, 1, true}, {8, 1, true}, {6, 2, true}, {5, 3, false}, {6, 1, false}, {4, 1, false}, {1, 1, false},
	} {
		for times := 1; times <= 20; times++ {
			var ranks []drawn
			for r := range 12 * times {
				switch {
				case r < c.one*times:
					ranks = append(ranks, waiting(10, 7))
				case r < (c.one+c.others)*times:
					ranks = append(ranks, waiting(1000+r, 7))
				default:
					ranks = append(ranks, blurred(waiting(10, 7)))
				}
			}
			s := Compare(gangOf(rng, 1+rng.IntN(len(ranks)), ranks))
			want := 0
			if c.named {
				want = min(c.others*times, api.MaxStackNamed)
			}
			if len(s.Odd) != want {
				t.Fatalf("%+v of %d: named %v: %s", c, len(ranks), oddRanks(&s), s.Text)
			}
		}
	}
}

// TestThreeByTags: of three, two that have the same tag prove nothing.
func TestThreeByTags(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	ranks := []drawn{waiting(10, 7), waiting(10, 7), waiting(10, 8)}
	if s := Compare(gangOf(rng, 1, ranks)); len(s.Odd) > 0 {
		t.Error(s.Text)
	}
}

// TestJoinPlaces: lines and values count while the calls are the same, and stand still where the thread runs.
func TestJoinPlaces(t *testing.T) {
	look := func(does string, line int, tag int64) api.ThreadStack {
		s := waiting(line, tag).threads[0]
		s.Does, s.In = does, ""
		return s
	}
	other := look(api.DoesLock, 10, 7)
	other.Frames = append([]string{"wait (x.py)"}, other.Frames...)
	other.Lines = append([]int{3}, other.Lines...)
	for _, c := range []struct {
		looks  []api.ThreadStack
		lines  []int
		values int
	}{
		{[]api.ThreadStack{look(api.DoesLock, 10, 7), look(api.DoesLock, 10, 7)}, []int{72, 1640, 10, 90}, 1},
		{[]api.ThreadStack{look(api.DoesLock, 10, 7), look(api.DoesLock, 12, 8), look(api.DoesLock, 10, 7)}, []int{72, 1640, 0, 90}, 0},
		{[]api.ThreadStack{look(api.DoesRun, 10, 7), look(api.DoesRun, 10, 7)}, []int{72, 1640, 10, 90}, 1},
		{[]api.ThreadStack{look(api.DoesRun, 10, 7), look(api.DoesRun, 12, 7)}, nil, 0},
		{[]api.ThreadStack{look(api.DoesRun, 10, 7), look(api.DoesLock, 10, 7)}, nil, 0},
		{[]api.ThreadStack{{Does: api.DoesLock}, look(api.DoesLock, 10, 7)}, []int{72, 1640, 10, 90}, 1},
		{[]api.ThreadStack{look(api.DoesLock, 10, 7), other, look(api.DoesLock, 10, 7)}, nil, 0},
	} {
		got := Join(c.looks)
		if !slices.Equal(got.Lines, c.lines) || len(got.Values) != c.values {
			t.Errorf("%+v: %+v", c.looks, got)
		}
	}
}

// TestLongStack: of a long stack lines and values go with the calls that are kept.
func TestLongStack(t *testing.T) {
	calls := make([]Call, 300)
	for i := range calls {
		calls[i] = Call{Frame: fmt.Sprint("f", i), Line: 1000 + i, Values: []api.StackValue{{Name: "tag", Value: int64(i)}}}
	}
	s := ThreadOf(api.ThreadStack{Does: api.DoesLock}, calls)
	for i, f := range s.Frames {
		if want := fmt.Sprint("f", s.Lines[i]-1000); f != want {
			t.Errorf("%d: %s at line %d", i, f, s.Lines[i])
		}
	}
	if len(s.Frames) != api.MaxStackFrames || len(s.Values) != api.MaxStackValues || s.Values[3] != (api.StackValue{Frame: 3, Name: "tag", Value: 3}) {
		t.Error(s)
	}
}

func TestTells(t *testing.T) {
	for name, want := range map[string]bool{"tag": true, "recvtag": true, "msg_tag": true, "stage": false, "rank": false, "src": false, "step": false, "tags": false, "": false} {
		if Tells(name) != want {
			t.Error(name)
		}
	}
}
