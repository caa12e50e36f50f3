package noded

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/checksum"
	"gangd/pkg/core/rankenv"
	"gangd/pkg/node/gpu/simgpu"
	"gangd/pkg/node/proc"
	"gangd/pkg/node/shim"
)

var places = flag.Int("damage.places", 20, "random places of a state directory that are damaged, each alone")

func TestJudge(t *testing.T) {
	spec := &shim.Spec{}
	in := func(p api.MemberPhase, boot string) *shim.State {
		return &shim.State{MemberActual: api.MemberActual{Phase: p}, BootID: boot}
	}
	for name, c := range map[string]struct {
		r            record
		alive, begun bool
		want         remains
	}{
		"whole":                        {record{spec: spec, state: in(api.PhaseRunning, "b")}, false, true, remainsMember},
		"whole, of another boot":       {record{spec: spec, state: in(api.PhaseRunning, "a")}, false, true, remainsNothing},
		"result of another boot":       {record{spec: spec, state: in(api.PhaseStopped, "a")}, false, true, remainsMember},
		"just prepared":                {record{spec: spec}, false, false, remainsMember},
		"spec cut as gnoded died":      {record{badSpec: "cut"}, false, false, remainsNothing},
		"nothing in it":                {record{}, false, false, remainsNothing},
		"spec damaged, it lives":       {record{badSpec: "x", state: in(api.PhaseRunning, "b")}, true, true, remainsMember},
		"spec damaged, it ran":         {record{badSpec: "x", state: in(api.PhaseRunning, "b")}, false, true, remainsName},
		"spec damaged, its result":     {record{badSpec: "x", state: in(api.PhaseStopped, "b")}, false, true, remainsMember},
		"spec damaged, no state":       {record{badSpec: "x"}, false, true, remainsName},
		"state damaged, it lives":      {record{spec: spec, badState: "x"}, true, true, remainsMember},
		"state damaged":                {record{spec: spec, badState: "x"}, false, true, remainsName},
		"all damaged":                  {record{badSpec: "x", badState: "x"}, false, false, remainsName},
		"spec removed":                 {record{state: in(api.PhaseReady, "b")}, false, true, remainsName},
		"all removed but its socket":   {record{}, false, true, remainsName},
		"of another boot and it lives": {record{spec: spec}, true, true, remainsMember},
	} {
		if got := judge(&c.r, c.alive, c.begun, "b", "b"); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if got := judge(&record{spec: spec}, true, true, "a", "b"); got != remainsMember {
		t.Errorf("what lives counts as of another boot: %d", got)
	}
}

// TestSwapped: the record of one member is not believed of another.
func TestSwapped(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, of any) {
		b, err := json.Marshal(of)
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, name, checksum.Add(b, name))
	}
	k := api.MemberKey{Job: 7, Epoch: 2}
	put(shim.SpecFile, shim.Spec{MemberKey: k})
	put(shim.StateFile, shim.State{MemberActual: api.MemberActual{MemberKey: api.MemberKey{Job: 8, Epoch: 1}}})
	r := readMember(dir, k)
	if want := "state.json is that of job 8 epoch 1"; r.spec == nil || r.state != nil || r.damaged() != want {
		t.Errorf("%+v: %q, want %q", r, r.damaged(), want)
	}
	b, _ := os.ReadFile(filepath.Join(dir, shim.SpecFile))
	write(t, dir, shim.StateFile, string(b))
	if r := readMember(dir, k); r.state != nil || !strings.HasPrefix(r.damaged(), "state.json: damaged: ") {
		t.Errorf("a spec passes for a state: %q", r.damaged())
	}
}

// wreck is a state directory whose daemon is dead, with four members: 1 runs and its shim is dead too, 2 runs,
// 3 has stopped with 7, 4 is ready. Three of them have a card each, and a fourth card is held.
type wreck struct {
	steering string // of the cards
	t        *testing.T
	dir      string
	id       string
	procs    map[int64]*exec.Cmd
	shims    map[int64]net.Listener
}

func newWreck(t *testing.T) *wreck {
	w := &wreck{t: t, dir: t.TempDir(), procs: map[int64]*exec.Cmd{}, shims: map[int64]net.Listener{}}
	s, err := openState(w.dir)
	if err == nil {
		err = s.sawLease(10 * time.Minute)
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = s.sawLineage(41, "proof")
	s.keepHeldCards(map[string]leftCard{simCard(3): {After: api.MemberKey{Job: 9, Epoch: 1}, Base: 5 << 20}})
	w.id = s.id
	s.close()
	for job, phase := range map[int64]api.MemberPhase{1: api.PhaseRunning, 2: api.PhaseRunning, 3: api.PhaseStopped, 4: api.PhaseReady} {
		w.member(job, phase)
	}
	// Cards 0 and 1 are in use by the processes of 1 and 2, card 2 is that of 3 and empty, and on card 3
	// job 9 left what no process shows.
	w.steering = filepath.Join(t.TempDir(), "n1.json")
	write(t, filepath.Dir(w.steering), "n1.json", fmt.Sprintf(`{"0": {"processes": [{"pid": %d, "used": "20G"}]}, "1": {"processes": [{"pid": %d, "used": "20G"}]}, "3": {"used": "30G"}}`,
		w.procs[1].Process.Pid, w.procs[2].Process.Pid))
	t.Cleanup(func() {
		for _, l := range w.shims {
			_ = l.Close()
		}
		for job := range w.procs {
			w.kill(job)
		}
	})
	return w
}

func simCard(n int64) string { return fmt.Sprint("GPU-sim-n1-", n) }

func (w *wreck) memberDir(job int64) string {
	return filepath.Join(w.dir, membersDir, fmt.Sprintf("%d.1", job))
}

func (w *wreck) member(job int64, phase api.MemberPhase) {
	k, dir := api.MemberKey{Job: job, Epoch: 1}, w.memberDir(job)
	marker := fmt.Sprintf("%s=%s.%d.1.0000000%d", rankenv.MarkerName, w.id, job, job)
	spec := shim.Spec{MemberKey: k, Node: "n1", Dir: dir, Containment: proc.Group, Marker: marker, Grace: time.Minute, Ranks: []shim.RankSpec{{Rank: 0}}}
	if job != 4 {
		spec.Cards = []shim.Card{{UUID: simCard(job - 1), VRAMBytes: 80 << 30, Base: -1}}
	}
	state := shim.State{MemberActual: api.MemberActual{MemberKey: k, Phase: phase}, BootID: proc.BootID()}
	if phase == api.PhaseRunning {
		cmd := exec.Command("sleep", "1000")
		cmd.Env = []string{marker}
		if err := cmd.Start(); err != nil {
			w.t.Fatal(err)
		}
		shows(w.t, cmd, "environ")
		w.procs[job] = cmd
		state.Ranks = []api.RankActual{{Rank: 0, PID: cmd.Process.Pid}}
	}
	if phase == api.PhaseStopped {
		state.Ranks = []api.RankActual{{Rank: 0, PID: 1, Exited: true, ExitCode: 7}}
	}
	for name, of := range map[string]any{shim.SpecFile: spec, shim.StateFile: state} {
		b, err := json.Marshal(of)
		if err != nil {
			w.t.Fatal(err)
		}
		write(w.t, dir, name, checksum.Add(b, name))
	}
	if job == 1 || job == 3 {
		write(w.t, dir, shim.SocketFile, "") // nobody listens
		return
	}
	l, err := net.Listen("unix", filepath.Join(dir, shim.SocketFile))
	if err != nil {
		w.t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	w.shims[job] = l
	go serveShim(l, &state)
}

// serveShim says what the member is to whoever asks, and obeys nothing.
func serveShim(l net.Listener, s *shim.State) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			_ = json.NewEncoder(c).Encode(shim.Answer{State: s})
			for in := bufio.NewScanner(c); in.Scan(); {
			}
		}()
	}
}

func (w *wreck) lives(job int64) bool {
	cmd := w.procs[job]
	return cmd != nil && alive(cmd.Process.Pid)
}

func (w *wreck) kill(job int64) {
	_ = w.procs[job].Process.Signal(syscall.SIGKILL)
	_ = w.procs[job].Wait()
}

// restart is a daemon on the directory up to its hello.
func (w *wreck) restart(then func(d *daemon, hello map[int64]api.MemberActual)) {
	w.t.Helper()
	state, err := openState(w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	defer state.close()
	d := newDaemon(Options{Name: "n1", StateDir: w.dir, SingleUser: true, Log: slog.New(slog.DiscardHandler)}, state)
	ctx, stop := context.WithCancel(context.Background())
	d.ctx, d.cgroups.Kind = ctx, proc.Group
	d.watch = newWatcher(d.notes.putWatch, d.stacks)
	cards, err := simgpu.New("4x80G", "n1", w.steering)
	if err != nil {
		w.t.Fatal(err)
	}
	defer cards.Close()
	d.cards = newCards(cards, newOwners(d.memberOf), d.log)
	d.cards.inventory(ctx)
	d.cards.restore(state)
	defer d.running.Wait()
	defer stop()
	if err := d.adopt(ctx); err != nil {
		w.t.Fatal(err)
	}
	hello := map[int64]api.MemberActual{}
	for _, a := range d.board.All() {
		hello[a.Job] = a
	}
	then(d, hello)
}

// blow is one damage, and what it says of itself.
type blow struct {
	what string
	gone int64 // the member whose directory was removed whole; -1: of all; 0: none
}

// strike damages one place: a file is removed, cut, has a bit flipped, or that of another
// member in its place; or the directory of one member, or of all, is removed.
func (w *wreck) strike(r *rand.Rand) blow {
	names := []string{idFile, idCopyFile, bootFile, leaseFile, cardsFile, lineageFile}
	for job := range 4 {
		for _, f := range []string{shim.SpecFile, shim.StateFile, shim.SocketFile} {
			names = append(names, filepath.Join(membersDir, fmt.Sprintf("%d.1", job+1), f))
		}
	}
	name := names[r.IntN(len(names))]
	path := filepath.Join(w.dir, name)
	switch kind := r.IntN(12); {
	case kind == 0:
		job := r.Int64N(4) + 1
		_ = os.RemoveAll(w.memberDir(job))
		return blow{fmt.Sprintf("the directory of %d.1 removed", job), job}
	case kind == 1 && r.IntN(4) == 0:
		to, _ := filepath.EvalSymlinks(filepath.Join(w.dir, membersDir))
		_ = os.RemoveAll(to)
		return blow{"all members' directories removed", -1}
	case kind <= 3 || filepath.Base(name) == shim.SocketFile:
		_ = os.Remove(path)
		return blow{what: name + " removed"}
	}
	b, err := os.ReadFile(path)
	if err != nil || len(b) == 0 {
		w.t.Fatal(name, err)
	}
	n := r.IntN(len(b))
	what := ""
	switch r.IntN(5) {
	case 0:
		b, what = b[:n], fmt.Sprintf("%s cut to %d", name, n)
	case 1:
		other := filepath.Join(w.memberDir(r.Int64N(4)+1), filepath.Base(name))
		if o, err := os.ReadFile(other); err == nil {
			b, what = o, fmt.Sprintf("%s is now %s", name, other)
			break
		}
		fallthrough
	default:
		bit := r.IntN(8)
		b[n] ^= 1 << bit
		what = fmt.Sprintf("%s: bit %d of byte %d", name, bit, n)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		w.t.Fatal(err)
	}
	return blow{what: what}
}

// check holds a hello against what is true: what lives is there and not over, what ended is
// there with its result, and where one of both is missing, that is said.
func (w *wreck) check(d *daemon, hello map[int64]api.MemberActual, lived []int64, b blow) {
	w.t.Helper()
	bad := func(format string, args ...any) {
		w.t.Helper()
		w.t.Errorf("%s: %s (hello %+v)", b.what, fmt.Sprintf(format, args...), hello)
	}
	if d.state.id != w.id {
		bad("the id is %s, was %s", d.state.id, w.id)
	}
	if l := d.state.lease; l != 10*time.Minute && l != -1 {
		bad("the lease is %v", l)
	}
	if err := d.cards.read(context.Background(), patience); err != nil {
		bad("%v", err)
	}
	for card, holds := range []func() bool{func() bool { return w.lives(1) }, func() bool { return w.lives(2) }, nil, func() bool { return true }} {
		if given := w.givesOn(d, int64(card)); given && holds != nil && holds() {
			bad("card %d is given on while it is held", card)
		}
	}
	for _, job := range lived {
		a, listed := hello[job]
		switch {
		case w.lives(job) && (!listed || Ended(a.Phase)):
			bad("job %d lives", job)
		case !listed && b.gone != job && b.gone != -1:
			bad("job %d is not told", job)
		}
	}
	three, listed := hello[3]
	switch whole := listed && three.Phase == api.PhaseStopped && len(three.Ranks) == 1 && three.Ranks[0].ExitCode == 7; {
	case whole, !listed && (b.gone == 3 || b.gone == -1): // missing in the hello is told by the controller
	case listed && three.Phase == api.PhaseLost && three.Found != "":
	case listed && three.Phase == api.PhasePreparing: // its shim is looked for
	default:
		bad("the result of job 3 is lost without a word")
	}
	if four, listed := hello[4]; (!listed || Ended(four.Phase)) && b.gone != 4 && b.gone != -1 && !strings.HasSuffix(b.what, "4.1/s removed") {
		bad("job 4 is ready and not told")
	}
}

// givesOn: another gang would get a card.
func (w *wreck) givesOn(d *daemon, card int64) bool {
	d.cards.mu.Lock()
	defer d.cards.mu.Unlock()
	why, _ := d.cards.fit(api.MemberKey{Job: 77, Epoch: 1}, []shim.Card{{UUID: simCard(card), VRAMBytes: 80 << 30}})
	return why == ""
}

// TestHeldWithoutItsRecord: a card whose record is gone or damaged is not given on while somebody's VRAM is
// in use on it, and heals when it is given back; one that has next to nothing in use is given on.
func TestHeldWithoutItsRecord(t *testing.T) {
	for what, damage := range map[string]func(path string){
		"gone":  func(path string) { _ = os.Remove(path) },
		"cut":   func(path string) { _ = os.Truncate(path, 20) },
		"empty": func(path string) { _ = os.Truncate(path, 0) },
	} {
		w := newWreck(t)
		damage(filepath.Join(w.dir, cardsFile))
		_ = os.RemoveAll(w.memberDir(3))
		w.restart(func(d *daemon, _ map[int64]api.MemberActual) {
			look := func() (two, three bool) {
				t.Helper()
				if err := d.cards.read(context.Background(), patience); err != nil {
					t.Fatal(err)
				}
				return w.givesOn(d, 2), w.givesOn(d, 3)
			}
			if two, three := look(); !two || three {
				t.Errorf("%s: an empty card is given on: %t, one with 30G in use: %t", what, two, three)
			}
			if len(d.state.lost) == 0 || !strings.HasPrefix(d.state.lost[0], "cards: ") {
				t.Errorf("%s: said is %q", what, d.state.lost)
			}
			write(t, filepath.Dir(w.steering), "n1.json", "{}")
			for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
				if _, three := look(); three {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("%s: it is not given on when nothing is in use on it", what)
				}
			}
		})
	}
}

// TestDamage damages a state directory at random places, one at a time, and starts a daemon on it.
func TestDamage(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for n := range *places {
		w := newWreck(t)
		b := w.strike(r)
		lived := []int64{1, 2}
		w.restart(func(d *daemon, hello map[int64]api.MemberActual) { w.check(d, hello, lived, b) })
		if t.Failed() {
			t.Fatalf("place %d of seed %d", n, seed)
		}
		for _, l := range w.shims {
			_ = l.Close()
		}
		for job := range w.procs {
			w.kill(job)
		}
		clear(w.procs)
	}
}

// TestUnreadMemberEnds: what can't be believed is named, ended where its shim is dead, and only then over.
func TestUnreadMemberEnds(t *testing.T) {
	w := newWreck(t)
	flip := func(job int64, name string) {
		path := filepath.Join(w.memberDir(job), name)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/2] ^= 1
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	flip(1, shim.SpecFile)
	flip(2, shim.SpecFile)
	flip(3, shim.StateFile)
	w.restart(func(d *daemon, hello map[int64]api.MemberActual) {
		for job, want := range map[int64]api.MemberPhase{1: api.PhaseRunning, 2: api.PhaseRunning, 3: api.PhaseLost, 4: api.PhaseReady} {
			if a := hello[job]; a.Phase != want || (a.Found == "") != (job == 4) {
				t.Errorf("job %d: %+v, want %s", job, a, want)
			}
		}
		for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
			d.board.mu.Lock()
			a := d.board.members[api.MemberKey{Job: 1, Epoch: 1}]
			d.board.mu.Unlock()
			if a.Phase == api.PhaseLost && a.Found != "" {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("job 1: %+v", a)
			}
		}
		// It leaves its group a moment before it is no process any more.
		for end := time.Now().Add(patience); w.lives(1); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("job 1 is said to be lost, and lives")
			}
		}
		if !w.lives(2) {
			t.Error("job 2 was ended although its shim is there")
		}
	})
}
