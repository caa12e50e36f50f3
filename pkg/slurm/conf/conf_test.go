package conf

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gangd/pkg/controller/config"
)

var update = flag.Bool("update", false, "write the golden files")

// files reads from a map, as the command reads from disk.
func files(m map[string]string) func(string) (string, error) {
	return func(name string) (string, error) {
		if text, ok := m[name]; ok {
			return text, nil
		}
		return "", fmt.Errorf("open %s: no such file or directory", name)
	}
}

// made makes of one slurm.conf.
func made(text string) (*Result, error) {
	lines, err := Read(files(map[string]string{"slurm.conf": text}), "slurm.conf")
	if err != nil {
		return nil, err
	}
	return Make(&Files{Slurm: lines})
}

// passes loads what was made as gangd and gnoded do.
func passes(t *testing.T, r *Result) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.toml")
	load := func(text string, check func() error) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := check(); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
	// The command has the file there, and its check reads it.
	load(regexp.MustCompile(`(?m)^topology_file = .*\n`).ReplaceAllString(r.Gangd, ""), func() error { _, err := config.LoadController(path, nil); return err })
	for _, n := range r.Nodes {
		load(n.Text, func() error { _, err := config.LoadNode(path, n.Name, nil); return err })
	}
}

// TestSites makes of whole configurations, and compares with what is kept beside them.
func TestSites(t *testing.T) {
	dirs, _ := filepath.Glob("testdata/site*")
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			open := func(name string) (string, error) {
				b, err := os.ReadFile(filepath.Join(dir, filepath.Base(name)))
				return string(b), err
			}
			var in [3][]Line
			for i, name := range []string{"slurm.conf", "gres.conf", "topology.conf"} {
				if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
					continue
				}
				var err error
				if i == 2 {
					name = "/etc/slurm/" + name
				}
				if in[i], err = Read(open, name); err != nil {
					t.Fatal(err)
				}
			}
			r, err := Make(&Files{Slurm: in[0], Gres: in[1], Topology: in[2]})
			if err != nil {
				t.Fatal(err)
			}
			passes(t, r)
			everyItemHasAnEntry(t, r, in[:])
			var b strings.Builder
			b.WriteString(r.Gangd)
			for _, n := range r.Nodes {
				fmt.Fprintf(&b, "\n== %s\n%s", n.Name, n.Text)
			}
			b.WriteString("\n== report\n")
			r.Report(&b)
			golden := filepath.Join(dir, "want.txt")
			if *update {
				if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, _ := os.ReadFile(golden)
			if string(want) != b.String() {
				t.Errorf("%s is not what is made now (-update writes it):\n%s", golden, b.String())
			}
		})
	}
}

// everyItemHasAnEntry: nothing is dropped without a word. A list may have several.
func everyItemHasAnEntry(t *testing.T, r *Result, in [][]Line) {
	t.Helper()
	type place struct {
		file string
		line int
		key  string
	}
	said := map[place]bool{}
	for _, e := range r.Entries {
		said[place{e.File, e.Line, strings.ToLower(e.Item.Key)}] = true
		if e.Outcome == None && e.Text == "" {
			t.Errorf("%s:%d: %s has no meaning, and no reason is given", e.File, e.Line, e.Item)
		}
	}
	for _, lines := range in {
		for _, l := range lines {
			for _, i := range l.Items {
				if !said[place{l.File, l.N, strings.ToLower(i.Key)}] {
					t.Errorf("%s:%d: nothing is said of %s", l.File, l.N, i)
				}
			}
		}
	}
}

// TestEveryKeyOfSlurm holds the tables against the recorded keys of Slurm 22.05, and of the releases around it.
func TestEveryKeyOfSlurm(t *testing.T) {
	var text []byte
	for _, name := range []string{"testdata/keys-22.05.txt", "testdata/keys-others.txt"} {
		one, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, one...), '\n')
	}
	for _, line := range strings.Split(string(text), "\n") {
		section, key, ok := strings.Cut(line, " ")
		if !ok || section == "#" {
			continue
		}
		k := strings.ToLower(key)
		var there bool
		switch section {
		case "global":
			_, there = globals[k]
		case "node":
			_, there = nodeKeys[k]
		case "partition":
			_, there = partitionKeys[k]
		case "gres":
			_, there = gresKeys[k]
		}
		if !there {
			t.Errorf("%s: %s is not known", section, key)
		}
	}
}

func TestGlobalsAreSound(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range globalRows {
		if seen[strings.ToLower(g.name)] {
			t.Errorf("%s is there twice", g.name)
		}
		seen[strings.ToLower(g.name)] = true
		if (g.take == nil) == (g.why == "") {
			t.Errorf("%s needs either what takes it or why nothing does", g.name)
		}
	}
}

// TestUnknownKeys: a key that is not known, of a newer Slurm or written wrongly, is listed and left out, wherever it is; the
// rest is made.
func TestUnknownKeys(t *testing.T) {
	for text, want := range map[string]string{
		"KilWait=3\nNodeName=n1":                     "KilWait: not known here, left out; did you mean KillWait?",
		"NodeName=n1 Colour=red":                     "Colour: not known here, left out",
		"NodeName=n1\nPartitionName=p Novelty=1":     "Novelty: not known here, left out",
		"NodeName=n1\nNoveltyOf2030=yes":             "NoveltyOf2030: not known here, left out",
		"NodeName=n1\nSchedulerType=sched/wild":      "SchedulerType: that plug-in is not known here, left out; known are sched/backfill, sched/builtin",
		"NodeName=n1\nTopologyPlugin=topology/block": "TopologyPlugin: blocks of nodes are not known: gangs are placed below few switches (topology_file)",
		"NodeName=n1\nTLSType=tls/s2n":               "TLSType: " + noTLS,
		"NodeName=n1\nHashPlugin=hash/sha3":          "HashPlugin: " + noPlugin,
	} {
		r, err := made(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		key, what, _ := strings.Cut(want, ": ")
		if !slices.ContainsFunc(r.Entries, func(e Entry) bool { return e.Item.Key == key && e.Outcome == None && e.Text == what }) {
			t.Errorf("%q: no %q in %+v", text, want, r.Entries)
		}
	}
	r, err := made("NodeName=n1 Gres=gpu:a100:8\nNodeName=n2")
	if err != nil || len(r.Nodes) != 2 || !strings.Contains(r.Nodes[0].Text, "expect_cards = 8\n") || strings.Contains(r.Nodes[1].Text, "expect_cards") {
		t.Errorf("%v, %+v", err, r)
	}
}

func TestRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"KillWait=soon":                                            "slurm.conf:1: KillWait=soon: want a number",
		"NodeName=n[1-":                                            `slurm.conf:1: NodeName=n[1-: host list "n[1-": a number expected at column 5, found the end`,
		"NodeName=n1\nNodeName=n[1-2]":                             "slurm.conf:2: node n1 is there already",
		"NodeName=n[1-2] NodeAddr=a[1-3]":                          "slurm.conf:1: NodeAddr=a[1-3] has 3 names for 2 nodes",
		"NodeName=a_b":                                             "slurm.conf:1: node a_b: gangd wants 1 to 63 of a-z 0-9 . - that begin and end with a letter or digit",
		"PartitionName=x Nodes=n9":                                 "slurm.conf:1: partition x: there is no node n9",
		"PartitionName=x\nPartitionName=x":                         "slurm.conf:2: partition x is there already",
		"PartitionName=x MaxTime=never":                            "slurm.conf:1: MaxTime=never: not a time; write 90 (minutes), 90m, 12:00:00, 3-00:00:00 or 1d12h",
		"PartitionName=x MaxTime=10 DefaultTime=20":                "slurm.conf:1: partition x: DefaultTime is longer than MaxTime",
		"PartitionName=a Default=YES\nPartitionName=b Default=YES": "slurm.conf:2: partition b: another one is the default already",
		"PreemptMode=SOMETIMES":                                    "slurm.conf:1: PreemptMode=SOMETIMES: want OFF, CANCEL, GANG, REQUEUE, SUSPEND or WITHIN",
		"just words":                                               `slurm.conf:1: want KEY=VALUE, not "just words"`,
		`ClusterName="x`:                                           "slurm.conf:1: ClusterName: the quote is not closed",
		"Include more.conf":                                        "slurm.conf:1: include: open more.conf: no such file or directory",
		"KillWait=x\nMinJobAge=y\n":                                "slurm.conf:1: KillWait=x: want a number\nslurm.conf:2: MinJobAge=y: want a number",
		"a=1 \\\n b=\"":                                            "slurm.conf:1: b: the quote is not closed",
		"Licenses=matlab:two":                                      "slurm.conf:1: Licenses=matlab:two: not a whole number; write a number from 0 to 1048576",
		"Licenses=matlab:1,-x:2":                                   "slurm.conf:1: Licenses=matlab:1,-x:2: want names of letters, digits and . _ - @ /; write NAME:N,NAME:N",
		"Licenses=a:1000000,a:1000000":                             "slurm.conf:1: Licenses=a:1000000,a:1000000: too many of a; write 1048576 or fewer in all",
		"HealthCheckProgram=nhc":                                   "slurm.conf:1: HealthCheckProgram=nhc: want an absolute path",
	} {
		_, err := made(text)
		if err == nil || err.Error() != want {
			t.Errorf("%q:\n%v\nwant\n%s", text, err, want)
		}
	}
}

func TestCardsHaveToAgree(t *testing.T) {
	open := files(map[string]string{"s": "NodeName=n1 Gres=gpu:4", "g": "Name=gpu File=/dev/nvidia[0-1]", "g4": "Name=gpu File=/dev/nvidia[0-3]"})
	slurm, _ := Read(open, "s")
	two, _ := Read(open, "g")
	four, _ := Read(open, "g4")
	if _, err := Make(&Files{Slurm: slurm, Gres: two}); err == nil || err.Error() != "g:1: node n1 has 2 gpu here and Gres=gpu:4 at s:1" {
		t.Error(err)
	}
	if _, err := Make(&Files{Slurm: slurm, Gres: four}); err != nil {
		t.Error(err)
	}
}

func TestRead(t *testing.T) {
	open := files(map[string]string{
		"/etc/slurm/slurm.conf": "ClusterName=deep # a comment\r\nInclude %c.conf\nkillWait = 5 \\\n  MINJOBAGE=6\n#all of it\nComment=\"a b\"c\\#d\n",
		"/etc/slurm/deep.conf":  "SlurmUser=root",
	})
	lines, err := Read(open, "/etc/slurm/slurm.conf")
	var got []string
	for _, l := range lines {
		got = append(got, fmt.Sprint(l.File, ":", l.N, l.Items))
	}
	want := []string{"/etc/slurm/slurm.conf:1 [ClusterName=deep]", "/etc/slurm/deep.conf:1 [SlurmUser=root]",
		"/etc/slurm/slurm.conf:3 [killWait=5 MINJOBAGE=6]", "/etc/slurm/slurm.conf:6 [Comment=a bc#d]"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v\n%q", err, got)
	}
	if _, err := Read(files(map[string]string{"a": "include a"}), "a"); err == nil ||
		err.Error() != "a:1: include a: more than 32 files within each other; does one include itself?" {
		t.Error(err)
	}
}

// FuzzImport: whatever is in the files, it is refused with places or what is made passes
// the daemons' own check, and nothing goes without a word.
func FuzzImport(f *testing.F) {
	dirs, _ := filepath.Glob("testdata/site*")
	for _, dir := range dirs {
		read := func(name string) string { b, _ := os.ReadFile(filepath.Join(dir, name)); return string(b) }
		f.Add(read("slurm.conf")+read("nodes.conf"), read("gres.conf"), read("topology.conf"))
	}
	f.Add("NodeName=DEFAULT CPUs=4\nNodeName=A[1-3] Features=x,y\nPartitionName=GPU_x Nodes=ALL", "Name=gpu Count=0", "SwitchName=a Nodes=a1")
	f.Fuzz(func(t *testing.T, slurm, gres, topology string) {
		open := files(map[string]string{"s": slurm, "g": gres, "/t": topology})
		var in [3][]Line
		for i, name := range []string{"s", "g", "/t"} {
			var err error
			if in[i], err = Read(open, name); err != nil {
				return
			}
		}
		r, err := Make(&Files{Slurm: in[0], Gres: in[1], Topology: in[2]})
		if err != nil {
			return
		}
		everyItemHasAnEntry(t, r, in[:])
		if len(r.Nodes) < 50 {
			passes(t, r)
		}
	})
}

// TestPlugins: job_container.conf makes directories private, pyxis containers; what else stands there is said,
// and refused by place where Slurm could not read it.
func TestPlugins(t *testing.T) {
	open := files(map[string]string{
		"s": "NodeName=n1\nTaskProlog=/etc/slurm/task.d/*\nTaskEpilog=after",
		"j": "AutoBasePath=true\nBasePath=/nvme/jobs Dirs=/tmp,/var/tmp InitScript=/etc/x\n",
		"p": "# plugins\ninclude /etc/slurm/plugstack.conf.d/*\nrequired\t/usr/lib/slurm/spank_pyxis.so  runtime_path=/run/pyxis\noptional auto_tmpdir.so\n",
	})
	read := func(slurm, container, plugins string) (*Result, error) {
		f := &Files{}
		var err error
		if f.Slurm, err = Read(open, slurm); err != nil {
			t.Fatal(err)
		}
		if container != "" {
			if f.JobContainer, err = Read(open, container); err != nil {
				t.Fatal(err)
			}
		}
		if f.Plugins, err = ReadPlugins(open, plugins); err != nil {
			t.Fatal(err)
		}
		r, err := Make(f)
		if err == nil {
			everyItemHasAnEntry(t, r, [][]Line{f.Slurm, f.JobContainer, f.Plugins})
		}
		return r, err
	}
	if _, err := read("s", "j", "p"); err == nil || err.Error() != "s:3: TaskEpilog=after: want an absolute path" {
		t.Error(err)
	}
	open = files(map[string]string{"s": "NodeName=n1\nTaskProlog=/etc/slurm/task.d/*", "j": "AutoBasePath=true\nBasePath=/nvme/jobs Dirs=/tmp,/var/tmp InitScript=/etc/x\n",
		"p":   "# plugins\ninclude /etc/slurm/plugstack.conf.d/*\nrequired\t/usr/lib/slurm/spank_pyxis.so  runtime_path=/run/pyxis\noptional auto_tmpdir.so\n",
		"off": "BasePath=none", "bad": "Dirs=tmp BasePath=/x", "word": "requird /x.so", "key": "BasPath=/x", "none": ""})
	r, err := read("s", "j", "p")
	if err != nil {
		t.Fatal(err)
	}
	passes(t, r)
	for _, want := range []string{`task_prolog = "/etc/slurm/task.d"`, `containers = true`, `private_dirs = ["/tmp", "/var/tmp"]`, `private_path = "/nvme/jobs"`} {
		if !strings.Contains(r.Nodes[0].Text, want) {
			t.Errorf("no %s in\n%s", want, r.Nodes[0].Text)
		}
	}
	if r, err := read("s", "off", "none"); err != nil || strings.Contains(r.Nodes[0].Text, "private_dirs") || strings.Contains(r.Nodes[0].Text, "containers") {
		t.Errorf("%v, %+v", err, r)
	}
	for _, c := range []struct{ container, plugins, want string }{
		{"bad", "none", "bad:1: Dirs=tmp: want absolute paths, with commas"},
		{"", "word", `word:1: want required, optional or include and a path, not "requird /x.so"`},
	} {
		if _, err := read("s", c.container, c.plugins); err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
