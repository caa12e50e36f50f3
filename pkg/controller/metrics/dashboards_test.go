package metrics

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"gangd/pkg/api"
)

var (
	metricName = regexp.MustCompile(`gang_[a-z_]+`)
	selector   = regexp.MustCompile(`(gang_[a-z_]+)\{([a-z]+)=`)
	joined     = regexp.MustCompile(`\b(?:by|on|group_left) \(([a-z, ]+)\)`)
)

// exprs are the queries of all dashboards and rules, by where they stand.
func exprs(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	boards, err := filepath.Glob("../../../dist/grafana/*.json")
	if err != nil || len(boards) != 2 {
		t.Fatal(boards, err)
	}
	for _, name := range boards {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var board struct {
			UID        string
			Templating struct{ List []struct{ Query string } }
			Panels     []struct{ Targets []struct{ Expr string } }
		}
		if err := json.Unmarshal(b, &board); err != nil || board.UID == "" {
			t.Fatal(name, err)
		}
		for _, v := range board.Templating.List {
			if v.Query != "prometheus" {
				out[name] = append(out[name], v.Query)
			}
		}
		for _, p := range board.Panels {
			for _, x := range p.Targets {
				out[name] = append(out[name], x.Expr)
			}
		}
	}
	b, err := os.ReadFile("../../../dist/prometheus/gangd-alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(b, &rules); err != nil {
		t.Fatal(err)
	}
	for _, r := range rules.Groups[0].Rules {
		if r.Alert == "" || r.Annotations["summary"] == "" {
			t.Errorf("%+v", r)
		}
		out["alerts"] = append(out["alerts"], r.Expr)
	}
	return out
}

// Each query asks for what gangd says of a cluster in which something of everything has happened: by name, and
// by labels that it has.
func TestEveryQueryAnswers(t *testing.T) {
	cpu, peak := 30.0, int64(1<<30)
	m := New("test")
	m.Attach(view{
		nodes: []api.Node{{Name: "n1", State: api.NodeUp, Cards: []api.Card{{UUID: "GPU-a", VRAMBytes: 1, UsedBytes: 1, Utilization: 97, State: api.CardOK}}}},
		jobs:  []api.Job{{JobID: 7, Epoch: 2, User: "ada", Account: "vision", State: api.JobRunning, Partition: "main", Ranks: []api.Rank{{State: api.RankRunning, Node: "n1", Cards: []string{"GPU-a"}}}}},
		used:  &api.Measure{Node: "n1", CPUs: 2, Memory: 1 << 30, CPUSeconds: &cpu, MemoryPeak: &peak},
	})
	m.Events([]api.Event{{Type: api.EventDrainStarted, Cause: api.CauseCrash}, {Type: api.EventDrainCompleted, Outcome: "failed", Cause: api.CauseCrash}, {Type: api.EventEnded, State: api.JobFailed, Cause: api.CauseCrash}})
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	labels := map[string]map[string]bool{} // that each metric has
	known := map[string]bool{}
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name := metricName.FindString(line)
		if labels[name] == nil {
			labels[name] = map[string]bool{}
		}
		for _, l := range regexp.MustCompile(`([a-z]+)="`).FindAllStringSubmatch(line, -1) {
			labels[name][l[1]], known[l[1]] = true, true
		}
	}
	n := 0
	for where, list := range exprs(t) {
		for _, e := range list {
			for _, name := range metricName.FindAllString(e, -1) {
				if n++; labels[name] == nil {
					t.Errorf("%s: %s: gangd has no %s", where, e, name)
				}
			}
			for _, s := range selector.FindAllStringSubmatch(e, -1) {
				if !labels[s[1]][s[2]] {
					t.Errorf("%s: %s: %s has no label %s", where, e, s[1], s[2])
				}
			}
			for _, j := range joined.FindAllStringSubmatch(e, -1) {
				for _, l := range strings.Split(j[1], ", ") {
					if !known[l] {
						t.Errorf("%s: %s: nothing has a label %s", where, e, l)
					}
				}
			}
		}
	}
	if n < 30 {
		t.Errorf("only %d names were looked at", n)
	}
	for _, want := range []string{`gang_job_info{account="vision",job="7",partition="main",user="ada"} 1`, `gang_job_cpu_seconds_total{job="7",node="n1"} 30`, `gang_job_cpus{job="7",node="n1"} 2`} {
		if !strings.Contains(w.Body.String(), want+"\n") {
			t.Errorf("no %s", want)
		}
	}
}
