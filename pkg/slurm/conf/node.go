package conf

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// node is one node of slurm.conf.
type node struct {
	name, addr string
	line       Line
	cpus       int // 0: gnoded counts them
	memory     int // MB, 0: gnoded finds out
	features   []string
	gpus       int // of Gres, -1: not said
}

// nodeKeys is every key of a NodeName line and what becomes of it; the texts of those that
// have a meaning are made as they are read.
var nodeKeys = map[string]string{
	"nodename": "", "nodehostname": "", "nodeaddr": "", "cpus": "", "procs": "", "boards": "", "sockets": "", "socketsperboard": "",
	"corespersocket": "", "threadspercore": "", "realmemory": "", "corespeccount": "", "cpuspeclist": "", "memspeclimit": "",
	"features": "", "feature": "", "gres": "", "state": "",
	"bcastaddr":   noBcast,
	"tresweights": "use is counted in card time", "restrictedcorespergpu": "a rank's CPUs are chosen near its cards",
	"topology": "switches are a tree, read from topology_file", "gresconf": "gres.conf is read as a file of its own",
	"parameters":  "gnoded finds out what the node has",
	"suspendtime": noPower,
	"cpubind":     "each job has CPUs of its own (cpu_bind in gnoded.toml); srun --cpu-bind says what a task has",
	"port":        "no daemon on a node listens on the network",
	"reason":      "gctl node drain NODE --reason=TEXT says it",
	"tmpdisk":     "a node says what it has: on the disk of private_path, else of /tmp",
	"weight":      "places are chosen by what they leave free for others; a feature with --constraint tells nodes apart",
}

// nodeLine reads NodeName=...; NodeName=DEFAULT is for the lines behind it.
func (s *site) nodeLine(l Line) {
	if strings.EqualFold(l.Items[0].Value, "default") {
		s.nodeBase = append(slices.Clone(s.nodeBase), l.Items[1:]...)
		s.say(l.Items[0], Taken, "for the nodes behind it")
		for _, i := range l.Items[1:] {
			s.nodeItem(&node{}, i)
		}
		return
	}
	n := s.describe(l.Items)
	if written := l.Items[0].Value; written != strings.ToLower(written) {
		s.say(l.Items[0], Different, "names of nodes are in lower case")
	} else {
		s.say(l.Items[0], Taken, "")
	}
	for _, i := range l.Items[1:] {
		s.nodeItem(n, i)
	}
	names := s.hosts(l.Items[0])
	addrs := names
	if n.addr != "" {
		if addrs = s.hosts(Item{"NodeAddr", n.addr}); len(addrs) == 1 {
			addrs = slices.Repeat(addrs, len(names))
		}
	}
	if len(addrs) != len(names) {
		s.errs = append(s.errs, l.at("NodeAddr=%s has %d names for %d nodes", n.addr, len(addrs), len(names)))
		return
	}
	for i, name := range names {
		if !nodeRE.MatchString(name) {
			s.errs = append(s.errs, l.at("node %s: gangd wants 1 to 63 of a-z 0-9 . - that begin and end with a letter or digit", name))
			return
		}
		if slices.ContainsFunc(s.nodes, func(o *node) bool { return o.name == name }) {
			s.errs = append(s.errs, l.at("node %s is there already", name))
			continue
		}
		one := *n
		one.name, one.addr, one.line = name, addrs[i], l
		s.nodes = append(s.nodes, &one)
	}
}

// describe reads what a line and the defaults before it say of its nodes.
func (s *site) describe(items []Item) *node {
	n := &node{gpus: -1}
	v := map[string]string{}
	for _, i := range append(slices.Clone(s.nodeBase), items...) {
		v[strings.ToLower(i.Key)] = i.Value
	}
	get := func(key string) int { n, _ := strconv.Atoi(v[key]); return max(n, 0) }
	n.addr = v["nodeaddr"]
	if n.addr == "" {
		n.addr = v["nodehostname"]
	}
	n.cpus = max(get("cpus"), get("procs"))
	if n.cpus == 0 && (v["sockets"] != "" || v["socketsperboard"] != "" || v["corespersocket"] != "" || v["threadspercore"] != "") {
		sockets := max(get("sockets"), max(get("boards"), 1)*get("socketsperboard"), 1)
		n.cpus = sockets * max(get("corespersocket"), 1) * max(get("threadspercore"), 1)
	}
	// Each reserved core takes its threads with it.
	n.cpus = max(n.cpus-get("corespeccount")*max(get("threadspercore"), 1), 0)
	n.memory = max(get("realmemory")-get("memspeclimit"), 0)
	for _, f := range strings.Split(v["features"]+","+v["feature"], ",") {
		if f = strings.TrimSpace(f); f != "" {
			n.features = append(n.features, f)
		}
	}
	for _, g := range strings.Split(v["gres"], ",") {
		if kind, count := gresOf(g); strings.EqualFold(kind, "gpu") {
			n.gpus = max(n.gpus, 0) + count
		}
	}
	return n
}

// gresOf cuts NAME[:TYPE][:COUNT][(...)]; without a count it is one.
func gresOf(g string) (kind string, count int) {
	g, _, _ = strings.Cut(g, "(")
	parts := strings.Split(strings.TrimSpace(g), ":")
	if n, err := strconv.Atoi(parts[len(parts)-1]); err == nil && len(parts) > 1 {
		return parts[0], min(max(n, 0), 1<<20)
	}
	return parts[0], 1
}

// nodeItem says what becomes of one key of a line.
func (s *site) nodeItem(n *node, item Item) {
	key := strings.ToLower(item.Key)
	why, ok := nodeKeys[key]
	switch {
	case !ok:
		s.unknown(item, []string{"NodeName", "NodeHostname", "NodeAddr", "BcastAddr", "Boards", "CoreSpecCount", "CoresPerSocket", "CpuBind",
			"CPUs", "CpuSpecList", "Features", "Gres", "MemSpecLimit", "Port", "Procs", "RealMemory", "Reason", "Sockets",
			"SocketsPerBoard", "State", "ThreadsPerCore", "TmpDisk", "Weight"})
		return
	case why != "":
		s.say(item, None, why)
		return
	}
	switch key {
	case "cpus", "procs", "boards", "sockets", "socketsperboard", "corespersocket", "threadspercore", "realmemory", "corespeccount",
		"memspeclimit":
		if s.number(item) < 0 {
			return
		}
	}
	switch key {
	case "cpus", "procs":
		s.say(item, Taken, "cpus")
	case "boards", "sockets", "socketsperboard", "corespersocket", "threadspercore":
		s.say(item, Different, "the node reads its sockets, cores and threads from its machine")
	case "realmemory":
		s.say(item, Taken, "memory")
	case "corespeccount":
		s.say(item, Different, "so many are not offered; which, the system decides")
	case "cpuspeclist":
		s.say(item, None, "CPUs are counted, not placed; CoreSpecCount is kept")
	case "memspeclimit":
		s.say(item, Taken, "not offered")
	case "nodename":
		s.wrong(item, "one NodeName a line")
	case "nodeaddr", "nodehostname":
		s.say(item, Taken, "address, where ranks of other nodes reach it")
	case "features", "feature":
		s.say(item, Taken, "features")
	case "gres":
		s.nodeGres(item)
	case "state":
		s.nodeState(item)
	}
}

func (s *site) nodeGres(item Item) {
	for _, g := range strings.Split(item.Value, ",") {
		kind, count := gresOf(g)
		t, ok := gresWords[strings.ToLower(kind)]
		if !ok {
			t = gresWords[""]
		}
		if strings.EqualFold(kind, "gpu") {
			t.text += fmt.Sprintf(" (%d a node are expected)", count)
		}
		s.say(Item{item.Key, g}, t.outcome, t.text)
	}
}

func (s *site) nodeState(item Item) {
	switch strings.ToUpper(strings.TrimRight(item.Value, "*")) {
	case "UNKNOWN", "UP", "IDLE":
		s.say(item, Taken, "")
	case "CLOUD", "FUTURE", "EXTERNAL":
		s.say(item, Different, "a node is known from when it joins on")
	case "DOWN", "DRAIN", "FAIL", "FAILING":
		s.say(item, None, "gctl node drain NODE keeps one out of use, once it has joined")
	default:
		s.wrong(item, "want UNKNOWN, DOWN, DRAIN, FAIL, FAILING, CLOUD, FUTURE or EXTERNAL")
	}
}

// downLine reads DownNodes=..., whose states are told to the running system here.
func (s *site) downLine(l Line) {
	for _, i := range l.Items {
		s.say(i, None, "gctl node drain NODE --reason=TEXT keeps one out of use, once it has joined")
	}
}

func (s *site) frontendLine(l Line) {
	for _, i := range l.Items {
		s.say(i, None, "there are no front ends; a login host runs gnoded with login = true")
	}
}
