package noded

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
)

const (
	firstPort = 20000 // above what services use, below where Linux' ephemeral ports begin (32768)
	lastPort  = 65535
	minPorts  = 1000 // a site whose ephemeral range leaves fewer below it is served above it

	// portStride spreads neighbouring jobs: the epochs of a job get ports of their own, so
	// that a successor does not meet its predecessor's connections in TIME_WAIT, and a
	// framework that also takes the next few ports finds them free.
	portStride = 16

	portRangeFile = "/proc/sys/net/ipv4/ip_local_port_range"
)

// ports gives each gang whose rank 0 is here a rendezvous port: free now, unique among the
// members here, and outside the range from which the kernel gives ports to anyone.
type ports struct {
	mu       sync.Mutex
	taken    map[int]api.MemberKey
	from, to int
}

func newPorts() *ports {
	p := &ports{taken: map[int]api.MemberKey{}}
	b, err := os.ReadFile(portRangeFile)
	if err != nil {
		b = []byte("32768 60999") // the kernel's default
	}
	p.from, p.to = portRange(string(b))
	return p
}

// portRange is the ports [from, to) to choose from, given the ephemeral range.
func portRange(ephemeral string) (from, to int) {
	var lo, hi int
	if n, _ := fmt.Sscan(ephemeral, &lo, &hi); n != 2 || lo < 1 || hi < lo {
		lo, hi = 32768, 60999
	}
	switch {
	case lo >= firstPort+minPorts:
		return firstPort, lo
	case hi < lastPort-minPorts:
		return max(hi+1, firstPort), lastPort + 1
	}
	return 10000, firstPort // an ephemeral range over nearly everything: the most unlikely to be hit
}

// take chooses a port for k and keeps it until release.
func (p *ports) take(k api.MemberKey) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.to - p.from
	start := int((k.Job*portStride + int64(k.Epoch)) % int64(n))
	for i := range n {
		port := p.from + (start+i)%n
		if _, used := p.taken[port]; !used && free(port) {
			p.taken[port] = k
			return port, nil
		}
	}
	return 0, fmt.Errorf("no port from %d to %d is free for the rendezvous", p.from, p.to-1)
}

// keep marks the port of a member that was found again.
func (p *ports) keep(port int, k api.MemberKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken[port] = k
}

func (p *ports) release(port int, k api.MemberKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[port] == k {
		delete(p.taken, port)
	}
}

// free binds as a listener would, on every address of both families, without package
// net: that also asks about the backlog and MPTCP, and was a tenth of a member's cost.
func free(port int) bool {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	var any unix.Sockaddr = &unix.SockaddrInet6{Port: port}
	if err == nil {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
	} else { // a kernel without IPv6
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		any = &unix.SockaddrInet4{Port: port}
	}
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	// Connections in TIME_WAIT are no obstacle to a listener that comes with this option, as
	// all do; one that listens is.
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	return unix.Bind(fd, any) == nil && unix.Listen(fd, 1) == nil
}
