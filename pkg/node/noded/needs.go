package noded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/node/proc"
	"gangd/pkg/node/shim"
)

// Needs are what this node must have to take work; without it the node is out of service, and back
// by itself when it has it again. So it is without a controller of cgroups that it had at its start.
type Needs struct {
	Cards     int      // that the driver lists
	Memory    int64    // of the machine, bytes
	Mounts    []string // where something must be mounted
	Names     []string // of hosts, that must have an address
	MountInfo string   // read instead of /proc/self/mountinfo; for tests
}

// nameWait bounds the look for a name: programs give up later, and a start is not held up for longer.
const nameWait = 2 * time.Second

// needsEvery is between two looks. They cost a fraction of a millisecond where no names are
// asked for, and each start of a member looks too.
const needsEvery = 2 * time.Second

// lacks says what of it is not there; empty: all is.
func (n *Needs) lacks(ctx context.Context, cards int, why string, memory int64) string {
	var out []string
	if n.Cards > 0 && why != "" {
		out = append(out, "its cards can't be read: "+why)
	} else if cards < n.Cards {
		out = append(out, fmt.Sprintf("%d of %d cards", cards, n.Cards))
	}
	if memory > 0 && memory < n.Memory {
		out = append(out, fmt.Sprintf("memory of %s, %s expected", cluster.Size(memory), cluster.Size(n.Memory)))
	}
	if len(n.Mounts) > 0 {
		switch missing, err := proc.NotMounted(n.Mounts, n.MountInfo); {
		case err != nil:
			out = append(out, fmt.Sprintf("its mounts can't be read: %v", err))
		case len(missing) > 0:
			out = append(out, "nothing is mounted at "+strings.Join(missing, ", "))
		}
	}
	return strings.Join(append(out, n.unresolved(ctx)...), "; ")
}

// unresolved asks for all names at a time.
func (n *Needs) unresolved(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, nameWait)
	defer cancel()
	out := make([]string, len(n.Names))
	var asked sync.WaitGroup
	for i, name := range n.Names {
		asked.Go(func() {
			if _, err := net.DefaultResolver.LookupHost(ctx, name); err != nil {
				out[i] = fmt.Sprintf("%s has no address here: %v", name, err)
			}
		})
	}
	asked.Wait()
	return slices.DeleteFunc(out, func(s string) bool { return s == "" })
}

// checkNeeds looks now, and tells what has changed.
func (d *daemon) checkNeeds(ctx context.Context) (lacks string) {
	cards, why := d.cards.present()
	memory := int64(0)
	needs := &d.now().Needs
	if needs.Memory > 0 {
		memory = proc.MemTotal()
	}
	lacks = needs.lacks(ctx, cards, why, memory)
	if gone := d.cgroups.Gone(); gone != "" {
		lacks = strings.TrimPrefix(lacks+"; "+gone+": limits of jobs do not hold any more", "; ")
	}
	if err := d.closedToUsers(); err != nil {
		lacks = strings.TrimPrefix(lacks+"; "+err.Error(), "; ")
	}
	if ctx.Err() != nil {
		return "" // nobody waits for it any longer
	}
	d.fitness.say(d, func(f *fitness) { f.needs = lacks })
	return lacks
}

// closedToUsers says what keeps users from their scripts and from the programs that start their ranks, tried as one of
// them: every job would fail of it, by no fault of its user's.
func (d *daemon) closedToUsers() error {
	if d.opts.SingleUser {
		return nil
	}
	if err := proc.Passable(filepath.Join(d.state.path, membersDir), d.userGroups()); err != nil {
		return fmt.Errorf("state_dir: %w", err)
	}
	for _, program := range []string{d.opts.Shim, filepath.Join(filepath.Dir(d.opts.Shim), shim.LauncherName)} {
		if err := proc.RunsForUsers(program, d.userGroups()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// watchNeeds looks until ctx ends, first before the first session.
func (d *daemon) watchNeeds(ctx context.Context) {
	d.checkNeeds(ctx)
	d.every(ctx, needsEvery, func() {
		d.checkNeeds(ctx)
		d.tryAgain()
	})
}

// refuseUnfit refuses a member while something lacks. Its gang goes elsewhere: the controller hears in
// the same report that the node is out of service.
func (d *daemon) refuseUnfit(ctx context.Context) *api.Refusal {
	if lacks := d.checkNeeds(ctx); lacks != "" {
		return refuse(api.BlameUnfit, "%s", lacks)
	}
	return nil
}
