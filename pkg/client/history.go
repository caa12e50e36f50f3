package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"gangd/pkg/api"
)

// History calls fn with each job that a query selects, by id, with its attempts. Where the answer breaks off, those that are
// missing come from the next.
func (c *Client) History(ctx context.Context, q *api.HistoryQuery, fn func(*api.JobDetail) error) error {
	last := int64(0) // that fn was called with
	return c.read(ctx, lasting, "POST", "/v1/history", q, func(res *response) error {
		for lines := json.NewDecoder(res); ; {
			d := new(api.JobDetail)
			err := lines.Decode(d)
			if errors.Is(err, io.EOF) {
				return trailerError(res)
			}
			if err != nil {
				return brokeOff(err)
			}
			if d.Job.JobID <= last {
				continue
			}
			last = d.Job.JobID
			if err := fn(d); err != nil {
				return err
			}
		}
	})
}

// maxScript bounds a script that is read back.
const maxScript = api.MaxScriptBytes + 1

// Script is what was submitted as a job.
func (c *Client) Script(ctx context.Context, ref api.JobRef) (text []byte, err error) {
	err = c.read(ctx, brief, "GET", "/v1/jobs/"+ref.String()+"/script", nil, func(res *response) (err error) {
		text, err = io.ReadAll(io.LimitReader(res, maxScript))
		return brokeOff(err)
	})
	return text, err
}
