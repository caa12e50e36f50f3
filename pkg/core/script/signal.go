package script

import (
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/nearest"
)

// defaultLead is how early --signal=USR1 comes when no lead is given, as in Slurm.
const defaultLead = 60 * time.Second

const signalForms = "write --signal=USR1@120, --signal=B:TERM@2m, --signal=A:USR1@120 or --signal=10@60"

// signalTo is the signal of a notice with whom it goes to, as --signal has it: B:USR1.
func signalTo(n *api.Notice) string {
	switch n.Scope {
	case api.ScopeBatch:
		return "B:" + n.Signal
	case api.ScopeFull:
		return "A:" + n.Signal
	}
	return n.Signal
}

// ParseSignalName reads TERM, SIGTERM, term or 15 and gives TERM.
func ParseSignalName(s string) (string, error) {
	name, ok := cmdline.SignalName(s)
	switch {
	case ok:
		return name, nil
	case digits(s):
		return "", bad("there is no signal "+s, "signals are 1 to 31, or names as in kill -l")
	}
	return "", bad("there is no signal "+strconv.Quote(s), nearest.Hint(name, cmdline.SignalNames, "names are as in kill -l"))
}

// parseNotice reads [B:|A:]SIG[@lead]. What has no effect here, or another than is hoped for, is warned of.
func (a *Ask) parseNotice(s string) (*api.Notice, error) {
	n := &api.Notice{Lead: defaultLead, Scope: api.ScopeRanks}
	if scope, rest, ok := strings.Cut(s, ":"); ok && !strings.Contains(scope, "@") {
		scope = strings.ToUpper(scope)
		if strings.Contains(scope, "R") {
			a.warn("R: has no effect: there are no reservations that a job could overlap")
		}
		switch scope {
		case "R":
		case "B", "RB", "BR":
			n.Scope = api.ScopeBatch
		case "A":
			n.Scope = api.ScopeFull
		default:
			return nil, bad("unknown scope "+strconv.Quote(scope+":"), signalForms)
		}
		s = rest
	}
	sig, lead, hasLead := strings.Cut(s, "@")
	var err error
	if n.Signal, err = ParseSignalName(sig); err != nil {
		return nil, err
	}
	if n.Signal == "KILL" || n.Signal == "STOP" {
		a.warn(n.Signal + " can't be caught: it is no notice, and has no effect")
	}
	if hasLead {
		if n.Lead, err = ParseSeconds(lead); err != nil {
			return nil, bad("the lead "+strconv.Quote(lead)+" is not a time", signalForms)
		}
	}
	return n, nil
}
