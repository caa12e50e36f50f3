package leader

import (
	"slices"
	"testing"
	"time"
)

func TestSeat(t *testing.T) {
	const ms = time.Millisecond
	row := Seen{Term: 4, Mark: "a"}
	var s Seat
	if s.MayTake(10*time.Second, row) || s.MayTake(12*time.Second-1, row) {
		t.Error("a seat that somebody may hold is taken")
	}
	if row.Mark = "b"; s.MayTake(12*time.Second, row) || s.MayTake(14*time.Second-1, row) {
		t.Error("a seat is taken that was renewed between two looks")
	}
	if !s.MayTake(14*time.Second, row) {
		t.Error("a seat that was not renewed is not taken")
	}
	if !s.Waits() {
		t.Error("who only looked does not wait")
	}
	if s.Try(); s.Waits() {
		t.Error("who has asked for the seat says that it waits")
	}
	if s.Failed(); !s.Waits() {
		t.Error("who did not get the seat does not wait again")
	}
	s.Try()
	s.Took(5, 14*time.Second)
	if term, ok := s.Leads(15*time.Second + 799*ms); !ok || term != 5 || s.Waits() {
		t.Errorf("in term %d, leads %t", term, ok)
	}
	if _, ok := s.Leads(15*time.Second + 800*ms); ok {
		t.Error("a seat is trusted to its last moment")
	}
	s.Renewed(15 * time.Second)
	s.Renewed(14500 * ms) // an answer that was overtaken
	if s.Until() != 16*time.Second+800*ms || s.Known() != 5 {
		t.Errorf("trusted until %s, known %d", s.Until(), s.Known())
	}
	if s.Leave(); s.Waits() {
		t.Error("who has led says that it waits")
	}
	var fresh Seat
	if !fresh.MayTake(0, Seen{Free: true}) {
		t.Error("a seat that nobody holds is not taken")
	}
}

func TestRoster(t *testing.T) {
	var r Roster
	nodes := []string{"n1", "n2"}
	settled := func(now time.Duration, nodes []string) bool {
		ok, lacking := r.Settled(now, time.Minute, nodes)
		if ok && len(lacking) > 0 {
			t.Errorf("settled, and %v lack it", lacking)
		}
		return ok
	}
	if settled(time.Hour, nil) {
		t.Error("a list that nobody told is settled")
	}
	r.Tell(2, time.Minute)
	r.Tell(1, 0) // of an older one
	r.Listed("n1", 2)
	r.Listed("n2", 1)
	if ok, lacking := r.Settled(2*time.Minute-1, time.Minute, nodes); ok || !slices.Equal(lacking, []string{"n2"}) {
		t.Errorf("n2 goes by another list: settled is %v, and %v lack it", ok, lacking)
	}
	if !settled(2*time.Minute, nodes) {
		t.Error("not settled after a lease")
	}
	if r.Listed("n2", 2); !settled(time.Minute, nodes) {
		t.Error("not settled though all go by it")
	}
	if r.Tell(3, 2*time.Minute); settled(2*time.Minute, nodes) {
		t.Error("a newer list is settled before anybody goes by it")
	}
}
