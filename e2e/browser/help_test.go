package browser

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"gangd/pkg/api"
)

func clearCookies(ctx context.Context, t *chromedp.Target) error {
	_, err := cdp.Call(ctx, t, network.ClearBrowserCookies, cdp.Empty{})
	return err
}

// in is a person who likes it dark, or light.
func in(scheme string) func(context.Context, *chromedp.Target) error {
	return func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return err
	}
}

func touch(path string) error { return os.WriteFile(path, nil, 0o600) }

// sim steers the simulated cards of a node.
func (l *lab) sim(node, text string) {
	l.T.Helper()
	path := filepath.Join(l.Dir, "sim", node+".json")
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		l.T.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		l.T.Fatal(err)
	}
}

// kill ends a daemon at once.
func (l *lab) kill(t *testing.T, name string) {
	t.Helper()
	l.signal(t, name, syscall.SIGKILL)
}

func (l *lab) signal(t *testing.T, name string, sig syscall.Signal) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(l.Dir, "run", name+".pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatal(err)
	}
}

// get asks for the page under another name.
func (l *lab) get(t *testing.T, host string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", l.page+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// axe looks for what people with a screen reader or a keyboard would miss; `make axe` brings it.
func axe(t *testing.T, l *lab) {
	code, err := os.ReadFile("../../bin/axe.min.js")
	if err != nil {
		t.Skip("no axe-core here: make axe brings it")
	}
	id := strconv.FormatInt(l.sleep("--size=2", "--gpus-per-rank=1"), 10)
	waits := strconv.FormatInt(l.sleep("--size=12", "--gpus-per-rank=1"), 10)
	array := strconv.FormatInt(l.Submit("--array=0-2", "-o", "/dev/null", "--wrap", "exit 1"), 10)
	failed := l.Submit("-o", "/dev/null", "--wrap", "echo no; exit 3")
	l.Wait(failed, api.JobFailed)
	b := l.logged(t, "/queue")
	for _, path := range []string{"/queue", "/now", "/job/" + id, "/job/" + waits, "/job/" + array, "/job/" + strconv.FormatInt(failed, 10), "/job/999999", "/node/n1", "/me",
		"/admin", "/nosuch"} {
		b.open(path)
		b.until(`document.getElementById('line').textContent === 'live'`)
		b.until(`document.querySelector('main h1') && !document.querySelector('main').textContent.includes('loading')`)
		b.eval(string(code)+"; true", nil)
		var found []struct {
			ID, Impact, Help string
			Nodes            []struct{ HTML string }
		}
		b.eval(`axe.run().then((r) => r.violations.filter((v) => v.impact === 'serious' || v.impact === 'critical'))`, &found)
		for _, v := range found {
			text, _ := json.Marshal(v.Nodes)
			t.Errorf("%s: %s (%s): %s", path, v.Help, v.Impact, text)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.complain = nil // 404s, as they should be
}
