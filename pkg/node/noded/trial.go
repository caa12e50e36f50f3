package noded

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"gangd/pkg/api"
	"gangd/pkg/node/proc"
)

// A launch that failed before anything of the user's was touched may be the node's fault, and may be what a user has
// brought about: a full disk that is everybody's, say. So the node tries itself, with nothing of anybody's: where
// that fails too it is out of service by its own word until it works again, and no strike has to add up.

// trialSize is what a small member's files may take.
const trialSize = smallMember

// trial says why this node can't hold a small member.
func (d *daemon) trial() error {
	dir := filepath.Join(d.state.path, membersDir, ".trial."+strconv.FormatUint(rand.Uint64(), 16))
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "file"), make([]byte, trialSize), 0o600)
		_ = os.RemoveAll(dir)
	}
	if err != nil {
		return err
	}
	if d.cgroups.Dir == "" {
		return nil
	}
	runtime.LockOSThread() // which enters groups of v1
	defer runtime.UnlockOSThread()
	box, err := proc.Make(d.cgroups.Place(d.state.id+"-"+filepath.Base(dir), ""), proc.Limits{})
	if err != nil {
		return err
	}
	_, err = box.Remove()
	return err
}

// judged tries the node after a refusal that is its fault by what failed. One that fails the trial says so as its health, and
// the refusal counts against nobody.
func (d *daemon) judged(r *api.Refusal) *api.Refusal {
	if r == nil || r.Blame != api.BlameNode {
		return r
	}
	if err := d.trial(); err != nil {
		d.fitness.say(d, func(f *fitness) { f.trial = fmt.Sprintf("no job can be held here: %v", err) })
		return refuse(api.BlameUnfit, "%s", r.Text)
	}
	return r
}

// tryAgain looks whether a node that failed its trial can hold members again.
func (d *daemon) tryAgain() {
	if d.fitness.failedTrial() && d.trial() == nil {
		d.fitness.say(d, func(f *fitness) { f.trial = "" })
	}
}
