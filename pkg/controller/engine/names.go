package engine

import (
	"context"
	"maps"
	"slices"
	"time"

	"gangd/pkg/core/gang"
)

// namesLook is how often it is looked whether people are called otherwise than their jobs say.
const namesLook = time.Minute

// keepNames has the names of jobs follow those of their owners, until ctx ends. A name that is not known, or not any more,
// changes nothing.
func (e *Engine) keepNames(ctx context.Context) {
	if e.opt.NameOf == nil {
		return
	}
	tick := time.NewTicker(namesLook)
	defer tick.Stop()
	for {
		for _, n := range e.misnamed() {
			if _, err := e.Do(ctx, n); err != nil {
				return
			}
			e.log.Info("jobs have another user name", "uid", n.UID, "user", n.User)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// misnamed are the users who have a job that is called otherwise than they are.
func (e *Engine) misnamed() []gang.Named {
	called := map[uint32]map[string]bool{}
	for _, j := range e.view.snapshot(func(j *gang.Job) bool { return j.Verdict == nil }) {
		if called[j.UID] == nil {
			called[j.UID] = map[string]bool{}
		}
		called[j.UID][j.User] = true
	}
	var out []gang.Named
	for _, uid := range slices.Sorted(maps.Keys(called)) {
		name, known := e.opt.NameOf(uid)
		if known && (len(called[uid]) > 1 || !called[uid][name]) {
			out = append(out, gang.Named{UID: uid, User: name})
		}
	}
	return out
}
