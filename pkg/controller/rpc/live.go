package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/engine"
	"gangd/pkg/wire/auth"
)

const (
	// liveTick is how long changes are gathered before readers are told: below what an eye takes for
	// at once, and long enough that the events of one decision are one frame.
	liveTick = 150 * time.Millisecond
	// liveSweep is the least time between two looks at what changes without an event: why jobs wait,
	// how busy cards are. A look that takes long is followed by a pause of sweepShare times as much.
	liveSweep  = 2 * time.Second
	sweepShare = 50
	// liveFrames may wait for a reader, and liveBytes in them beside the first. One that is further behind is cut: it
	// comes again and is told all, so that what is held for it is bounded.
	liveFrames = 64
	liveBytes  = 4 << 20
	// liveBeat is how often a line that says nothing is sent: a reader knows by it that the
	// controller lives, and the controller that the reader does.
	liveBeat = 5 * time.Second
	// livePortion readers are told at once; before the next ones there is a pause. A hundred that wake
	// together take the CPUs for some milliseconds, from calls too. More than livePauses there are not:
	// with more readers the portions grow, so that the last one hears of it before the next tick.
	livePortion = 4
	livePause   = 2 * time.Millisecond
	livePauses  = 50
)

// beginEvents says that server-sent events follow.
func beginEvents(w http.ResponseWriter) *http.ResponseController {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	return http.NewResponseController(w)
}

// live tells the queue and the nodes to all who watch: what changed is looked up and written
// once, whoever reads it. Its goroutine runs while somebody reads.
type live struct {
	mu      sync.Mutex
	readers map[*liveReader]bool
	stop    context.CancelFunc // of the goroutine; nil: none runs
}

// liveReader is one stream. Frames are shared by all readers, and nobody changes them.
type liveReader struct {
	nodes  bool // it wants them as well
	joined bool // it has been told all; frames before that are none of its own
	frames chan []byte
	held   atomic.Int64 // bytes of frames that wait
}

// liveQueue streams the queue as it changes.
func (s *Server) liveQueue(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	done, err := s.stream(r, id)
	if err != nil {
		return err
	}
	defer done()
	reader := &liveReader{nodes: r.URL.Query().Get("nodes") != "", frames: make(chan []byte, liveFrames)}
	s.live.join(s.Engine, reader)
	defer s.live.leave(reader)
	out := beginEvents(w)
	beat := time.NewTicker(liveBeat)
	defer beat.Stop()
	for {
		frame := []byte("event: beat\ndata: {}\n\n")
		select {
		case <-r.Context().Done():
			return nil
		case f, ok := <-reader.frames:
			if !ok {
				return nil // cut, or the controller ends
			}
			reader.held.Add(-int64(len(f)))
			frame = f
		case <-beat.C:
		}
		if _, err := w.Write(frame); err != nil {
			return nil
		}
		if len(reader.frames) > 0 {
			continue
		}
		if err := out.Flush(); err != nil {
			return nil
		}
	}
}

func (l *live) join(e *engine.Engine, r *liveReader) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.readers == nil {
		l.readers = map[*liveReader]bool{}
	}
	l.readers[r] = true
	if l.stop == nil {
		ctx, cancel := context.WithCancel(context.Background())
		l.stop = cancel
		g := &liveGatherer{l: l, e: e, touched: map[int64]bool{}, rows: map[int64]uint64{}, nodes: map[string]uint64{}, seed: maphash.MakeSeed()}
		go g.run(ctx)
	}
}

// leave takes a reader out; with the last one the goroutine goes.
func (l *live) leave(r *liveReader) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.readers, r)
	if len(l.readers) == 0 && l.stop != nil {
		l.stop()
		l.stop = nil
	}
}

// end closes all streams: the engine has ended.
func (l *live) end(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() != nil {
		return // another goroutine may have begun since
	}
	for r := range l.readers {
		close(r.frames)
	}
	clear(l.readers)
	l.stop()
	l.stop = nil
}

// tell gives a frame to those for whom it is, a portion of them at a time.
func (l *live) tell(frame []byte, to func(*liveReader) bool) {
	if frame == nil {
		return
	}
	l.mu.Lock()
	var readers []*liveReader
	for r := range l.readers {
		if to(r) {
			readers = append(readers, r)
		}
	}
	l.mu.Unlock()
	for i, portion := range slices.Collect(slices.Chunk(readers, max(livePortion, 1+len(readers)/livePauses))) {
		if i > 0 {
			time.Sleep(livePause)
		}
		l.give(frame, portion)
	}
}

// give gives a frame to those who still read. Who has no room for it is cut.
func (l *live) give(frame []byte, readers []*liveReader) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range readers {
		if !l.readers[r] {
			continue
		}
		behind := len(r.frames) > 0 && r.held.Load()+int64(len(frame)) > liveBytes
		if !behind {
			select {
			case r.frames <- frame:
				r.held.Add(int64(len(frame)))
				continue
			default:
			}
		}
		delete(l.readers, r)
		close(r.frames)
	}
}

// newcomers marks as joined who is not, and gives them.
func (l *live) newcomers() (fresh map[*liveReader]bool, nodes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fresh = map[*liveReader]bool{}
	for r := range l.readers {
		if !r.joined {
			r.joined, fresh[r] = true, true
		}
		nodes = nodes || r.nodes
	}
	return fresh, nodes
}

// liveGatherer looks up what changed.
type liveGatherer struct {
	l *live
	e *engine.Engine

	mu      sync.Mutex
	touched map[int64]bool // jobs with events that were not told

	// What readers were told, as fingerprints.
	rows  map[int64]uint64
	nodes map[string]uint64
	seed  maphash.Seed
}

func (g *liveGatherer) run(ctx context.Context) {
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		_ = g.e.Follow(ctx, 0, -1, func(evs []api.Event) error {
			g.mu.Lock()
			defer g.mu.Unlock()
			for i := range evs {
				if evs[i].JobID != 0 {
					g.touched[evs[i].JobID] = true
				}
			}
			return nil
		})
	}()
	tick := time.NewTicker(liveTick)
	defer tick.Stop()
	var next time.Time // when the next sweep is
	for {
		fresh, nodes := g.l.newcomers()
		began := time.Now()
		if len(fresh) > 0 || !began.Before(next) {
			g.sweep(ctx, fresh, nodes)
			next = time.Now().Add(max(liveSweep, sweepShare*time.Since(began)))
		} else {
			g.changes()
		}
		select {
		case <-ctx.Done():
			<-followed
			return
		case <-followed:
			g.l.end(ctx)
			return
		case <-tick.C:
		}
	}
}

func (g *liveGatherer) take() (jobs []int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	jobs = slices.Sorted(maps.Keys(g.touched))
	clear(g.touched)
	return jobs
}

// changes tells of the jobs that had an event.
func (g *liveGatherer) changes() {
	jobs := g.take()
	if len(jobs) == 0 {
		return
	}
	header, rest, _ := bytes.Cut(g.e.LinesOf(jobs), []byte{'\n'})
	if len(rest) == 0 {
		return // none of them is in memory any more: the next sweep says so
	}
	for line := range bytes.Lines(rest) {
		g.rows[rowID(line)] = maphash.Bytes(g.seed, line)
	}
	g.l.tell(tableFrame("rows", header, rest), func(r *liveReader) bool { return r.joined })
}

// sweep looks at everything: newcomers are told all of it, the others what is different.
func (g *liveGatherer) sweep(ctx context.Context, fresh map[*liveReader]bool, nodes bool) {
	g.take()
	lines, err := g.e.Lines(ctx, &api.JobQuery{All: true}, engine.Caller{})
	if err != nil {
		return
	}
	header, rest, _ := bytes.Cut(lines, []byte{'\n'})
	var changed []byte
	seen := make(map[int64]uint64, len(g.rows))
	for line := range bytes.Lines(rest) {
		id, now := rowID(line), maphash.Bytes(g.seed, line)
		if before, known := g.rows[id]; !known || before != now {
			changed = append(changed, line...)
		}
		seen[id] = now
	}
	var gone []string
	for id := range g.rows {
		if _, still := seen[id]; !still {
			gone = append(gone, strconv.FormatInt(id, 10))
		}
	}
	g.rows = seen
	old := func(r *liveReader) bool { return r.joined && !fresh[r] }
	if len(fresh) > 0 {
		g.l.tell(tableFrame("all", header, rest), func(r *liveReader) bool { return fresh[r] })
	}
	if len(changed) > 0 {
		g.l.tell(tableFrame("rows", header, changed), old)
	}
	if len(gone) > 0 {
		slices.Sort(gone)
		g.l.tell([]byte("event: gone\ndata: "+strings.Join(gone, ",")+"\n\n"), old)
	}
	if nodes {
		g.sweepNodes(fresh, old)
	}
}

func (g *liveGatherer) sweepNodes(fresh map[*liveReader]bool, old func(*liveReader) bool) {
	reply := g.e.ShowNodes()
	var all, changed []json.RawMessage
	seen := map[string]uint64{}
	for i := range reply.Nodes {
		n := &reply.Nodes[i]
		if n.State == api.NodeUp {
			n.LastSeen = time.Time{} // that is now, and would be news each time
		}
		b, err := json.Marshal(n)
		if err != nil {
			continue
		}
		now := maphash.Bytes(g.seed, b)
		if g.nodes[n.Name] != now {
			changed = append(changed, b)
		}
		all = append(all, b)
		seen[n.Name] = now
	}
	lost := len(seen) < len(g.nodes)
	g.nodes = seen
	if len(fresh) > 0 {
		g.l.tell(nodesFrame("nodes", all), func(r *liveReader) bool { return r.nodes && fresh[r] })
	}
	switch {
	case lost: // one was forgotten, or several: seldom enough to tell all
		g.l.tell(nodesFrame("nodes", all), func(r *liveReader) bool { return r.nodes && old(r) })
	case len(changed) > 0:
		g.l.tell(nodesFrame("node", changed), func(r *liveReader) bool { return r.nodes && old(r) })
	}
}

func nodesFrame(event string, nodes []json.RawMessage) []byte {
	if nodes == nil {
		nodes = []json.RawMessage{}
	}
	b, err := json.Marshal(nodes)
	if err != nil {
		return nil
	}
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", event, b)
}

// tableFrame is a table of [api.LinesType] as one event: server-sent events give a line feed
// between their data lines.
func tableFrame(event string, header, rows []byte) []byte {
	b := make([]byte, 0, len(event)+len(header)+len(rows)+len(rows)/16+64)
	b = append(append(append(b, "event: "...), event...), "\ndata: "...)
	b = append(append(b, header...), '\n')
	for line := range bytes.Lines(rows) {
		b = append(append(b, "data: "...), line...)
	}
	return append(b, '\n')
}

// rowID is the number of a line's job, its first field.
func rowID(line []byte) int64 {
	text, _, _ := bytes.Cut(line, []byte{'\t'})
	id, _ := strconv.ParseInt(string(text), 10, 64) // we have written it
	return id
}
