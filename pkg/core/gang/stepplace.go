package gang

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gangd/pkg/api"
)

// room is what a member has for steps, and what of it is free.
type room struct {
	member          int
	node            string
	component       int // of the ranks there, -1: the job has none
	cpus, cpusFree  int
	mem, memFree    int64 // 0 of mem: no figure, none is counted
	cards, cardFree []string
}

// rooms are the members of a job in the order of the allocation, with what steps that count have left.
func (ss *steps) rooms(e *entry, counts func(*Step) bool) []room {
	j := e.job
	out := make([]room, len(j.Members))
	for i := range j.Members {
		m := &j.Members[i]
		r := &out[i]
		r.member, r.node, r.component = i, m.Node, j.Spec.ComponentAt(m.Ranks[0])
		for _, k := range m.Ranks {
			f := j.Spec.FiguresOf(k)
			r.cpus += f.CPUs
			r.mem += f.Memory
			for _, c := range j.Ranks[k].Slot.Cards {
				if !slices.Contains(r.cards, c) {
					r.cards = append(r.cards, c)
				}
			}
		}
		if per := j.Spec.PartAt(m.Ranks[0]).MemoryPerNode; per > 0 {
			r.mem = per
		}
		if n := ss.nodes.byName[m.Node]; j.Spec.Exclusive && n != nil && n.node.Res != nil {
			r.cpus = max(r.cpus, n.node.Res.CPUs())
		}
		r.cpusFree, r.memFree, r.cardFree = r.cpus, r.mem, slices.Clone(r.cards)
	}
	for i := range j.Steps {
		if j.Steps[i].Ask.Overlap || !counts(&j.Steps[i]) {
			continue
		}
		for p := range j.Steps[i].Parts {
			out[j.Steps[i].Parts[p].Member].take(&j.Steps[i].Parts[p])
		}
	}
	return out
}

func (r *room) take(p *StepPart) {
	if p.Over {
		return
	}
	r.cpusFree -= p.CPUs
	r.memFree -= p.Memory
	r.cardFree = slices.DeleteFunc(r.cardFree, func(c string) bool { return slices.Contains(p.Cards, c) })
}

// empty is the room as if no step ran.
func (r room) empty() room {
	r.cpusFree, r.memFree, r.cardFree = r.cpus, r.mem, slices.Clone(r.cards)
	return r
}

// place finds room for a step: among what is free now, else it says whether it would
// find it among all that the allocation has.
//
// The processes of a step do not outlive it: what a step has that asks for another never comes free for that one, which is
// refused then, as it would wait for ever.
func (ss *steps) place(e *entry, ev *StepBegin) ([]StepPart, *api.Error) {
	a := &ev.Ask
	rooms := ss.rooms(e, func(*Step) bool { return true })
	whole, err := laySteps(e.job, a, rooms, room.empty)
	if err != nil || a.Overlap {
		return whole, err
	}
	asIs := func(r room) room { return r }
	parts, err := laySteps(e.job, a, rooms, asIs)
	if err != nil && ev.Within != nil {
		_, alone := laySteps(e.job, a, ss.rooms(e, func(s *Step) bool { return s.ID == *ev.Within }), asIs)
		if alone != nil {
			step := api.StepText(e.job.ID, *ev.Within)
			return nil, (&api.Error{Code: api.CodeUnsatisfiable, Message: fmt.Sprintf("step %s, which asks, has it itself and would wait for its "+
				"own end", step),
				Hint: "use --overlap to share it"}).About(api.ReasonWithin, step)
		}
	}
	if err != nil {
		return nil, &api.Error{Code: api.CodeBusy, Message: "other steps of the job have it: " + err.Message, Hint: "use --overlap to share it"}
	}
	return parts, nil
}

// laySteps places a step and the further components that it has, each on nodes of its own. Tasks
// are numbered through.
func laySteps(j *Job, a *api.StepAsk, all []room, as func(room) room) ([]StepPart, *api.Error) {
	var out []StepPart
	first := 0
	for i, one := range a.Components() {
		rooms, err := componentRooms(j, &one, i, len(a.More) > 0, all)
		if err != nil {
			return nil, err
		}
		if rooms, err = chooseRooms(j, &one, rooms); err != nil {
			return nil, err
		}
		if one.Distribution == api.Arbitrary {
			rooms = slices.DeleteFunc(rooms, func(r room) bool { return !slices.Contains(one.NodeList, r.node) })
		}
		for k := range rooms {
			rooms[k] = as(rooms[k])
		}
		parts, err := layStep(&one, rooms)
		if err != nil {
			if len(a.More) > 0 {
				err.Message = fmt.Sprintf("component %d: %s", i, err.Message)
			}
			return nil, err
		}
		count := 0
		for k := range parts {
			for t := range parts[k].Tasks {
				parts[k].Tasks[t] += first
			}
			parts[k].Group = i
			count += len(parts[k].Tasks)
			all = slices.DeleteFunc(slices.Clone(all), func(r room) bool { return r.member == parts[k].Member })
		}
		first += count
		out = append(out, parts...)
	}
	return out, nil
}

// componentRooms are the rooms that a component of a step may use: those of its component of the job, of
// a step that names none of the first.
func componentRooms(j *Job, a *api.StepAsk, i int, several bool, all []room) ([]room, *api.Error) {
	n := j.Spec.Components()
	group := 0
	if a.Group != nil {
		group = *a.Group
	}
	switch {
	case n == 0 && a.Group == nil:
		if several && len(all) == 0 {
			return nil, api.Errorf(api.CodeUnsatisfiable, "component %d: the others have all nodes of the allocation, and components are on "+
				"nodes of their own", i).About(api.ReasonOutside, "")
		}
		return all, nil
	case group >= max(n, 1):
		return nil, api.Errorf(api.CodeUnsatisfiable, "there is no component %d: job %d has %s", group, j.ID,
			components(n)).About(api.ReasonComponent, strconv.Itoa(max(n, 1)-1))
	}
	var own []room
	for _, r := range all {
		if n == 0 || r.component == group {
			own = append(own, r)
		}
	}
	if len(own) == 0 {
		return nil, api.Errorf(api.CodeInvalid, "component %d of the job is asked for twice in one step", group)
	}
	return own, nil
}

func components(n int) string {
	if n == 0 {
		return "no components"
	}
	return fmt.Sprintf("components 0 to %d", n-1)
}

// chooseRooms puts the members that a step may use in the order in which they are tried.
func chooseRooms(j *Job, a *api.StepAsk, all []room) ([]room, *api.Error) {
	var first []room
	places, listed, out := make(map[string]int, len(all)), map[string]bool{}, make(map[string]bool, len(a.Exclude))
	for at := range all {
		places[all[at].node] = at
	}
	for _, name := range a.Exclude {
		out[name] = true
	}
	for _, name := range a.NodeList {
		at, there := places[name]
		if !there {
			return nil, api.Errorf(api.CodeUnsatisfiable, "node %s is not in the allocation of job %d", name, j.ID).About(api.ReasonOutside, name)
		}
		if !listed[name] {
			listed[name] = true
			first = append(first, all[at])
		}
	}
	if a.Relative < 0 || a.Relative >= len(all) {
		return nil, api.Errorf(api.CodeUnsatisfiable, "relative node %d of an allocation of %d", a.Relative, len(all))
	}
	rest := all[a.Relative:]
	for _, r := range rest {
		if !listed[r.node] && !out[r.node] {
			first = append(first, r)
		}
	}
	return slices.DeleteFunc(first, func(r room) bool { return out[r.node] }), nil
}

// layStep takes the first nodes with room for at least one task, as many as were asked for
// and more, up to the most, while tasks are left over.
func layStep(a *api.StepAsk, all []room) ([]StepPart, *api.Error) {
	perTask := max(a.CPUsPerTask, 1)
	if a.Distribution == api.Arbitrary {
		return layArbitrary(a, all, perTask)
	}
	least := max(a.MinNodes, len(a.NodeList), 1)
	if a.MinNodes == 0 && a.Tasks == 0 && a.MaxNodes == 0 {
		least = max(least, len(all))
	}
	tasks := a.Tasks
	if tasks == 0 {
		tasks = least * max(a.TasksPerNode, 1)
	}
	if a.MinNodes == 0 && a.MaxNodes == 0 && a.Tasks > 0 {
		least = max(1, len(a.NodeList))
	}
	most := max(a.MaxNodes, least)
	if a.MaxNodes == 0 && a.MinNodes == 0 {
		most = len(all)
	}
	if least > len(all) {
		return nil, api.Errorf(api.CodeUnsatisfiable, "Only allocated %d nodes asked for %d", len(all), least).About(api.ReasonAllocation, "")
	}
	var used []room
	capacity := 0
	for _, r := range all {
		if len(used) >= most || len(used) >= least && capacity >= tasks {
			break
		}
		if c := r.capacity(a, perTask); c > 0 {
			used = append(used, r)
			capacity += c
		}
	}
	switch {
	case len(used) < least:
		return nil, api.Errorf(api.CodeUnsatisfiable, "%d nodes with %s asked, %d have it", least, stepNeed(a, perTask), len(used))
	case capacity < tasks:
		return nil, api.Errorf(api.CodeUnsatisfiable, "%d tasks with %s asked, there is room for %d on %d nodes", tasks, stepNeed(a, perTask),
			capacity, len(used))
	case tasks < len(used):
		used = used[:max(tasks, 1)]
	}
	slices.SortFunc(used, func(x, y room) int { return x.member - y.member }) // a list chooses nodes, it does not order them
	parts, err := share(a, used, tasks, perTask)
	if err != nil {
		return nil, err
	}
	return parts, giveCards(a, used, parts)
}

func stepNeed(a *api.StepAsk, perTask int) string {
	s := strconv.Itoa(perTask) + " CPUs"
	if perTask == 1 {
		s = "1 CPU"
	}
	switch {
	case a.GPUsPerTask > 0:
		s += fmt.Sprintf(" and %d GPUs", a.GPUsPerTask)
	case a.GPUsPerNode > 0:
		s += fmt.Sprintf(" and %d GPUs a node", a.GPUsPerNode)
	case a.GPUs > 0:
		s += fmt.Sprintf(" and %d GPUs in all", a.GPUs)
	}
	return s
}

// capacity is how many tasks a member has room for.
func (r *room) capacity(a *api.StepAsk, perTask int) int {
	n := r.cpusFree / perTask
	if a.Overcommit && r.cpusFree > 0 {
		n = api.MaxStepTasks
	}
	if !a.Exact && r.cpusFree < r.cpus {
		return 0 // all of its CPUs are asked for
	}
	if a.TasksPerNode > 0 {
		if n < 1 {
			return 0
		}
		n = min(n, a.TasksPerNode)
	}
	switch {
	case a.GPUsPerTask > 0:
		n = min(n, len(r.cardFree)/a.GPUsPerTask)
	case a.GPUsPerNode > 0 && len(r.cardFree) < a.GPUsPerNode, a.GPUs > 0 && len(r.cardFree) == 0:
		return 0
	case a.GPUs == 0 && a.GPUsPerNode == 0 && !a.NoGPUs && len(r.cardFree) < len(r.cards):
		return 0
	}
	if r.mem > 0 && a.MemoryPerNode > 0 && r.memFree < a.MemoryPerNode {
		return 0
	}
	if r.mem > 0 && a.MemoryPerCPU > 0 {
		n = min(n, int(r.memFree/(a.MemoryPerCPU*int64(perTask))))
	}
	return n
}

// layArbitrary puts each task on the node of its place in the list. Rooms are those of the list.
func layArbitrary(a *api.StepAsk, rooms []room, perTask int) ([]StepPart, *api.Error) {
	if a.Tasks > 0 && a.Tasks != len(a.NodeList) {
		return nil, api.Errorf(api.CodeUnsatisfiable, "%d tasks asked, and %d nodes for them", a.Tasks,
			len(a.NodeList)).About(api.ReasonAllocation, "")
	}
	slices.SortFunc(rooms, func(x, y room) int { return x.member - y.member })
	parts := make([]StepPart, len(rooms))
	for i := range rooms {
		r, p := &rooms[i], &parts[i]
		for task, node := range a.NodeList {
			if node == r.node {
				p.Tasks = append(p.Tasks, task)
			}
		}
		if c := r.capacity(a, perTask); c < len(p.Tasks) {
			return nil, api.Errorf(api.CodeUnsatisfiable, "%d tasks with %s asked of node %s, there is room for %d", len(p.Tasks),
				stepNeed(a, perTask), r.node, c)
		}
		p.occupy(a, r, len(p.Tasks)*perTask)
	}
	return parts, giveCards(a, rooms, parts)
}

// occupy is what a part takes of its room, whose tasks ask for so many CPUs.
func (p *StepPart) occupy(a *api.StepAsk, r *room, asked int) {
	p.Member, p.CPUs = r.member, r.cpus
	if a.Exact {
		p.CPUs = min(asked, r.cpus)
	}
	if r.mem > 0 {
		p.Memory = max(a.MemoryPerNode, a.MemoryPerCPU*int64(asked))
	}
}

// share says how many tasks each node gets, one after the other in turn as Slurm does, and
// which.
func share(a *api.StepAsk, used []room, tasks, perTask int) ([]StepPart, *api.Error) {
	counts := make([]int, len(used))
	for left := tasks; left > 0; {
		gave := false
		for i := range used {
			if left > 0 && counts[i] < used[i].capacity(a, perTask) {
				counts[i]++
				left--
				gave = true
			}
		}
		if !gave {
			return nil, api.Errorf(api.CodeUnsatisfiable, "no room for %d of %d tasks", left, tasks)
		}
	}
	parts := make([]StepPart, len(used))
	for i := range used {
		parts[i].occupy(a, &used[i], counts[i]*perTask)
	}
	return parts, number(a.Distribution, parts, counts)
}

// number gives tasks to nodes: in blocks, in turn, or in turn by planes of a size.
func number(how string, parts []StepPart, counts []int) *api.Error {
	plane := 0
	switch name, size, _ := strings.Cut(how, "="); {
	case name == "" || name == "block":
	case name == "cyclic":
		plane = 1
	case name == "plane":
		n, err := strconv.Atoi(size)
		if err != nil || n < 1 {
			return api.Errorf(api.CodeInvalid, "distribution %q: want plane=N", how)
		}
		plane = n
	default:
		return api.Errorf(api.CodeInvalid, "distribution %q: want block, cyclic, plane=N or arbitrary", how)
	}
	next := 0
	left := slices.Clone(counts)
	for more := true; more; {
		more = false
		for i := range parts {
			n := left[i]
			if plane > 0 {
				n = min(n, plane)
			}
			for range n {
				parts[i].Tasks = append(parts[i].Tasks, next)
				next++
			}
			left[i] -= n
			more = more || left[i] > 0
		}
	}
	return nil
}

// giveCards gives each part its cards.
func giveCards(a *api.StepAsk, used []room, parts []StepPart) *api.Error {
	left := a.GPUs
	for i := range parts {
		free := used[i].cardFree
		n := len(free)
		switch {
		case a.NoGPUs:
			n = 0
		case a.GPUsPerTask > 0:
			n = a.GPUsPerTask * len(parts[i].Tasks)
		case a.GPUsPerNode > 0:
			n = a.GPUsPerNode
		case a.GPUs > 0:
			// At least one for each node to come.
			n = min(len(free), left-(len(parts)-1-i))
			left -= n
		}
		if n < 0 || n > len(free) {
			return api.Errorf(api.CodeUnsatisfiable, "%s asked, node %s has %d GPUs for the step", stepNeed(a, max(a.CPUsPerTask, 1)), used[i].node,
				len(free))
		}
		parts[i].Cards = slices.Clone(free[:n])
	}
	if left > 0 {
		return api.Errorf(api.CodeUnsatisfiable, "%d GPUs asked, its nodes have %d", a.GPUs, a.GPUs-left)
	}
	return nil
}
