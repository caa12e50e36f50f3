package noded

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/node/proc"
	"gangd/pkg/node/shim"
	"gangd/pkg/wire/session"
)

// Hello implements [session.Agent].
func (d *daemon) Hello() *api.Hello {
	d.cards.restart()
	d.mu.Lock()
	d.loadTold = time.Time{} // a new session knows nothing
	d.mu.Unlock()
	d.notes.again()
	cpus := cmp.Or(d.opts.CPUs, d.cpus.count(), runtime.NumCPU())
	members := d.board.All()
	health, rules := d.board.healthNow(), told(d.now())
	d.cards.refresh(members)
	told, load := d.state.lineage.Load(), d.Load()
	return &api.Hello{Node: d.opts.Name, StateID: d.state.id, Version: d.opts.Version, BootID: d.state.boot, Address: d.opts.Address,
		Containment: d.cgroups.Kind, CPUs: cpus, Shape: d.cpus.shape(cpus), MemoryBytes: d.memory(), TmpBytes: d.tmp, TmpEach: d.tmpEach,
		Features: d.features(), Cards: d.cards.list(), CardsUnread: d.cards.unanswered(), Devices: d.devices, Containers: d.containers(),
		Limits: d.limits(), Reboots: rules.Reboots, Reboot: d.board.RebootNow(), Health: health, Load: load,
		Opens:       rules.Opens,
		LineageSeen: told.lineage, RunSeen: told.run, LineageProof: told.proof, Members: members}
}

// memory is what this node offers, in bytes.
func (d *daemon) memory() int64 {
	if d.opts.Memory > 0 {
		return d.opts.Memory
	}
	return proc.MemTotal()
}

// Welcome implements [session.Agent].
func (d *daemon) Welcome(w *api.Welcome) {
	d.state.run = w.Run
	d.Lineage(w.Lineage, w.LineageProof)
	if err := d.state.sawLease(w.Settings.Lease); err != nil {
		d.log.Warn("lease not kept", "err", err)
	}
	d.mu.Lock()
	d.settings = w.Settings
	d.mu.Unlock()
	d.log.Info("session opened", "controller", w.Name, "term", w.Term, "version", w.Version)
}

// Settings implements [session.Agent].
func (d *daemon) Settings(s *api.Settings) {
	d.mu.Lock()
	d.settings = *s
	d.mu.Unlock()
	d.log.Info("the site has other settings")
}

// Lineage implements [session.Agent].
func (d *daemon) Lineage(n uint64, proof string) {
	if err := d.state.sawLineage(n, proof); err != nil {
		d.log.Warn("lineage not kept", "err", err)
	}
}

// Down implements [session.Agent]. An order to start counts only in the session in which it
// came: what a daemon that was cut off (or frozen) still holds of one must not be carried out
// because there is contact again, before the controller has said anew what it wants.
func (d *daemon) Down(error) {
	for _, m := range d.all() {
		m.set(func(w *memberOrders) {
			w.Gate = nil
		})
	}
}

// Keep implements [session.Agent]. None of several controllers leads before this node has kept it: so the node
// has what it needs to follow it by then.
func (d *daemon) Keep(k session.Kept) error {
	d.enrol(d.ctx, k)
	return d.state.keepControllers(k)
}

// Report implements [session.Agent].
func (d *daemon) Report() *api.Actual {
	a := d.board.Report()
	if a != nil {
		d.cards.refresh(a.Members)
	}
	return a
}

// Samples implements [session.Agent].
func (d *daemon) Samples() []api.CardSample { return d.cards.news() }

// loadEvery is how often the controller is told how busy the node is.
const loadEvery = 30 * time.Second

// Load implements [session.Agent].
func (d *daemon) Load() *api.NodeLoad {
	d.mu.Lock()
	due := time.Since(d.loadTold) >= loadEvery
	if due {
		d.loadTold = time.Now()
	}
	d.mu.Unlock()
	var i unix.Sysinfo_t
	if !due || unix.Sysinfo(&i) != nil {
		return nil
	}
	const unit = 1 << 16 // of the kernel's load
	// Where nodes share a machine its free memory may be more than one of them has.
	l := &api.NodeLoad{Hundredths: int(i.Loads[0] * 100 / unit), FreeBytes: min(int64(i.Freeram)*int64(i.Unit), d.memory())}
	if d.opts.Findings != nil {
		l.Findings = d.opts.Findings()
	}
	return l
}

// Notes implements [session.Agent].
func (d *daemon) Notes() []api.MemberNote { return d.notes.news() }

// Desired implements [session.Agent].
func (d *daemon) Desired(x *api.Desired) {
	TakeDesired(x, func(a *api.Assignment) { d.desire(a, x.Specs) }, d.forget, func() (keys []api.MemberKey) {
		for _, m := range d.all() {
			keys = append(keys, m.key)
		}
		return keys
	})
	d.board.Applied(x.Revision)
}

func (d *daemon) desire(a *api.Assignment, specs map[string]*api.Spec) {
	d.mu.Lock()
	m := d.lookup(a.MemberKey)
	if m == nil {
		m = d.newMember(a.MemberKey)
		m.want = memberOrders{Orders: Orders{Gate: a.Gate, Stop: a.Stop, Steps: a.Steps, Passed: a.Passed}}
		phase := FirstPhase(a)
		if phase == api.PhasePreparing {
			m.want.body, m.want.spec = a.Body, specs[a.Body.SpecHash].Unpacked()
		}
		m.begin(api.MemberActual{MemberKey: a.MemberKey, Phase: phase})
		d.mu.Unlock()
		return
	}
	d.mu.Unlock()
	m.set(func(w *memberOrders) { w.Gate, w.Stop, w.Steps, w.Passed = a.Gate, a.Stop, a.Steps, a.Passed })
	if a.Stop == nil { // a stop may be what the check was for: its stacks are wanted
		s := d.site()
		d.watch.ask(a.MemberKey, a.Check, &s)
	}
}

func (d *daemon) forget(k api.MemberKey) {
	if m := d.find(k); m != nil {
		m.set(func(w *memberOrders) { w.Forget = true })
		return
	}
	d.board.Drop(k) // said before, perhaps in a session that broke
}

// Signal implements [session.Agent].
func (d *daemon) Signal(ctx context.Context, o api.SignalOrder) (int, error) {
	m := d.find(o.MemberKey)
	if m == nil {
		return 0, api.Errorf(api.CodeNotFound, "job %d epoch %d has no member on node %s", o.Job, o.Epoch, d.opts.Name)
	}
	return m.signal(ctx, o)
}

// Stacks implements [session.Agent].
func (d *daemon) Stacks(ctx context.Context, k api.MemberKey) (*api.MemberStacks, error) {
	m := d.find(k)
	if m == nil {
		return nil, api.Errorf(api.CodeNotFound, "job %d epoch %d has no member on node %s", k.Job, k.Epoch, d.opts.Name)
	}
	return m.stacks(ctx)
}

// ResumeCard implements [session.Agent].
func (d *daemon) ResumeCard(ctx context.Context, uuid string) error {
	err := d.cards.resume(ctx, uuid)
	d.client.Wake()
	return err
}

// ReadLog implements [session.Agent]. The file is read in a process of its own that is the
// user, so that the kernel decides what may be read, and that can be killed when the file
// system hangs.
func (d *daemon) ReadLog(ctx context.Context, q api.LogRead, w io.Writer) error {
	c, refusal := d.asUser(ctx, q.User, q.UID, q.GID, "readlog", "--head", "--path="+q.Path, "--offset="+strconv.FormatInt(q.Offset, 10))
	if refusal != nil {
		return refusal
	}
	if q.Follow {
		c.Args = append(c.Args, "--follow")
	}
	var stderr bytes.Buffer
	c.Stdout, c.Stderr = &headReader{w: w}, &stderr
	err := c.Run()
	if err == nil || ctx.Err() != nil {
		return nil
	}
	return logError(err, strings.TrimSpace(stderr.String()), api.CodeConflict) // a device, say: the file's own matter
}

// AppendLog implements [session.Agent]: in a process of the user, as ReadLog.
func (d *daemon) AppendLog(ctx context.Context, a api.LogAppend) error {
	ctx, cancel := context.WithTimeout(ctx, appendTime)
	defer cancel()
	c, refusal := d.asUser(ctx, a.User, a.UID, a.GID, "appendlog", a.Path)
	if refusal != nil {
		return refusal
	}
	var stderr bytes.Buffer
	c.Stdin, c.Stderr = strings.NewReader(a.Text), &stderr
	err := c.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return api.Errorf(api.CodeUnavailable, "%s: nothing was written within %v: does its file server hang?", a.Path, when.Words(appendTime))
	}
	return logError(err, strings.TrimSpace(stderr.String()), api.CodeConflict)
}

// appendTime bounds how long a text may take to get behind a file.
const appendTime = 10 * time.Second

// asUser is gshim as a user, for something about a file of theirs.
func (d *daemon) asUser(ctx context.Context, user string, uid, gid uint32, args ...string) (*exec.Cmd, error) {
	acc, refusal := d.now().accounts.resolve(user, uid, gid)
	if refusal != nil {
		return nil, api.Errorf(api.CodePermission, "%s", refusal.Text)
	}
	c := exec.CommandContext(ctx, d.opts.Shim, args...)
	c.Dir, c.Env = "/", []string{}
	c.WaitDelay = time.Second // for copies of what it reads and writes, which end with ctx too
	if !d.opts.SingleUser {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: acc.uid, Gid: acc.gid, Groups: acc.groups}}
	}
	return c, nil
}

// headReader takes the offset off what the reading process writes, and passes the rest on.
type headReader struct {
	w    io.Writer
	head []byte
}

func (h *headReader) Write(p []byte) (int, error) {
	take := min(len(p), 8-len(h.head))
	if take > 0 {
		if h.head = append(h.head, p[:take]...); len(h.head) == 8 {
			session.Began(h.w, int64(binary.BigEndian.Uint64(h.head)))
		}
	}
	if take == len(p) {
		return take, nil
	}
	n, err := h.w.Write(p[take:])
	return take + n, err
}

// logError gives what such a process said, with the code that its exit status has among ours; failed is that of
// another failure.
func logError(err error, said string, failed api.Code) *api.Error {
	if said == "" {
		said = fmt.Sprintf("log: %v", err)
	}
	code, exit := api.CodeInternal, new(exec.ExitError)
	if errors.As(err, &exit) {
		switch exit.ExitCode() {
		case shim.ReadNoFile:
			code = api.CodeNotFound
		case shim.ReadDenied:
			code = api.CodePermission
		case shim.ReadFailed:
			code = failed
		}
	}
	return api.Errorf(code, "%s", said)
}
