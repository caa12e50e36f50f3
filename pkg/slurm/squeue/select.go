package squeue

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/client/jobs"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/slurm"
)

// select_ makes the query of the choices.
func (q *squeue) select_(ctx context.Context, c *client.Client) error {
	q.Query = api.JobQuery{Accounts: q.accounts, Names: q.names}
	var err error
	if q.Query.States, q.Query.All, err = states(q.states); err != nil {
		return err
	}
	if q.start && len(q.states) == 0 {
		q.Query.States = []api.JobState{api.JobPending}
	}
	q.selectUsers()
	for _, id := range q.jobs {
		plain, _ := slurm.CutComponent(slurm.Own(id)) // all of its job are shown, as in Slurm
		refs, err := api.ParseJobRefs(cmdline.WithoutLimit(plain))
		if err != nil || strings.HasPrefix(id, "@") {
			return fmt.Errorf("Invalid job id: %s", id)
		}
		q.Query.Refs = append(q.Query.Refs, refs...)
	}
	if q.nodes != "" {
		q.Query.Nodes, err = q.knownNodes(ctx, c)
	}
	if q.stepFlag { // steps have no names, states and accounts to be chosen by, and nodes of their own
		q.onNodes = q.Query.Nodes
		q.Query = api.JobQuery{Refs: q.Query.Refs, Users: q.Query.Users}
	}
	return err
}

// selectUsers looks users up as squeue does, on this host: one that is not known is said, and
// nothing is shown for it.
func (q *squeue) selectUsers() {
	for _, name := range q.users {
		users, ok := jobs.User(name)
		if !ok {
			q.Errorf("squeue", "Invalid user: %s\n", name)
			users = []string{name}
		}
		q.Query.Users = append(q.Query.Users, users...)
	}
	if q.me {
		q.Query.Users = append(q.Query.Users, jobs.Me()...)
	}
}

// knownNodes expands the list of nodes; one that the controller does not know is refused.
func (q *squeue) knownNodes(ctx context.Context, c *client.Client) ([]string, error) {
	names, err := hostlist.Expand(q.nodes)
	if err != nil {
		return nil, fmt.Errorf("Invalid node name %s", q.nodes)
	}
	reply, err := c.Nodes(ctx)
	if err != nil {
		return nil, q.notLoaded(err)
	}
	for _, name := range names {
		if !slices.ContainsFunc(reply.Nodes, func(n api.Node) bool { return n.Name == name }) {
			return nil, fmt.Errorf("Invalid node name %s", name)
		}
	}
	return names, nil
}

// states reads Slurm's names and short forms of states, of any case; all is every state.
func states(names []string) (states []api.JobState, all bool, err error) {
	for _, name := range names {
		if strings.EqualFold(name, "all") {
			all = true
			continue
		}
		st := jobs.StateOf(name)
		if st == nil {
			var known []string
			for _, s := range jobs.SlurmStates {
				known = append(known, s.Name)
			}
			return nil, false, fmt.Errorf("Invalid job state specified: %s\nsqueue: error: Valid job states include: %s\n", name,
				strings.Join(known, ","))
		}
		if st.Own != "" {
			states = append(states, st.Own)
		}
	}
	if all {
		states = nil
	}
	return states, all, nil
}
