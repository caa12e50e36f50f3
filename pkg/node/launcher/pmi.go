package launcher

import (
	"time"

	"gangd/pkg/api"
	"gangd/pkg/wire/pmi"
	"gangd/pkg/wire/stepwire"
)

// servePMI makes the server of the tasks here, where the step asks for one.
func (l *launcher) servePMI() {
	b := l.body
	if b.PMIx {
		l.servePMIx()
	}
	if !b.PMI {
		return
	}
	o := pmi.Options{Job: api.StepText(b.Reply.JobID, b.Reply.StepID), Piece: stepwire.MaxData, Fence: l.fence, Abort: l.aborts}
	for i := range b.Reply.Nodes {
		o.Nodes = append(o.Nodes, b.Reply.Nodes[i].Tasks)
	}
	l.pmi = pmi.New(o, b.Part)
}

// fence tells the client that the tasks here wait for the others, and what they published.
func (l *launcher) fence(pieces [][]byte) {
	for _, p := range pieces {
		_ = l.conn.Send(stepwire.Publish, stepwire.AllTasks, p)
	}
	_ = l.conn.Send(stepwire.Fence, stepwire.AllTasks, nil)
}

// fenced is the client's answer.
func (l *launcher) fenced(f stepwire.Frame) {
	switch {
	case l.pmix != nil:
		l.pmix.fenced(f)
	case l.pmi == nil:
	case f.Type == stepwire.Fence:
		go l.pmi.Passed() // a task may be slow to read
	default:
		if err := l.pmi.Publish(f.Data); err != nil {
			l.abort(l.body.Reply.Nodes[l.body.Part].Tasks[0], err.Error())
		}
	}
}

// aborts notes that a task wants the step to end, which is how the task itself has ended, whatever ends its process.
func (l *launcher) aborts(number int, text string) {
	l.mu.Lock()
	for _, t := range l.tasks {
		if t.number == number && t.aborted == "" {
			t.aborted, t.abortedAt = text, time.Now()
		}
	}
	l.mu.Unlock()
	l.abort(number, text)
}

// abort has the client end the step: only it may decide so.
func (l *launcher) abort(task int, text string) {
	go func() { _ = l.conn.Send(stepwire.Abort, uint32(task), []byte(text)) }()
}
