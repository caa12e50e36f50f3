package noded

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
)

// killsWait bounds how long the last word on a member waits for a line in its output: a file server may hang.
const killsWait = time.Second

// sayKills writes into the output of a member that the kernel has killed something of it for want of memory. The program
// may have said nothing, and its shell "Killed" at most.
func (m *member) sayKills(ctx context.Context, a *api.MemberActual) {
	if a.Kills == nil || m.spec == nil || len(m.spec.Ranks) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, killsWait)
	defer cancel()
	r, s := &m.spec.Ranks[0], m.spec
	err := m.d.AppendLog(ctx, api.LogAppend{Path: cmp.Or(r.Error, r.Output), UID: s.UID, GID: s.GID, User: s.User, Text: killsLine(m, a)})
	if err != nil {
		m.d.log.Info("a line about memory was not written", "job", m.key.Job, "epoch", m.key.Epoch, "err", err)
	}
}

// killsLine is what Slurm's tools look for where its names were used, and plain words elsewhere.
func killsLine(m *member, a *api.MemberActual) string {
	k := a.Kills
	if m.spec.LastWords {
		in := []string{fmt.Sprintf("%d.batch", m.key.Job)}
		for i := range a.Steps {
			if a.Steps[i].OOM {
				in = append(in, api.StepText(m.key.Job, a.Steps[i].ID))
			}
		}
		if len(in) > 1 {
			in = in[1:]
		}
		events := "1 oom_kill event"
		if k.Count > 1 {
			events = fmt.Sprintf("%d oom_kill events", k.Count)
		}
		return fmt.Sprintf("slurmstepd: error: Detected %s in StepId=%s. Some of the step tasks have been OOM Killed.\n", events,
			strings.Join(in, ","))
	}
	what := "a process was"
	if k.Count > 1 {
		what = fmt.Sprintf("%d processes were", k.Count)
	}
	text := fmt.Sprintf("gangd: %s killed on %s for want of memory", what, m.d.opts.Name)
	if k.Asked > 0 {
		text += fmt.Sprintf(", of which job %d has %s there", m.key.Job, cluster.Size(k.Asked))
	}
	return text + "\n"
}
