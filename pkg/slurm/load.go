package slurm

import (
	"fmt"
	"strconv"

	"gangd/pkg/api"
)

// Load is a node's load average as Slurm writes it.
func Load(n *api.Node) string {
	if n.Load == nil {
		return "N/A"
	}
	return fmt.Sprintf("%.2f", float64(n.Load.Hundredths)/100)
}

// FreeMemory is the MiB of a node that nothing uses.
func FreeMemory(n *api.Node) string {
	if n.Load == nil {
		return "N/A"
	}
	return strconv.FormatInt(n.Load.FreeBytes>>20, 10)
}

// NodeReason is why a node is out of service; of a silent one in Slurm's words. Empty: nothing is known.
func NodeReason(n *api.Node) string {
	if n.Silent {
		return "Not responding"
	}
	return n.Reason
}
