package noded

import (
	"fmt"
	"hash/fnv"
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

// ports gives each gang whose rank 0 is here a rendezvous port: unique among the members here,
// outside the range from which the kernel gives ports to anyone, and held until the gate opens.
type ports struct {
	mu       sync.Mutex
	taken    map[int]api.MemberKey
	of       map[api.MemberKey]memberPort
	from, to int
	offset   int
}

type memberPort struct {
	port int
	held int // socket that is bound to it, -1: let go
}

// newPorts spreads the ports of the daemons of one machine by their state directories: each cluster on
// it has a job 1, and a port is nobody's between the hold that is let go and the rank that listens.
func newPorts(stateDir string) *ports {
	h := fnv.New32a()
	_, _ = h.Write([]byte(stateDir))
	p := &ports{offset: int(h.Sum32() & 0xffff), taken: map[int]api.MemberKey{}, of: map[api.MemberKey]memberPort{}}
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

// take chooses a port for k and holds it until letGo; it is k's until release.
func (p *ports) take(k api.MemberKey) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.to - p.from
	start := int((k.Job*portStride + int64(k.Epoch) + int64(p.offset)) % int64(n))
	for i := range n {
		port := p.from + (start+i)%n
		if _, used := p.taken[port]; used {
			continue
		}
		if fd := hold(port); fd >= 0 {
			p.note(k, port, fd)
			return port, nil
		}
	}
	return 0, fmt.Errorf("no port from %d to %d is free for the rendezvous", p.from, p.to-1)
}

// takeAgain holds the port of a member that was found again, its gate shut: the same one, or
// another where somebody has it by now.
func (p *ports) takeAgain(port int, k api.MemberKey) int {
	if fd := hold(port); fd >= 0 {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.note(k, port, fd)
		return port
	}
	if other, err := p.take(k); err == nil {
		return other
	}
	p.keep(port, k) // judged when the gate opens
	return port
}

// keep marks the port of a member that was found again and may use it already.
func (p *ports) keep(port int, k api.MemberKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.note(k, port, -1)
}

func (p *ports) note(k api.MemberKey, port, fd int) { p.taken[port], p.of[k] = k, memberPort{port, fd} }

// letGo gives up the hold on k's port, and nothing else.
func (p *ports) letGo(k api.MemberKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m, ok := p.of[k]; ok && m.held >= 0 {
		_ = unix.Close(m.held)
		p.note(k, m.port, -1)
	}
}

// open lets go of k's port for its rank and says whether the port of the gate is free: it was
// held until now, or is seen free.
func (p *ports) open(k api.MemberKey, port int) bool {
	p.mu.Lock()
	m, ok := p.of[k]
	p.mu.Unlock()
	p.letGo(k)
	return ok && m.held >= 0 && m.port == port || free(port)
}

func (p *ports) release(k api.MemberKey) {
	p.letGo(k)
	p.mu.Lock()
	defer p.mu.Unlock()
	m, ok := p.of[k]
	delete(p.of, k)
	if ok && p.taken[m.port] == k {
		delete(p.taken, m.port)
	}
}

// hold binds a socket to the port on every address of both families, so that nobody else can;
// -1: somebody has it.
//
// It does not listen: a peer that is let go earlier than rank 0 is refused and tries again, where
// a listener would take its connection and break it. It has neither SO_REUSEADDR, with which
// another socket of that option could bind beside one that does not listen, and listen, nor
// SO_REUSEPORT, which rank 0 would have to set too. A port with connections in TIME_WAIT can't
// be bound like that; another one is as good.
func hold(port int) int {
	fd, any, err := portSocket(port)
	if err != nil {
		return -1
	}
	if unix.Bind(fd, any) != nil {
		_ = unix.Close(fd)
		return -1
	}
	return fd
}

// free binds as the listener of rank 0 would.
func free(port int) bool {
	fd, any, err := portSocket(port)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	// Connections in TIME_WAIT are no obstacle to a listener that comes with this option, as
	// all do; one that listens is.
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	return unix.Bind(fd, any) == nil && unix.Listen(fd, 1) == nil
}

// portSocket makes a socket and the address to bind it to, without package net: that also asks
// about the backlog and MPTCP, and was a tenth of a member's cost.
func portSocket(port int) (fd int, any unix.Sockaddr, err error) {
	fd, err = unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
		return fd, &unix.SockaddrInet6{Port: port}, nil
	}
	// A kernel without IPv6.
	fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	return fd, &unix.SockaddrInet4{Port: port}, err
}
