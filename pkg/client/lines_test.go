package client

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// TestEachJob: what breaks off anywhere is no whole answer, and who has seen enough ends it.
func TestEachJob(t *testing.T) {
	const answer = `{"schema_version":1,"jobs":[{"job_id":1},{"job_id":2}]}`
	var got []string
	note := func(job json.RawMessage) error { got = append(got, string(job)); return nil }
	for n := range len(answer) {
		if eachJob(json.NewDecoder(strings.NewReader(answer[:n])), note) == nil {
			t.Errorf("%q is taken for a whole answer", answer[:n])
		}
	}
	got = nil
	if err := eachJob(json.NewDecoder(strings.NewReader(answer)), note); err != nil || strings.Join(got, " ") != `{"job_id":1} {"job_id":2}` {
		t.Errorf("jobs %v, %v", got, err)
	}
	if err := eachJob(json.NewDecoder(strings.NewReader(`{"schema_version":1,"jobs":[]}`)), func(json.RawMessage) error { return errors.New("a job") }); err != nil {
		t.Error(err)
	}
	enough := errors.New("enough")
	if err := eachJob(json.NewDecoder(strings.NewReader(answer)), func(json.RawMessage) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("ended with %v", err)
	}
}
