package submit

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/core/script"
)

// given is a submission of sbatch, and what it warns of.
func given(req script.Request) (*submission, *bytes.Buffer) {
	var errs bytes.Buffer
	return &submission{out: io.Discard, err: &errs, program: "sbatch", req: &req, spec: &api.Spec{}}, &errs
}

func TestEnvironFile(t *testing.T) {
	t.Chdir(t.TempDir())
	const lone = "sbatch: warning: --export-file: env holds no NUL, so all of it is one variable; env -0 writes a NUL behind each\n"
	for _, c := range []struct {
		text, warned string
		want         []string
	}{
		{"", "", nil},
		{"A=1\x00B=a=b\nc\x00EMPTY=\x00", "", []string{"A=1", "B=a=b\nc", "EMPTY="}},
		{"A=1\x00B=2", "", []string{"A=1", "B=2"}},
		{"DISPLAY=:0\x00ENVIRONMENT=BATCH\x00HOSTNAME=login\x00HOSTNAMES=x\x00", "", []string{"HOSTNAMES=x"}},
		{"no assignment\x00=x\x00\x00A=1\x00", "", []string{"A=1"}},
		{"A=1\nB=2\n", lone, []string{"A=1\nB=2\n"}},
	} {
		must(t, os.WriteFile("env", []byte(c.text), 0o644))
		s, errs := given(script.Request{})
		got, err := s.environFile("env")
		s.tell()
		if err != nil || !slices.Equal(got, c.want) || errs.String() != c.warned {
			t.Errorf("%q: %q, %v, warned %q; want %q, warned %q", c.text, got, err, errs, c.want, c.warned)
		}
	}
	s, errs := given(script.Request{})
	s.req.Quiet = true
	_, err := s.environFile("env")
	if s.tell(); err != nil || errs.Len() > 0 {
		t.Errorf("--quiet: %v, warned %q", err, errs)
	}
}

// TestEnvironDescriptor: a number is an open descriptor, and a file of that name where none is open.
func TestEnvironDescriptor(t *testing.T) {
	t.Chdir(t.TempDir())
	var fds [2]int
	must(t, unix.Pipe2(fds[:], unix.O_CLOEXEC))
	if _, err := unix.Write(fds[1], []byte("A=1\x00FROM=pipe\x00")); err != nil {
		t.Fatal(err)
	}
	must(t, unix.Close(fds[1]))
	number := strconv.Itoa(fds[0])
	must(t, os.WriteFile(number, []byte("FROM=file\x00"), 0o644))
	must(t, os.WriteFile("2", []byte("FROM=2\x00"), 0o644))
	must(t, os.WriteFile("100000", []byte("FROM=100000\x00"), 0o644))
	for _, c := range []struct {
		name string
		want []string
	}{
		{number, []string{"A=1", "FROM=pipe"}},
		{"2", []string{"FROM=2"}}, // where errors go is nothing to read from
		{"100000", []string{"FROM=100000"}},
	} {
		s, _ := given(script.Request{})
		if got, err := s.environFile(c.name); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
		}
	}
}

// TestEnvironInPlaceOfCallers: what a file holds is in place of the caller's environment, with what --export sets.
func TestEnvironInPlaceOfCallers(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("CALLER", "x")
	must(t, os.WriteFile("env", []byte("A=1\x00B=2\x00"), 0o644))
	for _, c := range []struct {
		export string
		want   []string
	}{
		{"", []string{"A=1", "B=2"}},
		{"ALL", []string{"A=1", "B=2"}},
		{"ALL,B=3", []string{"A=1", "B=3"}},
		{"B=3", []string{"A=1", "B=3"}},
		{"NONE", nil},
		{"NIL", nil},
	} {
		s, _ := given(script.Request{Export: c.export, ExportFile: "env"})
		err := s.environment()
		slices.Sort(s.spec.Env)
		if err != nil || !slices.Equal(s.spec.Env, c.want) {
			t.Errorf("--export=%s: %q, %v, want %q", c.export, s.spec.Env, err, c.want)
		}
	}
}
