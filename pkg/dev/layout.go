package dev

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gangd/pkg/node/shim"
)

const (
	// controller is the name of gangd among the daemons.
	controller = "gangd"
	// maxSocket is what a unix socket's path may have.
	maxSocket = 107
	// longMember is a member's directory as long as one gets: ten digits of job, four of epoch.
	longMember = "1234567890.1234"
)

// layout knows where things are in a cluster's directory.
type layout struct{ dir string }

func (l layout) config(name string) string { return filepath.Join(l.dir, "etc", name+".toml") }
func (l layout) pid(name string) string    { return filepath.Join(l.dir, "run", name+".pid") }
func (l layout) id(name string) string     { return filepath.Join(l.dir, "run", name+".id") }
func (l layout) notify(name string) string { return filepath.Join(l.dir, "run", name+".notify") }
func (l layout) log(name string) string    { return filepath.Join(l.dir, "log", name+".log") }
func (l layout) sim(name string) string    { return filepath.Join(l.dir, "sim", name+".json") }
func (l layout) state(name string) string  { return filepath.Join(l.dir, "state", name) }
func (l layout) socket() string            { return l.socketOf(controller) }
func (l layout) database() string          { return filepath.Join(l.dir, "postgres") }

// socketOf is that of one of several controllers.
func (l layout) socketOf(name string) string { return filepath.Join(l.dir, "run", name+".sock") }

// isController says whether a daemon is one.
func isController(name string) bool { return strings.HasPrefix(name, controller) }

// controllerName is that of the i-th controller, from 1 on.
func controllerName(i int) string {
	if i == 1 {
		return controller
	}
	return controller + strconv.Itoa(i)
}

// resolve gives the absolute directory, which must leave room for the sockets of the
// node with the longest name.
func resolve(dir, longest string) (layout, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return layout{}, err
	}
	l := layout{abs}
	socket := filepath.Join(l.state(longest), "m", longMember, shim.SocketFile)
	if over := len(socket) - maxSocket; over > 0 {
		return layout{}, fmt.Errorf("the directory's path is too long: %s has %d bytes, and with %d nodes at most %d leave room for unix "+
			"sockets, which end at %d; choose a shorter one, such as --dir=/tmp/gang",
			abs, len(abs), number(longest), len(abs)-over, maxSocket)
	}
	return l, nil
}

func number(node string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(node, "n"))
	return n
}

// make makes the directories. One with anything else in it is refused: what a start
// writes could replace something of the person's.
func (l layout) make() error {
	entries, err := os.ReadDir(l.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := os.Stat(l.config(controller)); err != nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty and not a cluster of gangd dev; give an empty directory or none", l.dir)
	}
	if err := os.MkdirAll(l.dir, 0o755); err != nil {
		return err
	}
	for _, d := range []string{"etc", "run", "log", "sim", "state"} {
		if err := os.MkdirAll(filepath.Join(l.dir, d), 0o700); err != nil {
			return err
		}
	}
	return nil
}

// lock keeps other gangd dev out of the directory until it is closed; the kernel closes
// it with the process. Daemons do not inherit it.
func (l layout) lock() (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(l.dir, "run", ".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("another gangd dev is starting or stopping daemons in %s; try again when it is done", l.dir)
		}
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return f, nil
}

// names lists the daemons that have a configuration: controllers, then nodes by number.
func (l layout) names() []string { return l.list("etc", ".toml") }

func (l layout) list(dir, suffix string) []string {
	paths, _ := filepath.Glob(filepath.Join(l.dir, dir, "*"+suffix)) // the pattern is well formed
	var out []string
	for _, p := range paths {
		out = append(out, strings.TrimSuffix(filepath.Base(p), suffix))
	}
	slices.SortFunc(out, func(a, b string) int {
		if isController(a) || isController(b) {
			return strings.Compare(a, b) // "gangd", "gangd2" are before "n1"
		}
		return number(a) - number(b)
	})
	return out
}
