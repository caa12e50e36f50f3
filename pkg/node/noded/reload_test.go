package noded

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/node/sitehook"
)

// TestRulesThatChange: what may change while a daemon runs does so as one, and what it has told or made at its start stays.
func TestRulesThatChange(t *testing.T) {
	opts := Options{Name: "n1", StateDir: t.TempDir(), MinUID: 1000, Groups: []string{"a"}, Features: []string{"x"}, CPUs: 4,
		Hooks: Hooks{Prolog: "/p", Epilog: "/e", Timeout: time.Second}}
	d := newDaemon(opts, &stateDir{})
	again := opts
	again.MinUID, again.Groups, again.Features, again.CPUs = 0, nil, []string{"y"}, 8
	again.Needs = Needs{Names: []string{"h"}}
	again.Hooks = Hooks{Prolog: "/q", Epilog: "/f", Timeout: time.Minute}
	d.takeRules(&again)
	now := d.now()
	if now.MinUID != 0 || now.Groups != nil || !slices.Equal(now.Needs.Names, again.Needs.Names) || now.Hooks.Epilog != "/f" || now.Hooks.Timeout != time.Minute ||
		now.Hooks.Prolog != "/q" || !slices.Equal(now.Features, []string{"y"}) {
		t.Errorf("%+v", now.Options)
	}
	if now.CPUs != 4 {
		t.Errorf("what takes a restart: %+v", now.Options)
	}
	if _, refused := now.accounts.resolve("root", 0, 0); refused != nil {
		t.Errorf("root with min_uid 0: %v", refused)
	}
	d.takeRules(&opts)
	if _, refused := d.now().accounts.resolve("root", 0, 0); refused == nil || refused.Blame != api.BlameUser {
		t.Errorf("root with min_uid 1000: %v", refused)
	}
}

// TestHealthProgramThatChanges: another program is asked at once, and none leaves the node fit.
func TestHealthProgramThatChanges(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "sick")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho broken\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	d := newDaemon(Options{Name: "n1", StateDir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, &stateDir{})
	if d.checkHealth(t.Context()) {
		t.Error("sick without a program")
	}
	again := d.opts
	again.Health = Health{Program: sitehook.Program{Path: program, Timeout: time.Minute}, Interval: time.Hour}
	d.takeRules(&again)
	if len(d.healthAgain) != 1 {
		t.Error("nobody is told to look at once")
	}
	if !d.checkHealth(t.Context()) || d.board.healthNow().Sick != "broken" {
		t.Errorf("%+v", d.board.healthNow())
	}
	d.takeRules(&d.opts)
	if d.checkHealth(t.Context()) || d.board.healthNow().Sick != "" {
		t.Errorf("without the program: %+v", d.board.healthNow())
	}
}

// TestHelloAfterAReload: what a hello says is told by another one as soon as it is otherwise, and nothing is said anew for what it
// does not say. What runs goes on.
func TestHelloAfterAReload(t *testing.T) {
	c := newController(t)
	o := c.options(t.TempDir())
	again := make(chan Options)
	o.Again = again
	c.run(o)
	k := c.desire(1, 1, 1, "#!/bin/sh\nsleep 60\n")
	pid := c.untilPhase(k, api.PhaseRunning).Ranks[0].PID
	other := o
	other.MinUID = 7 // which no hello says
	again <- other
	other.Features, other.RebootProgram, other.Hooks.Prolog = []string{"new"}, "/bin/true", "/bin/true"
	again <- other
	c.until("another hello", func() bool { return len(c.hellos) > 1 })
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.hellos[len(c.hellos)-1]
	if len(c.hellos) != 2 || !slices.Equal(h.Features, []string{"new"}) || !h.Reboots || h.Opens {
		t.Errorf("%d hellos, the last %+v", len(c.hellos), h)
	}
	if len(h.Members) != 1 || h.Members[0].Phase != api.PhaseRunning || h.Members[0].Ranks[0].PID != pid {
		t.Errorf("members %+v", h.Members)
	}
}
