package pgtest

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"gangd/pkg/controller/store/pgserver"
)

// socketName is how PostgreSQL names its socket in a directory.
const socketName = ".s.PGSQL.5432"

// Proxy stands between a client and a server, and does to their connections what networks do.
type Proxy struct {
	Dir string // where clients find it

	server string
	mu     sync.Mutex
	change *sync.Cond
	conns  map[net.Conn]bool
	made   int // connections
	turned int // away
	silent int // those up to this number say nothing more
	held   bool
	refuse bool
	word   []byte
	strike func(request []byte) (pass []byte, then Then)
	wg     sync.WaitGroup
	closed bool
}

// Then is what becomes of a connection on which a word was seen.
type Then int

const (
	GoOn Then = iota
	Hold      // everything, until Release; what is not passed on comes first then
	Cut       // this connection
	Mute      // cut it once the server has answered: the answer is lost
)

// NewProxy makes one in a directory of that name.
func NewProxy(t testing.TB, dir, name string, s *pgserver.Server) *Proxy {
	t.Helper()
	p := &Proxy{Dir: filepath.Join(dir, name), server: filepath.Join(s.Dir(), socketName), conns: map[net.Conn]bool{}}
	p.change = sync.NewCond(&p.mu)
	if err := os.Mkdir(p.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(p.Dir, socketName))
	if err != nil {
		t.Fatal(err)
	}
	p.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.set(func() { p.closed, p.held = true, false })
		p.cutAll()
		p.wg.Wait()
	})
	return p
}

func (p *Proxy) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	p.change.Broadcast()
}

// On does something to the next request with a word in it.
func (p *Proxy) On(word string, strike func(request []byte) (pass []byte, then Then)) {
	p.set(func() { p.word, p.strike = []byte(word), strike })
}

// Release lets go on what Hold stopped.
func (p *Proxy) Release() { p.set(func() { p.held = false }) }

// Refuse cuts all connections and takes no more; Restore takes them again.
func (p *Proxy) Refuse() {
	p.set(func() { p.refuse = true })
	p.cutAll()
}

// Turned is how many it has turned away.
func (p *Proxy) Turned() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.turned
}

func (p *Proxy) Restore() { p.set(func() { p.refuse = false }) }

// Hush takes all words from the connections that there are and from so many that come next, and leaves them open.
func (p *Proxy) Hush(next int) { p.set(func() { p.silent = p.made + next }) }

// Made is how many connections there were.
func (p *Proxy) Made() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.made
}

func (p *Proxy) cutAll() {
	p.set(func() {
		for c := range p.conns {
			c.Close()
		}
	})
}

func (p *Proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("unix", p.server)
	if err != nil {
		return
	}
	defer server.Close()
	p.mu.Lock()
	if p.refuse || p.closed {
		p.turned++
		p.mu.Unlock()
		return
	}
	p.conns[client], p.conns[server] = true, true
	p.made++
	me := p.made
	p.mu.Unlock()
	muted := make(chan struct{})
	var back sync.WaitGroup
	back.Go(func() {
		defer client.Close()
		buf := make([]byte, 1<<16)
		for {
			n, err := server.Read(buf)
			p.wait()
			select {
			case <-muted:
				return
			default:
			}
			if p.hushed(me) {
				n = 0
			}
			if _, werr := client.Write(buf[:n]); err != nil || werr != nil {
				return
			}
		}
	})
	buf := make([]byte, 1<<20)
	for {
		n, err := client.Read(buf)
		if p.hushed(me) {
			n = 0
		}
		pass, rest, cut := p.look(buf[:n], muted)
		if _, werr := server.Write(pass); err != nil || werr != nil || cut {
			break
		}
		p.wait()
		if _, werr := server.Write(rest); werr != nil {
			break
		}
	}
	select {
	case <-muted: // the server answers first
	default:
		server.Close()
	}
	back.Wait()
	p.set(func() { delete(p.conns, client); delete(p.conns, server) })
}

func (p *Proxy) hushed(conn int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return conn <= p.silent
}

// wait waits while all is held.
func (p *Proxy) wait() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.held {
		p.change.Wait()
	}
}

// look says what of a request goes on at once and what later.
func (p *Proxy) look(request []byte, muted chan struct{}) (pass, rest []byte, cut bool) {
	p.wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.strike == nil || !bytes.Contains(request, p.word) {
		return request, nil, false
	}
	pass, then := p.strike(request)
	p.strike = nil
	switch then {
	case Hold:
		p.held = true
	case Cut:
		return pass, nil, true
	case Mute:
		close(muted)
		return pass, nil, true
	}
	return pass, request[len(pass):], false
}

// URL is how the database is reached through it.
func (p *Proxy) URL(s *pgserver.Server, database string) string {
	return "postgres://" + pgserver.User + "@/" + database + "?host=" + p.Dir
}
