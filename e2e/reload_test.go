package e2e

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store/pgserver"
)

// configured is a cluster whose configurations a person edits.
type configured struct {
	*cluster
	base string // of gangd's file
}

func newConfigured(t *testing.T, args ...string) *configured {
	c := &configured{cluster: start(t, args...)}
	b, err := os.ReadFile(c.file("gangd"))
	if err != nil {
		t.Fatal(err)
	}
	c.base = string(b)
	return c
}

func (c *configured) file(daemon string) string { return filepath.Join(c.dir, "etc", daemon+".toml") }

// edit puts a text behind what is in the file of a daemon from the start on, as an editor does: by another file of its name.
func (c *configured) edit(daemon, text string) {
	c.t.Helper()
	path := c.file(daemon)
	if err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path)); err != nil {
		c.t.Fatal(err)
	}
}

// state is all that a reload that is refused may not touch: the files of the store and what people are shown.
func (c *configured) state() string {
	c.t.Helper()
	sum := sha256.New()
	err := filepath.WalkDir(filepath.Join(c.dir, "state", "gangd"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "-shm") { // which readers write to
			return err
		}
		b, err := os.ReadFile(path)
		fmt.Fprintln(sum, path, len(b))
		sum.Write(b)
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return fmt.Sprintf("%x\n%s%s", sum.Sum(nil), c.must("gqueue", "-o", "%i %T %P"), c.must("gctl", "show", "partition"))
}

func (c *configured) reload() (r api.ReloadReply, errs string, code int) {
	c.t.Helper()
	out, errs, code := c.run("gctl", "reload", "--json")
	if code == 0 {
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			c.t.Fatal(err)
		}
	}
	return r, errs, code
}

// wrongConfigurations are what people write by mistake, and in which line of it.
var wrongConfigurations = []struct {
	text string
	line int
}{
	{"grace = ", 1}, {"admins = [\"root\"\n", 3}, {"grace = \"1s\"\ngrace = \"2s\"", 2}, {"\ngrase = \"1s\"", 2}, {"cpus = 4", 1},
	{"grace = 10", 1}, {"grace = \"-1s\"", 1}, {"grace = \"off\"", 1}, {"grace = true", 1}, {"grace = [\"1s\"]", 1}, {"history_jobs = \"many\"", 1},
	{"preempt = \"always\"", 1}, {"order = \"random\"", 1}, {"guard_percent = 101", 1}, {"guard_percent = 0", 1}, {"fence_hook = \"fence\"", 1},
	{"fence_hook = \"/no/such/program\"", 1}, {"idle_hook = \"/etc/passwd\"", 1}, {"submit_rule = \"/tmp\"", 1}, {"listen = \"7420\"", 1},
	{"heartbeat = \"30s\"\nnode_timeout = \"20s\"", 2}, {"lease = \"1ms\"", 1}, {"retry_backoff = \"1h\"\nretry_backoff_max = \"1m\"", 2},
	{"submit_rule_timeout = \"1m\"", 1}, {"ports = \"80-90\"", 1}, {"propagate_limits = \"MANY\"", 1}, {"slurm_version = \"19.05\"", 1},
	{"mpi_default = \"openmpi\"", 1}, {"memory_static_bytes = \"5 Gobs\"", 1}, {"topology_file = \"/no/such/file\"", 1},
	{"mail_server = \"mail\"\nmail_domain = \"example.org\"", 1}, {"mail_login = \"me\"", 1}, {"web_cert = \"/etc/passwd\"", 1},
	{"[[partition]]\nname = \"a\"\n[[partition]]\nname = \"a\"", 4}, {"[[partition]]\nmax_time = \"1h\"", 1}, {"[[partition]]\nname = \"a b\"", 2},
	{"[[partition]]\nname = \"a\"\nmax_time = \"1h\"\ndefault_time = \"2h\"", 4}, {"[[partition]]\nname = \"a\"\nmin_nodes = 3\nmax_nodes = 2", 3},
	{"partition = \"a\"", 1}, {"[[account]]\nname = \"a\"\ncards = 4\nquota = 5", 4}, {"[[account]]\nname = \"a\"\n[[account]]\nname = \"a\"", 4},
	{"[[licence]]\nname = \"a\"\ncount = -1", 3}, {"[[licence]]\nname = \"a\"\ncuont = 1", 3}, {"[[notify]]\nname = \"a\"\nurl = \"http://x/\"", 3},
	{"[[notify]]\nname = \"a\"", 1}, {"history_archive = \"/no/such/directory\"", 1}, {"settings.grace = \"1s\"", 1},
	{"[[account]]\nname = \"x\"\n[[partition]]\nname = \"a\"\nallow_accounts = [\"y\"]", 5}, {"admins = [1]", 1}, {"user_rate = -1", 1},
}

// goodChanges are made one after the other, each beside the file of the start: which key it changes, and what shows that it holds.
var goodChanges = []struct {
	text, key, was, is string
	holds              func(c *configured) error
}{
	{"grace = \"7s\"", "grace", "15s", "7s", nil},
	{"user_jobs = 1", "user_jobs", "100000", "1", refusesSubmission("1 job", "--hold")},
	{"max_jobs = 1", "max_jobs", "1000000", "1", refusesSubmission("", "--hold")},
	{"user_bytes = 1", "user_bytes", "256MiB", "1", refusesSubmission("", "--hold")},
	{"drain_slack = \"31s\"", "drain_slack", "30s", "31s", nil},
	{"start_timeout = \"31s\"", "start_timeout", "30s", "31s", nil},
	{"node_timeout = \"31s\"", "node_timeout", "30s", "31s", nil},
	{"retry_backoff = \"2s\"", "retry_backoff", "1s", "2s", nil},
	{"retry_backoff_max = \"6m\"", "retry_backoff_max", "5m", "6m", nil},
	{"stall_timeout = \"off\"", "stall_timeout", "2m", "off", nil},
	{"stall_confirm_samples = 4", "stall_confirm_samples", "3", "4", nil},
	{"gpu_idle_percent = 6", "gpu_idle_percent", "5", "6", nil},
	{"memory_static_bytes = \"6GiB\"", "memory_static_bytes", "5GiB", "6GiB", nil},
	{"gpu_hang_window = \"6m\"", "gpu_hang_window", "5m", "6m", nil},
	{"stall_retries = 4", "stall_retries", "3", "4", nil},
	{"idle_limit = \"3h\"", "idle_limit", "off", "3h", nil},
	{"idle_exempt = [\"root\"]", "idle_exempt", "none", "root", nil},
	{"launch_retries = 4", "launch_retries", "3", "4", nil},
	{"node_lost_retries = 4", "node_lost_retries", "5", "4", nil},
	{"launch_strikes = 4", "launch_strikes", "3", "4", nil},
	{"shared_vram_grace = \"31s\"", "shared_vram_grace", "30s", "31s", nil},
	{"preempt_min_run = \"31s\"", "preempt_min_run", "off", "31s", nil},
	{"invalid_dependency = \"wait\"", "invalid_dependency", "cancel", "wait", nil},
	{"card_names = \"number\"", "card_names", "auto", "number", nil},
	{"propagate_limits = \"NONE\"", "propagate_limits", "ALL", "NONE", nil},
	{"mpi_default = \"pmi2\"", "mpi_default", "none", "pmi2", nil},
	{"slurm_version = \"24.11\"", "slurm_version", "23.11", "24.11", nil},
	{"ports = \"13000-13001\"", "ports", "12000-12999", "13000-13001", refusesSubmission("13000-13001", "--hold", "--resv-ports=3")},
	{"keep_ended = \"6m\"", "keep_ended", "5m", "6m", nil},
	{"history_keep = \"9d\"", "history_keep", "off", "9d", nil},
	{"history_jobs = 10", "history_jobs", "1000000", "10", nil},
	{"admins = [\"root\"]", "admins", "none", "root", nil},
	{"user_cards = 2", "user_cards", "0", "2", nil},
	{"user_rate = 0", "user_rate", "200", "0", nil},
	{"user_burst = 2001", "user_burst", "2000", "2001", nil},
	{"user_streams = 3", "user_streams", "256", "3", nil},
	{"min_run_max = \"2h\"", "min_run_max", "1h", "2h", nil},
	{"guard_after = \"off\"", "guard_after", "2d", "off", nil},
	{"protect_done = true", "protect_done", "false", "true", nil},
	{"preempt = \"tier\"", "preempt", "off", "tier", nil},
	{"order = \"fifo\"", "order", "service", "fifo", nil},
	{"max_switch_wait = \"6m\"", "max_switch_wait", "5m", "6m", nil},
	{"mail_tls = \"tls\"", "mail_tls", "starttls", "tls", nil},
	{"notify_rate = 61", "notify_rate", "60", "61", nil},
	{"fence_hook = \"/bin/true\"", "fence_hook", "none", "/bin/true", nil},
	{"idle_hook = \"/bin/true\"", "idle_hook", "none", "/bin/true", nil},
	{"submit_rule = \"/bin/false\"", "submit_rule", "none", "/bin/false", refusesSubmission("the site's rule", "--hold")},
	{"[[partition]]\nname = \"main\"\nmax_time = \"1h\"", "partition[main].max_time", "off", "1h", refusesSubmission("1 h", "--hold", "--time=2:00:00")},
	{"[[partition]]\nname = \"main\"\nstate = \"drain\"", "partition[main].state", "none", "drain", refusesSubmission("drain", "--hold")},
	{"[[partition]]\nname = \"main\"\n[[partition]]\nname = \"night\"\ntier = 3", "partition[night]", "", "tier = 3", takesSubmission("-p", "night")},
	{"[[licence]]\nname = \"matlab\"\ncount = 2", "licence[matlab]", "", "count = 2", takesSubmission("--licenses=matlab:1")},
	{"[[notify]]\nname = \"chat\"\nurl = \"https://example.org/x\"", "notify[chat]", "", "url = (not shown), format = gang", takesSubmission("--notify=chat:end")},
}

func refusesSubmission(with string, args ...string) func(*configured) error {
	return func(c *configured) error {
		_, errs, code := c.run("gsubmit", append(args, "--wrap", "true")...)
		if code == 0 || !strings.Contains(errs, with) {
			return fmt.Errorf("gsubmit %v: exit %d, %s", args, code, errs)
		}
		return nil
	}
}

func takesSubmission(args ...string) func(*configured) error {
	return func(c *configured) error {
		out, errs, code := c.run("gsubmit", append(args, "--hold", "--wrap", "true")...)
		if code != 0 {
			return fmt.Errorf("gsubmit %v: exit %d, %s", args, code, errs)
		}
		f := strings.Fields(out)
		_, errs, code = c.run("gcancel", f[len(f)-1])
		if code != 0 {
			return errors.New(errs)
		}
		return nil
	}
}

// TestReload: a file with anything wrong is refused whole and by its line, and the state is byte for byte what it was; of a good
// one the answer says exactly what has changed, and it holds.
func TestReload(t *testing.T) {
	t.Parallel()
	c := newConfigured(t, "--nodes=2")
	runs := c.submit("-o", "/dev/null", "--wrap", "sleep 600")
	c.wait(runs, api.JobRunning)
	lines := strings.Count(c.base, "\n")
	story := ""
	c.until("the story of the job to be told", func() bool {
		was := story
		story = c.story(runs)
		return was == story
	})
	before := c.state()
	for _, x := range wrongConfigurations {
		c.edit("gangd", c.base+x.text+"\n")
		_, errs, code := c.reload()
		at := fmt.Sprintf("%s:%d:", c.file("gangd"), lines+x.line)
		if code != 1 || !strings.Contains(errs, at) {
			t.Errorf("%q: exit %d, want %s\n%s", x.text, code, at, errs)
		}
		if now := c.state(); now != before {
			t.Fatalf("%q is refused, and the state is another:\n%s\n%s", x.text, before, now)
		}
	}
	c.edit("gangd", c.base)
	for i, x := range goodChanges {
		c.edit("gangd", c.base+x.text+"\n")
		compare := func(want string) {
			if i%8 != 0 && rounds(1) == 1 {
				return
			}
			if out, _, code := c.run("gangd", "check", "--against=running", c.file("gangd")); code != 0 || !strings.Contains(out, want) {
				t.Errorf("%q: gangd check --against=running: exit %d\n%s", x.text, code, out)
			}
		}
		compare(x.key + ":")
		r, errs, code := c.reload()
		if code != 0 || len(r.Changes) != 1 || len(r.Restart) != 0 {
			t.Errorf("%q: exit %d, %s\n%+v", x.text, code, errs, r)
			continue
		}
		if ch := r.Changes[0]; ch.Key != x.key || ch.Was != x.was || ch.Is != x.is {
			t.Errorf("%q: %+v, want %s from %s to %s", x.text, ch, x.key, x.was, x.is)
		}
		if x.holds != nil {
			if err := x.holds(c); err != nil {
				t.Errorf("%q does not hold: %v", x.text, err)
			}
		}
		compare("goes by the same")
		c.edit("gangd", c.base)
		if r, errs, code := c.reload(); code != 0 || len(r.Changes) != 1 {
			t.Errorf("%q, taken back: exit %d, %s\n%+v", x.text, code, errs, r)
		}
	}
	if now := c.story(runs); now != story {
		t.Errorf("a job that runs was touched:\n%s\n%s", story, now)
	}
	if n, m := len(wrongConfigurations), len(goodChanges); n < 40 || m < 40 {
		t.Errorf("%d wrong ones, %d good changes", n, m)
	}
	c.edit("gangd", c.base+"log_format = \"json\"\ngrace = \"8s\"\n")
	if r, _, _ := c.reload(); len(r.Changes) != 1 || len(r.Restart) != 1 || r.Restart[0].Key != "log_format" {
		t.Errorf("%+v", r)
	}
	scontrol := c.fromBin(c.slurmNames(), "scontrol")
	c.must("gctl", "partition", "update", "main", "--max-time=1h")
	limit := func() string { return c.must("gctl", "show", "partition", "main") }
	changed := limit()
	c.edit("gangd", c.base+"grace = -1\n")
	if _, errs, code := c.run(scontrol, "reconfigure"); code != 1 || !strings.Contains(errs, fmt.Sprintf("%s:%d:", c.file("gangd"), lines+1)) || limit() != changed {
		t.Errorf("scontrol reconfigure of a wrong file: exit %d, %s", code, errs)
	}
	c.edit("gangd", c.base+"log_format = \"json\"\ngrace = \"9s\"\n")
	if out, errs, code := c.run(scontrol, "reconfigure"); code != 0 || out != "" || errs != "log_format takes a restart of gangd\n" || limit() == changed {
		t.Errorf("scontrol reconfigure: exit %d, %q %q\n%s", code, out, errs, limit())
	}
	if r, _, _ := c.reload(); len(r.Changes) != 0 {
		t.Errorf("scontrol reconfigure has not read the file: %+v", r)
	}
	const twoPartitions = "[[partition]]\nname = \"main\"\n[[partition]]\nname = \"night\"\n"
	c.edit("gangd", c.base+twoPartitions)
	c.must("gctl", "reload")
	id := c.must("gsubmit", "--parsable", "-p", "night", "--hold", "--wrap", "true")
	c.edit("gangd", c.base+"[[partition]]\nname = \"main\"\n")
	if r, _, _ := c.reload(); len(r.Warnings) != 1 || r.Warnings[0].ID != "partition-left" || !strings.Contains(r.Warnings[0].Evidence, "1 job") {
		t.Errorf("of a partition that left while %s waits: %+v", id, r.Warnings)
	}
}

// underLoad has people submit, look and cancel while do runs, and fails where any of their calls did.
func underLoad(c *cluster, do func()) {
	c.t.Helper()
	var over atomic.Bool
	var calls, failed atomic.Int64
	var people sync.WaitGroup
	for range 3 {
		people.Go(func() {
			for !over.Load() {
				for _, call := range [][]string{{"gsubmit", "-o", "/dev/null", "--wrap", "true"}, {"gqueue"}, {"ginfo"}, {"gctl", "ping"}} {
					calls.Add(1)
					if out, errs, code := c.run(call[0], call[1:]...); code != 0 {
						failed.Add(1)
						c.t.Errorf("%v: exit %d\n%s%s", call, code, out, errs)
					}
				}
			}
		})
	}
	do()
	over.Store(true)
	people.Wait()
	c.t.Logf("%d calls, %d failed", calls.Load(), failed.Load())
}

// TestReloadUnderLoad: no call fails of reloads and SIGHUPs, and no job is touched.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	c := newConfigured(t, "--nodes=2")
	times := 10 * rounds(1)
	runs := c.submit("-N", "2", "--ranks-per-node=1", "-o", "/dev/null", "--wrap", "sleep 3600")
	c.wait(runs, api.JobRunning)
	var story string
	c.until("the story of the job to be told", func() bool {
		was := story
		story = c.story(runs)
		return was == story
	})
	node, err := os.ReadFile(c.file("n1"))
	if err != nil {
		t.Fatal(err)
	}
	pids := map[string]int{"gangd": c.pid("gangd"), "n1": c.pid("n1"), "n2": c.pid("n2")}
	hup := func(name string) {
		if err := syscall.Kill(pids[name], syscall.SIGHUP); err != nil {
			t.Error(err)
		}
	}
	same := func(daemon string) bool {
		out, _, code := c.run(map[bool]string{true: "gangd", false: "gnoded"}[daemon == "gangd"], "check", "--against=running", c.file(daemon))
		return code == 0 && strings.Contains(out, "goes by the same")
	}
	underLoad(c.cluster, func() {
		for i := range times {
			c.edit("gangd", fmt.Sprintf("%sgrace = \"%ds\"\n[[partition]]\nname = \"main\"\n[[partition]]\nname = \"p%d\"\n", c.base, 20+i, i))
			r, errs, code := c.reload()
			want := 3
			if i == 0 {
				want = 2
			}
			if code != 0 || len(r.Changes) != want {
				t.Errorf("reload %d: exit %d, %s\n%+v", i, code, errs, r)
			}
		}
		for i := range times {
			c.edit("gangd", fmt.Sprintf("%sgrace = \"%ds\"\n", c.base, 200+i))
			hup("gangd")
			c.until("gangd to go by what its file says", func() bool { return same("gangd") })
			c.edit("n1", fmt.Sprintf("%shealth_interval = \"%ds\"\n", node, 400+i))
			hup("n1")
			c.until("n1 to go by what its file says", func() bool { return same("n1") })
		}
	})
	if now := c.story(runs); now != story {
		t.Errorf("the job was touched:\n%s\n%s", story, now)
	}
	for name, pid := range pids {
		if c.pid(name) != pid || !running(pid) {
			t.Errorf("%s was process %d, and is not any more", name, pid)
		}
	}
	var evs api.EventsReply
	c.client().Decode(&evs, "gctl", "events", "--json")
	n := 0
	for _, e := range evs.Events {
		if e.Type == api.EventReconfigured && strings.HasPrefix(e.Text, "by ") {
			n++
		}
	}
	if n < 2*times {
		t.Errorf("%d reconfigurations on record, %d were made", n, 2*times)
	}
}

// TestReloadOfSeveralControllers: all of them take the same, each by its own file, or none does and it is said which refuses.
func TestReloadOfSeveralControllers(t *testing.T) {
	t.Parallel()
	if _, err := pgserver.Find(); err != nil {
		t.Skip(err)
	}
	c := newConfigured(t, "--nodes=1", "--controllers=2", "--postgres")
	b, err := os.ReadFile(c.file("gangd2"))
	if err != nil {
		t.Fatal(err)
	}
	second := string(b)
	both := func(text string) { c.edit("gangd", c.base+text); c.edit("gangd2", second+text) }
	runs := c.submit("-o", "/dev/null", "--wrap", "sleep 3600")
	c.wait(runs, api.JobRunning)
	stands := map[string]string{"gangd": "gangd2", "gangd2": "gangd"}
	leads := func() string {
		var p api.PingReply
		c.client().Decode(&p, "gctl", "ping", "--json")
		i := slices.IndexFunc(p.Controllers, func(s api.ControllerState) bool { return s.State == api.ControllerLeads })
		return p.Controllers[i].Name
	}
	other := stands[leads()]
	grace := func() time.Duration {
		var p api.PingReply
		c.client().Decode(&p, "gctl", "ping", "--json")
		return p.Site.Grace
	}
	both("grace = \"20s\"\n")
	if r, errs, code := c.reload(); code != 0 || len(r.Changes) != 1 || len(r.Controllers) != 1 || !r.Controllers[0].Took || r.Controllers[0].Name != other {
		t.Fatalf("exit %d, %s\n%+v", code, errs, r)
	}
	both("grace = \"30s\"\n")
	c.edit(other, map[string]string{"gangd": c.base, "gangd2": second}[other]+"grace = \"31s\"\n")
	if _, errs, code := c.reload(); code != 1 || !strings.Contains(errs, "controller "+other) || !strings.Contains(errs, "grace: 30s -> 31s") || grace() != 20*time.Second {
		t.Errorf("another file: exit %d, %s", code, errs)
	}
	c.edit(other, map[string]string{"gangd": c.base, "gangd2": second}[other]+"\ngrase = \"31s\"\n")
	if _, errs, code := c.reload(); code != 1 || !strings.Contains(errs, "controller "+other) || !strings.Contains(errs, c.file(other)+":") || grace() != 20*time.Second {
		t.Errorf("a wrong file: exit %d, %s", code, errs)
	}
	both("grace = \"40s\"\n")
	underLoad(c.cluster, func() {
		for i := range 10 * rounds(1) {
			both(fmt.Sprintf("grace = \"%ds\"\n", 41+i))
			// A hangup of before may come first, and leave nothing to change.
			r, errs, code := c.reload()
			if code != 0 || len(r.Changes) > 1 || !r.Controllers[0].Took || grace() != time.Duration(41+i)*time.Second {
				t.Errorf("reload %d: exit %d, %s\n%+v", i, code, errs, r)
			}
			for _, name := range []string{"gangd", "gangd2"} {
				if err := syscall.Kill(c.pid(name), syscall.SIGHUP); err != nil {
					t.Error(err)
				}
			}
		}
	})
	last := grace()
	c.kill(leads())
	c.until("the other one leads", func() bool {
		out, _, code := c.run("gangd", "controller", "list")
		return code == 0 && strings.Contains(out, other+" ") && strings.Contains(out, "leads") && leads() == other
	})
	if j := c.job(runs); j.State != api.JobRunning {
		t.Errorf("the job is %s", j.State)
	}
	if now := grace(); now != last || now != time.Duration(40+10*rounds(1))*time.Second {
		t.Errorf("who leads next goes by %s, the one before by %s", now, last)
	}
}
