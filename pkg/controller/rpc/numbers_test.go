package rpc

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/lab/extremes"
	"gangd/pkg/wire/auth"
)

// Every number of every request is taken or refused with a sentence, whatever it is; none of
// them ends the controller or leaves a state that does not add up.
func TestEveryNumber(t *testing.T) {
	h, e, end := small(t)
	defer end()
	asked := &api.SubmitRequest{Key: "n", Spec: api.Spec{Name: "x", Size: 1, Launch: api.LaunchRanks, CPUsPerRank: 1, WorkDir: "/tmp",
		Output: "/dev/null", Script: []byte("#!/bin/sh\n"), Notice: &api.Notice{Signal: "USR1", Scope: api.ScopeRanks},
		Dependency: &api.Dependency{On: []api.Condition{{Kind: api.After, Job: 1}}}}, Array: &api.Array{Indices: []int{1, 2}}}
	mine := api.JobQuery{Refs: []api.JobRef{{ID: 2, Index: -1}}}
	day := 24 * time.Hour
	for _, c := range []struct {
		call string
		body any
	}{
		{"/v1/jobs", asked},
		{"/v1/jobs", &api.SubmitRequest{Key: "r", Spec: api.Spec{Name: "r", Size: 1, Launch: api.LaunchRanks, WorkDir: "/tmp", Script: []byte("#!/bin/sh\n"),
			CPUsPerRank: 1, Roles: []api.Role{{Name: "a", Count: 1, CPUsPerRank: 1}}}}},
		{"/v1/update", &api.UpdateRequest{JobQuery: mine}},
		{"/v1/query", &api.JobQuery{}},
		{"/v1/history", &api.HistoryQuery{}},
		{"/v1/cancel", &api.CancelRequest{JobQuery: api.JobQuery{Names: []string{"nobody's"}}}},
		{"/v1/hold", &api.ActionRequest{JobQuery: mine}},
		{"/v1/jobs/1/steps", &api.StepRequest{Key: "s", Ask: api.StepAsk{StepComponent: api.StepComponent{Tasks: 1}}}},
		{"/v1/nodes/n1/drain", &api.NodeAction{Reason: "fan"}},
		{"/v1/reservations", &api.ReservationRequest{Name: "r", Duration: &day, Nodes: &[]string{"n1"}, Users: &[]string{"ada"}}},
		{"/v1/rerun", &api.RerunRequest{Key: "again", Ref: api.JobRef{ID: 2, Index: -1}}},
	} {
		extremes.Each(c.body, func(field string, n int64) {
			body, err := json.Marshal(c.body)
			if err != nil {
				return // a reference of a kind that has no words
			}
			r := httptest.NewRequest("POST", c.call, bytes.NewReader(body))
			r = r.WithContext(auth.With(t.Context(), auth.Identity{Kind: auth.KindUser, UID: 1000, GID: 1000, User: "ada", Admin: true, Host: true}))
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			var e api.Error
			switch {
			case w.Code == http.StatusOK:
			case json.Unmarshal(w.Body.Bytes(), &e) != nil || e.Message == "" || w.Code >= 500 && w.Code != http.StatusServiceUnavailable:
				t.Fatalf("%s %s = %d: %d %s", c.call, field, n, w.Code, w.Body)
			}
		})
		if found, err := e.Verify(t.Context()); err != nil || len(found) > 0 {
			t.Fatalf("%s leaves %v, %v", c.call, found, err)
		}
	}
}

// What only our own commands were careful about.
func TestRefusedAtTheBorder(t *testing.T) {
	h, _, end := small(t)
	defer end()
	for what, c := range map[string]struct{ change, want string }{
		"overflow of the grace":  {`"grace_ns":9223372036854775807`, "spec.grace_ns: 2562047h47m16.854775807s is out of range: want 0s to 87600h0m0s"},
		"priority that wraps":    {`"priority":-9223372036854775808,"nice":1`, "spec.priority: -9223372036854775808 is out of range: want -2147483648 to 2147483647"},
		"memory that overflows":  {`"memory_per_rank":9223372036854775807`, "spec.memory_per_rank: 9223372036854775807 is out of range: want 0 to 70368744177664"},
		"NUL in a path":          {`"output":"/tmp/a\u0000b"`, `spec.output: "/tmp/a\x00b" is out of range: want a text without control characters`},
		"escape in the name":     {`"name":"a\u001b[2J"`, `spec.name: "a\x1b[2J" is out of range: want a text without control characters`},
		"unknown stop signal":    {`"stop_signal":"NUKE"`, `stop_signal "NUKE" is no signal: want a name as TERM or USR1`},
		"unknown notice signal":  {`"notice":{"signal":"x","lead_ns":1,"scope":"ranks"}`, `notice.signal "x" is no signal: want a name as TERM or USR1`},
		"unknown scope":          {`"notice":{"signal":"USR1","lead_ns":1,"scope":"all"}`, `notice.scope "all": want ranks or steps or batch or full, or nothing`},
		"unknown open mode":      {`"open_mode":"x"`, `open_mode "x": want append or truncate, or nothing`},
		"unknown cause":          {`"requeue_causes":["fun"]`, `requeue_causes: there is no cause "fun"`},
		"unknown choice":         {`"invalid_dependency":"x"`, `invalid_dependency "x": want cancel or wait, or nothing`},
		"variable without name":  {`"env":["=x"]`, `environment entry "=x" is not NAME=value`},
		"too many arguments":     {`"args":["` + strings.Repeat(`x","`, 65536) + `x"]`, "spec.args: 65537 entries is out of range: want at most 65536"},
		"more than exec takes":   {`"args":["` + strings.Repeat(strings.Repeat("x", 99999)+`","`, 21) + `x"]`, "arguments and environment have 2100002 bytes, a program can be started with 2097152"},
		"a trailing second body": {`"env":[]}} {"spec":{"env":[]`, "the request body goes on behind what /v1/jobs takes"},
	} {
		body := `{"key":"k","spec":{"size":1,"launch":"ranks","cpus_per_rank":1,"work_dir":"/tmp","script":"IyEvYmluL3NoCg==",` + c.change + `}}`
		r := httptest.NewRequest("POST", "/v1/jobs", bytes.NewReader([]byte(body)))
		r = r.WithContext(auth.With(t.Context(), auth.Identity{Kind: auth.KindUser, UID: 1001, GID: 1001, User: "eve"}))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		var e api.Error
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || w.Code/100 != 4 || e.Message != c.want {
			t.Errorf("%s: %d %.300s", what, w.Code, w.Body)
		}
	}
}

// A signal that is none is refused before anybody's jobs are looked at.
func TestSignalsThatAreNone(t *testing.T) {
	h, _, end := small(t)
	defer end()
	for call, want := range map[string]string{
		`/v1/cancel {"users":["ada"],"signal":"NUKE"}`:                 `signal "NUKE" is no signal: want a name as TERM or USR1`,
		`/v1/cancel {"users":["ada"],"signal":"TERM","scope":"world"}`: `scope "world": want ranks or steps or batch or full, or nothing`,
		`/v1/jobs/1/steps/0/signal {"signal":"NUKE"}`:                  `signal "NUKE" is no signal: want a name as TERM or USR1`,
	} {
		path, body, _ := strings.Cut(call, " ")
		r := httptest.NewRequest("POST", path, strings.NewReader(body))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(auth.With(t.Context(), auth.Identity{Kind: auth.KindUser, UID: 1000, GID: 1000, User: "ada", Admin: true})))
		var e api.Error
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || w.Code != http.StatusBadRequest || e.Message != want {
			t.Errorf("%s: %d %.300s", call, w.Code, w.Body)
		}
	}
}

// A key is a user's own: who uses somebody else's gets a job of his own.
func TestKeysAreAUsersOwn(t *testing.T) {
	h, _, end := small(t)
	defer end()
	submit := func(uid uint32, user string) int64 {
		body := `{"key":"same","spec":{"size":1,"launch":"ranks","cpus_per_rank":1,"work_dir":"/tmp","script":"IyEvYmluL3NoCg=="}}`
		r := httptest.NewRequest("POST", "/v1/jobs", bytes.NewReader([]byte(body)))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(auth.With(t.Context(), auth.Identity{Kind: auth.KindUser, UID: uid, GID: uid, User: user})))
		var reply api.SubmitReply
		if err := json.Unmarshal(w.Body.Bytes(), &reply); err != nil || reply.JobID == 0 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		return reply.JobID
	}
	ada, eve := submit(1000, "ada"), submit(1001, "eve")
	if ada == eve {
		t.Errorf("eve was answered with ada's job %d", ada)
	}
	if again := submit(1000, "ada"); again != ada {
		t.Errorf("ada's retry made job %d beside %d", again, ada)
	}
}
