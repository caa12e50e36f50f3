package gang

import (
	"cmp"
	"fmt"
	"strings"

	"gangd/pkg/api"
)

//go:generate go test -run TestStateTableFileIsCurrent -update .

// GangState is a column of [Table].
type GangState string

// The states of a gang, finer than what people see.
const (
	GangNone     GangState = "unknown"  // no such job, or it left memory
	GangBlocked  GangState = "blocked"  // a candidate
	GangHeld     GangState = "held"     // blocked, and someone holds it
	GangDeferred GangState = "deferred" // blocked, its begin time or back-off has not passed
	GangBarred   GangState = "barred"   // blocked, a past epoch may still run somewhere
	GangReserved GangState = "reserved" // some members are not ready
	GangStarting GangState = "starting" // the gate is open, some members were not seen running
	GangRunning  GangState = "running"
	GangDraining GangState = "draining"
	GangClosing  GangState = "closing" // every rank is done, a member has still to prove that it is empty
	GangEnded    GangState = "ended"
)

// GangStates are the columns of [Table].
var GangStates = []GangState{GangNone, GangBlocked, GangHeld, GangDeferred, GangBarred, GangReserved, GangStarting,
	GangRunning, GangDraining, GangClosing, GangEnded}

// Result is what becomes of an event.
type Result string

// The results of a step.
const (
	Applied Result = "applied"
	Ignored Result = "ignored" // a repeat, or nothing to be done
	Refused Result = "refused" // not allowed; nothing changed
)

// Cell is what an event does in a state.
type Cell struct {
	Result Result
	Detail string    // why it is ignored, or the code of the refusal
	Next   GangState // the state afterwards
}

// TableRow is one event against every state.
type TableRow struct {
	Event string
	Cells []Cell // by GangStates
}

func to(s GangState) Cell   { return Cell{Result: Applied, Next: s} }
func skip(why string) Cell  { return Cell{Result: Ignored, Detail: why} }
func no(code api.Code) Cell { return Cell{Result: Refused, Detail: string(code)} }

// stay is applied without a change of the gang's state.
var stay = to("")

func each(c Cell) []Cell {
	cells := make([]Cell, len(GangStates))
	for i := range cells {
		cells[i] = c
	}
	return cells
}

// row completes the cells in which nothing changes.
func row(event string, cells ...Cell) TableRow {
	for i := range cells {
		if cells[i].Next == "" && i < len(GangStates) {
			cells[i].Next = GangStates[i]
		}
	}
	return TableRow{event, cells}
}

// RankMoves says which states a rank can be in after one step, by the state before it. A
// step often makes several moves of the picture in doc.go at once: the last ack of a drain
// takes a rank from preempting over preempted to blocked.
var RankMoves = map[api.RankState][]api.RankState{
	"":                 {api.RankBlocked, api.RankCancelled}, // submitted; its dependency can never be met
	api.RankBlocked:    {api.RankReserved, api.RankRunning, api.RankCancelled},
	api.RankReserved:   {api.RankBlocked, api.RankRunning, api.RankCancelled, api.RankFailed},
	api.RankRunning:    {api.RankPreempting, api.RankPreempted, api.RankDone, api.RankFailed, api.RankCancelled, api.RankBlocked},
	api.RankPreempting: {api.RankPreempted, api.RankDone, api.RankFailed, api.RankCancelled, api.RankBlocked},
	api.RankPreempted:  {api.RankBlocked, api.RankDone, api.RankFailed, api.RankCancelled},
	api.RankFailed:     {api.RankBlocked, api.RankCancelled}, // its gang has budget left; and is at its deadline by then
	api.RankDone:       {api.RankBlocked},                    // its ended gang is queued again
	api.RankCancelled:  {api.RankBlocked},
}

// TableText is the table as docs/state-table.md has it.
func TableText() string {
	var b strings.Builder
	b.WriteString("# States and events of a gang\n\nGenerated from `pkg/core/gang/statetable_test.go` by `go generate ./pkg/core/gang`; a test walks every cell.\n\n" +
		"The job has two ranks on two nodes, which have two hours to be ready; an event of a member or node is that of\n" +
		"rank 1's. A cell is the state afterwards, or *why the event is ignored*, or the **code** with which it is refused;\nthen nothing changes.\n\n")
	b.WriteString("| event |")
	for _, s := range GangStates {
		fmt.Fprintf(&b, " %s |", s)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(GangStates)) + "\n")
	for _, r := range Table {
		fmt.Fprintf(&b, "| %s |", r.Event)
		for _, c := range r.Cells {
			fmt.Fprintf(&b, " %s |", c)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n## Ranks\n\nThe state of a rank after one step, by the state before it.\n\n| before | after |\n|---|---|\n")
	for _, s := range append([]api.RankState{""}, api.RankStates...) {
		next := make([]string, len(RankMoves[s]))
		for i, n := range RankMoves[s] {
			next[i] = string(n)
		}
		fmt.Fprintf(&b, "| %s | %s |\n", cmp.Or(string(s), "submitted"), cmp.Or(strings.Join(next, ", "), "for good"))
	}
	return b.String()
}

func (c Cell) String() string {
	switch c.Result {
	case Ignored:
		return "*" + c.Detail + "*"
	case Refused:
		return "**" + c.Detail + "**"
	}
	return string(c.Next)
}

// Table is every event against every state; its cells are in the order of [GangStates].
var Table = []TableRow{
	row("submit again (same key)",
		to(GangBlocked), skip("already submitted"), skip("already submitted"), skip("already submitted"),
		skip("already submitted"), skip("already submitted"), skip("already submitted"), skip("already submitted"),
		skip("already submitted"), skip("already submitted"), skip("already submitted"),
	),
	row("reserve",
		no(api.CodeNotFound), to(GangReserved), no(api.CodeConflict), no(api.CodeConflict), no(api.CodeConflict),
		no(api.CodeConflict), no(api.CodeConflict), no(api.CodeConflict), no(api.CodeConflict), no(api.CodeConflict),
		no(api.CodeAlreadyEnded),
	),
	row("cancel",
		no(api.CodeNotFound), to(GangEnded), to(GangEnded), to(GangEnded), to(GangEnded), to(GangEnded),
		to(GangDraining), to(GangDraining), stay, skip("every rank has ended by itself"), no(api.CodeAlreadyEnded),
	),
	row("hold",
		no(api.CodeNotFound), to(GangHeld), skip("already held"), to(GangHeld), to(GangHeld), stay,
		stay, stay, stay, stay,
		no(api.CodeAlreadyEnded),
	),
	row("hold by an admin",
		no(api.CodeNotFound), to(GangHeld), stay, to(GangHeld), to(GangHeld), stay,
		stay, stay, stay, stay,
		no(api.CodeAlreadyEnded),
	),
	row("release",
		no(api.CodeNotFound), skip("not held"), to(GangBlocked), skip("not held"), skip("not held"),
		skip("not held"), skip("not held"), skip("not held"), skip("not held"), skip("not held"),
		no(api.CodeAlreadyEnded),
	),
	row("requeue, also what has ended",
		no(api.CodeNotFound), skip("already waiting"), skip("already waiting"), skip("already waiting"),
		skip("already waiting"), to(GangBlocked), to(GangDraining), to(GangDraining),
		skip("already being stopped: preempted"), skip("already being stopped: completed"), to(GangDeferred),
	),
	row("requeue",
		no(api.CodeNotFound), skip("already waiting"), skip("already waiting"), skip("already waiting"),
		skip("already waiting"), to(GangBlocked), to(GangDraining), to(GangDraining),
		skip("already being stopped: preempted"), skip("already being stopped: completed"), no(api.CodeAlreadyEnded),
	),
	row("update",
		no(api.CodeNotFound), stay, stay, stay, stay, stay, stay, stay, no(api.CodeConflict), no(api.CodeConflict),
		no(api.CodeAlreadyEnded),
	),
	row("deadline in 30 min set",
		no(api.CodeNotFound), stay, stay, no(api.CodeConflict), stay, stay, stay, stay, no(api.CodeConflict), no(api.CodeConflict),
		no(api.CodeAlreadyEnded),
	),
	row("deadline passes",
		skip("no timer is due"), to(GangEnded), to(GangEnded), to(GangEnded), to(GangEnded), to(GangEnded),
		skip("no timer is due"), skip("no timer is due"), skip("no timer is due"), skip("no timer is due"), skip("no timer is due"),
	),
	row("preempt",
		no(api.CodeNotFound), skip("already waiting"), skip("already waiting"), skip("already waiting"),
		skip("already waiting"), to(GangBlocked), to(GangDraining), to(GangDraining),
		skip("already being stopped: preempted"), skip("already being stopped: completed"), no(api.CodeAlreadyEnded),
	),
	row("member preparing",
		no(api.CodeStaleEpoch), no(api.CodeStaleEpoch), no(api.CodeStaleEpoch), no(api.CodeStaleEpoch),
		no(api.CodeStaleEpoch), skip("known to be preparing"), skip("known to be preparing"),
		skip("known to be preparing"), skip("known to be preparing"), skip("known to be preparing"),
		no(api.CodeStaleEpoch),
	),
	row("member ready",
		no(api.CodeStaleEpoch), no(api.CodeStaleEpoch), no(api.CodeStaleEpoch), no(api.CodeStaleEpoch),
		no(api.CodeStaleEpoch), to(GangStarting), skip("known to be ready"), skip("known to be ready"),
		skip("known to be ready"), skip("known to be ready"), no(api.CodeStaleEpoch),
	),
	row("member refused (node)",
		skip("recorded already"), skip("recorded already"), skip("recorded already"), skip("recorded already"),
		to(GangBlocked), to(GangBlocked), to(GangDraining), to(GangDraining), stay, to(GangEnded),
		skip("recorded already"),
	),
	row("member refused (job)",
		skip("recorded already"), skip("recorded already"), skip("recorded already"), skip("recorded already"),
		to(GangBlocked), to(GangDeferred), to(GangDraining), to(GangDraining), stay, to(GangEnded),
		skip("recorded already"),
	),
	row("member running",
		no(api.CodeStaleEpoch), no(api.CodeStaleEpoch), no(api.CodeStaleEpoch), no(api.CodeStaleEpoch),
		no(api.CodeStaleEpoch), to(GangBarred), to(GangRunning), skip("nothing new"), skip("nothing new"),
		skip("nothing new"), no(api.CodeStaleEpoch),
	),
	row("rank exits with 0",
		no(api.CodeStaleEpoch), no(api.CodeStaleEpoch), no(api.CodeStaleEpoch), no(api.CodeStaleEpoch),
		no(api.CodeStaleEpoch), to(GangBarred), to(GangRunning), stay, stay, skip("nothing new"),
		no(api.CodeStaleEpoch),
	),
	row("rank exits with 1",
		no(api.CodeStaleEpoch), no(api.CodeStaleEpoch), no(api.CodeStaleEpoch), no(api.CodeStaleEpoch),
		no(api.CodeStaleEpoch), to(GangBarred), to(GangDraining), to(GangDraining), stay, skip("nothing new"),
		no(api.CodeStaleEpoch),
	),
	row("time limit reached",
		no(api.CodeStaleEpoch), no(api.CodeStaleEpoch), no(api.CodeStaleEpoch), no(api.CodeStaleEpoch),
		no(api.CodeStaleEpoch), to(GangBarred), to(GangDraining), to(GangDraining), stay, stay,
		no(api.CodeStaleEpoch),
	),
	row("member stopped, exits known",
		skip("recorded already"), skip("recorded already"), skip("recorded already"), skip("recorded already"),
		to(GangBlocked), to(GangBlocked), to(GangRunning), stay, stay, to(GangEnded), skip("recorded already"),
	),
	row("member stopped, exits unknown",
		skip("recorded already"), skip("recorded already"), skip("recorded already"), skip("recorded already"),
		to(GangBlocked), to(GangBlocked), to(GangDraining), to(GangDraining), stay, to(GangEnded),
		skip("recorded already"),
	),
	row("member stuck",
		no(api.CodeStaleEpoch), no(api.CodeStaleEpoch), no(api.CodeStaleEpoch), no(api.CodeStaleEpoch), stay,
		to(GangBarred), to(GangRunning), stay, stay, stay, no(api.CodeStaleEpoch),
	),
	row("member lost",
		skip("recorded already"), skip("recorded already"), skip("recorded already"), skip("recorded already"),
		to(GangBlocked), to(GangBlocked), to(GangDraining), to(GangDraining), stay, to(GangEnded),
		skip("recorded already"),
	),
	row("member gone",
		skip("known to be gone"), skip("known to be gone"), skip("known to be gone"), skip("known to be gone"),
		to(GangBlocked), to(GangBlocked), to(GangDraining), to(GangDraining), stay, to(GangEnded),
		skip("known to be gone"),
	),
	row("another epoch is ready", each(no(api.CodeStaleEpoch))...),
	row("another epoch stopped",
		skip("recorded already"), skip("recorded already"), skip("recorded already"), skip("recorded already"),
		skip("recorded already"), no(api.CodeStaleEpoch), no(api.CodeStaleEpoch), no(api.CodeStaleEpoch),
		no(api.CodeStaleEpoch), no(api.CodeStaleEpoch), skip("recorded already"),
	),
	row("node says hello without it",
		stay, stay, stay, stay, to(GangBlocked), stay, to(GangDraining), to(GangDraining), stay, to(GangEnded), stay,
	),
	row("node rebooted",
		stay, stay, stay, stay, to(GangBlocked), stay, to(GangDraining), to(GangDraining), stay, to(GangEnded), stay,
	),
	row("session cut",
		stay, stay, stay, stay, stay, stay, stay, stay, stay, stay, stay,
	),
	row("node lost",
		stay, stay, stay, stay, stay, to(GangBlocked), to(GangDraining), to(GangDraining), stay, to(GangEnded), stay,
	),
	row("lost node fenced",
		skip("nothing is waited for on this node"), skip("nothing is waited for on this node"),
		skip("nothing is waited for on this node"), skip("nothing is waited for on this node"), to(GangBlocked),
		to(GangBlocked), to(GangDraining), to(GangDraining), stay, to(GangEnded),
		skip("nothing is waited for on this node"),
	),
	row("node fenced", each(no(api.CodeConflict))...),
	row("node drained by an admin", each(stay)...),
	row("node resumed", each(skip("in service already"))...),
	row("cards sampled", each(stay)...),
	row("rank saved a checkpoint",
		no(api.CodeNotFound), no(api.CodeStaleEpoch), no(api.CodeStaleEpoch), no(api.CodeStaleEpoch), no(api.CodeStaleEpoch),
		no(api.CodeStaleEpoch), stay, stay, stay, no(api.CodeConflict), no(api.CodeStaleEpoch),
	),
	row("rank acknowledged the stop",
		skip("nothing to acknowledge"), skip("nothing to acknowledge"), skip("nothing to acknowledge"), skip("nothing to acknowledge"),
		skip("nothing to acknowledge"), skip("nothing to acknowledge"), skip("nothing to acknowledge"), skip("nothing to acknowledge"),
		stay, stay, skip("nothing to acknowledge"),
	),
	row("rank is silent",
		skip("not running"), skip("not running"), skip("not running"), skip("not running"), skip("not running"),
		skip("not running"), stay, stay, skip("not running"), skip("not running"), skip("not running"),
	),
	row("rank says it is ready",
		skip("no ready gate waits for it"), skip("no ready gate waits for it"), skip("no ready gate waits for it"),
		skip("no ready gate waits for it"), skip("no ready gate waits for it"), skip("no ready gate waits for it"), stay, stay,
		skip("no ready gate waits for it"), skip("no ready gate waits for it"), skip("no ready gate waits for it"),
	),
	row("step begins",
		no(api.CodeNotFound), no(api.CodeConflict), no(api.CodeConflict), no(api.CodeConflict), no(api.CodeConflict),
		no(api.CodeConflict), stay, stay, no(api.CodeConflict), no(api.CodeConflict), no(api.CodeAlreadyEnded),
	),
	row("step is ended",
		no(api.CodeNotFound), no(api.CodeConflict), no(api.CodeConflict), no(api.CodeConflict), no(api.CodeConflict),
		no(api.CodeConflict), stay, stay, no(api.CodeConflict), no(api.CodeConflict), no(api.CodeAlreadyEnded),
	),
	row("step is over on its node",
		no(api.CodeStaleEpoch), no(api.CodeStaleEpoch), no(api.CodeStaleEpoch), no(api.CodeStaleEpoch),
		no(api.CodeStaleEpoch), to(GangBarred), to(GangRunning), stay, stay, stay, no(api.CodeStaleEpoch),
	),
	row("tick, nothing due", each(skip("no timer is due"))...),
	row("30 s pass",
		skip("no timer is due"), skip("no timer is due"), skip("no timer is due"), skip("no timer is due"),
		skip("no timer is due"), to(GangBlocked), to(GangDraining), stay, skip("no timer is due"),
		skip("no timer is due"), skip("no timer is due"),
	),
	row("45 s pass",
		skip("no timer is due"), skip("no timer is due"), skip("no timer is due"), skip("no timer is due"),
		skip("no timer is due"), to(GangBlocked), to(GangDraining), stay, to(GangBarred), to(GangEnded),
		skip("no timer is due"),
	),
	row("1 h passes",
		skip("no timer is due"), skip("no timer is due"), skip("no timer is due"), to(GangBlocked),
		skip("no timer is due"), to(GangBlocked), to(GangDraining), stay, to(GangBarred), to(GangEnded),
		to(GangNone),
	),
	row("3 h pass",
		skip("no timer is due"), skip("no timer is due"), skip("no timer is due"), to(GangBlocked),
		skip("no timer is due"), to(GangBlocked), to(GangDraining), to(GangDraining), to(GangBarred), to(GangEnded),
		to(GangNone),
	),
}
