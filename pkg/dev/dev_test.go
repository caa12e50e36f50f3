package dev

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/config"
	"gangd/pkg/node/proc"
	"gangd/pkg/node/shim"
	"gangd/pkg/wire/lifesign"
)

// TestMain is three programs: the tests, and by the name it is started with a controller
// and a node daemon that are just enough to be brought up, and a shim that does nothing.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "gangd":
		playController()
	case "gnoded":
		playNode()
	case "gshim":
		time.Sleep(time.Hour)
	default:
		os.Exit(m.Run())
	}
}

func configFlag() string {
	path := flag.String("config", "", "")
	flag.Parse()
	return *path
}

// quit plays on with signs of life, as the daemons do, and ends at TERM.
func quit() {
	signs, err := lifesign.New()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	signs.Ready()
	go func() {
		for loop := signs.Loop(); ; time.Sleep(loop.Pace()) {
			loop.Round()
		}
	}()
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM)
	<-c
	os.Exit(0)
}

func playController() {
	cfg, err := config.LoadController(configFlag(), nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if cfg.LogFormat == "json" { // how a test asks for a controller that can't start
		fmt.Fprintln(os.Stderr, "one\nthe disk is on fire")
		os.Exit(3)
	}
	if lost := filepath.Join(cfg.StateDir, "lost"); cfg.Name == controllerName(1) && cfg.Grace == 13*time.Second {
		// How a test asks for one of several that loses its seat while all come up.
		if os.MkdirAll(cfg.StateDir, 0o755) == nil && os.Mkdir(lost, 0o755) == nil {
			os.Exit(1)
		}
	}
	_ = os.Remove(cfg.Socket)
	l, err := net.Listen("unix", cfg.Socket)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	http.HandleFunc("/v1/nodes", func(w http.ResponseWriter, _ *http.Request) {
		var r api.NodesReply
		seen, _ := filepath.Glob(filepath.Join(cfg.Dir, "state", "*", "up"))
		for _, path := range seen {
			info, _ := os.Stat(path)
			r.Nodes = append(r.Nodes, api.Node{Name: filepath.Base(filepath.Dir(path)), State: api.NodeUp, LastSeen: info.ModTime()})
		}
		json.NewEncoder(w).Encode(&r)
	})
	http.HandleFunc("/v1/controllers", func(w http.ResponseWriter, _ *http.Request) {
		r := api.ControllersReply{Controllers: []api.ControllerState{{Name: controllerName(1), State: api.ControllerLeads}, {Name: controllerName(2), State: api.ControllerStandsBy}}}
		if os.Mkdir(joinedDir(cfg.StateDir), 0o755) == nil { // the first time
			r.Controllers[1].State = api.ControllerJoins
		}
		json.NewEncoder(w).Encode(&r)
	})
	go http.Serve(l, nil)
	quit()
}

// joinedDir is there once a fake controller was asked who may lead, and will say that the second may.
func joinedDir(stateDir string) string { return filepath.Join(stateDir, "joined") }

func playNode() {
	cfg, err := config.LoadNode(configFlag(), "", nil)
	if err != nil || cfg.CPUs == 13 { // how a test asks for a node that can't start
		fmt.Fprintln(os.Stderr, "thirteen brings bad luck", err)
		os.Exit(1)
	}
	os.MkdirAll(cfg.StateDir, 0o755)
	if _, err := os.Stat(filepath.Join(cfg.StateDir, "broken")); err == nil { // how a test breaks a node later
		fmt.Fprintln(os.Stderr, "broken")
		os.Exit(1)
	}
	up := filepath.Join(cfg.StateDir, "up")
	os.WriteFile(up, nil, 0o644)
	// File systems stamp with the last tick, which may lie before this process's start.
	os.Chtimes(up, time.Now(), time.Now())
	quit()
}

// programs is a directory with this program under the names of the daemons.
func programs(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	for _, name := range []string{"gangd", "gnoded", "gshim"} {
		if err := os.Symlink(exe, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	return bin
}

// short is a directory with a path that leaves room for sockets.
func short(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := Stop(dir); err != nil {
			t.Error(err)
		}
		os.RemoveAll(dir)
	})
	return dir
}

func start(t *testing.T, o Options) (*Cluster, layout) {
	t.Helper()
	o.Isolate = IsolateNo // e2e/isolate_test.go does, with real daemons
	c, err := Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return c, c.layout
}

func (l layout) pidOf(t *testing.T, name string) int {
	t.Helper()
	r, ok := l.record(name)
	if !ok || !r.alive() {
		t.Fatalf("%s is not alive: %+v %v", name, r, ok)
	}
	return r.pid
}

func gone(pid int) bool {
	s, ok := proc.ReadStat(pid)
	return !ok || s.Dead()
}

func TestUpRestartStop(t *testing.T) {
	dir, bin := short(t), programs(t)
	_, l := start(t, Options{Dir: dir, Bin: bin, Nodes: 3, GPUs: "2x40G", Set: []string{"grace=2s", "cpus=5", "log_format=text"}})
	pids := map[string]int{}
	for _, name := range []string{"gangd", "n1", "n2", "n3"} {
		pids[name] = l.pidOf(t, name)
		if s, _ := proc.ReadStat(pids[name]); s.Session != pids[name] {
			t.Errorf("%s is not in a session of its own", name)
		}
		b, _ := os.ReadFile(filepath.Join(dir, "run", name+".pid"))
		if string(b) != strconv.Itoa(pids[name])+"\n" {
			t.Errorf("%s.pid is %q", name, b)
		}
	}
	cfg, err := config.LoadController(l.config("gangd"), nil)
	if err != nil || cfg.Grace != 2*time.Second || !cfg.SingleUser || cfg.Socket != l.socket() {
		t.Errorf("%+v %v", cfg, err)
	}
	n, err := config.LoadNode(l.config("n2"), "", nil)
	if err != nil || n.Name != "n2" || n.Cards != "2x40G" || n.CPUs != 5 || n.MinUID != 0 || n.Memory == 0 || n.SimGPUFile != l.sim("n2") || n.Address != "127.0.0.1" {
		t.Errorf("%+v %v", n, err)
	}

	// A second start is refused and changes nothing.
	_, err = Start(context.Background(), Options{Dir: dir, Bin: bin, Nodes: 1, GPUs: "1x1G"})
	want := fmt.Sprintf("a cluster runs in %s already: gangd (pid %d), n1 (pid %d), n2 (pid %d), n3 (pid %d); use it with export GANG_DIR=%s, or end it: gangd dev --stop --dir=%s",
		dir, pids["gangd"], pids["n1"], pids["n2"], pids["n3"], dir, dir)
	if err == nil || err.Error() != want {
		t.Errorf("second start:\n got %v\nwant %s", err, want)
	}
	if len(l.names()) != 4 {
		t.Errorf("%v", l.names())
	}

	// kill -9 and restart.
	syscall.Kill(pids["n2"], syscall.SIGKILL)
	if err := Restart(context.Background(), dir, bin, "n2"); err != nil {
		t.Fatal(err)
	}
	if pid := l.pidOf(t, "n2"); pid == pids["n2"] {
		t.Error("the same process")
	}
	// Of one that runs: it is ended first.
	if err := Restart(context.Background(), dir, bin, "gangd"); err != nil {
		t.Fatal(err)
	}
	if !gone(pids["gangd"]) || l.pidOf(t, "gangd") == pids["gangd"] {
		t.Error("gangd was not replaced")
	}
	if l.pidOf(t, "n1") != pids["n1"] {
		t.Error("n1 was touched")
	}
	err = Restart(context.Background(), dir, bin, "n9")
	if want := fmt.Sprintf("no daemon \"n9\" in %s; there are: gangd n1 n2 n3", dir); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}

	now := []int{l.pidOf(t, "gangd"), l.pidOf(t, "n1"), l.pidOf(t, "n2"), l.pidOf(t, "n3")}
	for range 2 { // idempotent
		if err := Stop(dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, pid := range now {
		if !gone(pid) {
			t.Errorf("%d runs", pid)
		}
	}
	if left := l.list("run", ".pid"); len(left) != 0 {
		t.Errorf("records left: %v", left)
	}
	// And up again with what is there, fewer nodes this time.
	_, l = start(t, Options{Dir: dir, Bin: bin, Nodes: 1, GPUs: "1x1G"})
	if got := strings.Join(l.names(), " "); got != "gangd n1" {
		t.Error(got)
	}
}

func TestStopOfNothing(t *testing.T) {
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "missing")} {
		if err := Stop(dir); err == nil || err.Error() != "no cluster of gangd dev in "+dir+"; start one: gangd dev --detach --dir="+dir {
			t.Error(err)
		}
	}
	if err := Restart(context.Background(), "/tmp", "", "n1"); err == nil || err.Error() != "no cluster of gangd dev in /tmp; start one: gangd dev --detach --dir=/tmp" {
		t.Error(err)
	}
}

// TestFailureQuotesTheLog: nothing is left, and the reason is in the error.
func TestFailureQuotesTheLog(t *testing.T) {
	for _, tt := range []struct {
		about string
		set   []string
		want  string
	}{
		{"controller", []string{"log_format=json"}, "gangd ended before it was up (exit status 3); the end of DIR/log/gangd.log:\n  one\n  the disk is on fire"},
		{"node", []string{"cpus=13"}, " ended before it was up (exit status 1); the end of DIR/log/n"},
	} {
		t.Run(tt.about, func(t *testing.T) {
			dir := short(t)
			_, err := Start(context.Background(), Options{Dir: dir, Bin: programs(t), Nodes: 2, GPUs: "1x1G", Set: tt.set, Isolate: IsolateNo})
			if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), dir, "DIR"), tt.want) {
				t.Errorf("got %v", err)
			}
			if left := (layout{dir}).list("run", ".pid"); len(left) != 0 {
				t.Errorf("left running: %v", left)
			}
		})
	}
}

// One of several controllers that ends while all come up is started again; one that never stays is named.
func TestSeatLostWhileAllComeUp(t *testing.T) {
	two := Options{Dir: short(t), Bin: programs(t), Nodes: 1, GPUs: "1x1G", Controllers: 2, Set: []string{"database=postgres://x", "grace=13s", "node_timeout=15s"}}
	_, l := start(t, two)
	l.pidOf(t, controllerName(1))
	if _, err := os.Stat(filepath.Join(l.state(controllerName(1)), "lost")); err != nil {
		t.Errorf("it did not lose its seat: %v", err)
	}
	if _, err := os.Stat(joinedDir(l.state(controllerName(1)))); err != nil {
		t.Errorf("it is up, and nobody asked whether both may lead: %v", err)
	}
	two.Dir, two.Set = short(t), append(two.Set, "log_format=json")
	if _, err := Start(context.Background(), two); err == nil || !strings.Contains(err.Error(), "the disk is on fire") {
		t.Errorf("controllers that can't start: %v", err)
	}
}

// One of several controllers is up when it answers itself, whether another does or not.
func TestRestartOfOneOfSeveral(t *testing.T) {
	bin := programs(t)
	_, l := start(t, Options{Dir: short(t), Bin: bin, Nodes: 1, GPUs: "1x1G", Controllers: 2, Set: []string{"database=postgres://x"}})
	for _, name := range []string{controllerName(1), controllerName(2)} {
		r, _ := l.record(name)
		if err := r.end(stopPatience); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := Restart(ctx, l.dir, bin, controllerName(2)); err != nil {
		t.Error(err)
	}
}

func TestRefusals(t *testing.T) {
	bin := programs(t)
	long := "/" + strings.Repeat("d", 80)
	full, none := t.TempDir(), filepath.Join(t.TempDir(), "none")
	os.WriteFile(filepath.Join(full, "thesis.tex"), nil, 0o600)
	for _, tt := range []struct {
		o    Options
		want string
	}{
		{Options{Dir: none, Nodes: 0}, "--nodes=0: want 1 to 256"},
		{Options{Dir: none, Nodes: 1, GPUs: "8x"}, `--gpus: simulated cards: "8x" is not a size of VRAM; write 8x80G or 4xA100:40G+4xH100:80G; auto for the cards of this machine`},
		{Options{Dir: none, Nodes: 2, GPUs: "8x80G,8x"}, `--gpus: simulated cards: "8x" is not a size of VRAM; write 8x80G or 4xA100:40G+4xH100:80G; auto for the cards of this machine`},
		{Options{Dir: none, Nodes: 2, GPUs: "auto"}, "--gpus=auto: the cards of this machine can be one node's, not those of 2; want --nodes=1, or others for the rest: --gpus=auto,8x80G"},
		{Options{Dir: none, Nodes: 1, GPUs: "8x80G,8x40G"}, "--gpus=8x80G,8x40G: cards for 2 nodes, and there are 1 (--nodes)"},
		{Options{Dir: long, Nodes: 12}, "the directory's path is too long: " + long + " has 81 bytes, and with 12 nodes at most 77 leave room for unix sockets, which end at 107; choose a shorter one, such as --dir=/tmp/gang"},
		{Options{Dir: full, Nodes: 1}, full + " is not empty and not a cluster of gangd dev; give an empty directory or none"},
		{Options{Dir: none, Nodes: 1, Set: []string{"grce=1s"}}, `--set grce=1s: unknown key "grce"; nearest is grace`},
		{Options{Dir: none, Nodes: 1, Set: []string{"cpus=many"}}, "--set cpus=many: want a whole number"},
		{Options{Dir: none, Nodes: 1, Set: []string{"socket=/tmp/s"}}, "--set socket=/tmp/s: gangd dev chooses socket by itself"},
	} {
		tt.o.Bin = bin
		if tt.o.GPUs == "" {
			tt.o.GPUs = "1x1G"
		}
		if _, err := Start(context.Background(), tt.o); err == nil || err.Error() != tt.want {
			t.Errorf("\n got %v\nwant %s", err, tt.want)
		}
	}
	if _, err := os.Stat(none); !errors.Is(err, os.ErrNotExist) {
		t.Error("a refused start made its directory")
	}
}

// TestPidOfAnother: a record whose pid now belongs to someone else is never signalled.
func TestPidOfAnother(t *testing.T) {
	l := layout{short(t)}
	if err := l.make(); err != nil {
		t.Fatal(err)
	}
	other := exec.Command("sleep", "1000")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { other.Process.Kill(); other.Wait() }()
	s, _ := proc.ReadStat(other.Process.Pid)
	for _, r := range []record{
		{other.Process.Pid, s.Start - 1, proc.BootID()},
		{other.Process.Pid, s.Start, "another-boot"},
	} {
		if err := l.write("n1", r); err != nil {
			t.Fatal(err)
		}
		if err := Stop(l.dir); err != nil {
			t.Error(err)
		}
	}
	if gone(other.Process.Pid) {
		t.Error("an unrelated process was killed")
	}
}

// TestStopLeavesNothing: shims and ranks outlive daemons by design, and Stop ends them too.
func TestStopLeavesNothing(t *testing.T) {
	bin := programs(t)
	_, l := start(t, Options{Dir: short(t), Bin: bin, Nodes: 1, GPUs: "1x1G"})
	member := filepath.Join(l.state("n1"), "m", "17.2")
	if err := os.MkdirAll(member, 0o700); err != nil {
		t.Fatal(err)
	}
	marker := "GANG_MEMBER=test." + strconv.Itoa(os.Getpid())
	spec, _ := json.Marshal(shim.Spec{MemberKey: api.MemberKey{Job: 17, Epoch: 2}, Node: "n1", Dir: member, Containment: proc.Group, Marker: marker})
	if err := os.WriteFile(filepath.Join(member, shim.SpecFile), spec, 0o600); err != nil {
		t.Fatal(err)
	}
	orphan := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(name, args...)
		cmd.Env = append(os.Environ(), marker)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		return cmd
	}
	rank := orphan("sh", "-c", "trap '' TERM; while :; do sleep 1000; done")
	holder := orphan(filepath.Join(bin, "gshim"), member)
	marker = "NONE=1" // a waiting shim holds no member
	spare := orphan(filepath.Join(bin, "gshim"), "spare", filepath.Dir(filepath.Dir(member)), "-")
	// Another cluster's shim looks the same but for its directory.
	foreign := exec.Command(filepath.Join(bin, "gshim"), "/somewhere"+member)
	if err := foreign.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { foreign.Process.Kill(); foreign.Wait() }()

	if err := Stop(l.dir); err != nil {
		t.Fatal(err)
	}
	for name, pid := range map[string]int{"rank": rank.Process.Pid, "shim": holder.Process.Pid, "spare": spare.Process.Pid} {
		// A process that was killed has no environment any more and for an instant still a
		// state other than Z: the scan is right to call it gone before this look does.
		for deadline := time.Now().Add(10 * time.Second); !gone(pid); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("the %s %d is left", name, pid)
			}
		}
	}
	if gone(foreign.Process.Pid) {
		t.Error("someone else's process was killed")
	}
}

// TestWhatIsIsolated: several simulated nodes are hosts of their own where that can be, real cards are not,
// and who says which is heard.
func TestWhatIsIsolated(t *testing.T) {
	root := os.Geteuid() == 0
	for _, tt := range []struct {
		o         Options
		try, must bool
	}{
		{Options{Nodes: 4, GPUs: "8x80G"}, root, false},
		{Options{Nodes: 1, GPUs: "8x80G"}, false, false},
		{Options{Nodes: 2, GPUs: "auto,8x80G"}, false, false},
		{Options{Nodes: 4, GPUs: "8x80G", Isolate: IsolateNo}, false, false},
		{Options{Nodes: 1, GPUs: "auto", Isolate: IsolateYes}, true, true},
	} {
		if try, must := tt.o.wanted(); try != tt.try || must != tt.must {
			t.Errorf("%+v: %v %v", tt.o, try, must)
		}
	}
	seen := map[string]bool{}
	for number := range maxBridges {
		for _, node := range []int{0, 1, MaxNodes} {
			at := network{number}.address(node)
			if ip := net.ParseIP(at); ip == nil || seen[at] || !(&net.IPNet{IP: net.IPv4(198, 18, 0, 0), Mask: net.CIDRMask(15, 32)}).Contains(ip) {
				t.Errorf("cluster %d, node %d: %s", number, node, at)
			}
			seen[at] = true
		}
	}
	if c := (network{maxBridges - 1}).cable(MaxNodes); len(c) > 15 {
		t.Errorf("%s is too long for an interface", c)
	}
}

func TestOneAtATime(t *testing.T) {
	l := layout{short(t)}
	if err := l.make(); err != nil {
		t.Fatal(err)
	}
	lock, err := l.lock()
	if err != nil {
		t.Fatal(err)
	}
	want := "another gangd dev is starting or stopping daemons in " + l.dir + "; try again when it is done"
	if err := Stop(l.dir); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	lock.Close()
}

func TestQuoting(t *testing.T) {
	for in, want := range map[string]string{"/tmp/a-b_1.c": "/tmp/a-b_1.c", "": "''", "/a b": "'/a b'", "it's": `'it'\''s'`, "$HOME": "'$HOME'"} {
		if got := Quote(in); got != want {
			t.Errorf("%q: %s", in, got)
		}
	}
	for _, s := range []string{"plain", `a"b\c`, "tab\tnul\x01del\x7f", "ä€"} {
		path := filepath.Join(t.TempDir(), "c.toml")
		os.WriteFile(path, []byte(toml([]string{"address=x", "name=n1", "address=" + s})), 0o600)
		n, err := config.LoadNode(path, "", nil)
		if err != nil || n.Address != strings.TrimSpace(s) {
			t.Errorf("%q: %v %+v", s, err, n)
		}
	}
}
