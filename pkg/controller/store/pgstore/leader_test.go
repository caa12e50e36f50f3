package pgstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"gangd/pkg/controller/store"
)

// The seat is taken as it was seen, by who may lead.
func TestSeatIsTakenAsSeen(t *testing.T) {
	ctx, url := context.Background(), newDatabase(t)
	a, b := open(t, url), open(t, url)
	row := func() store.Leader {
		t.Helper()
		l, err := b.Leader(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	take := func(s *Store, name string, seen store.Leader) error {
		_, err := s.TakeOver(ctx, store.Controller{Name: name}, time.Minute, seen, 0)
		return err
	}
	if !row().Free {
		t.Error("nobody ever led, and the seat is not free")
	}
	if err := take(a, "a", row()); err != nil {
		t.Fatal(err)
	}
	seen := row()
	if seen.Free || seen.Name != "a" || seen.Left < 50*time.Second {
		t.Errorf("the row is %+v", seen)
	}
	if err := a.Renew(ctx, time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := take(b, "b", seen); !errors.Is(err, store.ErrLocked) {
		t.Errorf("a seat that was renewed since is taken: %v", err)
	}
	list := store.Controllers{Version: 1, All: []store.Controller{{Name: "a"}, {Name: "b", Joining: true}}}
	if err := a.SetControllers(ctx, list); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b", "c"} {
		if err := take(b, name, row()); !errors.Is(err, store.ErrLocked) {
			t.Errorf("%s may not lead, and does: %v", name, err)
		}
	}
	list.Version, list.All[1].Joining = 2, false
	if err := b.SetControllers(ctx, list); err != nil {
		t.Fatal(err)
	}
	if err := take(b, "b", row()); err != nil { // its holder was seen not to renew it, whatever the database's clock says
		t.Error(err)
	}
	err := a.Renew(ctx, time.Minute)
	for errors.Is(err, store.ErrAway) { // its connections were ended
		err = a.Renew(ctx, time.Minute)
	}
	if !errors.Is(err, store.ErrFenced) {
		t.Errorf("who was replaced renews: %v", err)
	}
	l, err := b.Controllers(ctx)
	if err != nil {
		t.Fatal(err)
	}
	without := store.Controllers{Version: l.Version + 1, All: []store.Controller{{Name: "a"}, {Name: "b", Removed: true}}}
	if err := a.SetControllers(ctx, without); !errors.Is(err, store.ErrConflict) {
		t.Errorf("who leads was taken off the list: %v", err)
	}
	without.All[0].Removed, without.All[1].Removed = true, false
	if err := b.SetControllers(ctx, without); err != nil {
		t.Errorf("who was replaced can't be taken off the list: %v", err)
	}
	if err := b.Resign(ctx); err != nil {
		t.Fatal(err)
	}
	if !row().Free {
		t.Error("its holder has resigned, and the seat is not free")
	}
	c := open(t, url)
	if err := take(c, "a", row()); !errors.Is(err, store.ErrLocked) {
		t.Errorf("who was taken off the list leads: %v", err)
	}
}
