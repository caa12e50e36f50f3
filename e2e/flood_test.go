package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gangd/e2e/tally"
	"gangd/pkg/api"
)

// flood is what one user does to gangd at a time.
type flood struct {
	arrays, elements int
	environments     int // each of so many bytes
	bytes            int
	loops            int // that list all jobs again and again
	streams          int // of events, never read
	submissions      int
	timed            int // submissions of another user meanwhile
}

// figures are left out of what was answered, to count answers.
var figures = regexp.MustCompile(`[0-9][0-9.]*[a-z]*`)

// What refusals say that there is too much of.
const (
	tooManyJobs    = "more are asked for, and a user may have"
	tooManyBytes   = "scripts, environments and options of the jobs"
	tooManyStreams = "streams, the most that one user may"
	tooOften       = "requests more than N a second"
)

// mostMemory is what gangd may take under all of it, in bytes.
const mostMemory = 600 << 20

// TestFlood: one user submits all he may, in all sizes, lists it again and again and follows it without
// reading. gangd's memory is bounded, another user's submissions are answered as ever, the node stays and
// starts his jobs, and each refusal says what there is too much of, and how much.
func TestFlood(t *testing.T) {
	t.Parallel()
	needRoot(t)
	f := flood{arrays: 1, elements: 1000, environments: 12, bytes: 1_900_000, loops: 8, streams: 40, submissions: 640, timed: 10}
	limits := []string{"user_jobs = 1100", `user_bytes = "10MiB"`, "user_streams = 20", "user_burst = 300"}
	if os.Getenv("GANG_E2E_CHAOS") != "" {
		f, limits = flood{arrays: 9, elements: 10_000, environments: 160, bytes: 1_900_000, loops: 64, streams: 1000, submissions: 100_000, timed: 1000}, nil
	}
	s := startSite(t, nil, limits...)
	s.node("n1", `cards = "none"`, "cpus = 64", "min_uid = 2")
	s.must("gnoded", "join", "--config="+filepath.Join(s.dir, "n1.toml"), s.line())
	s.up("n1")
	bob := s.person("games")
	idle := timed(bob, f.timed)
	m := &flooder{crowd: newCrowd(t, s.person("nobody")), said: map[string]int{}}
	stop := m.start(&f)
	longest := time.Duration(0)
	for m.arrays.Load() > 0 { // 10,000 elements are one commit: whoever comes then waits for it
		at := time.Now()
		bob.submit("--hold", "--wrap", "true")
		longest = max(longest, time.Since(at))
	}
	busy := timed(bob, f.timed)
	began := time.Now()
	ran := bob.submit("--time=1", "--wrap", "true")
	s.wait(ran, api.JobCompleted)
	started := time.Since(began)
	m.once.Wait()
	stop()

	peak, store := s.memory("VmHWM"), s.stored()
	for text, n := range m.said {
		t.Logf("%6d answers: %s", n, text)
	}
	t.Logf("%d submissions in %d arrays, %d environments and one by one; %d lists", m.asked.Load(), f.arrays, f.environments, m.lists.Load())
	tally.Did("submissions of one user in a flood", int(m.asked.Load()))
	s.kill("gangd", syscall.SIGTERM)
	again := time.Now()
	s.gangd()
	up := time.Since(again)
	s.untilNode("n1", "up")
	after := s.memory("VmHWM")
	fmt.Printf("flood: gangd took %d MiB at most, %d MiB after a restart (up in %s) with %d MiB in its store; another user's submissions p99 %s, %s without, %s at most beside arrays; his job was over after %s\n",
		peak>>20, after>>20, up.Round(time.Millisecond), store>>20, busy.Round(time.Millisecond), idle.Round(time.Millisecond), longest.Round(time.Millisecond), started.Round(time.Millisecond))

	var wrong []string
	if peak > mostMemory || after > mostMemory {
		wrong = append(wrong, fmt.Sprintf("gangd took %d bytes, %d after a restart", peak, after))
	}
	if busy > idle+late {
		wrong = append(wrong, fmt.Sprintf("another user's submission took %v, %v without", busy, idle))
	}
	for _, of := range []string{tooManyJobs, tooManyBytes, tooManyStreams, tooOften} {
		if !slices.ContainsFunc(m.texts(), func(text string) bool { return strings.Contains(text, of) }) {
			wrong = append(wrong, "no refusal says: "+of)
		}
	}
	if m.failed != "" {
		wrong = append(wrong, m.failed)
	}
	if is := s.nodeState("n1"); is != "up" {
		wrong = append(wrong, "the node is "+is)
	}
	tally.Checked(t, "one user's flood harms nobody", wrong...)
}

// memory is a figure of gangd's from /proc/PID/status, in bytes.
func (s *site) memory(field string) int64 {
	s.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.daemons["gangd"].Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				s.t.Fatal(err)
			}
			return kb << 10
		}
	}
	s.t.Fatalf("no %s in %s", field, b)
	return 0
}

// stored is how large the store's files are.
func (s *site) stored() (n int64) {
	names, _ := filepath.Glob(filepath.Join(s.dir, "gangd", "state.db*"))
	for _, name := range names {
		if i, err := os.Stat(name); err == nil {
			n += i.Size()
		}
	}
	return n
}

// flooder is the user who does it.
type flooder struct {
	crowd  *crowd
	asked  atomic.Int64 // submissions
	lists  atomic.Int64
	key    atomic.Int64
	arrays atomic.Int64   // that are to come yet, before anything else is submitted
	once   sync.WaitGroup // what is done once
	mu     sync.Mutex
	said   map[string]int // answers without their figures
	failed string         // an answer that is no refusal of ours
}

// start does all of it; stop ends what goes on for ever.
func (m *flooder) start(f *flood) (stop func()) {
	ctx, cancel := context.WithCancel(m.crowd.ctx)
	client := &http.Client{Transport: &http.Transport{DialContext: m.crowd.dial, MaxIdleConnsPerHost: 256}}
	for range f.streams {
		if conn, err := m.crowd.dial(ctx, "", ""); err == nil {
			m.crowd.hold(conn, "GET /v1/events?follow=1 HTTP/1.1\r\nHost: gangd\r\n\r\n")
		}
	}
	// The first word on each: 1,000 readers would need as many goroutines here.
	for _, conn := range m.crowd.open {
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		if r, err := http.ReadResponse(bufio.NewReaderSize(conn, 512), nil); err == nil && r.StatusCode != http.StatusOK {
			m.hear(r)
		}
	}
	var forever sync.WaitGroup
	for range f.loops {
		forever.Go(func() {
			for ctx.Err() == nil {
				m.call(ctx, client, "/v1/query", &api.JobQuery{})
				m.lists.Add(1)
			}
		})
	}
	elements := make([]int, f.elements)
	for i := range elements {
		elements[i] = i
	}
	m.arrays.Store(int64(f.arrays))
	var large sync.WaitGroup // before small ones have used up how many jobs he may have
	m.once.Go(func() {
		for range f.arrays {
			m.insist(ctx, client, nil, &api.Array{Indices: elements})
			m.arrays.Add(-1)
		}
		for i := range f.environments {
			large.Go(func() {
				var env []string
				for n := 0; n < f.bytes; n += 100_000 {
					env = append(env, fmt.Sprintf("E%d_%d=%s", i, n, strings.Repeat("x", 100_000)))
				}
				m.insist(ctx, client, env, nil)
			})
		}
		large.Wait()
		const atOnce = 16
		for range atOnce {
			large.Go(func() {
				for range f.submissions / atOnce {
					m.submit(ctx, client, nil, nil)
				}
			})
		}
		large.Wait()
		for range 2 { // the last is one too many
			m.insist(ctx, client, nil, &api.Array{Indices: elements})
		}
	})
	return func() { cancel(); forever.Wait(); client.CloseIdleConnections() }
}

// insist submits again what was only too early, until it is taken or more than he may hold.
func (m *flooder) insist(ctx context.Context, client *http.Client, env []string, array *api.Array) {
	for ctx.Err() == nil {
		text := m.submit(ctx, client, env, array)
		if text == "taken" || strings.Contains(text, tooManyJobs) || strings.Contains(text, tooManyBytes) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// submit asks for jobs of most of the node's CPUs: one runs, the others stand in the queue.
func (m *flooder) submit(ctx context.Context, client *http.Client, env []string, array *api.Array) (answer string) {
	m.asked.Add(1)
	return m.call(ctx, client, "/v1/jobs", &api.SubmitRequest{Key: fmt.Sprint("flood", m.key.Add(1)), Array: array, Spec: api.Spec{Name: "flood", Size: 1, Launch: api.LaunchRanks,
		CPUsPerRank: 40, TimeLimit: time.Hour, WorkDir: "/", Output: "/dev/null", Env: env, Script: []byte("#!/bin/sh\nexec sleep 1000\n")}})
}

// call gives what was answered, in words.
func (m *flooder) call(ctx context.Context, client *http.Client, path string, ask any) string {
	body, err := json.Marshal(ask)
	if err != nil {
		panic(err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://gangd"+path, bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Content-Type", "application/json")
	reply, err := client.Do(r)
	if err != nil {
		if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
			return tooOften // refused before all of it was sent
		}
		if ctx.Err() == nil {
			m.fail(err.Error())
		}
		return ""
	}
	defer reply.Body.Close()
	return m.hear(reply)
}

// hear notes what was answered.
func (m *flooder) hear(r *http.Response) string {
	text := "taken"
	if r.StatusCode != http.StatusOK {
		var e api.Error
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil || e.Code != api.CodeTooMany {
			m.fail(fmt.Sprintf("%s: %s %s, %v", r.Status, e.Code, e.Message, err))
		}
		text = figures.ReplaceAllString(e.Message, "N")
	}
	_, _ = io.Copy(io.Discard, r.Body)
	m.mu.Lock()
	m.said[text]++
	m.mu.Unlock()
	return text
}

func (m *flooder) fail(text string) {
	m.mu.Lock()
	m.failed = text
	m.mu.Unlock()
}

func (m *flooder) texts() (out []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for text := range m.said {
		out = append(out, text)
	}
	return out
}
