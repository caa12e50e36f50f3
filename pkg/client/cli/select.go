package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/client/jobs"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/nearest"
)

// selection is the choice of jobs that gqueue, gcancel and gctl share.
type selection struct {
	jobs       []string
	users      []string
	me         bool
	names      []string
	accounts   []string
	partitions []string
	nodes      string
	states     []string

	strangers []string // of users, those that this host does not know
}

// addFilters defines the options that narrow by a property of the job.
func (s *selection) addFilters(f *pflag.FlagSet) {
	f.StringSliceVarP(&s.users, "user", "u", nil, "jobs of these `USERS` (names or numbers)")
	f.BoolVar(&s.me, "me", false, "my own jobs")
	f.StringSliceVarP(&s.names, "name", "n", nil, "jobs with these `NAMES`")
	f.StringSliceVarP(&s.accounts, "account", "A", nil, "jobs of these `ACCOUNTS`")
	f.StringSliceVarP(&s.partitions, "partition", "p", nil, "jobs in these `PARTITIONS`")
	f.StringVarP(&s.nodes, "nodelist", "w", "", "jobs on these `NODES` (n1,n[3-5])")
}

// query turns what was typed into what the controller is asked.
func (s *selection) query(cmd *cobra.Command) (api.JobQuery, error) {
	q := api.JobQuery{Users: s.withNames(), Names: s.names, Accounts: s.accounts, Partitions: s.partitions}
	if s.me {
		q.Users = append(q.Users, jobs.Me()...)
	}
	var err error
	if q.Refs, err = parseRefs(s.jobs); err != nil {
		return q, err
	}
	if s.nodes != "" {
		if q.Nodes, err = hostlist.Expand(s.nodes); err != nil {
			return q, Usagef("invalid value %q for --nodelist: %w", s.nodes, err)
		}
	}
	q.States, q.All, err = parseStates(s.states)
	return q, err
}

// ofStrangers: all users that were named are such as this host does not know.
func (s *selection) ofStrangers() bool {
	return len(s.strangers) > 0 && !s.me && len(s.strangers) == len(s.users)
}

// nobody says that this host knows none of the users that were named, nil where it knows one.
func (s *selection) nobody(ctx context.Context, c *client.Client) error {
	if !s.ofStrangers() {
		return nil
	}
	hint := "names are as in getent passwd; gqueue shows whose jobs there are"
	if len(s.users) == 1 {
		hint = nearest.Hint(s.users[0], usersOf(ctx, c), hint)
	}
	return &api.Error{Code: api.CodeNotFound, Message: "no user " + strings.Join(s.users, ","), Hint: hint}
}

// usersOf are the users of whom the ledger knows something: of whom a name that was mistyped can be.
func usersOf(ctx context.Context, c *client.Client) (names []string) {
	reply, err := c.Ledger(ctx, &api.LedgerQuery{By: []string{"user"}})
	if err != nil {
		return nil
	}
	for i := range reply.Rows {
		names = append(names, reply.Rows[i].User)
	}
	return names
}

// warn says which users this host does not know: they are asked for all the same, as the controller may.
func (s *selection) warn(cmd *cobra.Command, c *client.Client) {
	for _, name := range s.strangers {
		text := fmt.Sprintf("%s: warning: this host knows no user %q", cmd.Root().Name(), name)
		if near := nearest.Of(name, usersOf(cmd.Context(), c)); near != "" {
			text += "; did you mean " + near + "?"
		}
		fmt.Fprintln(cmd.ErrOrStderr(), text)
	}
}

// nowhere says which of the partitions that jobs were chosen by is none, where nothing was found.
func (s *selection) nowhere(ctx context.Context, c *client.Client) error {
	if len(s.partitions) == 0 {
		return nil
	}
	reply, err := c.Nodes(ctx)
	if err != nil {
		return err
	}
	var known []string
	for _, p := range reply.Partitions {
		known = append(known, p.Name)
	}
	for _, p := range s.partitions {
		if !slices.Contains(known, p) {
			return noSuch("partition", p, known)
		}
	}
	return nil
}

// withNames adds the name of each user that is given by number, and the other way round; the
// controller compares names.
func (s *selection) withNames() []string {
	var out []string
	s.strangers = nil
	for _, name := range s.users {
		names, ok := jobs.User(name)
		if !ok {
			s.strangers = append(s.strangers, name)
			names = []string{name}
		}
		out = append(out, names...)
	}
	return out
}

// parseRefs reads job references from arguments; each may be a list.
func parseRefs(args []string) ([]api.JobRef, error) {
	var out []api.JobRef
	for _, arg := range args {
		refs, err := api.ParseJobRefs(cmdline.WithoutLimit(arg))
		if err != nil {
			return nil, Usagef("%w", err)
		}
		out = append(out, refs...)
	}
	return out, nil
}

// oneRef reads exactly one reference.
func oneRef(arg string) (api.JobRef, error) {
	refs, err := parseRefs([]string{arg})
	if err != nil {
		return api.JobRef{}, err
	}
	if len(refs) != 1 {
		return api.JobRef{}, Usagef("%q names %d jobs: give one", arg, len(refs))
	}
	return refs[0], nil
}

// parseStates reads state names and short codes of any case; "all" is every state.
func parseStates(names []string) (states []api.JobState, all bool, err error) {
	for _, name := range names {
		if strings.EqualFold(name, "all") {
			return nil, true, nil
		}
		st, ok := parseState(name)
		if !ok {
			return nil, false, unknownState(name)
		}
		states = append(states, st)
	}
	return states, false, nil
}

func parseState(name string) (api.JobState, bool) {
	for _, st := range api.JobStates {
		if strings.EqualFold(name, string(st)) || strings.EqualFold(name, st.Code()) {
			return st, true
		}
	}
	if st := jobs.StateOf(name); st != nil && st.Own != "" { // Slurm's name for it
		return st.Own, true
	}
	return "", false
}

func unknownState(name string) error {
	known := stateNames()
	if near := nearest.Of(name, known); near != "" {
		return Usagef("unknown job state %q: did you mean %s? (states: all, %s)", name, near, strings.Join(known, ", "))
	}
	return Usagef("unknown job state %q (states: all, %s)", name, strings.Join(known, ", "))
}

func stateNames() []string {
	names := make([]string, len(api.JobStates))
	for i, st := range api.JobStates {
		names[i] = string(st)
	}
	return names
}

// empty reports whether nothing at all was selected.
func (s *selection) empty() bool {
	return len(s.jobs) == 0 && len(s.users) == 0 && !s.me && len(s.names) == 0 && len(s.accounts) == 0 &&
		len(s.partitions) == 0 && s.nodes == "" && len(s.states) == 0
}
