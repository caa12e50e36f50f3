package noded

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/cluster"
	"gangd/pkg/proc"
)

// Needs are what this node must have to take work; without it the node is out of service, and back
// by itself when it has it again.
type Needs struct {
	Cards     int      // that the driver lists
	Memory    int64    // of the machine, bytes
	Mounts    []string // where something must be mounted
	MountInfo string   // read instead of /proc/self/mountinfo; for tests
}

func (n *Needs) none() bool { return n.Cards == 0 && n.Memory == 0 && len(n.Mounts) == 0 }

// needsEvery is between two looks. They cost a fraction of a millisecond, and each start of a
// member looks too.
const needsEvery = 2 * time.Second

// lacks says what of it is not there; empty: all is.
func (n *Needs) lacks(cards int, why string, memory int64) string {
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
	return strings.Join(out, "; ")
}

// checkNeeds looks now, and tells what has changed.
func (d *Daemon) checkNeeds() (lacks string) {
	cards, why := d.cards.present()
	lacks = d.opts.Needs.lacks(cards, why, memTotal())
	d.fitness.say(d, func(f *fitness) { f.needs = lacks })
	return lacks
}

// watchNeeds looks until ctx ends, first before the first session.
func (d *Daemon) watchNeeds(ctx context.Context) {
	if d.opts.Needs.none() {
		return
	}
	d.checkNeeds()
	d.running.Go(func() {
		for ctx.Err() == nil {
			sleep(ctx, needsEvery)
			d.checkNeeds()
		}
	})
}

// refuseUnfit refuses a member while something lacks. Its gang goes elsewhere: the controller hears in
// the same report that the node is out of service.
func (d *Daemon) refuseUnfit() *api.Refusal {
	if d.opts.Needs.none() {
		return nil
	}
	if lacks := d.checkNeeds(); lacks != "" {
		return refuse(api.BlameUnfit, "%s", lacks)
	}
	return nil
}
