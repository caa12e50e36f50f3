package gang

import (
	"slices"
	"strings"

	"gangd/pkg/api"
)

// portStride spreads neighbours: who comes next does not meet the connections in TIME_WAIT
// of who was there before.
const portStride = 16

// eachPort calls f with the ports that are given out on a node, those of what is over for its
// gang but not known gone too.
func (h *host) eachPort(f func(port int)) {
	for _, p := range h.members {
		for _, port := range portsOn(p.e.job, p.i) {
			f(port)
		}
	}
	for i := range h.node.Left {
		for _, port := range h.node.Left[i].Ports {
			f(port)
		}
	}
}

// takePorts chooses n ports that are free on all of the nodes, side by side where so many
// are. turn is where in the range the search begins.
func (ns *nodes) takePorts(nodes []string, n int, turn int64) ([]int, *api.Error) {
	all, err := api.ParsePortRange(ns.set.Ports)
	if err != nil || n > all.Count() {
		return nil, portsBeyond(n, all)
	}
	used := map[int]bool{}
	for _, name := range nodes {
		if h := ns.byName[name]; h != nil {
			h.eachPort(func(port int) { used[port] = true })
		}
	}
	start := int(turn * portStride % int64(all.Count()))
	if block := freeBlock(all, used, n, start); block != nil {
		return block, nil
	}
	var free []int
	for i := range all.Count() {
		if port := all.First + (start+i)%all.Count(); !used[port] && len(free) < n {
			free = append(free, port)
		}
	}
	if len(free) < n {
		return nil, api.Errorf(api.CodeBusy, "%d ports asked, %d of %s are free on %s", n, len(free), all,
			strings.Join(nodes, ",")).About(api.ReasonPorts, "")
	}
	slices.Sort(free)
	return free, nil
}

// freeBlock is the first n free ports in a row, from start on.
func freeBlock(all api.PortRange, used map[int]bool, n, start int) []int {
	var block []int
	for i := range all.Count() + n - 1 {
		port := all.First + (start+i)%all.Count()
		if used[port] || port == all.First {
			block = block[:0] // the range's end is no neighbour of its beginning
		}
		if used[port] {
			continue
		}
		if block = append(block, port); len(block) == n {
			return block
		}
	}
	return nil
}

func portsBeyond(n int, all api.PortRange) *api.Error {
	if all.Count() == 0 {
		return &api.Error{Code: api.CodeUnsatisfiable, Message: "the site reserves no ports",
			Hint: "the admin sets ports = \"12000-12999\" in gangd.toml; leave --resv-ports out", Reason: api.ReasonPorts}
	}
	return api.Errorf(api.CodeUnsatisfiable, "%d ports asked, %d can be reserved (%s)", n, all.Count(), all).About(api.ReasonPorts, "")
}

// CheckPorts refuses what can never be reserved: ranks is the most that one node may have.
func CheckPorts(set *api.Settings, ask, ranks int) *api.Error {
	all, _ := api.ParsePortRange(set.Ports)
	if n := portsFor(ask, ranks); n > 0 && (all.Count() == 0 || n > all.Count()) {
		return portsBeyond(n, all)
	}
	return nil
}

// portsFor is how many an ask comes to with so many tasks on the fullest node.
func portsFor(ask, fullest int) int {
	if ask == api.PortEach {
		return fullest
	}
	return ask
}

// portsOn are those of a gang and of its steps on one of its members.
func portsOn(j *Job, member int) []int {
	out := slices.Clone(j.Ports)
	for i := range j.Steps {
		if slices.ContainsFunc(j.Steps[i].Parts, func(p StepPart) bool { return !p.Over && p.Member == member }) {
			out = append(out, j.Steps[i].Ports...)
		}
	}
	return out
}

// ports are the ports of a new step.
func (ss *steps) ports(j *Job, a *api.StepAsk, parts []StepPart) ([]int, *api.Error) {
	fullest, nodes := 0, make([]string, len(parts))
	for i := range parts {
		fullest = max(fullest, len(parts[i].Tasks))
		nodes[i] = j.Members[parts[i].Member].Node
	}
	n := portsFor(a.Ports, fullest)
	if n <= 0 {
		return nil, nil
	}
	return ss.nodes.takePorts(nodes, n, j.ID+int64(j.NextStep))
}

// gangPorts are the ports of a gang that is to be admitted.
func (ln *launches) gangPorts(j *Job, members []Member) ([]int, *api.Error) {
	fullest, nodes := 0, make([]string, len(members))
	for i := range members {
		fullest = max(fullest, len(members[i].Ranks))
		nodes[i] = members[i].Node
	}
	n := portsFor(j.Spec.Ports, fullest)
	if n <= 0 {
		return nil, nil
	}
	return ln.nodes.takePorts(nodes, n, j.ID+int64(j.Epoch))
}

// shortOfPorts keeps a gang from being admitted for a while: the planner does not know of
// ports, and would choose the same nodes again at once.
func (ln *launches) shortOfPorts(e *entry, err *api.Error) Outcome {
	j := ln.jobs.edit(e)
	ln.record.emitJob(j, api.Event{Type: api.EventRolledBack, Text: err.Message})
	j.Rollbacks++
	ln.backoff(e, j.Rollbacks)
	ln.queue.touch(e)
	return applied()
}
