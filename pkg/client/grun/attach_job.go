package grun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/client/program"
	"gangd/pkg/wire/stepwire"
)

// job shows what the script of a job writes, or all ranks of a gang, until it ends, and ends as it did.
// What goes to files is read from there, whichever node wrote them.
func (v *viewer) job(ctx context.Context, ref api.JobRef) error {
	if v.layout || v.input != "" {
		return program.Usagef("--layout and --input-filter are about the tasks of a step: name one, as in %s.0", ref)
	}
	c := client.New()
	d, err := c.Job(ctx, ref)
	if err != nil {
		return err
	}
	if d.Job.State.Ended() {
		return api.Errorf(api.CodeAlreadyEnded, "job %s has ended: %s; its output is shown by glog %s", ref, d.Job.State, ref)
	}
	lost := func() { fmt.Fprintf(v.err, "%s: the controller does not answer; waiting for it\n", v.name) }
	follow := func(filterText string, errors bool, w io.Writer) error {
		only, none, err := filter(filterText)
		if none || err != nil {
			return err
		}
		ranks := ""
		if only >= 0 {
			ranks = strconv.Itoa(only)
		}
		return c.FollowLogs(ctx, api.LogQuery{Ref: ref, Follow: true, Stderr: errors}, ranks, false, lost, func(p *api.LogPiece) error {
			if p.Error != "" {
				fmt.Fprintf(v.err, "%s: rank %d: %s\n", v.name, p.Rank, p.Error)
			}
			data := p.Data
			if v.label && len(data) > 0 {
				data = stepwire.Label(uint32(p.Rank), d.Job.Size, data)
			}
			_, err := w.Write(data)
			return err
		})
	}
	done := make(chan error, 1)
	apart := d.Job.StdErr != "" && d.Job.StdErr != d.Job.StdOut
	go func() {
		if apart {
			done <- follow(v.errs, true, v.err)
			return
		}
		done <- nil
	}()
	err = errors.Join(follow(v.output, false, v.out), <-done)
	if err != nil {
		return err
	}
	if d, err = c.Wait(ctx, ref); err != nil {
		return err
	}
	switch j := &d.Job; {
	case j.Signal != 0:
		return &program.ExitError{Status: 128 + j.Signal}
	case j.ExitCode != nil && *j.ExitCode != 0:
		return &program.ExitError{Status: *j.ExitCode}
	}
	return nil
}
