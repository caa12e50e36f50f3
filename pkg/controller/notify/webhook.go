package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"gangd/pkg/api"
)

// Formats of a webhook's body.
const (
	FormatGang = "gang" // all of each letter
	FormatText = "text" // {"text": "..."}, without what they would format, as Slack, Mattermost and Teams take it
)

// maxAnswer is what is read of an answer; nothing of it is kept.
const maxAnswer = 64 << 10

// Webhook is one target of the site.
type Webhook struct {
	Name   string
	URL    string // with what secrets it may hold
	Format string
	Secret []byte // of the signature; empty: none
	// Private: its address may be one of this host or of a private network.
	Private bool
}

// delivery is the body of [FormatGang].
type delivery struct {
	SchemaVersion int      `json:"schema_version"`
	Title         string   `json:"title"`
	Events        []posted `json:"events"`
}

type posted struct {
	Key string `json:"key"` // the same in each delivery
	*api.Letter
}

// Send delivers letters of one address.
func (h *Webhook) Send(ctx context.Context, all []*api.Letter, now time.Time) error {
	body, err := h.body(all)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("target %s: its URL can't be read", h.Name) // the URL may be a secret
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "gangd")
	req.Header.Set("X-Gang-Id", id(all[0]))
	if len(h.Secret) > 0 {
		at := strconv.FormatInt(now.Unix(), 10)
		mac := hmac.New(sha256.New, h.Secret)
		fmt.Fprintf(mac, "%s.%s", at, body)
		req.Header.Set("X-Gang-Time", at)
		req.Header.Set("X-Gang-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	}
	resp, err := h.client().Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // without the URL
		}
		return fmt.Errorf("target %s: %w", h.Name, err)
	}
	defer resp.Body.Close()
	// A short answer is read so that its sender sees a good end; what is longer is cut off.
	_, _ = io.CopyN(io.Discard, resp.Body, maxAnswer)
	switch {
	case resp.StatusCode >= 200 && resp.StatusCode < 300:
		return nil
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return fmt.Errorf("target %s: it answers with a redirect (%s), which is not followed: the configuration names the address", h.Name,
			resp.Status)
	}
	return fmt.Errorf("target %s: %s", h.Name, resp.Status)
}

func (h *Webhook) body(all []*api.Letter) ([]byte, error) {
	if h.Format == FormatText {
		return json.Marshal(map[string]string{"text": chat(title(all) + "\n" + body(all))})
	}
	d := delivery{SchemaVersion: api.SchemaVersion, Title: title(all)}
	for _, l := range all {
		d.Events = append(d.Events, posted{id(l), l})
	}
	return json.Marshal(d)
}

// client makes a connection for each delivery: they are few, and none is left to a server that misbehaves.
func (h *Webhook) client() *http.Client {
	dial := &net.Dialer{Timeout: sendTime, Control: h.mayDial}
	return &http.Client{
		Timeout:       sendTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{DialContext: dial.DialContext, DisableKeepAlives: true, MaxResponseHeaderBytes: maxAnswer, Proxy: nil},
	}
}

// mayDial looks at the address itself, after its name was resolved.
func (h *Webhook) mayDial(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if ip := at.Addr().Unmap(); !h.Private && !public(ip) {
		return fmt.Errorf("it leads to %s, which is no public address: private = true in its [[notify]] allows that", ip)
	}
	return nil
}

// notPublic are networks that netip does not know as private.
var notPublic = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("64:ff9b::/96"),
	netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("::/96")}

func public(ip netip.Addr) bool {
	for _, n := range notPublic {
		if n.Contains(ip) {
			return false
		}
	}
	return ip.IsGlobalUnicast() && !ip.IsPrivate()
}
