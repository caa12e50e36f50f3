package squeue

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/cmdline"
	"gangd/pkg/hostlist"
	"gangd/pkg/slurm"
)

// select_ makes the query of the choices.
func (q *squeue) select_(ctx context.Context, c *client.Client) error {
	q.query = api.JobQuery{Accounts: q.accounts, Names: q.names}
	var err error
	if q.query.States, q.query.All, err = States(q.states); err != nil {
		return err
	}
	if q.start && len(q.states) == 0 {
		q.query.States = []api.JobState{api.JobPending}
	}
	q.selectUsers()
	for _, id := range q.jobs {
		refs, err := api.ParseJobRefs(cmdline.WithoutLimit(id))
		if err != nil || strings.HasPrefix(id, "@") {
			return fmt.Errorf("Invalid job id: %s", id)
		}
		q.query.Refs = append(q.query.Refs, refs...)
	}
	if q.nodes != "" {
		q.query.Nodes, err = q.knownNodes(ctx, c)
	}
	if q.stepFlag { // steps have no names, states and accounts to be chosen by, and nodes of their own
		q.onNodes = q.query.Nodes
		q.query = api.JobQuery{Refs: q.query.Refs, Users: q.query.Users}
	}
	return err
}

// selectUsers looks users up as squeue does, on this host: one that is not known is said, and
// nothing is shown for it.
func (q *squeue) selectUsers() {
	for _, name := range q.users {
		switch users, ok := slurm.User(name); {
		case ok:
			q.query.Users = append(q.query.Users, users...)
		default:
			q.Errorf("squeue", "Invalid user: %s\n", name)
			q.query.Users = append(q.query.Users, name)
		}
	}
	if !q.me {
		return
	}
	uid := strconv.Itoa(os.Getuid())
	q.query.Users = append(q.query.Users, uid)
	if u, err := user.LookupId(uid); err == nil {
		q.query.Users = append(q.query.Users, u.Username)
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

// slurmStates is every state that squeue knows by name, with its short form; gangd has no job
// in one that stands for nothing of its own.
var slurmStates = []struct {
	name, code string
	own        api.JobState
}{
	{"PENDING", "PD", api.JobPending}, {"RUNNING", "R", api.JobRunning}, {"SUSPENDED", "S", api.JobSuspended},
	{"COMPLETED", "CD", api.JobCompleted}, {"CANCELLED", "CA", api.JobCancelled}, {"FAILED", "F", api.JobFailed},
	{"TIMEOUT", "TO", api.JobTimeout}, {"NODE_FAIL", "NF", api.JobNodeFail}, {"PREEMPTED", "PR", api.JobPreempted},
	{"BOOT_FAIL", "BF", ""}, {"DEADLINE", "DL", api.JobDeadline}, {"OUT_OF_MEMORY", "OOM", api.JobOutOfMemory},
	{"COMPLETING", "CG", api.JobCompleting}, {"CONFIGURING", "CF", api.JobReserved}, {"RESIZING", "RS", ""},
	{"RESV_DEL_HOLD", "RD", ""}, {"REQUEUED", "RQ", ""}, {"REQUEUE_FED", "RF", ""}, {"REQUEUE_HOLD", "RH", ""},
	{"REVOKED", "RV", ""}, {"SIGNALING", "SI", ""}, {"SPECIAL_EXIT", "SE", ""}, {"STAGE_OUT", "SO", ""}, {"STOPPED", "ST", ""},
}

// States reads Slurm's names and short forms of states, of any case; all is every state.
func States(names []string) (states []api.JobState, all bool, err error) {
	for _, name := range names {
		if strings.EqualFold(name, "all") {
			all = true
			continue
		}
		i := slices.IndexFunc(slurmStates, func(s struct {
			name, code string
			own        api.JobState
		}) bool {
			return strings.EqualFold(name, s.name) || strings.EqualFold(name, s.code)
		})
		if i < 0 {
			var known []string
			for _, s := range slurmStates {
				known = append(known, s.name)
			}
			return nil, false, fmt.Errorf("Invalid job state specified: %s\nsqueue: error: Valid job states include: %s\n", name, strings.Join(known, ","))
		}
		if s := slurmStates[i].own; s != "" {
			states = append(states, s)
		}
	}
	if all {
		states = nil
	}
	return states, all, nil
}
