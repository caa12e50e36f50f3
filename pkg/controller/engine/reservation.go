package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/hostlist"
)

// Reservations are all of them, or those that are named.
func (e *Engine) Reservations(names ...string) ([]api.Reservation, error) {
	e.view.mu.RLock()
	defer e.view.mu.RUnlock()
	now := e.opt.Clock.Now().Wall
	out := []api.Reservation{}
	if names == nil {
		names = slices.Sorted(maps.Keys(e.view.reservations))
	}
	for _, name := range names {
		r := e.view.reservations[name]
		if r == nil {
			return nil, e.view.noReservation(name)
		}
		out = append(out, shownAt(r, now))
	}
	return out, nil
}

func shownAt(r *api.Reservation, now time.Time) api.Reservation {
	out := *r
	out.Active = !now.Before(r.Start) && now.Before(r.End)
	return out
}

// noReservation is asked with the lock held.
func (v *view) noReservation(name string) *api.Error {
	return gang.NoReservation(name, slices.Sorted(maps.Keys(v.reservations)))
}

func (v *view) reservation(name string) (*api.Reservation, *api.Error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if r := v.reservations[name]; r != nil {
		return r, nil
	}
	return nil, v.noReservation(name)
}

// Reserve makes a reservation; with change it changes the one of that name.
func (e *Engine) Reserve(ctx context.Context, req *api.ReservationRequest, change bool, who Caller) (*api.Reservation, error) {
	r := &api.Reservation{Name: req.Name, By: who.User}
	if change {
		old, err := e.view.reservation(req.Name)
		if err != nil {
			return nil, err
		}
		c := *old
		r = &c
	}
	if err := e.fillIn(r, req, change); err != nil {
		return nil, err
	}
	count := 0
	if req.NodeCount != nil {
		if count = *req.NodeCount; count < 1 {
			return nil, &api.Error{Code: api.CodeInvalid, Message: fmt.Sprintf("a reservation of %d nodes", count), Hint: "nodecnt=1 is the fewest"}
		}
		if req.Nodes == nil {
			r.Nodes = nil
		}
	}
	r.Picked = count > 0 || r.Picked && req.Nodes == nil
	if _, err := e.Do(ctx, gang.PutReservation{R: *r, Old: change, Count: count, By: who.User}); err != nil {
		return nil, err
	}
	made, gone := e.view.reservation(r.Name) // with the nodes that were chosen
	if gone != nil {
		return nil, gone
	}
	out := shownAt(made, e.opt.Clock.Now().Wall)
	return &out, nil
}

// earlier is how far back a start may lie and still be taken as now: a person's "now" is a
// moment old when it arrives.
const earlier = time.Minute

// fillIn takes what a request says, and refuses what no node, time or name could be.
func (e *Engine) fillIn(r *api.Reservation, req *api.ReservationRequest, change bool) error {
	if err := checkName("reservation", req.Name); err != nil {
		return err
	}
	now, length := e.opt.Clock.Now().Wall, r.End.Sub(r.Start)
	switch {
	case req.Start != nil && now.Sub(*req.Start) > earlier:
		return &api.Error{Code: api.CodeInvalid, Message: fmt.Sprintf("the start time %s has passed", req.Start.Format(time.RFC3339)),
			Hint: "starttime=now starts at once"}
	case req.Start != nil:
		r.Start = *req.Start
		if r.Start.Before(now) {
			r.Start = now.Truncate(time.Second)
		}
	case !change:
		return &api.Error{Code: api.CodeInvalid, Message: "a reservation needs a start",
			Hint: "starttime=now, starttime=18:00, starttime=2030-01-20T12:00:00"}
	}
	switch {
	case req.End != nil && req.Duration != nil:
		return api.Errorf(api.CodeInvalid, "endtime and duration exclude each other")
	case req.End != nil:
		r.End = *req.End
	case req.Duration != nil:
		r.End = r.Start.Add(*req.Duration)
	case change:
		r.End = r.Start.Add(length)
	default:
		return &api.Error{Code: api.CodeInvalid, Message: "a reservation needs an end",
			Hint: "duration=120 (minutes), duration=2:00:00 or endtime=20:00"}
	}
	if req.Nodes != nil {
		if err := e.nodesOf(r, *req.Nodes); err != nil {
			return err
		}
	}
	if req.Users != nil {
		r.Users = sortedNames(*req.Users)
	}
	if req.Accounts != nil {
		r.Accounts = sortedNames(*req.Accounts)
	}
	if req.Flags != nil {
		r.Flags = sortedNames(*req.Flags)
	}
	for _, f := range r.Flags {
		if !slices.Contains(api.ReservationFlags, f) {
			return api.Errorf(api.CodeInvalid, "flag %q is not known", f)
		}
	}
	return nil
}

func sortedNames[S ~string](list []S) []S { return slices.Compact(slices.Sorted(slices.Values(list))) }

// checkName is for reservations and partitions: kind is which of them.
func checkName(kind, name string) error {
	ok := name != "" && len(name) <= 64
	for _, c := range name {
		ok = ok && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("_.-", c))
	}
	if !ok {
		return api.Errorf(api.CodeInvalid, "%s name %q: want 1 to 64 letters, digits, '_', '.' and '-'", kind, name)
	}
	return nil
}

func (e *Engine) nodesOf(r *api.Reservation, asked []string) error {
	e.view.mu.RLock()
	known := slices.Clone(e.view.names)
	e.view.mu.RUnlock()
	if len(asked) == 1 && strings.EqualFold(asked[0], "ALL") {
		asked = known
	}
	for _, n := range asked {
		if _, there := slices.BinarySearch(known, n); !there {
			return gang.NoNode(n, known)
		}
	}
	r.Nodes = sortedNames(asked)
	return nil
}

// Unreserve takes a reservation away.
func (e *Engine) Unreserve(ctx context.Context, name string, who Caller) error {
	_, err := e.Do(ctx, gang.DropReservation{Name: name, By: who.User})
	return err
}

// mayReserve refuses a job for a reservation that is not there or not for it, and gives the
// nodes that it has.
func (e *Engine) mayReserve(name, user, account string, nodes []*cluster.Node) ([]*cluster.Node, error) {
	r, err := e.view.reservation(name)
	if err != nil {
		err.Code = api.CodeInvalid
		return nil, err
	}
	if !r.Admits(user, account) {
		err := api.Errorf(api.CodePermission, "reservation %s is not for %s%s", name, user, under(account))
		switch {
		case len(r.Users)+len(r.Accounts) == 0:
			err.Hint = "it is for nobody: nodes are worked on"
		case len(r.Users) > 0 && !slices.Contains(r.Users, user):
			err.Hint = "it is for " + strings.Join(r.Users, ", ")
		default:
			err.Hint = "it is for work under " + strings.Join(r.Accounts, ", ") + ": --account=" + r.Accounts[0]
		}
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(nodes), func(n *cluster.Node) bool { return !r.Holds(n.Name) }), nil
}

func under(account string) string {
	if account == "" {
		return ""
	}
	return " under account " + account
}

// awaitsReservation says why a job that asked for a reservation is no candidate; empty: its
// reservation goes on and is for it.
func (e *Engine) awaitsReservation(j *gang.Job, now time.Time) (word, text string) {
	name := j.Spec.Reservation
	if name == "" {
		return "", ""
	}
	r, err := e.view.reservation(name)
	switch {
	case err != nil:
		return "ReservationDeleted", fmt.Sprintf("its reservation %s is not there any more; submit it again without --reservation, or gcancel %d",
			name, j.ID)
	case !r.Admits(j.User, j.Spec.Account):
		return "Reservation", fmt.Sprintf("its reservation %s is not for %s%s any more", name, j.User, under(j.Spec.Account))
	case now.Before(r.Start):
		return "Reservation", fmt.Sprintf("its reservation %s (%s) begins at %s, in %s", name, hostlist.Compress(r.Nodes),
			when.Clock(now, r.Start),
			when.Words(r.Start.Sub(now)))
	}
	return "", ""
}

// showReservations puts into the rows of nodes what is on them now.
func (e *Engine) showReservations(nodes []api.Node) {
	now := e.opt.Clock.Now().Wall
	e.view.mu.RLock()
	defer e.view.mu.RUnlock()
	for _, name := range slices.Sorted(maps.Keys(e.view.reservations)) {
		r := shownAt(e.view.reservations[name], now)
		for i := range nodes {
			// Maintenance may overlap others, and is what counts then.
			if n := &nodes[i]; r.Active && r.Holds(n.Name) && (n.Reservation == nil || r.Has(api.FlagMaint)) {
				n.Reservation = &api.NodeReservation{Name: r.Name, Maint: r.Has(api.FlagMaint), Until: r.End}
			}
		}
	}
}
