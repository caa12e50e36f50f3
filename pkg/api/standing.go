package api

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// QueueOrder is the order of the queue as the stream of the queue tells it: event order.
type QueueOrder struct {
	// Order are the numbers of the jobs that could start, the next one first, runs of them as 4-17.
	Order string `json:"order"`
	// Starts are of the first of them for which it is known.
	Starts []QueueStart `json:"starts"`
	// Whys say why the first of them wait, and the first of those that can't start before something else has happened.
	Whys []QueueWhy `json:"whys,omitempty"`
}

// QueueWhy is why some jobs wait, in plain words.
type QueueWhy struct {
	Jobs string `json:"jobs"` // written as QueueOrder.Order
	Text string `json:"text"`
}

// Jobs are those numbers, one by one.
func (o *QueueOrder) Jobs() (out []int64) {
	if o.Order == "" {
		return nil
	}
	for part := range strings.SplitSeq(o.Order, ",") {
		from, to, several := strings.Cut(part, "-")
		first, err1 := strconv.ParseInt(from, 10, 64)
		last, err2 := first, error(nil)
		if several {
			last, err2 = strconv.ParseInt(to, 10, 64)
		}
		if err1 != nil || err2 != nil || last-first > maxQueueRun {
			return out
		}
		for id := first; id <= last; id++ {
			out = append(out, id)
		}
	}
	return out
}

// maxQueueRun bounds what one part of an order may stand for.
const maxQueueRun = 10_000_000

// QueueStart is when a waiting job is expected to start. In JSON it is a list of the number, the second since 1970 (1: now)
// and 1 where it is no later by the time limits of what runs.
type QueueStart struct {
	Job  int64
	At   time.Time // zero: now
	Sure bool
}

// MarshalJSON writes the list.
func (s QueueStart) MarshalJSON() ([]byte, error) {
	at, sure := int64(1), int64(0)
	if !s.At.IsZero() {
		at = s.At.Unix()
	}
	if s.Sure {
		sure = 1
	}
	return json.Marshal([3]int64{s.Job, at, sure})
}

// UnmarshalJSON reads it.
func (s *QueueStart) UnmarshalJSON(b []byte) error {
	var f [3]int64
	if err := json.Unmarshal(b, &f); err != nil {
		return err
	}
	*s = QueueStart{Job: f[0], Sure: f[2] != 0}
	if f[1] > 1 {
		s.At = time.Unix(f[1], 0)
	}
	return nil
}

// Standing is how cards stand at a moment.
type Standing struct {
	Usable int     // in service, or given all the same
	Given  int     // to gangs
	Seen   int     // of these: what they do is known
	Busy   float64 // cards' worth of work that Seen do
	Asked  int     // by those that wait
}

// Add adds another's.
func (s *Standing) Add(o Standing) {
	s.Usable, s.Given, s.Seen, s.Busy, s.Asked = s.Usable+o.Usable, s.Given+o.Given, s.Seen+o.Seen, s.Busy+o.Busy, s.Asked+o.Asked
}

// DayReply is how cards stood in the last 24 hours: GET /v1/day. Lists have one figure a step, null where nothing is known.
type DayReply struct {
	SchemaVersion int    `json:"schema_version"`
	Node          string `json:"node,omitempty"` // of this one alone
	Start         int64  `json:"start"`          // of the first step, in seconds since 1970
	StepSeconds   int    `json:"step_seconds"`
	Usable        []*int `json:"usable"`
	Given         []*int `json:"given"`
	Busy          []*int `json:"busy"`
	Asked         []*int `json:"asked"` // cards asked for by jobs that waited
}

// LimitsReply is what the caller may use, and does: GET /v1/limits.
type LimitsReply struct {
	SchemaVersion int             `json:"schema_version"`
	UserCards     int             `json:"user_cards"` // that one user's gangs may hold at a time; 0: any number
	CardsHeld     int             `json:"cards_held"` // by the caller's
	Accounts      []AccountLimits `json:"accounts"`   // those that the caller may name
}

// AccountLimits is what an account may use, and does.
type AccountLimits struct {
	Name      string `json:"name"`
	Cards     int    `json:"cards"` // cap on what its gangs may hold at a time; 0: none
	CardsHeld int    `json:"cards_held"`
	Quota     int    `json:"quota"` // cards that are its own
	// SharePercent is its part where shares count, UsedPercent what it had of all card time of the last seven days.
	SharePercent float64 `json:"share_percent,omitempty"`
	UsedPercent  float64 `json:"used_percent"`
}
