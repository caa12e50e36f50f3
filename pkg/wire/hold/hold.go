// Package hold keeps an allocation as long as the process that asked for it. The job's only
// process is a holder (gstep hold) on the first node: it connects to that process, and ends with
// the code that it is told, or when the connection ends. So an allocation whose owner was killed,
// or whose host died, is over, whoever notices first.
//
// Who is who is as in package step/wire; the secret and where to connect are in the holder's
// environment, which is its job's owner's to read alone.
//
// Begin with Listen (the owner) and Main (the holder). It must not know steps or the controller.
package hold

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"gangd/pkg/node/proc"
	"gangd/pkg/wire/stepwire"
)

// What the holder finds in its environment.
const (
	hostsEnv  = "GANG_HOLD_HOSTS"
	printEnv  = "GANG_HOLD_FINGERPRINT"
	secretEnv = "GANG_HOLD_SECRET"
)

// Client is the process that an allocation is held for.
type Client struct {
	id     *stepwire.Identity
	secret string
	l      net.Listener

	connected, lost chan struct{}
	mu              sync.Mutex
	conn            *stepwire.Conn
	once            sync.Once
	running         sync.WaitGroup
}

// Listen waits for a holder.
func Listen() (*Client, error) {
	id, err := stepwire.NewIdentity()
	if err != nil {
		return nil, err
	}
	var b [24]byte
	if _, err := rand.Read(b[:]); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		return nil, fmt.Errorf("listen for the holder of the allocation: %w", err)
	}
	c := &Client{id: id, secret: hex.EncodeToString(b[:]), l: l, connected: make(chan struct{}), lost: make(chan struct{})}
	c.running.Go(c.accept)
	return c, nil
}

// Environ is what the holder has to find in its environment.
func (c *Client) Environ() []string {
	return []string{hostsEnv + "=" + strings.Join(stepwire.Hosts(c.l.Addr().(*net.TCPAddr).Port), ","), printEnv + "=" + c.id.Fingerprint,
		secretEnv + "=" + c.secret}
}

// Connected is closed when the holder is there: the allocation holds.
func (c *Client) Connected() <-chan struct{} { return c.connected }

// Lost is closed when a holder that was there has gone.
func (c *Client) Lost() <-chan struct{} { return c.lost }

func (c *Client) accept() {
	for {
		conn, err := c.l.Accept()
		if err != nil {
			return
		}
		c.running.Go(func() { c.serve(conn) })
	}
}

func (c *Client) serve(raw net.Conn) {
	defer raw.Close()
	conn, g, err := c.id.Accept(raw)
	if err != nil || subtle.ConstantTimeCompare([]byte(g.Secret), []byte(c.secret)) != 1 {
		return
	}
	c.mu.Lock()
	first := c.conn == nil
	if first {
		c.conn = conn
		close(c.connected)
	}
	c.mu.Unlock()
	if !first {
		return
	}
	for {
		if _, err := conn.Next(); err != nil {
			close(c.lost)
			return
		}
	}
}

// releaseFor bounds the wait for the holder's end, which only makes the order of things
// certain: the allocation is on its way back when this process has ended.
const releaseFor = 2 * time.Second

// Release ends the allocation with a code.
func (c *Client) Release(code int) {
	c.mu.Lock()
	conn := c.conn
	c.mu.Unlock()
	if conn != nil {
		_ = conn.Send(stepwire.Done, 0, strconv.AppendInt(nil, int64(code), 10))
		select {
		case <-c.lost:
		case <-time.After(releaseFor):
		}
	}
	c.Close()
}

// Close ends it whatever holds.
func (c *Client) Close() {
	c.once.Do(func() {
		_ = c.l.Close()
		c.mu.Lock()
		if c.conn != nil {
			_ = c.conn.Close()
		}
		c.mu.Unlock()
		c.running.Wait()
	})
}

// reachFor is how long a holder tries to reach the process it is for.
const reachFor = 30 * time.Second

// Main is the holder: `gstep hold`. Without anybody to connect to it waits to be ended.
func Main() int {
	if err := proc.MarkWaiting(); err != nil { // then a signal to its job ends it, and with it the steps
		fmt.Fprintln(os.Stderr, "gstep: say that this only waits:", err)
	}
	hosts, print, secret := os.Getenv(hostsEnv), os.Getenv(printEnv), os.Getenv(secretEnv)
	if hosts == "" {
		ch := make(chan os.Signal, 1)
		signal.Notify(ch, syscall.SIGTERM)
		<-ch
		return 128 + int(syscall.SIGTERM)
	}
	ctx, cancel := context.WithTimeout(context.Background(), reachFor)
	defer cancel()
	conn, err := stepwire.Dial(ctx, strings.Split(hosts, ","), print, &stepwire.Greeting{Secret: secret})
	if err != nil {
		fmt.Fprintln(os.Stderr, "gstep:", err)
		return 1
	}
	f, err := conn.Next()
	if err != nil {
		return 1 // its process has gone
	}
	code, err := strconv.Atoi(string(f.Data))
	if err != nil {
		return 1
	}
	return code
}
