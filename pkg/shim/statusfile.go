package shim

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"gangd/pkg/supervise"
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
	if err := m.writeStatus(statusText(o, m.spec.Epoch, time.Now())); err != nil {
		logf("write %s: %v", StatusFile, err)
	}
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
	if err := m.writeStatus(warningText(w, m.spec.Epoch, time.Now())); err != nil {
		logf("write %s: %v", StatusFile, err)
	}
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

// writeStatus replaces the file in one step: a reader finds the old text or the new one.
// Names in the directory are root's alone, so that no user can have a link waiting here.
func (m *member) writeStatus(text string) error {
	tmp := StatusFile + ".new"
	if err := os.WriteFile(tmp, []byte(text), 0o400); err != nil {
		return err
	}
	if m.spec.SwitchUser {
		if err := os.Chown(tmp, int(m.spec.UID), int(m.spec.GID)); err != nil {
			return err
		}
	}
	return os.Rename(tmp, StatusFile)
}
