package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"gangd/pkg/api"
)

const (
	// nodeReaders is how many logs a node reads out at a time: each is a process, and may hold a
	// window of 256 KiB.
	nodeReaders = 256
	// nodeOrders is how many signals and words on cards may wait for their answers. They have
	// room of their own: whoever reads keeps nobody from signalling.
	nodeOrders = 256
)

// pieceBytes is the most that one StreamReply carries.
const pieceBytes = 32 << 10

// nodeStreams are the questions that a node is answering.
type nodeStreams struct {
	mu      sync.Mutex
	open    map[uint64]*nodeStream
	readers shares[uint32] // by the user as whom a log is read
	orders  shares[int64]  // by the job that is signalled or looked at; 0: cards
}

func newNodeStreams() nodeStreams {
	return nodeStreams{open: map[uint64]*nodeStream{}, readers: newShares[uint32](nodeReaders), orders: newShares[int64](nodeOrders)}
}

// shares divide room among those who ask. Each may have up to a quarter of what is left: one
// alone gets a fifth of the room, and each who comes later finds some, less the more there are.
type shares[K comparable] struct {
	room int // left
	held map[K]int
}

func newShares[K comparable](room int) shares[K] { return shares[K]{room: room, held: map[K]int{}} }

// take reports whether there was room for who.
func (s *shares[K]) take(who K) bool {
	if 4*s.held[who] >= s.room {
		return false
	}
	s.held[who]++
	s.room--
	return true
}

func (s *shares[K]) giveBack(who K) {
	if s.held[who]--; s.held[who] == 0 {
		delete(s.held, who)
	}
	s.room++
}

// nodeStream is the writer that an answer goes to. It blocks while the window is full.
type nodeStream struct {
	ctx    context.Context
	cancel context.CancelFunc
	out    *outbox
	id     uint64
	mu     sync.Mutex
	credit int64
	more   chan struct{} // of capacity 1: the window moved
}

var errCancelled = errors.New("the reader went away")

// request applies one request: a new question, credit for one, or its end.
func (n *nodeStreams) request(s *clientSession, r api.StreamRequest) {
	if r.Log != nil || r.Append != nil || r.Signal != nil || r.CardResume != "" || r.Stacks != nil {
		n.start(s, r)
		return
	}
	n.mu.Lock()
	st := n.open[r.ID]
	n.mu.Unlock()
	switch {
	case st == nil: // it ended while this was on its way
	case r.Cancel:
		st.cancel()
	default:
		st.grant(r.Credit)
	}
}

// start answers a question in a goroutine of its own.
func (n *nodeStreams) start(s *clientSession, r api.StreamRequest) {
	st := &nodeStream{out: &s.c.out, id: r.ID, credit: api.StreamWindow, more: make(chan struct{}, 1)}
	st.ctx, st.cancel = context.WithCancel(s.link.ctx)
	if refusal := n.enter(st, &r); refusal != nil {
		st.cancel()
		st.send(api.StreamReply{EOF: true, Error: refusal})
		return
	}
	s.jobs.Add(1)
	go func() {
		defer s.jobs.Done()
		defer st.cancel()
		last := st.answer(s.c.opts.Agent, r)
		n.leave(&r)
		st.send(last)
	}()
}

func (n *nodeStreams) enter(st *nodeStream, r *api.StreamRequest) *api.Error {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case r.Log != nil && !n.readers.take(r.Log.UID):
		return &api.Error{Code: api.CodeTooMany, Hint: "end some of glog -f",
			Message: fmt.Sprintf("the node reads out %d logs of %s already; a user may have a quarter of the room that is left, which is %d",
				n.readers.held[r.Log.UID], r.Log.User, n.readers.room)}
	case r.Log == nil && !n.orders.take(orderOf(r)):
		return &api.Error{Code: api.CodeTooMany, Hint: "wait until they are answered",
			Message: fmt.Sprintf("%d signals and looks of the same job wait on the node already; a job may have a quarter of the room that is "+
				"left, which is %d",
				n.orders.held[orderOf(r)], n.orders.room)}
	}
	n.open[r.ID] = st
	return nil
}

func (n *nodeStreams) leave(r *api.StreamRequest) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.open, r.ID)
	if r.Log != nil {
		n.readers.giveBack(r.Log.UID)
	} else {
		n.orders.giveBack(orderOf(r))
	}
}

// orderOf is the job that an order goes to.
func orderOf(r *api.StreamRequest) int64 {
	switch {
	case r.Signal != nil:
		return r.Signal.Job
	case r.Stacks != nil:
		return r.Stacks.Job
	}
	return 0
}

func (st *nodeStream) answer(a Agent, r api.StreamRequest) api.StreamReply {
	last := api.StreamReply{EOF: true}
	var err error
	switch {
	case r.Signal != nil:
		last.Processes, err = a.Signal(st.ctx, *r.Signal)
	case r.Append != nil:
		err = a.AppendLog(st.ctx, *r.Append)
	case r.CardResume != "":
		err = a.ResumeCard(st.ctx, r.CardResume)
	case r.Stacks != nil:
		err = st.stacks(a, *r.Stacks)
	default:
		err = a.ReadLog(st.ctx, *r.Log, st)
	}
	if err != nil && !errors.As(err, &last.Error) {
		last.Error = api.Errorf(api.CodeInternal, "%v", err)
	}
	return last
}

// stacks sends where the processes of a member are.
func (st *nodeStream) stacks(a Agent, k api.MemberKey) error {
	m, err := a.Stacks(st.ctx, k)
	if err != nil {
		return err
	}
	b, err := json.Marshal(m)
	if err == nil {
		_, err = st.Write(b)
	}
	return err
}

func (st *nodeStream) send(r api.StreamReply) {
	r.ID = st.id
	st.out.put(func() { st.out.replies = append(st.out.replies, r) })
}

// Began implements [LogWriter].
func (st *nodeStream) Began(offset int64) { st.send(api.StreamReply{Began: &offset}) }

func (st *nodeStream) grant(n int64) {
	st.mu.Lock()
	st.credit += max(n, 0)
	st.mu.Unlock()
	select {
	case st.more <- struct{}{}:
	default:
	}
}

// Write sends p as far as the window goes and waits for the rest.
func (st *nodeStream) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n := st.take(min(len(p)-done, pieceBytes))
		if n == 0 {
			select {
			case <-st.more:
			case <-st.ctx.Done():
				return done, errCancelled
			}
			continue
		}
		st.send(api.StreamReply{Data: append([]byte(nil), p[done:done+n]...)})
		done += n
	}
	return done, nil
}

func (st *nodeStream) take(n int) int {
	st.mu.Lock()
	defer st.mu.Unlock()
	got := min(int64(n), st.credit)
	st.credit -= got
	return int(got)
}
