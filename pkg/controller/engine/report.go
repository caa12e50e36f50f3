package engine

import (
	"context"
	"fmt"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/core/table/used"
)

// Report implements [notify.Outbox]. What the file itself says no to (there is none, its disk is full, it is a device) is
// final: the same is in gacct -e. A node that is away is tried again.
func (o *outbox) Report(ctx context.Context, l *api.Letter) error {
	err := o.e.report(ctx, l.JobID)
	switch api.CodeOf(err) {
	case api.CodeNotFound, api.CodePermission, api.CodeConflict:
		o.e.log.Info("no report was written", "job", l.JobID, "node", l.To, "err", err)
		return nil
	}
	return err
}

// report has written behind the output of rank 0 what the newest attempt of a job used.
func (e *Engine) report(ctx context.Context, id int64) error {
	j, err := e.One(ctx, api.JobRef{ID: id, Index: -1}, Caller{})
	if err != nil {
		return err
	}
	d, err := e.Detail(ctx, j)
	if err != nil {
		return err
	}
	places, err := e.logPlaces(ctx, j, 0, false)
	if err != nil {
		return err
	}
	at := places[len(places)-1]
	var text strings.Builder
	fmt.Fprintf(&text, "--- what job %s used, by gangd (gacct -e %[1]s) ---\n", j.Ref())
	used.Write(&text, &d.Job, &d.Attempts[len(d.Attempts)-1], e.opt.Clock.Now().Wall, false)
	return e.hub.AppendLog(ctx, at.node, api.LogAppend{Path: at.path, UID: j.UID, GID: j.GID, User: j.User, Text: text.String()})
}
