package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/gang"
)

// PutPartition makes a partition; with change it changes the one of that name.
func (e *Engine) PutPartition(ctx context.Context, req *api.PartitionRequest, change bool, who Caller) error {
	if err := checkName("partition", req.Name); err != nil {
		return err
	}
	ask := *req
	if ask.Nodes != nil {
		nodes := unique(*ask.Nodes)
		if len(nodes) != 1 || !strings.EqualFold(nodes[0], "ALL") {
			if err := e.known(&api.JobQuery{Nodes: nodes}); err != nil {
				return err
			}
		}
		ask.Nodes = &nodes
	}
	if err := e.knownAccounts(&ask); err != nil {
		return err
	}
	_, err := e.Do(ctx, gang.PutPartition{Ask: ask, Old: change, By: who.User})
	return err
}

// DropPartition takes one away.
func (e *Engine) DropPartition(ctx context.Context, name string, who Caller) error {
	_, err := e.Do(ctx, gang.DropPartition{Name: name, By: who.User})
	return err
}

// ResetPartitions makes the configuration's partitions hold again.
func (e *Engine) ResetPartitions(ctx context.Context, who Caller) error {
	_, err := e.Do(ctx, gang.ResetPartitions{By: who.User})
	return err
}

// mayQueue refuses jobs for a partition that takes none.
func mayQueue(p *api.Partition) error {
	if p.State.Queues() {
		return nil
	}
	err := api.Errorf(api.CodeConflict, "partition %s takes no jobs: it is %s", p.Name, p.State).About(api.ReasonPartitionState, p.Name)
	err.Hint = "ginfo -s lists the others"
	return err
}

// find is a partition that holds, nil where there is none.
func (e *Engine) find(name string) *api.Partition {
	all := e.policy().Partitions
	if i := slices.IndexFunc(all, func(p api.Partition) bool { return p.Name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// enters refuses a job that none of its partitions takes by what they allow. An admin's word goes beyond
// their longest time.
func (e *Engine) enters(named string, a *gang.Entrant, admin bool) ([]cluster.In, error) {
	in, kept, word := gang.Into(e.find, named, a, func(p *api.Partition, a *gang.Entrant) string {
		word := gang.Limited(p, a)
		if admin && word == gang.WordPartitionTime {
			return ""
		}
		return word
	})
	switch {
	case word == "":
		return in, nil
	case kept == nil:
		return nil, api.Errorf(api.CodeNotFound, "partition %s is not there any more", named)
	}
	return nil, gang.Refuse(kept, a, word)
}

// entrant is a job of a user as partitions judge it. Of which groups he is is looked up where one of the partitions asks.
func (e *Engine) entrant(ctx context.Context, named string, a gang.Entrant) (*gang.Entrant, error) {
	var groups []string
	for name := range strings.SplitSeq(named, ",") {
		if p := e.find(name); p != nil && a.UID != 0 && !slices.Contains(p.AllowUsers, a.User) {
			groups = append(groups, p.AllowGroups...)
		}
	}
	if len(groups) == 0 {
		return &a, nil
	}
	var err error
	a.Groups, err = e.groupsOf(ctx, a.UID)
	return &a, err
}

// Waiting counts the jobs that wait, by the partitions that they name, and says which partitions there are.
func (e *Engine) Waiting(ctx context.Context) (by map[string]int, there func(partition string) bool, err error) {
	by = map[string]int{}
	_, err = e.view.choose(ctx, func(j *gang.Job) bool {
		if gang.JobState(j) == api.JobPending {
			by[j.Partition]++
		}
		return false
	})
	return by, func(name string) bool { return e.find(name) != nil }, err
}

// awaitsPartition says why a job that may be started in none of its partitions is no candidate;
// empty: in one it may.
func (e *Engine) awaitsPartition(j *gang.Job) (word, text string) {
	a := gang.EntrantOf(j, e.toldGroups()[j.UID])
	_, kept, word := gang.Into(e.find, j.Partition, a, gang.KeptBy)
	switch {
	case word == "":
		return "", ""
	case kept == nil:
		return word, fmt.Sprintf("partition %s is not there any more; gctl update %d --partition=NAME moves it", j.Partition, j.ID)
	}
	return word, gang.WhyKept(kept, j.ID, a, word)
}
