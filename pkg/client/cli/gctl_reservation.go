package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/nearest"
	"gangd/pkg/core/script"
	"gangd/pkg/core/table/jobfield"
)

// reservationWords are what may be said of a reservation, in Slurm's words and short.
var reservationWords = []struct {
	name  string
	alias []string
	set   func(r *api.ReservationRequest, v string) error
}{
	{"reservationname", []string{"reservation", "name"}, func(r *api.ReservationRequest, v string) error { r.Name = v; return nil }},
	{"starttime", []string{"start"}, func(r *api.ReservationRequest, v string) (err error) { r.Start, err = instant(v); return err }},
	{"endtime", []string{"end"}, func(r *api.ReservationRequest, v string) (err error) { r.End, err = instant(v); return err }},
	{"duration", nil, func(r *api.ReservationRequest, v string) error {
		d, err := script.ParseTime(v)
		if err == nil && d <= 0 {
			err = errors.New("want more than nothing; write 120 (minutes), 2:00:00 or 3-00:00:00")
		}
		r.Duration = &d
		return err
	}},
	{"nodes", []string{"node"}, func(r *api.ReservationRequest, v string) error {
		names, err := hostlist.Expand(v)
		r.Nodes = &names
		return err
	}},
	{"nodecnt", []string{"nodecount"}, func(r *api.ReservationRequest, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			return errors.New("want a number of nodes, from 1 on")
		}
		r.NodeCount = &n
		return nil
	}},
	{"users", []string{"user"}, func(r *api.ReservationRequest, v string) error { return namesInto(&r.Users, v) }},
	{"accounts", []string{"account"}, func(r *api.ReservationRequest, v string) error { return namesInto(&r.Accounts, v) }},
	{"flags", []string{"flag"}, flagsInto},
}

func instant(v string) (*time.Time, error) {
	t, err := script.ParseBegin(v, now())
	if v == "now" {
		t = t.Truncate(time.Second)
	}
	return &t, err
}

func namesInto(dst **[]string, v string) error {
	list := []string{}
	for name := range strings.SplitSeq(v, ",") {
		switch {
		case strings.HasPrefix(name, "-"):
			return errors.New("nobody can be left out of a list; name those who may")
		case name != "":
			list = append(list, name)
		}
	}
	*dst = &list
	return nil
}

func flagsInto(r *api.ReservationRequest, v string) error {
	list := []api.ReservationFlag{}
	var known []string
	for _, f := range api.ReservationFlags {
		known = append(known, strings.ToLower(string(f)))
	}
	for name := range strings.SplitSeq(strings.ToLower(v), ",") {
		switch {
		case name == "":
		case slices.Contains(known, name):
			list = append(list, api.ReservationFlag(strings.ToUpper(name)))
		case slices.Contains(slurmFlags, name):
			return fmt.Errorf("%s: Slurm has this flag, gangd has not; flags are %s", name, strings.Join(known, ", "))
		default:
			return unknownName("flag", name, known)
		}
	}
	r.Flags = &list
	return nil
}

// slurmFlags and slurmWords are what scontrol knows of reservations and gctl refuses by name:
// left out, the reservation would be another than was meant.
var slurmFlags = []string{"any_nodes", "flex", "first_cores", "hourly", "license_only", "magnetic", "no_hold_jobs_after",
	"no_hold_jobs_after_end",
	"overlap", "part_nodes", "purge_comp", "replace", "replace_down", "spec_nodes", "static_alloc", "time_float", "user_delete", "weekday",
	"weekend"}

var slurmWords = map[string]string{
	"corecnt": "whole nodes are reserved: nodes=n[1-4]", "tres": "whole nodes are reserved: nodes=n[1-4]",
	"partitionname": "name the nodes: nodes=n[1-4]", "partition": "name the nodes: nodes=n[1-4]", "features": "name the nodes: nodes=n[1-4]",
	"groups": "name the users or accounts", "licenses": "reservations are of nodes", "burstbuffer": "there are no burst buffers",
	"watts": "power is not counted", "tresperuser": "whole nodes are reserved", "maxstartdelay": "a reservation begins at its time",
	"purgecomp": "delete it when it is done with: gctl delete reservation NAME", "skip": "delete it, or move its starttime",
	"comment": "give it a name that says it",
}

// parseReservation reads words as scontrol takes them, key=value, and one bare word as the
// name.
func parseReservation(cmd *cobra.Command, args []string) (*api.ReservationRequest, error) {
	req := &api.ReservationRequest{}
	for _, arg := range args {
		key, value, given := strings.Cut(arg, "=")
		if !given {
			if req.Name != "" {
				return nil, Usagef("%q is not key=value, and the reservation is named %s already", arg, req.Name)
			}
			req.Name = arg
			continue
		}
		if err := setReservation(req, key, value); err != nil {
			return nil, err
		}
	}
	if req.Name == "" {
		return nil, Usagef("no reservation named: %s reservationname=NAME ...", cmd.CommandPath())
	}
	return req, nil
}

func setReservation(req *api.ReservationRequest, key, value string) error {
	low := strings.ToLower(key)
	var known []string
	for i := range reservationWords {
		w := &reservationWords[i]
		known = append(known, w.name)
		if low != w.name && !slices.Contains(w.alias, low) {
			continue
		}
		if err := w.set(req, value); err != nil {
			var usage *UsageError
			if errors.As(err, &usage) {
				return err
			}
			return Usagef("%s=%s: %w", key, value, err)
		}
		return nil
	}
	if use := slurmWords[strings.TrimRight(low, "+-")]; use != "" {
		return Usagef("%s: Slurm has this, gangd has not; %s", key, use)
	}
	if bare := strings.TrimRight(low, "+-"); bare != low && slices.Contains(known, bare) {
		return Usagef("%s=: lists are not added to; write the whole: %s=...", key, bare)
	}
	if near := nearest.Of(low, known); near != "" {
		return Usagef("unknown word %q of a reservation: did you mean %s?", key, near)
	}
	return Usagef("unknown word %q of a reservation (%s)", key, strings.Join(known, ", "))
}

func newReservation() *cobra.Command {
	cmd := group("reservation", "keep nodes for people or for maintenance",
		`  gctl reservation create talk starttime=18:00 duration=2:00:00 nodes=n[1-2] users=ada
  gctl reservation update talk endtime=21:00
  gctl reservation delete talk`)
	cmd.AddCommand(newReservationCreate("create NAME KEY=VALUE..."), newReservationUpdate(), newReservationShow("show [NAME...]"),
		newReservationDelete("delete NAME..."))
	return cmd
}

func newReservationCreate(use string) *cobra.Command {
	return byOptions(&cobra.Command{
		Use: use, Short: "make a reservation",
		Example: `  gctl create reservation talk starttime=18:00 duration=2:00:00 nodes=n[1-2] users=ada
  gctl create reservationname=nightly starttime=22:00 duration=8:00:00 nodes=ALL accounts=vision flags=daily
  gctl create reservation upgrade starttime=tomorrow duration=120 nodes=n[3-4] flags=maint,drain`,
		Long: `Words are Slurm's, KEY=VALUE: reservationname (or the name alone), starttime, endtime or
duration, nodes (ALL for every node) or nodecnt (so many that are free then), users, accounts, flags: maint, ignore_jobs, drain,
daily, weekly. Gangs that would still run at its start are not started on its nodes.
Gangs that run already and would: the reservation is refused, or with drain they
are stopped in time with their notice, or with ignore_jobs they stay.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return Usagef("nothing given: gctl create reservation NAME starttime=TIME duration=TIME nodes=LIST users=LIST")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			req, err := parseReservation(cmd, args)
			if err != nil {
				return err
			}
			reply, err := client.New().Reserve(cmd.Context(), req)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Reservation created: %s\n", reply.Reservations[0].Name)
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}, reservationNames())
}

func newReservationUpdate() *cobra.Command {
	return byOptions(&cobra.Command{
		Use: "update NAME KEY=VALUE...", Short: "change a reservation",
		Example: `  gctl reservation update talk endtime=21:00
  gctl update reservationname=talk users=ada,bob
  gctl reservation update talk starttime=19:00       its length stays`,
		RunE:              func(cmd *cobra.Command, args []string) error { return updateReservation(cmd, args) },
		ValidArgsFunction: completeReservations,
	}, reservationNames())
}

// reservationNames are the words of a reservation.
func reservationNames() (names []string) {
	for i := range reservationWords {
		names = append(names, reservationWords[i].name)
	}
	return names
}

func updateReservation(cmd *cobra.Command, args []string) error {
	req, err := parseReservation(cmd, args)
	if err != nil {
		return err
	}
	if *req == (api.ReservationRequest{Name: req.Name}) {
		return Usagef("nothing to change was given: starttime, endtime, duration, nodes, nodecnt, users, accounts or flags")
	}
	return client.New().UpdateReservation(cmd.Context(), req)
}

func newReservationDelete(use string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: "delete reservations",
		Example: `  gctl reservation delete talk
  gctl delete reservation talk
  gctl delete reservationname=talk      as scontrol`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return Usagef("no reservation given: %s NAME; gctl show reservation lists them", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var failed []error
			for _, arg := range args {
				req, err := parseReservation(cmd, []string{arg})
				if err != nil {
					return err
				}
				if err := client.New().DeleteReservation(cmd.Context(), req.Name); err != nil {
					failed = append(failed, err)
				}
			}
			return joinFailures(cmd, failed)
		},
		ValidArgsFunction: completeReservations,
	}
}

func newReservationShow(use string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: use, Aliases: []string{"reservations", "res"}, Short: "reservations: when, which nodes, for whom",
		Example: `  gctl show reservation            all of them
  gctl show reservation talk       one
  gctl show reservation --json     for a script`,
		RunE: func(cmd *cobra.Command, args []string) error {
			reply, err := client.New().Reservations(cmd.Context(), args...)
			if err != nil {
				return err
			}
			if asJSON {
				return WriteJSON(cmd.OutOrStdout(), reply)
			}
			if len(reply.Reservations) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "No reservations in the system")
			}
			for i := range reply.Reservations {
				if i > 0 {
					fmt.Fprintln(cmd.OutOrStdout())
				}
				writeReservation(cmd.OutOrStdout(), &reply.Reservations[i])
			}
			return nil
		},
		ValidArgsFunction: completeReservations,
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func writeReservation(w io.Writer, r *api.Reservation) {
	state := "INACTIVE"
	if r.Active {
		state = "ACTIVE"
	}
	var flags []string
	for _, f := range r.Flags {
		flags = append(flags, string(f))
	}
	writeFields(screenOf(w), []string{
		fmt.Sprintf("ReservationName=%s StartTime=%s EndTime=%s Duration=%s", r.Name, jobfield.Stamp(r.Start), jobfield.Stamp(r.End),
			jobfield.Elapsed(r.End.Sub(r.Start))),
		fmt.Sprintf("Nodes=%s NodeCnt=%d Flags=%s", hostlist.Compress(r.Nodes), len(r.Nodes), strings.Join(flags, ",")),
		fmt.Sprintf("Users=%s Accounts=%s State=%s", jobfield.OrNull(strings.Join(r.Users, ",")), jobfield.OrNull(strings.Join(r.Accounts, ",")),
			state),
	})
}

// newCreate and newDelete are scontrol's order of words: gctl create reservation ...
func newCreate() *cobra.Command {
	return reservationVerb("create", "make a reservation", newReservationCreate)
}
func newDelete() *cobra.Command {
	return reservationVerb("delete", "delete reservations", newReservationDelete)
}

func reservationVerb(verb, short string, under func(use string) *cobra.Command) *cobra.Command {
	one := under(verb + " reservation NAME...")
	if verb == "create" {
		one.Use = verb + " reservation NAME KEY=VALUE..."
	}
	run := one.RunE
	one.Short = short
	one.RunE = func(cmd *cobra.Command, args []string) error {
		if !aboutReservation(args) {
			return Usagef("gctl %s what? gctl %s reservation NAME", verb, verb)
		}
		args = withoutWord(args)
		if err := one.Args(cmd, args); err != nil {
			return err
		}
		return run(cmd, args)
	}
	return one
}

// aboutReservation reports whether gctl update was given scontrol's words for a reservation.
func aboutReservation(args []string) bool {
	if len(args) == 0 {
		return false
	}
	key, _, _ := strings.Cut(strings.ToLower(args[0]), "=")
	return key == "reservation" || key == "reservationname"
}

// withoutWord drops the word reservation before the name of one.
func withoutWord(args []string) []string {
	if strings.EqualFold(args[0], "reservation") {
		return args[1:]
	}
	return args
}
