package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client/drawn"
	"gangd/pkg/lab/sitetest"
)

// TestTablesInAPipe holds what scripts and pagers get, byte for byte.
func TestTablesInAPipe(t *testing.T) {
	sitetest.Small(t).Found()
	for name, args := range map[string][]string{
		"gqueue.txt":          {"gqueue"},
		"gqueue-array.txt":    {"gqueue", "-r", "-t", "all"},
		"gqueue-long.txt":     {"gqueue", "-l"},
		"gqueue-start.txt":    {"gqueue", "--start"},
		"gqueue-all.txt":      {"gqueue", "-P", "-t", "all", "-o", "%all"},
		"gqueue-names.txt":    {"gqueue", "-O", "jobarrayid:12,name:.10,state,size:5,status:30"},
		"gqueue-bars.txt":     {"gqueue", "--parsable"},
		"gqueue-why.txt":      {"gqueue", "--why", "13"},
		"ginfo.txt":           {"ginfo"},
		"ginfo-cards.txt":     {"ginfo", "--cards"},
		"ginfo-summary.txt":   {"ginfo", "-s"},
		"gctl-job.txt":        {"gctl", "show", "job", "12"},
		"gctl-job-ended.txt":  {"gctl", "show", "job", "15"},
		"gctl-node.txt":       {"gctl", "show", "node", "n2,n4"},
		"gctl-partition.txt":  {"gctl", "show", "partition"},
		"gctl-events.txt":     {"gctl", "events", "12"},
		"gacct.txt":           {"gacct", "-j", "12,15"},
		"gctl-help.txt":       {"gctl", "--help"},
		"gqueue-help.txt":     {"gqueue", "--help"},
		"gcancel-help.txt":    {"gcancel", "--help"},
		"ginfo-help.txt":      {"ginfo", "--help"},
		"glog-help.txt":       {"glog", "--help"},
		"gacct-help.txt":      {"gacct", "--help"},
		"gctl-fence-help.txt": {"gctl", "node", "fence", "--help"},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, code := run(t, nil, command(args[0]), args[1:]...)
			if code != 0 || errs != "" {
				t.Fatalf("%q: status %d, stderr %q", args, code, errs)
			}
			golden(t, name, out)
		})
	}
}

// TestLicencesAreShown: below the nodes stands what the site has altogether, for people and for programs.
func TestLicencesAreShown(t *testing.T) {
	s := sitetest.Small(t, sitetest.At("11:00:00", func(s *sitetest.Site) {
		s.Set(func(set *api.Settings) {
			set.Licences = []api.Pool{{Name: "matlab", Count: 3}, {Name: "ansys@db", Count: 10}}
		})
		spec := sitetest.SmallSpec("simulation", 1)
		spec.Pools = []api.Pool{{Kind: "licence", Name: "matlab", Count: 2}}
		s.Run(s.Submit(sitetest.Ada, spec, nil))
		s.Submit(sitetest.Ada, spec, nil)
	}))
	s.Found()
	for name, args := range map[string][]string{
		"ginfo-licences.txt":    {"ginfo"},
		"gqueue-licences.txt":   {"gqueue", "-o", "%i %T %W %r"},
		"gctl-job-licences.txt": {"gctl", "show", "job", "28"},
	} {
		out, errs, code := run(t, nil, command(args[0]), args[1:]...)
		if code != 0 || errs != "" {
			t.Fatalf("%q: status %d, stderr %q", args, code, errs)
		}
		golden(t, name, out)
	}
	for _, args := range [][]string{{"ginfo", "--cards"}, {"ginfo", "-s"}, {"ginfo", "-h"}, {"ginfo", "-n", "n1"}, {"ginfo", "-p", "gpu"}, {"ginfo", "-t", "up"}} {
		if out, _, _ := run(t, nil, command(args[0]), args[1:]...); strings.Contains(out, "matlab") {
			t.Errorf("%q:\n%s", args, out)
		}
	}
	reply := s.ShowNodes()
	for _, width := range []int{60, 80, 200} {
		var b bytes.Buffer
		if err := (&ginfo{}).show(&screen{w: &b, terminal: true, width: width}, reply); err != nil {
			t.Fatal(err)
		}
		golden(t, fmt.Sprintf("tty%d-ginfo-licences.txt", width), b.String())
	}
	out, _, _ := run(t, nil, command("ginfo"), "--json")
	var v struct{ Pools []api.PoolState }
	if err := json.Unmarshal([]byte(out), &v); err != nil || len(v.Pools) != 2 || v.Pools[0].Used != 2 || v.Pools[0].Key() != (api.PoolKey{Kind: "licence", Name: "matlab"}) || v.Pools[1].Used != 0 {
		t.Errorf("%v, %+v", err, v)
	}
}

// command makes a program by name.
func command(name string) *cobra.Command {
	for _, c := range programs() {
		if c.Name() == name {
			return c
		}
	}
	return nil
}

// TestTablesOnATerminal holds what people see, colours as <name>..</>.
func TestTablesOnATerminal(t *testing.T) {
	c := small(t)
	Drawer = drawn.Draw
	defer func() { Drawer = nil }()
	for _, width := range []int{60, 80, 120, 200} {
		show := func(name string, write func(*screen) error) {
			t.Run(fmt.Sprintf("%s-%d", name, width), func(t *testing.T) {
				var b bytes.Buffer
				if err := write(&screen{w: &b, terminal: true, colour: true, width: width}); err != nil {
					t.Fatal(err)
				}
				for line := range strings.Lines(uncoloured(b.String())) {
					if w := textWidth(strings.TrimRight(line, "\n")); w > width && name != "events" { // sentences, which a terminal wraps
						t.Errorf("%d columns on a terminal of %d: %q", w, width, line)
					}
				}
				golden(t, fmt.Sprintf("tty%d-%s.txt", width, name), visibleColours(b.String()))
				// Without colours it is the same, letter by letter.
				var bare bytes.Buffer
				if err := write(&screen{w: &bare, terminal: true, width: width}); err != nil {
					t.Fatal(err)
				}
				if bare.String() != sgr.ReplaceAllString(b.String(), "") {
					t.Errorf("without colours it is another text:\n%s\nand not\n%s", bare.String(), sgr.ReplaceAllString(b.String(), ""))
				}
			})
		}
		g := &gqueue{}
		if err := g.settle(NewGqueue()); err != nil {
			t.Fatal(err)
		}
		show("gqueue", func(s *screen) error { h := *g; h.widen(s); return h.write(s, slices.Clone(c.jobs)) })
		i := &ginfo{}
		show("ginfo", func(s *screen) error { return i.writeNodes(s, c.nodes) })
		show("cards", func(s *screen) error { return i.writeCards(s, c.nodes) })
		show("gacct", func(s *screen) error {
			return attemptTable([]*api.JobDetail{c.train, c.broken}, true).write(s)
		})
		show("summary", func(s *screen) error {
			return i.partitionTable(&api.NodesReply{Nodes: c.nodes, Partitions: c.partitions}).write(s)
		})
		show("ranks", func(s *screen) error { return rankTable(c.train.Job.Ranks).write(s) })
		show("efficiency", func(s *screen) error {
			return (&gacct{}).efficiency(s, []*api.JobDetail{hourOf(12, 2, 4, 90), hourOf(13, 8, 32, 100)})
		})
		for kind, rep := range reports {
			r := &greport{query: api.LedgerQuery{By: []string{"day", rep.by, "account"}}}
			show("greport-"+kind, func(s *screen) error { return r.table(rep, r.rows(ledgerRows())).write(s) })
		}
		show("job", func(s *screen) error { return writeStory(s, c.broken, nil) })
		if width < 100 {
			continue // a line of an event is a sentence
		}
		show("events", func(s *screen) error { return writeEvents(s, c.events, time.Time{}, nil) })
	}
}

// sgr is what a terminal is sent for colours.
var sgr = regexp.MustCompile("\x1b\\[[0-9;]*m")

func uncoloured(s string) string { return sgr.ReplaceAllString(s, "") }

func visibleColours(s string) string {
	for st, name := range map[style]string{green: "<green>", yellow: "<yellow>", red: "<red>", faint: "<faint>", bold: "<bold>", styleEnd: "</>"} {
		s = strings.ReplaceAll(s, string(st), name)
	}
	return s
}

// TestJSONSchema holds the names and types of everything that --json prints: a name that
// goes away or changes its type breaks a script somewhere.
func TestJSONSchema(t *testing.T) {
	sitetest.Small(t).Found()
	for name, args := range map[string][]string{
		"gqueue.schema":      {"gqueue", "--json", "-t", "all"},
		"gqueue-why.schema":  {"gqueue", "--json", "--why", "13"},
		"ginfo.schema":       {"ginfo", "--json"},
		"gctl-job.schema":    {"gctl", "show", "job", "--json", "12"},
		"gctl-events.schema": {"gctl", "events", "12", "--json"},
		"gctl-ping.schema":   {"gctl", "ping", "--json"},
		"gacct.schema":       {"gacct", "--json", "-j", "12,15"},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, code := run(t, nil, command(args[0]), args[1:]...)
			if code != 0 {
				t.Fatalf("%q: status %d, stderr %q", args, code, errs)
			}
			var v any
			if err := json.Unmarshal([]byte(out), &v); err != nil {
				t.Fatal(err)
			}
			if v.(map[string]any)["schema_version"] != float64(api.SchemaVersion) {
				t.Errorf("schema_version is %v at the top of %q", v.(map[string]any)["schema_version"], args)
			}
			lines := map[string]bool{}
			schema(v, "", lines)
			golden(t, name, strings.Join(slices.Sorted(maps.Keys(lines)), "\n")+"\n")
		})
	}
}

// schema collects "path type" of everything in v; elements of a list share one path, and
// so do numbered keys (exit codes by rank).
func schema(v any, path string, into map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		into[path+" object"] = true
		for k, e := range v {
			if strings.Trim(k, "0123456789") == "" {
				k = "N"
			}
			schema(e, path+"."+k, into)
		}
	case []any:
		into[path+" list"] = true
		for _, e := range v {
			schema(e, path+"[]", into)
		}
	case string:
		into[path+" string"] = true
	case float64:
		into[path+" number"] = true
	case bool:
		into[path+" bool"] = true
	case nil:
		into[path+" null"] = true
	}
}
