package supervise

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gangd/pkg/api"
)

const s = time.Second

// at is an instant n after the origin on both clocks.
func at(d time.Duration) Instant { return Instant{Mono: d, Boot: d + 1000*s} }

func kinds(acts []Act) []ActKind {
	out := []ActKind{}
	for _, a := range acts {
		out = append(out, a.Kind)
	}
	return out
}

type move struct {
	at   time.Duration
	in   Input
	want []ActKind
}

func order(cause api.Cause, lead, grace time.Duration) Order {
	return Order{api.Stop{Cause: cause, Signal: "TERM", Lead: lead, Grace: grace}}
}

func dumpOrder(dump time.Duration) Order {
	return Order{api.Stop{Cause: "stalled", Signal: "TERM", Dump: dump, Grace: 15 * s}}
}

func TestSequences(t *testing.T) {
	notice := &api.Notice{Signal: "USR1", Lead: 10 * s, Scope: api.ScopeRanks}
	base := Config{Ranks: []int{0, 1}, StopSignal: "TERM", Grace: 15 * s}
	limited, noticed, leased := base, base, base
	limited.TimeLimit, limited.Notice = 60*s, notice
	noticed.Notice = notice
	leased.Lease = 600 * s
	looked := base
	looked.TimeLimit, looked.Look = 60*s, true
	script := noticed
	script.Ranks = []int{0}
	hasty, holder := script, script
	hasty.Grace, holder.Ranks, holder.Notice = 0, nil, &api.Notice{Signal: "USR1", Lead: 10 * s, Scope: api.ScopeBatch}
	extended, longer := base, base
	extended.GraceMax = 30 * s
	longer.GraceMax = 60 * s
	cases := []struct {
		name   string
		cfg    Config
		moves  []move
		state  State
		cause  api.Cause
		forced bool
	}{
		{"natural end", base, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {0, Go{}, nil}, {s, Exited{0}, []ActKind{Tell}}, {s, Exited{0}, nil},
			{2 * s, Exited{1}, []ActKind{Prove}}, {2 * s, Empty{}, []ActKind{Finish}}, {3 * s, order("cancelled", 0, s), nil},
		}, Stopped, "", false},
		{"leftovers are killed at once", base, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {s, Exited{0}, []ActKind{Tell}}, {s, Exited{1}, []ActKind{Prove}},
			{s, Occupied{}, []ActKind{Kill, Tell}}, {s, Tick{}, nil}, {s + time.Millisecond, Tick{}, []ActKind{Prove}},
			{s + time.Millisecond, Empty{}, []ActKind{Finish}},
		}, Stopped, "", false},
		{"stop before go", base, []move{
			{0, order("cancelled", 5*s, 15*s), []ActKind{Prove}}, {0, Empty{}, []ActKind{Finish}}, {0, Go{}, nil},
		}, Stopped, "cancelled", false},
		{"a lead that is ended early: all have saved", noticed, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {s, order("requeued", 60*s, 15*s), []ActKind{Notify, Tell}},
			{5 * s, order("requeued", 0, 15*s), []ActKind{Stop, Tell}}, {6 * s, order("requeued", 0, 15*s), nil},
			{7 * s, Exited{0}, []ActKind{Tell}}, {7 * s, Exited{1}, []ActKind{Prove}}, {7 * s, Empty{}, []ActKind{Finish}},
		}, Stopped, "requeued", false},
		{"in a lead one rank ends: the other keeps its time", noticed, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {s, order("requeued", 60*s, 15*s), []ActKind{Notify, Tell}},
			{5 * s, Exited{0}, []ActKind{Tell}}, {60 * s, Tick{}, nil}, {61 * s, Tick{}, []ActKind{Stop, Tell}},
		}, Stopping, "requeued", false},
		{"in a lead all ranks end: nobody is waited for", noticed, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {s, order("requeued", 60*s, 15*s), []ActKind{Notify, Tell}},
			{5 * s, Exited{0}, []ActKind{Tell}}, {6 * s, Exited{1}, []ActKind{Prove}}, {6 * s, Empty{}, []ActKind{Finish}},
		}, Stopped, "requeued", false},
		{"in a lead all ranks end, and leave something behind", noticed, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {s, order("requeued", 60*s, 15*s), []ActKind{Notify, Tell}},
			{5 * s, Exited{0}, []ActKind{Tell}}, {6 * s, Exited{1}, []ActKind{Prove}}, {6 * s, Occupied{}, []ActKind{Kill, Tell}},
			{6*s + time.Millisecond, Tick{}, []ActKind{Prove}}, {6*s + time.Millisecond, Empty{}, []ActKind{Finish}},
		}, Stopped, "requeued", false},
		{"stop, grace, kill, stuck", base, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {s, order("preempted", 0, 15*s), []ActKind{Stop, Tell}},
			{5 * s, order("cancelled", 0, 15*s), nil}, {16*s - 1, Tick{}, nil}, {16 * s, Tick{}, []ActKind{Kill, Tell}},
			{17 * s, Tick{}, []ActKind{Prove}}, {17 * s, Occupied{}, []ActKind{Kill}}, {18 * s, Tick{}, []ActKind{Stuck, Tell}},
			{19 * s, Exited{0}, []ActKind{Tell}}, {19 * s, Empty{}, nil}, {20 * s, Exited{1}, []ActKind{Prove}}, {20 * s, Empty{}, []ActKind{Finish}},
		}, Stopped, "preempted", true},
		{"shorter grace shortens", base, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {0, order("preempted", 0, 15*s), []ActKind{Stop, Tell}},
			{s, order("cancelled", 0, 2*s), nil}, {2 * s, order("cancelled", 0, 2*s), nil}, {3 * s, Tick{}, []ActKind{Kill, Tell}},
		}, Killing, "preempted", true},
		{"no time at all, after an order with a lead", base, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {0, order("preempted", 0, 15*s), []ActKind{Stop, Tell}},
			{s, order("cancelled", 20*s, 0), nil}, {2 * s, order("cancelled", 0, 0), []ActKind{Kill, Tell}},
		}, Killing, "preempted", true},
		{"a rank extends the grace, to the most allowed", extended, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {0, Extend{99 * s}, nil}, {0, order("preempted", 0, 15*s), []ActKind{Stop, Tell}},
			{10 * s, Extend{10 * s}, nil}, {15 * s, Tick{}, nil}, {16 * s, order("preempted", 0, 15*s), nil}, {18 * s, Extend{s}, nil},
			{19 * s, Extend{99 * s}, nil}, {30*s - 1, Tick{}, nil}, {30 * s, Tick{}, []ActKind{Kill, Tell}}, {30 * s, Extend{99 * s}, nil},
			{31 * s, Tick{}, []ActKind{Prove}},
		}, Killing, "preempted", true},
		{"an extension that was not allowed", base, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {0, order("preempted", 0, 15*s), []ActKind{Stop, Tell}},
			{10 * s, Extend{10 * s}, nil}, {15 * s, Tick{}, []ActKind{Kill, Tell}},
		}, Killing, "preempted", true},
		{"a look before the time limit, which nobody waits for", looked, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {59*s - 1, Tick{}, nil}, {59 * s, Tick{}, []ActKind{Look}}, {59 * s, Tick{}, nil},
			{60 * s, Tick{}, []ActKind{Stop, Tell}}, {61 * s, Tick{}, nil},
		}, Stopping, "timeout", false},
		{"a limit that is moved is looked at anew, one that is gone never", looked, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {59 * s, Tick{}, []ActKind{Look}}, {59 * s, Limit{90 * s}, []ActKind{Tell}},
			{60 * s, Tick{}, nil}, {89 * s, Tick{}, []ActKind{Look}}, {89 * s, Limit{}, []ActKind{Tell}}, {95 * s, Tick{}, nil},
		}, Running, "", false},
		{"a limit that is over at once, and a stop before it, are not looked at", looked, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {10 * s, order("cancelled", 0, 60*s), []ActKind{Stop, Tell}}, {59 * s, Tick{}, nil},
		}, Stopping, "cancelled", false},
		{"stacks first, and no longer than it takes", base, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {0, dumpOrder(5 * s), []ActKind{Dump, Tell}}, {s, dumpOrder(5 * s), nil},
			{2 * s, Dumped{}, []ActKind{Stop, Tell}}, {2 * s, Dumped{}, nil}, {17*s - 1, Tick{}, nil}, {17 * s, Tick{}, []ActKind{Kill, Tell}},
		}, Killing, "stalled", true},
		{"stacks that take too long", base, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {0, dumpOrder(5 * s), []ActKind{Dump, Tell}}, {4 * s, dumpOrder(5 * s), nil},
			{5*s - 1, Tick{}, nil}, {5 * s, Tick{}, []ActKind{Stop, Tell}}, {6 * s, Dumped{}, nil}, {20 * s, Tick{}, []ActKind{Kill, Tell}},
		}, Killing, "stalled", true},
		{"who can't wait does not wait for stacks", base, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {0, dumpOrder(5 * s), []ActKind{Dump, Tell}}, {s, order("cancelled", 0, 15*s), []ActKind{Stop, Tell}},
		}, Stopping, "stalled", false},
		{"no stacks of what has not begun", base, []move{
			{0, dumpOrder(5 * s), []ActKind{Prove}}, {0, Empty{}, []ActKind{Finish}},
		}, Stopped, "stalled", false},
		{"no grace", base, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {s, order("cancelled", 0, 0), []ActKind{Kill, Tell}},
		}, Killing, "cancelled", true},
		{"in a stop leftovers may use the grace", base, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {0, order("preempted", 0, 15*s), []ActKind{Stop, Tell}}, {s, Exited{0}, []ActKind{Tell}},
			{s, Exited{1}, []ActKind{Prove}}, {s, Occupied{}, nil}, {2 * s, Tick{}, []ActKind{Prove}}, {2 * s, Empty{}, []ActKind{Finish}},
		}, Stopped, "preempted", false},
		{"time limit with notice", limited, []move{
			{5 * s, Go{}, []ActKind{Start, Tell}}, {54 * s, Tick{}, nil}, {55 * s, Tick{}, []ActKind{Notify, Tell}}, {56 * s, Tick{}, nil},
			{65 * s, Tick{}, []ActKind{Stop, Tell}}, {80 * s, Tick{}, []ActKind{Kill, Tell}},
		}, Killing, api.CauseTimeout, true},
		{"notice once, by order or by limit", limited, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {50 * s, Tick{}, []ActKind{Notify, Tell}}, {51 * s, order("preempted", 30*s, s), []ActKind{Tell}},
			{60 * s, Tick{}, []ActKind{Stop, Tell}},
		}, Stopping, "preempted", false},
		{"a longer limit takes the notice back, and gives another", limited, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {0, Limit{60 * s}, nil}, {50 * s, Tick{}, []ActKind{Notify, Tell}}, {55 * s, Limit{100 * s}, []ActKind{Recant, Tell}},
			{60 * s, Tick{}, nil}, {90*s - 1, Tick{}, nil}, {90 * s, Tick{}, []ActKind{Notify, Tell}}, {100*s - 1, Tick{}, nil}, {100 * s, Tick{}, []ActKind{Stop, Tell}},
		}, Stopping, api.CauseTimeout, false},
		{"a limit that is still in sight is not told again", limited, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {50 * s, Tick{}, []ActKind{Notify, Tell}}, {55 * s, Limit{62 * s}, []ActKind{Tell}},
			{60 * s, Tick{}, nil}, {62 * s, Tick{}, []ActKind{Stop, Tell}},
		}, Stopping, api.CauseTimeout, false},
		{"a limit cut to now keeps the lead", limited, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {30 * s, Limit{20 * s}, []ActKind{Notify, Tell, Tell}}, {40*s - 1, Tick{}, nil}, {40 * s, Tick{}, []ActKind{Stop, Tell}},
		}, Stopping, api.CauseTimeout, false},
		{"a limit cut to now, without notice", base, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {30 * s, Limit{20 * s}, []ActKind{Stop, Tell, Tell}}, {31 * s, Limit{99 * s}, nil}, {45 * s, Tick{}, []ActKind{Kill, Tell}},
		}, Killing, api.CauseTimeout, true},
		{"no limit any more", limited, []move{
			{0, Limit{0}, nil}, {0, Go{}, []ActKind{Start, Tell}}, {99 * s, Tick{}, nil}, {99 * s, Limit{200 * s}, []ActKind{Tell}}, {190 * s, Tick{}, []ActKind{Notify, Tell}},
		}, Running, "", false},
		{"lead, then a cancel without one", noticed, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {s, order("preempted", 10*s, 15*s), []ActKind{Notify, Tell}}, {2 * s, order("preempted", 10*s, 15*s), nil},
			{3 * s, order("cancelled", 0, 15*s), []ActKind{Stop, Tell}},
		}, Stopping, "preempted", false},
		{"own end during the lead keeps the result", noticed, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {s, order("preempted", 10*s, 15*s), []ActKind{Notify, Tell}}, {2 * s, Exited{0}, []ActKind{Tell}},
			{2 * s, Exited{1}, []ActKind{Prove}}, {2 * s, Empty{}, []ActKind{Finish}},
		}, Stopped, "preempted", false},
		{"lease", leased, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {500 * s, Renewed{600 * s}, nil}, {1099 * s, Tick{}, nil}, {1100 * s, Tick{}, []ActKind{Stop, Tell}},
			{1101 * s, Renewed{600 * s}, nil}, {1115 * s, Tick{}, []ActKind{Kill, Tell}},
		}, Killing, api.CauseNodeLost, true},
		{"frozen beyond the lease and its grace", leased, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {616 * s, Tick{}, []ActKind{Kill, Tell}},
		}, Killing, api.CauseNodeLost, true},
		{"frozen in a stop beyond the lease's end", leased, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {s, order("preempted", 0, 3600*s), []ActKind{Stop, Tell}},
			{500 * s, Renewed{600 * s}, nil}, {1114 * s, Tick{}, nil}, {1115 * s, Tick{}, []ActKind{Kill, Tell}},
		}, Killing, "preempted", true},
		{"a limit removed after the notice is taken back", limited, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {50 * s, Tick{}, []ActKind{Notify, Tell}}, {55 * s, Limit{}, []ActKind{Recant, Tell}},
			{99 * s, Tick{}, nil}, {99 * s, Limit{200 * s}, []ActKind{Tell}}, {190 * s, Tick{}, []ActKind{Notify, Tell}},
		}, Running, "", false},
		{"in a lead a later order gives no longer grace", base, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {0, order("preempted", 10*s, 5*s), []ActKind{Tell}}, {s, order("preempted", 20*s, 15*s), nil},
			{10 * s, Tick{}, []ActKind{Stop, Tell}}, {15*s - 1, Tick{}, nil}, {15 * s, Tick{}, []ActKind{Kill, Tell}},
		}, Killing, "preempted", true},
		{"in a stop a later order raises no earlier one's grace", longer, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {0, order("preempted", 0, 15*s), []ActKind{Stop, Tell}}, {s, order("preempted", 20*s, 2*s), nil},
			{2 * s, order("preempted", 0, 10*s), nil}, {3 * s, Extend{50 * s}, nil}, {4 * s, order("preempted", 20*s, 5*s), nil},
			{5 * s, order("preempted", 5*s, 10*s), nil}, {30 * s, Tick{}, nil}, {53*s - 1, Tick{}, nil}, {53 * s, Tick{}, []ActKind{Kill, Tell}},
		}, Killing, "preempted", true},
		{"while ranks live nobody looks whether all is empty", base, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {0, order("preempted", 0, 15*s), []ActKind{Stop, Tell}}, {s, Occupied{}, nil}, {2 * s, Tick{}, nil},
		}, Stopping, "preempted", false},
		{"what is stuck is looked at rarely", base, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {0, order("cancelled", 0, 0), []ActKind{Kill, Tell}}, {s, Occupied{}, []ActKind{Kill}},
			{2 * s, Tick{}, []ActKind{Stuck, Tell}}, {2 * s, Tick{}, []ActKind{Prove}}, {2 * s, Occupied{}, []ActKind{Kill}},
			{2*s + probeStuck - 1, Tick{}, nil}, {2*s + probeStuck, Tick{}, []ActKind{Prove}},
		}, Killing, "cancelled", true},
		{"a rank that was never started does not exit", base, []move{
			{0, Exited{0}, nil}, {0, Go{}, []ActKind{Start, Tell}}, {s, Exited{1}, []ActKind{Tell}}, {2 * s, Exited{0}, []ActKind{Prove}},
		}, Running, "", false},
		{"in a lead a shorter grace counts", base, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {0, order("preempted", 10*s, 15*s), []ActKind{Tell}}, {s, order("preempted", 10*s, 3*s), nil},
			{10 * s, Tick{}, []ActKind{Stop, Tell}}, {13*s - 1, Tick{}, nil}, {13 * s, Tick{}, []ActKind{Kill, Tell}},
		}, Killing, "preempted", true},
		{"a repeat takes back nothing that a rank was given on top", longer, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {5 * s, order("preempted", 0, 15*s), []ActKind{Stop, Tell}}, {10 * s, Extend{99 * s}, nil},
			{11 * s, order("preempted", 0, 15*s), nil}, {65*s - 1, Tick{}, nil}, {65 * s, Tick{}, []ActKind{Kill, Tell}},
		}, Killing, "preempted", true},
		{"who has no grace left can't extend it", longer, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {0, order("preempted", 0, 15*s), []ActKind{Stop, Tell}}, {s, order("cancelled", 20*s, 0), nil},
			{2 * s, Extend{50 * s}, nil}, {15 * s, Tick{}, []ActKind{Kill, Tell}},
		}, Killing, "preempted", true},
		{"stacks of what was killed meanwhile", base, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {0, Dumped{}, nil}, {0, dumpOrder(5 * s), []ActKind{Dump, Tell}}, {s, Exited{0}, []ActKind{Tell}},
			{s, Exited{1}, []ActKind{Prove}}, {s, Occupied{}, []ActKind{Kill, Tell}}, {2 * s, Dumped{}, nil},
		}, Killing, "stalled", false},
		{"nobody asked for stacks in this lead", base, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {0, order("preempted", 10*s, 15*s), []ActKind{Tell}}, {s, Dumped{}, nil},
		}, Leading, "preempted", false},
		{"without a lease nothing is renewed", base, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {0, Renewed{s}, nil}, {99 * s, Tick{}, nil},
		}, Running, "", false},
		{"the lease ends before the gate opens", leased, []move{
			{0, Empty{}, nil}, {600 * s, Tick{}, []ActKind{Prove}}, {600 * s, Tick{}, nil}, {600 * s, Empty{}, []ActKind{Finish}},
		}, Stopped, api.CauseNodeLost, false},
		{"a limit as far away as the lead is not taken back", limited, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {50 * s, Tick{}, []ActKind{Notify, Tell}}, {55 * s, Limit{65 * s}, []ActKind{Tell}},
		}, Running, "", false},
		{"a limit as short as the lead gives no more than itself", limited, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {5 * s, Limit{10 * s}, []ActKind{Notify, Tell, Tell}}, {10 * s, Tick{}, []ActKind{Stop, Tell}},
		}, Stopping, api.CauseTimeout, false},
		{"leftovers that stay are stuck", base, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {s, Occupied{}, nil}, {s, Exited{0}, []ActKind{Tell}}, {s, Exited{1}, []ActKind{Prove}},
			{s, Occupied{}, []ActKind{Kill, Tell}}, {3 * s, Tick{}, []ActKind{Stuck, Tell}},
		}, Killing, "", false},
		{"leftovers that use up the grace are killed by force", base, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {0, order("preempted", 0, 15*s), []ActKind{Stop, Tell}}, {s, Exited{0}, []ActKind{Tell}},
			{s, Exited{1}, []ActKind{Prove}}, {s + time.Millisecond, Tick{}, []ActKind{Prove}}, {s + time.Millisecond, Tick{}, nil},
			{s + time.Millisecond, Occupied{}, nil}, {2 * s, Occupied{}, nil}, {3 * s, Occupied{}, nil}, {4 * s, Occupied{}, nil}, {5 * s, Occupied{}, nil},
			{5*s + 25*time.Millisecond - 1, Tick{}, nil}, {5*s + 25*time.Millisecond, Tick{}, []ActKind{Prove}},
			{15 * s, Tick{}, []ActKind{Kill, Tell}}, {15*s + time.Millisecond, Tick{}, []ActKind{Prove}}, {15*s + time.Millisecond, Occupied{}, []ActKind{Kill}},
			{15*s + 3*time.Millisecond, Tick{}, []ActKind{Prove}},
		}, Killing, "preempted", true},
		{"a script ends before its steps", script, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {s, Exited{0}, []ActKind{Prove}}, {s, Occupied{Steps: true}, []ActKind{Stop, Tell}},
			{2 * s, Tick{}, []ActKind{Prove}}, {2 * s, Occupied{Steps: true}, nil}, {3 * s, order("crash", 0, 15*s), nil},
			{16*s - 1, Tick{}, []ActKind{Prove}}, {16*s - 1, Occupied{Steps: true}, nil}, {16 * s, Tick{}, []ActKind{Kill, Tell}},
			{17 * s, Tick{}, []ActKind{Prove}}, {17 * s, Empty{}, []ActKind{Finish}},
		}, Stopped, "", true},
		{"a script ends before its steps: what else it leaves goes with the last of them", script, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {s, Exited{0}, []ActKind{Prove}}, {s, Occupied{Steps: true}, []ActKind{Stop, Tell}},
			{2 * s, Tick{}, []ActKind{Prove}}, {2 * s, Occupied{}, []ActKind{Kill, Tell}}, {3 * s, Tick{}, []ActKind{Prove}}, {3 * s, Empty{}, []ActKind{Finish}},
		}, Stopped, "", false},
		{"a script ends in its lead, before its steps", script, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {s, order("requeued", 60*s, 5*s), []ActKind{Notify, Tell}}, {2 * s, Exited{0}, []ActKind{Prove}},
			{2 * s, Occupied{Steps: true}, []ActKind{Stop, Tell}}, {3 * s, Tick{}, []ActKind{Prove}}, {3 * s, Occupied{}, nil},
			{7 * s, Tick{}, []ActKind{Kill, Tell}},
		}, Killing, "requeued", true},
		{"a script ends before its steps, and there is no grace", hasty, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {s, Exited{0}, []ActKind{Prove}}, {s, Occupied{Steps: true}, []ActKind{Kill, Tell}},
		}, Killing, "", false},
		{"nobody is left to use a lead: no step ran", holder, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {s, order("requeued", 60*s, 5*s), []ActKind{Notify, Tell, Prove}}, {s, Empty{}, []ActKind{Finish}},
		}, Stopped, "requeued", false},
		{"nobody is left to use a lead: the last step ends", holder, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {s, StepsOver{}, nil}, {s, order("requeued", 60*s, 5*s), []ActKind{Notify, Tell, Prove}},
			{s, Occupied{Steps: true}, nil}, {2 * s, StepsOver{}, []ActKind{Prove}}, {2 * s, Empty{}, []ActKind{Finish}},
		}, Stopped, "requeued", false},
		{"nobody is left to use a lead: what a step left is a leftover", holder, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {s, order("requeued", 60*s, 5*s), []ActKind{Notify, Tell, Prove}},
			{s, Occupied{Steps: true}, nil}, {2 * s, Tick{}, []ActKind{Prove}}, {2 * s, Occupied{}, []ActKind{Kill, Tell}},
		}, Killing, "requeued", false},
		{"steps use their lead", holder, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {s, order("requeued", 60*s, 5*s), []ActKind{Notify, Tell, Prove}}, {s, Occupied{Steps: true}, nil},
			{60 * s, Tick{}, []ActKind{Prove}}, {60 * s, Occupied{Steps: true}, nil}, {61 * s, Tick{}, []ActKind{Stop, Tell}},
		}, Stopping, "requeued", false},
		{"the script ends on another node: the lead is cut there", holder, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {s, order("requeued", 60*s, 5*s), []ActKind{Notify, Tell, Prove}}, {s, Occupied{Steps: true}, nil},
			{2 * s, order("requeued", 0, 5*s), []ActKind{Stop, Tell}},
		}, Stopping, "requeued", false},
		{"a notice that the script does not take", holder, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {s, Passed{}, nil}, {s, order("requeued", 60*s, 5*s), []ActKind{Notify, Tell, Prove}}, {s, Passed{}, nil},
		}, Leading, "requeued", false},
		{"a notice that the script did not take", holder, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {s, order("requeued", 60*s, 5*s), []ActKind{Notify, Tell, Prove}}, {s, Passed{}, []ActKind{Notify}}, {s, Passed{}, nil},
		}, Leading, "requeued", false},
		{"a holder is not over when nothing runs in it", holder, []move{
			{0, Go{}, []ActKind{Start, Tell}}, {s, Empty{}, nil}, {2 * s, order("completed", 0, 15*s), []ActKind{Stop, Tell}},
			{3 * s, Tick{}, []ActKind{Prove}}, {3 * s, Empty{}, []ActKind{Finish}},
		}, Stopped, "completed", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := New(c.cfg, at(0))
			for i, mv := range c.moves {
				if got := kinds(m.Step(at(mv.at), mv.in)); !slices.Equal(got, mv.want) {
					t.Fatalf("move %d, %T at %v: %v, want %v", i, mv.in, mv.at, got, mv.want)
				}
			}
			if m.State() != c.state || m.Cause() != c.cause || m.Forced() != c.forced {
				t.Errorf("state %s cause %q forced %v, want %s %q %v", m.State(), m.Cause(), m.Forced(), c.state, c.cause, c.forced)
			}
		})
	}
}

// What an order leaves open the spec says, and without one it is TERM.
func TestStopSignal(t *testing.T) {
	for _, c := range []struct{ ordered, spec, want string }{{"INT", "USR2", "INT"}, {"", "USR2", "USR2"}, {"", "", "TERM"}} {
		m := New(Config{Ranks: []int{0}, StopSignal: c.spec, Grace: s}, at(0))
		m.Step(at(0), Go{})
		acts := m.Step(at(0), Order{api.Stop{Cause: "preempted", Text: "to make room", Signal: c.ordered, Grace: s}})
		if acts[0].Kind != Stop || acts[0].Signal != c.want || m.Text() != "to make room" {
			t.Errorf("ordered %q, spec %q: %v, for %q", c.ordered, c.spec, acts, m.Text())
		}
	}
}

// Who is told of a notice that the script does not take does not depend on which node was
// faster, and a limit that is moved does not make the script take the next one.
func TestNoticePassed(t *testing.T) {
	cfg := Config{TimeLimit: 60 * s, StopSignal: "TERM", Grace: 15 * s, Notice: &api.Notice{Signal: "USR1", Lead: 10 * s, Scope: api.ScopeBatch}}
	for name, moves := range map[string][]move{
		"after":  {{0, Go{}, nil}, {50 * s, Tick{}, nil}, {50 * s, Passed{}, nil}},
		"before": {{0, Go{}, nil}, {49 * s, Passed{}, nil}, {50 * s, Tick{}, nil}},
		"again":  {{0, Go{}, nil}, {50 * s, Tick{}, nil}, {50 * s, Passed{}, nil}, {51 * s, Limit{100 * s}, nil}, {90 * s, Tick{}, nil}},
	} {
		m := New(cfg, at(0))
		var acts []Act
		for _, mv := range moves {
			acts = m.Step(at(mv.at), mv.in)
		}
		if len(acts) == 0 || acts[0] != (Act{Kind: Notify, Signal: "USR1", Scope: api.ScopeRanks}) {
			t.Errorf("%s: %v", name, acts)
		}
	}
}

func TestWait(t *testing.T) {
	m := New(Config{Ranks: []int{0}, Grace: 10 * s}, at(0))
	if d, ok := m.Wait(at(0)); ok {
		t.Errorf("nothing is armed, and it waits %v", d)
	}
	m = New(Config{Ranks: []int{0}, Grace: 10 * s, Lease: 60 * s, TimeLimit: 90 * s}, at(0))
	m.Step(at(0), Go{})
	if d, ok := m.Wait(at(20 * s)); !ok || d != 40*s {
		t.Errorf("%v until the lease ends, want 40s", d)
	}
	m.Step(at(20*s), Renewed{100 * s})
	if d, ok := m.Wait(at(20 * s)); !ok || d != 70*s {
		t.Errorf("%v until the limit, want 70s", d)
	}
	if d, ok := m.Wait(at(95 * s)); !ok || d != 0 {
		t.Errorf("%v for what is due", d)
	}
}

func TestOutlook(t *testing.T) {
	notice := &api.Notice{Signal: "USR1", Lead: 10 * s, Scope: api.ScopeRanks}
	cfg := Config{Ranks: []int{0}, StopSignal: "TERM", Grace: 15 * s, TimeLimit: 60 * s, Notice: notice}
	check := func(m *Machine, now time.Duration, want Outlook) {
		t.Helper()
		if got, ok := m.Outlook(at(now)); ok != (want != Outlook{}) || got != want {
			t.Errorf("at %v: %+v, want %+v", now, got, want)
		}
	}
	m := New(cfg, at(0))
	m.Step(at(0), Go{})
	check(m, 0, Outlook{})
	m.Step(at(50*s), Tick{})
	check(m, 51*s, Outlook{Leading, api.CauseTimeout, "the time limit of 60 s comes near", "USR1", 9 * s})
	m.Step(at(60*s), Tick{})
	if !m.Noticed() {
		t.Error("the notice is forgotten")
	}
	check(m, 61*s, Outlook{Stopping, api.CauseTimeout, "time limit of 60 s reached", "TERM", 14 * s})
	check(m, 99*s, Outlook{Stopping, api.CauseTimeout, "time limit of 60 s reached", "TERM", 0})
	m.Step(at(75*s), Tick{})
	check(m, 75*s, Outlook{})

	m = New(cfg, at(0))
	m.Step(at(0), Go{})
	m.Step(at(0), Order{api.Stop{Cause: "preempted", Text: "to make room", Lead: 10 * s, Grace: s}})
	check(m, 3*s, Outlook{Leading, "preempted", "to make room", "USR1", 7 * s})
	cfg.Notice = nil
	m = New(cfg, at(0))
	m.Step(at(0), Go{})
	m.Step(at(0), Order{api.Stop{Cause: "preempted", Signal: "INT", Lead: 10 * s, Grace: s}})
	check(m, 3*s, Outlook{Leading, "preempted", "", "INT", 7 * s})
	if m.Noticed() {
		t.Error("noticed without a notice")
	}

	m = New(Config{Ranks: []int{0}, Grace: s, Lease: 60 * s}, at(0))
	m.Step(at(0), Go{})
	m.Step(at(60*s), Tick{})
	check(m, 60*s, Outlook{Stopping, api.CauseNodeLost, "no controller was reached until the lease ran out", "TERM", s})
}

func TestLeaseCountsSleep(t *testing.T) {
	m := New(Config{Ranks: []int{0}, Grace: 10 * s, Lease: 60 * s}, Instant{})
	m.Step(Instant{}, Go{})
	if got := kinds(m.Step(Instant{Mono: s, Boot: 61 * s}, Tick{})); !slices.Equal(got, []ActKind{Stop, Tell}) {
		t.Errorf("after a sleep of a minute: %v", got)
	}
}

// A renewal that comes when the lease has ended changes nothing: the controller has begun to
// count.
func TestLeaseEndsOnce(t *testing.T) {
	m := New(Config{Ranks: []int{0}, Grace: 10 * s, Lease: 60 * s}, Instant{})
	m.Step(Instant{}, Go{})
	m.Step(Instant{Mono: 60 * s, Boot: 60 * s}, Tick{})
	m.Step(Instant{Mono: 61 * s, Boot: 61 * s}, Renewed{60 * s})
	if got := kinds(m.Step(Instant{Mono: 62 * s, Boot: 70 * s}, Tick{})); !slices.Equal(got, []ActKind{Kill, Tell}) {
		t.Errorf("asleep for the rest of the grace: %v", got)
	}
}

// TestProperties drives a member with any inputs, as an adversary would, and a driver that
// always answers the timers in time.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 3).Draw(t, "ranks")
		cfg := Config{StopSignal: "TERM", Grace: draw(t, "grace")}
		for r := range n {
			cfg.Ranks = append(cfg.Ranks, r)
		}
		if rapid.Bool().Draw(t, "limited") {
			cfg.TimeLimit = draw(t, "limit") + 1
		}
		if rapid.Bool().Draw(t, "notice") {
			cfg.Notice = &api.Notice{Signal: "USR1", Lead: draw(t, "lead"), Scope: api.ScopeRanks}
		}
		d := &driver{t: t, m: New(cfg, at(0)), grace: cfg.Grace, killBy: never}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			d.advance(draw(t, "pass"))
			var in Input
			switch rapid.IntRange(0, 7).Draw(t, "input") {
			case 0:
				in = Go{}
			case 1:
				in = Exited{rapid.IntRange(-1, 3).Draw(t, "rank")}
			case 2:
				in = order(api.CauseCancelled, draw(t, "order lead"), draw(t, "order grace"))
			case 3:
				in = Tick{}
			case 4:
				in = Empty{}
			case 5:
				in = Occupied{Steps: rapid.Bool().Draw(t, "steps")}
			case 6:
				in = StepsOver{}
			case 7:
				in = Passed{}
			}
			d.step(in)
		}
	})
}

func draw(t *rapid.T, label string) time.Duration {
	return time.Duration(rapid.IntRange(0, 20).Draw(t, label)) * s
}

// driver checks after each act what must hold at that instant.
type driver struct {
	t                            *rapid.T
	m                            *Machine
	now                          time.Duration
	grace                        time.Duration // smallest promised so far
	stopAt, killBy               time.Duration
	starts, stops, notes, finish int
}

// advance passes time, never past a timer without a tick.
func (d *driver) advance(by time.Duration) {
	end := d.now + by
	for range 10000 {
		w, ok := d.m.Wait(at(d.now))
		if !ok || d.now+w > end {
			d.now = end
			return
		}
		d.now += w
		d.step(Tick{})
	}
	d.t.Fatal("timers never rest")
}

func (d *driver) step(in Input) {
	if o, ok := in.(Order); ok && d.m.State() != Stopped {
		if d.m.State() == Stopping {
			d.killBy = min(d.killBy, d.now+o.Lead+o.Grace)
		}
		d.grace = min(d.grace, o.Grace)
		if d.m.Cause() == "" {
			d.grace = o.Grace
		}
	}
	before := d.m.Cause()
	acts := d.m.Step(at(d.now), in)
	if before != "" && d.m.Cause() != before {
		d.t.Fatalf("cause %q became %q", before, d.m.Cause())
	}
	for i, a := range acts {
		if d.finish > 0 {
			d.t.Fatalf("%v after finish", a)
		}
		switch a.Kind {
		case Start:
			d.starts++
		case Notify:
			d.notes++
		case Stop:
			d.stops++
			d.stopAt, d.killBy = d.now, d.now+d.grace
		case Finish:
			d.finish++
			if i != len(acts)-1 {
				d.t.Fatalf("finish is not the last of %v", acts)
			}
		case Prove:
			defer d.step(Occupied{}) // as a driver does, at once
		case Kill:
			if d.stops > 0 && d.killBy != never && d.now < d.killBy {
				d.t.Fatalf("kill at %v, the grace ends at %v", d.now, d.killBy)
			}
			d.killBy = never
		}
	}
	if d.killBy != never && d.now > d.killBy && d.m.State() == Stopping {
		d.t.Fatalf("no kill at %v, the grace ended at %v", d.now, d.killBy)
	}
	if d.starts > 1 || d.stops > 1 || d.notes > 1 || d.finish > 1 {
		d.t.Fatalf("starts %d stops %d notices %d finishes %d", d.starts, d.stops, d.notes, d.finish)
	}
}

func TestDeferred(t *testing.T) {
	shell := Process{PID: 10, Rank: 0, Main: true, Shell: true}
	program := Process{PID: 11, Rank: 0}
	cases := []struct {
		name  string
		p     Process
		procs []Process
		want  bool
	}{
		{"shell with a program", shell, []Process{shell, program}, true},
		{"shell alone", shell, []Process{shell}, false},
		{"shell that traps", Process{PID: 10, Rank: 0, Main: true, Shell: true, Catches: true}, []Process{shell, program}, false},
		{"program itself", Process{PID: 10, Rank: 0, Main: true}, []Process{program}, false},
		{"only another rank lives", shell, []Process{shell, {PID: 20, Rank: 1, Main: true, Shell: true}, {PID: 21, Rank: 1}}, false},
		{"only the main process of another rank lives", shell, []Process{shell, {PID: 20, Rank: 1, Main: true}}, false},
		{"a process of the first rank beside a shell of the second", Process{PID: 10, Rank: 1, Main: true, Shell: true}, []Process{{PID: 11, Rank: 0}}, false},
		{"a main process of an unknown rank", shell, []Process{shell, {PID: 30, Rank: -1, Main: true}}, false},
		{"a process of an unknown rank", shell, []Process{shell, {PID: 30, Rank: -1}}, true},
		{"nested shell", Process{PID: 12, Rank: 0, Shell: true}, []Process{shell, program}, false},
	}
	for _, c := range cases {
		if got := Deferred(c.p, c.procs); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestSignalTargets(t *testing.T) {
	procs := []Process{{PID: 1, Main: true, Shell: true}, {PID: 2}, {PID: 3, Rank: 1, Main: true}, {PID: 4, Rank: 1}, {PID: 5, Rank: 1, Shell: true},
		{PID: 6, Step: true}, {PID: 7, Step: true, Client: true}, {PID: 8, Main: true, Client: true}}
	for scope, want := range map[api.SignalScope][]int{
		api.ScopeRanks: {2, 3, 4, 5, 6}, api.ScopeSteps: {6}, api.ScopeBatch: {1, 3}, api.ScopeFull: {1, 2, 3, 4, 5, 6}, api.ScopeNamed: {3, 4, 5},
	} {
		if got := SignalTargets(scope, []int{1}, true, procs); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", scope, got, want)
		}
		if scope == api.ScopeSteps { // ranks are tasks
			want = []int{2, 3, 4, 5, 6}
		}
		if got := SignalTargets(scope, []int{1}, false, procs); !slices.Equal(got, want) {
			t.Errorf("%s of ranks: %v, want %v", scope, got, want)
		}
	}
}

func TestNoticeTargets(t *testing.T) {
	shell := Process{PID: 1, Main: true, Shell: true}
	trap := shell
	trap.Catches = true
	saver, deaf, client := Process{PID: 2, Catches: true}, Process{PID: 3}, Process{PID: 4, Catches: true, Client: true}
	main := Process{PID: 5, Rank: 1, Main: true, Catches: true}
	cases := []struct {
		name   string
		scope  api.SignalScope
		batch  bool
		procs  []Process
		want   []int
		passed bool
	}{
		{"without a handler nobody", api.ScopeFull, false, []Process{shell, deaf}, nil, false},
		{"programs", api.ScopeRanks, false, []Process{shell, saver, deaf}, []int{2}, false},
		{"the shell of a rank that traps it", api.ScopeRanks, false, []Process{trap, saver}, []int{1, 2}, false},
		{"not the script of an allocation", api.ScopeRanks, true, []Process{trap, saver, client}, []int{2}, false},
		{"a program for a script", api.ScopeRanks, true, []Process{main}, []int{5}, false},
		{"both, where both are asked for", api.ScopeFull, true, []Process{trap, saver, client}, []int{1, 2}, false},
		{"the script alone", api.ScopeBatch, true, []Process{trap, saver, client}, []int{1}, false},
		{"the script alone, beside what does not take it", api.ScopeBatch, true, []Process{trap, saver, deaf}, []int{1}, false},
		{"a script that does not take it", api.ScopeBatch, true, []Process{shell, saver, deaf, client}, []int{2}, true},
		{"nobody who takes it", api.ScopeBatch, true, []Process{shell, deaf}, nil, true},
		{"one rank does not take it", api.ScopeBatch, false, []Process{shell, saver, main}, []int{2, 5}, true},
		{"of steps alone", api.ScopeSteps, true, []Process{trap, saver, client, {PID: 6, Catches: true, Step: true}, {PID: 7, Step: true}, {PID: 8, Client: true, Step: true}}, []int{6}, false},
		{"no script here", api.ScopeBatch, true, []Process{{PID: 2, Rank: -1, Catches: true}}, nil, false},
	}
	for _, c := range cases {
		if got, passed := NoticeTargets(c.scope, c.batch, c.procs); !slices.Equal(got, c.want) || passed != c.passed {
			t.Errorf("%s: %v passed %v", c.name, got, passed)
		}
	}
}

// A notice for the script alone may be heard by whoever is there on any node, every other one by who it is for.
func TestListens(t *testing.T) {
	shell := Process{PID: 1, Main: true, Shell: true}
	trap := shell
	trap.Catches = true
	saver, deaf, client := Process{PID: 2, Rank: -1, Catches: true}, Process{PID: 3}, Process{PID: 4, Catches: true, Client: true}
	for _, c := range []struct {
		name  string
		scope api.SignalScope
		batch bool
		procs []Process
		want  bool
	}{
		{"a program", api.ScopeRanks, false, []Process{shell, saver}, true},
		{"nobody", api.ScopeRanks, false, []Process{shell, deaf, client}, false},
		{"the script of an allocation, which is not meant", api.ScopeRanks, true, []Process{trap, deaf}, false},
		{"the script alone", api.ScopeBatch, true, []Process{trap, deaf}, true},
		{"a task on a node without the script", api.ScopeBatch, true, []Process{saver}, true},
		{"nobody on a node without the script", api.ScopeBatch, true, []Process{deaf, client}, false},
	} {
		if got := Listens(c.scope, c.batch, c.procs); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// A process hears its stop signal once, and a shell that would die of it after its program.
func TestStopTargets(t *testing.T) {
	shell, task, told := Process{PID: 1, Main: true, Shell: true}, Process{PID: 2}, Process{PID: 3, Told: true}
	client := Process{PID: 4, Client: true}
	now, wait := StopTargets([]Process{shell, task, told, client})
	if len(now) != 1 || now[0].PID != 2 || len(wait) != 1 || wait[0].PID != 1 {
		t.Errorf("now %v wait %v", now, wait)
	}
	holder := Process{PID: 1, Main: true, Client: true} // of an allocation: it ends when what it holds for has
	if now, wait := StopTargets([]Process{holder, task, client}); len(now) != 1 || now[0].PID != 2 || len(wait) != 1 || wait[0].PID != 1 {
		t.Errorf("with a holder now %v wait %v", now, wait)
	}
	if now, wait := StopTargets([]Process{holder}); len(now) != 1 || len(wait) != 0 {
		t.Errorf("a holder alone: now %v wait %v", now, wait)
	}
}

// A start that lay unread while the machine slept for longer than the lease starts nothing.
func TestAStartAfterTheLeaseIsItsEnd(t *testing.T) {
	cfg := Config{Ranks: []int{0}, Grace: 5 * time.Second, Lease: 40 * time.Second}
	m := New(cfg, Instant{})
	for _, boot := range []time.Duration{40 * time.Second, 90 * time.Second} { // as it ends, and long after
		m = New(cfg, Instant{})
		for _, a := range m.Step(Instant{Mono: time.Second, Boot: boot}, Go{}) {
			if a.Kind == Start {
				t.Fatalf("started after the lease, at %v", boot)
			}
		}
	}
	m.Step(Instant{Mono: time.Second, Boot: 90 * time.Second}, Empty{})
	if m.State() == Running || m.Cause() != api.CauseNodeLost {
		t.Errorf("state %s, cause %s", m.State(), m.Cause())
	}
}
