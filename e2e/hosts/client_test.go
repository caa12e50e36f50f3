package hosts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
)

// run runs a command of a person on the controller's host.
func (l *lab) run(name string, args ...string) (stdout, stderr string, code int) {
	cmd := exec.Command(filepath.Join(l.bin, name), args...)
	cmd.Dir = l.tmp
	cmd.Env = append(os.Environ(), "GANG_DIR="+l.dir)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return out.String(), err.Error(), -1
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// must runs a command that has to succeed.
func (l *lab) must(name string, args ...string) string {
	l.t.Helper()
	out, errs, code := l.run(name, args...)
	if code != 0 {
		l.t.Fatalf("%s %s: exit %d\n%s%s", name, strings.Join(args, " "), code, out, errs)
	}
	return out
}

// submit queues a job and gives its id.
func (l *lab) submit(args ...string) int64 {
	l.t.Helper()
	out := strings.TrimSpace(l.must("gsubmit", append([]string{"--parsable", "-o", "/dev/null"}, args...)...))
	id, err := strconv.ParseInt(out, 10, 64)
	if err != nil {
		l.t.Fatalf("gsubmit --parsable printed %q", out)
	}
	return id
}

func (l *lab) decode(v any, name string, args ...string) {
	l.t.Helper()
	out := l.must(name, args...)
	if err := json.Unmarshal([]byte(out), v); err != nil {
		l.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// job shows one job, an ended one too.
func (l *lab) job(id int64) api.Job {
	l.t.Helper()
	var r api.JobsReply
	l.decode(&r, "gqueue", "--json", "-t", "all", "-j", fmt.Sprint(id))
	if len(r.Jobs) != 1 {
		l.t.Fatalf("%d jobs have the id %d", len(r.Jobs), id)
	}
	return r.Jobs[0]
}

// wait waits until a job is in one of the states.
func (l *lab) wait(id int64, states ...api.JobState) api.Job {
	l.t.Helper()
	var j api.Job
	l.until(fmt.Sprintf("job %d is %v", id, states), func() bool {
		j = l.job(id)
		if j.State.Ended() && !slices.Contains(states, j.State) {
			l.t.Fatalf("job %d ended %s (%s: %s), want %v\n%s", id, j.State, j.Cause, j.Verdict, states, l.story(id))
		}
		return slices.Contains(states, j.State)
	})
	return j
}

// until polls a condition that something else brings about.
func (l *lab) until(what string, ok func() bool) {
	l.t.Helper()
	l.within(patience, what, ok)
}

func (l *lab) within(limit time.Duration, what string, ok func() bool) {
	l.t.Helper()
	for give := time.Now().Add(limit); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(give) {
			out, _, _ := l.run("gqueue", "-t", "all")
			l.t.Fatalf("after %s still not: %s\n%s", limit, what, out)
		}
	}
}

// events is the story of all jobs from the beginning, in pages.
func (l *lab) events() []api.Event {
	l.t.Helper()
	var all []api.Event
	for {
		var r api.EventsReply
		since := int64(0)
		if len(all) > 0 {
			since = all[len(all)-1].Seq
		}
		l.decode(&r, "gctl", "events", "--json", fmt.Sprintf("--since=%d", since))
		if len(r.Events) == 0 {
			return all
		}
		all = append(all, r.Events...)
	}
}

func (l *lab) story(id int64) string {
	out, _, _ := l.run("gctl", "events", fmt.Sprint(id))
	return out
}

func (l *lab) node(name string) api.Node {
	l.t.Helper()
	var r api.NodesReply
	l.decode(&r, "ginfo", "--json")
	for _, n := range r.Nodes {
		if n.Name == name {
			return n
		}
	}
	return api.Node{} // not seen yet
}

func (l *lab) untilNode(name string, state api.NodeState) {
	l.t.Helper()
	l.until(fmt.Sprintf("%s is %s", name, state), func() bool { return l.node(name).State == state })
}

// touch makes a file that ranks wait for.
func (l *lab) touch(name string) {
	l.t.Helper()
	if err := os.WriteFile(filepath.Join(l.tmp, name), nil, 0o644); err != nil {
		l.t.Fatal(err)
	}
}
