package conf

import (
	"fmt"
	"io"
)

// Outcome is what became of one KEY=VALUE.
type Outcome int

const (
	// Taken means the same here.
	Taken Outcome = iota
	// Different is taken, with a difference that the text says.
	Different
	// None has no meaning here, and the text says why.
	None
)

func (o Outcome) String() string {
	return [...]string{"taken", "taken with a difference", "has no meaning here"}[o]
}

// Entry is what became of one KEY=VALUE of the input.
type Entry struct {
	File    string
	Line    int
	Item    Item
	Outcome Outcome
	Text    string
}

// NodeFile is the configuration of gnoded on some nodes.
type NodeFile struct {
	Name  string   // of the first node
	Nodes []string // all that it is for
	Text  string   // TOML
}

// Result is what was made of the input.
type Result struct {
	Gangd   string // TOML
	Nodes   []NodeFile
	Entries []Entry // in the order of the input
}

// Report writes a line for each entry and the counts.
func (r *Result) Report(w io.Writer) {
	var count [3]int
	for _, e := range r.Entries {
		count[e.Outcome]++
		text := ""
		if e.Text != "" {
			text = ": " + e.Text
		}
		fmt.Fprintf(w, "%s:%d: %s: %v%s\n", e.File, e.Line, e.Item, e.Outcome, text)
	}
	fmt.Fprintf(w, "%d settings: %d taken, %d taken with a difference, %d without a meaning here\n",
		len(r.Entries), count[Taken], count[Different], count[None])
}
