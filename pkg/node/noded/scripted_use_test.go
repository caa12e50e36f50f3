package noded

import (
	"bytes"
	"database/sql"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/client/cli"
	"gangd/pkg/controller/store/sqlitestore"
	"gangd/pkg/node/gpu"
)

// truth is what an attempt used, by its scripts alone.
type truth struct {
	limit time.Duration
	asked int64 // memory on a node
	vram  int64 // of a card, for it
	cpus  int   // on a node
	cards int   // on a node
	nodes []play
}

func (w *truth) of() *api.Efficiency {
	var cpu, held, cards, busy, idle, joules, seconds float64
	var peak, vram int64
	for _, s := range w.nodes {
		long := s.length()
		_, used, most := s.at(long)
		seconds, cpu, held, peak = max(seconds, long.Seconds()), cpu+used.Seconds(), held+long.Seconds()*float64(w.cpus), max(peak, most)
		for _, p := range s.phases {
			at := p.span.Seconds() * float64(w.cards)
			cards, busy, joules, vram = cards+at, busy+at*float64(p.card.Utilization), joules+at*float64(p.card.PowerWatts), max(vram, p.card.UsedBytes)
			if p.card.Utilization == 0 {
				idle += at
			}
		}
	}
	is := func(v float64) *float64 { return &v }
	var start *api.StartParts
	for _, s := range w.nodes {
		if use, ok := s.firstUse(); ok && w.cards > 0 && (start == nil || use > *start.CardUse) {
			start = &api.StartParts{CardUse: &use}
		}
	}
	e := &api.Efficiency{Seconds: seconds, CPUSeconds: is(cpu), CPUPercent: is(100 * cpu / held), MemoryPeak: &peak, MemoryPercent: is(100 * float64(peak) / float64(w.asked)),
		TimePercent: is(100 * seconds / w.limit.Seconds()), Start: start}
	if w.cards > 0 {
		e.GPUPercent, e.GPUIdle, e.Joules, e.VRAMPeak, e.VRAMPercent = is(busy/cards), is(100*idle/cards), is(joules), &vram, is(100*float64(vram)/float64(w.vram))
	}
	return e
}

// firstUse is when a card is used first; false: never, or nobody can see it.
func (s *play) firstUse() (at float64, known bool) {
	for _, p := range s.phases {
		if p.card.Utilization != 0 {
			return at, p.card.Utilization > 0
		}
		at += p.span.Seconds()
	}
	return at, false
}

// near holds each figure to its truth within a hundredth of it, and unknown to unknown.
func near(t *testing.T, what string, got, want *api.Efficiency) {
	t.Helper()
	if got == nil {
		t.Errorf("%s: nothing is known", what)
		return
	}
	var gotUse, wantUse *float64
	if got.Start != nil {
		gotUse = got.Start.CardUse
	}
	if want.Start != nil {
		wantUse = want.Start.CardUse
	}
	// Cards are looked at each second.
	if (gotUse == nil) != (wantUse == nil) || gotUse != nil && math.Abs(*gotUse-*wantUse) > max(*wantUse/20, 1) {
		t.Errorf("%s: the start is %+v, and was %+v", what, got.Start, want.Start)
	}
	type figure struct {
		name      string
		got, want *float64
	}
	of := func(v *int64) *float64 {
		if v == nil {
			return nil
		}
		f := float64(*v)
		return &f
	}
	for _, f := range []figure{{"seconds", &got.Seconds, &want.Seconds}, {"CPU seconds", got.CPUSeconds, want.CPUSeconds}, {"CPU", got.CPUPercent, want.CPUPercent},
		{"memory", of(got.MemoryPeak), of(want.MemoryPeak)}, {"memory percent", got.MemoryPercent, want.MemoryPercent}, {"GPU", got.GPUPercent, want.GPUPercent}, {"GPU idle", got.GPUIdle, want.GPUIdle},
		{"VRAM", of(got.VRAMPeak), of(want.VRAMPeak)}, {"VRAM percent", got.VRAMPercent, want.VRAMPercent}, {"time", got.TimePercent, want.TimePercent}, {"joules", got.Joules, want.Joules}} {
		switch {
		case f.got == nil && f.want == nil:
		case f.got == nil || f.want == nil:
			t.Errorf("%s: %s is known: %v, to be known: %v", what, f.name, f.got != nil, f.want != nil)
		case math.Abs(*f.got-*f.want) > math.Abs(*f.want)/100:
			t.Errorf("%s: %s is %g, and was %g", what, f.name, *f.got, *f.want)
		}
	}
}

// What gacct -e says is what scripts did, within a hundredth: of one node, of four, of a shared card, of a job that
// was restarted under a daemon that was, of an array. What could not be seen is unknown.
func TestUseIsAsScripted(t *testing.T) {
	const gib = int64(1) << 30
	card := func(use int, vram int64, watts int) gpu.Sample {
		return gpu.Sample{Utilization: use, UsedBytes: vram * gib, PowerWatts: watts}
	}
	train := play{phases: []phase{{120 * time.Second, 1, 4 * gib, card(0, 2, 70)}, {400 * time.Second, 6.5, 21 * gib, card(93, 61, 640)},
		{300 * time.Millisecond, 8, 29 * gib, card(93, 61, 640)}, {139700 * time.Millisecond, 2, 20 * gib, card(35, 61, 300)}}}
	slow := play{phases: []phase{{200 * time.Second, 0.5, 2 * gib, card(0, 1, 70)}, {400 * time.Second, 3, 8 * gib, card(50, 10, 350)}}}
	short := play{phases: []phase{{45 * time.Second, 2, gib, card(80, 4, 500)}}, exit: 3}
	element := func(i int) play {
		p := phase{120 * time.Second, 2 + float64(i%3)/50, 3 * gib, card(70+i%4, 30, 500)}
		switch i {
		case 7:
			p.cpus = 0.1
		case 50:
			p.memory = 15 * gib
		case 99:
			p.card = card(2, 30, 90)
		}
		return play{phases: []phase{p}}
	}
	dir := filepath.Join(t.TempDir(), "state")
	st, err := sqlitestore.Open(t.Context(), dir, sqlitestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ended := 0
	t.Cleanup(func() { rowsAreSmall(t, filepath.Join(dir, sqlitestore.DatabaseName), ended) }) // once the store is closed
	s := newScriptedSite(t, st, 4, 8)
	s.load = func(k api.MemberKey, b *api.AssignmentBody) play {
		switch {
		case b.Name == "four" && b.Nodes[0].Name != "":
			return slow
		case b.Name == "restarted" && k.Epoch == 1:
			return short
		case b.Name == "array":
			return element(*b.ArrayIndex)
		case b.Name == "blind":
			return play{phases: []phase{{100 * time.Second, 1, gib, card(-1, 5, 0)}}, blind: true}
		case b.Name == "silent":
			return play{phases: []phase{{100 * time.Second, 1, gib, card(-1, 5, 0)}}}
		case strings.HasPrefix(b.Name, "share"):
			return play{phases: []phase{{300 * time.Second, 1, gib, card(5*len(b.Name), int64(len(b.Name)), 400)}}}
		}
		return train
	}
	ask := func(name string, size int, edit func(*api.Spec)) int64 {
		sp := api.Spec{Name: name, Size: size, CPUsPerRank: 8, MemoryPerRank: 32 * gib, GPUsPerRank: 1, TimeLimit: time.Hour}
		edit(&sp)
		return s.submit(sp, 0)
	}
	nothing := func(*api.Spec) {}
	retries := 1
	one := ask("one", 2, func(sp *api.Spec) { sp.MinNodes, sp.MaxNodes = 1, 1 })
	four := ask("four", 4, func(sp *api.Spec) { sp.RanksPerNode = 1 })
	restarted := ask("restarted", 1, func(sp *api.Spec) { sp.MaxRetries = &retries })
	shared := func(sp *api.Spec) { sp.Share, sp.VRAMBytes, sp.NodeList = true, 20*gib, []string{"n4"} }
	first, second := ask("share", 1, shared), ask("shared", 1, shared)
	blind, silent := ask("blind", 1, nothing), ask("silent", 1, nothing)
	none := ask("none", 1, func(sp *api.Spec) { sp.GPUsPerRank = 0 })
	for n := range 800 { // to beyond all that there is but the array
		if n == 300 {
			for _, node := range s.nodes {
				for _, x := range node.d.meters.members {
					x.keep() // as each minute
				}
				node.open()
			}
		}
		s.step()
		if n%20 == 0 {
			s.nodes[0].tell(api.Actual{}) // so that timers are looked at
		}
	}
	array := s.submit(api.Spec{Name: "array", Size: 1, CPUsPerRank: 4, MemoryPerRank: 16 * gib, GPUsPerRank: 1, TimeLimit: 10 * time.Minute}, 100)
	s.until()

	got := s.attempts(one, four, restarted, first, second, blind, silent, none)
	of := func(id int64, attempt int) *api.Efficiency {
		for i := range got.Attempts {
			if a := &got.Attempts[i]; a.JobID == id && a.Attempt == attempt {
				return a.Efficiency
			}
		}
		t.Errorf("no attempt %d of job %d", attempt, id)
		return nil
	}
	near(t, "one node", of(one, 1), (&truth{limit: time.Hour, asked: 64 * gib, vram: 80 * gib, cpus: 16, cards: 2, nodes: []play{train}}).of())
	near(t, "four nodes", of(four, 1), (&truth{limit: time.Hour, asked: 32 * gib, vram: 80 * gib, cpus: 8, cards: 1, nodes: []play{slow, slow, slow, slow}}).of())
	near(t, "its first attempt", of(restarted, 1), (&truth{limit: time.Hour, asked: 32 * gib, vram: 80 * gib, cpus: 8, cards: 1, nodes: []play{short}}).of())
	near(t, "its second attempt", of(restarted, 2), (&truth{limit: time.Hour, asked: 32 * gib, vram: 80 * gib, cpus: 8, cards: 1, nodes: []play{train}}).of())
	for id, name := range map[int64]string{first: "share", second: "shared"} {
		want := (&truth{limit: time.Hour, asked: 32 * gib, vram: 20 * gib, cpus: 8, cards: 1, nodes: []play{s.load(api.MemberKey{}, &api.AssignmentBody{Name: name})}}).of()
		want.Joules = nil // whose power it was nobody can say
		near(t, name, of(id, 1), want)
	}
	want := (&truth{limit: time.Hour, asked: 32 * gib, vram: 80 * gib, cpus: 8, cards: 1, nodes: []play{s.load(api.MemberKey{}, &api.AssignmentBody{Name: "silent"})}}).of()
	want.GPUPercent, want.GPUIdle, want.Joules, want.Start = nil, nil, nil, nil
	near(t, "a driver that says little", of(silent, 1), want)
	want.CPUSeconds, want.CPUPercent, want.MemoryPeak, want.MemoryPercent = nil, nil, nil, nil
	near(t, "nothing of its processes", of(blind, 1), want)
	near(t, "no cards", of(none, 1), (&truth{limit: time.Hour, asked: 32 * gib, cpus: 8, nodes: []play{train}}).of())

	all := s.attempts(array)
	if len(all.Attempts) != 100 {
		t.Fatalf("%d attempts of an array of 100", len(all.Attempts))
	}
	for i := range all.Attempts {
		a := &all.Attempts[i]
		at := slices.IndexFunc(all.Jobs, func(j api.Job) bool { return j.JobID == a.JobID })
		index := *all.Jobs[at].ArrayIndex
		near(t, fmt.Sprint("element ", index), a.Efficiency, (&truth{limit: 10 * time.Minute, asked: 16 * gib, vram: 80 * gib, cpus: 4, cards: 1, nodes: []play{element(index)}}).of())
	}
	text := string(s.command(cli.NewGacct(), "-e", fmt.Sprint(array), fmt.Sprint(none)))
	for _, line := range []string{fmt.Sprintf("but of %d_7 (2%%)\n", array), fmt.Sprintf("but of %d_50 (94%%)\n", array), fmt.Sprintf("but of %d_99 (2%%)\n", array)} {
		if !strings.Contains(text, line) {
			t.Errorf("%q is not in\n%s", line, text)
		}
	}
	ended = len(got.Attempts) + len(all.Attempts)
}

// rowsAreSmall looks into the file of the store: what is kept of a member takes 2 KiB at most, and for each card beyond the first as
// much again.
func rowsAreSmall(t *testing.T, file string, attempts int) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query("SELECT job, epoch, data FROM measure")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	seen := 0
	for rows.Next() {
		var job, epoch, cards int
		var data []byte
		if err := rows.Scan(&job, &epoch, &data); err != nil {
			t.Fatal(err)
		}
		seen++
		if cards = bytes.Count(data, []byte("GPU-")); len(data) > 2<<10*max(cards, 1) {
			t.Errorf("attempt %d of job %d takes %d bytes for %d cards:\n%s", epoch, job, len(data), cards, data)
		}
	}
	if err := rows.Err(); err != nil || seen < attempts {
		t.Errorf("%d rows of %d attempts: %v", seen, attempts, err)
	}
}
