package hosts

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"gangd/e2e/trial"
	"gangd/pkg/api"
)

const patience = trial.Patience

// client is a person on the controller's host.
func (l *lab) client() *trial.Client {
	return &trial.Client{T: l.t, Bin: l.bin, Dir: l.dir, Tmp: l.tmp}
}

// run runs a command of a person on the controller's host.
func (l *lab) run(name string, args ...string) (stdout, stderr string, code int) {
	return l.client().Run(name, args...)
}

// must runs a command that has to succeed.
func (l *lab) must(name string, args ...string) string {
	l.t.Helper()
	return l.client().Must(name, args...)
}

// submit queues a job without output and gives its id.
func (l *lab) submit(args ...string) int64 {
	l.t.Helper()
	return l.client().Submit(append([]string{"-o", "/dev/null"}, args...)...)
}

// job shows one job, an ended one too.
func (l *lab) job(id int64) api.Job {
	l.t.Helper()
	return l.client().Job(id)
}

// wait waits until a job is in one of the states.
func (l *lab) wait(id int64, states ...api.JobState) api.Job {
	l.t.Helper()
	return l.client().Wait(id, states...)
}

// until polls a condition that something else brings about.
func (l *lab) until(what string, ok func() bool) {
	l.t.Helper()
	l.within(patience, what, ok)
}

func (l *lab) within(limit time.Duration, what string, ok func() bool) {
	l.t.Helper()
	l.client().Until(limit, what, ok)
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
		l.client().Decode(&r, "gctl", "events", "--json", fmt.Sprintf("--since=%d", since))
		if len(r.Events) == 0 {
			return all
		}
		all = append(all, r.Events...)
	}
}

func (l *lab) story(id int64) string { return l.client().Story(id) }

func (l *lab) node(name string) api.Node {
	l.t.Helper()
	for _, n := range l.client().Nodes() {
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
