package dev

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
)

// Isolate says whether nodes are hosts of their own: each with a host name, a network and a table
// of hosts, as on a site. It needs root and iproute2.
type Isolate int

const (
	// IsolateAuto isolates the nodes of a cluster of several where it can be done, and leaves a node
	// with real cards, which is there to work, the network of the machine.
	IsolateAuto Isolate = iota
	IsolateYes
	IsolateNo
)

// maxBridges is how many isolated clusters a machine may have: as many /22 as are in 198.18.0.0/15, which
// is set aside for networks of tests (RFC 2544), so no site's addresses are hidden.
const maxBridges = 128

// wanted says whether isolation is to be tried, and whether it has to be.
func (o *Options) wanted() (try, must bool) {
	switch o.Isolate {
	case IsolateYes:
		return true, true
	case IsolateNo:
		return false, false
	}
	return os.Geteuid() == 0 && o.Nodes > 1 && !strings.Contains(o.GPUs, RealCards), false
}

// network is that of the isolated nodes of one cluster: a bridge on the machine, and a cable to each.
type network struct{ number int }

func (n network) bridge() string        { return "gangdev" + strconv.Itoa(n.number) }
func (n network) cable(node int) string { return fmt.Sprintf("gang%d-%d", n.number, node) }

// address is that of a node, from 1 on; 0 is the machine's own.
func (n network) address(node int) string {
	host := node + 1
	return fmt.Sprintf("198.%d.%d.%d", 18+n.number/64, n.number%64*4+host/256, host%256)
}

func (l layout) bridgeFile() string { return filepath.Join(l.dir, "run", "bridge") }
func (l layout) hostsFile() string  { return filepath.Join(l.dir, "etc", "hosts") }
func (l layout) namespace(name, kind string) string {
	return filepath.Join(l.dir, "run", name+"."+kind)
}

// kinds are the namespaces that a node keeps while its daemon is away: what runs there runs in them.
// That of mounts is made anew with each daemon, for one mount.
var kinds = map[string]int{"net": unix.CLONE_NEWNET, "uts": unix.CLONE_NEWUTS}

// isolate makes the network and the namespaces of n nodes; nothing of them is left when it can't.
func (l layout) isolate(n int) (*network, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("namespaces of a network need root")
	}
	if err := l.joinAll(); err != nil { // of a cluster that nobody stopped
		return nil, err
	}
	net, err := newNetwork()
	if err != nil {
		return nil, err
	}
	err = os.WriteFile(l.bridgeFile(), []byte(strconv.Itoa(net.number)+"\n"), 0o600)
	if err == nil {
		err = l.writeHosts(net, n)
	}
	if err == nil {
		err = ip(false, "addr add "+net.address(0)+"/22 dev "+net.bridge(), "link set "+net.bridge()+" up")
	}
	if err == nil {
		errs := make([]error, n)
		var all sync.WaitGroup
		routes := net.routes()
		for i := range n {
			all.Go(func() { errs[i] = l.isolateNode(net, i+1, routes) })
		}
		all.Wait()
		err = errors.Join(errs...)
	}
	if err != nil {
		return nil, errors.Join(err, l.joinAll())
	}
	return net, nil
}

// newNetwork takes the first bridge that is free: the kernel makes each name once.
func newNetwork() (*network, error) {
	for i := range maxBridges {
		n := &network{i}
		at := "/sys/class/net/" + n.bridge()
		if _, err := os.Stat(at); err == nil {
			continue
		}
		err := ip(false, "link add "+n.bridge()+" type bridge")
		if err == nil {
			return n, nil
		}
		if _, there := os.Stat(at); there != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("there are %d isolated clusters on this machine; gangd dev --stop ends one", maxBridges)
}

// writeHosts names the nodes and the machine for the nodes; the machine's own table follows.
func (l layout) writeHosts(net *network, n int) error {
	var b strings.Builder
	b.WriteString("127.0.0.1 localhost\n")
	for i := range n {
		fmt.Fprintf(&b, "%s %s\n", net.address(i+1), nodeName(i+1))
	}
	host, err := os.Hostname()
	if err == nil {
		fmt.Fprintf(&b, "%s %s\n", net.address(0), host)
	}
	own, err := os.ReadFile("/etc/hosts")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	b.WriteString(othersOf(string(own), host))
	return os.WriteFile(l.hostsFile(), []byte(b.String()), 0o644)
}

// othersOf is a table of hosts without what it says of this machine: by a node's own loopback nobody reaches it.
func othersOf(table, host string) string {
	var b strings.Builder
	for line := range strings.Lines(table) {
		text, comment, _ := strings.Cut(line, "#")
		words := strings.Fields(text)
		if len(words) == 0 || host == "" {
			b.WriteString(line)
			continue
		}
		rest := slices.DeleteFunc(slices.Clone(words[1:]), func(name string) bool {
			short, _, _ := strings.Cut(name, ".")
			return name == host || short == host
		})
		switch {
		case len(rest) == len(words)-1:
			b.WriteString(line)
		case len(rest) > 0:
			b.WriteString(words[0] + " " + strings.Join(rest, " "))
			if comment != "" {
				b.WriteString(" #" + strings.TrimRight(comment, "\n"))
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// routes lead a node to each address of the machine, so that a program finds what listens there by whichever it was told.
func (n *network) routes() (lines []string) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, a := range addresses {
		at, ok := a.(*net.IPNet)
		if !ok || at.IP.To4() == nil || at.IP.IsLoopback() || at.IP.IsLinkLocalUnicast() || isolated.Contains(at.IP) {
			continue
		}
		lines = append(lines, "route replace "+at.IP.String()+"/32 via "+n.address(0))
	}
	return lines
}

// isolated is the range that the networks of nodes are of.
var isolated = &net.IPNet{IP: net.IPv4(198, 18, 0, 0).To4(), Mask: net.CIDRMask(15, 32)}

// isolateNode makes the namespaces of one node, ties them to files, and plugs the node in.
func (l layout) isolateNode(net *network, node int, routes []string) error {
	name := nodeName(node)
	return apart(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWUTS); err != nil {
			return fmt.Errorf("namespaces of a network and a host name: %w", err)
		}
		if err := unix.Sethostname([]byte(name)); err != nil {
			return fmt.Errorf("host name: %w", err)
		}
		for kind := range kinds {
			path := l.namespace(name, kind)
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				return err
			}
			if err := unix.Mount("/proc/thread-self/ns/"+kind, path, "", unix.MS_BIND, ""); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		peer := "link add " + net.cable(node) + " type veth peer name eth0 netns " + strconv.Itoa(unix.Gettid())
		outside := make(chan error)
		go func() { outside <- ip(false, peer, "link set "+net.cable(node)+" master "+net.bridge()+" up") }() // a thread in the machine's network
		if err := <-outside; err != nil {
			return err
		}
		if err := ip(false, "link set lo up", "addr add "+net.address(node)+"/22 dev eth0", "link set eth0 up"); err != nil {
			return err
		}
		if len(routes) == 0 {
			return nil
		}
		return ip(false, routes...)
	})
}

// enter takes the calling thread, which is apart, into the namespaces of a node.
func (l layout) enter(name string) error {
	for kind, flag := range kinds {
		f, err := os.Open(l.namespace(name, kind))
		if err != nil {
			return err
		}
		err = unix.Setns(int(f.Fd()), flag)
		f.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
	}
	// A thread that shares its directory may not change the mounts.
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("namespace of mounts: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("namespace of mounts: %w", err)
	}
	if err := unix.Mount(l.hostsFile(), "/etc/hosts", "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("/etc/hosts: %w", err)
	}
	return nil
}

// isolated says whether a daemon has namespaces to run in.
func (l layout) isolated(name string) bool {
	_, err := os.Stat(l.namespace(name, "net"))
	return err == nil
}

// joinAll takes the network and the namespaces away, whatever of them there is. What still runs in
// one keeps it.
func (l layout) joinAll() error {
	b, err := os.ReadFile(l.bridgeFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return fmt.Errorf("%s: %w", l.bridgeFile(), err)
	}
	net := &network{n}
	var errs []error
	lines := []string{"link del " + net.bridge()}
	for kind := range kinds {
		paths, _ := filepath.Glob(l.namespace("n*", kind)) // well formed
		for _, path := range paths {
			if kind == "net" {
				name, _, _ := strings.Cut(filepath.Base(path), ".")
				lines = append(lines, "link del "+net.cable(number(name)))
			}
			if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) { // EINVAL: not mounted
				errs = append(errs, fmt.Errorf("%s: %w", path, err))
			}
			errs = append(errs, os.Remove(path))
		}
	}
	_ = ip(true, lines...) // a cable goes with its node, at any moment
	if _, err := os.Stat("/sys/class/net/" + net.bridge()); err == nil {
		errs = append(errs, fmt.Errorf("the network %s can't be taken away", net.bridge()))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return os.Remove(l.bridgeFile())
}

// ip runs lines of iproute2 in the network of the calling thread; anyway: the others too where one fails.
func ip(anyway bool, lines ...string) error {
	args := []string{"-batch", "-"}
	if anyway {
		args = append([]string{"-force"}, args...)
	}
	cmd := exec.Command("ip", args...)
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", lines[0], err, bytes.TrimSpace(out))
	}
	return nil
}

// apart runs f on a thread of its own, which ends with it: what f makes of its namespaces is nobody
// else's. It is never the first thread, by which others know the namespaces of the process.
func apart(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			done <- apart(f)
			runtime.UnlockOSThread()
			return
		}
		done <- f() // locked to its end: the runtime ends the thread
	}()
	return <-done
}

// errIsolate is the refusal of --isolate.
func errIsolate(err error) error {
	return api.Errorf(api.CodeInvalid, "--isolate: %v", err)
}
