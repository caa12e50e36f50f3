package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
	"gangd/pkg/lab/disk"
)

// TestWhatWaitsForTheDiskKeepsItsOrder: a hold and its release that came while the disk
// was full, and what came after, are applied as they came.
func TestWhatWaitsForTheDiskKeepsItsOrder(t *testing.T) {
	r := newRig(t, disk.Open(t))
	e := r.Engine
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	e.kept = []request{{ev: gang.Hold{Job: 1}}, {ev: gang.Release{Job: 1}}}
	e.inbox <- request{ev: gang.Cancel{Job: 1}}
	if e.inboxUnlessKept() != nil {
		t.Error("a later request may come before what is kept")
	}
	var got []string
	for _, q := range e.gather(nil) {
		switch q.ev.(type) {
		case gang.Hold:
			got = append(got, "hold")
		case gang.Release:
			got = append(got, "release")
		case gang.Cancel:
			got = append(got, "cancel")
		}
	}
	if len(got) != 3 || got[0] != "hold" || got[1] != "release" || got[2] != "cancel" || len(e.kept) != 0 {
		t.Errorf("applied %v, %d kept", got, len(e.kept))
	}
	// More than a batch: what is left is still before the inbox.
	e.kept = make([]request, maxBatch+1)
	e.inbox <- request{ev: gang.Cancel{Job: 1}}
	if n := len(e.gather(nil)); n != maxBatch || len(e.kept) != 1 || len(e.inbox) != 1 {
		t.Errorf("a batch of %d, %d kept, %d in the inbox", n, len(e.kept), len(e.inbox))
	}
}

// While the disk is full submissions are refused, the rest is kept in the order in which it
// came, and no more than the inbox holds: then senders are held back.
func TestWhatComesWhileTheDiskIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &Engine{inbox: make(chan request, inboxSize+10)}
		reply := make(chan gang.Outcome, 1)
		e.inbox <- request{ev: gang.Submit{}, reply: reply}
		for i := range int64(inboxSize + 5) {
			e.inbox <- request{ev: gang.Hold{Job: i}}
		}
		began := time.Now()
		if !e.refuseWhileFull(t.Context()) || time.Since(began) != fullRetry {
			t.Errorf("the next try comes after %v, want %v", time.Since(began), fullRetry)
		}
		if out := <-reply; out.Refused == nil || out.Refused.Code != api.CodeDiskFull {
			t.Errorf("the submission: %+v", out)
		}
		if len(e.kept) != inboxSize || len(e.inbox) != 5 {
			t.Fatalf("%d kept, %d in the inbox, want %d and 5", len(e.kept), len(e.inbox), inboxSize)
		}
		for i := range e.kept {
			if h, ok := e.kept[i].ev.(gang.Hold); !ok || h.Job != int64(i) {
				t.Fatalf("request %d kept is %+v", i, e.kept[i].ev)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if e.refuseWhileFull(ctx) {
			t.Error("it tries again though the controller ends")
		}
	})
}
