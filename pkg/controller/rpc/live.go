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
	// liveTick is the least time between two tellings: below what an eye takes for at once. The first event after a
	// quiet time is told after liveSoon, long enough that the events of one decision are one frame.
	liveTick = 150 * time.Millisecond
	liveSoon = 20 * time.Millisecond
	// liveSweep is the least time between two looks at what changes without an event: why jobs wait,
	// how busy cards are. A look that takes long is followed by a pause of sweepShare times as much.
	liveSweep  = 2 * time.Second
	sweepShare = 50
	// liveOrder is the least time between two looks at the order of the queue, which plans it anew; of the first
	// liveStarts of it readers are told when they are expected to start.
	liveOrder  = 5 * time.Second
	liveStarts = 500
	// liveWhys is of how many they are told in a sentence why they wait: what is seen of a queue without turning a page.
	liveWhys = 100
	// liveFrames may wait for a reader, and liveBytes in them beside the first. One that is further behind is cut: it
	// comes again and is told all, so that what is held for it is bounded.
	liveFrames = 64
	liveBytes  = 4 << 20
	// liveBeat is how often a line that says nothing is sent: a reader knows by it that the
	// controller lives, and the controller that the reader does. A page holds one to be frozen that was silent
	// for twice as long and a little.
	liveBeat = 2 * time.Second
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
		g := &liveGatherer{l: l, e: e, touched: map[int64]bool{}, places: map[string]bool{}, woken: make(chan struct{}, 1),
			rows: map[int64]uint64{}, on: map[int64][]string{},
			nodes: map[string]uint64{}, uses: map[string]uint64{}, seed: maphash.MakeSeed()}
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
	touched map[int64]bool  // jobs with events that were not told
	places  map[string]bool // nodes with events of their own
	woken   chan struct{}   // there are some

	// What readers were told, as fingerprints.
	rows  map[int64]uint64
	nodes map[string]uint64 // what they are
	uses  map[string]uint64 // what moves of them
	seed  maphash.Seed
	on    map[int64][]string // nodes of the jobs that have some: at an end they are told with the job
	order orderTold
}

// orderTold is the order of the queue as it was told last, for those who join.
type orderTold struct {
	mu    sync.Mutex
	frame []byte
}

func (g *liveGatherer) run(ctx context.Context) {
	followed, ordered := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(followed)
		_ = g.e.Follow(ctx, 0, -1, g.heard)
	}()
	go func() {
		defer close(ordered)
		g.orders(ctx)
	}()
	tick := time.NewTicker(liveTick)
	defer tick.Stop()
	var next, told time.Time // when the next sweep is, and when readers were told last
	for {
		fresh, nodes := g.l.newcomers()
		began := time.Now()
		if len(fresh) > 0 || !began.Before(next) {
			g.sweep(ctx, fresh, nodes)
			next, told = time.Now().Add(max(liveSweep, sweepShare*time.Since(began))), time.Now()
		} else if g.changes(nodes) {
			told = time.Now()
		}
		wait := tick.C
		select {
		case <-g.woken:
			wait = time.After(max(liveSoon, liveTick-time.Since(told)))
		case <-ctx.Done():
		case <-followed:
		case <-tick.C:
			continue
		}
		select {
		case <-ctx.Done():
			<-followed
			<-ordered
			return
		case <-followed:
			g.l.end(ctx)
			return
		case <-wait:
		}
	}
}

// heard notes which jobs and nodes have events.
func (g *liveGatherer) heard(evs []api.Event) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range evs {
		if evs[i].JobID != 0 {
			g.touched[evs[i].JobID] = true
		} else if evs[i].Node != "" {
			g.places[evs[i].Node] = true
		}
	}
	select {
	case g.woken <- struct{}{}:
	default:
	}
	return nil
}

func (g *liveGatherer) take() (jobs []int64, nodes []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	jobs, nodes = slices.Sorted(maps.Keys(g.touched)), slices.Sorted(maps.Keys(g.places))
	clear(g.touched)
	clear(g.places)
	return jobs, nodes
}

// changes tells of the jobs that had an event, and of the nodes that they are on or were.
func (g *liveGatherer) changes(nodes bool) (told bool) {
	jobs, places := g.take()
	if len(jobs) == 0 && len(places) == 0 {
		return false
	}
	where := map[string]bool{}
	for _, n := range places {
		where[n] = true
	}
	header, rest, _ := bytes.Cut(g.e.LinesOf(jobs), []byte{'\n'})
	column := nodesColumn(header)
	for line := range bytes.Lines(rest) {
		id := rowID(line)
		g.rows[id] = maphash.Bytes(g.seed, line)
		for _, n := range g.moved(id, line, column) {
			where[n] = true
		}
	}
	joined := func(r *liveReader) bool { return r.joined }
	if len(rest) > 0 { // else none of them is in memory any more: the next sweep says so
		g.l.tell(tableFrame("rows", header, rest), joined)
	}
	if nodes && len(where) > 0 {
		g.tellNodes(g.e.ShowSome(where), nil, joined, false)
	}
	return true
}

// moved notes the nodes of a job, and gives those that it had before as well.
func (g *liveGatherer) moved(id int64, line []byte, column int) (all []string) {
	now := fieldOf(line, column)
	all = g.on[id]
	delete(g.on, id)
	if now != "" {
		nodes := strings.Split(now, ",")
		all = append(slices.Clone(all), nodes...)
		g.on[id] = nodes
	}
	return all
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
	column, state := nodesColumn(header), columnOf(header, "end_time")
	clear(g.on)
	for line := range bytes.Lines(rest) {
		id, now := rowID(line), maphash.Bytes(g.seed, line)
		if before, known := g.rows[id]; !known || before != now {
			changed = append(changed, line...)
		}
		seen[id] = now
		if where := fieldOf(line, column); where != "" && fieldOf(line, state) == "0" {
			g.on[id] = strings.Split(where, ",")
		}
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
		g.tellNodes(g.e.ShowNodes().Nodes, fresh, old, true)
	}
	if len(fresh) > 0 {
		g.order.mu.Lock()
		defer g.order.mu.Unlock()
		g.l.tell(g.order.frame, func(r *liveReader) bool { return fresh[r] })
	}
}

// tellNodes tells newcomers all of these nodes, the others what is different of them. whole says that there are no others.
func (g *liveGatherer) tellNodes(list []api.Node, fresh map[*liveReader]bool, old func(*liveReader) bool, whole bool) {
	var all, changed []json.RawMessage
	uses := map[string]api.NodeUse{}
	seen := map[string]bool{}
	for i := range list {
		n := &list[i]
		if n.State == api.NodeUp {
			n.LastSeen = time.Time{} // that is now, and would be news each time
		}
		n.Load = nil
		use := n.Use()
		still, err1 := json.Marshal(n)
		moves, err2 := json.Marshal(use)
		if err1 != nil || err2 != nil {
			continue
		}
		what, how := maphash.Bytes(g.seed, still), maphash.Bytes(g.seed, moves)
		use.Apply(n)
		differs := g.nodes[n.Name] != what
		if differs || len(fresh) > 0 {
			b, err := json.Marshal(n)
			if err != nil {
				continue
			}
			if differs {
				changed = append(changed, b)
			}
			all = append(all, b)
		}
		if !differs && g.uses[n.Name] != how {
			uses[n.Name] = use
		}
		seen[n.Name], g.nodes[n.Name], g.uses[n.Name] = true, what, how
	}
	lost := false
	for name := range g.nodes {
		if whole && !seen[name] {
			lost = true
			delete(g.nodes, name)
			delete(g.uses, name)
		}
	}
	if len(fresh) > 0 {
		g.l.tell(nodesFrame("nodes", all), func(r *liveReader) bool { return r.nodes && fresh[r] })
	}
	to := func(r *liveReader) bool { return r.nodes && old(r) }
	if lost { // one was forgotten, or several: seldom enough to tell all
		for i := range list {
			if b, err := json.Marshal(&list[i]); err == nil && len(fresh) == 0 {
				all = append(all, b)
			}
		}
		g.l.tell(nodesFrame("nodes", all), to)
		return
	}
	if len(changed) > 0 {
		g.l.tell(nodesFrame("node", changed), to)
	}
	if len(uses) > 0 {
		b, err := json.Marshal(uses)
		if err == nil {
			g.l.tell(fmt.Appendf(nil, "event: use\ndata: %s\n\n", b), to)
		}
	}
}

// orders tells the order of the queue, and who is expected to start when, as it changes. It is planned beside what the
// readers are told otherwise, for with a long queue it takes a while.
func (g *liveGatherer) orders(ctx context.Context) {
	var before []byte
	for {
		began := time.Now()
		o, err := g.e.Order(ctx, liveStarts, liveWhys)
		if err != nil {
			return
		}
		if b, err := json.Marshal(o); err == nil && !bytes.Equal(b, before) {
			before = b
			frame := fmt.Appendf(nil, "event: order\ndata: %s\n\n", b)
			g.order.mu.Lock()
			g.order.frame = frame
			g.l.tell(frame, func(r *liveReader) bool { return r.joined })
			g.order.mu.Unlock()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(liveOrder, sweepShare*time.Since(began))):
		}
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

// columnOf is where a column is in the lines of a table, -1: nowhere.
func columnOf(header []byte, name string) int {
	return slices.Index(strings.Split(string(header), "\t"), name)
}

func nodesColumn(header []byte) int { return columnOf(header, "nodes") }

// fieldOf is what a line has in a column.
func fieldOf(line []byte, column int) string {
	for ; column > 0; column-- {
		_, rest, more := bytes.Cut(line, []byte{'\t'})
		if !more {
			return ""
		}
		line = rest
	}
	text, _, _ := bytes.Cut(bytes.TrimSuffix(line, []byte{'\n'}), []byte{'\t'})
	return string(text)
}
