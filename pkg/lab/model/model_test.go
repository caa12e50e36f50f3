package model

import (
	"flag"
	"slices"
	"strings"
	"testing"
)

var depth = flag.Int("model.depth", 6, "events of each order that is gone through")

// Paths that lead to where a rule is tried, in fewer events than from the first state.
const (
	unit     = "a unit of time passes"
	sendBeat = "the node sends a beat, which is heard"
	hearEcho = "its echo comes"
)

var (
	taken    = []string{"b looks at the seat", "b asks for the seat", "b hears the answer"}
	resigned = append([]string{"a resigns"}, taken...)
	nearly   = []string{"b looks at the seat", unit, unit, sendBeat, hearEcho, unit, sendBeat, hearEcho} // the seat's time is nearly over
	runOut   = []string{unit, "b asks for the seat", "b hears the answer"}
	again    = slices.Concat(nearly, []string{"the session's controller ends, as the node sees", "a begins again"})
	words    = []string{"a is asked for a word, and gives it", "b is asked for a word, and gives it"}
	late     = slices.Concat([]string{"a asks to renew it"}, nearly, runOut)
	cut      = []string{unit, "the session is cut"}
)

// TestEveryOrder: no order of events breaks the property.
func TestEveryOrder(t *testing.T) {
	for _, path := range [][]string{nil, resigned, slices.Concat(nearly, runOut), late, slices.Concat(again, runOut), slices.Concat(again, words, runOut), cut} {
		r := Explore(Rules{}, *depth, path...)
		t.Logf("%d states, %d events deep after %d", r.States, r.Depth, len(path))
		if r.Broken != "" {
			t.Fatalf("%s:\n%s", r.Broken, strings.Join(r.Path, "\n"))
		}
	}
}

// TestClausesAreNeeded: each clause that is left out is found, from where a few events have led.
func TestClausesAreNeeded(t *testing.T) {
	for name, x := range map[string]struct {
		rules Rules
		path  []string
	}{
		"an echo by whom does not trust its seat": {Rules{EchoUntrusted: true}, slices.Concat(nearly, runOut)},
		"trust from the answer":                   {Rules{TrustAnswer: true}, late},
		"contact from the echo":                   {Rules{ContactAtEcho: true}, nil},
		"contact from the word":                   {Rules{ContactAtWord: true}, slices.Concat(again, words, runOut)},
		"one word for all":                        {Rules{OneWord: true}, slices.Concat(again, runOut)},
		"a seat taken at once":                    {Rules{TakeAtOnce: true}, taken},
		"no lease from the new leader":            {Rules{NoLease: true}, nil},
		"trust in a seat that was given up":       {Rules{KeepTrust: true}, resigned},
		"a cut taken for a death":                 {Rules{CutIsDeath: true}, cut},
	} {
		t.Run(name, func(t *testing.T) {
			r := Explore(x.rules, 7, x.path...)
			t.Logf("%d states, %d events deep: %s", r.States, r.Depth, strings.Join(r.Path, "; "))
			if r.Broken == "" {
				t.Fatal("nothing breaks")
			}
		})
	}
}
