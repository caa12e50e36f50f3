package stacks

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
)

// Gang is what is compared.
type Gang struct {
	Job  int64
	Time time.Time
	// Role names the role of a rank; nil: there are none.
	Role func(rank int) string
	// Running are the ranks that have a process, in order.
	Running []int
	Members []Member
}

// Member is what was seen on one node; nil Stacks: it did not answer.
type Member struct {
	Node   string
	Stacks *api.MemberStacks
}

// fewest is how many have to be compared before one of them is odd.
const fewest = 3

// unit is one process that is compared.
type unit struct {
	api.StackProcess
	node, role string
	group      *api.StackGroup
	thread     *api.ThreadStack
}

// cluster is units in the same place.
type cluster struct {
	kind   string
	thread api.ThreadStack
	units  []unit
	mark   string // what tells it from others in the same function: " at line 12"
}

// Compare says where the processes of a gang are, and names who is not where the others are.
func Compare(g Gang) api.Stacks {
	out := api.Stacks{Time: g.Time, Groups: []api.StackGroup{}}
	var all []unit
	seen := map[int]bool{}
	for i := range g.Members {
		m := &g.Members[i]
		if m.Stacks == nil {
			out.Unreached = append(out.Unreached, m.Node)
			continue
		}
		out.More += m.Stacks.More
		for k := range m.Stacks.Groups {
			group := &m.Stacks.Groups[k]
			if len(group.Threads) == 0 {
				continue
			}
			for _, p := range group.Processes {
				u := unit{StackProcess: p, node: m.Node, group: group, thread: &group.Threads[0]}
				if p.Rank >= 0 {
					seen[p.Rank] = true
					if g.Role != nil {
						u.role = g.Role(p.Rank)
					}
				}
				all = append(all, u)
			}
		}
	}
	for _, r := range g.Running {
		if !seen[r] {
			out.Missing = append(out.Missing, r)
		}
	}
	slices.SortFunc(all, func(a, b unit) int {
		return cmp.Or(compareProcess(a.StackProcess, b.StackProcess), cmp.Compare(a.node, b.node))
	})

	best := judgement{}
	for _, side := range sides(all) {
		j := judge(side)
		for _, closer := range []func([]unit, *judgement) judgement{judgePlaces, judgeHelpers} {
			if len(j.odd) > 0 {
				break
			}
			if c := closer(side, &j); len(c.odd) > 0 {
				j = c
			}
		}
		if best.total == 0 || len(j.odd) > 0 && len(best.odd) == 0 || j.total > best.total && (len(j.odd) > 0) == (len(best.odd) > 0) {
			best, out.Kind = j, j.kind
		}
	}
	shown := best.clusters
	for _, c := range shown {
		out.Groups = append(out.Groups, c.show())
	}
	for i, c := range shown {
		if !slices.Contains(best.odd, i) {
			continue
		}
		for _, u := range c.units {
			if len(out.Odd) < api.MaxStackNamed {
				out.Odd = append(out.Odd, api.OddProcess{StackProcess: u.StackProcess, Node: u.node, Role: u.role, Group: i})
			}
		}
	}
	out.Text = sentence(&g, &best, &out)
	out.Missing = out.Missing[:min(len(out.Missing), api.MaxStackNamed)]
	out.Unreached = out.Unreached[:min(len(out.Unreached), api.MaxStackNamed)]
	var left int
	out.Groups, left = bounded(out.Groups)
	out.More += left
	return out
}

// show is a cluster as it is told.
func (c *cluster) show() api.StackGroup {
	g := api.StackGroup{Kind: c.kind, Count: len(c.units), Threads: []api.ThreadStack{c.common()}}
	for _, u := range c.units[:min(len(c.units), api.MaxStackNamed)] {
		g.Processes = append(g.Processes, u.StackProcess)
	}
	return g
}

// sides are those who are compared with each other: ranks of one role, tasks of one step.
func sides(all []unit) (out [][]unit) {
	type side struct {
		role string
		step int
		task bool
	}
	at := map[side]int{}
	for _, u := range all {
		s := side{u.role, u.Step, u.Rank < 0}
		k, ok := at[s]
		if !ok {
			k = len(out)
			at[s] = k
			out = append(out, nil)
		}
		out[k] = append(out[k], u)
	}
	return out
}

// judgement is what a comparison of one side came to.
type judgement struct {
	kind     string // of the largest cluster
	total    int
	clusters []cluster // the largest first
	odd      []int     // of them, who is named
	common   int       // how many of them are large
	helper   bool      // threads beside the main one were compared
}

// judge compares units by their threads.
func judge(side []unit) judgement {
	return judgeClusters(len(side), clusters(side))
}

// judgeClusters says who of so many is odd, by the clusters that they are in.
func judgeClusters(total int, all []cluster) judgement {
	j := judgement{total: total, clusters: all}
	if len(j.clusters) == 0 {
		return j
	}
	j.kind = j.clusters[0].kind
	most := max(1, j.total/3) // who may be odd, together
	for j.common < len(j.clusters) && len(j.clusters[j.common].units) > most {
		j.common++
	}
	odd := 0
	for _, c := range j.clusters[j.common:] {
		odd += len(c.units)
	}
	if j.total < fewest || j.common == 0 || odd > most || 2*len(j.clusters[0].units) < j.total {
		return j
	}
	for i := j.common; i < len(j.clusters); i++ {
		j.odd = append(j.odd, i)
	}
	return j
}

// clusters puts together who is in the same place: first what is equal, then what may be the same as far as is known, into the
// largest that it fits.
func clusters(side []unit) []cluster {
	at := map[string]int{}
	var out []cluster
	for _, u := range side {
		key := u.group.Kind + "\x00" + u.thread.Does + "\x00" + strings.Join(u.thread.Frames, "\x01")
		k, ok := at[key]
		if !ok {
			k = len(out)
			at[key] = k
			out = append(out, cluster{kind: u.group.Kind, thread: *u.thread})
		}
		out[k].units = append(out[k].units, u)
	}
	sortClusters(out)
	for i := len(out) - 1; i > 0; i-- {
		for k := range i {
			if alike(&out[k], &out[i]) {
				out[k].units = append(out[k].units, out[i].units...)
				out = slices.Delete(out, i, i+1)
				break
			}
		}
	}
	for i := range out {
		slices.SortFunc(out[i].units, func(a, b unit) int { return compareProcess(a.StackProcess, b.StackProcess) })
	}
	sortClusters(out)
	return out
}

func sortClusters(all []cluster) {
	slices.SortStableFunc(all, func(a, b cluster) int {
		return cmp.Or(cmp.Compare(len(b.units), len(a.units)), compareProcess(a.units[0].StackProcess, b.units[0].StackProcess))
	})
}

// alike: the small cluster may be in the place of the large one. What is not known tells nobody apart, and who moves was seen in
// more than one place.
func alike(large, small *cluster) bool {
	a, b := &large.thread, &small.thread
	if large.kind != small.kind {
		return false
	}
	moves := a.Does == api.DoesMove || b.Does == api.DoesMove
	switch {
	case a.Does != b.Does && !moves:
		return false
	case len(a.Frames) == 0 || len(b.Frames) == 0:
		return a.Frames == nil || b.Frames == nil || moves
	case moves || a.Does == api.DoesRun:
		return within(a.Frames, b.Frames)
	}
	return slices.Equal(a.Frames, b.Frames)
}

// judgeHelpers compares the threads beside the main one, of each kind that most of a side have exactly one of: what began them
// tells the kind. Those that only some have, as a writer of logs, are nobody's oddity.
func judgeHelpers(side []unit, _ *judgement) (best judgement) {
	byRoot := map[string][]unit{}
	for _, u := range side {
		count := map[string]int{}
		for i := 1; i < len(u.group.Threads); i++ {
			count[root(&u.group.Threads[i])]++
		}
		for i := 1; i < len(u.group.Threads); i++ {
			t := &u.group.Threads[i]
			if r := root(t); r != "" && count[r] == 1 {
				h := u
				h.thread = t
				byRoot[r] = append(byRoot[r], h)
			}
		}
	}
	roots := make([]string, 0, len(byRoot))
	for r, units := range byRoot {
		if 3*len(units) >= 2*len(side) && len(side) >= fewest {
			roots = append(roots, r)
		}
	}
	slices.Sort(roots)
	for _, r := range roots {
		j := judge(byRoot[r])
		j.helper = true
		if len(j.odd) > 0 && (len(best.odd) == 0 || len(j.odd) < len(best.odd)) {
			best = j
		}
	}
	return best
}

// plumbing are files of Python's own that every thread begins in, or waits by.
var plumbing = map[string]bool{"threading.py": true, "queue.py": true, "selectors.py": true, "connection.py": true, "subprocess.py": true,
	"socket.py": true, "popen_fork.py": true, "process.py": true, "context.py": true, "c10d_logger.py": true, "thread.py": true,
	"_base.py": true}

// root is the outermost call of a thread that says what the thread is for; empty: there is none.
func root(t *api.ThreadStack) string {
	for i := len(t.Frames) - 1; i >= 0; i-- {
		if !plumbing[fileOf(t.Frames[i])] {
			return t.Frames[i]
		}
	}
	return ""
}

// fileOf is the file of a frame, empty where it has none.
func fileOf(frame string) string {
	i := strings.LastIndex(frame, " (")
	if i < 0 {
		return ""
	}
	return strings.TrimSuffix(frame[i+2:], ")")
}
