package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"gangd/pkg/api"
	"gangd/pkg/controller/store/internal/row"
)

// Steps reads the ended steps of a job, oldest first.
func (s *Store) Steps(ctx context.Context, job int64) ([]api.Step, error) {
	var out []api.Step
	err := s.db.Reading(ctx, func(r *Reader) error {
		return r.Each(func(scan func(...any) error) error {
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
		}, "SELECT epoch, step, data FROM step WHERE job = $1 ORDER BY epoch, step", job)
	})
	if err != nil {
		return nil, fmt.Errorf("steps of job %d: %w", job, err)
	}
	return out, nil
}
