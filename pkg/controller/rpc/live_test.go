package rpc

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/engine"
	"gangd/pkg/wire/auth"
)

// event is one of a stream of server-sent events.
type event struct{ name, data string }

// listen follows a path as a user until the test ends.
func listen(t *testing.T, h http.Handler, path string, uid uint32) <-chan event {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(auth.With(r.Context(), auth.Identity{Kind: auth.KindUser, UID: uid, GID: uid, User: "ada"})))
	}))
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, "GET", s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	out := make(chan event, 1000)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(out)
		var ev event
		for sc := bufio.NewScanner(res.Body); sc.Scan(); {
			switch name, rest, _ := strings.Cut(sc.Text(), ": "); name {
			case "event":
				ev.name = rest
			case "data":
				ev.data += rest + "\n"
			case "":
				out <- ev
				ev = event{}
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done; res.Body.Close(); s.Close() })
	return out
}

// next gives the next event of a name.
func next(t *testing.T, evs <-chan event, name string) string {
	t.Helper()
	give := time.After(time.Minute)
	for {
		select {
		case ev, ok := <-evs:
			if !ok {
				t.Fatalf("the stream ended before %s", name)
			}
			if ev.name == name {
				return ev.data
			}
		case <-give:
			t.Fatalf("no %s came", name)
		}
	}
}

// A reader is told all, then what changes, whoever else reads.
func TestLive(t *testing.T) {
	h, e, end := small(t)
	defer end()
	one, other := listen(t, h, "/v1/live?nodes=1", 1000), listen(t, h, "/v1/live", 1000)
	for _, evs := range []<-chan event{one, other} {
		jobs, err := api.ReadLines(strings.NewReader(next(t, evs, "all")))
		if err != nil || len(jobs) != 2 || jobs[0].JobID != 1 || jobs[1].Name != "waits" {
			t.Fatalf("%+v %v", jobs, err)
		}
	}
	if nodes := next(t, one, "nodes"); !strings.Contains(nodes, `"name":"n1"`) {
		t.Error(nodes)
	}
	var o api.QueueOrder
	if text := next(t, one, "order"); json.Unmarshal([]byte(text), &o) != nil {
		t.Errorf("%s", text)
	}
	spec := api.Spec{Name: "third", Size: 1, Launch: api.LaunchRanks, CPUsPerRank: 1, WorkDir: "/tmp", Output: "/dev/null", Script: []byte("#!/bin/sh\n")}
	if _, err := e.Submit(t.Context(), &api.SubmitRequest{Key: "third", Spec: spec}, engine.Caller{UID: 1000, GID: 1000, User: "ada"}); err != nil {
		t.Fatal(err)
	}
	for _, evs := range []<-chan event{one, other} {
		for {
			jobs, err := api.ReadLines(strings.NewReader(next(t, evs, "rows")))
			if err != nil {
				t.Fatal(err)
			}
			if len(jobs) > 0 && jobs[len(jobs)-1].Name == "third" {
				break
			}
		}
	}
}

// A reader that does not read is cut, at so many frames; the others are told all the same.
func TestLiveCutsWhoStops(t *testing.T) {
	var l live
	l.readers = map[*liveReader]bool{}
	stopped, reads := &liveReader{frames: make(chan []byte, liveFrames)}, &liveReader{frames: make(chan []byte, liveFrames)}
	l.readers[stopped], l.readers[reads] = true, true
	for range liveFrames + 5 {
		l.tell([]byte("x"), func(*liveReader) bool { return true })
		<-reads.frames
	}
	if l.readers[stopped] || !l.readers[reads] {
		t.Fatalf("%v", l.readers)
	}
	held := 0
	for range stopped.frames { // it is closed
		held++
	}
	if held != liveFrames {
		t.Errorf("%d frames were held for it", held)
	}
}

func TestLogRanks(t *testing.T) {
	for text, want := range map[string]string{"2": "[2]", "0,2-3": "[0 2 3]", "1-2,2": "[1 2]"} {
		if got, err := logRanks(text, 4); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%q: %v %v", text, got, err)
		}
	}
	for _, text := range []string{"", "4", "2-1", "-1", "a", "0-", "0,,1", "0-99999999999"} {
		if got, err := logRanks(text, 4); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
	if _, err := logRanks("0-64", 1000); err == nil {
		t.Error("65 ranks were taken")
	}
	if _, err := logPositions("1:2:3,0:1:0"); err != nil {
		t.Error(err)
	}
	for _, text := range []string{"1", "1:2", "a:b:c", "1:-1:0", "1:1:-4"} {
		if _, err := logPositions(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

func TestFieldOf(t *testing.T) {
	header, line := []byte("job_id\tnodes\tend_time"), []byte("12\tn1,n2\t0\n")
	if got := fieldOf(line, nodesColumn(header)); got != "n1,n2" {
		t.Errorf("%q", got)
	}
	if got := fieldOf(line, columnOf(header, "end_time")); got != "0" {
		t.Errorf("%q", got)
	}
	if got := fieldOf([]byte("12\n"), 2); got != "" {
		t.Errorf("%q", got)
	}
}
