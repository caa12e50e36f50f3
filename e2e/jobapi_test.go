package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/lab/tool"
)

// beatWith is how a child of a rank says that it is alive.
func beatWith(t *testing.T) string {
	if _, err := exec.LookPath("systemd-notify"); err == nil {
		return `systemd-notify WATCHDOG=1 READY=1 "--status=step 7 loss 2.31"`
	}
	tool.Need(t, "/usr/bin/python3")
	return `/usr/bin/python3 -c 'import os,socket
socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM).sendto(b"WATCHDOG=1\nREADY=1\nSTATUS=step 7 loss 2.31",os.environ["NOTIFY_SOCKET"])'`
}

// A child of a rank beats with what every system has, and gqueue shows it; again after the
// node daemon was killed and after the controller was.
func TestStatusFromAChild(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=2")
	id := c.submit("--size=2", "--ranks-per-node=1", c.script("beat.sh", "#!/bin/bash\n[ $GANG_RANK = 1 ] && exec sleep 600\n(bash -c '"+
		strings.ReplaceAll(beatWith(t), "'", `'\''`)+"')\nexec sleep 600\n"))
	said := func() bool {
		j := c.job(id)
		return j.Status == "step 7 loss 2.31" && len(j.Ranks) == 2 && j.Ranks[0].Status == j.Status && j.Ranks[0].Ready && !j.Ranks[0].LastBeat.IsZero()
	}
	c.until("the status is shown", said)
	first := c.job(id).Ranks[0].LastBeat
	if age := time.Since(first); age < 0 || age > patience {
		t.Errorf("last beat %v ago", age)
	}
	if r := c.job(id).Ranks[1]; r.Status != "" || !r.LastBeat.IsZero() {
		t.Errorf("rank 1 said nothing, and yet %+v", r)
	}
	c.kill("n1")
	c.restart("n1")
	c.kill("gangd")
	c.restart("gangd")
	c.until("the status is shown again", said)
	if d := c.job(id).Ranks[0].LastBeat.Sub(first); d < -5*time.Second || d > 5*time.Second {
		t.Errorf("the beat of before is now %v away from where it was", d)
	}
}

// A megabyte of random bytes comes back after a requeue with the same hash, to every rank
// its own, as a file and through gckpt.
func TestCheckpointComesBack(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=2")
	id := c.submit("--size=3", "-o", "out.%t", c.script("ckpt.sh", `#!/bin/bash
sum() { sha256sum | cut -d' ' -f1; }
if [ $GANG_EPOCH = 1 ]; then
	gckpt get; echo "first get $?"
	head -c 1048576 /dev/urandom > blob.$GANG_RANK
	gckpt put blob.$GANG_RANK && echo put
	exec sleep 600
fi
sum < $GANG_CHECKPOINT_FILE > file.$GANG_RANK
gckpt get | sum > got.$GANG_RANK
gckpt get --rank=0 | sum > zero.$GANG_RANK
echo "env ${#CHECKPOINT_DATA}"
`))
	// The set is complete with each rank's first put; the large ones come one by one.
	c.until("the set of large blobs is complete", func() bool {
		k := c.job(id).Checkpoint
		return k != nil && k.Complete && k.Epoch == 1 && k.Bytes == 3<<20
	})
	c.must("gctl", "requeue", strconv.FormatInt(id, 10))
	c.wait(id, api.JobCompleted)
	for rank := range 3 {
		want := hashOf(t, filepath.Join(c.tmp, "blob."+strconv.Itoa(rank)))
		for _, name := range []string{"file.", "got."} {
			if got := lines(t, filepath.Join(c.tmp, name+strconv.Itoa(rank))); len(got) != 1 || got[0] != want {
				t.Errorf("%s%d has %v, want %s", name, rank, got, want)
			}
		}
		if got := lines(t, filepath.Join(c.tmp, "zero."+strconv.Itoa(rank))); len(got) != 1 || got[0] != hashOf(t, filepath.Join(c.tmp, "blob.0")) {
			t.Errorf("rank %d read %v of rank 0", rank, got)
		}
		out := strings.Join(lines(t, filepath.Join(c.tmp, "out."+strconv.Itoa(rank))), "\n")
		if !strings.Contains(out, "first get 3") || !strings.Contains(out, "env 0") {
			t.Errorf("rank %d wrote\n%s", rank, out)
		}
	}
	saved := 0
	for _, ev := range c.events(id) {
		if ev.Type == api.EventCheckpoint && ev.Bytes == 1<<20 && ev.Rank != nil && ev.Epoch == 1 {
			saved++
		}
	}
	if saved != 3 {
		t.Errorf("%d checkpoint_saved events, want 3\n%s", saved, c.story(id))
	}
}

func hashOf(t *testing.T, path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(b))
}

// The example counts to 1,000 through requeues at random moments and kills of the
// controller: every number once, in order.
func TestRestoreLosesNothing(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=2")
	example, err := filepath.Abs("../examples/restore/restore.sh")
	if err != nil {
		t.Fatal(err)
	}
	id := c.submit("--export=ALL,GOAL=1000,PACE=0.015", "-o", "out", example)
	n := rounds(20)
	for i := range n {
		time.Sleep(time.Duration(100+rand.IntN(400)) * time.Millisecond) // when it is hit is the test's point
		if i == n/3 || i == 2*n/3 {
			c.kill("gangd")
			time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
			c.restart("gangd")
		}
		if _, errs, code := c.run("gctl", "requeue", strconv.FormatInt(id, 10)); code != 0 && !c.job(id).State.Ended() {
			t.Fatalf("requeue %d: exit %d %s", i, code, errs)
		}
	}
	j := c.wait(id, api.JobCompleted)
	got := lines(t, filepath.Join(c.tmp, "counted.txt"))
	for i := range 1000 {
		if i >= len(got) || got[i] != strconv.Itoa(i+1) {
			t.Fatalf("%d numbers, the first wrong one at %d; the job's story:\n%s", len(got), i+1, c.story(id))
		}
	}
	if len(got) != 1000 || j.RestartCount == 0 {
		t.Errorf("%d numbers in %d restarts", len(got), j.RestartCount)
	}
	t.Logf("1,000 numbers, each once, in %d restarts", j.RestartCount)
}

// rankClient speaks to a rank's socket as a program in it would.
func rankClient(path string) *http.Client {
	return &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}}}
}

func send(t *testing.T, path, method, url string, body []byte) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, "http://gangd"+url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := rankClient(path).Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, strings.TrimSpace(string(b))
}

// socketOf starts a job of one sleeping rank and gives the socket it was told.
func socketOf(t *testing.T, c *cluster, args ...string) (int64, string) {
	t.Helper()
	id := c.submit(append(args, "-o", "sock.%j", c.script("sleep.sh", "#!/bin/bash\necho $GANG_SOCKET\nexec sleep 600\n"))...)
	c.wait(id, api.JobRunning)
	path := ""
	c.until("the rank printed its socket", func() bool {
		l := lines(t, filepath.Join(c.tmp, "sock."+strconv.FormatInt(id, 10)))
		if len(l) > 0 {
			path = l[0]
		}
		return path != ""
	})
	return id, path
}

func TestCheckpointRefusals(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=1")
	id, path := socketOf(t, c)
	const large = `{"code":"too_large","message":"the checkpoint is larger than the 16 MiB that one rank may store","hint":"write large state to files in $GANG_CHECKPOINT_DIR"}`
	if code, text := send(t, path, "PUT", "/v1/checkpoint", make([]byte, 17<<20)); code != 413 && !strings.Contains(text, "broken pipe") || code == 413 && text != large {
		t.Errorf("17 MiB: %d %s", code, text)
	}
	if code, text := send(t, path, "PUT", "/v1/checkpoint", bytes.Repeat([]byte{7}, api.MaxCheckpointBytes)); code != 200 {
		t.Errorf("16 MiB: %d %s", code, text)
	}
	if code, text := send(t, path, "GET", "/v1/checkpoint?rank=5", nil); code != 404 || text != `{"code":"not_found","message":"job 1 has no checkpoint of rank 5 from epoch 1"}` {
		t.Errorf("rank 5: %d %s", code, text)
	}
	if code, text := send(t, path, "GET", "/v1/job", nil); code != 200 || !strings.Contains(text, `"job_id":1,"name":"sleep.sh"`) {
		t.Errorf("who am I: %d %s", code, text)
	}
	// Without the node daemon the answer says so, and when it is back the same socket serves.
	c.kill("n1")
	// A connection that the dying daemon had taken is cut; the next one is answered.
	c.until("the socket says 503", func() bool { code, _ := send(t, path, "GET", "/v1/job", nil); return code == 503 })
	if code, text := send(t, path, "GET", "/v1/job", nil); code != 503 || text != `{"code":"unavailable","message":"the node daemon is restarting","hint":"try again in a second"}` {
		t.Errorf("without gnoded: %d %s", code, text)
	}
	c.restart("n1")
	c.until("the socket serves again", func() bool { code, _ := send(t, path, "GET", "/v1/checkpoint", nil); return code == 200 })
	_ = id
	// Only while it is being stopped.
	_, path = socketOf(t, c, "--checkpoint=drain")
	if code, text := send(t, path, "PUT", "/v1/checkpoint", []byte("x")); code != 409 || !strings.Contains(text, "was submitted with --checkpoint=drain and is not being stopped") {
		t.Errorf("--checkpoint=drain: %d %s", code, text)
	}
}

// What a new epoch puts counts from then on, and of the old one nobody is left to put anything.
func TestNewEpochsCheckpointWins(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=2", "--set=node_timeout=2s", "--set=lease=3s", "--set=grace=1s")
	id := c.submit("-o", "out.%N", c.script("epochs.sh", `#!/bin/bash
trap '' TERM
if [ $GANG_EPOCH = 1 ]; then
	echo one | gckpt put - && echo saved
	while [ ! -e go ]; do sleep 0.1; done
	echo stale | gckpt put --wait=20s -; echo "stale put ended $?"
	exec sleep 600
fi
echo two | gckpt put -
gckpt get > after
exec sleep 600
`))
	c.until("the first checkpoint is there", func() bool { return c.job(id).Checkpoint != nil })
	node := c.job(id).Ranks[0].Node
	pid := c.job(id).Ranks[0].PID
	c.must("gctl", "requeue", strconv.FormatInt(id, 10))
	c.until("it runs again", func() bool { j := c.job(id); return j.State == api.JobRunning && j.Epoch == 2 })
	if err := os.WriteFile(filepath.Join(c.tmp, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	c.until("its new checkpoint is there", func() bool { k := c.job(id).Checkpoint; return k != nil && k.Epoch == 2 })
	if running(pid) {
		t.Errorf("rank of epoch 1 lives on %s", node)
	}
	c.until("the new epoch reads its own checkpoint", func() bool {
		got := lines(t, filepath.Join(c.tmp, "after"))
		return len(got) == 1 && got[0] == "two"
	})
}

// Four ranks on four nodes meet, twice at the same name, and a rank that ends is not waited for.
func TestBarrier(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=4")
	id := c.submit("--size=4", "--ranks-per-node=1", "-o", "out.%t", c.script("meet.sh", `#!/bin/bash
for phase in 1 2; do
	sleep 0.$GANG_RANK
	touch came.$phase.$GANG_RANK
	gbarrier phase || exit 1
	ls came.$phase.* | wc -l
done
[ $GANG_RANK = 3 ] && exit 0
gbarrier --timeout=30s last; echo "last $?"
`))
	c.wait(id, api.JobCompleted)
	for rank := range 4 {
		got := strings.Join(lines(t, filepath.Join(c.tmp, "out."+strconv.Itoa(rank))), "|")
		// Which of the ranks that ended is named depends on who came to hear of it first.
		refused := strings.HasPrefix(got, "4|4|gbarrier: barrier last: rank ") && strings.HasSuffix(got, " has ended and will not come|last 1")
		if rank == 3 && got != "4|4" || rank < 3 && !refused {
			t.Errorf("rank %d wrote %q", rank, got)
		}
	}
}

// The notice is acknowledged, and when nobody has anything left to save the lead ends.
func TestAcknowledgedNoticeEndsTheLead(t *testing.T) {
	t.Parallel()
	tool.Need(t, "/usr/bin/python3")
	c := start(t, "--nodes=2")
	id := c.submit("--size=2", "--ranks-per-node=1", "--signal=B:USR1@50", c.script("ack.sh", `#!/bin/bash
say() { /usr/bin/python3 -c 'import os,socket,sys
socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM).sendto(sys.argv[1].encode(),os.environ["NOTIFY_SOCKET"])' "$1"; }
trap 'say STOPPING=1; echo state | gckpt put -; say X_GANG_CHECKPOINT=done' USR1
touch ready.$GANG_RANK
[ $GANG_EPOCH = 1 ] || exit 0
while :; do sleep 0.1; done
`))
	c.until("both ranks listen", func() bool { f, _ := filepath.Glob(filepath.Join(c.tmp, "ready.*")); return len(f) == 2 })
	began := time.Now()
	c.must("gctl", "requeue", strconv.FormatInt(id, 10))
	c.wait(id, api.JobCompleted)
	if d := time.Since(began); d > 25*time.Second {
		t.Errorf("the end took %v of a lead of 50 s", d)
	}
	most := 0
	for _, ev := range c.events(id) {
		if ev.Type == api.EventAcknowledged {
			most = max(most, ev.Acknowledged)
		}
	}
	if most != 2 {
		t.Errorf("acknowledged by %d of 2\n%s", most, c.story(id))
	}
}
