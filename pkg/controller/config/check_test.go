package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/core/finding"
)

// site is a directory of files that a configuration names as @NAME.
type site struct {
	t   *testing.T
	dir string
}

func (s *site) put(name, text string, mode os.FileMode) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), mode); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(s.dir, name), mode); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) directory(name string, mode os.FileMode) {
	s.t.Helper()
	if err := os.Mkdir(filepath.Join(s.dir, name), mode); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(s.dir, name), mode); err != nil {
		s.t.Fatal(err)
	}
}

// certificate writes one with its key into one file.
func (s *site) certificate(name string, from, until time.Duration) {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(from), NotAfter: time.Now().Add(until)}
	cert, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
	if err != nil {
		s.t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		s.t.Fatal(err)
	}
	s.put(name, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))+
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})), 0o600)
}

func newSite(t *testing.T) *site {
	s := &site{t, t.TempDir()}
	s.put("good", "#!/bin/sh\n", 0o755)
	s.put("open", "#!/bin/sh\n", 0o777)
	s.put("plain", "text\n", 0o644)
	s.directory("state", 0o700)
	s.directory("entered", 0o755)
	s.directory("hooks", 0o755)
	s.put("hooks/10-good", "#!/bin/sh\n", 0o755)
	s.directory("mixed", 0o755)
	s.put("mixed/10-plain", "#!/bin/sh\n", 0o644)
	s.directory("empty", 0o755)
	s.certificate("valid", -time.Hour, 300*24*time.Hour)
	s.certificate("soon", -time.Hour, 13*24*time.Hour)
	s.certificate("late", -48*time.Hour, -time.Hour)
	s.certificate("early", time.Hour, 300*24*time.Hour)
	s.put("topology", "SwitchName=a Nodes=n[1-2]\n", 0o644)
	s.put("badtopology", "SwitchName=a Nodes=n[1-2]\nSwitchName=a Nodes=n3\n", 0o644)
	return s
}

// broken are configurations with one thing wrong each: of whom, the text, and what is found in which line.
var broken = []struct {
	node bool
	text string
	id   string
	line int // 0: it has none
}{
	{false, "lease = \n", "config-syntax", 1},
	{false, "listen = \":7420\"\nadmins = [\"root\"\n", "config-syntax", 3},
	{false, "lease = \"10m\"\nlease = \"11m\"\n", "config-syntax", 2},
	{false, "\nleese = \"10m\"\n", "config-value", 2},
	{false, "cpus = 4\n", "config-value", 1},
	{false, "lease = 10\n", "config-value", 1},
	{false, "# x\nlease = \"-1s\"\n", "config-value", 2},
	{false, "admins = \"root\"\ngrace = true\n", "config-value", 2},
	{false, "history_jobs = \"many\"\n", "config-value", 1},
	{false, "order = \"fifo\"\npreempt = \"always\"\n", "config-value", 2},
	{false, "guard_percent = 101\n", "config-value", 1},
	{false, "fence_hook = \"fence\"\n", "config-value", 1},
	{false, "listen = \"7420\"\n", "config-value", 1},
	{false, "heartbeat = \"30s\"\nnode_timeout = \"30s\"\n", "config-value", 2},
	{false, "submit_rule_timeout = \"1m\"\n", "config-value", 1},
	{false, "[[partition]]\nname = \"a\"\n[[partition]]\nname = \"a\"\n", "config-value", 4},
	{false, "[[partition]]\nname = \"a\"\n\n[[partition]]\nmax_time = \"1h\"\n", "config-value", 4},
	{false, "[[partition]]\nname = \"a\"\nmax_time = \"1h\"\ndefault_time = \"2h\"\n", "config-value", 4},
	{false, "partition = \"a\"\n", "config-value", 1},
	{false, "[[account]]\nname = \"a\"\ncards = 4\nquota = 5\n", "config-value", 4},
	{false, "[[licence]]\nname = \"a\"\ncount = -1\n", "config-value", 3},
	{false, "web_cert = \"@valid\"\n", "config-value", 1},
	{false, "topology_file = \"@badtopology\"\n", "config-value", 1},
	{false, "[[account]]\nname = \"a\"\ncards = 4\nusers = [\"root\"]\n[[account]]\nname = \"b\"\n", "config-cap", 3},
	{false, "admins = [\"root\", \"nosuchuser\"]\n", "config-user", 1},
	{false, "[[partition]]\nname = \"a\"\nallow_users = [\"nosuchuser\"]\n", "config-user", 3},
	{false, "[[partition]]\nname = \"a\"\nallow_groups = [\"nosuchgroup\"]\n", "config-group", 3},
	{false, "lease = \"5m\"\n", "config-lease", 1},
	{false, "nodes = [\"n1\"]\n[[partition]]\nname = \"a\"\nnodes = [\"n1\", \"n2\"]\n", "config-partition-nodes", 4},
	{false, "nodes = [\"n1\", \"n2\", \"n3\"]\ntopology_file = \"@topology\"\n", "config-topology-nodes", 2},
	{false, "fence_hook = \"@none\"\n", "program-missing", 1},
	{false, "idle_hook = \"@plain\"\n", "program-not-executable", 1},
	{false, "idle_hook = \"@empty\"\n", "program-not-executable", 1},
	{false, "\n\nsubmit_rule = \"@open\"\n", "program-writable", 3},
	{false, "history_archive = \"@plain\"\n", "directory-missing", 1},
	{false, "state_dir = \"@entered\"\n", "state-open", 1},
	{false, "web_listen = \":1\"\nweb_cert = \"@plain\"\nweb_key = \"@valid\"\n", "certificate-unreadable", 2},
	{false, "web_cert = \"@late\"\nweb_key = \"@late\"\n", "certificate-expired", 1},
	{false, "web_cert = \"@early\"\nweb_key = \"@early\"\n", "certificate-expired", 1},
	{false, "web_cert = \"@soon\"\nweb_key = \"@soon\"\n", "certificate-expires", 1},
	{false, "web_cert = \"@valid\"\nweb_key = \"@valid\"\nweb_proxy_ca = \"@plain\"\n", "certificate-unreadable", 3},

	{true, "controler = \"unix:/x\"\n", "config-value", 1},
	{true, "name = \"N 1\"\n", "config-value", 1},
	{true, "controller = \"unix:/x\"\nsocket = \"/y\"\n", "config-value", 2},
	{true, "job_limits = [\"nofile=x\"]\n", "config-value", 1},
	{true, "controller = \"127.0.0.1:7420\"\n", "node-not-joined", 1},
	{true, "state_dir = \"@entered\"\n", "state-open", 1},
	{true, "health_program = \"@none\"\n", "program-missing", 1},
	{true, "prolog = \"@mixed\"\n", "program-not-executable", 1},
	{true, "epilog = \"@empty\"\n", "program-none", 1},
	{true, "task_prolog = \"@open\"\n", "program-writable", 1},
	{true, "prolog = \"@good\"\nhook_timeout = \"30s\"\n", "config-hook-timeout", 2},
	{true, "groups = [\"nosuchgroup\"]\n", "config-group", 1},
	{true, "private_path = \"@none\"\n", "directory-missing", 1},
	{true, "container_images = [\"@none\"]\n", "directory-missing", 1},
	{true, "require_mounts = [\"@empty\"]\n", "mount-missing", 1},
	{true, "require_names = [\"no-such-host.invalid\"]\n", "name-unresolved", 1},
	{true, "cpu_list = \"0,4096\"\n", "cpus-absent", 1},
	{true, "cpus = 65536\n", "cpus-offered", 1},
	{true, "memory = \"1000TiB\"\n", "memory-offered", 1},
	{true, "expect_memory = \"1000TiB\"\n", "memory-expected", 1},
}

// TestBrokenConfigurations: each is found by its id, by file and line, and alone.
func TestBrokenConfigurations(t *testing.T) {
	s := newSite(t)
	for i, c := range broken {
		text := strings.ReplaceAll(c.text, "@", s.dir+"/")
		name := fmt.Sprintf("c%d.toml", i)
		s.put(name, text, 0o644)
		path := filepath.Join(s.dir, name)
		var set []string // what is not in the file, so that nothing of this host is looked at
		for key, value := range map[string]string{"state_dir": filepath.Join(s.dir, "state"), "socket": "/nowhere/gangd.sock"} {
			if c.node && key == "socket" {
				key, value = "controller", "unix:/nowhere"
			}
			if !strings.Contains(text, key+" =") {
				set = append(set, key+"="+value)
			}
		}
		var got finding.List
		switch {
		case !c.node:
			got = CheckController(t.Context(), path, set)
		case strings.HasPrefix(text, "name ="):
			got = CheckNode(t.Context(), path, "", set)
		default:
			got = CheckNode(t.Context(), path, "n1", set)
		}
		var ids []string
		for _, f := range got {
			ids = append(ids, f.ID)
		}
		want := fmt.Sprintf("%s:%d", path, c.line)
		if !slices.Contains(ids, c.id) || len(got) != 1 || got[0].Subject != want && !strings.HasPrefix(got[0].Subject, want+":") {
			t.Errorf("%q: want %s at line %d, found %+v", c.text, c.id, c.line, got)
		}
	}
	if n := len(broken); n < 40 {
		t.Errorf("%d configurations", n)
	}
}

// TestGoodConfigurations have nothing found.
func TestGoodConfigurations(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct {
		node bool
		text string
	}{
		{false, ""},
		{false, "nodes = [\"n1\", \"n2\"]\nadmins = [\"root\"]\nfence_hook = \"@good\"\nsubmit_rule = \"@good\"\nhistory_archive = \"@empty\"\n" +
			"topology_file = \"@topology\"\nweb_cert = \"@valid\"\nweb_key = \"@valid\"\nweb_proxy_ca = \"@valid\"\nlease = \"off\"\n" +
			"[[partition]]\nname = \"a\"\nnodes = [\"n1\"]\nallow_groups = [\"root\"]\n"},
		{true, ""},
		{true, "health_program = \"@good\"\nprolog = \"@hooks\"\nepilog = \"@good\"\ngroups = [\"root\"]\nrequire_mounts = [\"/proc\"]\n" +
			"require_names = [\"localhost\"]\ncpu_list = \"0\"\ncontainer_images = [\"@empty\"]\n"},
	} {
		s.put("good.toml", strings.ReplaceAll(c.text, "@", s.dir+"/"), 0o644)
		path := filepath.Join(s.dir, "good.toml")
		set := []string{"state_dir=" + filepath.Join(s.dir, "state")}
		var got finding.List
		if c.node {
			got = CheckNode(t.Context(), path, "n1", append(set, "controller=unix:/nowhere"))
		} else {
			got = CheckController(t.Context(), path, append(set, "socket=/nowhere/gangd.sock"))
		}
		if len(got) > 0 {
			t.Errorf("%q: %+v", c.text, got)
		}
	}
	if got := CheckController(t.Context(), filepath.Join(s.dir, "none.toml"), nil); len(got) != 1 || got[0].ID != "config-unreadable" {
		t.Errorf("%+v", got)
	}
	if got := CheckNode(t.Context(), filepath.Join(s.dir, "open"), "n1", nil); len(got) != 1 || got[0].ID != "config-unreadable" {
		t.Errorf("%+v", got)
	}
}

// TestNoSecretIsSaid: what is wrong with a value that may hold a password is said without it.
func TestNoSecretIsSaid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.toml")
	if err := os.WriteFile(path, []byte("database = \"mysql://u:s3cret@db/x\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := LoadController(path, nil)
	if err == nil || strings.Contains(err.Error(), "s3cret") || !strings.HasSuffix(err.Error(), "c.toml:1: database: want a URL of postgres, not of mysql") {
		t.Errorf("%v", err)
	}
}
