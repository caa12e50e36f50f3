package trace

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
)

// Node is one machine of a node list.
type Node struct {
	Name   string
	Model  string
	Cards  int
	VRAM   int64 // of each card, bytes
	CPUs   int   // in the unit of the jobs of the same trace (thousandths in cpu_milli)
	Memory int64
}

// ReadNodes reads a list of nodes in CSV: node_id, gpus, and as far as they matter
// gpu_model, vram_mib_per_gpu, cpu_milli, memory_mib.
func ReadNodes(path string) ([]Node, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("nodes: %w", err)
	}
	defer f.Close()
	text, err := plain(path, f)
	if err != nil {
		return nil, err
	}
	return parseNodes(path, text)
}

func parseNodes(name string, r io.Reader) ([]Node, error) {
	rows, err := openTable(name, r)
	if err != nil {
		return nil, err
	}
	var n Node
	number := func(set func(int64)) func(*Job, string) error {
		return whole(0, func(_ *Job, v int64) { set(v) })
	}
	use, err := rows.match([]column{
		{"node_id", true, func(_ *Job, s string) error { n.Name = strings.Clone(s); return wanted(s) }},
		{"gpus", true, number(func(v int64) { n.Cards = int(v) })},
		{"gpu_model", false, func(_ *Job, s string) error { n.Model = strings.Clone(s); return nil }},
		{"vram_mib_per_gpu", false, number(func(v int64) { n.VRAM = v << 20 })},
		{"cpu_milli", false, number(func(v int64) { n.CPUs = int(v) })},
		{"memory_mib", false, number(func(v int64) { n.Memory = v << 20 })},
	})
	if err != nil {
		return nil, err
	}
	var out []Node
	seen := map[string]int{}
	for {
		row, line, err := rows.next()
		if err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		n = Node{CPUs: math.MaxInt32, Memory: math.MaxInt64 / 4}
		for i, s := range row {
			if use[i] == nil {
				continue
			}
			if err := use[i].set(nil, strings.TrimSpace(s)); err != nil {
				return nil, &Error{name, line, use[i].name, err.Error()}
			}
		}
		if before := seen[n.Name]; before > 0 {
			return nil, &Error{name, line, "node_id", fmt.Sprintf("%q stands on line %d already", n.Name, before)}
		}
		seen[n.Name] = line
		out = append(out, n)
	}
	if len(out) == 0 {
		return nil, &Error{File: name, Text: "no node in it"}
	}
	return out, nil
}
