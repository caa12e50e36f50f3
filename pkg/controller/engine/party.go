package engine

import (
	"fmt"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/gang"
)

// party is those who wait for each other and whose checkpoints make a set: the processes of a
// gang, or the tasks of one of its steps.
type party struct {
	step int // [store.OfRanks]: the gang's own
	size int
}

// partyOf is whom a caller belongs to. A node is believed only about ranks and tasks that are
// placed on it now.
func partyOf(j *gang.Job, node string, c *api.Call) (party, *api.Error) {
	if c.Step == nil {
		if c.Rank < 0 || c.Rank >= len(j.Ranks) || j.Ranks[c.Rank].Slot.Node != node {
			return party{}, api.Errorf(api.CodePermission, "rank %d of job %d is not on node %s", c.Rank, c.Job, node)
		}
		return party{store.OfRanks, gang.Processes(j)}, nil
	}
	s := gang.StepOf(j, *c.Step)
	if s == nil {
		return party{}, api.Errorf(api.CodeAlreadyEnded, "step %s is over", api.StepText(j.ID, *c.Step))
	}
	if gang.TaskNode(j, api.TaskKey{Step: s.ID, Task: c.Rank}) != node {
		return party{}, api.Errorf(api.CodePermission, "task %d of step %s does not run on node %s", c.Rank, api.StepText(j.ID, s.ID), node)
	}
	return party{s.ID, s.Size()}, nil
}

func (p party) ofStep() bool { return p.step >= 0 }

// text names all of them.
func (p party) text(j *gang.Job) string {
	if p.ofStep() {
		return "step " + api.StepText(j.ID, p.step)
	}
	return "the gang"
}

// member names one.
func (p party) member(j *gang.Job, n int) string {
	if p.ofStep() {
		return gang.TaskText(j.ID, p.step, n)
	}
	return gang.RankText(j.ID, n)
}

// word is what one of them is called.
func (p party) word() string {
	if p.ofStep() {
		return "task"
	}
	return "rank"
}

func setKey(j *gang.Job, epoch, step int) store.SetKey {
	return store.SetKey{MemberKey: api.MemberKey{Job: j.ID, Epoch: epoch}, Step: step}
}

func (p party) mayPut(j *gang.Job, c *api.Call) error {
	var err *api.Error
	if p.ofStep() {
		err = gang.MayTaskCheckpoint(j, c.Epoch, api.TaskKey{Step: p.step, Task: c.Rank})
	} else {
		err = gang.MayCheckpoint(j, c.Epoch, c.Rank)
	}
	if err != nil {
		return err
	}
	return nil
}

// kept are the sets of such a party that a restart may start from, the newest first, which is
// complete or not; none: nobody has put one.
func (p party) kept(j *gang.Job) (sets []store.SetKey, complete bool) {
	if !p.ofStep() {
		c := j.Checkpoint
		if c == nil {
			return nil, false
		}
		return []store.SetKey{setKey(j, c.Epoch, store.OfRanks), setKey(j, c.Before, store.OfRanks)}, c.Complete
	}
	c := j.TaskCheckpoint
	if c == nil {
		return nil, false
	}
	return []store.SetKey{setKey(j, c.Epoch, c.Step), setKey(j, c.Before.Epoch, c.Before.Step)}, c.Complete
}

// wanted is the set that a caller asks for.
func (p party) wanted(j *gang.Job, ask *api.CheckpointGet) (store.SetKey, error) {
	if !p.ofStep() {
		epoch := ask.Epoch
		if epoch == 0 {
			epoch = gang.NewestSet(j)
		}
		if epoch == 0 {
			return store.SetKey{}, noSet(j, "rank")
		}
		return setKey(j, epoch, store.OfRanks), nil
	}
	if ask.From != nil {
		return setKey(j, ask.From.Epoch, ask.From.Step), nil
	}
	switch newest := gang.NewestTaskSet(j); {
	case newest.Tasks == 0:
		return store.SetKey{}, noSet(j, "task of a step")
	case ask.Own && newest.Tasks != p.size:
		e := api.Errorf(api.CodeConflict, "the newest checkpoints of job %d are of %d tasks, and %s has %d", j.ID, newest.Tasks, p.text(j),
			p.size)
		e.Hint = "take one by its number: gckpt get --rank=N"
		return store.SetKey{}, e
	default:
		return setKey(j, newest.Epoch, newest.Step), nil
	}
}

func noSet(j *gang.Job, who string) error {
	return &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("job %d has no complete checkpoint", j.ID),
		Hint: "one is complete when every " + who + " has put its own in the same epoch"}
}
