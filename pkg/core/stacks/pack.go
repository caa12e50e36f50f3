package stacks

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gangd/pkg/api"
)

// Process is one that was looked at.
type Process struct {
	api.StackProcess
	Kind    string
	Threads []api.ThreadStack // the main one first
}

// Pack makes groups of what is alike, the largest first, and leaves out what there is no room for.
func Pack(all []Process) *api.MemberStacks {
	var groups []api.StackGroup
	at := map[string]int{}
	for i := range all {
		p := &all[i]
		threads := slices.Clone(p.Threads[:min(len(p.Threads), api.MaxStackThreads)])
		for k := range threads {
			t := &threads[k]
			t.In, t.Frames = short(t.In, 64), slices.Clone(Bounded(t.Frames))
			if t.Lines = Bounded(t.Lines); k > 0 || len(t.Lines) != len(t.Frames) { // places count of main threads
				t.Lines, t.Values = nil, nil
			}
			for f := range t.Frames {
				t.Frames[f] = short(t.Frames[f], api.MaxStackFrame)
			}
		}
		if len(threads) > 2 {
			slices.SortStableFunc(threads[1:], func(a, b api.ThreadStack) int { return strings.Compare(keyOf(&a), keyOf(&b)) })
		}
		g := api.StackGroup{Kind: short(p.Kind, api.MaxStackFrame), Threads: threads}
		key := groupKey(&g)
		k, ok := at[key]
		if !ok {
			k = len(groups)
			at[key] = k
			groups = append(groups, g)
		}
		groups[k].Processes = append(groups[k].Processes, p.StackProcess)
		groups[k].Count++
	}
	sortGroups(groups)
	out := &api.MemberStacks{}
	out.Groups, out.More = bounded(groups)
	return out
}

func sortGroups(groups []api.StackGroup) {
	for i := range groups {
		slices.SortFunc(groups[i].Processes, compareProcess)
	}
	slices.SortStableFunc(groups, func(a, b api.StackGroup) int {
		return cmp.Or(cmp.Compare(len(b.Processes), len(a.Processes)), compareProcess(a.Processes[0], b.Processes[0]))
	})
}

func compareProcess(a, b api.StackProcess) int {
	return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Task, b.Task), cmp.Compare(a.PID, b.PID))
}

// bounded keeps the groups that fit, in their order, and counts the processes of the others.
func bounded(groups []api.StackGroup) (kept []api.StackGroup, more int) {
	bytes, processes := 0, 0
	for i := range groups {
		g := &groups[i]
		size := sizeOf(g)
		if len(kept) == api.MaxStackGroups || processes+len(g.Processes) > api.MaxStackProcesses || bytes+size > api.MaxStackBytes {
			more += len(g.Processes)
			continue
		}
		bytes, processes = bytes+size, processes+len(g.Processes)
		kept = append(kept, *g)
	}
	return kept, more
}

// processBytes is what a process takes in JSON, at most about that, valueBytes what a value does.
const processBytes, valueBytes = 24, 64

func sizeOf(g *api.StackGroup) int {
	n := len(g.Kind) + processBytes*len(g.Processes)
	for i := range g.Threads {
		n += 32 + len(g.Threads[i].In) + 6*len(g.Threads[i].Lines) + valueBytes*len(g.Threads[i].Values)
		for _, f := range g.Threads[i].Frames {
			n += len(f) + 3
		}
	}
	return n
}

func keyOf(t *api.ThreadStack) string {
	return t.Does + "\x00" + t.In + "\x00" + strings.Join(t.Frames, "\x01")
}

func groupKey(g *api.StackGroup) string {
	key := g.Kind
	for i := range g.Threads {
		t := &g.Threads[i]
		key += "\x02" + keyOf(t)
		if len(t.Lines) > 0 {
			key += fmt.Sprint(t.Lines, t.Values)
		}
	}
	return key
}
