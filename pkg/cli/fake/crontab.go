package fake

import (
	"fmt"
	"net/http"
	"time"

	"gangd/pkg/api"
)

// putCrontab takes a table whose jobs are of known partitions.
func (c *Controller) putCrontab(r *http.Request) (any, error) {
	var req api.CrontabRequest
	if err := body(r, &req); err != nil {
		return nil, err
	}
	t := api.CrontabReply{SchemaVersion: api.SchemaVersion, Crontab: api.Crontab{User: req.User, Text: req.Text, Lines: []api.CronLine{}}}
	for i := range req.Jobs {
		j := &req.Jobs[i]
		if p := j.Spec.Partition; p != "" && c.partition(p) < 0 {
			return nil, api.Errorf(api.CodeInvalid, "no partition %q", p).About(api.ReasonCronLine, fmt.Sprintf("%d-%d", j.First, j.Last))
		}
		t.Lines = append(t.Lines, api.CronLine{First: j.First, Last: j.Last, JobID: int64(30 + i), Cron: api.Cron{Schedule: j.Spec.Name}, Next: Now.Add(time.Hour)})
	}
	c.Crontab = t
	return t, nil
}
