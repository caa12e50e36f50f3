package script

import (
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/nearest"
)

// defaultLead is how early --signal=USR1 comes when no lead is given, as in Slurm.
const defaultLead = 60 * time.Second

const signalForms = "write --signal=USR1@120, --signal=B:TERM@2m or --signal=10@60"

// signalNames are the signals of Linux by number (the same on every architecture that
// CUDA runs on).
var signalNames = [...]string{1: "HUP", 2: "INT", 3: "QUIT", 4: "ILL", 5: "TRAP", 6: "ABRT", 7: "BUS", 8: "FPE",
	9: "KILL", 10: "USR1", 11: "SEGV", 12: "USR2", 13: "PIPE", 14: "ALRM", 15: "TERM", 16: "STKFLT", 17: "CHLD",
	18: "CONT", 19: "STOP", 20: "TSTP", 21: "TTIN", 22: "TTOU", 23: "URG", 24: "XCPU", 25: "XFSZ", 26: "VTALRM",
	27: "PROF", 28: "WINCH", 29: "IO", 30: "PWR", 31: "SYS"}

// ParseSignalName reads TERM, SIGTERM, term or 15 and gives TERM.
func ParseSignalName(s string) (string, error) {
	if digits(s) {
		if n, err := strconv.Atoi(s); err == nil && n > 0 && n < len(signalNames) {
			return signalNames[n], nil
		}
		return "", bad("there is no signal "+s, "signals are 1 to 31, or names as in kill -l")
	}
	name := strings.TrimPrefix(strings.ToUpper(s), "SIG")
	for _, n := range signalNames {
		if n != "" && n == name {
			return n, nil
		}
	}
	hint := "names are as in kill -l"
	if n := nearest.Of(name, signalNames[1:]); n != "" {
		hint = "did you mean " + n + "?"
	}
	return "", bad("there is no signal "+strconv.Quote(s), hint)
}

// ParseNotice reads [B:]SIG[@lead].
func ParseNotice(s string) (*api.Notice, error) {
	n := &api.Notice{Lead: defaultLead, Scope: api.ScopeRanks}
	if scope, rest, ok := strings.Cut(s, ":"); ok && !strings.Contains(scope, "@") {
		switch strings.ToUpper(scope) {
		case "B":
			n.Scope = api.ScopeBatch
		case "R", "RB", "BR":
			return nil, bad("there are no reservations that a job could overlap (R:)", signalForms)
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
		return nil, bad(n.Signal+" can't be caught, so it is no notice", signalForms)
	}
	if hasLead {
		if n.Lead, err = ParseSeconds(lead); err != nil {
			return nil, bad("the lead "+strconv.Quote(lead)+" is not a time", signalForms)
		}
	}
	return n, nil
}
