package script

import (
	"strconv"
	"strings"

	"gangd/pkg/core/rankenv"
)

const exportForms = "write --export=ALL, --export=NONE, --export=PATH,HOME or --export=ALL,SEED=3"

// Export says which variables a job gets.
type Export struct {
	All   bool     // all of the submitter's
	Names []string // these of the submitter's
	Set   []string // NAME=value
}

// ParseExport reads --export: ALL, NONE, names, NAME=value, in a comma list. A value with
// a comma stands in quotes: --export='ALL,OPTS="a,b"'.
func ParseExport(s string) (Export, error) {
	var e Export
	parts, ok := splitQuoted(s)
	if !ok {
		return e, bad("the quote is never closed", exportForms)
	}
	for i, p := range parts {
		name, value, set := strings.Cut(p, "=")
		switch {
		case !set && strings.EqualFold(name, "ALL"):
			e.All = true
			continue
		case !set && (strings.EqualFold(name, "NONE") || strings.EqualFold(name, "NIL")):
			if len(parts) > 1 {
				return Export{}, bad(name+" stands alone", exportForms)
			}
			return e, nil
		case !set && name == "" && i == len(parts)-1 && i > 0:
			continue // a comma at the end
		}
		if !varName(name) && (set || !strings.HasPrefix(name, "/")) { // a path is a variable that nobody has, as sbatch takes it
			return Export{}, bad(strconv.Quote(name)+" is not the name of a variable", exportForms)
		}
		if set {
			e.Set = append(e.Set, name+"="+value)
		} else {
			e.Names = append(e.Names, name)
		}
	}
	return e, nil
}

// Environ applies e to the submitter's environment. Names that are not in it come back as
// missing.
func (e Export) Environ(environ []string) (out, missing []string) {
	if e.All {
		for _, kv := range environ {
			if name, _, _ := strings.Cut(kv, "="); !ofOtherJob(name) {
				out = append(out, kv)
			}
		}
	}
	for _, n := range e.Names {
		found := false
		for _, kv := range environ {
			if name, _, _ := strings.Cut(kv, "="); name == n {
				out = setEnv(out, kv)
				found = true
			}
		}
		if !found {
			missing = append(missing, n)
		}
	}
	for _, kv := range e.Set {
		out = setEnv(out, kv)
	}
	return out, missing
}

// ofOtherJob tells what a job was given about itself. A job that submits another one must
// not hand its own rank or socket on.
func ofOtherJob(name string) bool {
	switch name {
	case "GANG_DIR", "SLURM_CONF":
		return false
	case "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "CHECKPOINT_DATA",
		"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT":
		return true
	}
	return strings.HasPrefix(name, "GANG_") || strings.HasPrefix(name, "SLURM_") && !rankenv.AskedOfSteps(name)
}

func setEnv(env []string, kv string) []string {
	name, _, _ := strings.Cut(kv, "=")
	for i, have := range env {
		if strings.HasPrefix(have, name) && strings.HasPrefix(have[len(name):], "=") {
			env[i] = kv
			return env
		}
	}
	return append(env, kv)
}

// varName takes what a shell does, and behind the first letter what programs put into names
// beside: modules and functions of shells have dots and percent signs.
func varName(s string) bool {
	for i, c := range []byte(s) {
		if c != '_' && (i == 0 || !strings.ContainsRune(".-:%()", rune(c))) && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') &&
			(i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// splitQuoted cuts at commas outside quotes and takes the quotes off.
func splitQuoted(s string) (parts []string, closed bool) {
	var b strings.Builder
	var quote byte
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			b.WriteByte(c)
		case c == '"' || c == '\'':
			quote = c
		case c == ',':
			parts = append(parts, b.String())
			b.Reset()
		default:
			b.WriteByte(c)
		}
	}
	return append(parts, b.String()), quote == 0
}
