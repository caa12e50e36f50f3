package sitehook

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func hookProgram(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hook")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestHook(t *testing.T) {
	t.Setenv("SECRET", "x")
	out := filepath.Join(t.TempDir(), "out")
	h := Program{hookProgram(t, "echo $# $1 $GANG_NODE > "+out+"; env | sort | cut -d= -f1 | tr '\\n' ' ' >> "+out), time.Minute, nil}
	if err := h.Fence(context.Background(), "n7"); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(out); string(b) != "1 n7 n7\nGANG_NODE PATH PWD " {
		t.Errorf("the hook saw %q", b)
	}
}

func TestFailures(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{"echo no such outlet >&2; exit 3", "exit status 3: no such outlet"},
		{"exit 1", "exit status 1"},
		{"echo waiting; sleep 1000 & sleep 1000", "not done within 300 ms: waiting"},
	} {
		h := Program{hookProgram(t, c.body), 300 * time.Millisecond, nil}
		if c.want[0] == 'e' {
			h.Timeout = time.Minute
		}
		err := h.Fence(context.Background(), "n7")
		if want := h.Path + " n7: " + c.want; err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", c.body, err, want)
		}
	}
}

// TestLastWords: of a program that says much only its end is kept.
func TestLastWords(t *testing.T) {
	h := Program{hookProgram(t, "head -c 1000000 /dev/zero | tr '\\0' x; echo; echo the outlet is dead; exit 1"), time.Minute, nil}
	err := h.Fence(context.Background(), "n7")
	if err == nil || !strings.HasSuffix(err.Error(), "the outlet is dead") || len(err.Error()) > wordBytes+200 {
		t.Errorf("%d bytes of it are kept: %.100v", len(fmt.Sprint(err)), err)
	}
}
