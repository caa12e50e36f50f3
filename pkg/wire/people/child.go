package people

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strconv"
	"strings"
)

// notFound is getent's exit status for a key that no service knows.
const notFound = 2

// child asks the name service in a process of its own. One that does not end is killed; one that can't be (it sleeps
// in the kernel, over a dead file server) keeps its place among the children and nobody waits for it.
func (d *Directory) child(ctx context.Context, k key) answer {
	late := answer{err: &NoAnswer{What: k.String(), For: d.patience}}
	select {
	case d.slots <- struct{}{}:
	case <-ctx.Done():
		return late
	}
	heard := make(chan answer, 1)
	go func() {
		defer func() { <-d.slots }()
		heard <- d.run(ctx, k)
	}()
	select {
	case a := <-heard:
		if ctx.Err() != nil && a.err != nil {
			return late
		}
		return a
	case <-ctx.Done():
		return late
	}
}

func (d *Directory) run(ctx context.Context, k key) answer {
	table := [...]string{"passwd", "passwd", "initgroups", "group", "group"}[k.kind]
	cmd := exec.CommandContext(ctx, d.getent, table, k.text)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}
	var out bytes.Buffer
	cmd.Stdout = &limited{b: &out}
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.As(err, &exit) && exit.ExitCode() == notFound:
		return answer{err: ErrUnknown} // or a host that has no such program, and so no directory
	case err != nil:
		return answer{err: &NoAnswer{What: k.String(), For: d.patience}}
	}
	line, _, _ := strings.Cut(out.String(), "\n")
	return k.read(line)
}

// read takes a line of getent for what it is; one that is not what was asked for is no answer to it.
func (k key) read(line string) (a answer) {
	switch k.kind {
	case byName, byUID:
		u, ok := parseUser(line)
		if !ok || !nameOK(u.Name) || k.kind == byUID && digits(u.UID) != k.text {
			return answer{err: ErrUnknown}
		}
		a.user = u
	case groupsOf:
		// The name first, padded; it may have blanks in it.
		rest, ok := strings.CutPrefix(line, k.text)
		if !ok {
			return answer{err: ErrUnknown}
		}
		for _, f := range strings.Fields(rest) {
			n, err := strconv.ParseUint(f, 10, 32)
			if err != nil {
				return answer{err: ErrUnknown}
			}
			a.groups = append(a.groups, uint32(n))
		}
	case byGID:
		g, ok := parseGroup(line)
		if !ok || digits(g.gid) != k.text {
			return answer{err: ErrUnknown}
		}
		a.name = g.name
	case byGroup:
		g, ok := parseGroup(line)
		if !ok || g.name != k.text {
			return answer{err: ErrUnknown}
		}
		a.gid = g.gid
	}
	return a
}

// limited keeps the first of what a child writes: a group of a directory may list everybody.
type limited struct{ b *bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if room := 1<<20 - l.b.Len(); room > 0 {
		l.b.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
