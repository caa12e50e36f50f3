package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gangd/e2e/trial"
	"gangd/pkg/api"
)

// holder is a program that takes VRAM of a card and computes on it: `holder.py GB [escape]`. It
// saves its step when it is asked to end, and goes on from there. With escape, the program ends
// at once and leaves the VRAM with a process of a session of its own.
const holder = `import os, signal, sys, time
stop = False
def asked(number, frame):
    global stop
    stop = True
signal.signal(signal.SIGTERM, asked)
signal.signal(signal.SIGUSR1, asked)
here = os.environ.get("GANG_JOB_ID", "stranger")
if "escape" in sys.argv:
    if os.fork():
        while not os.path.exists("holds." + here):
            time.sleep(0.01)
        os._exit(0)
    os.setsid()
import torch
held = torch.empty(int(float(sys.argv[1]) * 2**30), dtype=torch.uint8, device="cuda").fill_(1)
saved = os.path.join(os.environ.get("GANG_CHECKPOINT_DIR", "/nonexistent"), "step")
step = int(open(saved).read()) if os.path.exists(saved) else 0
print("begins at", step, flush=True)
x = torch.randn(1024, 1024, device="cuda") / 64
torch.cuda.synchronize()
open("holds." + here, "w").write(str(os.getpid()))
while not stop:
    x = torch.tanh(x @ x)
    torch.cuda.synchronize()
    step += 1
if os.path.isdir(os.path.dirname(saved)):
    with open(saved, "w") as f:
        f.write(str(step))
print("ends at", step, flush=True)
`

// realCards is a cluster of one node with this machine's cards, and the first of them; tests
// without cards, or without a PyTorch that finds them, are skipped.
func realCards(t *testing.T, args ...string) (*cluster, api.CardInfo) {
	t.Helper()
	probe := exec.Command(filepath.Join(trial.Bin(t), "gnoded"), "gpu-probe")
	probe.Stdin = strings.NewReader("inventory\n")
	out, err := probe.Output()
	var found struct{ Cards []api.CardInfo }
	if err != nil || json.Unmarshal(out, &found) != nil || len(found.Cards) == 0 {
		t.Skip("this machine has no cards")
	}
	if err := exec.Command("python3", "-c", "import torch; torch.zeros(1, device='cuda')").Run(); err != nil {
		t.Skip("python3 has no torch that finds this machine's cards")
	}
	c := start(t, append([]string{"--gpus=auto"}, args...)...)
	c.script("holder.py", holder)
	return c, found.Cards[0]
}

// real is a job on one real card that runs holder.py.
func (c *cluster) real(args string, options ...string) int64 {
	c.t.Helper()
	return c.submit(append(options, "--gpus-per-rank=1", "--output=%j.out", "--wrap=exec python3 "+c.tmp+"/holder.py "+args)...)
}

func (c *cluster) holds(id int64) {
	c.t.Helper()
	c.until(fmt.Sprintf("job %d holds its VRAM", id), func() bool {
		_, err := os.Stat(filepath.Join(c.tmp, fmt.Sprint("holds.", id)))
		return err == nil
	})
}

// TestRealCards is what users and administrators of a machine with cards see of them.
func TestRealCards(t *testing.T) {
	t.Parallel()
	c, info := realCards(t, "--set", "shared_vram_grace=2s", "--set", "grace=20s")
	const gib = int64(1) << 30
	near := func(got, want int64) bool { return got > want-gib/2 && got < want+2*gib }

	t.Run("figures", func(t *testing.T) {
		out, err := exec.Command("nvidia-smi", "-i", info.UUID, "--query-gpu=memory.total,memory.reserved", "--format=csv,noheader,nounits").Output()
		var total, reserved int64
		if _, scan := fmt.Sscanf(string(out), "%d, %d", &total, &reserved); err != nil || scan != nil {
			t.Skipf("nvidia-smi: %v, %q", err, out)
		}
		card := c.card("n1", 0)
		if card.UUID != info.UUID || card.VRAMBytes>>20 != total-reserved || card.UsedBytes+card.StrangersBytes > gib/8 {
			t.Errorf("of %d MiB, %d kept: %+v", total, reserved, card)
		}
	})

	t.Run("asked to end, saves, goes on", func(t *testing.T) {
		id := c.real("8", "--vram=20G", "--signal=USR1@60", "--requeue")
		c.holds(id)
		c.until("the card shows it", func() bool { k := c.card("n1", 0); return near(k.UsedBytes, 8*gib) && k.Utilization > 20 })
		os.Remove(filepath.Join(c.tmp, fmt.Sprint("holds.", id)))
		c.must("gctl", "requeue", fmt.Sprint(id))
		c.holds(id)
		c.kill("n1")
		c.restart("n1")
		c.until("the node knows it again", func() bool {
			k := c.card("n1", 0)
			return near(k.UsedBytes, 8*gib) && len(k.Jobs) == 1 && k.StrangersBytes == 0
		})
		c.must("gcancel", fmt.Sprint(id))
		c.wait(id, api.JobCancelled)
		var last int
		if n, err := fmt.Sscanf(c.read(fmt.Sprint(id, ".out")), "begins at 0\nends at %d\n", &last); n != 1 {
			t.Fatalf("%v in %q", err, c.read(fmt.Sprint(id, ".out")))
		}
		if got := c.read(fmt.Sprint(id, ".out")); !strings.Contains(got, fmt.Sprintf("\nbegins at %d\nends at ", last)) {
			t.Errorf("output %q", got)
		}
	})

	t.Run("what escapes does not outlive its job", func(t *testing.T) {
		first := c.real("30 escape", "--vram=40G")
		next := c.submit("--gpus-per-rank=1", "--vram=70G", "--output=%j.out",
			"--wrap=nvidia-smi -i "+info.UUID+" --query-gpu=memory.used --format=csv,noheader,nounits")
		c.wait(next, api.JobCompleted)
		if j := c.job(first); j.State != api.JobCompleted {
			t.Errorf("the first is %s", j.State)
		}
		if used := strings.TrimSpace(c.read(fmt.Sprint(next, ".out"))); len(used) > 3 {
			t.Errorf("%s MiB were in use when the next began", used)
		}
	})

	t.Run("more than its share", func(t *testing.T) {
		good := c.real("4", "--vram=10G", "--share")
		greedy := c.real("12", "--vram=6G", "--share")
		j := c.wait(greedy, api.JobOutOfMemory)
		if want := "of 6G asked on card 0"; !strings.Contains(j.Verdict, want) {
			t.Errorf("verdict %q lacks %q", j.Verdict, want)
		}
		if c.job(good).State != api.JobRunning {
			t.Errorf("its neighbour is %s", c.job(good).State)
		}
		c.must("gcancel", fmt.Sprint(good))
		c.wait(good, api.JobCancelled)
	})

	t.Run("a stranger on the card", func(t *testing.T) {
		stranger := exec.Command("python3", filepath.Join(c.tmp, "holder.py"), "25")
		stranger.Dir = c.tmp
		if err := stranger.Start(); err != nil {
			t.Fatal(err)
		}
		defer endProcess(stranger)
		c.until("it is seen", func() bool { return near(c.card("n1", 0).StrangersBytes, 25*gib) })
		id := c.submit("--gpus-per-rank=1", "--vram=70G", "--wrap=true")
		if why := c.must("gqueue", "--why", fmt.Sprint(id)); !strings.Contains(why, "held by strangers") {
			t.Errorf("why: %s", why)
		}
		endProcess(stranger)
		c.wait(id, api.JobCompleted)
	})

	t.Run("a program's own fault does not take the card", func(t *testing.T) {
		// An index that is out of bounds ends the kernel with Xid 43.
		id := c.submit("--gpus-per-rank=1", "--output=%j.out", "--wrap=python3 -c 'import torch; print(torch.zeros(4, device=\"cuda\")[torch.tensor([99], device=\"cuda\")].cpu())'")
		c.wait(id, api.JobFailed)
		next := c.submit("--gpus-per-rank=1", "--wrap=true")
		c.wait(next, api.JobCompleted)
		if card := c.card("n1", 0); card.State != api.CardOK {
			t.Errorf("the card is %s: %s", card.State, card.Reason)
		}
	})

	t.Run("a job without cards finds none", func(t *testing.T) {
		id := c.submit("--output=%j.out", "--wrap=python3 -c 'import torch; print(torch.cuda.device_count())'")
		c.wait(id, api.JobCompleted)
		if got := c.read(fmt.Sprint(id, ".out")); got != "0\n" {
			t.Errorf("found %q", got)
		}
	})
	if t.Failed() {
		out, _ := exec.Command("nvidia-smi").CombinedOutput()
		t.Logf("%s\n%s", bytes.TrimSpace(out), c.must("ginfo", "--cards"))
	}
}
