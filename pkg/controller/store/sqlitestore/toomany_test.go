package sqlitestore

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store/internal/sqlstore"
	"gangd/pkg/controller/store/storetest"
	"gangd/pkg/core/gang"
)

// TestLoadOfTooManyEnded: of more ended jobs than are kept those that ended last are read whole, and of the others the keys.
func TestLoadOfTooManyEnded(t *testing.T) {
	ctx, s := context.Background(), openDir(t, t.TempDir())
	var jobs []*gang.Job
	for id := int64(1); id <= 8; id++ {
		j := storetest.NewJob(id, 1)
		j.Key = fmt.Sprintf(`0 key <"%d">`, id)
		if id == 3 || id == 4 { // an array
			j.ArrayID, j.Array = 3, &gang.ArrayInfo{Count: 2, Max: 1, Step: 1}
		}
		if id == 4 {
			j.Key = ""
		}
		jobs = append(jobs, j)
	}
	if _, err := s.Commit(ctx, storetest.Submitted(jobs...)); err != nil {
		t.Fatal(err)
	}
	for i, j := range jobs[:7] { // the eighth waits
		over := *j
		over.Past = &gang.Past{Setbacks: gang.Setbacks{Verdict: &gang.Verdict{State: api.JobCompleted}}, Attempt: gang.Attempt{End: storetest.T0.Add(time.Duration(i) * time.Second)}}
		if _, err := s.Commit(ctx, &gang.Changes{Jobs: []*gang.Job{&over}}); err != nil {
			t.Fatal(err)
		}
	}
	var saved *gang.Snapshot
	if err := (database{s}).Reading(ctx, func(r *sqlstore.Reader) (err error) {
		saved, err = r.Load(storetest.T0, 3)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	var ids []int64
	for _, j := range saved.Jobs {
		ids = append(ids, j.ID)
	}
	if fmt.Sprint(ids) != "[5 6 7 8]" {
		t.Errorf("jobs %v are read", ids)
	}
	want := map[string]int64{}
	for _, j := range jobs[1:] { // the first ended too long ago
		if j.Key != "" {
			want[j.Key] = j.ID
		}
	}
	if !maps.Equal(saved.Keys, want) {
		t.Errorf("keys %v, want %v", saved.Keys, want)
	}
	whole, err := s.Load(ctx, storetest.T0)
	if err != nil || len(whole.Jobs) != 7 {
		t.Errorf("%d jobs within the bound, %v", len(whole.Jobs), err)
	}
}
