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
