package fake

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"gangd/pkg/api"
)

// eventsPage is a small page, so that a story of a few events has more than one.
const eventsPage = 2

// events lists, or with follow streams until the caller goes away.
func (c *Controller) events(w http.ResponseWriter, r *http.Request) {
	v := r.URL.Query()
	c.Lock()
	var job int64
	if text := v.Get("job"); text != "" {
		j, err := c.one(text)
		if err != nil {
			c.Unlock()
			refuse(w, err)
			return
		}
		job = j.JobID
	}
	since, err := strconv.ParseInt(v.Get("since"), 10, 64)
	if err != nil {
		since = int64(len(c.Events))
	}
	c.Unlock()
	if v.Get("follow") == "" {
		evs, _ := c.after(since, job)
		limit := eventsPage
		if n, err := strconv.Atoi(v.Get("limit")); err == nil {
			limit = min(n, limit)
		}
		page := api.EventsReply{SchemaVersion: api.SchemaVersion, Events: append([]api.Event{}, evs[:min(len(evs), limit)]...), More: len(evs) > limit}
		_ = json.NewEncoder(w).Encode(page)
		return
	}
	fmt.Fprintf(w, ": after %d\n\n", since)
	c.Followed <- struct{}{}
	follow(w, r, func() <-chan struct{} {
		evs, next := c.after(since, job)
		for i := range evs {
			b, _ := json.Marshal(&evs[i])
			fmt.Fprintf(w, "id: %d\ndata: %s\n\n", evs[i].Seq, b)
			since = evs[i].Seq
		}
		return next
	})
}

// live tells all jobs and nodes, and again whenever something has changed.
func (c *Controller) live(w http.ResponseWriter, r *http.Request) {
	follow(w, r, func() <-chan struct{} {
		c.Lock()
		defer c.Unlock()
		nodes, _ := json.Marshal(c.Nodes)
		fmt.Fprint(w, "event: all\n")
		for line := range bytes.Lines(lines(c.Jobs)) {
			fmt.Fprintf(w, "data: %s", line)
		}
		fmt.Fprintf(w, "\nevent: nodes\ndata: %s\n\n", nodes)
		return c.changed
	})
}

// follow tells, and again when what tell gives is closed, until the caller goes away.
func follow(w http.ResponseWriter, r *http.Request, tell func() <-chan struct{}) {
	for {
		next := tell()
		_ = http.NewResponseController(w).Flush()
		select {
		case <-next:
		case <-r.Context().Done():
			return
		}
	}
}

// after gives the events above since, and what is closed at the next one.
func (c *Controller) after(since, job int64) ([]api.Event, <-chan struct{}) {
	c.Lock()
	defer c.Unlock()
	var out []api.Event
	for _, ev := range c.Events {
		if ev.Seq > since && (job == 0 || ev.JobID == job) {
			out = append(out, ev)
		}
	}
	return out, c.changed
}

// logs answers the texts kept for the newest attempt, a piece for each rank that has one.
func (c *Controller) logs(w http.ResponseWriter, r *http.Request) {
	c.Lock()
	defer c.Unlock()
	v := r.URL.Query()
	c.Asked = append(c.Asked, "GET /v1/logs?"+v.Encode())
	j, err := c.one(v.Get("job"))
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for rank := range j.Size {
		piece := api.LogPiece{Rank: rank, Error: "its node is lost"}
		if text, ok := c.Logs[fmt.Sprintf("%d/%d/%d", j.JobID, rank, j.Epoch)]; ok {
			b, _ := json.Marshal(api.LogPiece{Rank: rank, Epoch: j.Epoch, Data: []byte(text)})
			fmt.Fprintf(w, "data: %s\n\n", b)
			piece.Error = ""
		}
		b, _ := json.Marshal(piece)
		fmt.Fprintf(w, "event: over\ndata: %s\n\n", b)
	}
	fmt.Fprint(w, "event: end\ndata: {}\n\n")
}

// log answers the text kept for the job, rank and attempt.
func (c *Controller) log(w http.ResponseWriter, r *http.Request) {
	c.Lock()
	defer c.Unlock()
	v := r.URL.Query()
	c.Asked = append(c.Asked, "GET /v1/log?"+v.Encode())
	j, err := c.one(v.Get("job"))
	if err != nil {
		refuse(w, err)
		return
	}
	rank, attempt := v.Get("rank"), v.Get("attempt")
	if rank == "-1" {
		rank = "0"
	}
	if attempt == "" {
		attempt = strconv.Itoa(j.Epoch)
	}
	text, ok := c.Logs[fmt.Sprintf("%d/%s/%s", j.JobID, rank, attempt)]
	if !ok {
		refuse(w, api.Errorf(api.CodeNotFound, "job %d has no rank %s in attempt %s", j.JobID, rank, attempt))
		return
	}
	if n, _ := strconv.Atoi(v.Get("tail")); n > 0 && n < len(text) {
		text = text[len(text)-n:]
	}
	if v.Get("positions") != "" {
		fmt.Fprintf(w, "%d 0 %d\n", j.Epoch, len(text))
	}
	_, _ = io.WriteString(w, text)
}
