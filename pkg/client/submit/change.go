package submit

import (
	"context"
	"path/filepath"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/core/script"
)

// Change adds to an update of jobs what they ask for from now on: as they were asked for, with these options (--NAME=VALUE;
// an empty value takes one back) in the place of those that say the same. All of an array were asked for in the same words.
func Change(ctx context.Context, c *client.Client, r *api.UpdateRequest, options []string) ([]script.Warning, error) {
	q := r.JobQuery
	q.NoRanks = true
	reply, err := c.Jobs(ctx, &q)
	if err != nil {
		return nil, err
	}
	var words []string
	if len(reply.Jobs) > 0 { // who is not there is said by the update
		words = reply.Jobs[0].Words
	}
	req, which, warn, err := script.Change(words, options, time.Now())
	if err != nil {
		return nil, err
	}
	if dir := req.Chdir; dir != "" {
		if req.Spec.WorkDir, err = filepath.Abs(dir); err != nil {
			return nil, err
		}
	}
	req.Spec.Pack()
	r.Ask, r.Parts = &req.Spec, which
	return warn, nil
}
