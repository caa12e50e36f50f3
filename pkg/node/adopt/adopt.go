// Package adopt moves a login into the containment of a job of its user on this node. It is a program of
// pam_exec (gadopt), asks nobody and needs no daemon: what runs is read from the members' directories, and a login
// that was moved is a process of the member like any other, so that limits, cards, CPUs and the member's end
// hold for it. Whoever has no job here is refused, and nothing is moved then. Begin with Run.
//
// It must not know the controller or the daemons.
package adopt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/node/proc"
	"gangd/pkg/node/shim"
	"gangd/pkg/wire/people"
)

// Login is who logs in, and what the site lets pass.
type Login struct {
	Name   string
	UID    uint32
	GID    uint32
	Home   string
	Groups []string // the names of the user's groups
	PID    int      // the process that the session will come from

	States []string // state directories of the gnoded of this node
	Pass   []string // names of groups whose users need no job
}

// AskFile, below the home directory, holds the number of the job that its user wants to be in.
const AskFile = ".gang/adopt"

// Run moves the login into a job. A nil job and no error: the user needs none. An error is the reason to
// refuse the login.
func Run(l *Login) (*api.MemberKey, error) {
	if l.UID == 0 || slices.ContainsFunc(l.Groups, func(g string) bool { return slices.Contains(l.Pass, g) }) {
		return nil, nil
	}
	found, err := members(l)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s has no running job on this node", l.Name)
	}
	m := found[0]
	if asked := l.asked(); asked > 0 {
		i := slices.IndexFunc(found, func(m member) bool { return m.Job == asked })
		if i < 0 {
			return nil, fmt.Errorf("job %d, which ~/%s names, is not running on this node: remove the file, or write %d into it", asked, AskFile,
				m.Job)
		}
		m = found[i]
	}
	if err := proc.Adopt(m.Place(), l.PID); err != nil {
		return nil, fmt.Errorf("job %d: %w", m.Job, err)
	}
	if set := m.CPUSet(); len(set) > 0 {
		if err := proc.SetAffinity(l.PID, set); err != nil {
			return nil, fmt.Errorf("job %d: CPUs %s: %w", m.Job, set, err)
		}
	}
	return &m.MemberKey, nil
}

type member struct {
	*shim.Spec
	began time.Time
}

// members are the running ones of the user, the newest first.
func members(l *Login) (found []member, err error) {
	for _, dir := range l.States {
		entries, err := os.ReadDir(filepath.Join(dir, shim.MembersDir))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			at := filepath.Join(dir, shim.MembersDir, e.Name())
			spec, err := shim.ReadSpec(at)
			if err != nil || spec.UID != l.UID {
				continue // gone since, or nobody's that can be told
			}
			state, err := shim.ReadState(at)
			if err != nil || state.Phase != api.PhaseRunning || state.Stopping != "" || len(state.Ranks) == 0 {
				continue
			}
			found = append(found, member{spec, state.Ranks[0].Started})
		}
	}
	slices.SortFunc(found, func(a, b member) int { return cmp.Or(b.began.Compare(a.began), cmp.Compare(b.Job, a.Job)) })
	return found, nil
}

// asked is the job that the user wants to be in; 0: the newest. The file is read with his rights, so that
// it leads to nothing that he could not read, and a home directory that root can't enter is no hindrance.
func (l *Login) asked() int64 {
	if l.Home == "" {
		return 0
	}
	var job int64
	read := func() error {
		fd, err := unix.Open(filepath.Join(l.Home, AskFile), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		var buf [32]byte
		n, _ := unix.Read(fd, buf[:])
		job, err = strconv.ParseInt(strings.TrimSpace(string(buf[:max(n, 0)])), 10, 64)
		return err
	}
	err := error(nil)
	if os.Geteuid() == 0 {
		err = proc.AsUser(&syscall.Credential{Uid: l.UID, Gid: l.GID}, read)
	} else {
		err = read()
	}
	if err != nil {
		return 0
	}
	return max(job, 0)
}

// Main is gadopt: what pam_exec tells is in its environment, and the process of the login is its parent.
func Main(args []string, stdout, stderr io.Writer) int {
	l := Login{Name: os.Getenv("PAM_USER"), PID: os.Getppid()}
	for _, a := range args {
		name, value, ok := strings.Cut(a, "=")
		switch {
		case ok && name == "--state-dir" && filepath.IsAbs(value):
			l.States = append(l.States, value)
		case ok && name == "--allow-groups":
			l.Pass = strings.Split(value, ",")
		default:
			fmt.Fprintf(stderr, "gadopt: %q: want --state-dir=DIR (absolute, for each gnoded of this node) or --allow-groups=NAME,...\n", a)
			return 2
		}
	}
	if len(l.States) == 0 {
		l.States = []string{"/var/lib/gnoded"}
	}
	switch kind := os.Getenv("PAM_TYPE"); kind {
	case "account", "open_session":
	case "close_session":
		return 0
	default:
		fmt.Fprintf(stderr, "gadopt is started by pam_exec, as: account required pam_exec.so quiet stdout /usr/local/libexec/gangd/gadopt "+
			"(PAM_TYPE is %q)\n", kind)
		return 2
	}
	var key *api.MemberKey
	err := l.lookup()
	if err == nil {
		key, err = Run(&l)
	}
	switch {
	case err != nil:
		fmt.Fprintf(stdout, "gadopt: access denied: %v\n", err)
		return 1
	case key != nil:
		fmt.Fprintf(stdout, "gadopt: this session is in job %d, and ends with it\n", key.Job)
	}
	return 0
}

// lookup fills in what this node's user database says.
func (l *Login) lookup() error {
	ctx := context.Background() // each look-up has a deadline of its own
	u, err := people.Here.ByName(ctx, l.Name)
	if err != nil {
		return fmt.Errorf("user %s: %w", l.Name, err)
	}
	l.UID, l.GID, l.Home = u.UID, u.GID, u.Home
	if len(l.Pass) == 0 {
		return nil
	}
	ids, err := people.Here.Groups(ctx, u)
	if err != nil {
		return fmt.Errorf("groups of %s: %w", l.Name, err)
	}
	for _, id := range ids {
		name, err := people.Here.GroupName(ctx, id)
		if err != nil && !errors.Is(err, people.ErrUnknown) {
			return fmt.Errorf("groups of %s: %w", l.Name, err)
		}
		if err == nil {
			l.Groups = append(l.Groups, name)
		}
	}
	return nil
}
