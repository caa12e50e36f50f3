package noded

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/node/gpu/simgpu"
	"gangd/pkg/node/shim"
)

// simulated is a set of simulated cards, and how they are steered.
type simulated struct {
	t    *testing.T
	c    *cards
	file string
}

func simulate(t *testing.T, text string) *simulated {
	t.Helper()
	s := &simulated{t: t, file: filepath.Join(t.TempDir(), "n1.json")}
	p, err := simgpu.New(text, "n1", s.file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	s.c = newCards(p, newOwners(func(pid int) (api.MemberKey, bool) { return hasMarker(pid, "t.") }), slog.New(slog.DiscardHandler))
	s.c.inventory(context.Background())
	return s
}

func (s *simulated) steer(text string) {
	s.t.Helper()
	if err := os.WriteFile(s.file+".new", []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(s.file+".new", s.file); err != nil {
		s.t.Fatal(err)
	}
}

func (s *simulated) read() {
	s.t.Helper()
	if err := s.c.read(context.Background(), patience); err != nil {
		s.t.Fatal(err)
	}
}

func (s *simulated) held(uuid string) string {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	return s.c.card[uuid].now.Held
}

// process starts one that lives until the test ends; a job that is not 0 is whose it is.
func process(t *testing.T, k api.MemberKey, rank int) *exec.Cmd {
	t.Helper()
	p := exec.Command("sleep", "1000")
	if k.Job != 0 {
		p.Env = []string{fmt.Sprintf("GANG_MEMBER=t.%d.%d.0", k.Job, k.Epoch), fmt.Sprintf("GANG_RANK=%d", rank)}
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(p) })
	if k.Job != 0 {
		shows(t, p, "environ")
	}
	return p
}

// shows waits until a file of a process that was just started can be read: Start returns when the kernel
// has closed what the program before had open, a moment before the arguments of the new one are there.
func shows(t *testing.T, p *exec.Cmd, file string) {
	t.Helper()
	for give := time.Now().Add(10 * time.Second); ; {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.Process.Pid, file))
		if len(b) > 0 {
			return
		}
		if time.Now().After(give) {
			t.Fatalf("process %d shows no %s: %v", p.Process.Pid, file, err)
		}
	}
}

func end(p *exec.Cmd) {
	_ = p.Process.Kill()
	_ = p.Wait()
}

func card0(vram int64, shared bool, ranks ...int) []shim.Card {
	return []shim.Card{{UUID: "GPU-sim-n1-0", VRAMBytes: vram << 30, Shared: shared, Ranks: ranks, Base: -1}}
}

func job(n int64) api.MemberKey { return api.MemberKey{Job: n, Epoch: 1} }

func (s *simulated) mustGive(k api.MemberKey, want []shim.Card) {
	s.t.Helper()
	if _, refusal := s.c.give(context.Background(), k, want); refusal != nil {
		s.t.Fatalf("refused: %s", refusal.Text)
	}
}

func (s *simulated) takeBack(k api.MemberKey, had []shim.Card) []api.CardSample {
	return s.c.takeBack(context.Background(), k, had, 0)
}

// TestHeldVRAMIsNamedAndHeals: what a member has not given back keeps its card from the next
// one, with pid and owner; it is back with the first reading that finds it empty.
func TestHeldVRAMIsNamedAndHeals(t *testing.T) {
	s := simulate(t, "2x80G")
	s.steer(`{"0":{"used":"1G"}}`) // before any gang: the base
	had := card0(40, false, 0)
	s.mustGive(job(7), had)
	if had[0].Base != 1<<30 {
		t.Errorf("base %d", had[0].Base)
	}
	left := process(t, job(7), 0)
	s.steer(fmt.Sprintf(`{"0":{"used":"31G","processes":[{"pid":%d,"used":"30G"}]}}`, left.Process.Pid))
	s.read()
	if h := s.held("GPU-sim-n1-0"); h != "" {
		t.Errorf("held while its member lives: %s", h)
	}
	seen := s.takeBack(job(7), had)
	me := newOwners(func(int) (api.MemberKey, bool) { return job(0), false }).of(left.Process.Pid).user
	want := fmt.Sprintf("30G of its VRAM not given back after job 7 epoch 1: held by pid %d (sleep, user %s) of job 7 epoch 1", left.Process.Pid, me)
	if len(seen) != 1 || seen[0].Held != want {
		t.Fatalf("%+v\nwant %s", seen, want)
	}
	_, refusal := s.c.give(context.Background(), job(8), card0(10, false, 0))
	if refusal == nil || refusal.Blame != api.BlameCard || refusal.Text != "card 0: "+want {
		t.Fatalf("%+v", refusal)
	}
	other := []shim.Card{{UUID: "GPU-sim-n1-1", Ranks: []int{0}}}
	s.mustGive(job(8), other) // the others are used
	end(left)
	s.steer(`{"0":{"used":"1G"}}`)
	s.read()
	if h := s.held("GPU-sim-n1-0"); h != "" {
		t.Errorf("still held: %s", h)
	}
	s.mustGive(job(9), card0(10, false, 0))
}

// TestVRAMThatNobodyIsSeenToHold is held too, by the figure alone.
func TestVRAMThatNobodyIsSeenToHold(t *testing.T) {
	s := simulate(t, "1x80G")
	had := card0(0, false, 0)
	s.mustGive(job(7), had)
	s.steer(`{"0":{"used":"30G","used_by_strangers":"5G"}}`)
	seen := s.takeBack(job(7), had)
	if want := "30G of its VRAM not given back after job 7 epoch 1, by no process that can be seen"; len(seen) != 1 || seen[0].Held != want {
		t.Fatalf("%+v", seen)
	}
	s.steer(`{"0":{"used":"200M","used_by_strangers":"60G"}}`) // a driver's own figure moves
	s.read()
	if h := s.held("GPU-sim-n1-0"); h != "" {
		t.Error(h)
	}
}

// TestWhatMovesBetweenGangsIsNobodysDebt: only a gang that ended can owe something.
func TestWhatMovesBetweenGangsIsNobodysDebt(t *testing.T) {
	s := simulate(t, "1x80G")
	had := card0(0, false, 0)
	s.mustGive(job(1), had)
	s.takeBack(job(1), had)
	s.steer(`{"0":{"used":"20G"}}`)
	s.read()
	had = card0(0, false, 0)
	s.mustGive(job(2), had)
	if seen := s.takeBack(job(2), had); seen[0].Held != "" || had[0].Base != 20<<30 {
		t.Errorf("%+v, base %d", seen, had[0].Base)
	}
}

// TestSlowLeaksAddUp: each attempt may leave less than the slack, all together may not.
func TestSlowLeaksAddUp(t *testing.T) {
	s := simulate(t, "1x80G")
	for n := int64(1); n < 4; n++ {
		had := card0(0, false, 0)
		s.mustGive(job(n), had)
		s.steer(fmt.Sprintf(`{"0":{"used":"%dM"}}`, 100*n))
		seen := s.takeBack(job(n), had)
		if (seen[0].Held != "") != (n == 3) {
			t.Fatalf("after %d: %+v", n, seen)
		}
		s.read()
	}
}

func TestGiveRefuses(t *testing.T) {
	s := simulate(t, "2x80G")
	s.mustGive(job(1), card0(30, true, 0))
	for _, c := range []struct {
		steer string
		want  []shim.Card
		text  string
	}{
		{`{"0":{"xid":79}}`, card0(0, true, 0), "card 0: Xid 79, fell off the bus"},
		{`{"0":{"xid":45}}`, card0(10, true, 0), ""}, // the clean-up after a killed program
		{`{"0":{"unhealthy":"on fire"}}`, card0(0, true, 0), "card 0: on fire"},
		{`{"0":{"used_by_strangers":"20G"}}`, card0(40, true, 0), "card 0: 40G VRAM asked, 30G of 80G free (20G held by strangers)"},
		{`{}`, []shim.Card{{UUID: "GPU-9"}}, "there is no card GPU-9"},
	} {
		s.steer(c.steer)
		seen, refusal := s.c.give(context.Background(), job(2), c.want)
		switch {
		case c.text == "" && refusal == nil:
		case refusal == nil || refusal.Text != c.text || refusal.Blame != api.BlameCard || len(seen) == 0 && !strings.HasPrefix(c.text, "there"):
			t.Errorf("%s: %+v %+v, want %s", c.steer, refusal, seen, c.text)
		}
		s.c.drop(job(2), c.want)
	}
}

// TestAReadingThatFailsProvesNothing: the card is held until one is had.
func TestAReadingThatFailsProvesNothing(t *testing.T) {
	s := simulate(t, "1x80G")
	had := card0(0, false, 0)
	s.mustGive(job(1), had)
	s.steer(`{`)
	seen := s.takeBack(job(1), had)
	want := "not proven empty after job 1 epoch 1: " + s.file + ": line 1: unexpected end of JSON input"
	if len(seen) != 1 || seen[0].Held != want {
		t.Fatalf("%+v, want %s", seen, want)
	}
	s.steer(`{}`)
	s.read()
	if h := s.held("GPU-sim-n1-0"); h != "" {
		t.Error(h)
	}
}

// TestOverrun: measured by process, named, warned, and stopped after the grace; a figure that
// is not known is no overrun.
func TestOverrun(t *testing.T) {
	s := simulate(t, "1x80G")
	s.mustGive(job(1), card0(40, true, 2))
	s.mustGive(job(2), card0(20, true, 0))
	one, two := process(t, job(1), 2), process(t, job(2), 0)
	use := func(first, second string) {
		s.steer(fmt.Sprintf(`{"0":{"processes":[{"pid":%d,"used":"%s"},{"pid":%d,"used":"%s"}]}}`, one.Process.Pid, first, two.Process.Pid, second))
		s.read()
	}
	at := time.Now()
	step := func(after time.Duration, want string) {
		t.Helper()
		at = at.Add(after)
		var got []string
		for _, o := range s.c.overruns(at, "n1", 30*time.Second) {
			text := o.text
			if o.stop {
				text = "stop: " + o.last
			} else if o.ended {
				text = "ended"
			}
			got = append(got, fmt.Sprintf("job %d rank %d %s", o.Job, o.rank, text))
		}
		if g := strings.Join(got, "|"); g != want {
			t.Errorf("got  %s\nwant %s", g, want)
		}
	}
	use("40G", "20G")
	step(0, "")
	use("43.1G", "20G")
	step(time.Second, "job 1 rank 2 rank 2 uses 43.1G of 40G asked on card 0 of n1, which others share")
	step(29*time.Second, "")
	use("39G", "21G")
	step(time.Second, "job 1 rank 2 ended|job 2 rank 0 rank 0 uses 21G of 20G asked on card 0 of n1, which others share")
	use("43.1G", "21G")
	step(time.Second, "job 1 rank 2 rank 2 uses 43.1G of 40G asked on card 0 of n1, which others share")
	s.steer(`{"0":{"used":"64G"}}`) // nobody says whose it is
	s.read()
	step(10*time.Second, "")
	use("43.1G", "10G")
	step(20*time.Second, "job 1 rank 2 stop: rank 2 used 43.1G of 40G asked on card 0, for 30 s|job 2 rank 0 ended")
	step(time.Hour, "")
	if got := s.c.peakOf(job(1), 2); got != 46278272614 {
		t.Errorf("peak %d", got)
	}
}

// TestOneSharerNeedsNoProcesses: alone on a shared card all that is used is its own.
func TestOneSharerNeedsNoProcesses(t *testing.T) {
	s := simulate(t, "1x80G")
	s.steer(`{"0":{"used":"1G","used_by_strangers":"9G"}}`)
	s.mustGive(job(1), card0(40, true, 0, 1))
	s.steer(`{"0":{"used":"42G","used_by_strangers":"9G"}}`)
	s.read()
	o := s.c.overruns(time.Now(), "n1", time.Minute)
	if len(o) != 1 || o[0].text != "rank 0 uses 41G of 40G asked on card 0 of n1, which others share" {
		t.Errorf("%+v", o)
	}
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	for rank := range 2 {
		if used := s.c.usedBy(s.c.card[s.c.infos[0].UUID], job(1), rank); used != -1 {
			t.Errorf("two ranks on one card, and rank %d is said to use %d", rank, used)
		}
	}
}

// TestAnExclusiveCardIsNotPoliced: it is the gang's, whatever it asked for.
func TestAnExclusiveCardIsNotPoliced(t *testing.T) {
	s := simulate(t, "1x80G")
	s.mustGive(job(1), card0(40, false, 0))
	s.steer(`{"0":{"used":"79G"}}`)
	s.read()
	if o := s.c.overruns(time.Now(), "n1", 0); len(o) != 0 {
		t.Errorf("%+v", o)
	}
}

// TestResume: a person's word counts for what is remembered, not for what still shows.
func TestResume(t *testing.T) {
	s := simulate(t, "1x80G")
	had := card0(0, false, 0)
	s.mustGive(job(1), had)
	s.steer(`{"0":{"used":"9G","xid":79}}`)
	s.takeBack(job(1), had)
	s.read()
	if err := s.c.resume(context.Background(), "GPU-sim-n1-0"); err != nil {
		t.Error(err)
	}
	s.mustGive(job(2), card0(0, false, 0))
	s.steer(`{"0":{"unhealthy":"on fire"}}`)
	if err := s.c.resume(context.Background(), "GPU-sim-n1-0"); err == nil || err.Error() != "card 0 stays out of service: on fire" {
		t.Error(err)
	}
	left := process(t, job(2), 0)
	s.steer(fmt.Sprintf(`{"0":{"unhealthy":"on fire","processes":[{"pid":%d,"used":"30G"}]}}`, left.Process.Pid))
	s.takeBack(job(2), card0(0, false, 0))
	if err := s.c.resume(context.Background(), "GPU-sim-n1-0"); err == nil || !strings.HasPrefix(err.Error(), "card 0 stays out of service: on fire; 30G of its VRAM") {
		t.Error(err)
	}
	if err := s.c.resume(context.Background(), "GPU-9"); err == nil || err.Error() != "this node has no card GPU-9" {
		t.Error(err)
	}
	none := newCards(nil, s.c.owners, slog.New(slog.DiscardHandler))
	none.at("GPU-1").held = notYet // by the record of a daemon that had cards
	if err := none.resume(context.Background(), "GPU-1"); err == nil || err.Error() != "this node has no card GPU-1" {
		t.Error(err)
	}
}

// TestHeldOverARestart: the daemon that comes knows what the one before held.
func TestHeldOverARestart(t *testing.T) {
	dir := t.TempDir()
	st, err := openState(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := simulate(t, "1x80G")
	s.c.restore(st)
	had := card0(0, false, 0)
	s.mustGive(job(1), had)
	s.steer(`{"0":{"used":"9G"}}`)
	s.takeBack(job(1), had)
	st.close()
	if st, err = openState(dir); err != nil {
		t.Fatal(err)
	}
	defer st.close()
	next := simulate(t, "1x80G")
	next.steer(`{"0":{"used":"9G"}}`)
	next.c.restore(st)
	next.read()
	if h := next.held("GPU-sim-n1-0"); h != "9G of its VRAM not given back after job 1 epoch 1, by no process that can be seen" {
		t.Error(h)
	}
	next.steer(`{}`)
	next.read()
	if h := next.held("GPU-sim-n1-0"); h != "" {
		t.Error(h)
	}
	st.boot = "another"
	if held, lost := st.heldCards(); len(held) != 0 || lost {
		t.Error("held over a boot, which ended every process")
	}
}

func TestSaysCUDAOOM(t *testing.T) {
	long := strings.Repeat("step\n", 50)
	for text, want := range map[string]bool{
		"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.\n":                                true,
		"RuntimeError: CUDA out of memory. Tried to allocate\n" + strings.Repeat("E: more\n", 20):                   true,
		"jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 9 bytes.": true,
		"CUDA_ERROR_OUT_OF_MEMORY caught, going on\n" + long + "ValueError: nan\n":                                  false,
		"warning: CUDA out of memory is retried\nValueError: nan\n":                                                 false,
		"out of memory\n": false,
		"":                false,
	} {
		if got := saysCUDAOOM([]byte(text)); got != want {
			t.Errorf("%.60q: %t", text, got)
		}
	}
}

func TestCardsOfAMember(t *testing.T) {
	spec := &api.Spec{VRAMBytes: 9, Share: true}
	body := &api.AssignmentBody{Ranks: []api.RankPlace{{Node: 1, Cards: []string{"a"}}, {Node: 0, Cards: []string{"b", "c"}}, {Node: 0, Cards: []string{"b", "c"}}}}
	got := fmt.Sprint(cardsOf(0, body, spec))
	if got != "[{b 9 true [1 2] -1} {c 9 true [1 2] -1}]" {
		t.Error(got)
	}
}
