package reference

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/replay"
	"gangd/pkg/lab/trace"
)

// traces is the folder of the published traces; without it a test that needs them skips.
func traces(t testing.TB) string {
	dir := os.Getenv("GANG_TRACES")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "shared", "traces")
	}
	if _, err := os.Stat(filepath.Join(dir, "philly3.csv.gz")); err != nil {
		t.Skipf("the published traces are not in %s (set GANG_TRACES): %v", dir, err)
	}
	return dir
}

func read(t testing.TB, name string) *trace.Trace {
	tr, err := trace.Read(filepath.Join(traces(t), name+".csv.gz"), "")
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func play(t testing.TB, tr *trace.Trace, nodes int, make func(func() replay.Truth) replay.Planner) *replay.Result {
	var s *replay.Sim
	s, err := replay.New(tr, replay.Uniform(nodes, replay.Node{CPUs: 96, Cards: 8, VRAM: 32 << 30}),
		make(func() replay.Truth { return s.Truth() }), replay.Options{Settings: api.DefaultSettings(), Costs: replay.Costs{Restart: replay.RestartOfTraces}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Run()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRows holds the smallest trace to its published rows; `make traces` does all of them.
func TestRows(t *testing.T) {
	for _, tt := range []struct {
		name  string
		make  func(func() replay.Truth) replay.Planner
		want  float64
		least float64
		most  float64
	}{
		{"fifo", FIFO, 991200, -0.006, 0.006}, {"sjf*", SJF, 262098, -0.001, 0.001}, {"easy", EASY, 445193, -0.006, 0.006},
		{"srtf*", SRTF, 193082, -0.07, 0}, {"srsf*", SRSF, 185022, -0.07, 0},
	} {
		r := play(t, read(t, "philly3"), 8, tt.make)
		if off := r.Completion.Average/tt.want - 1; off < tt.least || off > tt.most || math.IsNaN(off) {
			t.Errorf("%s: %.0f, published %.0f: %+.2f %%", tt.name, r.Completion.Average, tt.want, 100*off)
		}
	}
}

// BenchmarkFIFO and the other play itp04 ten times over on ten times the nodes: 158,020
// jobs, 720 nodes.
func BenchmarkFIFO(b *testing.B) { benchTen(b, FIFO) }

// BenchmarkProduct is the production scheduler with backfill, in the default order.
func BenchmarkProduct(b *testing.B) {
	benchTen(b, func(func() replay.Truth) replay.Planner {
		return replay.NewProduct(order.Policy{BackfillDepth: 4, GuardAfter: 48 * 3600e9})
	})
}

func benchTen(b *testing.B, make func(func() replay.Truth) replay.Planner) {
	tr := read(b, "itp04")
	tr.Copies(10)
	jobs := 0
	for b.Loop() {
		jobs += play(b, tr, 720, make).Jobs
	}
	b.ReportMetric(float64(jobs)/b.Elapsed().Seconds(), "jobs/s")
}
