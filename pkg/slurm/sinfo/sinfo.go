package sinfo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/table/column"
	"gangd/pkg/core/table/jobfield"
	"gangd/pkg/slurm"
)

// sinfo is one call.
type sinfo struct {
	choices
	cmdline.Streams
	args   []string
	view   *jobfield.View
	states wanted
	names  []string // of -n
	told   bool     // bad fields were named: once is enough
}

// Run is the command. Words that are no options are passed over, as sinfo does.
func Run(args []string, s cmdline.Streams) int {
	i := &sinfo{Streams: s, args: args}
	if _, err := command.Parse(&i.choices, args, s); err != nil {
		return cmdline.Exit(err)
	}
	return cmdline.Exit(command.Print(i.run(context.Background()), s))
}

func (s *sinfo) run(ctx context.Context) error {
	s.environment(os.Getenv)
	var err error
	if s.states, err = parseStates(s.choices.states); err != nil {
		return err
	}
	if s.nodes != "" {
		if s.names, err = hostlist.Expand(s.nodes); err != nil {
			return errors.New("Invalid node list: " + s.nodes)
		}
	}
	s.view = &jobfield.View{Stamp: slurm.Stamper(os.Getenv("SLURM_TIME_FORMAT"), jobfield.Now)}
	c := client.New()
	if s.reserv {
		return s.reservations(ctx, c)
	}
	return slurm.Repeat(s.Streams, s.iterate, func() error { return s.once(ctx, c) })
}

func (s *sinfo) once(ctx context.Context, c *client.Client) error {
	reply, err := c.Nodes(ctx)
	if err != nil {
		return cmdline.Bare("slurm_load_partitions: " + slurm.Words(err))
	}
	if s.document.Asked() {
		return s.dump(ctx, c, reply)
	}
	out := bufio.NewWriter(s.Out)
	defer out.Flush()
	if s.verbose > 0 {
		fmt.Fprintf(out, "-----------------------------\nformat      = %s\niterate     = %d\nnodes       = %s\npartition   = %s\nstates      = "+
			"%s\nverbose     = %d\n-----------------------------\n",
			orNone(s.shown(reply)), s.iterate, orNone(s.nodes), orNone(strings.Join(s.partitions, ",")), orNone(s.choices.states), s.verbose)
	}
	if s.cluster && !s.noHeader {
		fmt.Fprintln(out, "CLUSTER: "+cmdline.Cluster)
	}
	if (s.long || s.iterate > 0) && !s.noHeader {
		fmt.Fprintln(out, jobfield.Now().Local().Format("Mon Jan 02 15:04:05 2006"))
	}
	line := s.line(reply)
	if !s.noHeader {
		writeLine(out, line.AppendHead(nil))
	}
	for _, r := range s.records(reply, &line) {
		writeLine(out, line.Append(nil, r))
	}
	return nil
}

// reservations is -T.
func (s *sinfo) reservations(ctx context.Context, c *client.Client) error {
	reply, err := c.Reservations(ctx)
	if err != nil {
		return cmdline.Bare("slurm_load_reservations: " + slurm.Words(err))
	}
	if len(reply.Reservations) == 0 {
		fmt.Fprintln(s.Out, "No reservations in the system")
		return nil
	}
	width := 10
	for _, r := range reply.Reservations {
		width = max(width, len(r.Name))
	}
	const row = "%-*s%9s  %19s  %19s  %11s  %s\n"
	if !s.noHeader {
		fmt.Fprintf(s.Out, row, width, "RESV_NAME", "STATE", "START_TIME", "END_TIME", "DURATION", "NODELIST")
	}
	for _, r := range reply.Reservations {
		state := map[bool]string{true: "ACTIVE", false: "INACTIVE"}[r.Active]
		fmt.Fprintf(s.Out, row, width, r.Name, state, jobfield.Stamp(r.Start), jobfield.Stamp(r.End), when.Span(r.End.Sub(r.Start)),
			hostlist.Compress(r.Nodes))
	}
	return nil
}

func orNone(s string) string {
	if s == "" {
		return "n/a"
	}
	return s
}

func writeLine(out *bufio.Writer, line []byte) {
	out.Write(line)
	out.WriteByte('\n')
}

// shown is the format as it was given, or the usual one with the widths that the names need.
func (s *sinfo) shown(reply *api.NodesReply) string {
	switch {
	case s.longFormat != nil:
		return *s.longFormat
	case s.format != nil:
		return *s.format
	}
	partition, node := 0, 0
	for i := range reply.Partitions {
		partition = max(partition, len((&record{part: &reply.Partitions[i]}).starred()))
	}
	for i := range reply.Nodes {
		node = max(node, len(reply.Nodes[i].Name))
	}
	return s.usual(partition, node)
}

func (s *sinfo) line(reply *api.NodesReply) column.Line[*record] {
	bad := func(what string) {
		if !s.told {
			fmt.Fprintf(s.Err, "Invalid node format specification: %s\n", what) // without the name, as sinfo does
		}
	}
	defer func() { s.told = true }()
	if s.longFormat != nil {
		return fields.Names(*s.longFormat, func(what string) {
			if !s.told {
				s.Errorf("sinfo", "Invalid job format specification: %s", what) // the word is Slurm's
			}
		})
	}
	l := fields.Letters(s.shown(reply), bad)
	if s.format != nil && *s.format == everyLetter {
		// sinfo puts a blank behind the fields of upper-case letters.
		for i := range l.Columns {
			if c := &l.Columns[i]; c.Letter < 'a' {
				c.Suffix = " " + c.Suffix
			}
		}
	}
	return l
}

// records is the lines in their order.
func (s *sinfo) records(reply *api.NodesReply, line *column.Line[*record]) []*record {
	parts := slices.DeleteFunc(slices.Clone(reply.Partitions), func(p api.Partition) bool {
		return len(s.partitions) > 0 && !slices.Contains(s.partitions, p.Name)
	})
	in := func(p *api.Partition) []*api.Node { return s.nodesOf(reply, p) }
	if s.reasons { // a node is named once, whatever partitions it is in
		parts = parts[:min(len(parts), 1)]
		in = func(*api.Partition) []*api.Node { return s.unwell(reply) }
	}
	rs := group(parts, in, line, s.view, grouping{each: s.node, exact: s.exact})
	if s.reasons {
		rs = slices.DeleteFunc(rs, func(r *record) bool { return len(r.nodes) == 0 })
	}
	for _, r := range rs {
		r.preempt = reply.Preempt
	}
	if keys, bad := fields.Keys(s.order()); bad == "" {
		s.sorted(rs, keys)
	}
	return rs
}

// sorted orders lines by the keys; by -t only within the lines of a partition.
func (s *sinfo) sorted(rs []*record, keys []column.Key[*record]) {
	if s.sort != nil || s.node || s.reasons {
		column.Sort(rs, keys)
		return
	}
	for from := 0; from < len(rs); {
		to := from
		for to < len(rs) && rs[to].order == rs[from].order {
			to++
		}
		column.Sort(rs[from:to], keys)
		from = to
	}
}

// nodesOf is the nodes of a partition that the filters let through, by name.
func (s *sinfo) nodesOf(reply *api.NodesReply, p *api.Partition) []*api.Node {
	var out []*api.Node
	for i := range reply.Nodes {
		n := &reply.Nodes[i]
		if slices.Contains(n.Partitions, p.Name) && s.takes(n) {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, func(a, b *api.Node) int { return hostlist.Compare(a.Name, b.Name) })
	return out
}

func (s *sinfo) takes(n *api.Node) bool {
	st := stateOf(n)
	return (s.names == nil || slices.Contains(s.names, n.Name)) && s.states.takes(st) &&
		(!s.dead || st.mute) && (!s.responding || !st.mute)
}

// unwell is the nodes that are out of service, for -R.
func (s *sinfo) unwell(reply *api.NodesReply) []*api.Node {
	var out []*api.Node
	for i := range reply.Nodes {
		n := &reply.Nodes[i]
		in := len(s.partitions) == 0 || slices.ContainsFunc(n.Partitions, func(p string) bool { return slices.Contains(s.partitions, p) })
		if in && s.takes(n) && reasonOf(n) != "none" {
			out = append(out, n)
		}
	}
	return out
}
