package day

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"os"
	"sync"
	"time"

	"gangd/pkg/api"
)

const (
	// step is the time of a point, sample how often it is looked, points how many make a day.
	step   = 10 * time.Minute
	sample = 20 * time.Second
	points = 24 * 6
	// maxNodes bounds the nodes that have points of their own.
	maxNodes = 8192
)

// point is the mean of a step. Of a node Asked is unused.
type point struct {
	Usable, Given, Busy, Asked float32
	Known                      bool // something was sampled
	Seen                       bool // what given cards did, too
}

// ring has the points of the last day, each at its time modulo a day; Last is the number of the newest.
type ring struct {
	Points [points]point `json:"points"`
	Last   int64         `json:"last"`
}

// sum gathers the samples of a step.
type sum struct {
	api.Standing
	n int
}

// Day is the last one.
type Day struct {
	mu    sync.Mutex
	all   ring
	nodes map[string]*ring
	at    int64 // number of the step that is gathered
	sums  map[string]*sum
	path  string // where it is kept; empty: nowhere
	log   *slog.Logger
}

// cluster is the name of all nodes together, which no node has.
const cluster = ""

// Open reads what was kept at a path. What can't be read is begun anew, and said.
func Open(path string, log *slog.Logger) *Day {
	d := &Day{nodes: map[string]*ring{}, sums: map[string]*sum{}, path: path, log: log}
	if path == "" {
		return d
	}
	b, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return d
	}
	var kept map[string]*ring
	if err == nil {
		err = json.Unmarshal(b, &kept)
	}
	if err != nil {
		log.Warn("the figures of the last 24 hours can't be read: they begin anew", "path", path, "err", err)
		return d
	}
	for name, r := range kept {
		switch {
		case r == nil:
		case name == cluster:
			d.all = *r
		case len(d.nodes) < maxNodes:
			d.nodes[name] = r
		}
	}
	return d
}

// Run samples until ctx ends.
func (d *Day) Run(ctx context.Context, standing func() (api.Standing, map[string]api.Standing)) {
	tick := time.NewTicker(sample)
	defer tick.Stop()
	for {
		all, nodes := standing()
		if d.Add(time.Now(), all, nodes) {
			d.save()
		}
		select {
		case <-ctx.Done():
			d.save()
			return
		case <-tick.C:
		}
	}
}

// Add takes a sample; it holds when a step is over, which is when a file of it is due.
func (d *Day) Add(now time.Time, all api.Standing, nodes map[string]api.Standing) (over bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at := number(now); at != d.at {
		over = d.at != 0
		d.at, d.sums = at, map[string]*sum{}
	}
	d.add(cluster, &d.all, all)
	for name, s := range nodes {
		if s.Usable == 0 && s.Given == 0 && d.nodes[name] == nil {
			continue // it has no cards
		}
		r := d.nodes[name]
		if r == nil {
			if len(d.nodes) >= maxNodes {
				continue
			}
			r = &ring{}
			d.nodes[name] = r
		}
		d.add(name, r, s)
	}
	if over {
		for name, r := range d.nodes {
			if d.at-r.Last > points {
				delete(d.nodes, name)
			}
		}
	}
	return over
}

func number(t time.Time) int64 { return t.Unix() / int64(step/time.Second) }

// add makes the newest point of a ring the mean of what was sampled in its step.
func (d *Day) add(name string, r *ring, s api.Standing) {
	g := d.sums[name]
	if g == nil {
		g = &sum{}
		d.sums[name] = g
	}
	g.Add(s)
	g.n++
	// What lies between is unknown; a clock that was set back begins anew.
	if d.at < r.Last || d.at-r.Last > points {
		r.Points, r.Last = [points]point{}, d.at
	}
	for ; r.Last < d.at; r.Last++ {
		r.Points[(r.Last+1)%points] = point{}
	}
	n := float32(g.n)
	p := point{Usable: float32(g.Usable) / n, Given: float32(g.Given) / n, Asked: float32(g.Asked) / n, Known: true}
	if g.Seen > 0 || g.Given == 0 {
		// Of cards of which nothing is known the others' mean is taken.
		p.Seen, p.Busy = true, float32(g.Busy)/n*float32(g.Given)/float32(max(g.Seen, 1))
	}
	r.Points[d.at%points] = p
}

// Reply answers for the cluster, or for a node.
func (d *Day) Reply(now time.Time, node string) *api.DayReply {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := &d.all
	if node != "" {
		if r = d.nodes[node]; r == nil {
			r = &ring{}
		}
	}
	last := number(now)
	out := &api.DayReply{SchemaVersion: api.SchemaVersion, Node: node, StepSeconds: int(step / time.Second),
		Start: (last - points + 1) * int64(step/time.Second)}
	for k := last - points + 1; k <= last; k++ {
		var p point
		if k <= r.Last && r.Last-k < points {
			p = r.Points[k%points]
		}
		out.Usable, out.Given, out.Asked = append(out.Usable, whole(p.Usable, p.Known)), append(out.Given,
			whole(p.Given, p.Known)), append(out.Asked, whole(p.Asked, p.Known))
		out.Busy = append(out.Busy, whole(p.Busy, p.Known && p.Seen))
	}
	return out
}

func whole(v float32, known bool) *int {
	if !known {
		return nil
	}
	n := int(math.Round(float64(v)))
	return &n
}

// save writes the file beside the old one, and puts it in its place. It is not synced: what a crash of the machine takes is
// the day's picture, and the disk has better to do.
func (d *Day) save() {
	d.mu.Lock()
	kept := map[string]*ring{cluster: &d.all}
	for name, r := range d.nodes {
		kept[name] = r
	}
	b, err := json.Marshal(kept)
	d.mu.Unlock()
	if d.path == "" {
		return
	}
	if err == nil {
		err = os.WriteFile(d.path+".new", b, 0o600)
	}
	if err == nil {
		err = os.Rename(d.path+".new", d.path)
	}
	if err != nil {
		d.log.Warn("the figures of the last 24 hours can't be kept", "err", fmt.Errorf("%s: %w", d.path, err))
	}
}
