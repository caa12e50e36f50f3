package gangsim

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"gangd/pkg/api"
	"gangd/pkg/client/program"
	"gangd/pkg/core/script"
	"gangd/pkg/lab/replay"
	"gangd/pkg/lab/trace"
)

// clusterFile is the TOML form of a cluster.
type clusterFile struct {
	Groups []group `toml:"nodes"`
}

// group is a number of equal nodes.
type group struct {
	Name     string   `toml:"name"` // prefix of the names
	Count    int      `toml:"count"`
	Cards    int      `toml:"cards"`
	Model    string   `toml:"model"`
	VRAM     string   `toml:"vram"`
	CPUs     int      `toml:"cpus"`
	Memory   string   `toml:"memory"`
	Features []string `toml:"features"`
}

// What stands in for a figure that nobody gave: enough never to be the reason.
const (
	defaultVRAM = int64(80) << 30
	manyCPUs    = 1 << 20
	muchMemory  = int64(1) << 50
)

var uniform = regexp.MustCompile(`^(\d+)x(\d+)(?:x(\w+))?$`)

// readCluster reads a cluster: "72x8" or "72x8x80G" (nodes x cards x VRAM), a TOML file with
// [[nodes]], or a node list in CSV. more adds so many nodes like the last one.
func readCluster(what string, more int) (*replay.Cluster, error) {
	c, err := openCluster(what)
	if err != nil {
		return nil, err
	}
	if more < 0 && -more >= len(c.Nodes) {
		return nil, fmt.Errorf("--add-nodes=%d leaves none of the %d nodes", more, len(c.Nodes))
	}
	if more < 0 {
		c.Nodes = c.Nodes[:len(c.Nodes)+more]
	}
	for i := range max(0, more) {
		n := c.Nodes[len(c.Nodes)-1]
		n.Name = fmt.Sprintf("added%d", i+1)
		c.Nodes = append(c.Nodes, n)
	}
	c.Name = describe(c)
	return c, nil
}

func describe(c *replay.Cluster) string {
	return api.Count(len(c.Nodes), "node") + ", " + api.Count(c.Cards(), "card")
}

func openCluster(what string) (*replay.Cluster, error) {
	if m := uniform.FindStringSubmatch(what); m != nil {
		return uniformCluster(m)
	}
	switch ext := filepath.Ext(strings.TrimSuffix(what, ".gz")); ext {
	case ".toml":
		return tomlCluster(what)
	case ".csv":
		return listCluster(what)
	}
	return nil, program.Usagef("--cluster=%s: want NODESxCARDS such as 72x8 or 72x8x80G, a .toml file, or a list of nodes in .csv", what)
}

func uniformCluster(m []string) (*replay.Cluster, error) {
	nodes, _ := strconv.Atoi(m[1])
	cards, _ := strconv.Atoi(m[2])
	if nodes < 1 || nodes > 100000 || cards > 64 {
		return nil, program.Usagef("--cluster=%s: want 1 to 100000 nodes of 0 to 64 cards", m[0])
	}
	vram := defaultVRAM
	if m[3] != "" {
		v, err := script.ParseSize(m[3])
		if err != nil {
			return nil, program.Usagef("--cluster=%s: %s", m[0], err)
		}
		vram = v
	}
	return replay.Uniform(nodes, replay.Node{CPUs: manyCPUs, Memory: muchMemory, Cards: cards, VRAM: vram}), nil
}

func tomlCluster(path string) (*replay.Cluster, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	var f clusterFile
	d := toml.NewDecoder(strings.NewReader(string(text)))
	if err := d.DisallowUnknownFields().Decode(&f); err != nil {
		return nil, tomlError(path, err)
	}
	c := &replay.Cluster{}
	for i := range f.Groups {
		if err := f.Groups[i].add(c); err != nil {
			return nil, fmt.Errorf("%s: [[nodes]] number %d: %w", path, i+1, err)
		}
	}
	if len(c.Nodes) == 0 {
		return nil, fmt.Errorf("%s: no [[nodes]] in it", path)
	}
	return c, nil
}

func tomlError(path string, err error) error {
	var strict *toml.StrictMissingError
	if errors.As(err, &strict) && len(strict.Errors) > 0 {
		e := strict.Errors[0]
		line, _ := e.Position()
		return fmt.Errorf("%s:%d: unknown key %q; there are: nodes name count cards model vram cpus memory features", path, line,
			strings.Join(e.Key(), "."))
	}
	var bad *toml.DecodeError
	if errors.As(err, &bad) {
		line, column := bad.Position()
		return fmt.Errorf("%s:%d:%d: %s", path, line, column, strings.TrimPrefix(bad.Error(), "toml: "))
	}
	return fmt.Errorf("%s: %w", path, err)
}

func (g *group) add(c *replay.Cluster) error {
	n := replay.Node{CPUs: g.CPUs, Memory: muchMemory, Cards: g.Cards, Model: g.Model, VRAM: defaultVRAM, Features: g.Features}
	var err error
	switch {
	case g.Name == "":
		return errors.New("want a name")
	case g.Count < 1 || g.Count > 100000:
		return fmt.Errorf("count = %d: want 1 to 100000", g.Count)
	case g.Cards < 0 || g.Cards > 64:
		return fmt.Errorf("cards = %d: want 0 to 64", g.Cards)
	}
	if n.CPUs == 0 {
		n.CPUs = manyCPUs
	}
	if g.VRAM != "" {
		if n.VRAM, err = script.ParseSize(g.VRAM); err != nil {
			return fmt.Errorf("vram: %w", err)
		}
	}
	if g.Memory != "" {
		if n.Memory, err = script.ParseSize(g.Memory); err != nil {
			return fmt.Errorf("memory: %w", err)
		}
	}
	for i := range g.Count {
		n.Name = fmt.Sprintf("%s%d", g.Name, i+1)
		c.Nodes = append(c.Nodes, n)
	}
	return nil
}

func listCluster(path string) (*replay.Cluster, error) {
	list, err := trace.ReadNodes(path)
	if err != nil {
		return nil, err
	}
	c := &replay.Cluster{}
	for _, n := range list {
		c.Nodes = append(c.Nodes, replay.Node{Name: n.Name, CPUs: n.CPUs, Memory: n.Memory, Cards: n.Cards, Model: n.Model, VRAM: n.VRAM})
	}
	return c, nil
}
