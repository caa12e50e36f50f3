package people

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"gangd/pkg/core/cmdline/when"
)

// How long look-ups take and count.
const (
	Patience = 2 * time.Second  // of a child
	Fresh    = time.Minute      // an answer is not asked for again
	Unknown  = 10 * time.Second // that somebody is unknown is not
	Doubt    = 10 * time.Minute // the directory has to say of who was known that he is not any more
	Retry    = 2 * time.Second  // after no answer
)

const (
	maxChildren = 8       // at a time; those that can't be killed keep their place
	maxKept     = 1 << 14 // entries; anybody's uid makes one
	maxName     = 256     // bytes of a name
)

// ErrUnknown: this host and its directory know no such user or group.
var ErrUnknown = errors.New("not known on this host")

// NoAnswer is the error of a look-up that took too long: nobody can say who that is.
type NoAnswer struct {
	What string        // "user ada", "uid 50001"
	For  time.Duration // how long was waited
}

func (e *NoAnswer) Error() string {
	return fmt.Sprintf("this host's directory of users does not answer: who %s is could not be looked up within %s", e.What, when.Words(e.For))
}

// User is somebody as this host knows him.
type User struct {
	Name     string
	UID, GID uint32
	Gecos    string // how the person is called, and what else passwd has there
	Home     string
	Shell    string
}

// Directory looks people up. The zero value is of no use: see [Here] and [New].
type Directory struct {
	files  files
	getent string // the program; empty: there are files only

	patience, fresh, unknown, doubt, retry time.Duration

	now   func() time.Time
	slots chan struct{}

	mu   sync.Mutex
	kept map[key]*entry
}

// Here is this host's.
var Here = New("/etc")

// New is the directory of a host whose configuration is below etc.
func New(etc string) *Directory {
	return &Directory{files: files{etc: etc}, getent: "/usr/bin/getent", patience: Patience, fresh: Fresh, unknown: Unknown, doubt: Doubt,
		retry: Retry,
		now:   time.Now, slots: make(chan struct{}, maxChildren), kept: map[key]*entry{}}
}

// key is what is asked.
type key struct {
	kind kind
	text string // a name, or a number in digits
}

type kind uint8

const (
	byName kind = iota
	byUID
	groupsOf // of a user's name
	byGID
	byGroup
)

func (k key) String() string {
	return [...]string{"user ", "uid ", "the groups of user ", "group ", "group "}[k.kind] + k.text
}

// answer is what was found; err is [ErrUnknown], a [NoAnswer], or nil.
type answer struct {
	user   User
	groups []uint32
	name   string // of a group
	gid    uint32 // of one
	err    error
}

// entry is what is kept of a key.
type entry struct {
	has     answer
	at      time.Time     // when has was found
	missing time.Time     // since when the directory says that who was known is not; zero: it does not
	next    time.Time     // before, nobody is asked again
	asking  chan struct{} // closed at the end of the look-up that goes on; nil: none does
}

// ByUID is who has a number.
func (d *Directory) ByUID(ctx context.Context, uid uint32) (User, error) {
	if u, there := d.files.byUID(uid); there {
		return u, nil
	}
	a := d.ask(ctx, key{byUID, digits(uid)})
	return a.user, a.err
}

// Local is who has a number by this host's own files.
func (d *Directory) Local(uid uint32) (User, bool) { return d.files.byUID(uid) }

// ByName is who has a name. The name of the answer is the one that the number leads to, which
// may be written in another way.
func (d *Directory) ByName(ctx context.Context, name string) (User, error) {
	if u, there := d.files.byName(name); there {
		return u, nil
	}
	if !nameOK(name) {
		return User{}, ErrUnknown
	}
	a := d.ask(ctx, key{byName, name})
	return a.user, a.err
}

// Find is ByName, or ByUID of digits that are no name.
func (d *Directory) Find(ctx context.Context, name string) (User, error) {
	if uid, err := strconv.ParseUint(name, 10, 32); err == nil {
		return d.ByUID(ctx, uint32(uid))
	}
	return d.ByName(ctx, name)
}

// Name is a number's name, or its digits where nobody has it. The error is a [NoAnswer].
func (d *Directory) Name(ctx context.Context, uid uint32) (string, error) {
	u, err := d.ByUID(ctx, uid)
	switch {
	case err == nil:
		return u.Name, nil
	case errors.Is(err, ErrUnknown):
		return digits(uid), nil
	}
	return "", err
}

// Known is who has a number as far as that is known without asking anybody: it never waits. What is
// not, or not fresh, is looked up beside.
func (d *Directory) Known(uid uint32) (User, bool) {
	if u, there := d.files.byUID(uid); there {
		return u, true
	}
	k := key{byUID, digits(uid)}
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.entry(k)
	d.refresh(k, e)
	return e.has.user, !e.at.IsZero() && e.has.err == nil
}

// Groups are the numbers of all groups of a user, his own first.
func (d *Directory) Groups(ctx context.Context, u User) ([]uint32, error) {
	if d.files.only("group") || d.files.only("initgroups") {
		return d.files.groupsOf(u), nil
	}
	a := d.ask(ctx, key{groupsOf, u.Name})
	if errors.Is(a.err, ErrUnknown) {
		return d.files.groupsOf(u), nil
	}
	return firstOnce(u.GID, a.groups), a.err
}

// GroupName is the name of a group.
func (d *Directory) GroupName(ctx context.Context, gid uint32) (string, error) {
	if name, there := d.files.groupName(gid); there {
		return name, nil
	}
	a := d.ask(ctx, key{byGID, digits(gid)})
	return a.name, a.err
}

// Group is the number of a group.
func (d *Directory) Group(ctx context.Context, name string) (uint32, error) {
	if gid, there := d.files.gid(name); there {
		return gid, nil
	}
	if !nameOK(name) {
		return 0, ErrUnknown
	}
	a := d.ask(ctx, key{byGroup, name})
	return a.gid, a.err
}

// GroupText is a group's name for people to read, or its digits where nobody says how it is called.
func (d *Directory) GroupText(gid uint32) string {
	name, err := d.GroupName(context.Background(), gid)
	if err != nil {
		return digits(gid)
	}
	return name
}

// GroupsAmong are those of some groups, by name, that a user is of. One that nobody knows has no members.
func (d *Directory) GroupsAmong(ctx context.Context, uid uint32, among []string) ([]string, error) {
	u, err := d.ByUID(ctx, uid)
	if errors.Is(err, ErrUnknown) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	ids, err := d.Groups(ctx, u)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, name := range among {
		gid, err := d.Group(ctx, name)
		switch {
		case errors.Is(err, ErrUnknown):
		case err != nil:
			return nil, err
		case slices.Contains(ids, gid):
			out = append(out, name)
		}
	}
	return out, nil
}

func firstOnce(first uint32, list []uint32) []uint32 {
	out := []uint32{first}
	for _, g := range list {
		if g != first {
			out = append(out, g)
		}
	}
	return out
}

func digits(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// nameOK: a name may be somebody's. What is all digits is a number, and a dash would be an option of the child.
func nameOK(name string) bool {
	if name == "" || len(name) > maxName || name[0] == '-' || !utf8.ValidString(name) || strings.Trim(name, "0123456789") == "" {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool { return r == ':' || r == ',' || !unicode.IsPrint(r) })
}

// entry is a key's, made if there is none. d.mu is held.
func (d *Directory) entry(k key) *entry {
	e := d.kept[k]
	if e == nil {
		if len(d.kept) >= maxKept {
			for other, o := range d.kept { // any that nobody waits for
				if o.asking == nil {
					delete(d.kept, other)
					break
				}
			}
		}
		e = &entry{}
		d.kept[k] = e
	}
	return e
}

// refresh begins a look-up where one is due. d.mu is held.
func (d *Directory) refresh(k key, e *entry) {
	if e.asking == nil && !d.now().Before(e.next) {
		e.asking = make(chan struct{})
		go d.lookup(k, e)
	}
}

// ask answers from what is kept, else when the directory has answered, else with a [NoAnswer].
func (d *Directory) ask(ctx context.Context, k key) answer {
	d.mu.Lock()
	e := d.entry(k)
	d.refresh(k, e)
	asking := e.asking
	if !e.at.IsZero() && (e.has.err == nil || asking == nil) || asking == nil {
		a := e.has
		d.mu.Unlock()
		return a
	}
	d.mu.Unlock()
	began := d.now()
	late := time.NewTimer(d.patience)
	defer late.Stop()
	select {
	case <-asking:
		d.mu.Lock()
		defer d.mu.Unlock()
		return e.has
	case <-late.C:
	case <-ctx.Done():
	}
	return answer{err: &NoAnswer{What: k.String(), For: d.now().Sub(began).Round(100 * time.Millisecond)}}
}

// lookup asks and keeps what it hears.
func (d *Directory) lookup(k key, e *entry) {
	a := d.heard(k)
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	known := !e.at.IsZero() && e.has.err == nil
	var silent *NoAnswer
	switch {
	case a.err == nil:
		e.has, e.at, e.missing, e.next = a, now, time.Time{}, now.Add(d.fresh)
	case errors.As(a.err, &silent):
		e.next = now.Add(d.retry)
		if !known {
			e.has, e.at = a, now
		}
	case known && (e.missing.IsZero() || now.Sub(e.missing) < d.doubt):
		if e.missing.IsZero() {
			e.missing = now
		}
		e.next = now.Add(d.unknown)
	default:
		e.has, e.at, e.next = a, now, now.Add(d.unknown)
	}
	close(e.asking)
	e.asking = nil
}

// heard asks the directory, and a second time whether a name leads back to its number.
func (d *Directory) heard(k key) answer {
	if d.getent == "" || d.files.only(database(k.kind)) {
		return answer{err: ErrUnknown}
	}
	ctx, cancel := context.WithTimeout(context.Background(), d.patience)
	defer cancel()
	a := d.child(ctx, k)
	if a.err != nil || k.kind != byUID && k.kind != byName {
		return a
	}
	if back, there := d.files.byName(a.user.Name); there && back.UID != a.user.UID {
		return answer{err: ErrUnknown}
	}
	if local, there := d.files.byUID(a.user.UID); there { // a second name for somebody of the files, or a claim to be him
		if k.kind == byName {
			return answer{err: ErrUnknown}
		}
		return answer{user: local}
	}
	other := key{byUID, digits(a.user.UID)}
	if k.kind == byUID {
		other = key{byName, a.user.Name}
	}
	b := d.child(ctx, other)
	switch {
	case b.err != nil && !errors.Is(b.err, ErrUnknown):
		return b
	case b.err != nil || b.user.UID != a.user.UID:
		return answer{err: ErrUnknown}
	case k.kind == byName:
		return b // as the number is called
	}
	return a
}

func database(k kind) string {
	if k == byName || k == byUID {
		return "passwd"
	}
	return "group"
}

// Me is who runs this process, by name, or in digits.
func Me(ctx context.Context) string {
	name, err := Here.Name(ctx, uint32(os.Geteuid()))
	if err != nil {
		return digits(uint32(os.Geteuid()))
	}
	return name
}
