package api

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Dependency is what a job waits for before it may be admitted.
type Dependency struct {
	// Any: one met condition is enough ("?" between them); else all are wanted (",").
	Any bool        `json:"any,omitempty"`
	On  []Condition `json:"on"`
}

// Condition is one thing that a job waits for.
type Condition struct {
	Kind  DependencyKind `json:"kind"`
	Job   int64          `json:"job,omitempty"`      // a job, or a whole array by its id; none for a singleton
	Index *int           `json:"index,omitempty"`    // one element of the array Job
	Delay time.Duration  `json:"delay_ns,omitempty"` // with after: so long after the start
}

// DependencyKind is sbatch's word for a condition.
type DependencyKind string

// The kinds. Of an array, every element is meant.
const (
	After       DependencyKind = "after"      // it has begun, or was cancelled before
	AfterAny    DependencyKind = "afterany"   // it has ended
	AfterOK     DependencyKind = "afterok"    // it has completed with 0
	AfterNotOK  DependencyKind = "afternotok" // it has ended otherwise; of an array, one element has
	AfterCorr   DependencyKind = "aftercorr"  // the element of the same index has completed with 0
	AfterSingle DependencyKind = "singleton"  // no earlier job of this name and user is left
)

// DependencyKinds are all kinds.
var DependencyKinds = []DependencyKind{After, AfterAny, AfterOK, AfterNotOK, AfterCorr, AfterSingle}

// String is the condition as sbatch and squeue write it.
func (c *Condition) String() string {
	if c.Kind == AfterSingle {
		return string(c.Kind)
	}
	s := string(c.Kind) + ":" + strconv.FormatInt(c.Job, 10)
	if c.Index != nil {
		s += "_" + strconv.Itoa(*c.Index)
	}
	if c.Delay > 0 {
		s += fmt.Sprintf("+%d", int(c.Delay.Minutes()))
	}
	return s
}

// String is the whole as sbatch reads it.
func (d *Dependency) String() string {
	parts := make([]string, len(d.On))
	for i := range d.On {
		parts[i] = d.On[i].String()
	}
	return d.Join(parts)
}

// Join writes the texts of conditions as one.
func (d *Dependency) Join(parts []string) string { return strings.Join(parts, d.sep()) }

func (d *Dependency) sep() string {
	if d.Any {
		return "?"
	}
	return ","
}

// Values of [Spec.InvalidDependency].
const (
	InvalidCancel = "cancel" // a job whose dependency can never be met ends
	InvalidWait   = "wait"   // it stays, for a person to look at
)
