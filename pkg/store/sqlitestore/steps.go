package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"

	"gangd/pkg/api"
	"gangd/pkg/store/internal/row"
)

func (s *Store) steps(all []api.Step) error {
	for i := range all {
		st := &all[i]
		number, err := strconv.ParseInt(st.StepID, 10, 64)
		if err != nil {
			return fmt.Errorf("step %q of job %d has no number", st.StepID, st.JobID)
		}
		data, err := row.Step(st)
		if err != nil {
			return err
		}
		if err := s.st.step.run(st.JobID, int64(st.Epoch), number, sealed(data, rowName("step", st.JobID, int64(st.Epoch), number))); err != nil {
			return err
		}
	}
	return nil
}

// Steps reads the ended steps of a job, oldest first.
func (s *Store) Steps(ctx context.Context, job int64) ([]api.Step, error) {
	var out []api.Step
	err := s.reading(ctx, func(r *reader) error {
		return r.each(func(scan func(...any) error) error {
			var epoch, number int64
			var data sql.RawBytes
			if err := scan(&epoch, &number, &data); err != nil {
				return err
			}
			if err := intact(data, rowName("step", job, epoch, number)); err != nil {
				return err
			}
			st, err := row.DecodeStep(job, data)
			out = append(out, st)
			return err
		}, "SELECT epoch, step, data FROM step WHERE job = ?1 ORDER BY epoch, step", job)
	})
	if err != nil {
		return nil, fmt.Errorf("steps of job %d: %w", job, err)
	}
	return out, nil
}
