package engine

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/sched/order"
)

// Of which groups people are only a directory knows, and it may take its time or not answer. So it is asked for by whoever submits,
// and beside that for those who wait in partitions that are for groups: every minute, and when a partition is another. The
// core is told by an event, and judges by what it was told last.

// groupsLook is how often it is looked whether people are of other groups.
const groupsLook = time.Minute

// groups wakes the look at once.
type groups struct{ stale chan struct{} }

func (g *groups) init() { g.stale = make(chan struct{}, 1) }

func (g *groups) partitionsMoved() {
	select {
	case g.stale <- struct{}{}:
	default:
	}
}

// toldGroups are those that users are of as far as the core knows, of those that partitions name.
func (e *Engine) toldGroups() map[uint32][]string {
	return e.conf().groups
}

// namedGroups are those that some partition is for, sorted.
func (e *Engine) namedGroups() []string {
	var out []string
	for _, p := range e.policy().Partitions {
		out = append(out, p.AllowGroups...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// groupsOf are those of the partitions' groups that a user is of; none is an empty list.
func (e *Engine) groupsOf(ctx context.Context, uid uint32) ([]string, error) {
	among := e.namedGroups()
	if len(among) == 0 || e.opt.GroupsOf == nil {
		return []string{}, nil
	}
	of, err := e.opt.GroupsOf(ctx, uid, among)
	if err != nil {
		return nil, api.Errorf(api.CodeUnavailable, "%v", err)
	}
	return append([]string{}, of...), nil
}

// keepGroups tells the core when people who wait are of other groups, until ctx ends. Who can't be looked up now stays of
// those that he was of.
func (e *Engine) keepGroups(ctx context.Context) {
	if e.opt.GroupsOf == nil {
		return
	}
	tick := time.NewTicker(groupsLook)
	defer tick.Stop()
	for {
		if of := e.regrouped(ctx); len(of) > 0 {
			if _, err := e.Do(ctx, gang.Groups{Of: of}); err != nil && ctx.Err() != nil {
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-e.groups.stale:
		}
	}
}

// regrouped are the users who wait in a partition that is for groups, and are of others than the core was told.
func (e *Engine) regrouped(ctx context.Context) map[uint32][]string {
	grouped := map[string]bool{}
	for _, p := range e.policy().Partitions {
		if len(p.AllowGroups) > 0 {
			grouped[p.Name] = true
		}
	}
	if len(grouped) == 0 {
		return nil
	}
	who := map[uint32]bool{}
	for _, j := range e.view.snapshot(func(j *gang.Job) bool { return j.Verdict == nil }) {
		if who[j.UID] {
			continue
		}
		for name := range strings.SplitSeq(j.Partition, ",") {
			who[j.UID] = who[j.UID] || grouped[name]
		}
	}
	out, told := map[uint32][]string{}, e.toldGroups()
	for _, uid := range slices.Sorted(maps.Keys(who)) {
		if !who[uid] || ctx.Err() != nil {
			continue
		}
		of, err := e.groupsOf(ctx, uid)
		if err != nil {
			e.log.Warn("groups of a user could not be looked up: he stays of those that he was of", "uid", uid, "err", err)
		} else if !slices.Equal(of, told[uid]) {
			out[uid] = of
		}
	}
	return out
}

// knownAccounts refuses accounts of a partition that there are none of.
func (e *Engine) knownAccounts(r *api.PartitionRequest) error {
	all := e.policy().Accounts
	for _, list := range []*[]string{r.AllowAccounts, r.DenyAccounts} {
		if list == nil || len(all) == 0 {
			continue
		}
		for _, name := range *list {
			if !strings.EqualFold(name, "ALL") && !slices.ContainsFunc(all, func(a order.Account) bool { return a.Name == name }) {
				return e.unknownAccount(name)
			}
		}
	}
	return nil
}
