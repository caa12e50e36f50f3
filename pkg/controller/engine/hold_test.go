package engine

import (
	"errors"
	"strings"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/lab/disk"
)

// A copy that lacks few commits has soon made as many itself: the run that told a node of
// what it lacks gives it away, also after the controller was started again.
func TestACopyThatLacksFewHolds(t *testing.T) {
	d := disk.New(t)
	start := func(d *disk.Disk, run string, accept bool) *rig {
		st := d.Open(t)
		r := newRigWith(t, st, func(o *Options) { o.Run, o.AcceptStore = run, accept })
		t.Cleanup(func() { _ = r.end(); _ = st.Close() })
		return r
	}
	stop := func(r *rig) {
		_ = r.end()
		if err := r.store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	hello := func(r *rig, node string, seen uint64, run string) *api.Welcome {
		t.Helper()
		w, err := r.NodeHello(t.Context(), &api.Hello{Protocol: api.SessionProtocol, Node: node, BootID: "b", CPUs: 4, LineageSeen: seen, RunSeen: run})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	r := start(d, "one", false)
	r.submit("a", spec(1))
	w := hello(r, "n1", 0, "")
	if w.Run != "one" || w.Lineage == 0 {
		t.Fatalf("welcome %+v", w)
	}
	copied := d.Copy(t)
	r.submit("b", spec(1))
	knows, _ := r.Lineage() // told to n1 with a beat
	stop(r)

	r = start(copied, "two", false)
	for range 5 {
		r.submit("", spec(1))
	}
	if now, _ := r.Lineage(); now <= knows {
		t.Fatalf("the copy is at %d, too few", now)
	}
	hello(r, "n2", 0, "")
	stop(r)
	for _, run := range []string{"three", "four"} { // a start makes no hold go away
		r = start(copied, run, false)
		if w := hello(r, "n2", 3, "two"); w.Run != run || r.view.onHold() != "" {
			t.Fatalf("n2 knows nothing more: %+v, %q", w, r.view.onHold())
		}
		if w := hello(r, "n1", knows, "one"); w.Run != "" || w.Lineage != 0 || r.Ping().Hold == "" {
			t.Errorf("on hold a node is told of commits: %+v", w)
		}
		want := "HOLD: by this store an earlier start of the controller ended at commit 2, and it is at commit 9 now, but node n1 has seen commit 3 of that start: an old copy was put back"
		if got := r.view.onHold(); run == "three" && got != want || !strings.HasPrefix(got, "HOLD: by this store") {
			t.Errorf("%s\nwant %s", got, want)
		}
		stop(r)
	}
	r = start(copied, "five", true)
	hello(r, "n1", knows, "one")
	if id := r.submit("", spec(1)); r.view.onHold() != "" || id < minSkip {
		t.Errorf("accepted: hold %q, next id %d", r.view.onHold(), id)
	}
	stop(r)
	r = start(copied, "six", false)
	if hello(r, "n1", knows, "one"); r.view.onHold() != "" {
		t.Errorf("accepted, and started again: %s", r.view.onHold())
	}
	stop(r)

	// The newest store is put back: what nodes were told by the copy's controllers is less.
	r = start(d, "seven", false)
	if hello(r, "n2", 2, "two"); r.view.onHold() != "" {
		t.Errorf("the newest store: %s", r.view.onHold())
	}
	if hello(r, "n3", 2, "seven"); r.view.onHold() != "" {
		t.Errorf("a node of this very start: %s", r.view.onHold())
	}
}

// Where a claim of 2^50 is believed (there is no key) and the store accepted, ids and their ranks stay within what a row's
// id holds, and the store loads again.
func TestAnAcceptedClaimIsBounded(t *testing.T) {
	d := disk.New(t)
	for _, run := range []string{"one", "two"} {
		st := d.Open(t)
		r := newRigWith(t, st, func(o *Options) { o.Run, o.AcceptStore = run, true })
		if _, err := r.NodeHello(t.Context(), &api.Hello{Protocol: api.SessionProtocol, Node: "n1", BootID: run, CPUs: 4, LineageSeen: 1 << 50, RunSeen: "x"}); err != nil {
			t.Fatal(err)
		}
		id := r.submit("", spec(2))
		if now, _ := r.Lineage(); now < 1<<50 || id >= 1<<46 || id < minSkip {
			t.Errorf("%s: commit %d, id %d", run, now, id)
		}
		if s := r.state(id); run == "one" && s == api.JobPending { // else its ranks have no rows
			t.Errorf("job %d is %s", id, s)
		}
		if found, err := r.Verify(t.Context()); err != nil || len(found) > 0 {
			t.Errorf("%s: %q, %v", run, found, err)
		}
		if err := errors.Join(r.end(), st.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// With a key a node can repeat a number that it was told, and make up none: what it makes up
// puts it out of use, and nobody else.
func TestAClaimNeedsItsProof(t *testing.T) {
	st := disk.New(t).Open(t)
	opt := func(run string) func(*Options) {
		return func(o *Options) { o.Run, o.LineageKey = run, []byte("key") }
	}
	r := newRigWith(t, st, opt("one"))
	hello := func(seen uint64, run, proof string) *api.Welcome {
		w, err := r.NodeHello(t.Context(), &api.Hello{Protocol: api.SessionProtocol, Node: "n1", BootID: "b", CPUs: 4,
			LineageSeen: seen, RunSeen: run, LineageProof: proof})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	w := hello(0, "", "")
	if n, proof := r.Lineage(); n < w.Lineage || proof != r.prove("one", n) {
		t.Errorf("a beat tells of commit %d with proof %q", n, proof)
	}
	for _, c := range []struct {
		run, proof string
	}{{w.Run, w.LineageProof}, {w.Run, ""}, {"two", w.LineageProof}, {"", ""}} {
		hello(1<<50, c.run, c.proof)
		if hold := r.Ping().Hold; hold != "" {
			t.Fatalf("run %q, proof %q: %s", c.run, c.proof, hold)
		}
		if n := r.view.node("n1"); n.Sick == "" {
			t.Errorf("run %q, proof %q: the node takes work", c.run, c.proof)
		}
	}
	hello(w.Lineage, w.Run, w.LineageProof)
	if n := r.view.node("n1"); n.Sick != "" {
		t.Errorf("with what it was told it is out of use: %s", n.Sick)
	}
	hello(w.Lineage+1000, w.Run, r.prove(w.Run, w.Lineage+1000))
	if r.Ping().Hold == "" {
		t.Error("a proven claim is not believed")
	}
	r.end()
}
