package client

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/url"
	"strconv"
	"strings"

	"gangd/pkg/api"
)

// maxEventLine bounds one event of the stream; a gang of 65,536 ranks names its exit
// codes in well under this.
const maxEventLine = 4 << 20

// FollowEvents calls fn with each event of a job (zero ref: of all) that comes after
// since (-1: from now on) until fn or the context ends it, or the controller goes away.
func (c *Client) FollowEvents(ctx context.Context, ref api.JobRef, since int64, fn func(api.Event) error) error {
	v := url.Values{"follow": {"1"}}
	if since >= 0 {
		v.Set("since", strconv.FormatInt(since, 10))
	}
	if ref != (api.JobRef{}) {
		v.Set("job", ref.String())
	}
	res, err := c.send(ctx, "GET", "/v1/events?"+v.Encode(), nil)
	if err != nil {
		return err
	}
	defer res.Close()
	sc := bufio.NewScanner(res)
	sc.Buffer(nil, maxEventLine)
	for sc.Scan() {
		data, ok := strings.CutPrefix(sc.Text(), "data: ")
		if !ok {
			continue // ids, comments and blank lines of the server-sent events format
		}
		var ev api.Event
		if err := json.Unmarshal([]byte(data), &ev); err != nil {
			return err
		}
		if err := fn(ev); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &UnreachableError{Socket: c.socket, Err: io.ErrUnexpectedEOF}
}

// Log copies the output of a job to w.
func (c *Client) Log(ctx context.Context, q *api.LogQuery, w io.Writer) error {
	v := url.Values{"job": {q.Ref.String()}, "rank": {strconv.Itoa(q.Rank)}}
	if q.Attempt > 0 {
		v.Set("attempt", strconv.Itoa(q.Attempt))
	}
	if q.Stderr {
		v.Set("stderr", "1")
	}
	if q.Follow {
		v.Set("follow", "1")
	}
	if q.Tail > 0 {
		v.Set("tail", strconv.FormatInt(q.Tail, 10))
	}
	res, err := c.send(ctx, "GET", "/v1/log?"+v.Encode(), nil)
	if err != nil {
		return err
	}
	defer res.Close()
	if _, err = io.Copy(w, res); err != nil {
		return err
	}
	// Bytes were already under way when the stream failed: the reason comes as a trailer.
	if text := res.trailer.Get("Gang-Error"); text != "" {
		e := new(api.Error)
		if json.Unmarshal([]byte(text), e) != nil {
			e = api.Errorf(api.CodeInternal, "%s", text)
		}
		return e
	}
	return nil
}
