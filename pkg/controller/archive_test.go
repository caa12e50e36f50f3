package controller

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/engine"
)

func past(id int64, end time.Time) engine.Past {
	p := engine.Past{JobDetail: api.JobDetail{SchemaVersion: api.SchemaVersion, Job: api.Job{JobID: id, EndTime: end, SubmitTime: time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)}}}
	p.Events = []api.Event{{Seq: id, JobID: id, Type: api.EventEnded}}
	return p
}

func archived(t *testing.T, dir, name string) (ids []int64) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var p engine.Past
		if err := json.Unmarshal([]byte(line), &p); err != nil || len(p.Events) != 1 || p.Events[0].JobID != p.Job.JobID {
			t.Fatalf("line %q: %v", line, err)
		}
		ids = append(ids, p.Job.JobID)
	}
	return ids
}

func TestArchive(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	a, err := newArchive(dir)
	if err != nil {
		t.Fatal(err)
	}
	at := func(month time.Month) time.Time { return time.Date(2026, month, 1, 0, 0, 0, 0, time.UTC) }
	if err := a.put(t.Context(), []engine.Past{past(1, at(2)), past(2, at(3)), past(3, time.Time{}), past(4, at(2))}); err != nil {
		t.Fatal(err)
	}
	// A crash cut a line off; it was longer than what is looked at in one piece.
	f, err := os.OpenFile(filepath.Join(dir, "2026-02.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"job":"` + strings.Repeat("x", 100<<10)); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := a.put(t.Context(), []engine.Past{past(5, at(2))}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]int64{"2026-01.jsonl": {3}, "2026-02.jsonl": {1, 4, 5}, "2026-03.jsonl": {2}} {
		got := archived(t, dir, name)
		if len(got) != len(want) || got[0] != want[0] || got[len(got)-1] != want[len(want)-1] {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := a.put(t.Context(), []engine.Past{past(6, at(2))}); err == nil {
		t.Error("put into a directory that is gone")
	}
}

func TestArchiveThatCanNotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want := "history_archive: mkdir " + file + ": not a directory"
	if _, err := newArchive(file); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
