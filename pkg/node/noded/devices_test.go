package noded

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gangd/pkg/api"
	"gangd/pkg/node/gpu"
	"gangd/pkg/node/shim"
)

// fileCards are cards with device files: those of /dev that do no harm.
type fileCards struct{ fakeCards }

func (f *fileCards) Inventory(context.Context) ([]api.CardInfo, error) {
	return []api.CardInfo{{Index: 0, UUID: "a", Device: "/dev/full", VRAMBytes: 80}, {Index: 1, UUID: "b", Device: "/dev/urandom", VRAMBytes: 80}}, nil
}

// TestMembersSeeOnlyTheirCards: where the kernel can hold them to it, ranks open the device
// files of their own cards and of no others.
func TestMembersSeeOnlyTheirCards(t *testing.T) {
	c := newController(t)
	o := c.options(t.TempDir())
	o.GPU = &fileCards{fakeCards{samples: []gpu.Sample{{UUID: "a"}, {UUID: "b"}}}}
	c.run(o)
	c.until("a hello", func() bool { return len(c.hellos) > 0 })
	c.mu.Lock()
	devices := c.hellos[0].Devices
	c.mu.Unlock()
	if devices != api.DevicesEnforced {
		if !strings.HasPrefix(devices, "not enforced: ") {
			t.Errorf("devices %q", devices)
		}
		t.Skip(devices)
	}
	for want, cards := range map[string][]string{"full ": {"a"}, "urandom ": {"b"}, "full urandom ": {"a", "b"}, "": nil} {
		var work string
		k := c.desire(int64(10+len(want)), 1, 1, "#!/bin/sh\nfor d in full urandom; do (: </dev/$d) 2>/dev/null && printf '%s ' $d; done\nexit 0\n",
			func(a *api.Assignment, s *api.Spec) { a.Body.Ranks[0].Cards, work = cards, s.WorkDir })
		c.untilPhase(k, api.PhaseStopped)
		b, err := os.ReadFile(filepath.Join(work, fmt.Sprintf("gang-%d.out", k.Job)))
		if err != nil || string(b) != want {
			t.Errorf("with cards %v it opened %q, %v", cards, b, err)
		}
		c.forget(k)
	}
}

// TestNumbered: what a job calls its cards has to be what CUDA shows it by that number.
func TestNumbered(t *testing.T) {
	cards := []api.CardInfo{{UUID: "a", Index: 0}, {UUID: "b", Index: 1}, {UUID: "c", Index: 2}}
	has := []shim.Card{{UUID: "c"}, {UUID: "b"}}
	for _, c := range []struct {
		alone bool
		want  map[string]string
	}{{false, map[string]string{"b": "1", "c": "2"}}, {true, map[string]string{"b": "0", "c": "1"}}} {
		if d := cmp.Diff(c.want, numbered(cards, has, c.alone)); d != "" {
			t.Errorf("alone %v: %s", c.alone, d)
		}
	}
	cards[0].MIG = true
	if names := numbered(cards, has, false); names != nil {
		t.Errorf("instances have numbers: %v", names)
	}
}
