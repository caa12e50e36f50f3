package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"

	"gangd/e2e/trial"
	"gangd/pkg/lab/tool"
)

// whole says whether all flows run, or the share of CI.
func whole() bool { return os.Getenv("GANG_BROWSER") == "all" }

// chromium is the program, "" where there is none.
func chromium() string {
	for _, name := range []string{"chromium-headless-shell", "chromium", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// lab is a cluster with its page, and a browser.
type lab struct {
	trial.Client
	page  string // its address
	ctx   context.Context
	links func() string // makes a link; nil: gctl web does
}

// start brings both up.
func start(t *testing.T, args ...string) *lab {
	t.Helper()
	path := chromium()
	if path == "" {
		tool.Lack(t, "chromium")
	}
	bin := trial.Bin(t)
	dir, err := os.MkdirTemp("", "gb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	at := trial.FreeAddress(t)
	l := &lab{Client: trial.Client{T: t, Bin: bin, Dir: dir, Tmp: t.TempDir()}, page: "http://" + at}
	t.Cleanup(func() {
		trial.Logs(t, filepath.Join(dir, "log", "*.log"))
		_, _, _ = l.Run("gangd", "dev", "--stop", "--dir="+dir)
	})
	if out, errs, code := l.Run("gangd", append([]string{"dev", "--detach", "--isolate=false", "--dir=" + dir, "--web=" + at}, args...)...); code != 0 {
		t.Fatalf("gangd dev: exit %d\n%s%s", code, out, errs)
	}
	l.browse(t, path)
	return l
}

// browse starts a browser.
func (l *lab) browse(t *testing.T, path string) {
	t.Helper()
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.WSURLReadTimeout(trial.Patience), chromedp.UserDataDir(t.TempDir()))
	alloc, end := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(end)
	ctx, endBrowser := chromedp.NewContext(alloc)
	t.Cleanup(endBrowser)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	l.ctx = ctx
}

// link is a new one.
func (l *lab) link() string {
	if l.links != nil {
		return l.links()
	}
	return strings.TrimSpace(l.Must("gctl", "web"))
}

// tab is one page in the browser, and what went wrong in it.
type tab struct {
	t   *testing.T
	l   *lab
	ctx context.Context
	end context.CancelFunc // closes it

	mu       sync.Mutex
	complain []string // of the console
	foreign  []string // requests to other hosts
	bytes    float64  // that came over the wire
	trace    []jsonv2.Value
	traced   chan struct{} // closed once all of the trace is there
}

// tab opens a page of the site. Without a path it stays empty.
func (l *lab) tab(t *testing.T, path string) *tab {
	t.Helper()
	b := &tab{t: t, l: l}
	host := strings.TrimPrefix(l.page, "http://")
	hear := func(ev any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := ev.(type) {
		case *runtime.EventExceptionThrown:
			b.complain = append(b.complain, e.ExceptionDetails.Text)
		case *runtime.EventConsoleAPICalled:
			if e.Type == "error" || e.Type == "warning" {
				b.complain = append(b.complain, fmt.Sprint(e.Args))
			}
		case *log.EventEntryAdded:
			if e.Entry.Level == "error" {
				b.complain = append(b.complain, e.Entry.Text+" "+e.Entry.URL)
			}
		case *network.EventRequestWillBeSent:
			if u, err := url.Parse(e.Request.URL); err == nil && u.Host != host && u.Scheme != "data" && u.Scheme != "about" {
				b.foreign = append(b.foreign, e.Request.URL)
			}
		case *network.EventLoadingFinished:
			b.bytes += e.EncodedDataLength
		case *tracing.EventDataCollected:
			b.trace = append(b.trace, e.Value...)
		case *tracing.EventTracingComplete:
			close(b.traced)
		}
	}
	ctx, end := chromedp.NewContext(l.ctx, chromedp.WithListener(hear))
	t.Cleanup(end)
	if err := chromedp.Do(ctx, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err1 := cdp.Call(ctx, t, network.Enable, network.EnableParams{})
		_, err2 := cdp.Call(ctx, t, log.Enable, cdp.Empty{})
		return errors.Join(err1, err2)
	})); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*trial.Patience)
	t.Cleanup(cancel)
	b.ctx, b.end = ctx, end
	if path != "" {
		b.open(path)
	}
	return b
}

// logged opens a page of the site as who runs the tests.
func (l *lab) logged(t *testing.T, path string) *tab {
	t.Helper()
	b := l.tab(t, "")
	b.do(chromedp.Navigate(l.link()))
	if path != "/" {
		b.open(path)
	}
	return b
}

func (b *tab) open(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.l.page + path))
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// eval runs an expression, a promise too.
func (b *tab) eval(expr string, out any) {
	b.t.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]byte](expr, chromedp.EvalAwaitPromise))
	if err == nil && out != nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil {
		b.t.Fatalf("%s: %v", expr, err)
	}
}

// text is what an element says.
func (b *tab) text(id string) (s string) {
	b.t.Helper()
	b.eval(fmt.Sprintf(`document.getElementById(%q)?.textContent ?? ''`, id), &s)
	return s
}

// until waits for an expression to hold.
func (b *tab) until(expr string) {
	b.t.Helper()
	var ok bool
	for give := time.Now().Add(trial.Patience); ; time.Sleep(10 * time.Millisecond) {
		// What is not drawn yet is no failure.
		if b.eval("(() => { try { return Boolean("+expr+") } catch { return false } })()", &ok); ok {
			return
		}
		if time.Now().After(give) {
			var body string
			b.eval("document.body.innerText", &body)
			b.t.Fatalf("still not: %s\n%s\nconsole: %q", expr, body, b.complain)
		}
	}
}

// rest waits until the page draws nothing any more: its fonts are there, and for half a second of frames nothing in it has changed.
func (b *tab) rest() {
	b.t.Helper()
	b.eval(`document.fonts.ready.then(() => new Promise((done) => {
		let still = 0;
		const look = new MutationObserver(() => { still = 0; });
		look.observe(document.body, {childList: true, subtree: true, attributes: true, characterData: true});
		const frame = () => { if (++still < 30) requestAnimationFrame(frame); else { look.disconnect(); done(true); } };
		requestAnimationFrame(frame);
	}))`, nil)
}

// click clicks what a selector finds, once it is there.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.until(fmt.Sprintf("document.querySelector(%q)", selector))
	b.do(chromedp.Click(selector))
}

// press clicks the button with this text, and says yes.
func (b *tab) press(label string) {
	b.t.Helper()
	b.until(fmt.Sprintf("[...document.querySelectorAll('main button')].some((x) => x.textContent === %q)", label))
	b.eval(fmt.Sprintf("[...document.querySelectorAll('main button')].find((x) => x.textContent === %q).click()", label), nil)
	b.click("#yes")
}

// clean fails on what no flow may do.
func (b *tab) clean() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.complain {
		b.t.Errorf("console: %s", s)
	}
	for _, s := range b.foreign {
		b.t.Errorf("a request to another host: %s", s)
	}
}

// fetch makes a call as the page would, and gives its status and body.
func (b *tab) fetch(method, path, body, token string) (status int, text string) {
	b.t.Helper()
	var out struct {
		Status int
		Text   string
	}
	b.eval(fmt.Sprintf(`fetch(%q, {method: %q, body: %q || undefined, headers: {'Gang-CSRF': %q}}).then(async (r) => ({Status: r.status, Text: await r.text()}))`, path, method, body, token), &out)
	return out.Status, out.Text
}

// token is the session's.
func (b *tab) token() (s string) {
	b.t.Helper()
	b.eval(`fetch('/whoami').then((r) => r.json()).then((w) => w.csrf || '')`, &s)
	return s
}

// shot keeps a picture where the documentation has its own, when asked to.
func (b *tab) shot(name string) {
	b.t.Helper()
	dir := os.Getenv("GANG_SHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}
