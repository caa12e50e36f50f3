package metrics

import (
	"context"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"gangd/pkg/api"
)

type view struct {
	nodes []api.Node
	jobs  []api.Job
	used  *api.Measure // of job 7
}

func (v view) ShowNodes() *api.NodesReply                             { return &api.NodesReply{Nodes: v.nodes} }
func (v view) List(context.Context, *api.JobQuery) ([]api.Job, error) { return v.jobs, nil }

func (v view) EachMeasure(f func(int64, *api.Measure)) {
	if v.used != nil {
		f(7, v.used)
	}
}

// TestCardGauges: the names and labels that dashboards are built on; what a driver does not
// tell is absent, not zero.
func TestCardGauges(t *testing.T) {
	const gib = 1 << 30
	m := New("test")
	m.Attach(view{
		nodes: []api.Node{{Name: "n1", State: api.NodeUp, Cards: []api.Card{
			{Index: 0, UUID: "GPU-a", VRAMBytes: 80 * gib, UsedBytes: 30 * gib, ReservedBytes: 40 * gib, StrangersBytes: gib, Utilization: 97, State: api.CardOK},
			{Index: 1, UUID: "GPU-b", VRAMBytes: 80 * gib, UsedBytes: -1, Utilization: -1, State: api.CardQuarantined}}}},
		jobs: []api.Job{{JobID: 7, Epoch: 2, User: "ada", State: api.JobRunning, Partition: "main", Ranks: []api.Rank{
			{Rank: 0, State: api.RankRunning, Node: "n1", Cards: []string{"GPU-a"}}, {Rank: 1, State: api.RankDone, Node: "n1", Cards: []string{"GPU-b"}}}}},
	})
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	body, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, "gang_gpu_") || strings.HasPrefix(line, "gang_job_gpu_") || strings.HasPrefix(line, "gang_node_up") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	slices.Sort(got)
	want := []string{
		`gang_gpu_healthy{gpu="0",node="n1"} 1`,
		`gang_gpu_healthy{gpu="1",node="n1"} 0`,
		`gang_gpu_memory_reserved_bytes{gpu="0",node="n1"} 4.294967296e+10`,
		`gang_gpu_memory_reserved_bytes{gpu="1",node="n1"} 0`,
		`gang_gpu_memory_strangers_bytes{gpu="0",node="n1"} 1.073741824e+09`,
		`gang_gpu_memory_strangers_bytes{gpu="1",node="n1"} 0`,
		`gang_gpu_memory_total_bytes{gpu="0",node="n1"} 8.589934592e+10`,
		`gang_gpu_memory_total_bytes{gpu="1",node="n1"} 8.589934592e+10`,
		`gang_gpu_memory_used_bytes{gpu="0",node="n1"} 3.221225472e+10`,
		`gang_gpu_utilization_ratio{gpu="0",node="n1"} 0.97`,
		`gang_job_gpu_info{epoch="2",gpu="0",job="7",node="n1",user="ada",uuid="GPU-a"} 1`,
		`gang_node_up{node="n1"} 1`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
