package browser

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"gangd/e2e/trial"
	"gangd/pkg/api"
	"gangd/pkg/controller/store/pgserver"
)

// Another user's page shows jobs of others without what changes them or what they write, and its calls are refused
// whatever the page shows.
func TestAnotherUser(t *testing.T) {
	if !whole() {
		t.Skip("set GANG_BROWSER=all (make browser)")
	}
	if os.Getuid() != 0 {
		t.Skip("only root can call as another user")
	}
	nobody := &syscall.Credential{Uid: 65534, Gid: 65534}
	l := start(t, "--nodes=1", "--gpus=2x80G")
	// gangd dev serves who started it alone; as a site has it, it serves all.
	toml := filepath.Join(l.Dir, "etc", "gangd.toml")
	text, err := os.ReadFile(toml)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Replace(string(text), "single_user = \"true\"", "single_user = \"false\"", 1)
	if all == string(text) {
		t.Fatalf("no single_user in %s", text)
	}
	if err := os.WriteFile(toml, []byte(all), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{l.Dir, filepath.Join(l.Dir, "run")} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	l.kill(t, "gangd")
	l.Must("gangd", "dev", "--restart=gangd", "--dir="+l.Dir)
	id := l.Submit("-o", l.Tmp+"/%j.out", "--wrap", "echo secret; sleep 600")
	l.Wait(id, api.JobRunning)

	cmd := exec.Command(filepath.Join(l.Bin, "gctl"), "web")
	cmd.Env, cmd.Dir = []string{"GANG_DIR=" + l.Dir, "PATH=/usr/bin:/bin"}, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: nobody}
	link, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, link)
	}
	b := l.tab(t, "")
	b.do(chromedp.Navigate(strings.TrimSpace(string(link))))
	b.until(`document.getElementById('who').textContent.startsWith('nobody') && !document.getElementById('who').textContent.includes('admin')`)
	b.open(fmt.Sprintf("/job/%d", id))
	b.until(`document.getElementById('job-logs')?.textContent.includes('Only root or an admin may read it')`)
	var buttons int
	b.eval(`document.querySelectorAll('#job-tools button').length`, &buttons)
	if buttons != 0 {
		t.Errorf("%d buttons on another user's job", buttons)
	}
	b.clean()
	body := fmt.Sprintf(`{"refs":["%d"]}`, id)
	for _, path := range []string{"/v1/cancel", "/v1/requeue", "/v1/hold"} {
		if status, text := b.fetch("POST", path, body, b.token()); !strings.Contains(text, string(api.CodePermission)) {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	for path, body := range map[string]string{"/v1/nodes/n1/drain": `{"reason":"x"}`, "/v1/tokens": `{}`} {
		if status, text := b.fetch("POST", path, body, b.token()); status != http.StatusForbidden {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	for _, path := range []string{fmt.Sprintf("/v1/logs?job=%d", id), fmt.Sprintf("/v1/jobs/%d/script", id)} {
		if status, text := b.fetch("GET", path, "", ""); status != http.StatusForbidden || strings.Contains(text, "secret") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if j := l.Job(id); j.State != api.JobRunning {
		t.Errorf("the job is %s", j.State)
	}
	l.Must("gcancel", "--now", fmt.Sprint(id))
}

// The page goes on by itself when another controller takes over: a proxy before them asks the one that leads.
func TestFailOver(t *testing.T) {
	if !whole() {
		t.Skip("set GANG_BROWSER=all (make browser)")
	}
	if _, err := pgserver.Find(); err != nil {
		t.Skip(err)
	}
	front := trial.FreeAddress(t)
	l := start(t, "--controllers=2", "--postgres", "--nodes=1", "--gpus=2x80G", "--set=web_url=http://"+front, "--set=heartbeat=1s")
	var pages []*url.URL
	for i := range 2 {
		u, err := url.Parse(l.page)
		if err != nil {
			t.Fatal(err)
		}
		port := 0
		if _, err := fmt.Sscan(u.Port(), &port); err != nil {
			t.Fatal(err)
		}
		u.Host = fmt.Sprintf("127.0.0.1:%d", port+i)
		pages = append(pages, u)
	}
	asks := &http.Client{Timeout: time.Second}
	leads := func() *url.URL {
		for _, u := range pages {
			if res, err := asks.Get(u.String() + "/readyz"); err == nil {
				says, _ := io.ReadAll(res.Body) // what came of it
				res.Body.Close()
				if string(says) == "ok\n" { // one that stands by says so
					return u
				}
			}
		}
		return pages[0] // none leads for the moment
	}
	proxy := &http.Server{Addr: front, Handler: &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(leads())
		r.Out.Host = r.In.Host
	}, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }}}
	go func() { _ = proxy.ListenAndServe() }()
	t.Cleanup(func() { _ = proxy.Close() })
	l.page = "http://" + front

	id := l.sleep()
	l.Wait(id, api.JobRunning)
	b := l.logged(t, "/queue")
	b.until(fmt.Sprintf(`document.querySelector('[data-job="%d"]')`, id))
	b.eval(`window.same = true`, nil)
	// One that joins may not lead before every node knows of it.
	l.Until(time.Minute, "both controllers on the nodes' list", func() bool {
		return strings.Contains(l.Must("gctl", "ping"), " stands by, ")
	})
	first := leads().Host
	name := "gangd"
	if first == pages[1].Host {
		name = "gangd2"
	}
	at := time.Now()
	l.kill(t, name)
	b.until(`!document.getElementById('lost').hidden`)
	b.until(`document.getElementById('line').textContent === 'live' && document.getElementById('lost').hidden`)
	t.Logf("the page is live again after %s", time.Since(at).Round(time.Millisecond))
	if now := leads().Host; now == first {
		t.Errorf("%s leads still", now)
	}
	next := l.sleep()
	b.until(fmt.Sprintf(`document.querySelector('[data-job="%d"]') && document.querySelector('[data-job="%d"]') && window.same`, next, id))
	b.open(fmt.Sprintf("/job/%d", next)) // the session is good at the other one
	b.press("Cancel")
	l.Wait(next, api.JobCancelled)
}
