package gang

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/cmdline/when"
)

// What a partition asks of jobs is judged here and nowhere else: of a job that is submitted or changed, and of all that wait
// whenever a partition, somebody's groups or the job is another.

// Entrant is a job as the limits of partitions are held against it.
type Entrant struct {
	UID           uint32
	User, Account string
	Groups        []string // those of the partitions' groups that the user is of
	TimeLimit     time.Duration
	Spec          *api.Spec
}

// Why a partition keeps a job from being started in it, as Slurm spells it.
const (
	WordPartitionDown     = "PartitionDown"
	WordPartitionInactive = "PartitionInactive"
	WordPartitionTime     = "PartitionTimeLimit"
	WordPartitionNodes    = "PartitionNodeLimit"
	WordPartitionAccess   = "AccountNotAllowed" // of users and groups too
)

// EntrantOf is a job in memory.
func EntrantOf(j *Job, groups []string) *Entrant {
	return &Entrant{UID: j.UID, User: j.User, Account: j.Spec.Account, Groups: groups, TimeLimit: j.TimeLimit, Spec: j.Spec}
}

// KeptBy is why a partition keeps a job that waits from being started in it; empty: it does not. Its limits
// are those of now, and not of the time at which the job was submitted.
func KeptBy(p *api.Partition, a *Entrant) string {
	switch {
	case p.State == api.PartitionDown:
		return WordPartitionDown
	case !p.State.Starts():
		return WordPartitionInactive
	}
	return Limited(p, a)
}

// Limited is KeptBy whatever the partition's state is.
func Limited(p *api.Partition, a *Entrant) string {
	switch {
	case !openTo(p, a) || !openToAccount(p, a.Account):
		return WordPartitionAccess
	case p.MaxTime > 0 && (a.TimeLimit == 0 || a.TimeLimit > p.MaxTime):
		return WordPartitionTime
	case (p.MinNodes > 0 || p.MaxNodes > 0) && partOutside(p, a.Spec) >= 0:
		return WordPartitionNodes
	}
	return ""
}

// openTo: root may use every partition, as in Slurm.
func openTo(p *api.Partition, a *Entrant) bool {
	if len(p.AllowUsers)+len(p.AllowGroups) == 0 || a.UID == 0 || slices.Contains(p.AllowUsers, a.User) {
		return true
	}
	return slices.ContainsFunc(p.AllowGroups, func(g string) bool { return slices.Contains(a.Groups, g) })
}

func openToAccount(p *api.Partition, account string) bool {
	if len(p.AllowAccounts) > 0 {
		return slices.Contains(p.AllowAccounts, account)
	}
	return !slices.Contains(p.DenyAccounts, account)
}

// partOutside is the first component that can't have a number of nodes that the partition allows, 0 of a job without
// any; -1: there is none.
func partOutside(p *api.Partition, s *api.Spec) int {
	outside := func(s *api.Spec) bool {
		least, most := nodeRange(s)
		return p.MaxNodes > 0 && least > p.MaxNodes || most < p.MinNodes
	}
	for i := range s.Components() {
		if c := s.Roles[i].Component; c.Partition != "" && !slices.Contains(strings.Split(c.Partition, ","), p.Name) {
			continue
		}
		if outside(s.Part(i)) {
			return i
		}
	}
	if s.Components() == 0 && outside(s) {
		return 0
	}
	return -1
}

// nodeRange are the fewest and the most nodes that a gang can have by what it asks for.
func nodeRange(s *api.Spec) (least, most int) {
	least, most = max(1, s.MinNodes), s.Size
	if s.MaxNodes > 0 {
		most = min(most, s.MaxNodes)
	}
	if n := s.RanksPerNode; n > 0 && len(s.Roles) == 0 {
		n = (s.Size + min(n, s.Size) - 1) / min(n, s.Size)
		least, most = max(least, n), min(most, n)
	}
	return least, most
}

// Refuse says what a partition has against a job for which Limited has a word, as a submission is refused.
func Refuse(p *api.Partition, a *Entrant, word string) *api.Error {
	switch {
	case word == WordPartitionAccess && !openTo(p, a):
		e := api.Errorf(api.CodePermission, "partition %s is not open to %s: it is for %s", p.Name, a.User, whoMay(p))
		return hinted(e.About(api.ReasonPartitionAccess, p.Name), "ginfo -s lists the others; gctl show partition says who may use which")
	case word == WordPartitionAccess:
		who := "account " + a.Account
		if a.Account == "" {
			who = "a job without an account"
		}
		e := api.Errorf(api.CodePermission, "partition %s is not open to %s: %s", p.Name, who, whichAccounts(p))
		return hinted(e.About(api.ReasonPartitionAccount, p.Name), "name another account with --account, or another partition")
	case word == WordPartitionTime:
		e := api.Errorf(api.CodeInvalid, "time limit %s is above the %s that partition %s allows", limitOrNone(a.TimeLimit),
			when.Words(p.MaxTime), p.Name)
		return hinted(e.About(api.ReasonTimeLimit, ""), fmt.Sprintf("ask for --time=%d or less (minutes)", int(p.MaxTime.Minutes())))
	case word == WordPartitionNodes:
		return nodesRefusal(p, a.Spec)
	}
	return nil
}

func hinted(e *api.Error, hint string) *api.Error {
	e.Hint = hint
	return e
}

// limitOrNone is a limit as partitions speak of it.
func limitOrNone(d time.Duration) string {
	if d == 0 {
		return "unlimited"
	}
	return when.Words(d)
}

func whoMay(p *api.Partition) string {
	var who []string
	if len(p.AllowUsers) > 0 {
		who = append(who, "users "+strings.Join(p.AllowUsers, ","))
	}
	if len(p.AllowGroups) > 0 {
		who = append(who, "groups "+strings.Join(p.AllowGroups, ","))
	}
	return strings.Join(who, " and ")
}

func whichAccounts(p *api.Partition) string {
	if len(p.AllowAccounts) > 0 {
		return "it is for accounts " + strings.Join(p.AllowAccounts, ",")
	}
	return "it is closed to accounts " + strings.Join(p.DenyAccounts, ",")
}

func nodesRefusal(p *api.Partition, s *api.Spec) *api.Error {
	what, part := "the job", s
	if s.Components() > 0 {
		i := max(0, partOutside(p, s))
		what, part = fmt.Sprintf("component %d", i), s.Part(i)
	}
	least, most := nodeRange(part)
	e := api.Errorf(api.CodeInvalid, "%s takes at least %s, and partition %s allows %d", what, api.Count(least, "node"), p.Name, p.MaxNodes)
	e.Hint = fmt.Sprintf("ask for --nodes=%d or fewer, or for another partition", p.MaxNodes)
	if most < p.MinNodes {
		e.Message = fmt.Sprintf("%s takes at most %s, and partition %s wants %d", what, api.Count(most, "node"), p.Name, p.MinNodes)
		e.Hint = fmt.Sprintf("ask for --nodes=%d or more, or for another partition", p.MinNodes)
	}
	return e.About(api.ReasonPartitionNodes, p.Name)
}

// WhyKept says why a job waits that a partition keeps, and what lets it go.
func WhyKept(p *api.Partition, job int64, a *Entrant, word string) string {
	switch word {
	case WordPartitionDown:
		return fmt.Sprintf("partition %s is down: an admin lets nothing start in it", p.Name)
	case WordPartitionInactive:
		return fmt.Sprintf("partition %s is inactive: an admin lets nothing start in it", p.Name)
	case WordPartitionTime:
		return fmt.Sprintf("its time limit is %s, and partition %s allows %s by now; gctl update %d --time=%d lowers it",
			limitOrNone(a.TimeLimit), p.Name, when.Words(p.MaxTime),
			job, int(p.MaxTime.Minutes()))
	case "":
		return ""
	}
	e := Refuse(p, a, word)
	return fmt.Sprintf("%s; gctl update %d --partition=NAME moves it", e.Message, job)
}

// Groups says of which of the groups that partitions name users are, as the directory of people has it now.
type Groups struct{ Of map[uint32][]string }

func (Groups) event() {}

// Groups are those that were told, by user; not to be written to.
func (w *World) Groups() map[uint32][]string { return w.site.partitions.groups }

// inText names partitions with their bounds.
func inText(in []cluster.In) string {
	if len(in) == 1 && in[0].MinNodes == 0 && in[0].MaxNodes == 0 {
		return in[0].Name
	}
	var b strings.Builder
	for i, p := range in {
		if i > 0 {
			b.WriteByte(',')
		}
		if b.WriteString(p.Name); p.MinNodes > 0 || p.MaxNodes > 0 {
			fmt.Fprintf(&b, ":%d-%d", p.MinNodes, p.MaxNodes)
		}
	}
	return b.String()
}

// Into are those of the named partitions that have nothing against a job by what judge says ([KeptBy] or [Limited]), with
// what they allow it. Where there are none the first of them is kept, nil of one that is not there, with its word.
func Into(find func(name string) *api.Partition, named string, a *Entrant, judge func(*api.Partition, *Entrant) string) (in []cluster.In,
	kept *api.Partition, word string) {
	words := map[string]string{}
	for name := range strings.SplitSeq(named, ",") {
		p, against := find(name), WordPartitionInactive
		if p != nil {
			against = judge(p, a)
		}
		if words[name] = against; against == "" {
			in = append(in, cluster.In{Name: name, MinNodes: p.MinNodes, MaxNodes: p.MaxNodes})
		} else if word == "" {
			kept, word = p, against
		}
	}
	for i := range a.Spec.Components() { // all start together, each in one of its own
		own := strings.Split(a.Spec.Roles[i].Component.Partition, ",")
		if own[0] != "" && !slices.ContainsFunc(own, func(name string) bool { return words[name] == "" }) {
			return nil, find(own[0]), words[own[0]]
		}
	}
	if in != nil {
		return in, nil, ""
	}
	return nil, kept, word
}

// startsIn are those of a job's partitions in which it may be started.
func (ps *partitions) startsIn(j *Job) []cluster.In {
	if ps.file == nil {
		return unboundedIn(j.Partition)
	}
	in, _, _ := Into(ps.find, j.Partition, EntrantOf(j, ps.groups[j.UID]), KeptBy)
	return in
}

func unboundedIn(names string) (in []cluster.In) {
	for name := range strings.SplitSeq(names, ",") {
		in = append(in, cluster.In{Name: name})
	}
	return in
}
