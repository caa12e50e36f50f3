package jobfield

import (
	"slices"

	"gangd/pkg/api"
)

// Noted is something that a job carries as it was asked for. What shows jobs goes over [Notes], or asks for one by name: who
// adds a row has it in gctl, squeue, sacct and scontrol, and in the documents that these write.
type Noted struct {
	Name string // Slurm's, and gctl's
	Line bool   // scontrol writes a line of it, where there is any, and
	End  string // this behind it
	Of   func(*api.Job) string
}

// Notes are all of them, in the order in which they are shown.
var Notes = []Noted{
	{"Comment", true, " ", func(j *api.Job) string { return j.Comment }},
	{"Extra", true, "", func(j *api.Job) string { return j.Extra }},
	{"Licenses", false, "", func(j *api.Job) string { return api.PoolText(j.Pools, "licence") }},
	{"Fail", false, "", func(j *api.Job) string { return j.Fail }},
	{"SubmitRule", false, "", func(j *api.Job) string { return api.RuleText(j.Ruled) }},
}

// Note is what a job carries under a name, empty where jobs carry nothing of that name.
func Note(name string, j *api.Job) string {
	if i := noteAt(name); i >= 0 {
		return Notes[i].Of(j)
	}
	return ""
}

// HasNote reports whether jobs can carry something of a name.
func HasNote(name string) bool { return noteAt(name) >= 0 }

func noteAt(name string) int {
	return slices.IndexFunc(Notes, func(n Noted) bool { return n.Name == name })
}

// note is the field that shows it.
func note(letter byte, names []string, head, name string) Field {
	return text(letter, names, head, func(r *Row) string { return OrNull(Note(name, r.Job)) })
}
