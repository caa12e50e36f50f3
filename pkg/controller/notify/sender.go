package notify

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"gangd/pkg/api"
)

// sendTime bounds one delivery.
const sendTime = 30 * time.Second

// mostAtOnce is how many deliveries are under way together.
const mostAtOnce = 4

// Outbox is whose letters are delivered.
type Outbox interface {
	// Letters are those of the last commit.
	Letters(ctx context.Context) ([]*api.Letter, error)
	// Report writes what a job used behind its output, where a letter is that of a report.
	Report(ctx context.Context, l *api.Letter) error
	// Delivered and GivenUp take letters as they were handed over; they are durable when it returns.
	Delivered(ctx context.Context, letters []*api.Letter) error
	GivenUp(ctx context.Context, letters []*api.Letter, why string) error
}

// Sender delivers what an outbox holds until its context ends.
type Sender struct {
	Log *slog.Logger
	// Leads says whether this controller leads, where it is one of several; nil: it is the only one.
	Leads func() bool
	// Record counts deliveries, by target; nil: nobody does.
	Record func(target string, letters int, err error)
	// Post stands for the network in tests; nil: the network.
	Post func(ctx context.Context, b *Batch) error

	mu   sync.Mutex
	site *Site
	q    *queue
}

// Take has letters go where the site says from now on; nil: nowhere. What is under way goes where it went.
func (s *Sender) Take(site *Site) {
	if site == nil {
		site = &Site{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.site = site
	if s.q != nil {
		s.q.bound(site)
	}
}

// where is the site of this moment.
func (s *Sender) where() *Site {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.site, &Site{})
}

// result of a delivery.
type result struct {
	b   *Batch
	err error
}

// Run delivers. changed says that the outbox has changed.
func (s *Sender) Run(ctx context.Context, box Outbox, changed <-chan struct{}) {
	s.mu.Lock()
	s.q = newQueue(cmp.Or(s.site, &Site{}))
	s.mu.Unlock()
	results := make(chan result)
	under := 0
	defer func() {
		for ; under > 0; under-- {
			<-results // its context has ended with ours
		}
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	load := true
	for {
		if load {
			all, err := box.Letters(ctx)
			if err != nil {
				return // the controller ends
			}
			s.mu.Lock()
			s.q.Set(all)
			s.mu.Unlock()
			load = false
		}
		at := s.begin(ctx, box, &under, results)
		if wait := time.Until(at); !at.IsZero() {
			timer.Reset(max(wait, 0))
		} else {
			timer.Stop()
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
			load = true
		case <-timer.C:
		case r := <-results:
			under--
			if s.done(ctx, box, r) != nil {
				return
			}
		}
	}
}

// begin starts what is due, and says when more will be.
func (s *Sender) begin(ctx context.Context, box Outbox, under *int, results chan<- result) time.Time {
	for *under < mostAtOnce && (s.Leads == nil || s.Leads()) {
		s.mu.Lock()
		b, at := s.q.Next(time.Now())
		s.mu.Unlock()
		if b == nil {
			return at
		}
		*under++
		go func() { // its end is waited for in Run
			results <- result{b, s.send(ctx, box, b)}
		}()
	}
	return time.Time{}
}

func (s *Sender) send(ctx context.Context, box Outbox, b *Batch) error {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	if b.to.Report {
		return box.Report(ctx, b.Letters[0])
	}
	if s.Post != nil {
		return s.Post(ctx, b)
	}
	l := b.Letters[0]
	if l.Target == "" {
		mail := s.where().Mail
		if mail == nil {
			return errors.New("the site has no mail server any more")
		}
		return mail.Send(ctx, b.Letters)
	}
	t := s.where().target(l.Target)
	if t == nil {
		return errors.New("the site has no such target any more: " + l.Target)
	}
	return t.Send(ctx, b.Letters, time.Now())
}

// done commits what became of a delivery. One that the end of the controller cut off is left as it was.
func (s *Sender) done(ctx context.Context, box Outbox, r result) error {
	if r.err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	s.mu.Lock()
	givenUp := s.q.Done(r.b, time.Now(), r.err)
	s.mu.Unlock()
	l := r.b.Letters[0]
	if s.Record != nil && !r.b.to.Report {
		s.Record(l.Target, len(r.b.Letters), r.err)
	}
	if r.err == nil {
		return box.Delivered(ctx, r.b.Letters)
	}
	s.Log.Warn("a notice was not delivered: it is tried again", "target", l.Target, "to", l.To, "user", l.User, "letters", len(r.b.Letters),
		"err", r.err)
	if len(givenUp) > 0 {
		s.Log.Error("notices given up", "target", l.Target, "to", l.To, "user", l.User, "letters", len(givenUp), "err", r.err)
		return box.GivenUp(ctx, givenUp, r.err.Error())
	}
	return nil
}

// Lines is how deliveries stand.
func (s *Sender) Lines() []Line {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.q == nil {
		return nil
	}
	return s.q.Lines()
}
