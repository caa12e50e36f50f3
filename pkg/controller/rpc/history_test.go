package rpc

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/wire/auth"
)

// ask makes one call as a user.
func ask(t *testing.T, method, target, body, user string, uid uint32) *httptest.ResponseRecorder {
	t.Helper()
	h, _, end := small(t)
	defer end()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r.WithContext(auth.With(t.Context(), auth.Identity{Kind: auth.KindUser, UID: uid, GID: uid, User: user})))
	return w
}

// A history is one job a line, by id, for every user: the queue is open to all.
func TestHistoryIsLines(t *testing.T) {
	w := ask(t, "POST", "/v1/history", `{"refs":["2","1","99"]}`, "bob", 3000)
	if got := w.Header().Get("Content-Type"); w.Code != 200 || got != api.HistoryType {
		t.Fatalf("%d %s %s", w.Code, got, w.Body)
	}
	var ids []int64
	for _, line := range strings.Split(strings.TrimSuffix(w.Body.String(), "\n"), "\n") {
		var d api.JobDetail
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, d.Job.JobID)
		if d.SchemaVersion != api.SchemaVersion || len(d.Job.Ranks) != 0 {
			t.Errorf("%s", line)
		}
	}
	if len(ids) != 2 || ids[0] != 1 || ids[1] != 2 {
		t.Errorf("%v", ids)
	}
	if w := ask(t, "POST", "/v1/history", `{"refs":["99"]}`, "bob", 3000); w.Code != 200 || w.Body.Len() != 0 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A script is its owner's: it may hold what nobody else is to read.
func TestScriptIsItsOwners(t *testing.T) {
	if w := ask(t, "GET", "/v1/jobs/1/script", "", "ada", 1000); w.Code != 200 || w.Body.String() != "#!/bin/sh\n" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for target, want := range map[string]string{
		"/v1/jobs/1/script":  `{"code":"permission","message":"job 1 belongs to ada: only its owner or an admin may read its script","reason":"owner","subject":"ada"}`,
		"/v1/jobs/99/script": `{"code":"not_found","message":"no job 99","hint":"list jobs with gqueue, ended ones with gacct"}`,
	} {
		if w := ask(t, "GET", target, "", "bob", 3000); strings.TrimSpace(w.Body.String()) != want {
			t.Errorf("%s: %s", target, w.Body)
		}
	}
}

func TestHoldBelongsToARequeue(t *testing.T) {
	w := ask(t, "POST", "/v1/release", `{"refs":["2"],"hold":true}`, "ada", 1000)
	if got := strings.TrimSpace(w.Body.String()); got != `{"code":"invalid","message":"hold belongs to a requeue"}` {
		t.Error(got)
	}
	if w := ask(t, "POST", "/v1/requeue", `{"refs":["2"],"hold":true}`, "ada", 1000); w.Code != 200 || strings.Contains(w.Body.String(), "error") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
