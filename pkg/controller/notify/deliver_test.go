package notify

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gangd/pkg/api"
)

func send(t *testing.T, h *Webhook, all ...*api.Letter) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return h.Send(ctx, all, t0)
}

func TestWebhook(t *testing.T) {
	var body []byte
	var head http.Header
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		head = r.Header
	}))
	defer s.Close()
	h := &Webhook{Name: "chat", URL: s.URL + "/secret", Secret: []byte("key"), Private: true}
	if err := send(t, h, letter(7, "ada"), letter(8, "ada")); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Events []struct {
			Key  string `json:"key"`
			Type string `json:"type"`
			User string `json:"user"`
		} `json:"events"`
	}
	if err := json.Unmarshal(body, &got); err != nil || len(got.Events) != 2 || got.Events[0].Key != head.Get("X-Gang-Id") || got.Events[1].Key == got.Events[0].Key || got.Events[0].Type != "END" {
		t.Errorf("%v: %s (X-Gang-Id %s)", err, body, head.Get("X-Gang-Id"))
	}
	mac := hmac.New(sha256.New, []byte("key"))
	fmt.Fprintf(mac, "%s.%s", head.Get("X-Gang-Time"), body)
	if want := "sha256=" + hex.EncodeToString(mac.Sum(nil)); head.Get("X-Gang-Signature") != want {
		t.Errorf("signature %s, want %s", head.Get("X-Gang-Signature"), want)
	}
	h.Format = FormatText
	if err := send(t, h, letter(7, "ada")); err != nil || !strings.HasPrefix(string(body), `{"text":"Slurm Job_id=7 Name=train Ended,`) {
		t.Errorf("%v: %s", err, body)
	}
}

// Nothing of what a server answers leads anywhere, or takes more than its bound.
func TestWebhookIsHeldInBounds(t *testing.T) {
	var asked atomic.Int32
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer inner.Close()
	to := inner.URL
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusTemporaryRedirect) }))
	defer s.Close()
	for _, to = range []string{inner.URL, "http://169.254.169.254/latest/meta-data/"} {
		err := send(t, &Webhook{Name: "chat", URL: s.URL + "/secret", Private: true}, letter(1, "ada"))
		if err == nil || !strings.Contains(err.Error(), "redirect") || asked.Load() != 0 {
			t.Errorf("a redirect to %s: %v, asked %d times", to, err, asked.Load())
		}
	}

	// This host, a private network, the metadata service: only where the target says so.
	for _, url := range []string{inner.URL, "http://169.254.169.254/latest/", "http://10.0.0.1/", "http://[::1]:1/", "http://[fd00::1]/", "http://100.64.0.1/"} {
		err := send(t, &Webhook{Name: "chat", URL: url}, letter(1, "ada"))
		if err == nil || !strings.Contains(err.Error(), "no public address") {
			t.Errorf("%s: %v", url, err)
		}
	}
	for addr, want := range map[string]bool{"93.184.216.34": true, "2606:2800:220:1::1": true, "169.254.1.1": false, "127.0.0.1": false, "192.168.1.1": false, "fe80::1": false, "0.0.0.0": false,
		"::ffff:10.0.0.1": false, "64:ff9b::a00:1": false, "224.0.0.1": false} {
		if got := public(netip.MustParseAddr(addr).Unmap()); got != want {
			t.Errorf("%s is public: %t", addr, got)
		}
	}

	// An answer without an end, of 10 GB as it says.
	wrote := make(chan int64, 1)
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(int64(10)<<30))
		piece, n := make([]byte, 1<<16), int64(0)
		for n < 10<<30 {
			k, err := w.Write(piece)
			if n += int64(k); err != nil {
				break
			}
		}
		wrote <- n
	}))
	defer endless.Close()
	if err := send(t, &Webhook{Name: "chat", URL: endless.URL, Private: true}, letter(1, "ada")); err != nil {
		t.Error(err)
	}
	if n := <-wrote; n > 64<<20 {
		t.Errorf("%d bytes of an answer were taken", n)
	}

	// A URL may be a secret: no error tells it.
	gone := httptest.NewServer(nil)
	gone.Close()
	if err := send(t, &Webhook{Name: "chat", URL: gone.URL + "/hooks/T0PS3CRET", Private: true}, letter(1, "ada")); err == nil || strings.Contains(err.Error(), "T0PS3CRET") {
		t.Errorf("the error is %v", err)
	}
}

// mailServer takes mails; each that fails is refused at its end.
type mailServer struct {
	net.Listener
	mu    sync.Mutex
	mails []string
	fail  func(n int) bool
	seen  int
}

func newMailServer(t *testing.T, fail func(n int) bool) *mailServer {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &mailServer{Listener: l, fail: fail}
	var conns []net.Conn
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				break
			}
			conns = append(conns, c)
			wg.Go(func() { s.serve(c) })
		}
		for _, c := range conns {
			c.Close()
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return s
}

func (s *mailServer) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	say := func(text string) { fmt.Fprintf(c, "%s\r\n", text) }
	say("220 test ESMTP")
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		switch verb, _, _ := strings.Cut(strings.ToUpper(strings.TrimSpace(line)), " "); verb {
		case "EHLO", "HELO":
			say("250 test")
		case "DATA":
			say("354 go on")
			var text strings.Builder
			for {
				line, err := r.ReadString('\n')
				if err != nil {
					return
				}
				if line == ".\r\n" {
					break
				}
				text.WriteString(line)
			}
			s.mu.Lock()
			s.seen++
			bad := s.fail != nil && s.fail(s.seen)
			if !bad {
				s.mails = append(s.mails, text.String())
			}
			s.mu.Unlock()
			if bad {
				say("451 try again")
			} else {
				say("250 taken")
			}
		case "QUIT":
			say("221 bye")
			return
		default:
			say("250 fine")
		}
	}
}

func (s *mailServer) site() *Mail {
	return &Mail{Server: s.Addr().String(), TLS: "none", From: "gangd@uni.example", Domain: "uni.example", Domains: []string{"uni.example"}}
}

func TestMail(t *testing.T) {
	s := newMailServer(t, nil)
	l := letter(7, "ada")
	// A name is data: it makes no header, whatever it holds.
	l.JobName = "x\r\nBcc: eve@evil.example\r\n\r\nbody \u2028 é"
	if err := s.site().Send(t.Context(), []*api.Letter{l}); err != nil {
		t.Fatal(err)
	}
	got := s.mails[0]
	head, body, _ := strings.Cut(got, "\r\n\r\n")
	if strings.Contains(head, "\nBcc") || strings.Contains(body, "\r\nBcc") {
		t.Errorf("a header came in by a name:\n%s", got)
	}
	for _, want := range []string{"X-Gang-Id: " + id(l), "To: <ada@uni.example>", "Auto-Submitted: auto-generated", "Message-ID: <gang." + id(l)} {
		if !strings.Contains(head, want) {
			t.Errorf("no %q in\n%s", want, head)
		}
	}
	again := s.site()
	if err := again.Send(t.Context(), []*api.Letter{l}); err != nil || !strings.Contains(s.mails[1], "X-Gang-Id: "+id(l)) {
		t.Errorf("sent again: %v", err)
	}
	// Secrets in the open are not what a site gets by leaving a key out.
	open := s.site()
	open.TLS = "starttls"
	if err := open.Send(t.Context(), []*api.Letter{l}); err == nil {
		t.Error("a server without TLS got mail by starttls")
	}
}

// box is an outbox in memory.
type box struct {
	mu      sync.Mutex
	letters map[int64]*api.Letter
	reports []string
	changed chan struct{}
}

func (b *box) Letters(context.Context) (all []*api.Letter, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.letters {
		all = append(all, l)
	}
	return all, nil
}

func (b *box) Delivered(_ context.Context, letters []*api.Letter) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range letters {
		delete(b.letters, l.ID)
	}
	b.changed <- struct{}{}
	return nil
}

func (b *box) Report(_ context.Context, l *api.Letter) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reports = append(b.reports, l.Ref+" on "+l.To)
	return nil
}

func (b *box) GivenUp(context.Context, []*api.Letter, string) error { return nil }

// A mail server that refuses every second mail: each letter arrives, by the sender as it runs in gangd.
func TestSender(t *testing.T) {
	s := newMailServer(t, func(n int) bool { return n%2 == 1 })
	b := &box{letters: map[int64]*api.Letter{}, changed: make(chan struct{}, 64)}
	for i, user := range []string{"ada", "bob", "eve"} {
		l := letter(int64(i), user)
		l.Time = time.Now()
		b.letters[l.ID] = l
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	over := make(chan struct{})
	sender := &Sender{Log: quiet}
	sender.Take(&Site{Mail: s.site(), Burst: 1})
	go func() { sender.Run(ctx, b, b.changed); close(over) }()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		b.mu.Lock()
		left := len(b.letters)
		b.mu.Unlock()
		if left == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d letters are left", left)
		}
	}
	cancel()
	<-over
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mails) != 3 {
		t.Errorf("%d mails were taken of %d", len(s.mails), s.seen)
	}
}
