package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/client/output"
	"gangd/pkg/client/program"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/nearest"
	"gangd/pkg/core/table/column"
	"gangd/pkg/core/table/jobfield"
)

// ginfo is one call of the command.
type ginfo struct {
	partitions []string
	nodes      string
	states     []string
	cards      bool
	lost       bool
	summary    bool
	noHeader   bool
	asJSON     bool
}

// NewGinfo is the command ginfo.
func NewGinfo() *cobra.Command {
	g := &ginfo{}
	cmd := &cobra.Command{
		Use:   "ginfo [OPTIONS]",
		Short: "show nodes and cards",
		Example: `  ginfo            every node: state, CPUs, memory, cards, VRAM
  ginfo --cards    every card: who uses how much of it, and strangers
  ginfo --lost     nodes that fell silent; exit status 1 when there are any`,
		Long: `-h means no header, as in sinfo; this help is --help.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return g.run(cmd) },
	}
	f := cmd.Flags()
	f.StringSliceVarP(&g.partitions, "partition", "p", nil, "nodes of these `PARTITIONS`")
	f.StringVarP(&g.nodes, "nodes", "n", "", "only these `NODES` (n1,n[3-5])")
	f.StringSliceVarP(&g.states, "states", "t", nil, "nodes in these `STATES` (up, suspect, lost, draining, drained, unknown, resv, maint)")
	f.BoolVar(&g.cards, "cards", false, "one line for each card")
	f.BoolVar(&g.lost, "lost", false, "only lost nodes; exit status 1 when there are any")
	f.BoolVarP(&g.summary, "summarize", "s", false, "one line for each partition")
	f.BoolVarP(&g.noHeader, "noheader", "h", false, "no header")
	f.BoolVar(&g.asJSON, "json", false, "all that is known, as JSON")
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	completeFlags(cmd)
	_ = cmd.RegisterFlagCompletionFunc("states", completeWith(nodeStateNames))
	program.Coloured(cmd)
	program.Timeout(cmd)
	return cmd
}

// nodeStates is every state of a node.
var nodeStates = []api.NodeState{api.NodeUp, api.NodeSuspect, api.NodeLost, api.NodeDraining, api.NodeDrained, api.NodeRebooting,
	api.NodeUnknown}

func nodeStateNames() []string {
	var names []string
	for _, st := range nodeStates {
		names = append(names, string(st))
	}
	return append(names, stateReserved, stateMaint)
}

func (g *ginfo) run(cmd *cobra.Command) error {
	if g.cards && g.summary {
		return Usagef("--cards and --summarize exclude each other")
	}
	states, err := g.wantedStates()
	if err != nil {
		return err
	}
	names, err := g.wantedNodes()
	if err != nil {
		return err
	}
	c := client.New()
	reply, err := c.Nodes(cmd.Context())
	if err != nil {
		return err
	}
	if err := g.known(reply, names); err != nil {
		return err
	}
	reply.Nodes = slices.DeleteFunc(reply.Nodes, func(n api.Node) bool {
		return len(states) > 0 && !slices.Contains(states, n.State) && !slices.Contains(states, api.NodeState(stateText(&n))) ||
			len(names) > 0 && !slices.Contains(names, n.Name) ||
			len(g.partitions) > 0 && !slices.ContainsFunc(n.Partitions, func(p string) bool { return slices.Contains(g.partitions, p) })
	})
	slices.SortFunc(reply.Nodes, func(a, b api.Node) int { return hostlist.Compare(a.Name, b.Name) })
	if err := g.show(screenOf(cmd.OutOrStdout()), reply); err != nil {
		return err
	}
	if g.lost && len(reply.Nodes) > 0 {
		return &ExitError{Status: api.ExitRefused}
	}
	return nil
}

func (g *ginfo) wantedStates() ([]api.NodeState, error) {
	var out []api.NodeState
	if g.lost {
		out = append(out, api.NodeLost)
	}
	for _, s := range g.states {
		st := api.NodeState(strings.ToLower(s))
		if !slices.Contains(nodeStateNames(), string(st)) {
			return nil, unknownName("node state", s, nodeStateNames())
		}
		out = append(out, st)
	}
	return out, nil
}

// unknownName is a usage error about a value that must be one of a few.
func unknownName(what, typed string, known []string) error {
	if near := nearest.Of(typed, known); near != "" {
		return Usagef("unknown %s %q: did you mean %s? (%s)", what, typed, near, strings.Join(known, ", "))
	}
	return Usagef("unknown %s %q (%s)", what, typed, strings.Join(known, ", "))
}

func (g *ginfo) wantedNodes() ([]string, error) {
	if g.nodes == "" {
		return nil, nil
	}
	names, err := hostlist.Expand(g.nodes)
	if err != nil {
		return nil, Usagef("invalid value %q for --nodes: %w", g.nodes, err)
	}
	return names, nil
}

// known refuses nodes and partitions that are not there.
func (g *ginfo) known(reply *api.NodesReply, names []string) error {
	var nodes, partitions []string
	for i := range reply.Nodes {
		nodes = append(nodes, reply.Nodes[i].Name)
	}
	for _, p := range reply.Partitions {
		partitions = append(partitions, p.Name)
	}
	for _, n := range names {
		if !slices.Contains(nodes, n) {
			return noSuch("node", n, nodes)
		}
	}
	for _, p := range g.partitions {
		if !slices.Contains(partitions, p) {
			return noSuch("partition", p, partitions)
		}
	}
	return nil
}

// noSuch says that something named is not there, and what is.
func noSuch(what, name string, known []string) error {
	e := api.Errorf(api.CodeNotFound, "no %s %q", what, name)
	if near := nearest.Of(name, known); near != "" {
		e.Hint = "did you mean " + near + "?"
	} else if len(known) > 0 {
		plural := what + "s"
		if strings.HasSuffix(what, "ch") {
			plural = what + "es"
		}
		e.Hint = plural + " are " + hostlist.Compress(known)
	}
	return e
}

func (g *ginfo) show(s *screen, reply *api.NodesReply) error {
	switch {
	case g.asJSON:
		return WriteJSON(s.w, reply)
	case g.summary:
		return g.partitionTable(reply).write(s)
	case g.cards:
		return g.writeCards(s, reply.Nodes)
	}
	if err := g.writeNodes(s, reply.Nodes); err != nil {
		return err
	}
	// Who asks for some of the nodes, or counts lines, is told of nodes alone.
	if some := g.nodes != "" || g.lost || len(g.partitions)+len(g.states) > 0; some || g.noHeader || len(reply.Pools) == 0 {
		return nil
	}
	fmt.Fprintln(s.w)
	return poolTable(reply.Pools).write(s)
}

// poolTable is what the site has altogether.
func poolTable(pools []api.PoolState) *table {
	t := &table{cols: []tableColumn{{head: "OF THE SITE", keep: true}, {head: "USED/TOTAL", right: true, keep: true}}}
	for i := range pools {
		t.rows = append(t.rows, []string{pools[i].Key().String(), fmt.Sprintf("%d/%d", pools[i].Used, pools[i].Count)})
	}
	return t
}

// writeNodes prints the nodes, and below them once what several are alike in: what is true of all of a cluster, as of gangd dev
// without root, would fill each line.
func (g *ginfo) writeNodes(s *screen, nodes []api.Node) error {
	alike := map[string][]string{}
	for i := range nodes {
		if text := limitsText(&nodes[i]); text != "" {
			alike[text] = append(alike[text], nodes[i].Name)
		}
	}
	maps.DeleteFunc(alike, func(_ string, names []string) bool { return len(names) < 2 })
	if err := g.nodeTable(nodes, alike).write(s); err != nil {
		return err
	}
	for _, text := range slices.Sorted(maps.Keys(alike)) {
		line := hostlist.Compress(alike[text]) + ": " + strings.TrimPrefix(text, "; ")
		if _, err := fmt.Fprintln(s.w, output.Fold(line, s.width)); err != nil {
			return err
		}
	}
	return nil
}

// nodeTable has a line for each node; what is said below, of several alike, it leaves out.
func (g *ginfo) nodeTable(nodes []api.Node, below map[string][]string) *table {
	t := &table{noHeader: g.noHeader, cols: []tableColumn{
		{head: "NODE", width: 8, keep: true}, {head: "STATE", width: 8, keep: true}, {head: "CPUS(A/T)", right: true, spare: 1},
		{head: "MEM(A/T)", right: true, spare: 3}, {head: "CARDS(F/T)", right: true}, {head: "VRAM(U/T)", right: true, spare: 2}, {head: "JOBS"},
		{head: "REASON", wrap: true},
	}}
	for i := range nodes {
		n := &nodes[i]
		free, used, total := cardSums(n)
		limits := limitsText(n)
		if below[limits] != nil {
			limits = ""
		}
		t.rows = append(t.rows, []string{
			n.Name, stateText(n),
			fmt.Sprintf("%d/%d", n.CPUsUsed, n.CPUs),
			jobfield.BytesText(n.MemoryUsed) + "/" + jobfield.BytesText(n.MemoryBytes),
			fmt.Sprintf("%d/%d", free, len(n.Cards)),
			jobfield.BytesText(used) + "/" + jobfield.BytesText(total),
			jobList(n.Jobs), strings.TrimPrefix(nodeReason(n)+limits, "; "),
		})
	}
	t.style = func(row, col int) style {
		if col != 1 {
			return plain
		}
		return nodeStyle(nodes[row].State)
	}
	return t
}

// stateText is the state of a node; one that takes work, but only for a reservation, is
// named as in sinfo.
func stateText(n *api.Node) string {
	switch r := n.Reservation; {
	case r == nil || n.State != api.NodeUp:
		return string(n.State)
	case r.Maint:
		return stateMaint
	}
	return stateReserved
}

// The states in which ginfo shows nodes that are reserved now.
const (
	stateReserved = "resv"
	stateMaint    = "maint"
)

// cardSums gives how many cards a gang could have now (none on a node that takes no work),
// and the VRAM in use, gangs' and strangers', and in total.
func cardSums(n *api.Node) (free int, used, total int64) {
	for i := range n.Cards {
		c := &n.Cards[i]
		if n.State == api.NodeUp && (n.Reservation == nil || !n.Reservation.Maint) && c.State == api.CardOK && len(c.Jobs) == 0 &&
			c.ReservedBytes == 0 {
			free++
		}
		used += max(0, c.UsedBytes) + c.StrangersBytes
		total += c.VRAMBytes
	}
	return free, used, total
}

// nodeReason is why a node is as it is; of a drained one also by whom and since when, of one
// that is cut off for how long.
func nodeReason(n *api.Node) string {
	reason := n.Reason
	if user, at := n.Drained(); user != "" {
		reason += fmt.Sprintf(" [%s@%s]", user, jobfield.Stamp(at))
	}
	switch {
	case n.Down:
		reason += "; down, what ran there is lost"
	case !n.DrainBy.IsZero():
		reason += "; empty by " + jobfield.Stamp(n.DrainBy)
	}
	if r := n.Reboot; r != nil && !r.Asap && r.Issued.IsZero() { // else the reason says so
		reason = strings.TrimPrefix(reason+"; to be rebooted when idle", "; ") + optional(", asked by ", r.By) + optional(": ", r.Reason)
	}
	if r := n.Reservation; r != nil {
		if reason != "" {
			reason += "; "
		}
		reason += "reservation " + r.Name + " until " + jobfield.Stamp(r.Until)
	}
	var since time.Time
	switch n.State {
	case api.NodeLost:
		since = n.LastSeen
	case api.NodeSuspect:
		since = n.LastSeen
	}
	if since.IsZero() {
		return reason
	}
	silent := "silent for " + ago(now().Sub(since))
	if reason == "" || n.Silent { // what the controller says is from when it was lost
		return silent
	}
	return reason + " (" + silent + ")"
}

// limitsText warns of a node that takes work, and on which a job is not kept from using more memory
// or processes than it may.
func limitsText(n *api.Node) string {
	l := &n.Limits
	loose := func(how string) bool { return how != "" && how != api.LimitEnforced }
	what := ""
	switch {
	case n.State != api.NodeUp:
		return ""
	case loose(l.Memory) && loose(l.Processes):
		what = "; memory and processes are " + l.Memory
	case loose(l.Memory):
		what = "; memory is " + l.Memory
	case loose(l.Processes):
		what = "; processes are " + l.Processes
	default:
		return ""
	}
	return what + ", not enforced: " + l.Reason
}

func nodeStyle(st api.NodeState) style {
	switch st {
	case api.NodeUp:
		return green
	case api.NodeLost:
		return red
	case api.NodeUnknown:
		return faint
	}
	return yellow
}

func jobList(ids []int64) string {
	if len(ids) == 0 {
		return "-"
	}
	var names []string
	for _, id := range ids {
		names = append(names, strconv.FormatInt(id, 10))
	}
	return strings.Join(names, ",")
}

func (g *ginfo) cardTable(nodes []api.Node) *table {
	t := &table{noHeader: g.noHeader, cols: []tableColumn{
		{head: "NODE", width: 8, keep: true}, {head: "CARD", right: true, keep: true}, {head: "STATE", width: 5, keep: true},
		{head: "MODEL", spare: 2},
		{head: "TOTAL", right: true}, {head: "RESERVED", right: true, spare: 1}, {head: "USED", right: true},
		{head: "STRANGERS", right: true, spare: 3},
		{head: "UTIL", right: true}, {head: "JOBS"}, {head: "REASON", wrap: true},
	}}
	var states []api.CardState
	for i := range nodes {
		for k := range nodes[i].Cards {
			c := &nodes[i].Cards[k]
			states = append(states, c.State)
			t.rows = append(t.rows, []string{nodes[i].Name, strconv.Itoa(c.Index), string(c.State), modelText(c.Model),
				jobfield.BytesText(c.VRAMBytes), jobfield.BytesText(c.ReservedBytes), usedText(c.UsedBytes), jobfield.BytesText(c.StrangersBytes),
				utilization(c.Utilization), jobList(c.Jobs), c.Reason})
		}
	}
	t.style = func(row, col int) style {
		switch {
		case col == 2 && states[row] == api.CardQuarantined:
			return red
		case col == 7 && t.rows[row][7] != "0":
			return yellow
		}
		return plain
	}
	return t
}

// writeCards shows cards. Where a terminal has no room for a column of reasons they stand
// below, whole: who holds a card's memory is what one came for.
func (g *ginfo) writeCards(s *screen, nodes []api.Node) error {
	t := g.cardTable(nodes)
	last := len(t.cols) - 1
	room := last
	for _, w := range t.widths() {
		room += w
	}
	if !s.terminal || room <= s.width {
		return t.write(s)
	}
	var below []string
	for i, row := range t.rows {
		if row[last] != "" {
			below = append(below, fmt.Sprintf("%s card %s: %s", row[0], row[1], column.Printable(row[last])))
		}
		t.rows[i] = row[:last]
	}
	t.cols = t.cols[:last]
	if err := t.write(s); err != nil {
		return err
	}
	for _, line := range below {
		if _, err := fmt.Fprintln(s.w, s.paint(red, line)); err != nil {
			return err
		}
	}
	return nil
}

// modelText leaves out who makes nearly all of them.
func modelText(model string) string { return strings.TrimPrefix(model, "NVIDIA ") }

// usedText is VRAM in use, which a driver may not tell.
func usedText(bytes int64) string {
	if bytes < 0 {
		return "?"
	}
	return jobfield.BytesText(bytes)
}

func utilization(percent int) string {
	if percent < 0 {
		return "?"
	}
	return strconv.Itoa(percent) + "%"
}

// partitionTable is sinfo -s: nodes allocated/idle/other/total for each partition.
func (g *ginfo) partitionTable(reply *api.NodesReply) *table {
	t := &table{noHeader: g.noHeader, cols: []tableColumn{
		{head: "PARTITION", width: 9, keep: true}, {head: "AVAIL", width: 5, right: true, spare: 2},
		{head: "TIMELIMIT", width: 10, right: true, spare: 1},
		{head: "NODES(A/I/O/T)", width: 16, right: true}, {head: "CARDS(F/T)", right: true}, {head: "NODELIST"},
	}}
	parts := slices.SortedFunc(slices.Values(reply.Partitions), func(a, b api.Partition) int { return cmp.Compare(a.Name, b.Name) })
	for _, p := range parts {
		if len(g.partitions) > 0 && !slices.Contains(g.partitions, p.Name) {
			continue
		}
		t.rows = append(t.rows, partitionRow(&p, reply.Nodes))
	}
	return t
}

func partitionRow(p *api.Partition, nodes []api.Node) []string {
	var alloc, idle, other, free, cards int
	var names []string
	for i := range nodes {
		n := &nodes[i]
		if !slices.Contains(n.Partitions, p.Name) {
			continue
		}
		names = append(names, n.Name)
		switch {
		case n.State != api.NodeUp:
			other++
		case len(n.Jobs) > 0:
			alloc++
		default:
			idle++
		}
		f, _, _ := cardSums(n)
		free += f
		cards += len(n.Cards)
	}
	name := p.Name
	if p.Default {
		name += "*"
	}
	limit := "infinite"
	if p.MaxTime > 0 {
		limit = jobfield.Elapsed(p.MaxTime)
	}
	return []string{name, cmp.Or(string(p.State), "up"), limit, fmt.Sprintf("%d/%d/%d/%d", alloc, idle, other, len(names)),
		fmt.Sprintf("%d/%d", free, cards), hostlist.Compress(names)}
}
