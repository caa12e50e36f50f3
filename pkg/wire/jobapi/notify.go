package jobapi

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"gangd/pkg/api"
)

// MaxDatagram is the longest notification that is read; systemd's own limit.
const MaxDatagram = 4096

// Notification is one datagram of the sd_notify protocol, as far as gangd listens.
type Notification struct {
	Beat      bool          // WATCHDOG=1
	Ready     bool          // READY=1
	Stopping  bool          // STOPPING=1
	Saved     bool          // X_GANG_CHECKPOINT=done
	HasStatus bool          // STATUS= was there, perhaps empty
	Status    string        // clean UTF-8 in one line, at most [api.MaxStatusBytes]
	Extend    time.Duration // EXTEND_TIMEOUT_USEC=, 0: not there
}

// Parse reads a datagram: lines of NAME=value. Names it does not know are others' business
// and no error; of a repeated name the last counts.
func Parse(data []byte) (n Notification) {
	for line := range strings.Lines(string(data)) {
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !ok {
			continue
		}
		switch name {
		case "WATCHDOG":
			n.Beat = n.Beat || value == "1"
		case "READY":
			n.Ready = n.Ready || value == "1"
		case "STOPPING":
			n.Stopping = n.Stopping || value == "1"
		case "X_GANG_CHECKPOINT":
			n.Saved = n.Saved || value == "done"
		case "STATUS":
			n.HasStatus, n.Status = true, OneLine(value)
		case "EXTEND_TIMEOUT_USEC":
			n.Extend = micros(value)
		}
	}
	return n
}

// micros reads a number of microseconds; what is none is 0, what is too many a day.
func micros(s string) time.Duration {
	const most = 24 * time.Hour
	us, err := strconv.ParseUint(s, 10, 64)
	switch {
	case err != nil && us == 0:
		return 0
	case us > uint64(most/time.Microsecond):
		return most
	}
	return time.Duration(us) * time.Microsecond
}

// OneLine makes a status, or other words of a process, fit to be printed into anybody's terminal: no control characters,
// valid UTF-8, cut at a rune's border.
func OneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if len(s) > api.MaxStatusBytes {
		s = s[:api.MaxStatusBytes]
		for !utf8.ValidString(s) {
			s = s[:len(s)-1]
		}
	}
	return s
}
