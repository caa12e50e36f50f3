package slurm

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/slurm/document"
)

// Dialect is one Slurm whose words are spoken.
type Dialect struct {
	Version string // as in slurm_version
	Release string
	// Parsers write its documents; the first does unless another is asked for.
	Parsers []document.Parser
}

// dialects is every Slurm that is spoken, in the order of [api.SlurmVersions]. The releases are the last of each.
var dialects = []Dialect{
	{"22.05", "22.05.8", []document.Parser{document.V38}},
	{"23.11", "23.11.11", []document.Parser{document.V40}},
	{"24.11", "24.11.7", []document.Parser{document.V42, document.V41, document.V40}},
}

// versionVariable chooses the Slurm for one caller.
const versionVariable = "GANG_SLURM_VERSION"

// Spoken is the Slurm whose words are spoken: the caller's choice, else the site's; where no controller
// says it, the usual one.
func Spoken(ctx context.Context, c *client.Client) (Dialect, error) {
	if v := os.Getenv(versionVariable); v != "" {
		i := slices.IndexFunc(dialects, func(d Dialect) bool { return d.Version == v })
		if i < 0 {
			return Dialect{}, fmt.Errorf("%s=%s: want one of %s", versionVariable, v, strings.Join(api.SlurmVersions, ", "))
		}
		return dialects[i], nil
	}
	version := api.DefaultSlurmVersion
	if reply, err := c.Ping(ctx); err == nil && reply.Site != nil && reply.Site.SlurmVersion != "" {
		version = reply.Site.SlurmVersion
	}
	for _, d := range dialects {
		if d.Version == version {
			return d, nil
		}
	}
	return dialects[slices.Index(api.SlurmVersions, api.DefaultSlurmVersion)], nil // a controller of tomorrow
}

// version is what --version prints under every name. Programs that look for a version read
// the word behind "slurm " and the numbers at its head.
func version() (string, error) {
	d, err := Spoken(context.Background(), client.New())
	if err != nil {
		return "", err
	}
	return "slurm " + d.Release + "-compatible (gangd " + api.Version + ")", nil
}

// PrintVersion prints [Version] for the command of this name and gives its exit status.
func PrintVersion(name string, s cmdline.Streams) int {
	v, err := version()
	if err != nil {
		s.Errorf(name, "%s", err)
		return 1
	}
	fmt.Fprintln(s.Out, v)
	return 0
}

// VersionRow is --version.
func VersionRow[T any]() cmdline.Option[T] {
	return cmdline.Option[T]{Long: "version", Short: 'V', List: cmdline.Partial, Help: "names gangd too",
		Set: func(*T, string) error {
			v, err := version()
			if err != nil {
				return err
			}
			return cmdline.Said(v)
		}}
}

// Document is the choice of --json and --yaml: a table is printed unless one was asked for.
type Document struct {
	kind   string // "json" or "yaml"
	parser string // its value
}

// Asked reports whether one of the options was given.
func (d *Document) Asked() bool { return d.kind != "" }

// Style is how the document is written: by the data parser that was asked for, else by the first of the Slurm
// that is spoken.
func (d *Document) Style(ctx context.Context, c *client.Client, s cmdline.Streams) (*document.Style, error) {
	spoken, err := Spoken(ctx, c)
	if err != nil {
		return nil, err
	}
	style := &document.Style{Parser: spoken.Parsers[0], Release: spoken.Release, Cluster: cmdline.Cluster, YAML: d.kind == "yaml"}
	if d.parser == "" {
		return style, nil
	}
	if spoken.Parsers[0] < document.V40 {
		return nil, fmt.Errorf("--%s=%s: Slurm %s has no choice of data parsers", d.kind, d.parser, spoken.Version)
	}
	var names []string
	for _, p := range slices.Backward(spoken.Parsers) {
		if name := "data_parser/" + p.String(); d.parser == p.String() || d.parser == name {
			style.Parser = p
			return style, nil
		}
		names = append(names, "data_parser/"+p.String())
	}
	if strings.EqualFold(d.parser, "list") {
		fmt.Fprintf(s.Err, "Possible data_parser plugins:\n%s\n", strings.Join(names, "\n"))
		return nil, cmdline.ErrDone
	}
	return nil, fmt.Errorf("no data parser %q in Slurm %s; it has %s", d.parser, spoken.Version, strings.Join(names, ", "))
}

func documentRow[T any](kind, help string, at func(*T) *Document) cmdline.Option[T] {
	return cmdline.Option[T]{Long: kind, Kind: cmdline.Optional, List: cmdline.Partial, Help: help,
		Set: func(t *T, v string) error { *at(t) = Document{kind, v}; return nil }}
}

// JSONRow is --json.
func JSONRow[T any](at func(*T) *Document) cmdline.Option[T] {
	return documentRow("json", "in the shape of a data parser of the Slurm that is spoken, list names them; fields that gangd has nothing "+
		"of are null, not set or empty", at)
}

// YAMLRow is --yaml.
func YAMLRow[T any](at func(*T) *Document) cmdline.Option[T] {
	return documentRow("yaml", "as --json, in YAML", at)
}
