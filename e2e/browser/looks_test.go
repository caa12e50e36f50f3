package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// looks are the widths and sizes in which every view is looked at by a person before it changes.
var widths = []int64{320, 768, 1440, 2560}

// TestLooks takes pictures of all views into GANG_LOOKS, of sites that are drawn. GANG_LOOKS_OF narrows them: "6x150 1440 dark".
func TestLooks(t *testing.T) {
	dir := os.Getenv("GANG_LOOKS")
	if dir == "" {
		t.Skip("set GANG_LOOKS=DIR")
	}
	want := strings.Fields(os.Getenv("GANG_LOOKS_OF"))
	wanted := func(words ...string) bool {
		for _, w := range want {
			found := false
			for _, x := range words {
				found = found || x == w
			}
			if !found {
				return false
			}
		}
		return true
	}
	for _, size := range [][2]int{{0, 0}, {1, 7}, {6, 7}, {6, 150}, {24, 150}, {500, 150}, {24, 10000}} {
		name := fmt.Sprintf("%dx%d", size[0], size[1])
		type look struct {
			scheme string
			width  int64
		}
		var looks []look
		for _, width := range widths {
			for _, scheme := range []string{"light", "dark"} {
				if wanted(name, scheme, fmt.Sprint(width)) {
					looks = append(looks, look{scheme, width})
				}
			}
		}
		if len(looks) == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			s := invent(size[0], size[1])
			l := s.serve(t)
			first := l.tab(t, "")
			first.do(chromedp.Navigate(l.link()))
			first.end()
			for view, path := range s.views() {
				if only := os.Getenv("GANG_LOOKS_VIEW"); only != "" && only != view {
					continue
				}
				b := l.tab(t, path) // one for each view: a tab has its time
				b.until(`document.getElementById('line').textContent === 'live'`)
				for _, k := range looks {
					b.do(chromedp.EmulateViewport(k.width, map[bool]int64{true: 640, false: 900}[k.width == 320]), chromedp.Func(in(k.scheme)))
					b.rest()
					png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
					if err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%s-%d-%s.png", view, name, k.width, k.scheme)), png, 0o600); err != nil {
						t.Fatal(err)
					}
					var wide float64
					if b.eval(`document.documentElement.scrollWidth`, &wide); wide > float64(k.width) {
						t.Errorf("%s is %v wide", view, wide)
					}
				}
				b.mu.Lock()
				b.complain = slices.DeleteFunc(b.complain, func(s string) bool { return strings.Contains(s, "404") }) // of what is not there
				b.mu.Unlock()
				b.clean()
				b.end()
			}
		})
	}
}

// views are the addresses that show each view, and each state of a job.
func (s *invented) views() map[string]string {
	out := map[string]string{"now": "/now", "queue": "/queue", "me": "/me", "admin": "/admin", "nowhere": "/nosuch", "no-job": "/job/1"}
	if len(s.nodes) > 0 {
		out["node"] = "/node/" + s.nodes[0].Name
	}
	for i := range s.jobs {
		j := &s.jobs[i]
		switch {
		case j.ArrayJobID != 0:
			out["array"] = fmt.Sprintf("/job/%d", j.ArrayJobID)
		case j.State == "RUNNING" && (i == 1 || len(s.jobs) == 1):
			out["running"] = fmt.Sprintf("/job/%d", j.JobID)
		case j.State == "FAILED":
			out["failed"] = fmt.Sprintf("/job/%d", j.JobID)
		case j.State == "PENDING" && out["waiting"] == "":
			out["waiting"] = fmt.Sprintf("/job/%d", j.JobID)
		}
	}
	return out
}
