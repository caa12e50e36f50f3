package simgpu

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"sync"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/node/gpu"
	"gangd/pkg/node/proc"
)

// PollInterval is how often the file is looked at: a tenth of the shortest heartbeat in
// use; a look is one stat, 2 us.
const PollInterval = 100 * time.Millisecond

// settled is how old a file's time stamp has to be before an equal one means an equal
// file: file systems stamp with the kernel's tick, 1 to 10 ms, so that two writes within
// one look the same.
const settled = 50 * time.Millisecond

// Provider simulates the cards of one node.
type Provider struct {
	cards   []api.CardInfo
	file    string // empty: nobody steers
	changed chan struct{}
	quit    chan struct{}
	done    sync.WaitGroup
	once    sync.Once

	mu    sync.Mutex
	seen  stamp
	state []Steering
	down  string // why the driver answers nothing; empty: it does
	acked []int  // by card: the Xid that somebody has seen to, until the file names another
	err   error  // of the newest version of the file, until a Sample has given it
}

var (
	_ gpu.Provider = (*Provider)(nil)
	_ gpu.Resumer  = (*Provider)(nil)
)

// stamp tells two versions of a file apart; the zero value is "no file".
type stamp struct {
	mtime time.Time
	size  int64
	info  fs.FileInfo
	read  time.Time
}

// New simulates cards as text says (see [Parse]), steered by file, which need not exist.
func New(text, node, file string) (*Provider, error) {
	cards, err := Parse(text, node)
	if err != nil {
		return nil, err
	}
	p := &Provider{cards: cards, file: file, state: make([]Steering, len(cards)), acked: make([]int, len(cards)),
		changed: make(chan struct{}, 1), quit: make(chan struct{})}
	if file != "" && len(cards) > 0 {
		p.done.Go(p.watch)
	}
	return p, nil
}

// Inventory lists the cards.
func (p *Provider) Inventory(ctx context.Context) ([]api.CardInfo, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file != "" {
		p.look()
	}
	if p.down != "" {
		return nil, errors.New(p.down)
	}
	return p.listed(), ctx.Err()
}

// listed are the cards that the driver lists, numbered anew, as drivers do. The caller holds mu.
func (p *Provider) listed() (out []api.CardInfo) {
	number := map[int]int{}
	for i, c := range p.cards {
		if p.state[i].Gone {
			continue
		}
		number[c.Index] = len(out)
		c.Index = len(out)
		out = append(out, c)
	}
	if len(out) == len(p.cards) {
		return out
	}
	for i := range out {
		var peers []int
		for _, peer := range out[i].Peers {
			if n, ok := number[peer]; ok {
				peers = append(peers, n)
			}
		}
		out[i].Peers = peers
	}
	return out
}

// Changed gives a value soon after the file has changed.
func (p *Provider) Changed() <-chan struct{} { return p.changed }

// Close ends the watch of the file.
func (p *Provider) Close() error {
	p.once.Do(func() { close(p.quit) })
	p.done.Wait()
	return nil
}

func (p *Provider) watch() {
	tick := time.NewTicker(PollInterval)
	defer tick.Stop()
	for {
		select {
		case <-p.quit:
			return
		case <-tick.C:
		}
		p.mu.Lock()
		news := p.look()
		p.mu.Unlock()
		if news {
			select {
			case p.changed <- struct{}{}:
			default:
			}
		}
	}
}

// look reads the file when it may have changed. The caller holds mu.
func (p *Provider) look() bool {
	info, err := os.Stat(p.file)
	if errors.Is(err, fs.ErrNotExist) {
		news := p.seen.info != nil
		p.seen = stamp{}
		p.steer(make([]Steering, len(p.cards)), "")
		return news
	}
	if err != nil || p.seen.same(info) {
		return false
	}
	p.seen = stamp{mtime: info.ModTime(), size: info.Size(), info: info, read: time.Now()}
	data, err := os.ReadFile(p.file)
	var state []Steering
	var down string
	if err == nil {
		state, down, err = parseSteering(data, p.cards)
	}
	if err != nil {
		p.err = fmt.Errorf("%s: %w", p.file, err)
		return true
	}
	news := p.err != nil || down != p.down || !reflect.DeepEqual(state, p.state)
	p.err = nil
	p.steer(state, down)
	return news
}

func (p *Provider) steer(state []Steering, down string) {
	for i := range state {
		if state[i].Xid != p.acked[i] {
			p.acked[i] = 0
		}
	}
	p.state, p.down = state, down
}

// Resume counts the Xid that a card shows now as seen to.
func (p *Provider) Resume(ctx context.Context, uuid string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, c := range p.cards {
		if c.UUID == uuid {
			p.acked[i] = p.state[i].Xid
		}
	}
	return ctx.Err()
}

func (s *stamp) same(info fs.FileInfo) bool {
	return s.info != nil && os.SameFile(s.info, info) && s.size == info.Size() && s.mtime.Equal(info.ModTime()) &&
		s.read.Sub(s.mtime) > settled
}

// Sample gives what the file says now.
func (p *Provider) Sample(ctx context.Context) ([]gpu.Sample, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file != "" {
		p.look()
	}
	if err := p.err; err != nil {
		p.err = nil // said once; the last good state stands
		return nil, err
	}
	if p.down != "" {
		return nil, errors.New(p.down)
	}
	out := make([]gpu.Sample, 0, len(p.cards))
	for i, c := range p.cards {
		s := &p.state[i]
		if s.Gone {
			continue
		}
		strangers := min(int64(s.Strangers), c.VRAMBytes)
		living := alive(s.Processes)
		processes, held := holders(living)
		sample := gpu.Sample{
			UUID: c.UUID, UsedBytes: min(max(int64(s.Used), held)+strangers, c.VRAMBytes), StrangersBytes: strangers,
			Utilization: s.Utilization, Unhealthy: string(s.Unhealthy), Processes: processes, Users: users(living),
			UsersKnown: slices.ContainsFunc(s.Processes, told),
			// Figures of an H100: 70 W and 30 degrees idle, 700 W and 80 busy.
			PowerWatts: 70 + max(s.Utilization, 0)*63/10,
		}
		if s.Xid != p.acked[i] && gpu.FatalXid(s.Xid) {
			sample.Xid = s.Xid
		}
		out = append(out, sample)
	}
	return out, nil
}

// alive leaves out the processes that are gone: the driver takes back what they had.
func alive(all []Process) []Process {
	return slices.DeleteFunc(slices.Clone(all), func(p Process) bool {
		s, ok := proc.ReadStat(p.PID)
		return !ok || s.Dead()
	})
}

// holders are the processes that hold VRAM, and how much of it.
func holders(all []Process) (out []gpu.Process, held int64) {
	for _, p := range all {
		out = append(out, gpu.Process{PID: p.PID, VRAMBytes: int64(p.Used)})
		held += int64(p.Used)
	}
	return out, held
}

// users are the processes that are said to use the card.
func users(all []Process) (out []gpu.User) {
	for _, p := range all {
		if p.Utilization != nil && *p.Utilization > 0 {
			out = append(out, gpu.User{PID: p.PID, Utilization: *p.Utilization})
		}
	}
	return out
}

// told: the file says of a process how much it uses the card.
func told(p Process) bool { return p.Utilization != nil }
