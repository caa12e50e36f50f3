package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/wire/auth"
)

// logsOf streams the output of several ranks of a job as server-sent events, each with its rank and
// position: a browser may hold few connections to a host.
func (s *Server) logsOf(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	v := r.URL.Query()
	j, err := s.job(r, v.Get("job"), auth.OpLog, id)
	if err != nil {
		return err
	}
	stderr, follow := v.Get("stderr") != "", v.Get("once") == ""
	ranks := s.Engine.LogRanks(j, stderr)
	ranks = ranks[:min(len(ranks), maxLogRanks)]
	if text := v.Get("ranks"); text != "" {
		if ranks, err = logRanks(text, len(j.Ranks)); err != nil {
			return err
		}
	}
	tail, err := number(v, "tail", 0, 1)
	if err != nil {
		return err
	}
	from, err := logPositions(v.Get("from"))
	if err != nil {
		return err
	}
	done, err := s.stream(r, id)
	if err != nil {
		return err
	}
	defer done()
	ref, err := api.ParseJobRef(v.Get("job"))
	if err != nil {
		return err
	}
	out := beginEvents(w)
	m := &mergedLogs{w: w, out: out}
	_ = m.send(": begin\n\n")
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	var group sync.WaitGroup
	for _, rank := range ranks {
		q := &api.LogQuery{Ref: ref, Rank: rank, Stderr: stderr, Follow: follow, Tail: tail, From: from[rank]}
		group.Go(func() {
			err := s.Engine.Log(ctx, j, q, s.Sessions, &rankLog{m: m, rank: rank, cancel: cancel})
			if ctx.Err() == nil {
				m.over(rank, err)
			}
		})
	}
	ended := make(chan struct{})
	go func() { group.Wait(); close(ended) }()
	beat := time.NewTicker(liveBeat)
	defer beat.Stop()
	for {
		select {
		case <-ended:
			_ = m.send("event: end\ndata: {}\n\n")
			return nil
		case <-beat.C:
			if m.send(": alive\n\n") != nil {
				cancel()
				<-ended
				return nil
			}
		}
	}
}

// maxLogRanks bounds how many ranks one stream follows: each is a file that a node reads.
const maxLogRanks = 64

// logRanks reads "0,2-4".
func logRanks(text string, size int) ([]int, error) {
	var out []int
	for part := range strings.SplitSeq(text, ",") {
		low, high, is := strings.Cut(part, "-")
		a, err1 := strconv.Atoi(low)
		b, err2 := a, error(nil)
		if is {
			b, err2 = strconv.Atoi(high)
		}
		if err1 != nil || err2 != nil || a < 0 || b < a || b >= size {
			return nil, api.Errorf(api.CodeInvalid, "ranks=%q: want ranks from 0 to %d, such as 0,2-3", text, size-1)
		}
		if len(out)+b-a >= maxLogRanks {
			return nil, api.Errorf(api.CodeInvalid, "ranks=%q: one stream follows at most %d ranks", text, maxLogRanks)
		}
		for rank := a; rank <= b; rank++ {
			if !slices.Contains(out, rank) {
				out = append(out, rank)
			}
		}
	}
	return out, nil
}

// logPositions reads "RANK:EPOCH:OFFSET,...": where to go on.
func logPositions(text string) (map[int]api.LogPosition, error) {
	out := map[int]api.LogPosition{}
	if text == "" {
		return out, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		var rank int
		var at api.LogPosition
		if n, err := fmt.Sscanf(part, "%d:%d:%d", &rank, &at.Epoch, &at.Offset); err != nil || n != 3 || at.Epoch < 0 || at.Offset < 0 {
			return nil, api.Errorf(api.CodeInvalid, "from=%q: want RANK:EPOCH:OFFSET, several joined by commas", text)
		}
		out[rank] = at
	}
	return out, nil
}

// mergedLogs writes pieces of several files in whole frames.
type mergedLogs struct {
	mu  sync.Mutex
	w   io.Writer
	out *http.ResponseController
}

func (m *mergedLogs) send(frame string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := io.WriteString(m.w, frame); err != nil {
		return err
	}
	return m.out.Flush()
}

// over says that a rank has written its last, or why the rest can't be read.
func (m *mergedLogs) over(rank int, err error) {
	o := api.LogPiece{Rank: rank}
	if err != nil {
		o.Error = err.Error()
	}
	b, _ := json.Marshal(o)
	_ = m.send("event: over\ndata: " + string(b) + "\n\n")
}

// rankLog is the part of one rank; it implements [engine.PositionWriter].
type rankLog struct {
	m      *mergedLogs
	rank   int
	at     api.LogPosition
	cancel context.CancelFunc
}

func (l *rankLog) At(at api.LogPosition) { l.at = at }

func (l *rankLog) Write(b []byte) (int, error) {
	end := l.at.Offset + int64(len(b))
	piece, err := json.Marshal(api.LogPiece{Rank: l.rank, Epoch: l.at.Epoch, Offset: end, Data: b})
	if err != nil {
		return 0, err
	}
	if err := l.m.send("data: " + string(piece) + "\n\n"); err != nil {
		l.cancel()
		return 0, err
	}
	l.at.Offset = end
	return len(b), nil
}
