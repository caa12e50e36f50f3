package sim

import (
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
)

// reservationName is the one of the first reservation of a run, which jobs with
// [Job.Reserved] ask for. Later ones are for nobody.
const reservationName = "first"

// reserveAhead is how long before its start a reservation is made.
const reserveAhead = 15 * time.Second

func (r *run) reserve(node string, length time.Duration, n int) {
	start := r.instant().Wall.Add(reserveAhead)
	b := api.Reservation{Name: reservationName, Start: start, End: start.Add(max(length, time.Second)), Nodes: []string{node},
		Users: []string{"ada"}}
	if r.reservations > 0 {
		b.Name, b.Users, b.Flags = "later-"+node, nil, []api.ReservationFlag{api.FlagMaint}
	}
	r.reservations++
	switch n {
	case 0:
		b.Flags = append(b.Flags, api.FlagIgnoreJobs)
	case 1:
		b.Flags = append(b.Flags, api.FlagDrain)
	}
	slices.Sort(b.Flags)
	r.order(gang.PutReservation{R: b}, nil)
}

// reserved is a reservation as it was committed.
type reserved struct {
	api.Reservation
	seq  int64
	gone bool
}

// reservation takes in what became of one.
func (t *truth) reservation(ev *api.Event) {
	if t.onOld { // what is said on a copy is lost with it
		return
	}
	switch ev.Type {
	case api.EventReservationCreated:
		for _, b := range t.r.world().Reservations() {
			if b.Name == ev.Reservation {
				t.reserved = append(t.reserved, &reserved{Reservation: *b, seq: ev.Seq})
			}
		}
	case api.EventReservationDeleted, api.EventReservationEnded:
		for _, b := range t.reserved {
			b.gone = b.gone || b.Name == ev.Reservation
		}
	case api.EventReserved:
		if t.places == nil {
			t.places = map[api.MemberKey]int64{}
		}
		t.places[api.MemberKey{Job: ev.JobID, Epoch: ev.Epoch}] = ev.Seq
		delete(t.places, api.MemberKey{Job: ev.JobID, Epoch: ev.Epoch - 1})
	case api.EventEnded:
		delete(t.places, api.MemberKey{Job: ev.JobID, Epoch: ev.Epoch})
	}
}

// guests: nobody who is not of a reservation, and was admitted after it was made, lives on its
// nodes in its time. A stop may take its slack where the node was in trouble; the clocks of a
// machine that was suspended stood still, so that it is not looked at.
func (t *truth) guests() {
	now := t.r.instant().Wall
	if t.onOld {
		return
	}
	for _, b := range t.reserved {
		if b.gone || now.Before(b.Start) || !now.Before(b.End) {
			continue
		}
		late := now.Sub(b.Start) > t.r.set.DrainSlack+t.r.set.StartTimeout
		for _, name := range b.Nodes {
			m := t.r.byName[name]
			if m.suspensions > 0 {
				continue
			}
			for _, p := range m.procs {
				since, own := t.places[p.key], p.s.spec.job.Reserved && b.Name == reservationName
				began := p.began > t.r.now-now.Sub(b.Start)
				if since > b.seq && !own && !p.killed && (late || began) {
					t.r.fail("I12", "job %d epoch %d lives on %s, which is reserved since %s", p.key.Job, p.key.Epoch, name, now.Sub(b.Start))
				}
			}
		}
	}
}
