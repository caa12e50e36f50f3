package dev

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/controller/store/pgserver"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/node/proc"
	"gangd/pkg/node/shim"
)

// killPatience is for one member's processes after KILL, which takes milliseconds unless
// one is stuck in the kernel.
const killPatience = 5 * time.Second

// Stop ends the daemons recorded in dir, then every shim and rank of its nodes. It is
// fine when nothing runs; where there never was a cluster is an error, as somebody means another directory.
func Stop(dir string) error {
	l, err := resolve(dir, "")
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(l.dir, "run")); errors.Is(err, fs.ErrNotExist) {
		return l.none()
	}
	lock, err := l.lock()
	if err != nil {
		return err
	}
	defer lock.Close()
	return l.stop()
}

// stop ends daemons first: a live gnoded would take the end of its shims for failures
// and report them.
func (l layout) stop() error {
	names := l.list("run", ".pid")
	errs := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() { errs[i] = l.stopDaemon(name) })
	}
	all.Wait()
	return errors.Join(append(errs, l.killMembers(), l.joinAll(), pgserver.StopIn(context.Background(), l.database()))...)
}

func (l layout) stopDaemon(name string) error {
	if r, ok := l.record(name); ok {
		if err := r.end(stopPatience); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return l.forget(name)
}

// killMembers ends shims, so that nobody restarts or records anything, then what each of
// their containments holds.
func (l layout) killMembers() error {
	if err := l.killShims(); err != nil {
		return err
	}
	specs, _ := filepath.Glob(filepath.Join(l.state("*"), "m", "*", shim.SpecFile)) // well formed
	var errs []error
	for _, path := range specs {
		s, err := shim.ReadSpec(filepath.Dir(path))
		if errors.Is(err, fs.ErrNotExist) || err != nil && !shim.Begun(filepath.Dir(path)) {
			continue // written before a shim takes it on: no process was
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w: start the cluster again, its node finds what runs there", filepath.Dir(path), err))
			continue
		}
		if err := proc.KillContainment(s.Place(), killPatience); err != nil {
			errs = append(errs, fmt.Errorf("job %d on %s: %w", s.Job, s.Node, err))
			continue
		}
		l.tidy(filepath.Dir(path))
	}
	l.leaveMemory()
	return errors.Join(errs...)
}

// tidy removes the directory of a member that was killed: to the next gnoded it is gone,
// which is the truth. One with a result stays until that has been reported.
func (l layout) tidy(dir string) {
	if st, err := shim.ReadState(dir); err != nil || st.Phase != api.PhaseStopped {
		_ = os.RemoveAll(dir)
	}
}

// leaveMemory removes what gnoded keeps on a file system in memory, where nobody would
// look for it once the cluster's directory is gone; it stays while it holds results.
func (l layout) leaveMemory() {
	links, _ := filepath.Glob(filepath.Join(l.state("*"), "m")) // well formed
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && os.Remove(target) == nil {
			_ = os.Remove(target + ".of") // gnoded's note on whose it is
			_ = os.Remove(link)
		}
	}
}

// killShims finds shims by their argument, the directory of a member or of the node they
// are kept for, which lies in ours.
func (l layout) killShims() error {
	pids, err := proc.All()
	if err != nil {
		return err
	}
	for _, pid := range pids {
		if !l.isShim(pid) {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // ended meanwhile
		}
		if l.isShim(pid) { // again: the pid may have changed hands before the open
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // ended meanwhile is as good
			if !waitPidfd(fd, killPatience) {
				err = fmt.Errorf("shim %d outlives KILL", pid)
			}
		}
		_ = unix.Close(fd)
		if err != nil {
			return err
		}
	}
	return nil
}

func (l layout) isShim(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return false
	}
	args := strings.Split(string(b), "\x00")
	if len(args) < 2 || filepath.Base(args[0]) != "gshim" {
		return false
	}
	dir := args[1]
	if dir == "spare" && len(args) > 2 {
		dir = args[2] + "/"
	}
	return strings.HasPrefix(dir, filepath.Join(l.dir, "state")+"/")
}

func (l layout) none() error {
	return api.Errorf(api.CodeNotFound, "no cluster of gangd dev in %s; start one: gangd dev --detach --dir=%s", l.dir, Quote(l.dir))
}

// Restart starts one daemon of a cluster again, after it ended it where it still runs,
// and returns when it is up. Ranks are not touched.
func Restart(ctx context.Context, dir, bin, name string) error {
	l, err := resolve(dir, "")
	if err != nil {
		return err
	}
	if _, err := os.Stat(l.config(name)); err != nil || strings.ContainsRune(name, '/') {
		known := strings.Join(l.names(), " ")
		if known == "" {
			return l.none()
		}
		return api.Errorf(api.CodeNotFound, "no daemon %q in %s; there are: %s", name, l.dir, known)
	}
	lock, err := l.lock()
	if err != nil {
		return err
	}
	defer lock.Close()
	if r, ok := l.record(name); ok {
		if err := r.end(stopPatience); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	since := time.Now()
	d, err := l.spawn(bin, name)
	if err != nil {
		return err
	}
	return l.awaitOne(ctx, bin, d, since)
}

// awaitOne waits for the daemon alone. A node's old session may still count as up, so it
// must have been heard of since its start; where gangd itself is down, a node that runs
// is all that can be had.
func (l layout) awaitOne(ctx context.Context, bin string, d *daemon, since time.Time) error {
	var nodes []string
	at := l.socket()
	if isController(d.name) {
		at = l.socketOf(d.name) // the others may be down
	} else {
		if r, ok := l.record(controller); !ok || !r.alive() {
			return nil
		}
		nodes = []string{d.name}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startPatience, fmt.Errorf("not up after %v", when.Words(startPatience)))
	defer cancel()
	return l.await(ctx, bin, at, []*daemon{d}, func(r *api.NodesReply) []string { return missing(r, nodes, since) })
}
