package sched

import (
	"testing"
	"time"

	"gangd/pkg/cluster"
)

func TestForecast(t *testing.T) {
	at := func(minutes int) time.Time { return epoch0.Add(time.Duration(minutes) * time.Minute) }
	p := &Policy{Order: OrderFIFO, Claims: 1}
	q := NewQueue(p, nil)
	for _, c := range []*Candidate{lasting(1, 4, 30), lasting(2, 2, 100), lasting(3, 4, 0), lasting(4, 1, 10), lasting(5, 1, 1000)} {
		q.Insert(c)
	}
	got := Forecast(epoch0, &View{Nodes: []*cluster.Node{run(testNode("n1", 16, 4, 80), 7, 90, 0, 1, 2)}, Queue: q}, p)
	want := map[int64]Expect{
		1: {At: at(90), Sure: true},
		2: {At: at(120)},
		3: {At: at(220)},
		4: {At: epoch0}, // beside the claim, at once
		5: {},           // 3 has no limit
	}
	for job, w := range want {
		if g := got[job]; !g.At.Equal(w.At) || g.Sure != w.Sure {
			t.Errorf("job %d: %+v, want %+v", job, g, w)
		}
	}
}

func BenchmarkForecast(b *testing.B) {
	nodes := testNodes(10000, 64, 8, 80)
	fill(nodes, nil)
	v := &View{Nodes: nodes, Queue: queueOf(benchQueue(100000, 500)...)}
	for b.Loop() {
		if got := Forecast(epoch0, v, &Policy{Claims: 4}); len(got) != 100000 {
			b.Fatal(len(got))
		}
	}
}
