package dev

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/controller/config"
	"gangd/pkg/controller/store/pgserver"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/node/gpu/simgpu"
)

const (
	// MaxNodes bounds a cluster on one machine; each node is a process of some 20 MB.
	MaxNodes = 256
	// leastCPUs are the slots of a node on a small machine: gangs of simulated cards are
	// to be tried out, not computed with.
	leastCPUs = 8
	// startPatience is for bringing all up, stopPatience for one daemon after TERM; both
	// take well under a second on an idle machine.
	startPatience = 60 * time.Second
	stopPatience  = 10 * time.Second
	// look is the pause between two looks at whether all is up.
	look = 10 * time.Millisecond
)

// Options are what `gangd dev` was asked for.
type Options struct {
	Dir   string // of the cluster
	Bin   string // directory of gangd and gnoded
	Nodes int    // 1..MaxNodes
	// Controllers are 1 to 3. Postgres: the state is in a PostgreSQL of the cluster's own, which more
	// than one controller needs; a database among Set is somebody else's.
	Controllers int
	Postgres    bool
	GPUs        string   // of each node: "8x80G"; or of one node after the other: "4x24G,4x40G,8x80G"
	CPUs        int      // of each node, 0: what the machine has, at least 8
	Set         []string // key=value, of gangd or of gnoded
	Web         string   // address of the page, of the first controller; those of others have the ports behind it. Empty: none
	Isolate     Isolate
	Watch       bool // its daemons are to be kept, see [Cluster.Watch]
}

// Cluster is a running one that this process started.
type Cluster struct {
	layout
	bin     string
	daemons []*daemon
	keepers []*keeper // none: nobody watches

	real     []string // nodes with the machine's own cards
	together error    // why nodes share host name and network where they need not
}

// Together is why the nodes share the machine's host name and network although each should have its
// own; nil: they have, or were not to.
func (c *Cluster) Together() error { return c.together }

// Dir is the cluster's directory, absolute: the GANG_DIR of its users.
func (c *Cluster) Dir() string { return c.dir }

// Link logs the caller in at the page, once.
func (c *Cluster) Link(ctx context.Context) (string, error) {
	reply, err := client.NewAt(c.socket()).Web(ctx)
	if err != nil {
		return "", err
	}
	return reply.URL, nil
}

// Bare gives the nodes that were to have the machine's own cards and found none.
func (c *Cluster) Bare(ctx context.Context) (names []string, err error) {
	reply, err := client.NewAt(c.socket()).Nodes(ctx)
	if err != nil {
		return nil, err
	}
	for i := range reply.Nodes {
		if n := &reply.Nodes[i]; slices.Contains(c.real, n.Name) && len(n.Cards) == 0 {
			names = append(names, n.Name)
		}
	}
	return names, nil
}

// Start brings a cluster up and returns when every node is. When it can't, nothing of it
// is left running.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if o.Nodes < 1 || o.Nodes > MaxNodes {
		return nil, api.Errorf(api.CodeInvalid, "--nodes=%d: want 1 to %d", o.Nodes, MaxNodes)
	}
	if n := len(strings.Split(o.GPUs, ",")); n > o.Nodes {
		return nil, api.Errorf(api.CodeInvalid, "--gpus=%s: cards for %d nodes, and there are %d (--nodes)", o.GPUs, n, o.Nodes)
	}
	if err := o.checkCards(); err != nil {
		return nil, err
	}
	if err := o.checkControllers(); err != nil {
		return nil, err
	}
	l, err := resolve(o.Dir, nodeName(o.Nodes))
	if err != nil {
		return nil, err
	}
	if _, err := l.configurations(o, nil); err != nil {
		return nil, err
	}
	if err := l.make(); err != nil {
		return nil, err
	}
	lock, err := l.lock()
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if err := l.vacant(); err != nil {
		return nil, err
	}
	if o.Postgres {
		if err := l.startDatabase(ctx); err != nil {
			return nil, err
		}
	}
	c := &Cluster{layout: l, bin: o.Bin}
	for i := range o.Nodes {
		if o.cards(i) == RealCards {
			c.real = append(c.real, nodeName(i+1))
		}
	}
	var net *network
	if try, must := o.wanted(); try {
		if net, c.together = l.isolate(o.Nodes); c.together != nil && must {
			return nil, errIsolate(c.together)
		}
	}
	files, err := l.configurations(o, net)
	if err == nil {
		err = l.writeFiles(files)
	}
	if err != nil {
		return nil, errors.Join(err, l.joinAll())
	}
	if o.Watch {
		if err := c.listen(); err != nil {
			return nil, err
		}
	}
	if err := c.bringUp(ctx); err != nil {
		c.deaf()
		return nil, errors.Join(err, l.stop())
	}
	return c, nil
}

// RealCards as the cards of a node are those of this machine.
const RealCards = "auto"

// checkCards holds that the machine's own cards are one node's, and that the others are known.
func (o *Options) checkCards() error {
	real := 0
	for i := range o.Nodes {
		if o.cards(i) == RealCards {
			real++
			continue
		}
		if _, err := simgpu.Parse(o.cards(i), nodeName(i+1)); err != nil {
			return api.Errorf(api.CodeInvalid, "--gpus: %v; auto for the cards of this machine", err)
		}
	}
	if real > 1 {
		return api.Errorf(api.CodeInvalid, "--gpus=%s: the cards of this machine can be one node's, not those of %d; want --nodes=1, or "+
			"others for the rest: --gpus=auto,8x80G", o.GPUs, real)
	}
	return nil
}

// MaxControllers of one cluster.
const MaxControllers = 3

func (o *Options) checkControllers() error {
	other := slices.ContainsFunc(o.Set, func(kv string) bool { return strings.HasPrefix(kv, "database=") })
	switch {
	case o.Controllers < 0 || o.Controllers > MaxControllers:
		return api.Errorf(api.CodeInvalid, "--controllers=%d: want 1 to %d", o.Controllers, MaxControllers)
	case o.Controllers > 1 && !o.Postgres && !other:
		return api.Errorf(api.CodeInvalid, "--controllers=%d: several controllers share a database: add --postgres", o.Controllers)
	case o.Postgres && other:
		return api.Errorf(api.CodeInvalid, "--postgres and --set database exclude each other")
	}
	return nil
}

// startDatabase starts the cluster's own. As root it is another user's, who has to reach it.
func (l layout) startDatabase(ctx context.Context) error {
	if os.Geteuid() == 0 {
		if err := os.Chmod(l.dir, 0o711); err != nil {
			return err
		}
	}
	_, err := pgserver.Start(ctx, pgserver.Options{Dir: l.database(), Stays: true})
	return err
}

// cards are those of the node with this index; the last that are named are also those of the
// nodes that follow.
func (o *Options) cards(i int) string {
	each := strings.Split(o.GPUs, ",")
	return each[min(i, len(each)-1)]
}

func nodeName(i int) string { return "n" + strconv.Itoa(i) }

// vacant refuses a directory whose cluster runs.
func (l layout) vacant() error {
	var running []string
	for _, name := range l.list("run", ".pid") {
		if r, ok := l.record(name); ok && r.alive() {
			running = append(running, fmt.Sprintf("%s (pid %d)", name, r.pid))
		}
	}
	if len(running) == 0 {
		return nil
	}
	return api.Errorf(api.CodeConflict, "a cluster runs in %s already: %s; use it with export GANG_DIR=%s, or end it: gangd dev --stop "+
		"--dir=%s",
		l.dir, strings.Join(running, ", "), Quote(l.dir), Quote(l.dir))
}

// own are the keys that make the cluster what it is.
var own = []string{"dir", "state_dir", "socket", "single_user", "name", "controller", "sim_gpu_file", "login"}

// configurations gives each daemon's file by name, checked as the daemons will; net is that of isolated nodes.
func (l layout) configurations(o Options, net *network) (map[string]string, error) {
	var forController, forNodes []string
	for _, kv := range o.Set {
		key, _, _ := strings.Cut(kv, "=")
		if slices.Contains(own, key) {
			return nil, api.Errorf(api.CodeInvalid, "--set %s: gangd dev chooses %s by itself", kv, key)
		}
		if config.IsNodeKey(key) {
			forNodes = append(forNodes, kv)
		}
		if config.IsControllerKey(key) || !config.IsNodeKey(key) {
			forController = append(forController, kv)
		}
	}
	if _, err := config.LoadController("", forController); err != nil {
		return nil, err
	}
	if _, err := config.LoadNode("", nodeName(1), forNodes); err != nil {
		return nil, err
	}
	files := map[string]string{}
	var sockets []string
	for i := range max(o.Controllers, 1) {
		name := controllerName(i + 1)
		sockets = append(sockets, "unix:"+l.socketOf(name))
		pairs := []string{"dir=" + l.dir, "single_user=true"}
		if o.Controllers > 1 {
			pairs = append(pairs, "name="+name, "state_dir="+l.state(name), "socket="+l.socketOf(name))
		}
		if o.Web != "" {
			at, err := o.webOf(i)
			if err != nil {
				return nil, err
			}
			pairs = append(pairs, "web_listen="+at)
		}
		if o.Postgres {
			pairs = append(pairs, "database="+pgserver.URL(l.database()))
		}
		files[name] = toml(append(pairs, forController...))
	}
	cpus, memory := share(o)
	for i := range o.Nodes {
		name, at := nodeName(i+1), "127.0.0.1"
		if net != nil {
			at = net.address(i + 1)
		}
		// Later pairs win, so --set wins over what is chosen here. min_uid: ranks run as
		// the person who starts this, whoever that is.
		files[name] = toml(append([]string{"dir=" + l.dir, "name=" + name, "cards=" + o.cards(i), "address=" + at,
			"cpus=" + strconv.Itoa(cpus), "memory=" + strconv.FormatInt(memory, 10), "min_uid=0",
			"controller=" + strings.Join(sockets, ",")}, forNodes...))
	}
	return files, nil
}

// webOf is where the i-th controller has its page.
func (o *Options) webOf(i int) (string, error) {
	host, port, err := net.SplitHostPort(o.Web)
	n, bad := strconv.Atoi(port)
	if err != nil || bad != nil || n < 1 || n+i > 65535 {
		return "", api.Errorf(api.CodeInvalid, "--web=%s: want HOST:PORT, such as %s", o.Web, DefaultWeb)
	}
	return net.JoinHostPort(host, strconv.Itoa(n+i)), nil
}

// DefaultWeb is the address of the page where only --web is given.
const DefaultWeb = "127.0.0.1:7421"

// share is what each node offers: CPU slots as many as the machine has, since simulated
// work needs none, but memory divided, since it is real.
func share(o Options) (cpus int, memory int64) {
	cpus = o.CPUs
	if cpus == 0 {
		cpus = max(leastCPUs, runtime.NumCPU())
	}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		memory = int64(info.Totalram) * int64(info.Unit) / int64(o.Nodes)
	}
	return cpus, memory // 0 bytes: gnoded detects
}

// toml writes key=value pairs; the daemons read every type from a string. A key given
// twice keeps its last value.
func toml(pairs []string) string {
	var keys []string
	values := map[string]string{}
	for _, kv := range pairs {
		k, v, _ := strings.Cut(kv, "=")
		k = strings.TrimSpace(k)
		if _, ok := values[k]; !ok {
			keys = append(keys, k)
		}
		values[k] = v
	}
	var b strings.Builder
	b.WriteString("# Written by gangd dev at each start.\n")
	for _, k := range keys {
		fmt.Fprintf(&b, "%s = %s\n", k, quoteTOML(values[k]))
	}
	return b.String()
}

// quoteTOML writes a basic string: what Go's quoting has beyond TOML's is bytes that are
// not UTF-8 and short escapes, so those are written out.
func quoteTOML(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// writeFiles replaces the configurations of an earlier start and keeps the sim files,
// which are the person's.
func (l layout) writeFiles(files map[string]string) error {
	for _, name := range l.names() {
		if err := os.Remove(l.config(name)); err != nil {
			return err
		}
	}
	for name, text := range files {
		if err := os.WriteFile(l.config(name), []byte(text), 0o600); err != nil {
			return err
		}
		if isController(name) {
			continue
		}
		f, err := os.OpenFile(l.sim(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		_, err = f.WriteString("{}\n")
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// bringUp starts all daemons at once: nodes wait for their controller by themselves.
func (c *Cluster) bringUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startPatience, fmt.Errorf("not up after %v", when.Words(startPatience)))
	defer cancel()
	names := c.names()
	nodes := slices.DeleteFunc(slices.Clone(names), isController)
	for _, name := range names {
		d, err := c.spawn(c.bin, name)
		if d != nil {
			c.daemons = append(c.daemons, d)
		}
		if err != nil {
			return err
		}
	}
	at := client.NewAt(c.socket())
	return c.await(ctx, c.bin, c.socket(), c.daemons, func(r *api.NodesReply) []string {
		waits := missing(r, nodes, time.Time{})
		if len(waits) == 0 && c.several() {
			waits = joining(ctx, at)
		}
		return waits
	})
}

// joining lists the controllers that may not lead yet: until they may, nobody leads when the first is killed.
func joining(ctx context.Context, c *client.Client) []string {
	l, err := c.Controllers(ctx)
	if err != nil {
		return []string{controller}
	}
	var out []string
	for i := range l.Controllers {
		if s := l.Controllers[i].State; s != api.ControllerLeads && s != api.ControllerStandsBy {
			out = append(out, l.Controllers[i].Name)
		}
	}
	if len(l.Controllers) < 2 {
		out = append(out, controllerName(2))
	}
	return out
}

// several: there is more than one controller.
func (l layout) several() bool { return slices.Contains(l.names(), controllerName(2)) }

// missing lists the nodes that are not connected, or were last heard of before since.
// A node that an admin or its launch failures drained is as much there as any.
func missing(r *api.NodesReply, names []string, since time.Time) []string {
	var out []string
	for _, name := range names {
		i := slices.IndexFunc(r.Nodes, func(n api.Node) bool { return n.Name == name })
		if i >= 0 && !r.Nodes[i].LastSeen.Before(since) {
			switch r.Nodes[i].State {
			case api.NodeUp, api.NodeDraining, api.NodeDrained:
				continue
			}
		}
		out = append(out, name)
	}
	return out
}

// await looks until a controller answers at a socket and nothing is missing, or a daemon ended. One of several controllers is
// started again, as its service manager would: who leads may lose the seat while all come up on a busy machine, and a
// controller that has lost it ends.
func (l layout) await(ctx context.Context, bin, socket string, ds []*daemon, missing func(*api.NodesReply) []string) error {
	c := client.NewAt(socket)
	waits := []string{controller}
	failures := 0
	for {
		for i, d := range ds {
			select {
			case <-d.done:
			default:
				continue
			}
			if failures++; !l.several() || !isController(d.name) || failures == mostFailures {
				return l.ended(d)
			}
			again, err := l.spawn(bin, d.name)
			if err != nil {
				return err
			}
			ds[i] = again
		}
		if r, err := c.Nodes(ctx); err == nil {
			if waits = missing(r); len(waits) == 0 {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return l.late(context.Cause(ctx), ds, waits)
		case <-time.After(look):
		}
	}
}

// late is the error when some daemon runs and yet is not up.
func (l layout) late(cause error, ds []*daemon, waits []string) error {
	if errors.Is(cause, context.Canceled) {
		return cause
	}
	text := ""
	for _, d := range ds {
		if d.name == waits[0] {
			text = l.tail(d)
		}
	}
	return fmt.Errorf("%s: %w%s", strings.Join(waits, " "), cause, text)
}

// Quote makes a word that a shell reads as s.
func Quote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:@%,=", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Bin is the directory of the running program, links followed.
func Bin() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	if exe, err = filepath.EvalSymlinks(exe); err != nil {
		return "", err
	}
	return filepath.Dir(exe), nil
}
