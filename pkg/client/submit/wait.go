package submit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/client/output"
	"gangd/pkg/client/program"
	"gangd/pkg/client/statusline"
	"gangd/pkg/core/table/column"
)

// waitPatience is how long --wait bears a controller that does not answer: an upgrade or a
// fail-over takes seconds, and the job runs on meanwhile.
const waitPatience = 15 * time.Minute

// attend stays with a job until its end and ends as it did. A person who interrupts it
// leaves the job alone.
func (s *submission) attend(ctx context.Context, id int64) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	line := s.statusLine()
	defer line.Follow(ctx, s.client, id)()
	s.out, s.err = line.Over(s.out), line.Over(s.err)
	if s.req.Follow {
		err := s.follow(ctx, id)
		if err != nil && ctx.Err() == nil {
			s.warn("the output broke off: %v; see all of it: glog %d", err, id)
		}
	}
	status := 0
	for _, ref := range refsOf(id, s.req.Array) {
		job, err := s.end(ctx, ref)
		if ctx.Err() != nil {
			text := jobText(id, s.req.Array)
			return &program.ExitError{Status: 130, Err: fmt.Errorf("interrupted; %s goes on: gcancel %d ends it", text, id)}
		}
		if err != nil {
			return err
		}
		status = max(status, s.exitStatus(ref, job)) // of an array the highest, as sbatch
	}
	if status != 0 {
		return &program.ExitError{Status: status}
	}
	return nil
}

// follow copies the output of a job as it comes, of a gang that of all ranks.
func (s *submission) follow(ctx context.Context, id int64) error {
	q := api.LogQuery{Ref: api.JobRef{ID: id, Index: -1}, Rank: -1}
	lost := func() { s.warn("the controller does not answer; waiting for it, job %d runs on", id) }
	if s.req.Spec.Launch == api.LaunchBatch || s.req.Spec.Size <= 1 {
		return s.client.FollowLog(ctx, q, s.out, true, lost)
	}
	ranks := &output.Ranks{W: s.out, Size: s.req.Spec.Size}
	q.Follow = true
	return s.client.FollowLogs(ctx, q, "", false, lost, func(p *api.LogPiece) error {
		if p.Error != "" {
			s.warn("rank %d: %s", p.Rank, p.Error)
		}
		return ranks.Print(p.Rank, p.Data)
	})
}

// statusLine is where it shows how the job stands meanwhile; nil: nowhere.
func (s *submission) statusLine() *statusline.Line {
	if s.req.NoProgress || s.req.Quiet || s.silent {
		return nil
	}
	return statusline.Open(s.err)
}

// refsOf names every job of a submission.
func refsOf(id int64, a *api.Array) []api.JobRef {
	if a == nil {
		return []api.JobRef{{ID: id, Index: -1}}
	}
	refs := make([]api.JobRef, len(a.Indices))
	for i, index := range a.Indices {
		refs[i] = api.JobRef{ID: id, Index: index}
	}
	return refs
}

// end waits for one job, across restarts of the controller.
func (s *submission) end(ctx context.Context, ref api.JobRef) (*api.Job, error) {
	var lost time.Time // since when no controller has answered, zero: it does
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		began := time.Now()
		d, err := s.client.Wait(ctx, ref)
		if err == nil {
			return &d.Job, nil
		}
		var u *client.UnreachableError
		if !errors.As(err, &u) && api.CodeOf(err) != api.CodeUnavailable {
			return nil, err
		}
		// A call that was held open for a while had a controller behind it until now.
		if lost.IsZero() || time.Since(began) > time.Second {
			s.warn("the controller does not answer; waiting for it, job %s runs on", ref)
			lost, pause = time.Now(), 50*time.Millisecond
		}
		if time.Since(lost) > waitPatience {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// exitStatus is the job's own, 128+N after signal N, and 1 for one that ended without
// either. What went wrong is said on stderr.
func (s *submission) exitStatus(ref api.JobRef, j *api.Job) int {
	if j.State != api.JobCompleted && !s.req.Quiet && !s.silent {
		text := j.Verdict
		if text == "" {
			text = string(j.Cause)
		}
		if text != "" {
			text = ": " + text
		}
		fmt.Fprintf(s.err, "gsubmit: job %s %s%s\n", ref, j.State, column.Printable(text))
	}
	switch {
	case j.Signal > 0:
		return 128 + j.Signal
	case j.ExitCode != nil && *j.ExitCode != 0:
		return *j.ExitCode
	case j.State != api.JobCompleted:
		return 1
	}
	return 0
}
