package gang

import "gangd/pkg/api"

// record is what a commit adds to what was before: events with their letters, attempts, and what their members used.
type record struct {
	set   *api.Settings
	clock *clock
	jobs  *jobs
	queue *queue

	outbox   outbox
	nextSeq  int64 // of events
	events   []api.Event
	epochs   map[api.MemberKey]EpochRow
	measures []MeasureRow
}
