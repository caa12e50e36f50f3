// Package gputest is what every provider of cards has to do.
//
// Begin with Run. It must not know NVML or how cards are simulated.
package gputest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gangd/pkg/node/gpu"
)

// Run runs the contract over a provider of that many cards; open makes a fresh one.
func Run(t *testing.T, cards int, open func(t *testing.T) gpu.Provider) {
	t.Run("inventory", func(t *testing.T) { testInventory(t, start(t, open), cards) })
	t.Run("samples", func(t *testing.T) { testSamples(t, start(t, open)) })
	t.Run("from several goroutines", func(t *testing.T) { testConcurrent(t, start(t, open), cards) })
	t.Run("a cancelled call", func(t *testing.T) { testCancelled(t, start(t, open), cards) })
	t.Run("resume", func(t *testing.T) { testResume(t, start(t, open)) })
	t.Run("closed twice", func(t *testing.T) {
		p := start(t, open)
		if err := errors.Join(p.Close(), p.Close()); err != nil {
			t.Error(err)
		}
	})
}

func start(t *testing.T, open func(t *testing.T) gpu.Provider) gpu.Provider {
	p := open(t)
	t.Cleanup(func() { p.Close() })
	return p
}

func testInventory(t *testing.T, p gpu.Provider, want int) {
	cards, err := p.Inventory(context.Background())
	if err != nil || len(cards) != want {
		t.Fatalf("%d cards, %v; want %d", len(cards), err, want)
	}
	uuids := make(map[string]bool)
	for i, c := range cards {
		if c.Index != i {
			t.Errorf("card %d has index %d", i, c.Index)
		}
		if c.UUID == "" || uuids[c.UUID] {
			t.Errorf("card %d: UUID %q is empty or taken", i, c.UUID)
		}
		uuids[c.UUID] = true
		if c.Model == "" || c.VRAMBytes <= 0 || c.NUMA < -1 {
			t.Errorf("card %d: model %q, VRAM %d, NUMA %d", i, c.Model, c.VRAMBytes, c.NUMA)
		}
		for _, peer := range c.Peers {
			if peer == i || peer < 0 || peer >= len(cards) || !slices.Contains(cards[peer].Peers, i) {
				t.Errorf("card %d is linked to %d, which does not say so of %d", i, peer, i)
			}
		}
	}
	again, err := p.Inventory(context.Background())
	if d := cmp.Diff(cards, again); err != nil || d != "" {
		t.Errorf("a second inventory differs: %v\n%s", err, d)
	}
}

func testSamples(t *testing.T, p gpu.Provider) {
	cards, err := p.Inventory(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	samples, err := p.Sample(context.Background())
	if err != nil || len(samples) != len(cards) {
		t.Fatalf("%d samples of %d cards, %v", len(samples), len(cards), err)
	}
	for i, s := range samples {
		if s.UUID != cards[i].UUID {
			t.Errorf("sample %d is of %s, card %d is %s", i, s.UUID, i, cards[i].UUID)
		}
		if s.UsedBytes < -1 || s.UsedBytes > cards[i].VRAMBytes || s.StrangersBytes < -1 || s.StrangersBytes > s.UsedBytes {
			t.Errorf("card %d: %d of %d bytes used, %d by strangers", i, s.UsedBytes, cards[i].VRAMBytes, s.StrangersBytes)
		}
		if s.Xid != 0 && !gpu.FatalXid(s.Xid) {
			t.Errorf("card %d: Xid %d is no fault of the card", i, s.Xid)
		}
		for _, p := range s.Processes {
			if p.PID <= 0 || p.VRAMBytes < -1 || p.VRAMBytes > cards[i].VRAMBytes {
				t.Errorf("card %d: process %+v", i, p)
			}
		}
		if len(s.Users) > 0 && !s.UsersKnown {
			t.Errorf("card %d: %d users of a driver that does not say", i, len(s.Users))
		}
		for _, u := range s.Users {
			if u.PID <= 0 || u.Utilization < 0 || u.Utilization > 100 {
				t.Errorf("card %d: user %+v", i, u)
			}
		}
		if s.Utilization < -1 || s.Utilization > 100 || s.PowerWatts < -1 {
			t.Errorf("card %d: utilization %d, %d W", i, s.Utilization, s.PowerWatts)
		}
	}
}

// testResume: a card that is well stays so, and a card that is not there is no harm.
func testResume(t *testing.T, p gpu.Provider) {
	r, ok := p.(gpu.Resumer)
	if !ok {
		t.Skip("it remembers nothing")
	}
	before, err := p.Sample(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	uuids := []string{"GPU-of-nobody"}
	for _, s := range before {
		uuids = append(uuids, s.UUID)
	}
	for _, u := range uuids {
		if err := r.Resume(context.Background(), u); err != nil {
			t.Errorf("resume %s: %v", u, err)
		}
	}
	after, err := p.Sample(context.Background())
	if err != nil || len(after) != len(before) {
		t.Fatalf("%d samples, %v", len(after), err)
	}
	for i := range after {
		if after[i].Unhealthy != before[i].Unhealthy || after[i].UUID != before[i].UUID {
			t.Errorf("card %d was %+v, is %+v", i, before[i], after[i])
		}
	}
}

func testConcurrent(t *testing.T, p gpu.Provider, cards int) {
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5 {
				if c, err := p.Inventory(context.Background()); err != nil || len(c) != cards {
					t.Errorf("inventory: %d cards, %v", len(c), err)
				}
				if s, err := p.Sample(context.Background()); err != nil || len(s) != cards {
					t.Errorf("sample: %d cards, %v", len(s), err)
				}
			}
		})
	}
	wg.Wait()
}

// testCancelled: a caller that gave up gets its own reason and spoils nothing.
func testCancelled(t *testing.T, p gpu.Provider, cards int) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := p.Sample(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("sample: %v", err)
	}
	if _, err := p.Inventory(context.Background()); err != nil {
		t.Error(err)
	}
	if s, err := p.Sample(context.Background()); err != nil || len(s) != cards {
		t.Errorf("sample afterwards: %d cards, %v", len(s), err)
	}
}
