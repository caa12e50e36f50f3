package cli

import (
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
	"gangd/pkg/lab/sitetest"
)

// What was given up is a line with its reason.
func TestOutboxLines(t *testing.T) {
	var b strings.Builder
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.Local)
	err := writeOutbox(&b, &api.OutboxReply{
		Lines:   []api.OutboxLine{{User: "ada", To: "ada@uni.example", Waiting: 2, Oldest: at, Tries: 3, Error: "mail server smtp:587: refused"}, {User: "ada", To: "n1", Report: true, Waiting: 1, Oldest: at}},
		GivenUp: []api.Letter{{User: "bob", Target: "chat", Type: api.NotifyFail, Ref: "12_*", Error: "target chat: 500 Internal Server Error"}},
	})
	want := "ada: 2 events wait for ada@uni.example since 2026-03-01 12:00:00; failed 3 times: mail server smtp:587: refused\n" +
		"ada: 1 report waits for node n1 since 2026-03-01 12:00:00\n" +
		"bob: given up after a day: FAIL of job 12_* to chat: target chat: 500 Internal Server Error\n"
	if err != nil || b.String() != want {
		t.Errorf("%v:\n%s\nwant:\n%s", err, b.String(), want)
	}
}

// Who asks how the controller is hears that something could not be told.
func TestPingNamesWhatWasGivenUp(t *testing.T) {
	s := sitetest.Empty(t, &gang.Changes{Letters: []gang.LetterRow{{ID: 1, Letter: &api.Letter{ID: 1, User: "ada", Target: "chat", Type: api.NotifyEnd, Time: sitetest.Begun, GivenUp: sitetest.Begun}}}})
	if out, _, code := run(t, s, NewGctl(), "ping"); code != 0 || !strings.HasSuffix(out, "\nnot told within a day, and given up: 1 notice (gctl outbox)\n") {
		t.Errorf("%d: %s", code, out)
	}
	if out, errs, code := run(t, nil, NewGctl(), "outbox", "--retry"); code != 0 {
		t.Error(out, errs)
	}
	if out, _, code := run(t, nil, NewGctl(), "ping"); code != 0 || strings.Contains(out, "not told") {
		t.Errorf("%d: %s", code, out)
	}
}
