package shim

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/supervise"
)

// statusEnv names [StatusFile] to the ranks.
const statusEnv = "GANG_STATUS_FILE"

// announce writes why and when the ranks are to end, before the signal that tells them so:
// a handler that reads the file never finds less than what it was called for. There is no
// file before; most members never have one. A disk that is full costs the reason, not the
// signal.
func (m *member) announce() {
	o, ok := m.mach.Outlook(now())
	if !ok {
		return
	}
	m.writeStatus(StatusFile, statusText(o, m.spec.Epoch, time.Now()))
	for _, p := range m.steps {
		if p.announced { // of its own end; that of all is the later news
			p.announced = false
			m.shareStatus(p.id)
		}
	}
}

// stepStatus is GANG_STATUS_FILE of the tasks of a step: a link to that of all, and a file of
// its own when the step alone is to end.
func stepStatus(id int) string { return StatusFile + "." + strconv.Itoa(id) }

// shareStatus has the tasks of a step read what all do.
func (m *member) shareStatus(id int) {
	tmp := StatusFile + ".new"
	_ = os.Remove(tmp)
	err := os.Symlink(StatusFile, tmp)
	if err == nil {
		err = os.Rename(tmp, stepStatus(id))
	}
	if err != nil {
		logf("link %s: %v", stepStatus(id), err)
	}
}

// announceStep writes why the tasks of one step are to end.
func (m *member) announceStep(p *stepProc, grace time.Duration) {
	o := supervise.Outlook{State: supervise.Stopping, Cause: api.CauseCancelled, Signal: "TERM", Left: grace,
		Text: "step " + api.StepText(m.spec.Job, p.id) + " is ended"}
	p.announced = true
	m.writeStatus(stepStatus(p.id), statusText(o, m.spec.Epoch, time.Now()))
}

// warn writes what a rank is warned of, or takes that back. A stop that is announced has the
// file: it is the later news.
func (m *member) warn(w *Warning) {
	if _, stopping := m.mach.Outlook(now()); stopping {
		return
	}
	if w.Text == "" {
		m.recant()
		return
	}
	m.writeStatus(StatusFile, warningText(w, m.spec.Epoch, time.Now()))
}

// warningText is the file while nothing is stopped yet.
func warningText(w *Warning, epoch int, at time.Time) string {
	return fmt.Sprintf("state=warning\ncause=%s\nrank=%d\ntext=%s\nseconds_left=%.3f\nepoch=%d\ntime=%s\n", w.Cause, w.Rank,
		oneLine.Replace(w.Text), w.Left.Seconds(), epoch, at.UTC().Format(statusTime))
}

var oneLine = strings.NewReplacer("\n", " ", "\r", " ")

const statusTime = "2006-01-02T15:04:05.000Z"

// recant takes the file away: no end is in sight any more.
func (m *member) recant() {
	if err := os.Remove(StatusFile); err != nil && !errors.Is(err, os.ErrNotExist) {
		logf("remove %s: %v", StatusFile, err)
	}
}

// statusText is the file: key=value lines, the value ends with its line.
func statusText(o supervise.Outlook, epoch int, at time.Time) string {
	state := "stopping"
	if o.State == supervise.Leading {
		state = "notice"
	}
	return fmt.Sprintf("state=%s\ncause=%s\ntext=%s\nsignal=%s\nseconds_left=%.3f\nepoch=%d\ntime=%s\n", state, o.Cause,
		oneLine.Replace(o.Text), o.Signal, o.Left.Seconds(), epoch, at.UTC().Format(statusTime))
}

// writeStatus replaces a file in one step: a reader finds the old text or the new one.
// Names in the directory are root's alone, so that no user can have a link waiting here.
func (m *member) writeStatus(name, text string) {
	tmp := StatusFile + ".new"
	err := os.WriteFile(tmp, []byte(text), 0o400)
	if err == nil && m.spec.SwitchUser {
		err = os.Chown(tmp, int(m.spec.UID), int(m.spec.GID))
	}
	if err == nil {
		err = os.Rename(tmp, name)
	}
	if err != nil {
		logf("write %s: %v", name, err)
	}
}
