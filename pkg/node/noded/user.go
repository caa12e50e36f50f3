package noded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/wire/people"
)

// account is a user as this machine knows it.
type account struct {
	name     string
	uid, gid uint32
	groups   []uint32
	home     string
}

// accounts looks users up, and decides whether they may run here.
type accounts struct {
	single bool
	minUID uint32
	allow  []string                                 // groups
	find   func(name string, groups bool) foundUser // for tests; nil: in this machine's database
	mu     sync.Mutex
	asked  map[string]*question
}

// question is what the user database is asked about one user: a database over the network takes
// milliseconds, and jobs of one user arrive by the hundred.
type question struct {
	mu     sync.Mutex // held while it is asked
	began  time.Time
	answer foundUser
}

type foundUser struct {
	account *account
	groups  []string // names of those that have one, where they were asked for
	err     error
}

// resolve finds the user of a member. The node's own answer counts: a controller can't make
// it run something as anyone whom the name does not mean here.
func (a *accounts) resolve(name string, uid, gid uint32) (*account, *api.Refusal) {
	if a.single {
		if own := uint32(os.Getuid()); uid != own {
			return nil, refuse(api.BlameUser, "this node runs everything as uid %d (single-user), the job is of %s (uid %d)", own, name, uid)
		}
		home, _ := os.UserHomeDir()
		return &account{name: name, uid: uid, gid: gid, home: home}, nil
	}
	k := a.lookup(name)
	switch {
	case errors.Is(k.err, people.ErrUnknown):
		return nil, refuse(api.BlameSite, "user %s is not known on this node", name)
	case k.err != nil:
		return nil, refuse(api.BlameSite, "user %s: %v", name, k.err) // its directory service is down, say
	case k.account.uid != uid:
		return nil, refuse(api.BlameUser, "user %s is uid %d here and uid %d at the controller", name, k.account.uid, uid)
	case uid < a.minUID:
		return nil, refuse(api.BlameUser, "user %s: uid %d is below %d, the least that runs jobs on this node", name, uid, a.minUID)
	case len(a.allow) > 0 && !slices.ContainsFunc(k.groups, func(g string) bool { return slices.Contains(a.allow, g) }):
		return nil, refuse(api.BlameUser, "user %s is in none of the groups %v that may use this node", name, a.allow)
	}
	return k.account, nil
}

// lookup gives an answer that was begun after the call: an older one may be of a user whom the
// database has lost since. Calls that come together share one.
func (a *accounts) lookup(name string) foundUser {
	came := time.Now()
	a.mu.Lock()
	q := a.asked[name]
	if q == nil {
		if a.asked == nil {
			a.asked = map[string]*question{}
		}
		q = &question{}
		a.asked[name] = q
	}
	a.mu.Unlock() // one user's slow directory must not hold up another's start
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.began.After(came) {
		return q.answer
	}
	find := a.find
	if find == nil {
		find = lookupAccount
	}
	q.began = time.Now()
	q.answer = find(name, len(a.allow) > 0)
	return q.answer
}

// lookupAccount asks this machine's files and directory. Who has no name at the controller is looked up by his number.
func lookupAccount(name string, groups bool) foundUser {
	ctx := context.Background() // each look-up has a deadline of its own
	u, err := people.Here.Find(ctx, name)
	if err != nil {
		return foundUser{err: err}
	}
	acc := &account{name: u.Name, uid: u.UID, gid: u.GID, home: u.Home}
	if acc.groups, err = people.Here.Groups(ctx, u); err != nil {
		return foundUser{err: err}
	}
	var names []string
	for i := 0; groups && i < len(acc.groups); i++ {
		g, err := people.Here.GroupName(ctx, acc.groups[i])
		if err != nil && !errors.Is(err, people.ErrUnknown) {
			return foundUser{err: err}
		}
		if err == nil { // a gid without a name is in no group that could be allowed
			names = append(names, g)
		}
	}
	return foundUser{account: acc, groups: names}
}

// groupNumber is the number of a group as this machine's files and directory have it.
func groupNumber(name string) (gid uint32, ok bool) {
	gid, err := people.Here.Group(context.Background(), name)
	return gid, err == nil
}

// userGroups are those of the groups that may use this node, by which their users pass.
func (d *daemon) userGroups() (gids []uint32) {
	for _, name := range d.now().Groups {
		if gid, ok := groupNumber(name); ok {
			gids = append(gids, gid)
		}
	}
	return gids
}

func refuse(whose api.Blame, format string, args ...any) *api.Refusal {
	return &api.Refusal{Blame: whose, Text: fmt.Sprintf(format, args...)}
}

func nodeFault(format string, args ...any) *api.Refusal {
	return refuse(api.BlameNode, format, args...)
}
