package gang

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/why"
)

// Whose fault a failed launch is. A node says what it can know ([api.Blame]); the rest is found
// out by trying elsewhere:
//
//	refused by one node, started by others    that node's: a strike
//	refused by two, or twice by the only one  the job's: charged
//	late, or gone before the start            nobody's, unless others start it
//
// The jobs of one user alone take no node out of service, whatever they fail of: what a node finds wrong with itself it says as
// its health.

// blameLate is the controller's own judgement of a node that did not answer in time. It is no
// word against the job.
const blameLate api.Blame = "late"

// Refusal is a node that could not start a gang, since its last start.
type Refusal struct {
	Node  string    `json:"node"`
	Blame api.Blame `json:"blame"`
	Text  string    `json:"text"`
}

// Strike is a failed launch that speaks against a node.
type Strike struct {
	Time  time.Time `json:"time"`
	Job   int64     `json:"job"`
	User  string    `json:"user"`
	Blame api.Blame `json:"blame"`
	Text  string    `json:"text"`
}

const (
	maxRefusals = 16 // remembered of a gang
	maxStrikes  = 16 // and of a node
	maxText     = 400
)

// refuse rolls back a gang that node i can't start, and says who pays for it. cleaning: the site's epilog runs there first.
func (ln *launches) refuse(h *host, e *entry, i int, r *api.Refusal, cleaning bool) {
	node, text := h.node.Name, h.node.Name+": "+r.Text
	again := slices.ContainsFunc(e.job.Refusals, func(o Refusal) bool { return againstJob(o.Blame) })
	avoid := []string{node}
	switch {
	case againstJob(r.Blame):
		ln.remember(e, Refusal{node, r.Blame, r.Text})
	case r.Blame != api.BlameNode:
		avoid = nil
	}
	ln.rollback(e, text, avoid, func(k int) bool { return k == i && !cleaning })
	switch {
	case r.Blame == api.BlameJob:
		ln.ownFault(e, text)
	case r.Blame == api.BlameNode:
		ln.strike(h, Strike{Job: e.job.ID, User: e.job.User, Blame: r.Blame, Text: r.Text})
	case againstJob(r.Blame) && again:
		ln.ownFault(e, refusalText(e.job))
	}
}

// remember puts a node that failed a gang on record, before the gang goes back to the queue.
func (ln *launches) remember(e *entry, r Refusal) {
	r.Text = r.Text[:min(len(r.Text), maxText)]
	ln.changeAsk(e, func(j *Job) {
		list := slices.DeleteFunc(slices.Clone(j.Refusals), func(o Refusal) bool { return o.Node == r.Node })
		list = append(list, r)
		j.Refusals = list[max(0, len(list)-maxRefusals):]
	})
	ln.refused[e.job.ID] = e
	ln.lookElsewhere(e)
}

// changeAsk changes what a gang asks for.
func (ln *launches) changeAsk(e *entry, change func(j *Job)) {
	change(ln.jobs.edit(e))
	ln.specs.askAgain(e)
}

// refusalText is the word of all nodes against a job.
func refusalText(j *Job) string {
	var out []string
	for _, r := range j.Refusals {
		if againstJob(r.Blame) {
			out = append(out, r.Node+": "+r.Text)
		}
	}
	return strings.Join(out, "; ")
}

// lookElsewhere keeps a gang off the nodes that refused it while others in service could
// hold it, busy as they may be: tried again where it was refused it would only use up its budget.
func (ln *launches) lookElsewhere(e *entry) {
	j := e.job
	could := false
	if out := RefusedBy(j); len(out) > 0 {
		var nodes []*cluster.Node
		for _, h := range ln.nodes.sorted {
			if n := h.node.Res; (n.Ready || n.Away) && !slices.Contains(out, n.Name) {
				nodes = append(nodes, n)
			}
		}
		could = why.CouldHold(nodes, e.asked.ask)
	}
	if could != j.Elsewhere {
		ln.changeAsk(e, func(j *Job) { j.Elsewhere = could })
	}
}

// lookAgain is lookElsewhere for all, after a node came into service or went out of it.
func (ln *launches) lookAgain() {
	for _, id := range slices.Sorted(maps.Keys(ln.refused)) {
		e := ln.refused[id]
		if was := e.job.Elsewhere; blocked(e.job) {
			if ln.lookElsewhere(e); was != e.job.Elsewhere {
				ln.queue.touch(e)
			}
		}
	}
}

// startedElsewhere: nodes that could not start a gang which others have started now were at
// fault themselves.
func (ln *launches) startedElsewhere(e *entry) {
	refusals := e.job.Refusals
	if len(refusals) == 0 {
		return
	}
	ln.changeAsk(e, func(j *Job) { j.Refusals, j.Elsewhere = nil, false })
	delete(ln.refused, e.job.ID)
	for _, r := range refusals {
		h := ln.nodes.byName[r.Node]
		if h == nil || r.Blame == api.BlameUser || slices.ContainsFunc(e.job.Members, func(m Member) bool { return m.Node == r.Node }) {
			continue
		}
		ln.strike(h, Strike{Job: e.job.ID, User: e.job.User, Blame: r.Blame, Text: fmt.Sprintf("%s; started by %s", r.Text,
			e.job.Members[0].Node)})
	}
}

// Breaker drains nodes after failed launches: gangd itself, by no person's word.
const Breaker = "gangd"

// strike counts a failed launch; enough of them take the node out, or it would draw gang
// after gang and fail them all.
func (ln *launches) strike(h *host, s Strike) {
	n := ln.nodes.edit(h)
	s.Time, s.Text = ln.clock.now.Wall, s.Text[:min(len(s.Text), maxText)]
	list := append(slices.Clone(n.Strikes), s)
	n.Strikes = list[max(0, len(list)-maxStrikes):]
	if ln.set.LaunchStrikes > 0 && weight(n.Strikes) >= ln.set.LaunchStrikes && notOneUsers(n.Strikes) && n.Admin == "" {
		ln.fleet.takeOut(h, Breaker, "launch failures: "+s.text(), time.Time{}, false)
	}
}

func (s *Strike) text() string { return fmt.Sprintf("job %d: %s", s.Job, s.Text) }

// weight is what strikes count for together: once for a user, whose doing each may be. The node's own, and what the site does not
// provide there, count by the job once they are of several users: never by the tries of one.
func weight(strikes []Strike) int {
	jobs := map[int64]bool{}
	users, owners := map[string]bool{}, map[string]bool{}
	for _, s := range strikes {
		switch s.Blame {
		case api.BlameNode, api.BlameSite:
			jobs[s.Job], owners[s.User] = true, true
		default:
			users[s.User] = true
		}
	}
	if len(owners) == 1 {
		maps.Copy(users, owners)
		clear(jobs)
	}
	return len(jobs) + len(users)
}

// notOneUsers: they are not the doing of one user.
func notOneUsers(strikes []Strike) bool {
	return slices.ContainsFunc(strikes, func(s Strike) bool { return s.User != strikes[0].User })
}

// forgive drops the strikes that a good start of a user's gang speaks against: the node's own,
// and those of that user.
func (ln *launches) forgive(h *host, user string) {
	speaks := func(s Strike) bool { return s.Blame == api.BlameNode || s.User == user }
	if slices.ContainsFunc(h.node.Strikes, speaks) {
		n := ln.nodes.edit(h)
		n.Strikes = slices.DeleteFunc(slices.Clone(n.Strikes), speaks)
	}
}

// StrikeText says for people what speaks against a node in service; empty: nothing.
func StrikeText(n *Node) string {
	if len(n.Strikes) == 0 {
		return ""
	}
	last := &n.Strikes[len(n.Strikes)-1]
	if len(n.Strikes) == 1 {
		return "a launch failed: " + last.text()
	}
	return fmt.Sprintf("%d launches failed, the last one: %s", len(n.Strikes), last.text())
}

// ownFault charges a gang that no node can prepare to the launch budget: as a strike it would
// drain one good node after the other.
func (ln *launches) ownFault(e *entry, text string) {
	j := ln.jobs.edit(e)
	charge(j, api.CauseLaunch)
	if spent(ln.set, j, api.CauseLaunch) {
		ln.stops.end(e, verdictOf(j, api.CauseLaunch, -1, text))
		return
	}
	ln.backoff(e, used(j, api.CauseLaunch))
	ln.queue.touch(e)
}
