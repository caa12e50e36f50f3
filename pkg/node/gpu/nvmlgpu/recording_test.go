package nvmlgpu

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/node/gpu"
	"gangd/pkg/node/gpu/gputest"
)

// A recording is what a probe child answered on some machine, one line for its inventory and
// one for a sample:
//
//	printf 'inventory\nsample\n' | gnoded gpu-probe > pkg/node/gpu/nvmlgpu/testdata/NAME.jsonl
//
// Each that lies in testdata is played again through a child and held to the contract.
const recordingSuffix = ".jsonl"

type recording struct{ cards, samples answer }

func readRecording(path string) (source, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxAnswer)
	var r recording
	for _, to := range []*answer{&r.cards, &r.samples} {
		if !lines.Scan() {
			return nil, lines.Err()
		}
		if err := json.Unmarshal(lines.Bytes(), to); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r recording) inventory() ([]api.CardInfo, error) { return r.cards.Cards, nil }
func (r recording) sample() ([]gpu.Sample, error)      { return r.samples.Samples, nil }
func (recording) close()                               {}

func TestRecordings(t *testing.T) {
	files, err := filepath.Glob("testdata/*" + recordingSuffix)
	if err != nil || len(files) == 0 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			r, err := readRecording(f)
			if err != nil {
				t.Fatal(err)
			}
			cards, _ := r.inventory()
			gputest.Run(t, len(cards), func(t *testing.T) gpu.Provider { return provider(t, f, 0, time.Nanosecond) })
		})
	}
}

// TestXidsOutliveTheDaemon: what a driver said once it does not say again after a restart; a
// boot, or a person's word, ends it.
func TestXidsOutliveTheDaemon(t *testing.T) {
	file := filepath.Join(t.TempDir(), "xids")
	open := func(play, boot string) *Provider {
		p := provider(t, play, 20*time.Second, time.Nanosecond)
		p.Close()
		p, err := New(Options{Command: []string{os.Args[0]}, Limit: 20 * time.Second, Retry: time.Nanosecond, XidFile: file, Boot: boot})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		return p
	}
	xid := func(p *Provider) int {
		t.Helper()
		s, err := p.Sample(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return s[0].Xid
	}
	p := open("once", "b1")
	if got := xid(p); got != 79 {
		t.Fatal(got)
	}
	p.Close()
	p = open("good", "b1")
	if got := xid(p); got != 79 {
		t.Errorf("after a restart: %d", got)
	}
	if err := p.Resume(context.Background(), "GPU-a"); err != nil {
		t.Fatal(err)
	}
	if got := xid(p); got != 0 {
		t.Errorf("after a resume: %d", got)
	}
	p.Close()
	if got := xid(open("good", "b1")); got != 0 {
		t.Errorf("after a resume and a restart: %d", got)
	}
	if err := os.WriteFile(file, []byte(`{"boot":"b1","xids":{"GPU-a":48}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := xid(open("good", "b2")); got != 0 {
		t.Errorf("after a boot: %d", got)
	}
}
