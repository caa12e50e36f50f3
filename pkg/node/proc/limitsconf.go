package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// LoginLimits are the limits that a login of a user starts with on this machine, by limits.conf(5) as pam_limits
// reads it.
type LoginLimits struct {
	dir   string                                  // /etc/security
	group func(name string) (gid uint32, ok bool) // asked at each login, for each rule that names one

	mu    sync.Mutex
	seen  string // which files the rules are of
	rules []limitRule
}

// NewLoginLimits reads the machine's files, and again whenever they have changed. Which number a group has that a rule
// names it is told; nobody is in one that is unknown.
func NewLoginLimits(group func(name string) (gid uint32, ok bool)) *LoginLimits {
	return &LoginLimits{dir: "/etc/security", group: group}
}

// limitRule is a line. A rule of a user counts more than one of a group, and that more than one of everybody; of
// equals the later one counts.
type limitRule struct {
	user       string // empty: not of one
	group      string // likewise
	uids, gids [2]uint32
	rank       int
	name       string // of the limit; "priority" is the niceness
	soft, hard bool
	value      uint64
	nice       int
}

const (
	ofAll = iota
	ofGroup
	ofUser
)

// noIDs is a range that nobody is in.
var noIDs = [2]uint32{1, 0}

// Of gives the limits, and the niceness, of a user's login.
func (l *LoginLimits) Of(name string, uid uint32, gids []uint32) (limits []Rlimit, nice int) {
	limits = slices.Clone(firstLimits())
	softRank, hardRank, niceRank := map[string]int{}, map[string]int{}, 0
	for _, r := range l.current() {
		if uid == 0 && r.rank != ofUser || !r.means(name, uid, gids, l.group) {
			continue
		}
		if r.name == "priority" {
			if r.rank >= niceRank {
				niceRank, nice = r.rank, r.nice
			}
			continue
		}
		i := slices.IndexFunc(limits, func(l Rlimit) bool { return l.Name == r.name })
		if i < 0 {
			limits = append(limits, Rlimit{r.name, NoRlimit, NoRlimit})
			i = len(limits) - 1
		}
		if r.hard && r.rank >= hardRank[r.name] {
			hardRank[r.name], limits[i].Hard = r.rank, r.value
		}
		if r.soft && r.rank >= softRank[r.name] {
			softRank[r.name], limits[i].Soft = r.rank, r.value
		}
	}
	for i := range limits {
		limits[i].Soft = min(limits[i].Soft, limits[i].Hard)
	}
	return limits, nice
}

func (r *limitRule) means(name string, uid uint32, gids []uint32, number func(group string) (uint32, bool)) bool {
	switch {
	case r.user != "":
		return r.user == name
	case r.group != "":
		gid, known := number(r.group)
		return known && slices.Contains(gids, gid)
	case r.uids[0] <= r.uids[1]:
		return r.uids[0] <= uid && uid <= r.uids[1]
	case r.gids[0] <= r.gids[1]:
		return slices.ContainsFunc(gids, func(g uint32) bool { return r.gids[0] <= g && g <= r.gids[1] })
	}
	return r.rank == ofAll
}

// current are the rules of the files as they are now.
func (l *LoginLimits) current() []limitRule {
	files := []string{filepath.Join(l.dir, "limits.conf")}
	more, _ := filepath.Glob(filepath.Join(l.dir, "limits.d", "*.conf")) // fails for a bad pattern alone
	files = append(files, more...)                                       // in the order of their names
	var seen strings.Builder
	for _, f := range files {
		if info, err := os.Stat(f); err == nil {
			fmt.Fprintf(&seen, "%s %d %s\n", f, info.Size(), info.ModTime().Format(time.RFC3339Nano))
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen != seen.String() {
		l.rules = nil
		for _, f := range files {
			text, _ := os.ReadFile(f)
			for line := range strings.Lines(string(text)) {
				if r, ok := readLimitRule(line); ok {
					l.rules = append(l.rules, r)
				}
			}
		}
		l.seen = seen.String()
	}
	return l.rules
}

// rule reads "who soft|hard|- what value". What is no limit of a process, or can't be read, is left out, as
// pam_limits does.
func readLimitRule(line string) (r limitRule, ok bool) {
	line, _, _ = strings.Cut(line, "#")
	f := strings.Fields(line)
	if len(f) != 4 || f[0][0] == '%' {
		return r, false
	}
	r = limitRule{uids: noIDs, gids: noIDs, name: strings.ToLower(f[2]), soft: f[1] != "hard", hard: f[1] != "soft"}
	if f[1] != "soft" && f[1] != "hard" && f[1] != "-" {
		return r, false
	}
	if !r.who(f[0]) {
		return r, false
	}
	if r.name == "priority" {
		n, err := strconv.Atoi(f[3])
		r.nice = max(-20, min(n, 19))
		return r, err == nil
	}
	kernel := rlimitOf(r.name)
	if kernel == nil {
		return r, false
	}
	if r.name == "nice" { // the kernel's figure is 20 - nice
		n, err := strconv.Atoi(f[3])
		r.value = uint64(20 - max(-20, min(n, 19)))
		return r, err == nil
	}
	r.value, ok = limitFigure(f[3], kernel.unit)
	return r, ok
}

func limitFigure(text string, unit uint64) (uint64, bool) {
	switch text {
	case "unlimited", "infinity", "-1":
		return NoRlimit, true
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, false
	}
	if n > NoRlimit/unit {
		return NoRlimit, true
	}
	return n * unit, true
}

// who reads whom a rule is of: a name, @group, *, or a range of ids as 1000:2000, :2000 (that id alone as with
// 2000:2000), 1000:, each behind @ for groups.
func (r *limitRule) who(text string) bool {
	name, ofGroups := strings.CutPrefix(text, "@")
	from, to, ranged := strings.Cut(name, ":")
	switch {
	case text == "*":
		r.rank = ofAll
		return true
	case ranged:
		ids, ok := idRange(from, to)
		if r.rank, r.uids = ofUser, ids; ofGroups {
			r.rank, r.uids, r.gids = ofGroup, noIDs, ids
		}
		return ok
	case ofGroups:
		r.rank, r.group = ofGroup, name
		return name != ""
	}
	r.rank, r.user = ofUser, text
	return true
}

func idRange(from, to string) (ids [2]uint32, ok bool) {
	number := func(s string) (uint32, bool) {
		n, err := strconv.ParseUint(s, 10, 32)
		return uint32(n), err == nil
	}
	low, ok1 := number(from)
	high, ok2 := number(to)
	switch {
	case from == "" && ok2:
		return [2]uint32{high, high}, true
	case to == "" && ok1:
		return [2]uint32{low, 1<<32 - 1}, true
	}
	return [2]uint32{low, high}, ok1 && ok2
}

// JobLimits reads what a site gives to jobs over those of a login: NAME=SOFT or NAME=SOFT:HARD by the names and units of limits.conf(5).
func JobLimits(list []string) (limits []Rlimit, err error) {
	for _, text := range list {
		name, figures, _ := strings.Cut(text, "=")
		soft, hard, both := strings.Cut(figures, ":")
		if !both {
			hard = soft
		}
		r := rlimitOf(name)
		if r == nil {
			var names []string
			for i := range rlimits {
				names = append(names, rlimits[i].name)
			}
			return nil, fmt.Errorf("%q: want NAME=SOFT or NAME=SOFT:HARD, NAME one of %s", text, strings.Join(names, ", "))
		}
		s, ok1 := limitFigure(soft, r.unit)
		h, ok2 := limitFigure(hard, r.unit)
		if !ok1 || !ok2 || s > h {
			return nil, fmt.Errorf("%q: want figures as limits.conf(5) has them, or unlimited, SOFT not above HARD", text)
		}
		limits = append(limits, Rlimit{name, s, h})
	}
	return limits, nil
}

// With puts limits in the place of those of the same name.
func With(limits, over []Rlimit) []Rlimit { return merge(limits, over) }
