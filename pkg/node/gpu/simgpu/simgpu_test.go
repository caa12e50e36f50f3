package simgpu

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gangd/pkg/node/gpu"
	"gangd/pkg/node/gpu/gputest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestProvider(t *testing.T) {
	for text, cards := range map[string]int{"8x80G": 8, "2xA100:40G+1xH100:80G/7+24G": 10, "0": 0} {
		t.Run(text, func(t *testing.T) {
			gputest.Run(t, cards, func(t *testing.T) gpu.Provider {
				p, err := New(text, "n1", filepath.Join(t.TempDir(), "n1.json"))
				if err != nil {
					t.Fatal(err)
				}
				return p
			})
		})
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"0", ""},
		{"80G", "0 GPU-sim-n1-0 Simulated 80G 85899345920 false 0 []"},
		{"2x80GiB", "0 GPU-sim-n1-0 Simulated 80GIB 85899345920 false 0 [1]|1 GPU-sim-n1-1 Simulated 80GIB 85899345920 false 1 [0]"},
		{"1xA100:40G+1xmax:512M", "0 GPU-sim-n1-0 A100 42949672960 false 0 []|1 GPU-sim-n1-1 max 536870912 false 1 []"},
		{"H100:80G/2+24g", "0 MIG-sim-n1-0-0 H100 MIG 1/2 42949672960 true 0 []|1 MIG-sim-n1-0-1 H100 MIG 1/2 42949672960 true 0 []|2 GPU-sim-n1-1 Simulated 24G 25769803776 false 1 []"},
		{"8x", `simulated cards: "8x" is not a size of VRAM; write 8x80G or 4xA100:40G+4xH100:80G`},
		{"-1x80G", `simulated cards: "-1x80G" is not a size of VRAM; write 8x80G or 4xA100:40G+4xH100:80G`},
		{"0x80G", `simulated cards: "0x80G": the count is not in 1..256`},
		{"9000x80G", `simulated cards: "9000x80G": the count is not in 1..256`},
		{"200x80G+57x80G", `simulated cards "200x80G+57x80G": more than 256 cards`},
		{"4x:80G", `simulated cards: "4x:80G": no model before the colon`},
		{"4x80G/8", `simulated cards: "4x80G/8": a card is cut into 1 to 7 MIG instances, not "8"`},
		{"8x80G+", `simulated cards: "" is not a size of VRAM; write 8x80G or 4xA100:40G+4xH100:80G`},
		{"8x80", `simulated cards: "80" are 80 bytes, and a card has more; write 80G`},
		{"1e3", `simulated cards: "1e3" is not a size of VRAM; write 8x80G or 4xA100:40G+4xH100:80G`},
	} {
		cards, err := Parse(c.text, "n1")
		var lines []string
		for _, k := range cards {
			lines = append(lines, fmt.Sprint(k.Index, " ", k.UUID, " ", k.Model, " ", k.VRAMBytes, " ", k.MIG, " ", k.NUMA, " ", k.Peers))
		}
		got := strings.Join(lines, "|")
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.text, got, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"8x80G", "4xA100:40G+4xH100:80G", "2xH100:80G/4", "0", "x", "9999999999999999999x1G", "1x9e99G"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		cards, err := Parse(text, "n1")
		if err != nil {
			return
		}
		if len(cards) > maxCards {
			t.Fatalf("%d cards", len(cards))
		}
		for i, c := range cards {
			if c.Index != i || c.VRAMBytes <= 0 && !c.MIG || c.NUMA < 0 || c.NUMA > 1 {
				t.Fatalf("card %d: %+v", i, c)
			}
		}
	})
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// line is a sample in short: used strangers utilization xid unhealthy.
func line(t *testing.T, p *Provider) string {
	t.Helper()
	samples, err := p.Sample(context.Background())
	if err != nil {
		return err.Error()
	}
	var out []string
	for _, s := range samples {
		out = append(out, fmt.Sprintf("%d %d %d %d %s", s.UsedBytes>>30, s.StrangersBytes>>30, s.Utilization, s.Xid, s.Unhealthy))
	}
	return strings.Join(out, "|")
}

func TestSteering(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "n1.json")
	p, err := New("2x80G", "n1", file)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	idle := "0 0 0 0 |0 0 0 0 "
	if got := line(t, p); got != idle {
		t.Errorf("without a file: %s", got)
	}
	for _, c := range []struct{ text, want string }{
		{`{"0":{"used_by_strangers":"40G","used":"10G"}}`, "50 40 0 0 |0 0 0 0 "},
		{`{"GPU-sim-n1-1":{"utilization":97,"xid":79,"unhealthy":"fell off the bus"}}`, "0 0 0 0 |0 0 97 79 fell off the bus"},
		{`{"cards":{"1":{"used":42949672960,"unhealthy":true}}}`, "0 0 0 0 |40 0 0 0 simulated fault"},
		{`{"cards":[{"index":1,"used":"1G"},{"uuid":"GPU-sim-n1-0","used":"2G"}]}`, "2 0 0 0 |1 0 0 0 "},
		{`[{"used":"3G"},{"used":"900G"}]`, "3 0 0 0 |80 0 0 0 "},
		{`{"*":{"utilization":50},"1":{"unhealthy":false}}`, "0 0 50 0 |0 0 0 0 "},
		{`{"0":{"gone":true},"1":{"xid":79}}`, "0 0 0 79 "},
		{`{"driver":"driver not loaded","cards":{}}`, "driver not loaded"},
		{`{"driver":"driver not loaded","cards":{"1":{"xid":79}}}`, "driver not loaded"},
		// Not understood: said once, then what was known stands.
		{"{\n \"0\": {\n", file + ": line 3: unexpected end of JSON input"},
		{"", file + ": line 1: unexpected end of JSON input"},
		{`{"7":{}}`, file + `: there is no card "7"; there are 2, by index from 0 or by UUID`},
		{`{"0":{"utilisation":5}}`, file + `: json: unknown field "utilisation"`},
		{`{"0":{"utilization":101}}`, file + `: card "0": utilization 101 is not in 0..100, nor -1 for unknown`},
		{`{"0":{"used":"lots"}}`, file + `: "lots" is not a size such as 40G`},
		{`{"0":{"used":-5}}`, file + `: "-5" is not a size such as 40G`},
		{`{"0":{"processes":[{"pid":1,"utilization":101}]}}`, file + `: card "0": utilization 101 of process 1 is not in 0..100`},
		{`{}`, idle},
	} {
		good := line(t, p)
		write(t, file, c.text)
		if got := line(t, p); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.text, got, c.want)
		}
		if strings.HasPrefix(c.want, "/") {
			if got := settle(t, p); got != good {
				t.Errorf("after %s: %s, before %s", c.text, got, good)
			}
		}
	}
	write(t, file, `{"0":{"xid":79}}`)
	if got := line(t, p); got != "0 0 0 79 |0 0 0 0 " {
		t.Error(got)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got := line(t, p); got != idle {
		t.Errorf("after the file went: %s", got)
	}
}

// TestGoneCards: what is left is listed, numbered and linked without the gaps.
func TestGoneCards(t *testing.T) {
	file := filepath.Join(t.TempDir(), "n1.json")
	write(t, file, `{"0":{"gone":true},"2":{"gone":true}}`)
	p, err := New("4x80G", "n1", file)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	list := func() string {
		infos, err := p.Inventory(context.Background())
		if err != nil {
			return err.Error()
		}
		var out []string
		for _, c := range infos {
			out = append(out, fmt.Sprint(c.UUID, " ", c.Index, " ", c.Peers))
		}
		return strings.Join(out, "|")
	}
	if got, want := list(), "GPU-sim-n1-1 0 [1]|GPU-sim-n1-3 1 [0]"; got != want {
		t.Errorf("two are gone: %s, want %s", got, want)
	}
	write(t, file, `{"driver":"driver not loaded","cards":{}}`)
	if got := list(); got != "driver not loaded" {
		t.Errorf("without a driver: %s", got)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got, want := list(), "GPU-sim-n1-0 0 [1 2 3]|GPU-sim-n1-1 1 [0 2 3]|GPU-sim-n1-2 2 [0 1 3]|GPU-sim-n1-3 3 [0 1 2]"; got != want {
		t.Errorf("all are back: %s, want %s", got, want)
	}
}

// settle takes samples until one has no error: a file just written is read again until
// its time stamp can be trusted.
func settle(t *testing.T, p *Provider) string {
	t.Helper()
	for range 1000 {
		if got := line(t, p); !strings.HasPrefix(got, "/") {
			return got
		}
		time.Sleep(time.Millisecond)
	}
	return "errors without end"
}

// TestChanged: what is written into the directory is told without a Sample.
func TestChanged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "n1.json")
	p, err := New("8x80G", "n1", file)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, text := range []string{`{"0":{"xid":79}}`, `{"0":{"xid":48}}`, `{`, `{}`} {
		// As careful writers do: the name changes hands whole.
		write(t, file+".new", text)
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
		select {
		case <-p.Changed():
		case <-time.After(20 * time.Second):
			t.Fatalf("%s was not noticed", text)
		}
	}
}

func TestFileOfNoCards(t *testing.T) {
	p, err := New("0", "n1", filepath.Join(t.TempDir(), "n1.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if got := line(t, p); got != "" {
		t.Error(got)
	}
}

// TestProcesses: a process that the file names holds VRAM while it lives.
func TestProcesses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "n1.json")
	p, err := New("1x80G", "n1", file)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	sleep := exec.Command("sleep", "1000")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	write(t, file, fmt.Sprintf(`{"0":{"used":"10G","used_by_strangers":"5G","processes":[{"pid":%d,"used":"30G"},{"pid":%d,"used":"1G"}]}}`, sleep.Process.Pid, 1<<29))
	s, err := p.Sample(context.Background())
	if err != nil || s[0].UsedBytes != 35<<30 || len(s[0].Processes) != 1 || s[0].Processes[0] != (gpu.Process{PID: sleep.Process.Pid, VRAMBytes: 30 << 30}) {
		t.Errorf("%+v, %v", s, err)
	}
	_ = sleep.Process.Kill()
	_ = sleep.Wait()
	s, err = p.Sample(context.Background())
	if err != nil || s[0].UsedBytes != 15<<30 || len(s[0].Processes) != 0 {
		t.Errorf("after its end: %+v, %v", s, err)
	}
	write(t, file, `{"0":{"processes":[{"used":"1G"}]}}`)
	if got := line(t, p); got != file+`: card "0": 0 is not the number of a process` {
		t.Error(got)
	}
}

// TestXids: only fatal ones are a card's, until somebody has seen to it or the file names
// another.
func TestXids(t *testing.T) {
	file := filepath.Join(t.TempDir(), "n1.json")
	p, err := New("1x80G", "n1", file)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, step := range []struct{ text, want string }{
		{`{"0":{"xid":45}}`, "0 0 0 0 "},
		{`{"0":{"xid":79}}`, "0 0 0 79 "},
		{"resume", "0 0 0 0 "},
		{`{"0":{"xid":79,"utilization":1}}`, "0 0 1 0 "},
		{`{"0":{"xid":48}}`, "0 0 0 48 "},
		{`{"0":{"xid":79}}`, "0 0 0 79 "},
	} {
		if step.text != "resume" {
			write(t, file, step.text)
		} else if err := p.Resume(context.Background(), "GPU-sim-n1-0"); err != nil {
			t.Error(err)
		}
		if got := line(t, p); got != step.want {
			t.Errorf("%s: %q, want %q", step.text, got, step.want)
		}
	}
}

// Who uses a card is said once one process has a figure; one that is gone uses nothing.
func TestUsers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "n1.json")
	p, err := New("2x80G", "n1", file)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	write(t, file, `{"0":{"utilization":60,"processes":[{"pid":1,"utilization":60},{"pid":4194399,"utilization":9}]},"1":{"processes":[{"pid":1,"used":"1G"}]}}`)
	s, err := p.Sample(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(s[0].UsersKnown, s[0].Users, s[1].UsersKnown, s[1].Users); got != "true [{1 60}] false []" {
		t.Error(got)
	}
}
