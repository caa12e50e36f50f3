package sitehook

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func asks(t *testing.T, script string) Program {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rule")
	// No test beside this one forks while it is open for writing: its child would hold it, and it could not be executed.
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	return Program{Path: path, Timeout: 20 * time.Second}
}

// TestAsk: the answer is what was written to standard output, whatever was read of the question and said beside.
func TestAsk(t *testing.T) {
	question := bytes.Repeat([]byte("q"), 1<<20)
	for name, c := range map[string]struct{ script, want string }{
		"reads":       {"wc -c | tr -d ' \n'", "1048576"},
		"does not":    {"echo '{}'; echo beside >&2", "{}\n"},
		"nothing":     {"cat >/dev/null", ""},
		"all allowed": {"head -c 64", strings.Repeat("q", 64)},
		"left one":    {"echo '{}'; sleep 60 & exit 0", "{}\n"}, // which holds the pipes
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := asks(t, c.script).Ask(t.Context(), question, 64)
			if err != nil || string(got) != c.want {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// TestAskedInVain: there is no answer, and it is said why.
func TestAskedInVain(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"fails":     {"echo '{}'; echo first >&2; printf 'no \\033[31mtable\\n' >&2; exit 3", "exit status 3: no  [31mtable"},
		"is ended":  {"kill -9 $$", "signal: killed"},
		"floods":    {"yes", "it wrote more than 64 bytes"},
		"one more":  {"head -c 65", "it wrote more than 64 bytes"},
		"talks":     {"yes >&2 & wait", "no answer within 300 ms"},
		"hangs":     {"echo '{}'; exec sleep 60", "no answer within 300 ms"},
		"left it":   {"setsid sleep 2 & wait", "no answer within 300 ms"},
		"ignores":   {"trap '' TERM INT HUP; while :; do sleep 1; done", "no answer within 300 ms"},
		"no such":   {"", "no such file"},
		"no script": {"", "permission denied"},
		"others'":   {"echo '{}'", "may be changed by everybody"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := asks(t, c.script)
			switch name {
			case "talks", "hangs", "left it", "ignores":
				p.Timeout = 300 * time.Millisecond
			case "no such":
				p.Path += "-not"
			case "no script":
				must(t, os.Chmod(p.Path, 0o644))
			case "others'":
				must(t, os.Chmod(p.Path, 0o757))
			}
			got, err := p.Ask(t.Context(), bytes.Repeat([]byte("q"), 1<<20), 64)
			if got != nil || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q, %v, want %q", got, err, c.want)
			}
		})
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the caller has gone")
	cancel(why)
	if _, err := asks(t, "echo '{}'").Ask(ctx, nil, 64); !errors.Is(err, why) {
		t.Error(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
