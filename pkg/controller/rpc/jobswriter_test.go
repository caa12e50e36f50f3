package rpc

import (
	"encoding/json"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gangd/pkg/api"
)

// TestJobsWriter: what is written job by job reads as what it stands for.
func TestJobsWriter(t *testing.T) {
	for _, jobs := range [][]api.Job{{}, {{JobID: 1, Name: "<a>&"}}, {{JobID: 1}, {JobID: 2}, {JobID: 3}}} {
		w := httptest.NewRecorder()
		out := newJobsWriter(w)
		for i := range jobs {
			if err := out.put(&jobs[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := out.end(); err != nil {
			t.Fatal(err)
		}
		var got api.JobsReply
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatalf("%v: %s", err, w.Body)
		}
		want := api.JobsReply{SchemaVersion: api.SchemaVersion, Jobs: jobs}
		if d := cmp.Diff(want, got); d != "" || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s\n%v", d, w.Header())
		}
	}
}
