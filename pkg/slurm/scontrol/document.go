package scontrol

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/table/jobfield"
	"gangd/pkg/slurm/document"
	"gangd/pkg/slurm/sinfo"
	"gangd/pkg/slurm/squeue"
)

// documents is what --json and --yaml are of: show of these entities. Of another the table is printed,
// as by a Slurm that has no document of it.
var documents = map[string]func(*call, string) int{
	"job": (*call).jobDocument, "node": (*call).nodeDocument, "partition": (*call).partitionDocument,
	"reservation": (*call).reservationDocument, "licenses": (*call).licenseDocument,
}

// writeDocument writes the list that make gives for a data parser.
func (c *call) writeDocument(kind string, build func(document.Parser) []document.Object) int {
	style, err := c.document.Style(c.ctx, c.client, c.Streams)
	if err == nil && style.Parser < document.V40 {
		err = fmt.Errorf("Slurm %s has no --json of scontrol", style.Release)
	}
	if err != nil {
		return cmdline.Exit(options.Print(err, c.Streams))
	}
	style.Command = append([]string{"scontrol"}, c.args...)
	updated := c.now
	if kind == "pings" {
		updated = time.Time{} // no state of the controller's, which has no time
	}
	return cmdline.Exit(style.Write(c.Out, style.Envelope(kind, build(style.Parser), updated)))
}

func (c *call) jobDocument(id string) int {
	jobs, refs, status := c.loadJobs(id)
	if status != 0 {
		return status
	}
	return c.writeDocument("jobs", func(p document.Parser) (list []document.Object) {
		rows := jobfield.Fold{Expand: len(refs) == 1 && refs[0].Index >= 0, Records: true}.Rows(jobs)
		for i := range rows {
			list = append(list, squeue.JobObject(&rows[i], p))
		}
		return list
	})
}

func (c *call) nodeDocument(id string) int {
	reply, err := c.client.Nodes(c.ctx)
	if err != nil {
		return c.failed("slurm_load_nodes error", err)
	}
	want, err := hostlist.Expand(id)
	if err != nil || id != "" && !slices.ContainsFunc(reply.Nodes, func(n api.Node) bool { return slices.Contains(want, n.Name) }) {
		fmt.Fprintf(c.Out, "Node %s not found\n", id)
		return 1
	}
	slices.SortFunc(reply.Nodes, func(a, b api.Node) int { return hostlist.Compare(a.Name, b.Name) })
	return c.writeDocument("nodes", func(p document.Parser) (list []document.Object) {
		for i := range reply.Nodes {
			if n := &reply.Nodes[i]; id == "" || slices.Contains(want, n.Name) {
				list = append(list, sinfo.NodeObject(n, p))
			}
		}
		return list
	})
}

func (c *call) partitionDocument(id string) int {
	reply, err := c.client.Nodes(c.ctx)
	if err != nil {
		return c.failed("slurm_load_partitions error", err)
	}
	return c.writeDocument("partitions", func(p document.Parser) (list []document.Object) {
		for i := range reply.Partitions {
			if part := &reply.Partitions[i]; id == "" || part.Name == id {
				list = append(list, sinfo.PartitionObject(part, reply, p))
			}
		}
		return list
	})
}

func (c *call) reservationDocument(id string) int {
	reply, nodes, status := c.loadReservations(id)
	if status != 0 {
		return status
	}
	return c.writeDocument("reservations", func(document.Parser) (list []document.Object) {
		for i := range reply {
			list = append(list, reservationObject(&reply[i], nodes))
		}
		return list
	})
}

func reservationObject(r *api.Reservation, nodes []api.Node) document.Object {
	cpus := reservedCPUs(r, nodes)
	flags := strings.Split(reservationFlags(r, len(r.Nodes) == len(nodes)), ",")
	return document.Of(
		"accounts", strings.Join(r.Accounts, ","), "burst_buffer", "", "core_count", cpus, "core_specializations", []any{},
		"end_time", document.At(r.End), "features", "", "flags", document.Flags(flags), "groups", "", "licenses", "",
		"max_start_delay", 0, "name", r.Name, "node_count", len(r.Nodes), "node_list", hostlist.Compress(r.Nodes), "partition", "",
		"purge_completed", document.Of("time", document.Number{}), "start_time", document.At(r.Start), "watts", document.Number{},
		"tres", fmt.Sprintf("cpu=%d", cpus), "users", strings.Join(r.Users, ","))
}

// pingDocument says of the one controller whether it answered, as show does in a line.
func (c *call) pingDocument(took time.Duration, err error) int {
	pinged := "UP"
	if err != nil {
		pinged = "DOWN"
	}
	return c.writeDocument("pings", func(p document.Parser) []document.Object {
		return []document.Object{p.Members("hostname", hostname(), "pinged", pinged, document.Since(document.V42, "responding"), err == nil,
			"latency", took.Microseconds(), "mode", "primary", document.Since(document.V42, "primary"), true)}
	})
}
