package noded

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
)

func rebooter(t *testing.T, script string) (*daemon, string) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "reboot")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"$1 $GANG_NODE\" >>"+dir+"/ran\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	d := newDaemon(Options{Name: "n1", StateDir: t.TempDir(), Log: slog.New(slog.DiscardHandler), RebootProgram: program}, &stateDir{boot: "boot-1"})
	d.ctx = t.Context()
	return d, filepath.Join(dir, "ran")
}

// TestRebootIsRunOnce: for an order, however often it comes, and not for one of a boot that is over.
func TestRebootIsRunOnce(t *testing.T) {
	d, ran := rebooter(t, "")
	d.Reboot(&api.RebootOrder{Boot: "boot-0"})
	first, second := api.RebootOrder{Boot: "boot-1", Asked: time.Unix(1, 0)}, api.RebootOrder{Boot: "boot-1", Asked: time.Unix(2, 0)}
	for _, o := range []api.RebootOrder{first, first, second, second} {
		d.Reboot(&o)
		d.running.Wait()
	}
	if text, _ := os.ReadFile(ran); string(text) != "n1 n1\nn1 n1\n" || d.board.RebootNow() != nil {
		t.Errorf("%q, %+v", text, d.board.RebootNow())
	}
}

// TestRebootThatCant: a program that fails, hangs, can be changed by others or is gone, and a node that is not empty, are told
// in the next report and in each hello.
func TestRebootThatCant(t *testing.T) {
	cases := map[string]struct {
		script string
		change func(*daemon)
		want   string
	}{
		"fails":   {"echo 'no \033[31mpower' >&2; exit 3", nil, "/reboot n1: exit status 3: no  [31mpower"},
		"hangs":   {"sleep 1000", func(d *daemon) { d.settings.RebootTimeout = 50 * time.Millisecond }, "not done within 50 ms"},
		"open":    {"", func(d *daemon) { _ = os.Chmod(d.opts.RebootProgram, 0o777) }, "is not run: "},
		"no more": {"", func(d *daemon) { d.opts.RebootProgram = ""; d.rules.Store(rulesOf(&d.opts)) }, "this node has no program for that"},
		"in use":  {"", func(d *daemon) { d.newMember(api.MemberKey{Job: 7, Epoch: 2}) }, "job 7.2 is still here"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d, ran := rebooter(t, c.script)
			if c.change != nil {
				c.change(d)
			}
			o := api.RebootOrder{Boot: "boot-1", Asked: time.Unix(1, 0)}
			d.Reboot(&o)
			d.running.Wait()
			a := d.board.Report()
			if a == nil || a.Reboot == nil || !a.Reboot.Same(&o) || !strings.Contains(a.Reboot.Failed, c.want) {
				t.Fatalf("%+v", a)
			}
			if d.board.Report() != nil || d.board.RebootNow() == nil {
				t.Error("it is told in each report, or not in a hello")
			}
			if _, err := os.Stat(ran); (err == nil) != (name == "fails" || name == "hangs") {
				t.Errorf("it ran: %t", err == nil)
			}
		})
	}
}
