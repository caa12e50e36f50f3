package sitehook

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func program(t *testing.T, body string) Program {
	t.Helper()
	p := filepath.Join(t.TempDir(), "check")
	if err := os.WriteFile(p, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return Program{Path: p, Timeout: 20 * time.Second}
}

func TestHealths(t *testing.T) {
	for body, want := range map[string]Health{
		"exit 0":            {Known: true},
		"echo fine; exit 0": {Known: true},
		"exit 75":           {},
		"echo; echo '  /scratch is full  '; echo more; exit 1": {Sick: "/scratch is full", Known: true},
		"echo 'ib0 is down' >&2; exit 3":                       {Sick: "ib0 is down", Known: true},
		"printf 'a\\033[2Jb\\n'; exit 1":                       {Sick: "a [2Jb", Known: true},
		"[ \"$1 $GANG_NODE $HOME\" = 'n3 n3 ' ] && [ $PWD = / ] || { echo \"$1 $GANG_NODE $HOME $PWD\"; exit 1; }": {Known: true},
		"exit 4":     {Sick: "CHECK: exit status 4", Known: true},
		"kill -9 $$": {Sick: "CHECK: signal: killed", Known: true},
		"head -c 9999 /dev/zero | tr '\\0' x; exit 1": {Sick: strings.Repeat("x", 199) + "…", Known: true},
	} {
		p := program(t, body)
		want.Sick = strings.Replace(want.Sick, "CHECK", p.Path, 1)
		if got := p.Check(context.Background(), "n3"); got != want {
			t.Errorf("%s: %+v, want %+v", body, got, want)
		}
	}
}

// TestLate: it is ended with what it has started.
func TestLate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	p := program(t, "sleep 1000 & echo $! >"+file+"; wait")
	p.Timeout = 300 * time.Millisecond
	if got := p.Check(context.Background(), "n1"); got != (Health{Sick: p.Path + " was not done within 300 ms", Known: true}) {
		t.Errorf("%+v", got)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(b)) + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			break
		}
		if time.Now().After(end) {
			t.Fatal("its child lives")
		}
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if got := program(t, "exit 1").Check(ctx, "n1"); got != (Health{}) {
		t.Errorf("%+v", got)
	}
}

func TestUnfitPrograms(t *testing.T) {
	p := program(t, "exit 0")
	if err := os.Chmod(p.Path, 0o777); err != nil {
		t.Fatal(err)
	}
	if got := p.Check(context.Background(), "n1"); got.Sick != p.Path+" may be changed by everybody (mode 0777): chmod o-w "+p.Path {
		t.Errorf("%+v", got)
	}
	if got := (Program{Path: "/nonexistent/check", Timeout: time.Second}).Check(context.Background(), "n1"); got.Sick != "lstat /nonexistent: no such file or directory" {
		t.Errorf("%+v", got)
	}
}
