package cli

import (
	"strings"
	"testing"

	"gangd/pkg/api"
)

// Nothing that a process names itself by reaches the terminal as a command, and who is odd is marked.
func TestWriteStacks(t *testing.T) {
	group := func(kind string, count int, does api.ThreadStack, who ...api.StackProcess) api.StackGroup {
		return api.StackGroup{Kind: kind, Count: count, Processes: who, Threads: []api.ThreadStack{does}}
	}
	r := &api.StacksReply{Live: true, Stacks: api.Stacks{Text: "rank 2 on n2 sleeps, 20 others wait", More: 1, Odd: []api.OddProcess{{Group: 1}}, Groups: []api.StackGroup{
		group("bash/python3", 20, api.ThreadStack{Does: api.DoesLock, In: "futex", Frames: []string{"wait (x.py)", "main (x.py)"}}, api.StackProcess{Rank: 0, PID: 10}, api.StackProcess{Rank: 1, PID: 11}),
		group("bash/py\x1b[31m", 1, api.ThreadStack{Does: api.DoesSleep}, api.StackProcess{Rank: 2, PID: 12}),
		group("gstep", 1, api.ThreadStack{Does: api.DoesRun}, api.StackProcess{Rank: -1, Step: 3, Task: 4, PID: 13}),
	}}}
	var out strings.Builder
	if err := writeStacks(&out, r); err != nil {
		t.Fatal(err)
	}
	want := `now: rank 2 on n2 sleeps, 20 others wait

ranks 0 (pid 10), 1 (pid 11) and 18 more: bash/python3
    lock (futex)
      wait (x.py)
      main (x.py)

rank 2 (pid 12): bash/py?[31m  <- not where the others are
    sleeps

step 3 task 4 (pid 13): gstep
    runs

1 process more had no room here
`
	if got := strings.ReplaceAll(out.String(), "\\x1b", "?"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
