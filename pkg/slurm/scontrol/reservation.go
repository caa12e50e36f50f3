package scontrol

import (
	"fmt"
	"slices"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/client/jobs"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/table/jobfield"
	"gangd/pkg/slurm"
)

// Slurm's words for reservations.
const (
	badReservation = "Requested reservation is invalid"
	duplicateName  = "Duplicate reservation name"
	overlapping    = "Requested reservation overlaps with another reservation"
	busyNodes      = "Requested nodes are busy"
	badUser        = "Invalid user id"
	badTime        = "Invalid time specified"
	notSkipable    = "Reservation given is not skipable, try deleting instead"
)

// showReservation is "show reservation [NAME]".
func (c *call) showReservation(_, id string) int {
	reply, nodes, status := c.loadReservations(id)
	if status != 0 {
		return status
	}
	if len(reply) == 0 {
		fmt.Fprintln(c.Out, "No reservations in the system")
		return 0
	}
	for i := range reply {
		c.record(reservationLines(&reply[i], nodes), false)
	}
	return 0
}

// loadReservations are all of them or the one that is named, and the nodes.
func (c *call) loadReservations(id string) ([]api.Reservation, []api.Node, int) {
	reply, err := c.client.Reservations(c.ctx)
	if err != nil {
		return nil, nil, c.failed("slurm_load_reservations error", err)
	}
	if id != "" {
		reply.Reservations = slices.DeleteFunc(reply.Reservations, func(r api.Reservation) bool { return r.Name != id })
		if len(reply.Reservations) == 0 {
			fmt.Fprintf(c.Out, "Reservation %s not found\n", id)
			return nil, nil, 1
		}
	}
	nodes, err := c.client.Nodes(c.ctx)
	if err != nil {
		return nil, nil, c.failed("slurm_load_node error", err)
	}
	return reply.Reservations, nodes.Nodes, 0
}

func reservedCPUs(r *api.Reservation, nodes []api.Node) int {
	cpus := 0
	for i := range nodes {
		if slices.Contains(r.Nodes, nodes[i].Name) {
			cpus += nodes[i].CPUs
		}
	}
	return cpus
}

func reservationLines(r *api.Reservation, nodes []api.Node) []string {
	cpus := reservedCPUs(r, nodes)
	state := "INACTIVE"
	if r.Active {
		state = "ACTIVE"
	}
	return []string{
		fmt.Sprintf("ReservationName=%s StartTime=%s EndTime=%s Duration=%s", r.Name, slurm.Stamp(r.Start, "Unknown"),
			slurm.Stamp(r.End, "Unknown"), duration(r)),
		fmt.Sprintf("Nodes=%s NodeCnt=%d CoreCnt=%d Features=(null) PartitionName=(null) Flags=%s",
			hostlist.Compress(r.Nodes), len(r.Nodes), cpus, reservationFlags(r, len(r.Nodes) == len(nodes))),
		fmt.Sprintf("TRES=cpu=%d", cpus),
		fmt.Sprintf("Users=%s Groups=(null) Accounts=%s Licenses=(null) State=%s BurstBuffer=(null) Watts=n/a",
			jobfield.OrNull(strings.Join(r.Users, ",")), jobfield.OrNull(strings.Join(r.Accounts, ",")), state),
		"MaxStartDelay=(null)",
	}
}

// duration has its days in front only where there are any.
func duration(r *api.Reservation) string { return when.Span(r.End.Sub(r.Start)) }

// reservationFlags are in the order in which Slurm names them.
func reservationFlags(r *api.Reservation, all bool) string {
	var out []string
	for _, f := range []api.ReservationFlag{api.FlagMaint, api.FlagIgnoreJobs, api.FlagDaily, api.FlagWeekly} {
		if r.Has(f) {
			out = append(out, string(f))
		}
	}
	if !r.Picked {
		out = append(out, "SPEC_NODES")
	}
	if all {
		out = append(out, "ALL_NODES")
	}
	if r.Has(api.FlagDrain) {
		out = append(out, string(api.FlagDrain))
	}
	return strings.Join(out, ",")
}

// create is "create reservation KEY=VALUE...".
func (c *call) create(args []string) int {
	key, _, given := strings.Cut(args[0], "=")
	switch {
	case cmdline.Short(key, "ReservationName", 3) || cmdline.Short(key, "Reservation", 3):
		if !given {
			args = args[1:]
		}
		return c.createReservation(args)
	case cmdline.Short(key, "PartitionName", 4):
		return c.putPartition(args, false)
	}
	c.errorf("Invalid creation entity: %s", args[0])
	return 1
}

func (c *call) createReservation(args []string) int {
	q := &reservationAsk{now: c.now}
	for _, a := range args {
		if err := q.take(a, false); err != nil {
			return c.badReservation(err, "No reservation created.")
		}
	}
	lacks := ""
	switch {
	case q.req.Start == nil:
		lacks = "A start time must be given."
	case q.req.End == nil && q.req.Duration == nil:
		lacks = "An end time or duration must be given."
	case q.req.End != nil && q.req.End.Before(*q.req.Start):
		lacks = "Start time cannot be after end time."
	case q.req.Nodes == nil && q.req.NodeCount == nil:
		lacks = "CoreCnt, Nodes, NodeCnt, BurstBuffer, Licenses or Watts must be specified."
	case q.req.Users == nil && q.req.Accounts == nil:
		lacks = "Either Users/Groups and/or Accounts must be specified."
	}
	if lacks != "" {
		c.errorf("%s  No reservation created.", lacks)
		return 1
	}
	if q.req.End != nil {
		q.req.Duration = nil // Slurm looks at the end where both are given
	}
	q.req.Flags = q.flags.on(nil)
	name, err := c.makeReservation(&q.req)
	if err != nil {
		c.say("Error creating the reservation: %s", reservationWords(err))
		c.sayWhy(err)
		return 1
	}
	fmt.Fprintf(c.Out, "Reservation created: %s\n", name)
	return 0
}

func (c *call) makeReservation(req *api.ReservationRequest) (string, error) {
	known, err := c.client.Reservations(c.ctx)
	if err != nil {
		return "", err
	}
	if err := c.checkReservation(req); err != nil {
		return "", err
	}
	have := func(name string) bool {
		return slices.ContainsFunc(known.Reservations, func(r api.Reservation) bool { return r.Name == name })
	}
	if req.Name == "" {
		req.Name = freeName(req, len(known.Reservations)+1, have)
	}
	if have(req.Name) {
		return "", &inSlurmsWords{duplicateName}
	}
	_, err = c.client.Reserve(c.ctx, req)
	return req.Name, err
}

// freeName is what Slurm calls one that was given no name: its first account or user, and a
// number.
func freeName(req *api.ReservationRequest, n int, taken func(string) bool) string {
	var who []string
	if req.Accounts != nil {
		who = append(who, *req.Accounts...)
	}
	if req.Users != nil {
		who = append(who, *req.Users...)
	}
	for ; ; n++ {
		if name := fmt.Sprintf("%s_%d", append(who, "resv")[0], n); !taken(name) {
			return name
		}
	}
}

// checkReservation refuses users and nodes that nobody knows, in Slurm's words.
func (c *call) checkReservation(req *api.ReservationRequest) error {
	if req.Users != nil {
		for _, u := range *req.Users {
			if _, ok := jobs.User(u); !ok {
				return &inSlurmsWords{badUser}
			}
		}
	}
	if req.Nodes == nil || len(*req.Nodes) == 1 && strings.EqualFold((*req.Nodes)[0], "ALL") {
		return nil
	}
	known, err := c.knownNodes(*req.Nodes)
	if err == nil && !known {
		err = &inSlurmsWords{slurmErrors[errNode]}
	}
	return err
}

// reservationWords are what Slurm says of a refusal; [call.sayWhy] adds gangd's own.
func reservationWords(err error) string {
	switch api.CodeOf(err) {
	case api.CodeNotFound:
		return badReservation
	case api.CodeConflict:
		if api.ReasonOf(err) == api.ReasonReserved {
			return overlapping
		}
		return busyNodes
	case api.CodeInvalid:
		return badTime
	}
	return words(err)
}

// sayWhy adds what gangd says where Slurm's words leave out the numbers.
func (c *call) sayWhy(err error) {
	if code := api.CodeOf(err); code == api.CodeConflict || code == api.CodeInvalid {
		c.say("scontrol: gangd: %v", err)
	}
}

func (c *call) updateReservation(args []string) int {
	if err := c.changeReservation(args); err != nil {
		if bad, ok := err.(*badWord); ok {
			c.badReservation(err, "No reservation update.")
			c.say("slurm_update error: %s", bad.errno())
			return 1
		}
		text := reservationWords(err)
		c.say("Error updating the reservation: %s\nslurm_update error: %s", text, text)
		c.sayWhy(err)
		return 1
	}
	fmt.Fprintln(c.Out, "Reservation updated.")
	return 0
}

// changeReservation reads what stands there once all words are known: lists may be added to.
func (c *call) changeReservation(args []string) error {
	q := &reservationAsk{now: c.now}
	for _, a := range args {
		if err := q.take(a, true); err != nil {
			return err
		}
	}
	if q.req.End != nil && q.req.Start != nil && q.req.End.Before(*q.req.Start) {
		return &badWord{text: "Start time cannot be after end time."}
	}
	reply, err := c.client.Reservations(c.ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(reply.Reservations, func(r api.Reservation) bool { return r.Name == q.req.Name })
	if at < 0 {
		return &inSlurmsWords{badReservation}
	}
	if err := q.against(&reply.Reservations[at]); err != nil {
		return err
	}
	if err := c.checkReservation(&q.req); err != nil {
		return err
	}
	if q.req == (api.ReservationRequest{Name: q.req.Name}) {
		return nil // nothing to change is no error, as in Slurm
	}
	return c.client.UpdateReservation(c.ctx, &q.req)
}

// remove is "delete reservation NAME" or "delete reservation=NAME".
func (c *call) remove(args []string) int {
	key, name, given := strings.Cut(args[0], "=")
	if len(args) > 1 {
		if given || len(args) > 2 {
			c.say("Invalid deletion entity: %s", args[0])
			return 1
		}
		name = args[1]
	}
	switch {
	case !given && len(args) == 1:
		c.errorf("Proper format is 'delete <ENTITY>=<ID>' or 'delete <ENTITY> <ID>'")
	case cmdline.Short(key, "ReservationName", 3):
		err := c.client.DeleteReservation(c.ctx, name)
		if err == nil {
			return 0
		}
		c.say("delete_reservation %s: %s", args[0], reservationWords(err))
		c.sayWhy(err)
	case cmdline.Short(key, "PartitionName", 3):
		err := c.client.DeletePartition(c.ctx, name)
		if err == nil {
			return 0
		}
		c.say("delete_partition %s: %s", args[0], partitionWords(err))
		c.sayWhy(err)
	default:
		c.say("Invalid deletion entity: %s", args[0])
	}
	return 1
}
