package browser

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"gangd/pkg/api"
)

// flow is one thing that a person does at the page.
type flow struct {
	name string
	ci   bool // of the share that runs in CI
	run  func(t *testing.T, l *lab)
}

func TestPage(t *testing.T) {
	l := start(t, "--nodes=3", "--gpus=4x80G", "--set", "node_timeout=5m", "--set", "mail_server=127.0.0.1:9", "--set", "mail_domain=uni.example")
	for _, f := range flows {
		if !f.ci && !whole() {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			here := *l
			here.T = t
			f.run(t, &here)
		})
	}
}

func (l *lab) sleep(args ...string) int64 {
	l.T.Helper()
	id := l.Submit(append(args, "-o", "/dev/null", "--wrap", "sleep 600")...)
	l.T.Cleanup(func() { _, _, _ = l.Run("gcancel", "--now", fmt.Sprint(id)) })
	return id
}

var flows = []flow{
	{"a link logs in once", true, func(t *testing.T, l *lab) {
		link := l.link()
		b := l.tab(t, "")
		b.do(chromedp.Navigate(link))
		b.until(`document.getElementById('line').textContent === 'live'`)
		b.until(`document.getElementById('who').textContent.includes('(admin)')`)
		b.clean()
		again := l.tab(t, "")
		again.do(chromedp.Navigate(link))
		again.until(`document.body.textContent.includes('This link was used already')`)
	}},
	{"without a session the page says how to get one", false, func(t *testing.T, l *lab) {
		b := l.tab(t, "/queue")
		b.do(chromedp.Func(clearCookies))
		b.open("/queue")
		b.until(`document.body.textContent.includes('gctl web')`)
		for _, path := range []string{"/v1/live", "/v1/nodes", "/v1/jobs/1"} {
			if status, text := b.fetch("GET", path, "", ""); status != 403 || !strings.Contains(text, "not logged in") {
				t.Errorf("%s: %d %s", path, status, text)
			}
		}
	}},
	{"a row is there at once", true, func(t *testing.T, l *lab) {
		b := l.logged(t, "/queue")
		b.until(`document.getElementById('count').textContent.includes('jobs')`)
		// The time is taken in the page, from the answer of gsubmit on.
		b.eval(`new MutationObserver(() => { for (const r of document.querySelectorAll('[data-job]')) (window.seen ??= {})[r.dataset.job] ??= Date.now(); }).observe(document.getElementById('rows'), {childList: true, subtree: true})`, nil)
		id := l.sleep("--size=2", "--gpus-per-rank=1")
		at := time.Now().UnixMilli()
		b.until(fmt.Sprintf(`(window.seen || {})[%d]`, id))
		var seen int64
		b.eval(fmt.Sprintf(`window.seen[%d]`, id), &seen)
		t.Logf("%d ms after submit", seen-at)
		if whole() && seen-at > 300 {
			t.Errorf("%d ms", seen-at)
		}
		b.clean()
	}},
	{"states change while one looks", false, func(t *testing.T, l *lab) {
		b := l.logged(t, "/queue")
		id := l.sleep()
		b.until(fmt.Sprintf(`document.querySelector('[data-job="%d"].go')`, id))
		l.Must("gcancel", fmt.Sprint(id))
		b.until(fmt.Sprintf(`!document.querySelector('[data-job="%d"]')`, id))
		b.click(`[data-chip="state ended"]`)
		b.until(fmt.Sprintf(`document.querySelector('[data-job="%d"] .sta')?.textContent.startsWith('cancelled')`, id))
		b.clean()
	}},
	{"why is gqueue's word by word", true, func(t *testing.T, l *lab) {
		l.Wait(l.sleep("--size=10", "--gpus-per-rank=1", "--time=60"), api.JobRunning)
		id := l.sleep("--size=6", "--gpus-per-rank=1", "--time=10")
		b := l.logged(t, fmt.Sprintf("/job/%d", id))
		b.until(`document.getElementById('why')`)
		// Times of day move: both are read until they were read within one second.
		for try := 0; ; try++ {
			before := l.Must("gqueue", "--why", fmt.Sprint(id))
			b.open(fmt.Sprintf("/job/%d", id))
			b.until(`document.getElementById('why')`)
			page, after := b.text("why"), l.Must("gqueue", "--why", fmt.Sprint(id))
			if page == before || page == after {
				break
			}
			if try == 20 {
				t.Fatalf("the page says\n%s\nand gqueue --why\n%s", page, after)
			}
		}
		b.until(`document.getElementById('line').textContent === 'live'`)
		b.clean()
	}},
	{"cancel", true, func(t *testing.T, l *lab) {
		id := l.sleep()
		l.Wait(id, api.JobRunning)
		b := l.logged(t, fmt.Sprintf("/job/%d", id))
		b.press("Cancel")
		l.Wait(id, api.JobCancelled)
		b.until(`document.getElementById('state').dataset.state === 'CANCELLED'`)
		b.clean()
	}},
	{"hold and release", false, func(t *testing.T, l *lab) {
		l.Wait(l.sleep("--size=12", "--gpus-per-rank=1"), api.JobRunning)
		id := l.sleep("--gpus-per-rank=1")
		b := l.logged(t, fmt.Sprintf("/job/%d", id))
		b.press("Hold")
		b.until(`document.getElementById('why').textContent.includes('held')`)
		b.press("Release")
		b.until(`!document.getElementById('why').textContent.includes('(JobHeldUser)')`)
		b.clean()
	}},
	{"requeue", false, func(t *testing.T, l *lab) {
		id := l.sleep()
		l.Wait(id, api.JobRunning)
		b := l.logged(t, fmt.Sprintf("/job/%d", id))
		b.press("Requeue")
		b.until(`document.getElementById('job-story').textContent.includes('drain completed')`)
		b.clean()
	}},
	{"a question can be answered with no", false, func(t *testing.T, l *lab) {
		id := l.sleep()
		b := l.logged(t, fmt.Sprintf("/job/%d", id))
		b.until(`[...document.querySelectorAll('main button')].some((x) => x.textContent === 'Cancel')`)
		b.eval(`[...document.querySelectorAll('main button')].find((x) => x.textContent === 'Cancel').click()`, nil)
		b.until(`document.activeElement.id === 'no' && document.activeElement.textContent === 'Keep running'`)
		b.until(`document.getElementById('ask-says').textContent.startsWith('It gets TERM now')`)
		b.click("#no")
		l.Wait(id, api.JobRunning)
		b.clean()
	}},
	{"output of three ranks, following", true, func(t *testing.T, l *lab) {
		id := l.Submit("--size=3", "-o", l.Tmp+"/%j-%t.out", "--wrap", `for i in 1 2 3; do echo "line $i of $GANG_RANK"; done; while [ ! -e `+l.Tmp+`/go ]; do sleep 0.1; done; echo "late from $GANG_RANK"`)
		b := l.logged(t, fmt.Sprintf("/job/%d", id))
		for rank := range 3 {
			b.until(fmt.Sprintf(`document.getElementById('log')?.textContent.includes('[%d] line 3 of %d')`, rank, rank))
		}
		l.Must("gqueue")
		b.eval(`{ const f = document.getElementById('follow'); f.checked = false; f.dispatchEvent(new Event('change')); }`, nil)
		if err := touch(l.Tmp + "/go"); err != nil {
			t.Fatal(err)
		}
		for rank := range 3 {
			b.until(fmt.Sprintf(`document.getElementById('log').textContent.includes('[%d] late from %d')`, rank, rank))
		}
		b.until(`document.getElementById('log-note').textContent === 'no more will come'`)
		b.until(`document.getElementById('job-head').textContent.includes('completed')`)
		b.until(`document.getElementById('follow').checked === false`) // the box is made anew at the end, as it was chosen to be
		b.eval(`{ const s = document.getElementById('ranks'); s.value = 'rank 1'; s.dispatchEvent(new Event('change')); }`, nil)
		b.until(`document.getElementById('log').textContent.includes('late from 1') && !document.getElementById('log').textContent.includes('late from 2')`)
		b.clean()
	}},
	{"what a job uses", false, func(t *testing.T, l *lab) {
		id := l.Submit("--size=2", "--gpus-per-rank=1", "-o", "/dev/null", "--mem=256M", "--wrap", "timeout 600 sh -c 'while :; do :; done'")
		t.Cleanup(func() { _, _, _ = l.Run("gcancel", "--now", fmt.Sprint(id)) })
		j := l.Wait(id, api.JobRunning)
		for i, n := range j.Nodes {
			l.sim(n, fmt.Sprintf(`{"*":{"utilization":%d,"used":"20G"}}`, 60+20*i))
			t.Cleanup(func() { l.sim(n, `{}`) })
		}
		b := l.logged(t, fmt.Sprintf("/job/%d", id))
		b.until(`document.querySelectorAll('#plots svg').length >= 3 && document.getElementById('used').textContent.includes('as of the last minute')`)
		b.until(`document.querySelectorAll('#job-heat svg').length === 2 && document.getElementById('job-used').textContent.includes('card 0')`)
		b.clean()
		l.Must("gcancel", fmt.Sprint(id))
		b.until(`!document.getElementById('used').textContent.includes('as of')`)
		b.until(`/CPUs[0-9.]+ % of those held/.test(document.getElementById('used').textContent)`)
		b.until(`document.querySelectorAll('#plots svg').length >= 3`)
		b.clean()
	}},
	{"umlauts and half characters in output", false, func(t *testing.T, l *lab) {
		id := l.Submit("-o", l.Tmp+"/u.out", "--wrap", `printf 'gr\303'; sleep 1; printf '\274\303\237e <b>&amp;</b>\n'`)
		b := l.logged(t, fmt.Sprintf("/job/%d", id))
		b.until(`document.getElementById('log')?.textContent.includes('grüße <b>&amp;</b>')`)
		b.clean()
	}},
	{"a name is text", false, func(t *testing.T, l *lab) {
		id := l.sleep("-J", `<img src=x onerror=alert(1)>`)
		b := l.logged(t, "/queue")
		b.until(fmt.Sprintf(`document.querySelector('[data-job="%d"] .nam')?.textContent.startsWith('<img')`, id))
		b.clean()
	}},
	{"a call without the token is refused", true, func(t *testing.T, l *lab) {
		id := l.sleep()
		b := l.logged(t, "/queue")
		body := fmt.Sprintf(`{"refs":["%d"]}`, id)
		for _, token := range []string{"", "x", strings.Repeat("A", 43)} {
			if status, text := b.fetch("POST", "/v1/cancel", body, token); status != 403 || !strings.Contains(text, "does not come from the page") {
				t.Errorf("token %q: %d %s", token, status, text)
			}
		}
		if j := l.Job(id); j.State.Ended() {
			t.Errorf("it is %s", j.State)
		}
		if status, text := b.fetch("POST", "/v1/cancel", body, b.token()); status != 200 {
			t.Errorf("with the token: %d %s", status, text)
		}
	}},
	{"only the calls of the page are passed on", false, func(t *testing.T, l *lab) {
		b := l.logged(t, "/queue")
		token := b.token()
		for _, call := range []string{"POST /v1/jobs", "GET /v1/session", "POST /v1/backup", "POST /v1/web", "POST /v1/revoke", "GET /metrics", "POST /v1/nodes/n1/forget"} {
			method, path, _ := strings.Cut(call, " ")
			body := ""
			if method == "POST" {
				body = "{}"
			}
			if status, text := b.fetch(method, path, body, token); status != 404 {
				t.Errorf("%s: %d %s", call, status, text)
			}
		}
	}},
	{"log out", false, func(t *testing.T, l *lab) {
		b := l.logged(t, "/queue")
		b.click("#out")
		b.until(`document.body.textContent.includes('Not logged in')`)
	}},
	{"now shows each card", false, func(t *testing.T, l *lab) {
		id := l.sleep("--size=2", "--gpus-per-rank=2", "--vram=40G", "--exclusive")
		l.Wait(id, api.JobRunning)
		b := l.logged(t, "/now")
		b.until(`document.querySelectorAll('.node .c').length === 12`)
		b.until(fmt.Sprintf(`document.querySelectorAll('a.seg[href="/job/%d"] .c.given').length === 4`, id))
		b.until(`document.getElementById('tile-cards').textContent.startsWith('Cards4 given 8 free')`)
		b.clean()
	}},
	{"strangers on a card", false, func(t *testing.T, l *lab) {
		b := l.logged(t, "/now")
		b.until(`document.querySelector('[data-node=n2] .c')`)
		l.sim("n2", `{"cards":{"1":{"used_by_strangers":"20G"}}}`)
		t.Cleanup(func() { l.sim("n2", `{}`) })
		b.until(`document.querySelector('[data-node=n2].t .c.hatch') && document.querySelector('[data-node=n2]').textContent.includes('stranger')`)
		b.clean()
	}},
	{"a card in quarantine", false, func(t *testing.T, l *lab) {
		b := l.logged(t, "/now")
		l.sim("n3", `{"cards":{"0":{"unhealthy":"fell off the bus"}}}`)
		t.Cleanup(func() { l.sim("n3", `{}`) })
		b.until(`document.querySelector('[data-node=n3].t .c.hatch')`)
		b.open("/admin")
		b.until(`document.getElementById('sick').textContent.includes('n3')`)
		b.clean()
	}},
	{"drain and resume a node", false, func(t *testing.T, l *lab) {
		b := l.logged(t, "/node/n3")
		b.until(`[...document.querySelectorAll('main button')].some((x) => x.textContent === 'Drain')`)
		b.eval(`[...document.querySelectorAll('main button')].find((x) => x.textContent === 'Drain').click()`, nil)
		b.do(chromedp.SendKeys("#reason", "fan"))
		b.click("#yes")
		b.until(`document.getElementById('state').textContent.startsWith('drain')`)
		b.until(`document.getElementById('view').textContent.includes('fan')`)
		b.press("Resume")
		b.until(`document.getElementById('state').textContent === 'up'`)
		b.clean()
	}},
	{"me", false, func(t *testing.T, l *lab) {
		id := l.Submit("--gpus-per-rank=1", "-o", "/dev/null", "--wrap", "sleep 1; exit 3")
		l.Wait(id, api.JobFailed)
		b := l.logged(t, "/me")
		b.until(`document.getElementById('week')?.textContent.includes('of card time')`)
		b.until(`document.getElementById('used').textContent.includes('rank 0 exited with code 3')`)
		b.until(`document.querySelector('#days svg, #days .empty') && document.getElementById('caps').textContent.includes('sets none for you')`)
		b.clean()
	}},
	{"admin", false, func(t *testing.T, l *lab) {
		b := l.logged(t, "/admin")
		b.until(`document.getElementById('ping')?.textContent.includes('3 of 3 nodes up')`)
		b.click("#verify")
		b.until(`document.getElementById('result').textContent === 'memory and store agree'`)
		b.clean()
	}},
	{"notices that do not arrive", false, func(t *testing.T, l *lab) {
		l.sleep("--mail-type=BEGIN")
		b := l.logged(t, "/admin")
		b.until(`document.getElementById('untold').textContent.includes('@uni.example') && document.getElementById('untold').textContent.includes('goes on: mail server 127.0.0.1:9')`)
		b.clean()
	}},
	{"filters", false, func(t *testing.T, l *lab) {
		one, other := l.sleep("-J", "alpha"), l.sleep("-J", "beta")
		b := l.logged(t, "/queue")
		b.until(fmt.Sprintf(`document.querySelector('[data-job="%d"]')`, other))
		b.do(chromedp.SendKeys("#filter", "alph"))
		b.until(fmt.Sprintf(`document.querySelector('[data-job="%d"]') && !document.querySelector('[data-job="%d"]')`, one, other))
		b.clean()
	}},
	{"keys", false, func(t *testing.T, l *lab) {
		id := l.sleep("-J", "keyed")
		b := l.logged(t, "/now")
		b.do(chromedp.KeyEvent("q"))
		b.until(fmt.Sprintf(`document.querySelector('[data-job="%d"]')`, id))
		b.do(chromedp.KeyEvent("/"))
		b.until(`document.activeElement.id === 'filter'`)
		b.eval(`document.activeElement.value = ''`, nil) // chromedp types the slash as well, which a person's keyboard does not
		b.do(chromedp.KeyEvent("keyed"))
		b.eval(`document.activeElement.blur()`, nil)
		b.until(`document.querySelectorAll("[data-job]").length === 1`)
		b.do(chromedp.KeyEvent("j"), chromedp.KeyEvent(kb.Enter))
		b.until(fmt.Sprintf(`location.pathname === '/job/%d'`, id))
		b.do(chromedp.KeyEvent("m"))
		b.until(`location.pathname === '/me'`)
		b.do(chromedp.KeyEvent("a"))
		b.until(`location.pathname === '/admin'`)
		b.clean()
	}},
	{"back and forth", false, func(t *testing.T, l *lab) {
		b := l.logged(t, "/now")
		b.click(`nav a[href="/queue"]`)
		b.until(`document.querySelector('h1').textContent === 'Queue'`)
		b.do(chromedp.NavigateBack())
		b.until(`document.querySelector('h1').textContent === 'Now' && document.getElementById('grid')`)
		b.clean()
	}},
	{"an element of an array", false, func(t *testing.T, l *lab) {
		id := l.sleep("--array=0-3")
		b := l.logged(t, fmt.Sprintf("/job/%d_2", id))
		b.until(`document.getElementById('state')`)
		b.until(fmt.Sprintf(`document.querySelector('h1').textContent.startsWith('%d_2 ')`, id))
		b.clean()
	}},
	{"a job that is not", false, func(t *testing.T, l *lab) {
		b := l.logged(t, "/job/99999")
		b.until(`document.getElementById('view').textContent.includes('no job 99999')`)
	}},
	{"an array of ten thousand is one row", false, func(t *testing.T, l *lab) {
		id := l.Submit("--array=0-9999", "--hold", "-o", "/dev/null", "--wrap", "true")
		t.Cleanup(func() { _, _, _ = l.Run("gcancel", "--now", fmt.Sprint(id)) })
		b := l.logged(t, "/queue")
		b.until(`document.getElementById('count').textContent.includes('10,000 of 10,0')`)
		b.until(fmt.Sprintf(`document.querySelectorAll('[data-array="%d"]').length === 1`, id))
		b.open(fmt.Sprintf("/job/%d", id))
		b.until(`document.getElementById('array-counts').textContent.startsWith('10,000 elements: 10,000 held')`)
		b.clean()
	}},
	{"a gangd that is frozen is seen within five seconds", false, func(t *testing.T, l *lab) {
		b := l.logged(t, "/now")
		b.until(`document.getElementById('line').textContent === 'live'`)
		at := time.Now()
		l.signal(t, "gangd", syscall.SIGSTOP)
		defer l.signal(t, "gangd", syscall.SIGCONT)
		b.until(`document.getElementById('line').textContent === 'away' && !document.getElementById('lost').hidden`)
		took := time.Since(at)
		l.signal(t, "gangd", syscall.SIGCONT)
		t.Logf("seen after %s", took.Round(time.Millisecond))
		if took > 5*time.Second {
			t.Errorf("%s", took)
		}
		b.until(`document.getElementById('line').textContent === 'live' && document.getElementById('lost').hidden`)
	}},
	{"what was done to a node is on its page", false, func(t *testing.T, l *lab) {
		l.Must("gctl", "node", "drain", "n2", "--reason=fan")
		l.Must("gctl", "node", "resume", "n2")
		b := l.logged(t, "/node/n2")
		b.until(`document.getElementById('node-story').textContent.includes('node drained') && document.getElementById('node-story').textContent.includes('fan')`)
		b.open("/admin")
		b.until(`document.getElementById('audit').textContent.includes('node resumed')`)
		b.clean()
	}},
	{"waiting jobs have their place and start", false, func(t *testing.T, l *lab) {
		l.Wait(l.sleep("--size=12", "--gpus-per-rank=1", "--time=60"), api.JobRunning)
		first, second := l.sleep("--size=12", "--gpus-per-rank=1", "--time=10"), l.sleep("--size=12", "--gpus-per-rank=1", "--time=10")
		b := l.logged(t, "/queue")
		b.until(fmt.Sprintf(`document.querySelector('[data-job="%d"] .plc')?.textContent === '1' && document.querySelector('[data-job="%d"] .plc')?.textContent === '2'`, first, second))
		b.until(fmt.Sprintf(`/[0-9][0-9]:[0-9][0-9]/.test(document.querySelector('[data-job="%d"] .beg').textContent)`, first))
		b.clean()
	}},
	{"320 points wide", false, func(t *testing.T, l *lab) {
		id := l.sleep("-J", "a-name-that-is-quite-long-for-a-phone")
		b := l.logged(t, "/queue")
		b.do(chromedp.EmulateViewport(320, 640))
		for _, path := range []string{"/queue", "/now", fmt.Sprintf("/job/%d", id), "/node/n1", "/me", "/admin"} {
			b.open(path)
			b.until(`document.querySelector('h1')`)
			b.until(`document.getElementById('line').textContent === 'live'`)
			var wide float64
			b.eval(`document.documentElement.scrollWidth`, &wide)
			if wide > 320 {
				t.Errorf("%s is %v wide", path, wide)
			}
		}
		b.open("/queue")
		b.until(fmt.Sprintf(`document.querySelector('[data-job="%d"]')`, id))
		b.shot("narrow.png")
		b.clean()
	}},
	{"dark", false, func(t *testing.T, l *lab) {
		b := l.logged(t, "/now")
		b.do(chromedp.Func(in("dark")))
		b.open("/now")
		b.until(`document.querySelectorAll('.node .c').length === 12`)
		var back string
		b.eval(`getComputedStyle(document.body).backgroundColor`, &back)
		if back != "rgb(15, 20, 25)" {
			t.Errorf("its background is %s", back)
		}
		b.shot("dark.png")
		b.clean()
	}},
	{"the first load is small", false, func(t *testing.T, l *lab) {
		b := l.tab(t, "")
		b.do(chromedp.Navigate(l.link()))
		b.until(`document.getElementById('line').textContent === 'live'`)
		var bytes float64
		b.eval(`performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation')).filter((e) => !e.name.includes('/v1/')).reduce((s, e) => s + e.encodedBodySize, 0)`, &bytes)
		if t.Logf("%v bytes", bytes); bytes == 0 || bytes > 170<<10 {
			t.Errorf("%v bytes", bytes)
		}
		b.clean()
	}},
	{"nothing inline runs", false, func(t *testing.T, l *lab) {
		b := l.logged(t, "/queue")
		var ran bool
		b.eval(`{ const s = document.createElement('script'); s.textContent = 'window.inline = true'; document.body.append(s); Boolean(window.inline) }`, &ran)
		if ran {
			t.Error("a script inline ran")
		}
	}},
	{"another name is refused", false, func(t *testing.T, l *lab) {
		status, text := l.get(t, "evil.example")
		if status != 403 || !strings.Contains(text, "evil.example") {
			t.Errorf("%d %s", status, text)
		}
	}},
	{"everything is labelled", false, axe},
	{"kill -9 of gangd", true, func(t *testing.T, l *lab) {
		id := l.sleep()
		l.Wait(id, api.JobRunning)
		b := l.logged(t, "/queue")
		b.until(fmt.Sprintf(`document.querySelector('[data-job="%d"]')`, id))
		b.eval(`window.same = true`, nil)
		l.kill(t, "gangd")
		b.until(`!document.getElementById('lost').hidden && document.getElementById('lost').textContent.includes('has not answered')`)
		l.Must("gangd", "dev", "--restart=gangd", "--dir="+l.Dir)
		b.until(`document.getElementById('line').textContent === 'live' && document.getElementById('lost').hidden`)
		next := l.sleep()
		b.until(fmt.Sprintf(`document.querySelector('[data-job="%d"]') && window.same`, next))
	}},
}
