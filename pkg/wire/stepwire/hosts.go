package stepwire

import (
	"fmt"
	"net"
	"os"
	"slices"
)

// Hosts are the addresses of this host that a node may reach, and the loopback for nodes on
// it, which is tried first: it either is the way, or nobody with the right certificate
// answers there.
func Hosts(port int) []string {
	var ips []string
	if a := os.Getenv("GANG_STEP_ADDRESS"); a != "" {
		ips = append(ips, a)
	}
	ips = append(ips, "127.0.0.1")
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if ok && n.IP.IsGlobalUnicast() && !slices.Contains(ips, n.IP.String()) && len(ips) < 16 {
			ips = append(ips, n.IP.String())
		}
	}
	out := make([]string, len(ips))
	for i, ip := range ips {
		out[i] = net.JoinHostPort(ip, fmt.Sprint(port))
	}
	return out
}
