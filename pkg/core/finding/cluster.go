package finding

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/cmdline/when"
)

// Facts are what a cluster said of itself. What is nil was not to be had.
type Facts struct {
	Now          time.Time // on the host that asks
	Version      string    // of the command
	Asked        time.Duration
	Time         time.Time // on the controller's host, zero: it did not say
	Ping         *api.PingReply
	Nodes        *api.NodesReply
	Jobs         []api.Job // that have not ended
	Reservations []api.Reservation
	Outbox       *api.OutboxReply
	Verify       *api.VerifyReply
	Only         []string // findings of these nodes alone; none: of everything
}

// From when on something is late.
const (
	clockApart   = time.Minute
	noticesLate  = time.Hour
	heldLong     = 7 * 24 * time.Hour
	startingLong = time.Hour
	stoppingSlow = 10 * time.Minute // beyond its grace
	manyRestarts = 10
	farBehind    = 30 * time.Second
)

// Cluster finds what is wrong with a cluster.
func Cluster(f *Facts) List {
	var l List
	if len(f.Only) == 0 {
		f.controllers(&l)
		f.notices(&l)
		f.partitions(&l)
		f.reservations(&l)
		f.jobs(&l)
		for _, text := range verified(f.Verify) {
			l.Add("store-disagrees", "store", "%s", text)
		}
	}
	f.nodes(&l)
	return l
}

func verified(v *api.VerifyReply) []string {
	if v == nil {
		return nil
	}
	return v.Findings
}

func (f *Facts) controllers(l *List) {
	p := f.Ping
	if p == nil {
		return
	}
	if p.Hold != "" {
		l.Add("controller-hold", "gangd", "%s", p.Hold)
	}
	if p.Version != f.Version {
		l.Add("controller-version", "gangd", "the controller is %s, the commands here are %s", p.Version, f.Version)
	}
	if !f.Time.IsZero() {
		if apart := f.Now.Sub(f.Time); apart.Abs() > clockApart+f.Asked {
			ahead := "ahead of"
			if apart < 0 {
				ahead = "behind"
			}
			l.Add("clock-differs", "this host", "its clock is %s %s the controller's", when.Words(apart.Abs().Round(time.Second)), ahead)
		}
	}
	standsBy := 0
	for i := range p.Controllers {
		c := &p.Controllers[i]
		switch c.State {
		case api.ControllerSilent:
			l.Add("controller-silent", c.Name, "%s", cmp.Or(c.Why, "no answer"))
		case api.ControllerJoins:
			l.Add("controller-joins", c.Name, "%s", cmp.Or(c.Why, "it may not lead yet"))
		case api.ControllerStandsBy:
			standsBy++
			if behind := time.Duration(c.BehindSeconds * float64(time.Second)); behind > farBehind {
				l.Add("controller-behind", c.Name, "it lacks %d commits, and lacked none %s ago", c.BehindCommits,
					when.Words(behind.Round(time.Second)))
			}
		}
	}
	if len(p.Controllers) == 1 && standsBy == 0 {
		l.Add("controller-alone", p.Controllers[0].Name, "it leads, and nobody would take over")
	}
}

func (f *Facts) notices(l *List) {
	if f.Outbox == nil {
		return
	}
	for i := range f.Outbox.GivenUp {
		n := &f.Outbox.GivenUp[i]
		l.Add("notices-given-up", n.User, "%s of job %s to %s: %s", n.Type, n.Ref, cmp.Or(n.To, n.Target), n.Error)
	}
	for i := range f.Outbox.Lines {
		n := &f.Outbox.Lines[i]
		if age := f.Now.Sub(n.Oldest); age > noticesLate && n.Tries > 0 {
			l.Add("notices-late", n.User, "%d for %s since %s, failed %d times: %s", n.Waiting, cmp.Or(n.To, n.Target),
				n.Oldest.Format(time.RFC3339), n.Tries, n.Error)
		}
	}
}

// works reports whether a node could take work.
func works(n *api.Node) bool { return n.State == api.NodeUp }

func (f *Facts) partitions(l *List) {
	if f.Nodes == nil {
		return
	}
	hasDefault := false
	for i := range f.Nodes.Partitions {
		p := &f.Nodes.Partitions[i]
		hasDefault = hasDefault || p.Default
		var unseen []string
		working, of := 0, 0
		for k := range f.Nodes.Nodes {
			if n := &f.Nodes.Nodes[k]; slices.Contains(n.Partitions, p.Name) {
				of++
				if works(n) {
					working++
				}
			}
		}
		for _, name := range p.Nodes {
			if !slices.ContainsFunc(f.Nodes.Nodes, func(n api.Node) bool { return n.Name == name }) {
				unseen = append(unseen, name)
			}
		}
		if unseen != nil {
			l.Add("partition-nodes", "partition "+p.Name, "it names %s", strings.Join(unseen, ", "))
		}
		if working == 0 && len(f.Nodes.Nodes) > 0 {
			l.Add("partition-empty", "partition "+p.Name, "none of its %d nodes is up", of)
		}
		if p.State != api.PartitionUp {
			l.Add("partition-closed", "partition "+p.Name, "its state is %s", p.State)
		}
	}
	if !hasDefault && len(f.Nodes.Partitions) > 0 {
		l.Add("partition-default", "partitions", "none of %d is the default", len(f.Nodes.Partitions))
	}
	waiting := map[string]int{}
	for i := range f.Jobs {
		if j := &f.Jobs[i]; j.State == api.JobPending && len(f.Nodes.Partitions) > 0 {
			waiting[j.Partition]++
		}
	}
	l.Left(waiting, func(name string) bool {
		return slices.ContainsFunc(f.Nodes.Partitions, func(p api.Partition) bool { return p.Name == name })
	})
	for i := range f.Nodes.Changes {
		c := &f.Nodes.Changes[i]
		what := "changed"
		switch {
		case c.Partition == nil:
			what = "deleted"
		case c.File == nil:
			what = "made"
		}
		l.Add("partition-changed", "partition "+c.Name, "%s by %s at %s", what, cmp.Or(c.By, "somebody"), c.Time.Format(time.RFC3339))
	}
}

// Left finds the jobs that wait, so many by the partitions that they name, of which none is there.
func (l *List) Left(waiting map[string]int, there func(partition string) bool) {
	for _, named := range slices.Sorted(maps.Keys(waiting)) {
		if named != "" && !slices.ContainsFunc(strings.Split(named, ","), there) {
			l.Add("partition-left", "partition "+named, "it is not there any more, and %s of it still to start", api.Count(waiting[named], "job"))
		}
	}
}

func (f *Facts) reservations(l *List) {
	if f.Nodes == nil {
		return
	}
	for i := range f.Reservations {
		r := &f.Reservations[i]
		if slices.Contains(r.Flags, api.FlagMaint) || !r.Active {
			continue
		}
		var out []string
		for _, name := range r.Nodes {
			for k := range f.Nodes.Nodes {
				if n := &f.Nodes.Nodes[k]; n.Name == name && !works(n) {
					out = append(out, name+" ("+string(n.State)+")")
				}
			}
		}
		if out != nil {
			l.Add("reservation-lost", "reservation "+r.Name, "of its %d nodes these are not up: %s", len(r.Nodes), strings.Join(out, ", "))
		}
	}
}

// never are the reasons of jobs that can't start before somebody changes something.
var never = []string{"DependencyNeverSatisfied", "BadConstraints", "PartitionTimeLimit", "PartitionNodeLimit", "ReservationDeleted",
	"InvalidAccount", "AccountNotAllowed"}

func (f *Facts) jobs(l *List) {
	slack, starts := 30*time.Second, 30*time.Second
	if f.Ping != nil && f.Ping.Site != nil {
		slack, starts = f.Ping.Site.DrainSlack, f.Ping.Site.StartTimeout
	}
	for i := range f.Jobs {
		j := &f.Jobs[i]
		id := "job " + strconv.FormatInt(j.JobID, 10)
		if j.ArrayIndex != nil {
			id = fmt.Sprintf("job %d_%d", j.ArrayJobID, *j.ArrayIndex)
		}
		switch {
		case j.State == api.JobPending && slices.Contains(never, j.Reason):
			l.Add("job-never", id, "it waits since %s for %s: %s", j.SubmitTime.Format(time.RFC3339), j.Reason, firstLine(j.Why))
		case j.State == api.JobPending && j.Held == api.HoldAdmin && f.Now.Sub(j.SubmitTime) > heldLong:
			l.Add("job-held", id, "of %s, held by an admin, submitted %s", j.User, j.SubmitTime.Format(time.RFC3339))
		case j.State == api.JobReserved && !j.StartTime.IsZero() && f.Now.Sub(j.StartTime) > startingLong+starts:
			l.Add("job-starting", id, "on %s since %s%s", strings.Join(j.Nodes, ","), j.StartTime.Format(time.RFC3339), also(j.Status))
		}
		grace := time.Duration(j.GraceSeconds) * time.Second
		if since := stopping(j); !since.IsZero() && f.Now.Sub(since) > grace+slack+stoppingSlow {
			l.Add("job-stopping", id, "on %s since %s, its grace is %s", strings.Join(j.Nodes, ","), since.Format(time.RFC3339),
				when.Words(grace))
		}
		if j.RestartCount > manyRestarts {
			l.Add("job-restarts", id, "run again %d times, the last time after %s", j.RestartCount,
				cmp.Or(string(j.Cause), "an end of another cause"))
		}
		if len(j.Epilog) > 0 && !j.EndTime.IsZero() && f.Now.Sub(j.EndTime) > stoppingSlow {
			l.Add("epilog-runs", id, "it ended %s, and the epilog runs on %s", j.EndTime.Format(time.RFC3339), strings.Join(j.Epilog, ","))
		}
	}
}

// stopping is since when a job that is being stopped has been: its time limit, where that has passed. What else stops it is not
// said with a time.
func stopping(j *api.Job) time.Time {
	if j.State != api.JobCompleting && j.State != api.JobRunning || j.TimeLimitSeconds == 0 || j.StartTime.IsZero() {
		return time.Time{}
	}
	return j.StartTime.Add(time.Duration(j.TimeLimitSeconds) * time.Second)
}

func also(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

func (f *Facts) nodes(l *List) {
	if f.Nodes == nil {
		return
	}
	if len(f.Nodes.Nodes) == 0 {
		l.Add("nodes-none", "gangd", "it knows no node")
	}
	for i := range f.Nodes.Nodes {
		n := &f.Nodes.Nodes[i]
		if len(f.Only) > 0 && !slices.Contains(f.Only, n.Name) {
			continue
		}
		var of List
		f.state(&of, n)
		f.holds(&of, n)
		f.machine(&of, n)
		for k := range n.Cards {
			card(&of, n, &n.Cards[k])
		}
		if n.Load != nil {
			of = append(of, n.Load.Findings...)
		}
		for k := range of {
			of[k].Node = n.Name
		}
		*l = append(*l, of...)
	}
}

func (f *Facts) state(l *List, n *api.Node) {
	switch n.State {
	case api.NodeLost:
		l.Add("node-lost", n.Name, "%s; last seen %s, it has %d jobs", cmp.Or(n.Reason, "silent"), seen(n.LastSeen), len(n.Jobs))
	case api.NodeSuspect:
		l.Add("node-suspect", n.Name, "its session is cut; last seen %s", seen(n.LastSeen))
	case api.NodeUnknown:
		l.Add("node-unknown", n.Name, "it has not been seen since the controller was started")
	case api.NodeDrained, api.NodeDraining:
		switch n.DrainUser {
		case "":
			l.Add("node-unfit", n.Name, "%s: %s", n.State, n.Reason)
		case "gangd":
			l.Add("node-strikes", n.Name, "%s since %s: %s", n.State, seen(n.DrainTime), n.Reason)
		default:
			l.Add("node-drained", n.Name, "%s by %s at %s: %s", n.State, n.DrainUser, seen(n.DrainTime),
				cmp.Or(n.Reason, "no reason was given"))
		}
	}
	if n.Strikes > 0 && works(n) {
		l.Add("node-strike", n.Name, "%d: %s", n.Strikes, n.Reason)
	}
	if f.Ping != nil && n.Version != "" && n.Version != f.Ping.Version {
		l.Add("node-version", n.Name, "it is %s, the controller is %s", n.Version, f.Ping.Version)
	}
}

func seen(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Format(time.RFC3339)
}

// holds is how a node keeps jobs apart.
func (f *Facts) holds(l *List, n *api.Node) {
	if n.Containment != "" && !strings.HasPrefix(n.Containment, "cgroup") {
		l.Add("node-containment", n.Name, "jobs are held by %s", n.Containment)
	}
	if n.Limits.Reason != "" {
		l.Add("node-limits", n.Name, "%s", n.Limits.Reason)
	}
	if n.Devices != "" && n.Devices != api.LimitEnforced && len(n.Cards) > 0 {
		l.Add("node-devices", n.Name, "%s", n.Devices)
	}
}

// machine holds a node against the others.
func (f *Facts) machine(l *List, n *api.Node) {
	if n.BootID == "" {
		return // it was never there
	}
	var alike int
	var cards, cpus int
	var memory int64
	for i := range f.Nodes.Nodes {
		o := &f.Nodes.Nodes[i]
		if o.Name == n.Name || o.BootID == "" {
			continue
		}
		if n.Address != "" && o.Address == n.Address && o.BootID != n.BootID {
			l.Add("node-address", n.Name, "it has the address %s, as %s has", n.Address, o.Name)
		}
		if sameKind(n, o) {
			if alike == 0 {
				cards, cpus, memory = len(o.Cards), o.CPUs, o.MemoryBytes
			}
			alike++
			cards, cpus, memory = min(cards, len(o.Cards)), min(cpus, o.CPUs), min(memory, o.MemoryBytes)
		}
	}
	if alike >= 2 {
		switch {
		case len(n.Cards) < cards:
			l.Add("node-odd", n.Name, "it has %d cards, each of %d others of its kind at least %d", len(n.Cards), alike, cards)
		case n.CPUs < cpus:
			l.Add("node-odd", n.Name, "it has %d CPUs, each of %d others of its kind at least %d", n.CPUs, alike, cpus)
		case n.MemoryBytes < memory-memory/20:
			l.Add("node-odd", n.Name, "it has %s of memory, each of %d others of its kind at least %s", cluster.Size(n.MemoryBytes), alike,
				cluster.Size(memory))
		}
	}
}

// sameKind: a site bought them together. They share a partition, and their cards, where both have some, are of one model.
func sameKind(a, b *api.Node) bool {
	if len(a.Cards) > 0 && len(b.Cards) > 0 && a.Cards[0].Model != b.Cards[0].Model || (len(b.Cards) == 0) != (len(a.Cards) == 0) {
		return false
	}
	return slices.Equal(slices.Sorted(slices.Values(a.Partitions)), slices.Sorted(slices.Values(b.Partitions))) &&
		slices.Equal(slices.Sorted(slices.Values(a.Features)), slices.Sorted(slices.Values(b.Features)))
}

func card(l *List, n *api.Node, c *api.Card) {
	name := fmt.Sprintf("%s card %d", n.Name, c.Index)
	if c.State != api.CardOK {
		l.Add("card-unhealthy", name, "%s: %s", c.State, cmp.Or(c.Reason, "no reason is known"))
	}
	if c.StrangersBytes > c.VRAMBytes/100 && c.StrangersBytes > 64<<20 {
		l.Add("card-strangers", name, "%s of its %s are held by processes that no job started", cluster.Size(c.StrangersBytes),
			cluster.Size(c.VRAMBytes))
	}
}
