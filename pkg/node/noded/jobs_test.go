package noded

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/lab/tool"
	"gangd/pkg/node/shim"
	"gangd/pkg/wire/jobapi"
	"gangd/pkg/wire/jobapi/jobhttp"
)

// A checkpoint goes from a rank to the controller, and is there as file and in the
// environment when the next epoch starts; what ranks say arrives too.
func TestCheckpointGoesRound(t *testing.T) {
	tool.Need(t, "/usr/bin/python3")
	c := newController(t)
	c.run(c.options(t.TempDir()))
	var work string
	k := c.desire(1, 1, 1, "#!/bin/bash\n/usr/bin/python3 -c 'import os,socket\n"+
		"s=socket.socket(socket.AF_UNIX); s.connect(os.environ[\"GANG_SOCKET\"])\n"+
		"s.sendall(b\"PUT /v1/checkpoint HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\nContent-Length: 3\\r\\n\\r\\na\\0b\")\n"+
		"print(s.recv(9999).decode())\n"+
		"socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM).sendto(b\"READY=1\",os.environ[\"NOTIFY_SOCKET\"])'\n",
		func(_ *api.Assignment, s *api.Spec) { work = s.WorkDir })
	c.untilPhase(k, api.PhaseStopped)
	c.mu.Lock()
	blob, notes := string(c.blob), c.notes
	c.mu.Unlock()
	if blob != "a\x00b" {
		out, _ := os.ReadFile(filepath.Join(work, "gang-1.out"))
		t.Fatalf("stored %q; the rank wrote %s", blob, out)
	}
	if len(notes) == 0 || notes[0].MemberKey != k || !notes[0].Ranks[0].Ready {
		t.Errorf("notes %+v", notes)
	}
	c.forget(k)
	c.untilGone(k)
	k = c.desire(1, 2, 1, "#!/bin/bash\ncat $GANG_CHECKPOINT_FILE; echo \" $CHECKPOINT_DATA\"\n",
		func(a *api.Assignment, s *api.Spec) { a.Body.Checkpoint, work = 1, s.WorkDir })
	c.untilPhase(k, api.PhaseStopped)
	out, err := os.ReadFile(filepath.Join(work, "gang-1.out"))
	if err != nil || !strings.HasSuffix(string(out), "a\x00b YQBi\n") {
		t.Errorf("the next epoch found %q, %v", out, err)
	}
}

// A process that is not the member's shim can't speak for it, whoever's it is.
func TestStrangerCantSpeakForAMember(t *testing.T) {
	c := newController(t)
	dir := t.TempDir()
	c.run(c.options(dir))
	k := c.desire(1, 1, 1, "#!/bin/sh\nexec sleep 600\n")
	c.untilPhase(k, api.PhaseRunning)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	d, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(d)
	if err := jobapi.HandOver(d, jobapi.Caller{MemberKey: k}, pair[1]); err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(pair[1])
	f := os.NewFile(uintptr(pair[0]), "pair")
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = conn.Write([]byte("GET /v1/job HTTP/1.0\r\n\r\n")) // it may be closed already
	if n, err := conn.Read(make([]byte, 100)); n > 0 || err == nil {
		t.Errorf("answered with %d bytes", n)
	}
	c.stop(k, 0)
	c.untilPhase(k, api.PhaseStopped)
}

// Who a task is: of its step and of its job, also on a node where no rank of the script is.
func TestWhoATaskIs(t *testing.T) {
	k := api.MemberKey{Job: 12, Epoch: 3}
	m := &member{key: k}
	m.known.Store(&shim.Spec{MemberKey: k, User: "ada", JobName: "train", Restarts: 2})
	d := &daemon{opts: Options{Name: "n2"}, jobs: map[int64][]*member{12: {m}}}
	step := 4
	got := d.Info(jobapi.Caller{MemberKey: k, Step: &step, Size: 8, Rank: 5})
	want := jobhttp.Info{SchemaVersion: api.SchemaVersion, JobID: 12, Name: "train", User: "ada", Node: "n2", Epoch: 3, RestartCount: 2, Step: &step, Rank: 5, Size: 8}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if got := d.Info(jobapi.Caller{MemberKey: api.MemberKey{Job: 12, Epoch: 4}, Rank: 1}); got.Name != "" || got.Epoch != 4 {
		t.Errorf("of another attempt: %+v", got)
	}
}

// A rank has no more connections open than its share, whatever the others have; what it closes it
// may open again.
func TestConnectionsOfARank(t *testing.T) {
	l := &handedListener{open: map[speaker]int{}}
	step := 0
	rank := jobapi.Caller{MemberKey: api.MemberKey{Job: 1, Epoch: 1}}
	task := rank
	task.Step = &step
	var conns []*handedConn
	for i := range maxCallerConns {
		if !l.count(rank, 1) {
			t.Fatalf("connection %d is refused", i+1)
		}
		a, b := net.Pipe()
		defer b.Close()
		conns = append(conns, &handedConn{Conn: a, caller: rank, l: l})
	}
	if l.count(rank, 1) || !l.count(task, 1) {
		t.Error("one too many, or a task counted as the rank of its number")
	}
	_ = conns[0].Close()
	_ = conns[0].Close()
	if !l.count(rank, 1) || l.count(rank, 1) {
		t.Error("one was closed, and not one may come")
	}
	l.count(rank, -1)
	for _, c := range conns[1:] {
		_ = c.Close()
	}
	if len(l.open) != 1 {
		t.Errorf("left over: %v", l.open)
	}
}
