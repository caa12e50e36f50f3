package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"gangd/pkg/api"
)

// History calls fn with each job that a query selects, by id, with its attempts.
func (c *Client) History(ctx context.Context, q *api.HistoryQuery, fn func(*api.JobDetail) error) error {
	res, err := c.send(ctx, lasting, "POST", "/v1/history", q)
	if err != nil {
		return err
	}
	defer res.Close()
	for lines := json.NewDecoder(res); ; {
		d := new(api.JobDetail)
		err := lines.Decode(d)
		if errors.Is(err, io.EOF) {
			return trailerError(res)
		}
		if err != nil {
			return &UnreachableError{Socket: c.socket, Err: fmt.Errorf("the answer broke off: %w", err)}
		}
		if err := fn(d); err != nil {
			return err
		}
	}
}

// maxScript bounds a script that is read back.
const maxScript = api.MaxScriptBytes + 1

// Script is what was submitted as a job.
func (c *Client) Script(ctx context.Context, ref api.JobRef) ([]byte, error) {
	res, err := c.send(ctx, brief, "GET", "/v1/jobs/"+ref.String()+"/script", nil)
	if err != nil {
		return nil, err
	}
	defer res.Close()
	b, err := io.ReadAll(io.LimitReader(res, maxScript))
	if err != nil {
		return nil, &UnreachableError{Socket: c.socket, Err: fmt.Errorf("the answer broke off: %w", err)}
	}
	return b, nil
}
