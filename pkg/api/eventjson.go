package api

import "encoding/json"

// MarshalJSON writes what the outside contract names for each type of event, a zero too: a
// script that reads the seconds of a drain must find them when it took none.
func (e Event) MarshalJSON() ([]byte, error) {
	type plain Event
	out := struct {
		plain
		Trigger json.RawMessage `json:"trigger,omitempty"`
		Moved   *int            `json:"moved,omitempty"`
		Forced  *bool           `json:"forced,omitempty"`
		Seconds *float64        `json:"seconds,omitempty"`
	}{plain: plain(e)}
	if e.Moved != 0 || e.Type == EventDrainStarted {
		out.Moved = &e.Moved
	}
	if e.Forced || e.Type == EventMemberStopped {
		out.Forced = &e.Forced
	}
	if e.Seconds != 0 || e.Type == EventDrainCompleted || e.Type == EventStarted {
		out.Seconds = &e.Seconds
	}
	if e.Trigger != nil || e.Type == EventDrainStarted {
		b, err := json.Marshal(e.Trigger) // null: no rank began it
		if err != nil {
			return nil, err
		}
		out.Trigger = b
	}
	return json.Marshal(out)
}
