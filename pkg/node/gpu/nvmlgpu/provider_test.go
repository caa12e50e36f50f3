package nvmlgpu

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gangd/pkg/api"
	"gangd/pkg/node/gpu"
	"gangd/pkg/node/gpu/gputest"
)

// The child's part is played by this test program; childEnv names the play.
const childEnv = "GANGD_GPU_PROBE_PLAY"

func TestMain(m *testing.M) {
	if play := os.Getenv(childEnv); play != "" {
		os.Exit(playChild(play))
	}
	goleak.VerifyTestMain(m)
}

// machinePlays are children over mock servers, where the build has cgo.
var machinePlays = map[string]func() (source, error){}

type fake struct{ xid int }

func (fake) inventory() ([]api.CardInfo, error) {
	return []api.CardInfo{{Index: 0, UUID: "GPU-a", Model: "H100", VRAMBytes: 80 << 30, NUMA: -1}, {Index: 1, UUID: "GPU-b", Model: "H100", VRAMBytes: 80 << 30, NUMA: 1}}, nil
}

func (f fake) sample() ([]gpu.Sample, error) {
	return []gpu.Sample{{UUID: "GPU-a", UsedBytes: 5, StrangersBytes: -1, Xid: f.xid}, {UUID: "GPU-b", UsedBytes: -1, StrangersBytes: -1}}, nil
}

func (fake) close() {}

func playChild(play string) int {
	if open := machinePlays[play]; open != nil {
		return serve(context.Background(), os.Stdin, os.Stdout, open)
	}
	if strings.HasSuffix(play, recordingSuffix) {
		return serve(context.Background(), os.Stdin, os.Stdout, func() (source, error) { return readRecording(play) })
	}
	lines := bufio.NewScanner(os.Stdin)
	switch play {
	case "none":
		return serve(context.Background(), os.Stdin, os.Stdout, func() (source, error) { return nil, errNone{"no driver in this play"} })
	case "broken":
		return serve(context.Background(), os.Stdin, os.Stdout, func() (source, error) { return nil, errors.New("NVML does not start: status 999") })
	case "hang":
		time.Sleep(time.Minute)
	case "garbage":
		fmt.Println("Segmentation fault")
		time.Sleep(time.Minute)
	case "dies":
		fmt.Fprintln(os.Stderr, "symbol lookup error: nvmlErrorString")
		return 127
	case "once": // answers once, hangs at the second question
		lines.Scan()
		_ = json.NewEncoder(os.Stdout).Encode(reply(fake{xid: 79}, lines.Text()))
		lines.Scan()
		time.Sleep(time.Minute)
	case "slow": // a driver that wakes up
		time.Sleep(300 * time.Millisecond)
		return serve(context.Background(), os.Stdin, os.Stdout, func() (source, error) { return fake{}, nil })
	case "good":
		return serve(context.Background(), os.Stdin, os.Stdout, func() (source, error) { return fake{}, nil })
	}
	return 9
}

func provider(t *testing.T, play string, limit, retry time.Duration) *Provider {
	t.Helper()
	t.Setenv(childEnv, play)
	p, err := New(Options{Command: []string{os.Args[0]}, Limit: limit, Retry: retry})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func TestProvider(t *testing.T) {
	gputest.Run(t, 2, func(t *testing.T) gpu.Provider { return provider(t, "good", 0, time.Nanosecond) })
}

func TestNoDriverIsNoCards(t *testing.T) {
	gputest.Run(t, 0, func(t *testing.T) gpu.Provider { return provider(t, "none", 0, time.Nanosecond) })
}

// TestBadChildren: each costs the reading that met it and says why; the next one works.
func TestBadChildren(t *testing.T) {
	for _, c := range []struct{ play, want string }{
		{"hang", "gpu probe has not answered within 200 ms"},
		{"dies", "gpu probe died: exit status 127: symbol lookup error: nvmlErrorString"},
		{"garbage", "gpu probe said something else: invalid character 'S' looking for beginning of value"},
		{"broken", "gpu probe: NVML does not start: status 999"},
	} {
		t.Run(c.play, func(t *testing.T) {
			limit := 20 * time.Second
			if c.play == "hang" {
				limit = 200 * time.Millisecond
			}
			p := provider(t, c.play, limit, time.Nanosecond)
			if _, err := p.Sample(context.Background()); err == nil || err.Error() != c.want {
				t.Errorf("sample: %v\nwant: %s", err, c.want)
			}
			lost := p.stuck
			select {
			case <-lost.gone:
			case <-time.After(20 * time.Second):
				t.Fatal("the child lives")
			}
			t.Setenv(childEnv, "good")
			p.o.Limit = 0
			if cards, err := p.Inventory(context.Background()); err != nil || len(cards) != 2 {
				t.Errorf("the next child: %d cards, %v", len(cards), err)
			}
		})
	}
}

// TestHungChildIsReplaced: what an older child saw of a card is not forgotten with it.
func TestHungChildIsReplaced(t *testing.T) {
	p := provider(t, "once", 20*time.Second, time.Nanosecond)
	if s, err := p.Sample(context.Background()); err != nil || s[0].Xid != 79 {
		t.Fatalf("sample: %+v, %v", s, err)
	}
	p.o.Limit = 50 * time.Millisecond
	if _, err := p.Sample(context.Background()); err == nil || err.Error() != "gpu probe has not answered within 50 ms" {
		t.Fatalf("second sample: %v", err)
	}
	p.o.Limit = 0
	<-p.stuck.gone
	t.Setenv(childEnv, "good")
	if s, err := p.Sample(context.Background()); err != nil || s[0].Xid != 79 || s[1].Xid != 0 {
		t.Errorf("sample of the next child: %+v, %v", s, err)
	}
}

// TestImpatientCallers: a driver that takes longer to wake up than a caller waits is not
// started over and over.
func TestImpatientCallers(t *testing.T) {
	p := provider(t, "slow", time.Minute, time.Hour)
	calls := 0
	for deadline := time.Now().Add(30 * time.Second); ; calls++ {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		cards, err := p.Inventory(ctx)
		cancel()
		if err == nil {
			if len(cards) != 2 || calls == 0 {
				t.Errorf("%d cards after %d calls", len(cards), calls)
			}
			break
		}
		if !errors.Is(err, context.DeadlineExceeded) || time.Now().After(deadline) {
			t.Fatalf("call %d: %v", calls, err)
		}
	}
	// The answer to one question is not taken for that to another.
	p.child.pending, p.child.asked = askInventory, time.Now()
	if _, err := p.child.in.Write([]byte("inventory\n")); err != nil {
		t.Fatal(err)
	}
	if s, err := p.Sample(context.Background()); err != nil || len(s) != 2 {
		t.Errorf("sample behind an inventory: %+v, %v", s, err)
	}
}

func TestTroubleIsNotAskedAgainAtOnce(t *testing.T) {
	p := provider(t, "dies", 20*time.Second, time.Hour)
	_, first := p.Sample(context.Background())
	t.Setenv(childEnv, "good")
	if _, err := p.Sample(context.Background()); err == nil || err != first { //nolint:errorlint // the very one
		t.Errorf("first %v, then %v", first, err)
	}
}

func TestCommandThatIsNotThere(t *testing.T) {
	p, err := New(Options{Command: []string{"/nonexistent/gnoded", "gpu-probe"}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	want := "gpu probe does not start: fork/exec /nonexistent/gnoded: no such file or directory"
	if _, err := p.Inventory(context.Background()); err == nil || err.Error() != want {
		t.Errorf("inventory: %v\nwant: %s", err, want)
	}
}

// TestCloseEndsAQuestion: a daemon that stops does not wait for a driver.
func TestCloseEndsAQuestion(t *testing.T) {
	p := provider(t, "hang", time.Hour, time.Nanosecond)
	got := make(chan error)
	go func() {
		_, err := p.Sample(context.Background())
		got <- err
	}()
	for len(p.turn) != 0 { // until the question is asked
		time.Sleep(time.Millisecond)
	}
	p.Close()
	if err := <-got; err == nil {
		t.Error("an answer")
	}
	if _, err := p.Sample(context.Background()); err == nil || err.Error() != "gpu provider is closed" {
		t.Errorf("after Close: %v", err)
	}
}

func TestServe(t *testing.T) {
	var out strings.Builder
	code := serve(context.Background(), strings.NewReader("inventory\nweather\n"), &out, func() (source, error) { return fake{}, nil })
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if code != 0 || len(lines) != 2 || !strings.HasPrefix(lines[0], `{"cards":[{"index":0,"uuid":"GPU-a"`) || lines[1] != `{"error":"unknown question \"weather\""}` {
		t.Errorf("exit %d:\n%s", code, out.String())
	}
}
