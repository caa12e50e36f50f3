package day

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gangd/pkg/api"
)

func figures(list []*int) (out []int) {
	for _, v := range list {
		if v == nil {
			out = append(out, -1)
		} else {
			out = append(out, *v)
		}
	}
	return out
}

// Samples of a step are one point, a step without any is unknown, and the oldest go.
func TestPoints(t *testing.T) {
	d := Open(filepath.Join(t.TempDir(), "day"), slog.Default())
	begin := time.Unix(1_700_000_400, 0)
	add := func(after time.Duration, given int, busy float64, seen int) {
		s := api.Standing{Usable: 8, Given: given, Seen: seen, Busy: busy, Asked: 3}
		d.Add(begin.Add(after), s, map[string]api.Standing{"n1": s, "bare": {}})
	}
	add(0, 2, 1, 2)
	add(time.Minute, 4, 3, 4)
	add(2*step, 8, 2, 4) // of four nothing is known
	r := d.Reply(begin.Add(2*step), "")
	given, busy := figures(r.Given), figures(r.Busy)
	if n := len(given); n != points || given[n-3] != 3 || given[n-2] != -1 || given[n-1] != 8 || given[n-4] != -1 {
		t.Errorf("%v", given[points-5:])
	}
	if n := len(busy); busy[n-3] != 2 || busy[n-1] != 4 {
		t.Errorf("busy %v", busy[points-5:])
	}
	if len(d.nodes) != 1 {
		t.Errorf("%d nodes", len(d.nodes))
	}
	r = d.Reply(begin.Add(2*step), "n1")
	if g := figures(r.Given); g[points-1] != 8 {
		t.Errorf("n1: %v", g)
	}
	r = d.Reply(begin.Add(points*step+2*step), "")
	for _, v := range figures(r.Given) {
		if v != -1 {
			t.Fatalf("%d is a day old", v)
		}
	}
	// A node that is no more is forgotten after a day.
	d.Add(begin.Add(points*step+5*step), api.Standing{}, nil)
	d.Add(begin.Add(points*step+6*step), api.Standing{}, nil)
	if len(d.nodes) != 0 {
		t.Errorf("%d nodes", len(d.nodes))
	}
}

// What was kept is there after a restart; what is damaged begins anew.
func TestKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "day")
	d, now := Open(path, slog.Default()), time.Now()
	d.Add(now, api.Standing{Usable: 4, Given: 1, Seen: 1, Busy: 1}, map[string]api.Standing{"n1": {Usable: 4}})
	d.save()
	for _, x := range []struct {
		text string // empty: what was kept
		want int
	}{{"", 1}, {"{", -1}} {
		text, want := x.text, x.want
		if text != "" {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r := Open(path, slog.Default()).Reply(now, "")
		if g := figures(r.Given); g[points-1] != want {
			t.Errorf("%q: %v", text, g[points-3:])
		}
	}
}
