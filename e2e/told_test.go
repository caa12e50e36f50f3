package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"mime/quotedprintable"
	"net"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gangd/pkg/controller/store/pgserver"
)

// audience is what receivers were told: ids of events by what they say.
type audience struct {
	mu  sync.Mutex
	ids map[string]map[string]int // event -> id -> times
}

func (o *audience) take(event, id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ids[event] == nil {
		o.ids[event] = map[string]int{}
	}
	o.ids[event][id]++
}

var mailed = regexp.MustCompile(`Job_id=(\d+(?:_\*)?) Name=\S+ (Began|Ended)`)

// takeMail reads the events of a mail: its subject is the first, or each has a line of its own.
func (o *audience) takeMail(text string) {
	m, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		return
	}
	body, _ := io.ReadAll(quotedprintable.NewReader(m.Body))
	event := ""
	for line := range strings.Lines("Subject: " + m.Header.Get("Subject") + "\n" + string(body)) {
		if found := mailed.FindStringSubmatch(line); found != nil {
			event = found[1] + " " + map[string]string{"Began": "BEGIN", "Ended": "END"}[found[2]]
		}
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "Id:"); ok {
			o.take(event, strings.TrimSpace(id))
		}
	}
}

// mailServer refuses every second mail.
func mailServer(t *testing.T, o *audience) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var n atomic.Int32
	serve := func(c net.Conn) {
		defer c.Close()
		r := bufio.NewReader(c)
		fmt.Fprint(c, "220 test ESMTP\r\n")
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			switch verb, _, _ := strings.Cut(strings.ToUpper(strings.TrimSpace(line)), " "); verb {
			case "DATA":
				fmt.Fprint(c, "354 go on\r\n")
				var text strings.Builder
				for line, err = r.ReadString('\n'); err == nil && line != ".\r\n"; line, err = r.ReadString('\n') {
					text.WriteString(line)
				}
				switch {
				case err != nil:
					return
				case n.Add(1)%2 == 1:
					fmt.Fprint(c, "451 try again\r\n")
				default:
					o.takeMail(text.String())
					fmt.Fprint(c, "250 taken\r\n")
				}
			case "QUIT":
				fmt.Fprint(c, "221 bye\r\n")
				return
			default:
				fmt.Fprint(c, "250 fine\r\n")
			}
		}
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
	return l.Addr().String()
}

// Mail and webhook servers that fail every second time, and kill -9 of gangd again and again: each event is told
// at least once, always with the same id, and an array is told of as one.
func TestToldWhateverDies(t *testing.T) {
	t.Parallel()
	if os.Getenv("GANG_E2E_CHAOS") == "" {
		t.Skip("waits for back-offs of seconds: make chaos runs this; pkg/controller/notify and pkg/core/gang have the cases")
	}
	byMail, byPost := &audience{ids: map[string]map[string]int{}}, &audience{ids: map[string]map[string]int{}}
	var posts atomic.Int32
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if posts.Add(1)%2 == 1 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		var d struct {
			Events []struct{ Key, Ref, Type string }
		}
		if json.NewDecoder(r.Body).Decode(&d) == nil {
			for _, e := range d.Events {
				byPost.take(e.Ref+" "+e.Type, e.Key)
			}
		}
	}))
	defer hook.Close()
	c := start(t, "--nodes=2", "--set", "mail_server="+mailServer(t, byMail), "--set", "mail_tls=none", "--set", "mail_domain=uni.example", "--set", "notify_rate=0")
	file := filepath.Join(c.dir, "etc", "gangd.toml")
	conf, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conf, "\n[[notify]]\nname = \"robot\"\nurl = %q\nprivate = true\n", hook.URL)
	conf.Close()
	c.kill("gangd")
	c.restart("gangd")
	job := c.script("j.sh", "#!/bin/sh\nsleep 0.2\n")
	var ids []int64
	for range rounds(20) {
		for range 3 {
			ids = append(ids, c.submit("-o", "/dev/null", "--mail-type=BEGIN,END", "--notify=robot:BEGIN,END", job))
		}
		time.Sleep(300 * time.Millisecond)
		c.kill("gangd")
		c.restart("gangd")
	}
	array := c.submit("-o", "/dev/null", "--array=0-999", "--mail-type=END", "--notify=robot:END", c.script("a.sh", "#!/bin/sh\n"))
	want := map[string]bool{}
	for _, id := range ids {
		want[fmt.Sprintf("%d BEGIN", id)], want[fmt.Sprintf("%d END", id)] = true, true
	}
	for name, o := range map[string]*audience{"mail": byMail, "post": byPost} {
		c.until("each event was told by "+name, func() bool {
			o.mu.Lock()
			defer o.mu.Unlock()
			for event := range want {
				if o.ids[event] == nil {
					return false
				}
			}
			return true
		})
	}
	whole := fmt.Sprintf("%d_* END", array)
	for name, o := range map[string]*audience{"mail": byMail, "post": byPost} {
		c.until("the array was told of by "+name, func() bool {
			o.mu.Lock()
			defer o.mu.Unlock()
			return o.ids[whole] != nil
		})
	}
	c.until("the outbox is empty", func() bool { return c.must("gctl", "outbox") == "" })
	for name, o := range map[string]*audience{"mail": byMail, "post": byPost} {
		twice := 0
		for event, all := range o.ids {
			if len(all) != 1 {
				t.Errorf("%s: %s was told with the ids %v", name, event, all)
			}
			for _, n := range all {
				if twice += n - 1; event == whole && n != 1 {
					t.Errorf("%s: an array of a thousand was told of %d times", name, n)
				}
			}
			if !want[event] && event != whole {
				t.Errorf("%s: %q was told and nobody asked", name, event)
			}
		}
		t.Logf("%s: %d events, %d told twice", name, len(o.ids), twice)
	}
}

// Two controllers, of which the one that leads is killed while letters wait: each event is told at least once, with the
// same id, by whoever leads then.
func TestToldThroughAFailOver(t *testing.T) {
	t.Parallel()
	chaos(t)
	if _, err := pgserver.Find(); err != nil {
		t.Skip(err)
	}
	byMail := &audience{ids: map[string]map[string]int{}}
	s := &several{cluster: start(t, "--controllers=2", "--postgres", "--nodes=2", "--set=heartbeat=1s", "--set=mail_server="+mailServer(t, byMail), "--set=mail_tls=none", "--set=mail_domain=uni.example", "--set=notify_rate=0")}
	job := s.script("j.sh", "#!/bin/sh\nsleep 0.2\n")
	want := map[string]bool{}
	for range rounds(5) {
		s.until("a controller that stands by", func() bool { return strings.Contains(s.must("gctl", "ping"), " stands by, ") })
		for range 5 {
			id := s.submit("-o", "/dev/null", "--mail-type=BEGIN,END", job)
			want[fmt.Sprintf("%d BEGIN", id)], want[fmt.Sprintf("%d END", id)] = true, true
		}
		pid, name := s.leader()
		s.kill(pid, syscall.SIGKILL)
		s.until("the leader to end", func() bool { return !running(pid) })
		if _, now := s.leader(); now == name {
			t.Errorf("%s leads still", now)
		}
		s.restart(name)
	}
	s.until("each event was told", func() bool {
		byMail.mu.Lock()
		defer byMail.mu.Unlock()
		for event := range want {
			if byMail.ids[event] == nil {
				return false
			}
		}
		return true
	})
	s.until("the outbox is empty", func() bool { return s.must("gctl", "outbox") == "" })
	twice := 0
	for event, ids := range byMail.ids {
		if len(ids) != 1 || !want[event] {
			t.Errorf("%s was told with the ids %v", event, ids)
		}
		for _, n := range ids {
			twice += n - 1
		}
	}
	t.Logf("%d events, %d told twice", len(want), twice)
}

// A part of the time limit is told when it is over.
func TestTimeLimitIsToldInTime(t *testing.T) {
	t.Parallel()
	chaos(t)
	at := make(chan time.Time, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { at <- time.Now() }))
	defer hook.Close()
	c := start(t, "--nodes=1")
	conf, err := os.OpenFile(filepath.Join(c.dir, "etc", "gangd.toml"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conf, "\n[[notify]]\nname = \"robot\"\nurl = %q\nprivate = true\n", hook.URL)
	conf.Close()
	c.kill("gangd")
	c.restart("gangd")
	const limit = 5 * time.Second
	id := c.submit("-o", "/dev/null", "--time=5s", "--notify=robot:TIME_LIMIT_80", "--wrap=sleep 100")
	select {
	case told := <-at:
		late := told.Sub(c.job(id).StartTime.Add(limit * 8 / 10))
		t.Logf("told %v after the moment", late.Round(time.Millisecond))
		if late < 0 || late > time.Second {
			t.Errorf("told %v after 80 %% of the limit were over", late)
		}
	case <-time.After(patience):
		t.Fatal("nobody was told")
	}
}
