package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/gang"
	"gangd/pkg/lab/disk"
)

// unseating takes the lead away while a commit is under way.
type unseating struct {
	store.Store
	amid *atomic.Bool
	lead *atomic.Bool
}

func (s unseating) Commit(ctx context.Context, ch *gang.Changes) (uint64, error) {
	n, err := s.Store.Commit(ctx, ch)
	if s.amid.Load() {
		s.lead.Store(false)
	}
	return n, err
}

// A controller that does not lead commits nothing and tells nothing, also not what was committed meanwhile.
func TestWhoDoesNotLeadSaysNothing(t *testing.T) {
	for _, during := range []bool{false, true} {
		var amid, lead atomic.Bool
		lead.Store(true)
		st := disk.Open(t)
		r := newRigWith(t, unseating{st, &amid, &lead}, func(o *Options) { o.Leads = lead.Load })
		r.submit("a", spec(1))
		before := st.Lineage()
		amid.Store(during)
		lead.Store(during)
		if _, err := r.Submit(t.Context(), &api.SubmitRequest{Key: "b", Spec: spec(1)}, me); !errors.Is(err, errStopped) {
			t.Errorf("during a commit %t: answered with %v", during, err)
		}
		if err := r.end(); !errors.Is(err, errUnseated) {
			t.Errorf("during a commit %t: ended with %v", during, err)
		}
		if now := st.Lineage(); now > before != during {
			t.Errorf("during a commit %t: commit %d after %d", during, now, before)
		}
	}
}
