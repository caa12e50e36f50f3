package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/sched"
)

// partitionView is what readers see of the partitions: the site's policy with those that hold,
// and what of them was changed at run time. Immutable.
type partitionView struct {
	policy  sched.Policy
	changes []api.PartitionChange
}

// setPolicy makes the world's partitions those that readers see.
func (e *Engine) setPolicy() {
	p := &partitionView{policy: e.opt.Policy, changes: e.world.PartitionChanges()}
	p.policy.Partitions = e.world.Partitions()
	e.partitions.Store(p)
}

// policy is the site's, with the partitions that hold; not to be written to.
func (e *Engine) policy() *sched.Policy {
	if p := e.partitions.Load(); p != nil {
		return &p.policy
	}
	return &e.opt.Policy
}

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

// awaitsPartition says why a job that may be started in none of its partitions is no candidate;
// empty: in one it may.
func (e *Engine) awaitsPartition(j *gang.Job) (word, text string) {
	all := e.policy().Partitions
	for name := range strings.SplitSeq(j.Partition, ",") {
		i := slices.IndexFunc(all, func(p api.Partition) bool { return p.Name == name })
		if i < 0 {
			word, text = gang.WordPartitionInactive, fmt.Sprintf("partition %s is not there any more; gctl update job %d partition=NAME moves it", name, j.ID)
			continue
		}
		switch word = gang.KeptBy(&all[i], j); word {
		case "":
			return "", ""
		case gang.WordPartitionDown:
			text = fmt.Sprintf("partition %s is down: an admin lets nothing start in it", name)
		case gang.WordPartitionTime:
			text = fmt.Sprintf("its time limit is %s, and partition %s allows %s by now; gctl update %d --time=%d lowers it", limitText(j.TimeLimit), name, all[i].MaxTime,
				j.ID, int(all[i].MaxTime.Minutes()))
		default:
			text = fmt.Sprintf("partition %s is inactive: an admin lets nothing start in it", name)
		}
	}
	return word, text
}
