package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/lab/disk"
)

// unreadable is a store whose specs can't be read.
type unreadable struct {
	store.Store
	err error
}

func (s *unreadable) Spec(context.Context, string) (*api.Spec, error) {
	if s.err != nil {
		return nil, s.err
	}
	return nil, fmt.Errorf("spec x: %w", store.ErrNotFound)
}

// A script that is damaged on the disk is no fault of the node that asks for it, and its session
// goes on; a store that can be asked nothing any more ends it.
func TestSpecThatCantBeRead(t *testing.T) {
	st := &unreadable{Store: disk.Open(t)}
	r := newRig(t, st)
	for _, c := range []struct {
		err  error
		ends bool
	}{{nil, false}, {errors.New("row spec x: damaged"), false}, {fmt.Errorf("spec x: %w", store.ErrClosed), true}, {fmt.Errorf("spec x: %w", store.ErrFenced), true}, {fmt.Errorf("spec x: %w", store.ErrFailed), true}, {fmt.Errorf("spec x: %w", store.ErrAway), true}} {
		st.err = c.err
		s, err := r.Spec("x")
		if (err != nil) != c.ends || !c.ends && (s == nil || s.Script != nil) {
			t.Errorf("%v: %+v, %v", c.err, s, err)
		}
	}
	st.err = nil
	id := r.submit("k", spec(1))
	if _, err := r.Rerun(t.Context(), &api.RerunRequest{Ref: api.JobRef{ID: id, Index: -1}, Key: "again"}, me); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("run once more without its script: %v", err)
	}
}
