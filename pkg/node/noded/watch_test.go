package noded

import (
	"sync"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/watchdog"
	"gangd/pkg/node/gpu"
	"gangd/pkg/node/shim"
)

// spy is what a watcher says.
type spy struct {
	notes  []api.WatchNote
	stacks []bool
}

func watchTest(rules api.Watch) (*watcher, *spy, api.MemberKey) {
	k, s := api.MemberKey{Job: 1, Epoch: 1}, &spy{}
	w := newWatcher(func(_ api.MemberKey, n *api.WatchNote) { s.notes = append(s.notes, *n) },
		func(_ api.MemberKey, take bool) { s.stacks = append(s.stacks, take) })
	set := api.DefaultSettings()
	w.begin(k, &shim.Spec{Cards: []shim.Card{{UUID: "a"}, {UUID: "b"}}, Watch: rules}, &set, 0)
	return w, s, k
}

func reads(utilization int) func(api.MemberKey) watchdog.Sight {
	return func(api.MemberKey) watchdog.Sight {
		return watchdog.Sight{Card: func(string) watchdog.Reading { return watchdog.Reading{Utilization: utilization} }}
	}
}

// A check is carried out once, however often it is ordered; the stacks are begun before its
// last reading, and dropped when the question is taken back.
func TestWatcherChecks(t *testing.T) {
	w, s, k := watchTest(api.Watch{})
	set := api.DefaultSettings()
	w.feed(reads(0), time.Hour)
	if len(s.notes) != 0 || w.wait(time.Hour) != time.Hour {
		t.Fatalf("nobody asked: %+v", s.notes)
	}
	ask := &api.Check{Round: 7, Readings: 3}
	for range 3 {
		w.ask(k, ask, &set)
		if w.wait(time.Hour) != 0 {
			t.Error("the first reading is not wanted at once")
		}
		w.feed(reads(0), time.Hour)
	}
	if len(s.notes) != 1 || s.notes[0].Round != 7 || s.notes[0].Finding.State != api.CardsQuiet || s.notes[0].Finding.Count != 2 || s.notes[0].Finding.Readings != 3 {
		t.Fatalf("answer %+v", s.notes)
	}
	if len(s.stacks) != 1 || !s.stacks[0] {
		t.Errorf("stacks %v", s.stacks)
	}
	w.ask(k, ask, &set)
	w.feed(reads(0), time.Hour)
	if len(s.notes) != 1 {
		t.Error("a repeat was carried out again")
	}
	w.ask(k, nil, &set)
	w.ask(k, nil, &set)
	if len(s.stacks) != 2 || s.stacks[1] {
		t.Errorf("stacks %v, want them dropped once", s.stacks)
	}
	w.ask(k, &api.Check{Round: 9, Readings: 3}, &set)
	w.feed(reads(50), time.Hour)
	if len(s.notes) != 2 || s.notes[1].Round != 9 || s.notes[1].Finding.State != api.CardsBusy {
		t.Errorf("answers %+v", s.notes)
	}
	w.drop(k)
	w.ask(k, &api.Check{Round: 11, Readings: 1}, &set)
	w.feed(reads(0), time.Hour)
	if len(s.notes) != 2 {
		t.Error("a member that is gone was looked at")
	}
}

// What a window shows is said when it trips and when that is over, not with each reading.
func TestWatcherSaysItOnce(t *testing.T) {
	w, s, _ := watchTest(api.Watch{HangWindow: time.Nanosecond})
	for range 5 {
		w.feed(reads(0), time.Hour)
	}
	w.feed(reads(90), time.Hour)
	w.feed(reads(90), time.Hour)
	if len(s.notes) != 2 || !s.notes[0].Hung || s.notes[1].Hung {
		t.Errorf("said %+v", s.notes)
	}
}

// What the shim says of the ranks and what is seen of the cards are one note, whichever came
// last; both are said again in a new session.
func TestNotesKeepWhatWasSeen(t *testing.T) {
	var woken sync.WaitGroup
	woken.Add(2)
	n, k := newNotes(woken.Done), api.MemberKey{Job: 1, Epoch: 1}
	n.putWatch(k, &api.WatchNote{Hung: true})
	n.put(api.MemberNote{Ranks: []api.RankNote{{Rank: 0, Beats: 3}}}, k)
	woken.Wait()
	for range 2 {
		got := n.news()
		if len(got) != 1 || got[0].MemberKey != k || got[0].Watch == nil || !got[0].Watch.Hung || len(got[0].Ranks) != 1 {
			t.Fatalf("%+v", got)
		}
		if len(n.news()) != 0 {
			t.Error("said twice")
		}
		n.again()
	}
}

// Figures that the last try did not bring are unknown to a watchdog, though they are still shown.
func TestReadingIsFresh(t *testing.T) {
	c := newCards(nil, nil, nil)
	c.card["a"] = &card{known: true, last: gpu.Sample{Utilization: 7}, now: api.CardSample{UUID: "a", Utilization: 7, UsedBytes: 5}}
	if r := c.reading(job(1), "a"); r != watchdog.Unknown {
		t.Errorf("%+v of a try that failed", r)
	}
	c.fresh = true
	if r := c.reading(job(1), "a"); r != (watchdog.Reading{Utilization: 7, AtMost: 7, UsedBytes: 5}) {
		t.Errorf("%+v", r)
	}
	if r := c.reading(job(1), "b"); r != watchdog.Unknown {
		t.Errorf("%+v of a card that is not there", r)
	}
}
