package engine

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store/sqlitestore"
)

// instantNode is a node daemon without processes and without a line: what it is told to run has run at once.
type instantNode struct {
	name string
	said map[api.MemberKey]api.MemberPhase // of members that are still wanted
}

// answer is what it has to say of a desired set, and how many members it may forget now.
func (n *instantNode) answer(want []api.Assignment) (a api.Actual, forgotten int) {
	wanted := make(map[api.MemberKey]bool, len(want))
	now := time.Now()
	for i := range want {
		w := &want[i]
		if w.Body == nil {
			continue
		}
		wanted[w.MemberKey] = true
		m := api.MemberActual{MemberKey: w.MemberKey, Phase: api.PhaseReady, Port: 20000}
		switch said := n.said[w.MemberKey]; {
		case said == "":
		case said == api.PhaseReady && w.Gate != nil:
			m.Phase = api.PhaseStopped
			for r, p := range w.Body.Ranks {
				m.Ranks = append(m.Ranks, api.RankActual{Rank: r, PID: 1000, Started: now, Exited: true, Own: true, Ended: now})
				for _, uuid := range p.Cards {
					m.Cards = append(m.Cards, api.CardSample{UUID: uuid})
				}
			}
		default:
			continue
		}
		n.said[w.MemberKey] = m.Phase
		a.Members = append(a.Members, m)
	}
	for k := range n.said {
		if !wanted[k] {
			delete(n.said, k)
			forgotten++
		}
	}
	return a, forgotten
}

// processCPU is what this process has used so far.
func processCPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkJobs is whole jobs of one rank on a card, a submission each by 256 clients at once, on 64 nodes
// of 8 cards that run them in no time: all that the controller does for a job but its lines to clients and nodes.
func BenchmarkJobs(b *testing.B) {
	const nodes, cards, clients = 64, 8, 256
	st, err := sqlitestore.Open(b.Context(), b.TempDir(), sqlitestore.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = st.Close() })
	r := newRig(b, st)
	all := map[string]*instantNode{}
	for i := range nodes {
		n := &instantNode{name: fmt.Sprintf("n%03d", i), said: map[api.MemberKey]api.MemberPhase{}}
		h := &api.Hello{Protocol: api.SessionProtocol, Node: n.name, BootID: "b", Address: "127.0.0.1", CPUs: 128, MemoryBytes: 1 << 40}
		for c := range cards {
			h.Cards = append(h.Cards, api.CardInfo{Index: c, UUID: fmt.Sprintf("GPU-%d-%d", i, c), Model: "H100", VRAMBytes: 80 << 30})
		}
		all[n.name] = n
		if _, err := r.NodeHello(b.Context(), h); err != nil {
			b.Fatal(err)
		}
		r.NodeSample(n.name, sampled(h))
	}
	ctx, cancel := context.WithCancel(context.Background())
	var playing sync.WaitGroup
	ended := 0
	over := make(chan struct{})
	playing.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case name := <-r.woke:
				want, _ := r.Desired(name)
				a, forgotten := all[name].answer(want)
				if len(a.Members) > 0 {
					r.NodeReport(name, &a)
				}
				if ended += forgotten; ended == b.N {
					close(over)
				}
			}
		}
	})
	b.Cleanup(func() { cancel(); playing.Wait() })

	var submitted atomic.Int64
	var submitting sync.WaitGroup
	before, commits := processCPU(), r.store.Lineage()
	b.ReportAllocs()
	b.ResetTimer()
	for range clients {
		submitting.Go(func() {
			s := spec(1)
			s.GPUsPerRank, s.RanksPerNode = 1, 1
			for {
				i := submitted.Add(1)
				if i > int64(b.N) {
					return
				}
				if _, err := r.Submit(ctx, &api.SubmitRequest{Key: fmt.Sprint(i), Spec: s}, me); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	submitting.Wait()
	<-over
	b.StopTimer()
	b.ReportMetric(float64(b.N)/float64(r.store.Lineage()-commits), "jobs/commit")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	b.ReportMetric(float64((processCPU()-before).Microseconds())/float64(b.N), "cpu-us/job")
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapAlloc)/float64(b.N), "heap-B/job")
}

// sampled says of each card of a node that nothing is on it.
func sampled(h *api.Hello) (out []api.CardSample) {
	for _, c := range h.Cards {
		out = append(out, api.CardSample{UUID: c.UUID})
	}
	return out
}
