package conf

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// partition is one of slurm.conf.
type partition struct {
	name        string
	line        Line
	nodes       []string // empty: all
	preset      bool
	deflt, maxT time.Duration // 0: unlimited
	hasDeflt    bool
	tier        int
	state       string
	groups      []string // who may run in it; empty: everybody
	accounts    []string
	denied      []string
	least, most int      // nodes of a job; 0: any
	features    []string // of node sets, resolved when all nodes are known
	isAll       bool
}

const (
	noAccess = "a partition is open by user, group and account; who may not run at all is kept out by gnoded's min_uid and groups, on each " +
		"node"
	noQOS    = "there is no quality of service"
	noBounds = "a partition limits time and nodes alone"
)

// partitionKeys is every key of a PartitionName line; as nodeKeys.
var partitionKeys = map[string]string{
	"partitionname": "", "nodes": "", "default": "", "defaulttime": "", "maxtime": "", "prioritytier": "", "priority": "", "state": "",
	"preemptmode": "", "oversubscribe": "", "shared": "", "gracetime": "",
	"allocnodes":    "every login host may submit",
	"allowaccounts": "", "allowgroups": "", "denyaccounts": "", "minnodes": "", "maxnodes": "",
	"allowqos": noQOS, "denyqos": noQOS, "rootonly": noAccess, "disablerootjobs": "gnoded's min_uid (1000) refuses root's jobs anyway",
	"alternate":      "jobs name several partitions (-p a,b) instead",
	"cpubind":        "each job has CPUs of its own (cpu_bind in gnoded.toml); srun --cpu-bind says what a task has",
	"defcpupergpu":   "a job gets the CPUs that it asks for",
	"defmempercpu":   "a job that asks for no memory gets no share of its own counted",
	"defmempergpu":   "a job that asks for no memory gets no share of its own counted",
	"defmempernode":  "a job that asks for no memory gets no share of its own counted",
	"exclusiveuser":  "nodes are shared by users; --exclusive in the script",
	"hidden":         "every partition is shown",
	"lln":            "places are chosen by what they leave free for others",
	"maxcpuspernode": noBounds, "maxmempercpu": noBounds, "maxmempernode": noBounds,
	"powerdownonidle": noPower, "exclusivetopo": "nodes are shared; a job that wants whole ones says --exclusive",
	"exclusive":         "nodes are shared; a job that wants whole ones says --exclusive",
	"topology":          "switches are a tree for the whole site, read from topology_file",
	"overtimelimit":     "the time limit is exact",
	"priorityjobfactor": "the tier is the partition's weight",
	"qos":               noQOS,
	"reqresv":           "a partition needs no reservation",
	"resumetimeout":     noPower, "suspendtime": noPower, "suspendtimeout": noPower,
	"selecttypeparameters": "CPUs, memory and cards are given out one by one",
	"tresbillingweights":   "use is counted in card time",
	"maxcpuspersocket":     noBounds,
}

func (s *site) partitionLine(l Line) {
	if strings.EqualFold(l.Items[0].Value, "default") {
		s.partBase = append(slices.Clone(s.partBase), l.Items[1:]...)
		s.say(l.Items[0], Taken, "for the partitions behind it")
		for _, i := range l.Items[1:] {
			s.partitionItem(&partition{}, i, true)
		}
		return
	}
	p := &partition{name: l.Items[0].Value, line: l}
	if !partitionRE.MatchString(p.name) {
		s.wrong(l.Items[0], "gangd wants 1 to 63 of a-z A-Z 0-9 . _ - that begin and end with a letter or digit")
		return
	}
	for _, o := range s.partitions {
		if o.name == p.name {
			s.errs = append(s.errs, l.at("partition %s is there already", p.name))
			return
		}
	}
	s.say(l.Items[0], Taken, "")
	errs := s.errs
	for _, i := range s.partBase {
		s.partitionItem(p, i, false)
	}
	s.errs = errs // what is wrong there was said there
	for _, i := range l.Items[1:] {
		s.partitionItem(p, i, true)
	}
	s.partitions = append(s.partitions, p)
}

// partitionItem takes one key, and says what becomes of it unless a DEFAULT line did.
func (s *site) partitionItem(p *partition, item Item, aloud bool) {
	say := func(o Outcome, text string) {
		if aloud {
			s.say(item, o, text)
		}
	}
	key := strings.ToLower(item.Key)
	why, ok := partitionKeys[key]
	switch {
	case !ok:
		s.unknown(item, []string{"AllocNodes", "AllowAccounts", "AllowGroups", "AllowQos", "Alternate", "CpuBind", "Default", "DefaultTime",
			"DefMemPerCPU", "DefMemPerNode", "DenyAccounts", "DenyQos", "ExclusiveUser", "GraceTime", "Hidden", "LLN", "MaxCPUsPerNode",
			"MaxMemPerNode", "MaxNodes", "MaxTime", "MinNodes", "Nodes", "OverSubscribe", "PartitionName", "PreemptMode",
			"PriorityJobFactor", "PriorityTier", "QOS", "ReqResv", "RootOnly", "State", "TRESBillingWeights"})
	case (why == noAccess || why == noQOS) && (strings.EqualFold(item.Value, "all") || strings.EqualFold(item.Value, "no")):
		say(Taken, "")
	case why != "":
		say(None, why)
	case key == "nodes":
		s.partitionNodes(p, item)
		say(Taken, "nodes")
	case key == "default":
		p.preset = strings.EqualFold(item.Value, "yes")
		say(Taken, "default")
	case key == "defaulttime", key == "maxtime":
		s.partitionTime(p, item, key, say)
	case key == "prioritytier", key == "priority":
		s.partitionTier(p, item, say)
	case key == "state":
		s.partitionState(p, item, say)
	case key == "allowgroups":
		p.groups = namesOrAll(item.Value)
		say(Taken, "allow_groups")
	case key == "allowaccounts":
		p.accounts = namesOrAll(item.Value)
		say(Taken, "allow_accounts")
	case key == "denyaccounts":
		p.denied = namesOrAll(item.Value)
		say(Taken, "deny_accounts")
	case key == "minnodes":
		s.partitionNumber(&p.least, item, "min_nodes", say)
	case key == "maxnodes":
		s.partitionNumber(&p.most, item, "max_nodes", say)
	case key == "preemptmode":
		say(Different, "who gives way is decided by tiers, for the whole site")
	case key == "gracetime":
		say(Different, "grace is the site's; the script says its own with --grace, and --signal=SIG@TIME when it wants to be told before")
	case key == "oversubscribe", key == "shared":
		s.partitionShare(item, say)
	case key == "partitionname":
		s.wrong(item, "one PartitionName a line")
	}
}

func (s *site) partitionTime(p *partition, item Item, key string, say func(Outcome, string)) {
	d, ok := s.time(item)
	if !ok {
		return
	}
	if key == "maxtime" {
		p.maxT = d
		say(Taken, "max_time")
		return
	}
	p.deflt, p.hasDeflt = d, true
	say(Taken, "default_time")
}

func (s *site) partitionTier(p *partition, item Item, say func(Outcome, string)) {
	n := s.number(item)
	if n < 0 {
		return
	}
	p.tier = min(n, 1000)
	if n > 1000 {
		say(Different, "tier = 1000, the highest")
		return
	}
	say(Taken, "tier")
}

func (s *site) partitionState(p *partition, item Item, say func(Outcome, string)) {
	switch word := strings.ToLower(item.Value); word {
	case "up":
		p.state = ""
		say(Taken, "")
	case "down", "drain", "inactive":
		p.state = word
		say(Taken, "state")
	default:
		s.wrong(item, "want UP, DOWN, DRAIN or INACTIVE")
	}
}

// namesOrAll reads a list of names; none are all.
func namesOrAll(v string) []string {
	var out []string
	for name := range strings.SplitSeq(v, ",") {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, name)
		}
	}
	if len(out) == 1 && strings.EqualFold(out[0], "all") {
		return nil
	}
	return out
}

func (s *site) partitionNumber(to *int, item Item, key string, say func(Outcome, string)) {
	if v := strings.ToUpper(item.Value); v == "UNLIMITED" || v == "INFINITE" {
		*to = 0
		say(Taken, key)
		return
	}
	switch n := s.number(item); {
	case n < 0:
	case n > 65536:
		*to = 0
		say(Different, "any number: gangd has no site of more than 65536 nodes")
	default:
		*to = n
		say(Taken, key)
	}
}

func (s *site) partitionShare(item Item, say func(Outcome, string)) {
	word, _, _ := strings.Cut(strings.ToUpper(item.Value), ":")
	switch word {
	case "NO":
		say(Taken, "a CPU and a card are given once")
	case "EXCLUSIVE":
		say(None, "nodes are shared; a job that wants whole ones says --exclusive")
	case "YES", "FORCE":
		say(Different, "CPUs are given once; cards are shared by --share --vram=SIZE")
	default:
		s.wrong(item, "want NO, YES[:N], FORCE[:N] or EXCLUSIVE")
	}
}

// partitionNodes reads Nodes=: ALL, node sets and ranges.
func (s *site) partitionNodes(p *partition, item Item) {
	p.nodes, p.features, p.isAll = nil, nil, false
	if item.Value == `""` || item.Value == "" {
		s.wrong(item, "want nodes")
		return
	}
	for _, name := range s.rawHosts(item) {
		set, isSet := s.sets[strings.ToLower(name)]
		switch {
		case strings.EqualFold(name, "all"):
			p.isAll = true
		case isSet && set.feature != "":
			p.features = append(p.features, set.feature)
		case isSet:
			p.nodes = append(p.nodes, set.nodes...)
		default:
			p.nodes = append(p.nodes, strings.ToLower(name))
		}
	}
}

// setLine reads NodeSet=NAME Nodes=... or Feature=...; lines of it stand before their use.
func (s *site) setLine(l Line) {
	var set nodeSet
	for _, i := range l.Items {
		switch {
		case i.is("NodeSet"):
			s.say(i, Taken, "")
		case i.is("Nodes"):
			set.nodes = s.hosts(i)
			s.say(i, Taken, "")
		case i.is("Feature"):
			set.feature = i.Value
			s.say(i, Taken, "the nodes that have it now")
		default:
			s.unknown(i, []string{"NodeSet", "Nodes", "Feature"})
		}
	}
	s.sets[strings.ToLower(l.Items[0].Value)] = set
}

// settlePartitions resolves features, and checks that every node is one.
func (s *site) settlePartitions() {
	known := map[string]*node{}
	for _, n := range s.nodes {
		known[n.name] = n
	}
	defaults := 0
	for _, p := range s.partitions {
		for _, n := range s.nodes {
			if slices.ContainsFunc(p.features, func(f string) bool { return slices.Contains(n.features, f) }) {
				p.nodes = append(p.nodes, n.name)
			}
		}
		for _, name := range p.nodes {
			if known[name] == nil && !p.isAll {
				s.errs = append(s.errs, p.line.at("partition %s: there is no node %s", p.name, name))
				break
			}
		}
		if p.maxT > 0 && p.deflt > p.maxT {
			s.errs = append(s.errs, p.line.at("partition %s: DefaultTime is longer than MaxTime", p.name))
		}
		if p.most > 0 && p.least > p.most {
			s.errs = append(s.errs, p.line.at("partition %s: MinNodes is above MaxNodes", p.name))
		}
		if !p.hasDeflt {
			p.deflt = p.maxT // Slurm gives a job that asks for no limit the longest
		}
		if p.preset {
			if defaults++; defaults == 2 {
				s.errs = append(s.errs, p.line.at("partition %s: another one is the default already", p.name))
			}
		}
	}
}

// toml writes the table of a partition.
func (p *partition) toml(b *strings.Builder) {
	fmt.Fprintf(b, "\n# %s:%d\n[[partition]]\nname = %s\n", p.line.File, p.line.N, quote(p.name))
	if !p.isAll && len(p.nodes) > 0 {
		slices.Sort(p.nodes)
		b.WriteString("nodes = " + list(slices.Compact(p.nodes)) + "\n")
	}
	if p.preset {
		b.WriteString("default = true\n")
	}
	if p.deflt > 0 {
		b.WriteString("default_time = " + duration(p.deflt) + "\n")
	}
	if p.maxT > 0 {
		b.WriteString("max_time = " + duration(p.maxT) + "\n")
	}
	if p.tier != 0 {
		fmt.Fprintf(b, "tier = %d\n", p.tier)
	}
	if p.state != "" {
		fmt.Fprintf(b, "state = %q\n", p.state)
	}
	for _, l := range []struct {
		key string
		of  []string
	}{{"allow_groups", p.groups}, {"allow_accounts", p.accounts}, {"deny_accounts", p.denied}} {
		if len(l.of) > 0 {
			b.WriteString(l.key + " = " + list(l.of) + "\n")
		}
	}
	if p.least > 0 {
		fmt.Fprintf(b, "min_nodes = %d\n", p.least)
	}
	if p.most > 0 {
		fmt.Fprintf(b, "max_nodes = %d\n", p.most)
	}
}
