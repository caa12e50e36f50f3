package people

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// files are passwd, group and nsswitch.conf of this host, each read again when it is another or has changed.
type files struct {
	etc string

	mu     sync.Mutex
	passwd file[users]
	group  file[[]groupLine]
	order  file[map[string]bool]
}

// users are those of passwd by both of their names. Of two lines with one of them the first counts.
type users struct {
	byUID  map[uint32]User
	byName map[string]User
}

type groupLine struct {
	name    string
	gid     uint32
	members []string
}

// file is one that was read.
type file[T any] struct {
	was  syscall.Stat_t
	read bool
	has  T
}

// get reads a file whose identity, size or time is another than before. One that is not there is empty.
func (f *file[T]) get(path string, parse func([]byte) T) T {
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		st = syscall.Stat_t{}
	}
	st.Atim = syscall.Timespec{}
	if f.read && st == f.was {
		return f.has
	}
	text, _ := os.ReadFile(path)
	f.was, f.read, f.has = st, true, parse(text)
	return f.has
}

func (f *files) users() users {
	return f.passwd.get(f.etc+"/passwd", func(text []byte) users {
		all := users{map[uint32]User{}, map[string]User{}}
		for line := range bytes.Lines(text) {
			u, ok := parseUser(strings.TrimSuffix(string(line), "\n"))
			if !ok {
				continue
			}
			if _, known := all.byUID[u.UID]; !known {
				all.byUID[u.UID] = u
			}
			if _, known := all.byName[u.Name]; !known {
				all.byName[u.Name] = u
			}
		}
		return all
	})
}

func (f *files) groups() []groupLine {
	return f.group.get(f.etc+"/group", func(text []byte) (out []groupLine) {
		for line := range bytes.Lines(text) {
			if g, ok := parseGroup(strings.TrimSuffix(string(line), "\n")); ok {
				out = append(out, g)
			}
		}
		return out
	})
}

// parseUser reads a line of passwd. What NIS once added (+, -) is no user.
func parseUser(line string) (u User, ok bool) {
	part := strings.Split(line, ":")
	if len(part) < 7 || part[0] == "" || part[0][0] == '+' || part[0][0] == '-' || part[0][0] == '#' {
		return u, false
	}
	uid, err1 := strconv.ParseUint(part[2], 10, 32)
	gid, err2 := strconv.ParseUint(part[3], 10, 32)
	return User{Name: part[0], UID: uint32(uid), GID: uint32(gid), Gecos: part[4], Home: part[5], Shell: part[6]}, err1 == nil && err2 == nil
}

func parseGroup(line string) (g groupLine, ok bool) {
	part := strings.Split(line, ":")
	if len(part) < 4 || part[0] == "" || part[0][0] == '+' || part[0][0] == '-' || part[0][0] == '#' {
		return g, false
	}
	gid, err := strconv.ParseUint(part[2], 10, 32)
	return groupLine{name: part[0], gid: uint32(gid), members: strings.Split(part[3], ",")}, err == nil
}

func (f *files) byUID(uid uint32) (User, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	u, ok := f.users().byUID[uid]
	return u, ok
}

func (f *files) byName(name string) (User, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	u, ok := f.users().byName[name]
	return u, ok
}

func (f *files) groupsOf(u User) []uint32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	var more []uint32
	for _, g := range f.groups() {
		for _, m := range g.members {
			if m == u.Name {
				more = append(more, g.gid)
				break
			}
		}
	}
	return firstOnce(u.GID, more)
}

func (f *files) groupName(gid uint32) (string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, g := range f.groups() {
		if g.gid == gid {
			return g.name, true
		}
	}
	return "", false
}

func (f *files) gid(name string) (uint32, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, g := range f.groups() {
		if g.name == name {
			return g.gid, true
		}
	}
	return 0, false
}

// only: nsswitch.conf names nothing but files for a database. One that it does not name is as glibc has it: files,
// and of initgroups: what it has for group, which is not asked for here.
func (f *files) only(database string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	others := f.order.get(f.etc+"/nsswitch.conf", func(text []byte) map[string]bool {
		out := map[string]bool{"initgroups": true}
		for line := range strings.Lines(string(text)) {
			line, _, _ = strings.Cut(line, "#")
			name, services, ok := strings.Cut(line, ":")
			if !ok {
				continue
			}
			name = strings.TrimSpace(name)
			out[name] = false
			for _, s := range strings.Fields(services) {
				if s != "files" && s[0] != '[' && !strings.HasSuffix(s, "]") {
					out[name] = true
				}
			}
		}
		return out
	})
	return !others[database]
}
