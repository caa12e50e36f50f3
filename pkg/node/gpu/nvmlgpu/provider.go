package nvmlgpu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/node/gpu"
)

// Limits of one question. A first look waits for the driver to wake eight cards, which
// takes some 10 s without its persistence mode; a sample of a machine at work takes tens
// of milliseconds.
const (
	inventoryLimit = 30 * time.Second
	sampleLimit    = 5 * time.Second
)

// retryAfter is how long a failed child is not replaced: a driver in trouble is not asked
// at every heartbeat.
const retryAfter = 5 * time.Second

// Options are what a caller may set.
type Options struct {
	Command []string     // of the probe child; empty: this program with "gpu-probe"
	Log     *slog.Logger // nil: none
	Limit   time.Duration
	Retry   time.Duration
	// XidFile keeps the fatal Xids of this boot, so that a restart of the daemon heals no card;
	// empty: nowhere. Boot names the boot.
	XidFile, Boot string
}

// Provider reads cards through a probe child.
type Provider struct {
	o    Options
	turn chan struct{} // holds the right to ask; a channel, so that waiting ends with ctx

	// Guarded by turn.
	child  *child
	stuck  *child // killed, not yet gone
	err    error  // why the last child ended
	retry  time.Time
	none   bool // no driver: there is nothing to sample
	closed bool
	xids   map[string]int // by UUID: a new child does not know what an older one saw
	kept   map[string]int // of them, what is in the file
	stop   context.CancelCauseFunc
	life   context.Context
}

var (
	_ gpu.Provider = (*Provider)(nil)
	_ gpu.Resumer  = (*Provider)(nil)
)

var errClosed = errors.New("gpu provider is closed")

// New makes a provider; the child is started by the first call.
func New(o Options) (*Provider, error) {
	if len(o.Command) == 0 {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		o.Command = []string{self, "gpu-probe"}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Retry == 0 {
		o.Retry = retryAfter
	}
	p := &Provider{o: o, turn: make(chan struct{}, 1), xids: readXids(o.XidFile, o.Boot)}
	p.kept = maps.Clone(p.xids)
	p.life, p.stop = context.WithCancelCause(context.Background())
	p.turn <- struct{}{}
	return p, nil
}

// Changed is nil: NVML is asked, it does not call.
func (p *Provider) Changed() <-chan struct{} { return nil }

// Inventory lists the cards. Where there was no driver it looks again: gnoded may have
// started before the driver was loaded.
func (p *Provider) Inventory(ctx context.Context) ([]api.CardInfo, error) {
	a, err := p.ask(ctx, askInventory, inventoryLimit)
	return a.Cards, err
}

// Sample reads what each card does now.
func (p *Provider) Sample(ctx context.Context) ([]gpu.Sample, error) {
	a, err := p.ask(ctx, askSample, sampleLimit)
	return a.Samples, err
}

func (p *Provider) ask(ctx context.Context, question string, limit time.Duration) (a answer, err error) {
	if err := ctx.Err(); err != nil {
		return a, err
	}
	select {
	case <-p.turn:
	case <-ctx.Done():
		return a, ctx.Err()
	}
	defer func() { p.turn <- struct{}{} }()
	if p.closed {
		return a, errClosed
	}
	if p.none && question == askSample {
		return a, nil
	}
	if err := p.ready(ctx); err != nil {
		return a, err
	}
	if p.o.Limit > 0 {
		limit = p.o.Limit
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.life, cancel)()
	a, err = p.child.ask(ctx, question, limit)
	var own gaveUp
	switch {
	case errors.As(err, &own):
		return answer{}, own.error
	case err != nil:
		p.lose(err)
		return answer{}, err
	}
	return p.take(a)
}

// ready sees to it that a child is there to be asked.
func (p *Provider) ready(ctx context.Context) error {
	if p.child != nil {
		return nil
	}
	if p.stuck != nil {
		if !p.stuck.ended(ctx) {
			return fmt.Errorf("gpu probe hangs in the driver: process %d was killed and does not end", p.stuck.cmd.Process.Pid)
		}
		p.stuck = nil
	}
	if time.Now().Before(p.retry) {
		return p.err
	}
	c, err := startChild(p.o.Command)
	if err != nil {
		p.err, p.retry = fmt.Errorf("gpu probe does not start: %w", err), time.Now().Add(p.o.Retry)
		return p.err
	}
	p.child, p.none = c, false
	return nil
}

// lose gives a child up that did not answer.
func (p *Provider) lose(err error) {
	p.o.Log.Warn("gpu probe lost", "pid", p.child.cmd.Process.Pid, "error", err)
	p.child.end()
	p.stuck, p.child = p.child, nil
	p.err, p.retry = err, time.Now().Add(p.o.Retry)
}

func (p *Provider) take(a answer) (answer, error) {
	switch {
	case a.None != "":
		p.o.Log.Info("no GPU cards", "reason", a.None)
		p.child.end() // it ends by itself
		p.stuck, p.child, p.none = p.child, nil, true
		return answer{}, nil
	case a.Error != "":
		err := fmt.Errorf("gpu probe: %s", a.Error)
		p.lose(err) // the next one starts from a fresh NVML
		return answer{}, err
	}
	for i := range a.Samples {
		s := &a.Samples[i]
		if s.Xid != 0 {
			p.xids[s.UUID] = s.Xid
		}
		s.Xid = p.xids[s.UUID]
	}
	p.keepXids()
	return a, nil
}

// Resume forgets the Xids of a card. The child goes with them: it remembers them too, and the
// next one begins with a fresh NVML, which sees a card that was reset.
func (p *Provider) Resume(ctx context.Context, uuid string) error {
	select {
	case <-p.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { p.turn <- struct{}{} }()
	if p.closed {
		return errClosed
	}
	delete(p.xids, uuid)
	p.keepXids()
	if p.child != nil {
		p.child.end()
		p.stuck, p.child = p.child, nil
	}
	return nil
}

// xidFile is what is kept of the Xids over a restart.
type xidFile struct {
	Boot string         `json:"boot"`
	Xids map[string]int `json:"xids"`
}

// readXids gives what was kept in this boot. After another the cards were reset.
func readXids(path, boot string) map[string]int {
	b, err := os.ReadFile(path)
	var f xidFile
	if err != nil || json.Unmarshal(b, &f) != nil || f.Boot != boot || f.Xids == nil {
		return make(map[string]int)
	}
	return f.Xids
}

// keepXids writes them down when they have changed. A disk that is full costs a restart's
// memory, not the quarantine.
func (p *Provider) keepXids() {
	if p.o.XidFile == "" || maps.Equal(p.xids, p.kept) {
		return
	}
	b, err := json.Marshal(xidFile{Boot: p.o.Boot, Xids: p.xids})
	if err == nil {
		tmp := p.o.XidFile + ".new"
		if err = os.WriteFile(tmp, b, 0o600); err == nil {
			err = os.Rename(tmp, p.o.XidFile)
		}
	}
	if err != nil {
		p.o.Log.Warn("Xids not kept", "error", err)
		return
	}
	p.kept = maps.Clone(p.xids)
}

// closeWait bounds how long Close waits for a child; one stuck in the driver is left to
// the kernel.
const closeWait = 2 * time.Second

// Close ends the child.
func (p *Provider) Close() error {
	p.stop(errClosed)
	<-p.turn
	defer func() { p.turn <- struct{}{} }()
	p.closed = true
	for _, c := range []*child{p.child, p.stuck} {
		if c == nil {
			continue
		}
		if c == p.child {
			c.end()
		}
		select {
		case <-c.gone:
		case <-time.After(closeWait):
		}
	}
	p.child, p.stuck = nil, nil
	return nil
}
