package config

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gangd/pkg/api"
)

var update = flag.Bool("update", false, "write docs/configuration.md anew")

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestControllerFile(t *testing.T) {
	path := write(t, `
dir = "/tmp/d"
listen = ":7420"
advertise = "login1:7420"
admins = ["ada", "bob"]
lease = "off"
grace = "500ms"
memory_static_bytes = "5GB"
stall_retries = 7

[[partition]]
name = "gpu"
default_time = "1d"

[[partition]]
name = "debug"
nodes = ["n1", "n2"]
max_time = "30m"
default = true
`)
	c, err := LoadController(path, []string{"grace=2s", "heartbeat=100ms", "admins=ada, eve", "grace=3s"})
	if err != nil {
		t.Fatal(err)
	}
	want := controllerDefaults()
	want.Dir, want.StateDir, want.Socket = "/tmp/d", "/tmp/d/state/gangd", "/tmp/d/run/gangd.sock"
	want.BackupDir = "/tmp/d/backups"
	want.Listen, want.Advertise, want.Name = ":7420", []string{"login1:7420"}, c.Name
	want.Admins = []string{"ada", "eve"}
	want.Order, want.BackfillDepth = "service", 8
	want.Lease, want.Grace, want.Heartbeat = 0, 3*time.Second, 100*time.Millisecond
	want.MemoryStaticBytes, want.StallRetries = 5<<30, 7
	want.Partitions = []api.Partition{
		{Name: "gpu", DefaultTime: 24 * time.Hour},
		{Name: "debug", Nodes: []string{"n1", "n2"}, MaxTime: 30 * time.Minute, Default: true},
	}
	if d := cmp.Diff(want, c); d != "" {
		t.Error(d)
	}
}

func TestDefaults(t *testing.T) {
	c, err := LoadController("", nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Socket != "/run/gangd/gangd.sock" || c.StateDir != "/var/lib/gangd" || !cmp.Equal(c.Settings, api.DefaultSettings()) {
		t.Errorf("controller: %+v", c)
	}
	if d := cmp.Diff([]api.Partition{{Name: "main", Default: true}}, c.Partitions); d != "" {
		t.Error(d)
	}
	n, err := LoadNode("", "n1", []string{"dir=/tmp/d", "memory=1.5G", "cpus=8", "name=other"})
	if err != nil {
		t.Fatal(err)
	}
	want := nodeDefaults()
	want.Name, want.Dir, want.StateDir, want.Controllers = "n1", "/tmp/d", "/tmp/d/state/n1", []string{"unix:/tmp/d/run/gangd.sock"}
	want.SimGPUFile, want.Memory, want.CPUs, want.Address = "/tmp/d/sim/n1.json", 3<<29, 8, n.Address
	if d := cmp.Diff(want, n); d != "" {
		t.Error(d)
	}
}

// TestRefusals holds the whole text: people read it, and it must be enough to act on.
func TestRefusals(t *testing.T) {
	long := "/" + strings.Repeat("x", 107)
	names := controllerTable.names()
	slices.Sort(names)
	all := strings.Join(names, " ")
	tests := []struct {
		name, file string
		set        []string
		want       string
	}{
		{"unknown key", "listen = \":1\"\ngrce = \"5s\"", nil, `FILE:2: unknown key "grce"; nearest is grace`},
		{"unknown, nothing near", "", []string{"zzzzzzzz=1"}, `--set zzzzzzzz=1: unknown key "zzzzzzzz"; there are: ` + all},
		{"name of an earlier release", "reservations = 4\nreservation_timeout = \"5s\"", nil, "FILE:1: reservations is named backfill_depth now\nFILE:2: reservation_timeout is named start_timeout now"},
		{"name of an earlier release, set", "", []string{"reservation_timeout=5s"}, `--set reservation_timeout=5s: reservation_timeout is named start_timeout now`},
		{"key of the other daemon", "cards = \"8x80G\"", nil, `FILE:1: cards is a key of gnoded, not of gangd`},
		{"unknown table", "[settings]\ngrace = \"5s\"", nil, `FILE:1: unknown key "settings"; there are: ` + all},
		{"no unit", "\n\ngrace = 15", nil, `FILE:3: grace: 15: want a duration with a unit, such as 500ms, 15s, 10m or 1d`},
		{"no unit, set", "", []string{"grace=15"}, `--set grace=15: want a duration with a unit, such as 500ms, 15s, 10m or 1d`},
		{"negative", "grace = \"-5s\"", nil, `FILE:1: grace: "-5s": want a duration with a unit, such as 500ms, 15s, 10m or 1d`},
		{"zero", "grace = \"off\"", nil, `FILE:1: grace: "off": want at least 1ms`},
		{"size", "memory_static_bytes = \"5 Gobs\"", nil, `FILE:1: memory_static_bytes: "5 Gobs": want a size, such as 500MiB, 5GiB or 80G`},
		{"range", "gpu_idle_percent = 101", nil, `FILE:1: gpu_idle_percent: 101: want 0 to 100`},
		{"number", "stall_retries = \"many\"", nil, `FILE:1: stall_retries: "many": want a whole number`},
		{"bool", "single_user = \"yes\"", nil, `FILE:1: single_user: "yes": want true or false`},
		{"string", "listen = 7420", nil, `FILE:1: listen: 7420: want a string in quotes`},
		{"listen", "listen = \"7420\"", nil, `FILE:1: listen: "7420": want host:port or :port`},
		{"list", "admins = [1]", nil, `FILE:1: admins: want a list of strings, such as ["a", "b"]`},
		{"word", "log_format = \"xml\"", nil, `FILE:1: log_format: "xml": want text or json`},
		{"relative", "state_dir = \"state\"", nil, `FILE:1: state_dir: "state": want an absolute path`},
		{"socket", "", []string{"socket=" + long}, `--set socket=` + long + `: want at most 107 bytes for the path of a unix socket, this has 108`},
		{"set without value", "", []string{"grace"}, `--set grace: want key=value`},
		{"set of a table", "", []string{"partition=x"}, `--set partition=x: partition is a table of the file, written [[partition]]`},
		{"not toml", "grace = 5s", nil, `FILE:1:10: not TOML: expected newline but got U+0073 's'`},
		{"partition as table", "[partition.a]\nnodes = [\"n1\"]", nil, `FILE:1: partition: want tables written [[partition]], each with a name`},
		{"partition key", "[[partition]]\nname = \"a\"\n[[partition]]\nname = \"b\"\nnode = [\"n1\"]", nil, `FILE:5: unknown key "node"; nearest is nodes`},
		{"partition value", "[[partition]]\nname = \"a\"\nmax_time = 10", nil, `FILE:3: max_time: 10: want a duration with a unit, such as 500ms, 15s, 10m or 1d`},
		{"partition without name", "[[partition]]\ndefault = true", nil, `FILE:1: name: want a name for each [[partition]]`},
		{"partition twice", "[[partition]]\nname = \"a\"\n[[partition]]\nname = \"a\"", nil, `FILE:4: name: there is a partition of that name above`},
		{"partition name", "[[partition]]\nname = \"A b\"", nil, `FILE:2: name: want 1 to 63 of a-z A-Z 0-9 . _ - that begin and end with a letter or digit`},
		{"two defaults", "[[partition]]\nname = \"a\"\ndefault = true\n[[partition]]\nname = \"b\"\ndefault = true", nil, `FILE:6: default: want one default partition, there is one above`},
		{"partition times", "[[partition]]\nname = \"a\"\nmax_time = \"1m\"\ndefault_time = \"1h\"", nil, `FILE:4: default_time: want at most max_time (1m0s)`},
		{"partition nodes", "[[partition]]\nname = \"a\"\nmin_nodes = 3\nmax_nodes = 2", nil, `FILE:3: min_nodes: want at most max_nodes (2)`},
		{"partition of an account that is not there", "[[partition]]\nname = \"a\"\nallow_accounts = [\"lab\"]\ndeny_accounts = [\"bal\"]\n[[account]]\nname = \"lab\"", nil, `FILE:4: deny_accounts: there is no account "bal"`},
		{"node timeout", "heartbeat = \"40s\"", nil, `node_timeout: want more than heartbeat (40s): a node would be lost between two beats`},
		{"backoff", "retry_backoff_max = \"10ms\"", nil, `FILE:1: retry_backoff_max: want at least retry_backoff (1s)`},
		{"lease", "", []string{"lease=1s"}, `--set lease=1s: want off, or more than heartbeat (1s): beats renew it`},
		{"all at once", "stall_retries = -1\nadmin = [\"a\"]\nlease = 5", nil,
			"FILE:1: stall_retries: -1: want 0 to 1048576\nFILE:2: unknown key \"admin\"; nearest is admins\nFILE:3: lease: 5: want a duration with a unit, such as 500ms, 15s, 10m or 1d"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := ""
			if tt.file != "" {
				path = write(t, tt.file)
			}
			_, err := LoadController(path, tt.set)
			if err == nil {
				t.Fatal("accepted")
			}
			got := err.Error()
			if path != "" {
				got = strings.ReplaceAll(got, path, "FILE")
			}
			if got != tt.want {
				t.Errorf("\n got %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestNodeRefusals(t *testing.T) {
	for _, tt := range []struct{ name, set, want string }{
		{"N 1", "", "--set name=N 1: want 1 to 63 of a-z 0-9 . - that begin and end with a letter or digit"},
		{"../x", "", "--set name=../x: want 1 to 63 of a-z 0-9 . - that begin and end with a letter or digit"},
		{"n1", "controller=unix:run/s", "--set controller=unix:run/s: want unix:/absolute/path of at most 107 bytes, or host:port"},
		{"n1", "controller=login1", "--set controller=login1: want unix:/absolute/path, or host:port"},
		{"n1", "socket=/run/r.sock", `--set socket=/run/r.sock: want controller = "host:port" with it: a relay on the controller's own host would make every user root to it`},
		{"n1", "login=true socket=none controller=head:7420", `--set socket=none: a login host is its relay: want a path`},
		{"n1", "login=true", `--set login=true: want controller = "host:port" with it: a relay on the controller's own host would make every user root to it`},
		{"n1", "cards=", "--set cards=: want a value"},
		{"n1", "grace=1s", "--set grace=1s: grace is a key of gangd, not of gnoded"},
	} {
		set := strings.Fields(tt.set)
		if _, err := LoadNode("", tt.name, set); err == nil || err.Error() != tt.want {
			t.Errorf("%s %s:\n got %v\nwant %s", tt.name, tt.set, err, tt.want)
		}
	}
	if _, err := LoadNode("/nonexistent/c.toml", "n1", nil); err == nil || err.Error() != "configuration: lstat /nonexistent: no such file or directory" {
		t.Errorf("missing file: %v", err)
	}
}

// TestEveryFieldHasARow is the drift test: a setting without bounds and meaning, or a row
// for a key that is no more, fails here.
func TestEveryFieldHasARow(t *testing.T) {
	for _, tt := range []struct {
		name string
		of   any
		rows []row
		also []string
	}{
		{"controller", &Controller{}, controllerTable.rows, []string{"partition", "account", "licence", "notify"}},
		{"account", &Account{}, accountRows, nil},
		{"licence", &api.Pool{}, licenceRows, nil},
		{"notify", &Webhook{}, webhookRows, nil},
		{"node", &Node{}, nodeTable.rows, nil},
		{"partition", &api.Partition{}, partitionRows, nil},
	} {
		keys := slices.Clone(tt.also)
		for _, r := range tt.rows {
			keys = append(keys, r.key)
			if r.text == "" {
				t.Errorf("%s: %s says nothing", tt.name, r.key)
			}
		}
		var fields []string
		for k := range valuesOf(tt.of) {
			fields = append(fields, k)
		}
		slices.Sort(keys)
		slices.Sort(fields)
		if d := cmp.Diff(fields, keys); d != "" {
			t.Errorf("%s: fields and rows differ:\n%s", tt.name, d)
		}
	}
}

// TestCapsThatCanBeLeft: a cap that nobody is held to is warned of at its line, and is no error.
func TestCapsThatCanBeLeft(t *testing.T) {
	const small = "[[account]]\nname = \"small\"\ncards = 2\n"
	for text, want := range map[string]string{
		"": "",
		small + "users = [\"ada\"]\n[[account]]\nname = \"big\"\ncards = 8\nusers = [\"bob\"]\n": "",
		small + "users = [\"ada\"]\n[[account]]\nname = \"open\"\n":                              "FILE:3: cards: users of account small can leave this cap: account open has no users, which is open to everybody (--account=open)",
		small + "[[account]]\nname = \"open\"\ndefault = true\n":                                 "FILE:3: cards: users of account small can leave this cap: account open has no users, which is open to everybody (--account=open)",
		small + "default = true\n":    "",
		small + "users = [\"ada\"]\n": "",
		small:                         "FILE:3: cards: whoever names no account is not under this cap: account small has no users, and no account is the default",
		"[[account]]\nname = \"open\"\n[[account]]\nname = \"lab\"\nusers = [\"ada\"]\n": "",
	} {
		path := write(t, text)
		c, err := LoadController(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.ReplaceAll(strings.Join(c.Warnings, "\n"), path, "FILE"); got != want {
			t.Errorf("%s\n%s, want %s", text, got, want)
		}
	}
}

func TestReference(t *testing.T) {
	const path = "../../../docs/configuration.md"
	want := reference()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(have), want); d != "" {
		t.Errorf("docs/configuration.md is not current; run go test ./pkg/controller/config -run Reference -update\n%s", d)
	}
}

// TestExamplesLoad keeps the examples of the documentation true.
func TestExamplesLoad(t *testing.T) {
	body := func(s string) string {
		_, s, _ = strings.Cut(s, "```toml")
		return strings.TrimSuffix(strings.TrimSpace(s), "```")
	}
	if _, err := LoadController(write(t, body(controllerExample)), nil); err != nil {
		t.Error(err)
	}
	for _, example := range []string{nodeExample, loginExample} {
		if _, err := LoadNode(write(t, body(example)), "n1", nil); err != nil {
			t.Error(err)
		}
	}
}

// TestLoginHost: it has a socket without being told, where the commands look for one.
func TestLoginHost(t *testing.T) {
	n, err := LoadNode("", "login2", []string{"login=true", "controller=head:7420"})
	if err != nil || n.Socket != "/run/gangd/gangd.sock" {
		t.Errorf("%+v, %v", n, err)
	}
	// So has a node that reaches the controller over the network, for its jobs; it may go without.
	if n, err = LoadNode("", "n1", []string{"controller=head:7420"}); err != nil || n.Socket != "/run/gangd/gangd.sock" || n.SocketAsked {
		t.Errorf("%+v, %v", n, err)
	}
	if n, err = LoadNode("", "n1", []string{"controller=head:7420", "socket=/run/other.sock"}); err != nil || n.Socket != "/run/other.sock" || !n.SocketAsked {
		t.Errorf("%+v, %v", n, err)
	}
	if n, err = LoadNode("", "n1", []string{"controller=head:7420", "socket=none"}); err != nil || n.Socket != "" {
		t.Errorf("%+v, %v", n, err)
	}
}

// TestJoinedHost: what gnoded join left is where a host without a configuration goes, and a
// configuration is the newer word.
func TestJoinedHost(t *testing.T) {
	dir := t.TempDir()
	load := func(set ...string) *Node {
		t.Helper()
		n, err := LoadNode("", "n1", append(set, "state_dir="+dir))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	n := load()
	if n.Controllers[0] != "unix:/run/gangd/gangd.sock" {
		t.Errorf("never joined: %q", n.Controllers)
	}
	for left, want := range map[string]string{"head:7420\n": "head:7420", "head": "unix:/run/gangd/gangd.sock"} {
		if err := os.WriteFile(n.JoinedFile(), []byte(left), 0o600); err != nil {
			t.Fatal(err)
		}
		if n := load(); len(n.Controllers) != 1 || n.Controllers[0] != want || n.ControllerAsked {
			t.Errorf("%q: goes to %q", left, n.Controllers)
		}
	}
	if n := load("controller=ctl2:7420"); n.Controllers[0] != "ctl2:7420" || !n.ControllerAsked {
		t.Errorf("configured: %q", n.Controllers)
	}
	if err := os.WriteFile(n.JoinedFile(), []byte("head:7420"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n := load("login=true"); n.Socket != "/run/gangd/gangd.sock" {
		t.Errorf("a login host: %+v", n)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add("grace = \"5s\"\n[[partition]]\nname = \"a\"\n", "lease=off")
	f.Add("partition = [1, {name = 2}]", "memory_static_bytes=1e400")
	f.Add("a.b.c = 1\n\"grace\" = [[1]]", "=")
	f.Fuzz(func(t *testing.T, file, set string) {
		// Its text, not a file: a directory and a file for each input cost more than the reading.
		f := text{"c.toml", []byte(file)}
		controllerOf(f, []string{set})
		nodeOf(f, "n1", []string{set})
	})
}

// TestStatesOfPartitions: each of them is read, also "up", and lists of everybody are none.
func TestStatesOfPartitions(t *testing.T) {
	for word, want := range map[string]api.PartitionState{"up": api.PartitionUp, "down": api.PartitionDown, "drain": api.PartitionDrain, "inactive": api.PartitionInactive} {
		path := filepath.Join(t.TempDir(), "x.toml")
		text := "[[partition]]\nname = \"a\"\nstate = \"" + word + "\"\nallow_groups = [\"all\"]\nallow_users = [\"ada\"]\nmax_nodes = 3\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := LoadController(path, nil)
		if err != nil {
			t.Errorf("%s: %v", word, err)
			continue
		}
		if d := cmp.Diff(api.Partition{Name: "a", Default: true, State: want, AllowUsers: []string{"ada"}, MaxNodes: 3}, c.Partitions[0]); d != "" {
			t.Errorf("%s: %s", word, d)
		}
	}
}
