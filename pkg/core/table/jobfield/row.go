package jobfield

import (
	"time"

	"gangd/pkg/api"
)

// Now is the wall clock, a variable so that the golden tables stand still.
var Now = time.Now

// Row is one line of a queue: a job, or the pending elements of an array folded into one.
type Row struct {
	*api.Job
	Folded  []int    // array indices, when more than this job are meant
	Reasons []string // why they wait, each once
	View    *View    // how it is shown, nil: as usual
}

// View is how a person wants values to be written.
type View struct {
	Stamp     func(time.Time) string // nil: [Stamp]
	NoConvert bool                   // sizes in MiB
	// BitLen is how many bytes a list of array indices may have, Cut how many an id with one;
	// 0: any.
	BitLen, Cut int
}

func (r *Row) stamp(t time.Time) string {
	if r.View != nil && r.View.Stamp != nil && !t.IsZero() {
		return r.View.Stamp(t)
	}
	return Stamp(t)
}
