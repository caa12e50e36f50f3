package rpc

import (
	"fmt"
	"math"
	"sync"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/wire/auth"
)

// Rates bound how often a user calls: nobody may keep the controller busy with the refusal of
// nonsense. A nil *Rates bounds nothing.
//
// Of each user one moment is kept: when his requests so far would be over if they came evenly,
// at the pace that is allowed. As long as it lies less than a burst ahead he may call.
type Rates struct {
	now func() time.Time

	mu               sync.Mutex
	perSecond, burst int // 0: no bound
	every            time.Duration
	over             map[uint32]time.Time
	room             int // when over has so many, those whose moment has passed are dropped
}

// usersKept is how many users are remembered before anybody is looked for who needs not be.
const usersKept = 1024

// NewRates lets each user make perSecond requests a second, and burst at once; 0 a second is
// no bound.
func NewRates(perSecond, burst int) *Rates {
	r := &Rates{now: time.Now, over: map[uint32]time.Time{}, room: usersKept}
	r.Set(perSecond, burst)
	return r
}

// Set has other bounds hold from now on. What users have made counts on.
func (r *Rates) Set(perSecond, burst int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.perSecond, r.burst, r.every = perSecond, burst, 0
	if perSecond > 0 {
		r.every = time.Second / time.Duration(perSecond)
	}
}

// admit counts a call. It refuses a person's that comes too early; nodes, and who may end
// everybody's work anyway, are not counted.
func (r *Rates) admit(id auth.Identity) *api.Error {
	if r == nil || id.Admin || id.Kind != auth.KindUser && id.Kind != auth.KindRelay && id.Kind != auth.KindGuest {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	wait := r.take(id.UID)
	if wait == 0 {
		return nil
	}
	return &api.Error{Code: api.CodeTooMany, RetryAfter: int(math.Ceil(wait.Seconds())),
		Message: fmt.Sprintf("%s has made %d requests more than %d a second: the next is taken in %s", id.User, r.burst, r.perSecond,
			when.Words(wait)),
		Hint: "ask for many jobs in one call: an array, gqueue -j ID,ID; and follow with gqueue --watch or gsubmit --wait instead of " +
			"asking again"}
}

// take is 0 when a request of a user is taken, else how long until one is.
func (r *Rates) take(uid uint32) time.Duration {
	if r.perSecond == 0 {
		return 0
	}
	now := r.now()
	over, known := r.over[uid]
	if !known && len(r.over) >= r.room {
		r.sweep(now)
	}
	if over.Before(now) {
		over = now
	}
	if early := over.Sub(now) - time.Duration(r.burst-1)*r.every; early > 0 {
		return early
	}
	r.over[uid] = over.Add(r.every)
	return 0
}

func (r *Rates) sweep(now time.Time) {
	for uid, over := range r.over {
		if !over.After(now) {
			delete(r.over, uid)
		}
	}
	r.room = max(usersKept, 2*len(r.over))
}
