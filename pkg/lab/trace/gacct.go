package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"gangd/pkg/api"
)

// history is `gacct --json`, as far as it is read.
type history struct {
	SchemaVersion int           `json:"schema_version"`
	Attempts      []api.Attempt `json:"attempts"`
	Jobs          []api.Job     `json:"jobs"`
}

// readGacct reads gangd's own history. A job's duration is the time of all its attempts.
func readGacct(t *Trace, r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("%s: %w", t.File, err)
	}
	var h history
	if err := json.Unmarshal(text, &h); err != nil {
		return jsonError(t.File, text, err)
	}
	if h.SchemaVersion != api.SchemaVersion {
		return &Error{File: t.File, Text: fmt.Sprintf("schema_version %d, this program reads %d", h.SchemaVersion, api.SchemaVersion)}
	}
	if h.Jobs == nil {
		return &Error{File: t.File, Text: "there is no list jobs in it: it says what the attempts asked for, write the file with this " +
			"release's gacct --json"}
	}
	ran := map[int64]time.Duration{}
	open := map[int64]bool{}
	for i := range h.Attempts {
		a := &h.Attempts[i]
		if a.EndTime.IsZero() {
			open[a.JobID] = true
		} else if a.EndTime.After(a.StartTime) {
			ran[a.JobID] += a.EndTime.Sub(a.StartTime)
		}
	}
	for i := range h.Jobs {
		j := &h.Jobs[i]
		switch {
		case open[j.JobID] || j.EndTime.IsZero():
			t.skip("has not ended")
		case ran[j.JobID] == 0:
			t.skip("never ran")
		default:
			if t.Start.IsZero() || j.SubmitTime.Before(t.Start) {
				t.Start = j.SubmitTime
			}
		}
	}
	for i := range h.Jobs {
		j := &h.Jobs[i]
		if ran[j.JobID] == 0 || open[j.JobID] || j.EndTime.IsZero() {
			continue
		}
		job := Job{ID: strconv.FormatInt(j.JobID, 10), User: j.User, Name: j.Name, Account: j.Account, Submit: j.SubmitTime.Sub(t.Start),
			Duration: ran[j.JobID], Limit: time.Duration(j.TimeLimitSeconds) * time.Second, Ranks: max(1, j.Size),
			Cards: j.GPUsPerRank, CPUs: j.CPUsPerRank, Memory: j.MemoryBytes, Priority: j.Priority}
		if j.Share {
			job.VRAM = j.VRAMBytes
		}
		t.Jobs = append(t.Jobs, job)
	}
	return nil
}

// jsonError finds the line of what encoding/json complains about.
func jsonError(file string, text []byte, err error) error {
	at := int64(len(text))
	e := &Error{File: file, Text: "not JSON: " + err.Error()}
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		at = syntax.Offset
	case errors.As(err, &typ):
		at = typ.Offset
		e.Column, e.Text = typ.Field, fmt.Sprintf("a %s, want %s", typ.Value, typ.Type)
	}
	e.Line = 1 + bytes.Count(text[:min(at, int64(len(text)))], []byte("\n"))
	return e
}
