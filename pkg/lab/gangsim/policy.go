package gangsim

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/client/program"
	"gangd/pkg/controller/config"
	"gangd/pkg/core/nearest"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/replay"
	"gangd/pkg/lab/replay/reference"
)

// policy is one way to plan that a trace is played with.
type policy struct {
	name       string
	settings   api.Settings
	partitions []api.Partition
	planner    func(truth func() replay.Truth) replay.Planner
	preempts   bool
}

// references are the published orders; those with a * know the true durations.
var references = map[string]func(func() replay.Truth) replay.Planner{
	"fifo": reference.FIFO, "easy": reference.EASY, "sjf": reference.SJF, "srtf": reference.SRTF, "srsf": reference.SRSF, "las": reference.LAS,
}

// label is how a reference is shown.
func label(name string) string {
	switch name {
	case "sjf", "srtf", "srsf":
		return "reference " + name + "*"
	}
	return "reference " + name
}

// readPolicy reads what --policy and --compare name: a gangd.toml, the word "default" for
// a site that sets nothing, or the name of a reference.
func readPolicy(what string, set []string) (*policy, error) {
	if make, ok := references[what]; ok {
		return &policy{name: label(what), settings: api.DefaultSettings(), planner: make}, nil
	}
	path := what
	if what == "default" {
		path = ""
	} else if filepath.Ext(what) != ".toml" {
		names := append(slices.Sorted(maps.Keys(references)), "default")
		text := fmt.Sprintf("policy %q: want a gangd.toml or one of %s", what, strings.Join(names, " "))
		if near := nearest.Of(what, names); near != "" {
			text = fmt.Sprintf("policy %q: nearest is %s; a file ends in .toml", what, near)
		}
		return nil, program.Usagef("%s", text)
	}
	c, err := config.LoadController(path, set)
	if err != nil {
		return nil, err
	}
	name := what
	if len(set) > 0 {
		name += " " + strings.Join(set, " ")
	}
	p := c.Policy()
	// Every simulated node is in one partition; the default one of the site stands for it.
	for _, part := range c.Partitions {
		if part.Default {
			part.Name, part.Nodes = replay.Partition, nil
			p.Partitions = []api.Partition{part}
		}
	}
	return &policy{name: name, settings: c.Settings, partitions: p.Partitions, preempts: p.Preempt != order.PreemptOff,
		planner: func(func() replay.Truth) replay.Planner { return replay.NewProduct(p) }}, nil
}
