package relay

import (
	"crypto/tls"
	"net"
	"net/http"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	dialPatience = 5 * time.Second
	// lost is how long the network may swallow what is sent before a connection is given
	// up. There is no time-out on answers: a wait lasts as long as its job.
	lost = 20 * time.Second
	// idleConns is how many connections to the controller are kept for the next call.
	idleConns = 16
)

// upstream makes connections to the controller, one for each call under way.
func upstream(conf *tls.Config) *http.Transport {
	d := &net.Dialer{
		Timeout:         dialPatience,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: lost / 2, Interval: lost / 4, Count: 2},
		Control: func(_, _ string, c syscall.RawConn) error {
			var inner error
			if err := c.Control(func(fd uintptr) {
				inner = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(lost.Milliseconds()))
			}); err != nil {
				return err
			}
			return inner
		},
	}
	return &http.Transport{
		DialContext:         d.DialContext,
		TLSClientConfig:     conf,
		TLSHandshakeTimeout: dialPatience,
		MaxIdleConnsPerHost: idleConns,
		IdleConnTimeout:     90 * time.Second, // less than what firewalls between forget after
		DisableCompression:  true,             // bytes pass as they are
	}
}
