package client

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
)

// maxEventLine bounds one event of the stream; a gang of 65,536 ranks names its exit
// codes in well under this.
const maxEventLine = 4 << 20

// FollowEvents calls fn with each event of a job (zero ref: of all) that comes after
// since (-1: from now on) until fn or the context ends it, or the controller goes away.
func (c *Client) FollowEvents(ctx context.Context, ref api.JobRef, since int64, fn func(api.Event) error) error {
	return c.followEvents(ctx, ref, since, func(int64) {}, fn)
}

// ResumeEvents is FollowEvents that goes on behind the last event when the controller was
// restarted; lost is called each time it has gone away.
func (c *Client) ResumeEvents(ctx context.Context, ref api.JobRef, since int64, lost func(), fn func(api.Event) error) error {
	return insist(ctx, false, lost, func() (began bool, err error) {
		err = c.followEvents(ctx, ref, since, func(after int64) { began, since = true, after }, func(ev api.Event) error {
			since = ev.Seq
			return fn(ev)
		})
		return began, err
	})
}

// afterPrefix begins the comment with which a stream of events opens: behind which one it is.
const afterPrefix = ": after "

func (c *Client) followEvents(ctx context.Context, ref api.JobRef, since int64, began func(after int64), fn func(api.Event) error) error {
	v := url.Values{"follow": {"1"}}
	if since >= 0 {
		v.Set("since", strconv.FormatInt(since, 10))
	}
	if ref != (api.JobRef{}) {
		v.Set("job", ref.String())
	}
	res, err := c.send(ctx, lasting, "GET", "/v1/events?"+v.Encode(), nil)
	if err != nil {
		return err
	}
	defer res.Close()
	sc := bufio.NewScanner(res)
	sc.Buffer(nil, maxEventLine)
	for sc.Scan() {
		if text, ok := strings.CutPrefix(sc.Text(), afterPrefix); ok {
			if n, err := strconv.ParseInt(text, 10, 64); err == nil {
				began(n)
			}
			continue
		}
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
	return &UnreachableError{Socket: c.socket, Err: cmp.Or(sc.Err(), io.ErrUnexpectedEOF)}
}

// followPatience is how long a follower bears a controller that does not answer: an upgrade
// or a fail-over takes seconds, and what is followed goes on meanwhile.
const followPatience = 15 * time.Minute

// insist calls f again while the controller restarts. lost is told once each time the
// controller went away; began says that f was in touch with it. A controller that was never
// there is waited for only when the caller has reason to: known.
func insist(ctx context.Context, known bool, lost func(), f func() (began bool, err error)) error {
	var since time.Time // no controller has answered, zero: it does
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		began, err := f()
		known = known || began
		if err == nil || !known || !restarting(err) || ctx.Err() != nil {
			return err
		}
		if began || since.IsZero() {
			lost()
			since, pause = time.Now(), 50*time.Millisecond
		}
		if time.Since(since) > followPatience {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// FollowLog copies the output of a job to w until the job ends, without loss or repeat
// across restarts of the controller; lost is called each time it has gone away. known: the
// controller was there a moment ago.
func (c *Client) FollowLog(ctx context.Context, q api.LogQuery, w io.Writer, known bool, lost func()) error {
	q.Follow = true
	return insist(ctx, known, lost, func() (began bool, err error) {
		v := logValues(&q)
		v.Set("positions", "1")
		res, err := c.send(ctx, lasting, "GET", "/v1/log?"+v.Encode(), nil)
		if err != nil {
			return false, err
		}
		defer res.Close()
		if err := copyPieces(w, bufio.NewReader(res), &q.From); err != nil {
			var mine *finalError
			if errors.As(err, &mine) || ctx.Err() != nil {
				return true, err
			}
			return true, &UnreachableError{Socket: c.socket, Err: err}
		}
		return true, trailerError(res)
	})
}

// finalError is one that another try does not mend: of whoever reads what was followed, or of
// a controller that does not speak of positions.
type finalError struct{ error }

func (e *finalError) Unwrap() error { return e.error }

func noPosition(line []byte) error {
	return &finalError{fmt.Errorf("the controller's answer is no log with positions: %.40q", line)}
}

// copyPieces copies pieces with their positions, and keeps the position of the next byte.
func copyPieces(w io.Writer, r *bufio.Reader, at *api.LogPosition) error {
	for {
		line, err := r.ReadSlice('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return nil
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			return noPosition(line)
		}
		if err != nil {
			return unexpected(err)
		}
		var next api.LogPosition
		var n int64
		if _, err := fmt.Sscanf(string(line), "%d %d %d\n", &next.Epoch, &next.Offset, &n); err != nil || n < 0 {
			return noPosition(line)
		}
		*at = next
		for n > 0 {
			if _, err := r.Peek(1); err != nil {
				return unexpected(err)
			}
			b, _ := r.Peek(int(min(n, int64(r.Buffered())))) // what is there
			done, err := w.Write(b)
			at.Offset, n = at.Offset+int64(done), n-int64(done)
			if err != nil {
				return &finalError{err}
			}
			_, _ = r.Discard(done)
		}
	}
}

// FollowLogs calls fn with what several ranks of a job write, as it comes, until the job ends; ranks
// is as "0,2-4", empty: each that writes a file of its own. With once it ends with what there is. A
// piece without data is the last of its rank.
func (c *Client) FollowLogs(ctx context.Context, q api.LogQuery, ranks string, once bool, lost func(), fn func(*api.LogPiece) error) error {
	at := map[int]*api.LogPiece{}
	over := map[int]bool{}
	return insist(ctx, false, lost, func() (began bool, err error) {
		v := logValues(&q)
		v.Del("rank")
		if ranks != "" {
			v.Set("ranks", ranks)
		}
		if once {
			v.Set("once", "1")
		}
		var from []string
		for _, rank := range slices.Sorted(maps.Keys(at)) {
			from = append(from, fmt.Sprintf("%d:%d:%d", rank, at[rank].Epoch, at[rank].Offset))
		}
		if from != nil {
			v.Set("from", strings.Join(from, ","))
		}
		res, err := c.send(ctx, lasting, "GET", "/v1/logs?"+v.Encode(), nil)
		if err != nil {
			return false, err
		}
		defer res.Close()
		return true, c.logPieces(ctx, res, func(event string, p *api.LogPiece) error {
			if over[p.Rank] {
				return nil
			}
			if over[p.Rank] = event == "over"; !over[p.Rank] && !once {
				at[p.Rank] = &api.LogPiece{Epoch: p.Epoch, Offset: p.Offset}
			}
			if err := fn(p); err != nil {
				return &finalError{err}
			}
			return nil
		})
	})
}

// logPieces reads the events of a stream of logs until its end.
func (c *Client) logPieces(ctx context.Context, r io.Reader, fn func(event string, p *api.LogPiece) error) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, maxEventLine)
	event := ""
	for sc.Scan() {
		if name, ok := strings.CutPrefix(sc.Text(), "event: "); ok {
			event = name
			continue
		}
		data, ok := strings.CutPrefix(sc.Text(), "data: ")
		if !ok {
			continue // comments, and the blank line behind each event
		}
		if event == "end" {
			return nil
		}
		p := new(api.LogPiece)
		if err := json.Unmarshal([]byte(data), p); err != nil {
			return &finalError{err}
		}
		if err := fn(event, p); err != nil {
			return err
		}
		event = ""
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &UnreachableError{Socket: c.socket, Err: cmp.Or(sc.Err(), io.ErrUnexpectedEOF)}
}

// Log copies the output of a job to w.
func (c *Client) Log(ctx context.Context, q *api.LogQuery, w io.Writer) error {
	res, err := c.send(ctx, lasting, "GET", "/v1/log?"+logValues(q).Encode(), nil)
	if err != nil {
		return err
	}
	defer res.Close()
	if _, err = io.Copy(w, res); Silent(err) {
		return &UnreachableError{Socket: c.socket, Err: err}
	}
	if err != nil {
		return err
	}
	return trailerError(res)
}

func logValues(q *api.LogQuery) url.Values {
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
	if q.From.Epoch > 0 {
		v.Set("from_epoch", strconv.Itoa(q.From.Epoch))
		v.Set("from_offset", strconv.FormatInt(q.From.Offset, 10))
	}
	return v
}

// trailerError is why an answer broke off whose bytes were already under way.
func trailerError(res *response) error {
	if text := res.trailer.Get("Gang-Error"); text != "" {
		e := new(api.Error)
		if json.Unmarshal([]byte(text), e) != nil {
			e = api.Errorf(api.CodeInternal, "%s", text)
		}
		return e
	}
	return nil
}
