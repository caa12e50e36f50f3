package gang

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/lab/transcript"
)

// What a [bench] does is written down step by step: the event, its outcome, what was changed of jobs, ranks, nodes and
// timers, what each node is told, what the scheduler sees, and what a store gets. See package transcript.

// witness writes down what becomes of the world of a bench.
type witness struct {
	*transcript.Part
	was map[object]map[string]string // fields as told last
}

// object is something in the world, as one of its kind.
type object struct{ kind, name string }

var printer = transcript.Printer{Since: epoch0, Skip: []reflect.Type{reflect.TypeFor[*cluster.Ask](), reflect.TypeFor[[]api.CardInfo]()}}

// mostTold is up to how many jobs are written down: of more nobody would read it.
const mostTold = 40

var timerNames = []string{"start", "launch", "force", "eligible", "leave", "lost", "ready", "lease", "watch", "depend", "clear", "reservation", "deadline", "notify", "book", "reboot", "unsure"}

// beginTranscript has what follows written down.
func (b *bench) beginTranscript() {
	b.witness = &witness{Part: transcript.Of(b.t, *update).Part(), was: objectsOf(b.w)}
}

// unwritten has nothing written down of this world: it is drawn, or too many alike follow each other.
func (b *bench) unwritten() {
	b.witness.Drop()
	b.witness = nil
}

// asOne writes down what f does as if it were one event.
func (b *bench) asOne(what string, f func()) {
	b.t.Helper()
	tr, m := b.witness, b.w.marks()
	b.witness = nil
	f()
	b.witness = tr
	b.tell(what, Outcome{}, m)
}

// marks is how far the lists for the next Take were.
type marks struct{ events, desired, queue, steps, measures int }

func (w *World) marks() marks {
	return marks{len(w.record.events), len(w.nodes.woken), len(w.jobs.touched), len(w.steps.ended), len(w.record.measures)}
}

func eventText(ev Event) string {
	if s, ok := ev.(Submit); ok {
		s.SpecHash = ""
		ev = s
	}
	return strings.TrimSpace(strings.TrimPrefix(fmt.Sprintf("%T", ev), "gang.") + " " + printer.Value(ev))
}

func (b *bench) tell(what string, out Outcome, m marks) {
	tr := b.witness
	if tr == nil || len(b.w.jobs.byID) > mostTold {
		return
	}
	tr.Printf("%v %s", b.now.Wall.Sub(epoch0), what)
	switch {
	case out.Refused != nil:
		tr.Printf("  refused: %s", printer.Value(out.Refused))
	case out.Ignored != "":
		tr.Printf("  ignored: %s", out.Ignored)
	case out.JobIDs != nil:
		tr.Printf("  jobs %v", out.JobIDs)
	}
	for _, e := range b.w.record.events[m.events:] {
		t := e.Type
		if e.Seq, e.Type = 0, ""; e.Time.Equal(b.now.Wall) {
			e.Time = time.Time{}
		}
		tr.Printf("  event %s %s", t, printer.Value(e))
	}
	for _, s := range b.w.steps.ended[m.steps:] {
		tr.Printf("  step %s", printer.Value(s))
	}
	for _, s := range b.w.record.measures[m.measures:] {
		tr.Printf("  measure %s", printer.Value(s))
	}
	tr.changes(objectsOf(b.w))
	if names := unique(slices.Clone(b.w.nodes.woken[m.desired:])); len(names) > 0 {
		tr.Printf("  tells %s", strings.Join(names, " "))
	}
	if ids := unique(slices.Clone(b.w.jobs.touched[m.queue:])); len(ids) > 0 {
		tr.Printf("  to be planned anew: %v", ids)
	}
}

// changes writes down what is another than before; equal changes of one kind together.
func (tr *witness) changes(now map[object]map[string]string) {
	all := maps.Clone(tr.was)
	maps.Copy(all, now)
	type change struct{ kind, text string }
	of := map[change][]string{}
	var order []change
	for _, o := range slices.SortedFunc(maps.Keys(all), func(a, b object) int {
		return cmp.Or(strings.Compare(a.kind, b.kind), hostlist.Compare(a.name, b.name))
	}) {
		c := change{o.kind, fieldChanges(tr.was[o], now[o])}
		if now[o] == nil {
			c.text = "no more"
		}
		if c.text == "" || now[o] == nil && strings.HasPrefix(o.kind, "row of") {
			continue
		}
		if of[c] == nil {
			order = append(order, c)
		}
		of[c] = append(of[c], o.name)
	}
	for _, c := range order {
		tr.Printf("  %s %s: %s", c.kind, strings.Join(of[c], " "), c.text)
	}
	tr.was = now
}

func fieldChanges(was, now map[string]string) string {
	var parts []string
	for _, f := range slices.Sorted(maps.Keys(now)) {
		if was[f] != now[f] {
			parts = append(parts, f+"="+now[f])
		}
	}
	for _, f := range slices.Sorted(maps.Keys(was)) {
		if _, still := now[f]; !still {
			parts = append(parts, "no "+f)
		}
	}
	return strings.Join(parts, ", ")
}

// objectsOf is the world as it is seen from outside, by objects and their fields.
func objectsOf(w *World) map[object]map[string]string {
	out := map[object]map[string]string{}
	put := func(kind, name string, fields []transcript.Field) {
		m := map[string]string{}
		for _, f := range fields {
			if !slices.Contains([]string{"ID", "Job", "Node", "Name"}, f.Name) || f.Value != name { // by which it is called
				m[f.Name] = f.Value
			}
		}
		out[object{kind, name}] = m
	}
	if len(w.jobs.byID) > mostTold {
		return out
	}
	for id, e := range w.jobs.byID {
		name, j := fmt.Sprint(id), *e.job
		j.Past, j.Spec, j.SpecHash = new(Past), nil, ""
		*j.Past = *e.job.Past
		j.Ranks, j.Members = nil, nil
		put("job", name, printer.Fields(j))
		for r := range e.job.Ranks {
			put("rank", fmt.Sprintf("%d/%d", id, r), printer.Fields(e.job.Ranks[r]))
		}
		for _, m := range e.job.Members {
			put("member of "+name+" on", m.Node, printer.Fields(m))
		}
		if c := w.Candidate(id); c != nil {
			put("candidate", name, printer.Fields(c))
		}
		if r := w.Running(id); r != nil {
			put("running", name, printer.Fields(r))
		}
	}
	for name, h := range w.nodes.byName {
		n := *h.node
		n.Res, n.Hello = nil, api.Hello{}
		fields := printer.Fields(n)
		res := *h.node.Res
		res.Name, res.Grants, res.Cards = "", nil, nil
		for _, f := range printer.Fields(res) {
			fields = append(fields, transcript.Field{Name: "Res." + f.Name, Value: f.Value})
		}
		put("node", name, fields)
		for _, c := range h.node.Res.Cards {
			put("card", c.UUID, printer.Fields(c))
		}
		for _, g := range h.node.Res.Grants {
			key := fmt.Sprintf("%d.%d", g.Job, g.Epoch)
			g.MemberKey = api.MemberKey{}
			put("grant of "+key+" on", name, printer.Fields(g))
		}
		for _, a := range w.Desired(name) {
			key := fmt.Sprintf("%d.%d", a.Job, a.Epoch)
			if a.MemberKey = (api.MemberKey{}); a.Body != nil {
				body := *a.Body // the same for all
				a.Body = nil
				put("all members of "+key, "are told", printer.Fields(body))
				delete(out[object{"all members of " + key, "are told"}], "SpecHash")
			}
			put("desired of "+key+" on", name, printer.Fields(a))
		}
	}
	for _, r := range w.Reservations() {
		put("reservation", r.Name, printer.Fields(r))
	}
	for user, c := range w.Crontabs() {
		put("crontab of", user, printer.Fields(c))
	}
	for _, l := range w.Outbox() {
		put("letter", fmt.Sprint(l.ID), printer.Fields(l))
	}
	for k, at := range w.clock.timers.due {
		name := strings.TrimSpace(fmt.Sprintf("%d.%d %s", k.job, k.epoch, k.node))
		put("timer "+timerNames[k.kind], name, []transcript.Field{{Name: "at", Value: (at - mono0).String()}})
	}
	for k, r := range w.record.epochs {
		r.Slots, r.Booking = nil, nil // as the ranks and the job have it
		put("row of attempt", fmt.Sprintf("%d.%d", k.Job, k.Epoch), printer.Fields(r))
	}
	for k, f := range w.books.ledger {
		put("row of ledger", printer.Value(k), printer.Fields(f))
	}
	return out
}
