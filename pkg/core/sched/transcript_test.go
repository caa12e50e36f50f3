package sched

import (
	"flag"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/plantest"
	"gangd/pkg/lab/transcript"
)

var update = flag.Bool("update", false, "write testdata/transcripts anew")

var printer = transcript.Printer{Since: plantest.Epoch0, Skip: []reflect.Type{reflect.TypeFor[*cluster.Ask](), rankType()}}

// rankType is of what follows from the rest of the terms.
func rankType() reflect.Type {
	f, _ := reflect.TypeFor[order.Terms]().FieldByName("rank")
	return f.Type
}

// planned makes a plan and writes it down: the view, what the plan decides, and what is said of each gang that waits. See
// package transcript.
func planned(t testing.TB, now time.Time, v *given.View, p *order.Policy) Plan {
	t.Helper()
	plan := Make(now, v, p)
	tr := transcript.Of(t, *update).Part()
	tr.Printf("# after %v, %s", now.Sub(plantest.Epoch0), printer.Value(p))
	for i := 0; i < len(v.Nodes); { // equal ones are written once
		text, same := nodeText(v.Nodes[i]), 1
		for i+same < len(v.Nodes) && nodeText(v.Nodes[i+same]) == text {
			same++
		}
		name := v.Nodes[i].Name
		if same > 1 {
			name += " to " + v.Nodes[i+same-1].Name
		}
		tr.Printf("node %s %s", name, text)
		i += same
	}
	for _, r := range v.Running {
		tr.Printf("runs %s", printer.Value(r))
	}
	for _, r := range v.Reservations {
		tr.Printf("reservation %s", printer.Value(r))
	}
	for _, b := range v.Backfills {
		tr.Printf("kept before %s", backfillText(&b))
	}
	tellPlan(tr, &plan)
	waits := v.Queue.Slice()
	for _, c := range waits {
		line := fmt.Sprintf("job %d %s asks %s", c.Job, printer.Value(c), printer.Value(c.Ask.Spec))
		if r, ok := plan.Reason(c.Job, v.Queue.JobClass(c.Job)); ok {
			word, _ := plan.Word(c.Job, v.Queue.JobClass(c.Job))
			line += fmt.Sprintf("\n  %s: %s", word, indented(r.Text))
			if word != r.Word {
				line += "; its word " + r.Word
			}
		}
		if len(waits) <= mostExplained {
			e := Explain(now, v, p, c.Job)
			line += fmt.Sprintf("\n  explained, %s: %s", e.Word, indented(e.Text))
		}
		tr.Printf("%s", line)
	}
	if expected := Forecast(now, v, p); len(waits) <= mostExplained {
		for _, job := range slices.Sorted(maps.Keys(expected)) {
			tr.Printf("expected of %d: %s", job, printer.Value(expected[job]))
		}
	}
	return plan
}

// mostExplained is up to how many gangs that wait each of them is explained.
const mostExplained = 6

func tellPlan(tr *transcript.Part, plan *Plan) {
	for _, s := range plan.Starts {
		slots := s.Slots
		s.Slots = nil
		tr.Printf("START %s on %s", printer.Value(s), slotsText(slots))
	}
	for _, s := range plan.Stops {
		tr.Printf("STOP %s", printer.Value(s))
	}
	for i := range plan.Backfills {
		tr.Printf("KEEP %s", backfillText(&plan.Backfills[i]))
	}
	if !plan.Next.IsZero() {
		tr.Printf("NEXT at %v", plan.Next.Sub(plantest.Epoch0))
	}
}

func backfillText(b *given.Backfill) string {
	c := *b
	c.Slots = nil
	return printer.Value(c) + " on " + slotsText(b.Slots)
}

// slotsText names the nodes with the cards of each rank there.
func slotsText(slots []cluster.Slot) string {
	var parts []string
	for _, s := range slots {
		text := s.Node
		for i, c := range s.Cards {
			text += map[bool]string{true: ":", false: ","}[i == 0] + strings.TrimPrefix(c, s.Node+"-")
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " ")
}

func nodeText(n *cluster.Node) string {
	c := *n
	c.Cards, c.Grants, c.Name = nil, nil, ""
	text := printer.Value(c)
	odd := map[string]int{}
	for _, k := range n.Cards {
		k.CardInfo = api.CardInfo{VRAMBytes: k.VRAMBytes, Model: k.Model}
		odd[printer.Value(k)]++
	}
	for _, k := range slices.Sorted(maps.Keys(odd)) {
		text += fmt.Sprintf(" %dx%s", odd[k], k)
	}
	for _, g := range n.Grants {
		text += "\n  holds " + printer.Value(g)
	}
	return text
}

func indented(s string) string { return strings.ReplaceAll(s, "\n", "\n    ") }
