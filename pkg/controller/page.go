package controller

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"gangd/pkg/controller/day"
	"gangd/pkg/controller/web"
	"gangd/pkg/wire/auth"
	"gangd/pkg/wire/people"
)

// page is what people look at in a browser.
type page struct {
	p    *process
	tls  *tls.Config // nil: on this host alone, where nobody listens in
	key  []byte
	over *web.Ended
	url  string
	link http.Handler
}

// pageConns bounds the connections of all browsers, each of a few dozen kilobytes, and metricsConns those of who
// collects figures.
const (
	pageConns    = 1024
	metricsConns = 64
)

// openPage reads what the page needs, so that a start without it is refused.
func (p *process) openPage() error {
	cfg := p.cfg
	if cfg.WebListen == "" {
		return nil
	}
	g := &page{p: p, url: cfg.WebURL}
	if _, err := web.Address(cfg.WebURL); cfg.WebURL != "" && err != nil {
		return err
	}
	var err error
	if g.tls, err = pageTLS(cfg.WebCert, cfg.WebKey, cfg.WebProxyCA); err != nil {
		return err
	}
	if g.key, err = p.pageKey(); err != nil {
		return err
	}
	if g.over, err = web.OpenEnded(filepath.Join(p.pageDir(), "web.ended"), time.Now()); err != nil {
		return err
	}
	// Controllers that share a directory each have one of their own: it is written by who leads.
	p.srv.Day = day.Open(filepath.Join(p.cfg.StateDir, "day.json"), p.log)
	p.page = g
	p.srv.Web = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.link.ServeHTTP(w, r) })
	return nil
}

// pageKey signs sessions. Controllers of one cluster have the same, so that a session goes on when
// another leads: that of their authority, or where they have none and share a directory, a file there.
func (p *process) pageKey() ([]byte, error) {
	if p.issuer != nil {
		return p.issuer.CA.Secret("web")
	}
	return web.KeyFile(p.pageDir())
}

// pageDir is where controllers that share a directory have what the page keeps, else this one has.
func (p *process) pageDir() string { return cmp.Or(p.cfg.Dir, p.cfg.StateDir) }

func pageTLS(cert, key, proxyCA string) (*tls.Config, error) {
	if cert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("web_cert, web_key: %w", err)
	}
	c := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if proxyCA == "" {
		return c, nil
	}
	pem, err := os.ReadFile(proxyCA)
	if err != nil {
		return nil, fmt.Errorf("web_proxy_ca: %w", err)
	}
	c.ClientCAs = x509.NewCertPool()
	if !c.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("web_proxy_ca: %s: no certificate in it", proxyCA)
	}
	c.ClientAuth = tls.VerifyClientCertIfGiven // people's browsers have none
	return c, nil
}

// listener opens the address of the page.
func (g *page) listener(calls http.Handler) (listener, error) {
	cfg := g.p.cfg
	l, err := net.Listen("tcp", cfg.WebListen)
	if err != nil {
		return listener{}, err
	}
	if g.url == "" {
		g.url = pageURL(cfg.WebListen, l.Addr(), g.tls != nil)
	}
	door := auth.NewDoor(pageConns)
	site, err := web.New(web.Options{Calls: calls, User: g.p.guard.User, Lookup: people.Here.ByName, Key: g.key,
		Guest: cfg.WebGuest == "queue", URL: g.url, Log: g.p.log, Known: door.Known, Ended: g.over})
	if err != nil {
		_ = l.Close()
		return listener{}, err
	}
	g.link = site.Links()
	hs := &http.Server{Handler: site, TLSConfig: g.tls, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 16 << 10, ConnState: door.ConnState, ConnContext: door.ConnContext, ErrorLog: slog.NewLogLogger(g.p.log.Handler(),
			slog.LevelDebug)}
	g.p.log.Info("page", "url", g.url)
	serve := func() error { return hs.Serve(l) }
	if g.tls != nil {
		serve = func() error { return hs.ServeTLS(l, "", "") }
	}
	return listener{cfg.WebListen, serve, stopper(hs)}, nil
}

// pageURL is the address of the page where the site says no other.
func pageURL(listen string, at net.Addr, secure bool) string {
	host, _, _ := net.SplitHostPort(listen)
	_, port, _ := net.SplitHostPort(at.String())
	scheme := "http://"
	if secure {
		scheme = "https://"
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	return scheme + net.JoinHostPort(host, port)
}
