package config

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/cpus"
	"gangd/pkg/core/finding"
	"gangd/pkg/node/proc"
	"gangd/pkg/wire/dirlock"
	"gangd/pkg/wire/people"
	"gangd/pkg/wire/trusted"
)

// What is asked of others has to answer within this, each time.
const askPatience = 2 * time.Second

const (
	certificateSoon = 14 * 24 * time.Hour
	nodeCertSoon    = 7 * 24 * time.Hour // they last 30 days and renew themselves from the 20th on
	diskLeast       = 64 << 20           // less is refused by the store
	diskSoon        = 2 << 30
	safeLease       = 372 * time.Second // docs/operations.md, "A daemon that hangs"
)

// checks are those of one file.
type checks struct {
	ctx  context.Context
	file text
	set  map[string]string // overrides
	at   map[string]int    // lines of keys
	list finding.List
	keys []string // of what is found, as long as list
}

// place is where a key stands, or the key where it does not.
func (c *checks) place(key string) string {
	if line := c.at[key]; line > 0 {
		return fmt.Sprintf("%s:%d", c.file.path, line)
	}
	return key
}

// add finds something of the value of a key.
func (c *checks) add(id, key, format string, args ...any) {
	place := c.place(key)
	if place != key {
		format = key[strings.LastIndexByte(key, '.')+1:] + ": " + format
	}
	c.found(id, key, place, format, args...)
}

func (c *checks) found(id, key, subject, format string, args ...any) {
	c.list.Add(id, subject, format, args...)
	c.keys = append(c.keys, key)
}

// begin reads the file; what can't be read is a finding.
func begin(ctx context.Context, path string, set []string) *checks {
	c := &checks{ctx: ctx, set: map[string]string{}}
	for _, kv := range set {
		key, value, _ := strings.Cut(kv, "=")
		c.set[strings.TrimSpace(key)] = value
	}
	var err error
	if c.file, err = readText(path); err != nil {
		c.found("config-unreadable", "", path, "%s", strings.TrimPrefix(err.Error(), "configuration: "))
	}
	return c
}

// refused are the errors of a load.
func (c *checks) refused(err error) {
	list := []error{err}
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		list = all.Unwrap()
	}
	for _, err := range list {
		id := "config-value"
		var bad *problem
		if !errors.As(err, &bad) {
			id = "config-syntax"
		}
		subject, text := c.cut(err.Error())
		c.found(id, "", subject, "%s", text)
	}
}

// cut takes FILE:LINE off a sentence that begins with it.
func (c *checks) cut(text string) (place, rest string) {
	if after, ok := strings.CutPrefix(text, c.file.path+":"); ok && c.file.path != "" {
		line, rest, _ := strings.Cut(after, ": ")
		return c.file.path + ":" + line, rest
	}
	if place, rest, ok := strings.Cut(text, ": "); ok {
		return place, rest
	}
	return "configuration", text
}

// CheckController finds what is wrong with a configuration of gangd, and with what it names on this host.
func CheckController(ctx context.Context, path string, set []string) finding.List {
	c, _ := checkController(ctx, path, set)
	return c.list
}

// checkController is nil beside what it has found where the file can't be used.
func checkController(ctx context.Context, path string, set []string) (*checks, *Controller) {
	c := begin(ctx, path, set)
	if c.list != nil {
		return c, nil
	}
	cfg, err := controllerOf(c.file, set)
	if err != nil {
		c.refused(err)
		return c, nil
	}
	c.controller(cfg)
	return c, cfg
}

// controller looks at a configuration of gangd that can be read.
func (c *checks) controller(cfg *Controller) {
	c.at = keyLines(c.file.data)
	for _, w := range cfg.Warnings {
		subject, text := c.cut(w)
		c.found("config-cap", "", subject, "%s", text)
	}
	for key, path := range map[string]string{"fence_hook": cfg.FenceHook, "idle_hook": cfg.IdleHook, "submit_rule": cfg.SubmitRule} {
		c.program(key, path)
	}
	c.directory("history_archive", cfg.Archive, true)
	if _, err := os.Stat(cfg.BackupDir); cfg.BackupEvery > 0 && !errors.Is(err, fs.ErrNotExist) { // else it is made
		c.directory("backup_dir", cfg.BackupDir, true)
	}
	c.pair(cfg.WebCert, cfg.WebKey)
	c.authority("web_proxy_ca", cfg.WebProxyCA)
	c.state(cfg.StateDir, 0o077)
	if dir := filepath.Dir(cfg.Socket); cfg.Dir == "" && !cfg.SingleUser {
		if err := dirlock.UsersPass(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			c.add("directory-closed", "socket", "%v", err)
		}
		if cfg.Lease > 0 && cfg.Lease < safeLease {
			c.add("config-lease", "lease", "%s, and two hangs in a row, their restarts and a renewal take up to %s", when.Words(cfg.Lease),
				when.Words(safeLease))
		}
	}
	c.users("admins", cfg.Admins)
	c.users("idle_exempt", cfg.IdleExempt)
	for i, a := range cfg.Accounts {
		c.users(fmt.Sprintf("account[%d].users", i), a.Users)
	}
	for i, p := range cfg.Partitions {
		key := func(field string) string { return fmt.Sprintf("partition[%d].%s", i, field) }
		c.users(key("allow_users"), p.AllowUsers)
		c.groups(key("allow_groups"), p.AllowGroups)
		if missing := lacking(p.Nodes, cfg.Nodes); len(cfg.Nodes) > 0 && missing != nil {
			c.add("config-partition-nodes", key("nodes"), "%s: not among nodes", strings.Join(missing, ", "))
		}
	}
	if below := belowSwitches(cfg.Switches); len(cfg.Nodes) > 0 && len(cfg.Switches) > 0 {
		if missing := lacking(cfg.Nodes, below); missing != nil {
			c.add("config-topology-nodes", "topology_file", "below no switch: %s", strings.Join(missing, ", "))
		}
		if missing := lacking(below, cfg.Nodes); missing != nil {
			c.add("config-topology-nodes", "topology_file", "not among nodes: %s", strings.Join(missing, ", "))
		}
	}
}

func belowSwitches(switches []api.Switch) []string {
	var out []string
	for i := range switches {
		out = append(out, switches[i].Nodes...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// lacking are those of some names that others do not have.
func lacking(names, others []string) (out []string) {
	for _, name := range names {
		if !slices.Contains(others, name) {
			out = append(out, name)
		}
	}
	return out
}

// CheckNode finds what is wrong with a configuration of gnoded, and with what it names on this host.
func CheckNode(ctx context.Context, path, name string, set []string) finding.List {
	c, _ := checkNode(ctx, path, name, set)
	return c.list
}

func checkNode(ctx context.Context, path, name string, set []string) (*checks, *Node) {
	c := begin(ctx, path, set)
	if c.list != nil {
		return c, nil
	}
	cfg, err := nodeOf(c.file, name, set)
	if err != nil {
		c.refused(err)
		return c, nil
	}
	c.node(cfg)
	return c, cfg
}

// node looks at a configuration of gnoded that can be read.
func (c *checks) node(cfg *Node) {
	c.at = keyLines(c.file.data)
	c.joined(cfg)
	for i := range cfg.Controllers {
		if host, _, err := net.SplitHostPort(cfg.Controllers[i]); err == nil && !cfg.sameHost() {
			c.resolves("controller-address", "controller", host)
		}
	}
	c.state(cfg.StateDir, 0o066) // users of ranks pass it
	c.groups("groups", cfg.Groups)
	if cfg.Login {
		return
	}
	c.program("health_program", cfg.HealthProgram)
	c.program("reboot_program", cfg.RebootProgram)
	hooks := map[string]string{"prolog": cfg.Prolog, "epilog": cfg.Epilog, "task_prolog": cfg.TaskProlog, "task_epilog": cfg.TaskEpilog}
	for key, path := range hooks {
		c.programs(key, path)
	}
	if starts := api.DefaultSettings().StartTimeout; cfg.Prolog != "" && cfg.HookTimeout >= starts {
		c.add("config-hook-timeout", "hook_timeout", "%s, and a start is waited for %s where gangd.toml does not say",
			when.Words(cfg.HookTimeout), when.Words(starts))
	}
	c.directory("private_path", cfg.PrivatePath, true)
	if cfg.PrivatePath != "" {
		c.tool("private_path", "mkfs.ext4")
	}
	c.tool("container_driver", cfg.ContainerDriver)
	for _, dir := range cfg.ContainerImages {
		c.directory("container_images", dir, false)
	}
	for _, name := range cfg.RequireNames {
		c.resolves("name-unresolved", "require_names", name)
	}
	c.mounts(cfg.RequireMounts)
	c.machine(cfg)
}

// program looks at one that the daemon would run.
func (c *checks) program(key, path string) {
	if path == "" {
		return
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.add("program-missing", key, "%s is not there", path)
	case err != nil:
		c.add("program-missing", key, "%v", err)
	case !info.Mode().IsRegular():
		c.add("program-not-executable", key, "%s is no file", path)
	case info.Mode().Perm()&0o111 == 0:
		c.add("program-not-executable", key, "%s has mode %04o", path, info.Mode().Perm())
	default:
		if err := trusted.File(path); err != nil {
			c.add("program-writable", key, "%v", err)
		}
	}
}

// programs looks at one, or at a directory of them.
func (c *checks) programs(key, path string) {
	info, err := os.Stat(path)
	if path == "" || err != nil || !info.IsDir() {
		c.program(key, path)
		return
	}
	if err := trusted.File(path); err != nil {
		c.add("program-writable", key, "%v", err)
		return
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		c.add("program-missing", key, "%v", err)
		return
	}
	some := false
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			some = true
			c.program(key, filepath.Join(path, e.Name()))
		}
	}
	if !some {
		c.add("program-none", key, "nothing is in %s", path)
	}
}

func (c *checks) directory(key, path string, written bool) {
	if path == "" {
		return
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		c.add("directory-missing", key, "%v", err)
	case !info.IsDir():
		c.add("directory-missing", key, "%s is no directory", path)
	case written && unix.Access(path, unix.W_OK) != nil:
		c.add("directory-not-writable", key, "%s can't be written by user id %d", path, os.Geteuid())
	}
}

// state looks at a directory that is made at the first start, which others may not open in these ways.
func (c *checks) state(path string, closed fs.FileMode) {
	const key = "state_dir"
	info, err := os.Stat(path)
	if err != nil {
		return
	}
	if mode := info.Mode().Perm(); mode&closed != 0 {
		c.add("state-open", key, "%s has mode %04o", path, mode)
	}
	var disk unix.Statfs_t
	if unix.Statfs(path, &disk) != nil {
		return
	}
	free, all := int64(disk.Bavail)*disk.Bsize, int64(disk.Blocks)*disk.Bsize
	switch {
	case free < diskLeast:
		c.add("disk-low", key, "%s of %s are free for %s", cluster.Size(free), cluster.Size(all), path)
	case free < diskSoon && free < all/20:
		c.add("disk-low-soon", key, "%s of %s are free for %s", cluster.Size(free), cluster.Size(all), path)
	}
}

// pair looks at the page's certificate and key.
func (c *checks) pair(cert, key string) {
	if cert == "" {
		return
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		c.add("certificate-unreadable", "web_cert", "%v", err)
		return
	}
	c.valid("web_cert", cert, pair.Leaf, "certificate-expires", certificateSoon)
}

// authority looks at certificates that others are known by.
func (c *checks) authority(key, path string) {
	if path == "" {
		return
	}
	data, err := os.ReadFile(path)
	if err != nil {
		c.add("certificate-unreadable", key, "%v", err)
		return
	}
	some := false
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			c.add("certificate-unreadable", key, "%s: %v", path, err)
			return
		}
		some = true
		c.valid(key, path, cert, "certificate-expires", certificateSoon)
	}
	if !some {
		c.add("certificate-unreadable", key, "%s has no certificate", path)
	}
}

func (c *checks) valid(key, path string, cert *x509.Certificate, soon string, within time.Duration) {
	now := time.Now()
	switch left := cert.NotAfter.Sub(now); {
	case left < 0:
		c.add("certificate-expired", key, "%s has run out on %s", path, cert.NotAfter.Format(time.DateOnly))
	case now.Before(cert.NotBefore):
		c.add("certificate-expired", key, "%s holds from %s on", path, cert.NotBefore.Format(time.RFC3339))
	case left < within:
		c.add(soon, key, "%s runs out on %s", path, cert.NotAfter.Format(time.DateOnly))
	}
}

// joined looks at the certificate of a node that goes over the network.
func (c *checks) joined(cfg *Node) {
	if cfg.sameHost() {
		return
	}
	path := filepath.Join(cfg.StateDir, "tls", "node.pem")
	pair, err := tls.LoadX509KeyPair(path, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.add("node-not-joined", "controller", "%s is not there", path)
	case err != nil:
		c.add("certificate-unreadable", "controller", "%s: %v", path, err)
	default:
		if left := time.Until(pair.Leaf.NotAfter); left < nodeCertSoon {
			c.add("node-certificate", "controller", "%s runs out at %s", path, pair.Leaf.NotAfter.Format(time.RFC3339))
		}
	}
}

func (c *checks) resolves(id, key, host string) {
	ctx, cancel := context.WithTimeout(c.ctx, askPatience)
	defer cancel()
	if _, err := net.DefaultResolver.LookupHost(ctx, host); err != nil {
		c.add(id, key, "%v", err)
	}
}

func (c *checks) tool(key, name string) {
	if name == "" {
		return
	}
	if _, err := exec.LookPath(name); err != nil {
		c.add("tool-missing", key, "%s is not in %s", name, os.Getenv("PATH"))
	}
}

func (c *checks) mounts(want []string) {
	if len(want) == 0 {
		return
	}
	missing, err := proc.NotMounted(want, "")
	if err != nil {
		return
	}
	for _, dir := range missing {
		c.add("mount-missing", "require_mounts", "nothing is mounted at %s", dir)
	}
}

// machine holds what is offered against what there is.
func (c *checks) machine(cfg *Node) {
	online, _ := proc.OnlineCPUs(proc.SysFS) // none: the kernel does not say
	asked, err := cpus.Parse(cfg.CPUList)
	if err == nil && len(online) > 0 {
		var absent []string
		for _, cpu := range asked {
			if !slices.Contains(online, cpu) {
				absent = append(absent, fmt.Sprint(cpu))
			}
		}
		if absent != nil {
			c.add("cpus-absent", "cpu_list", "this machine has no CPU %s: it has %d", strings.Join(absent, ","), len(online))
		}
	}
	if cfg.Dir == "" && len(online) > 0 && cfg.CPUs > len(online) {
		c.add("cpus-offered", "cpus", "%d, and the machine has %d", cfg.CPUs, len(online))
	}
	has := proc.MemTotal()
	if has == 0 {
		return
	}
	if cfg.Dir == "" && cfg.Memory > has {
		c.add("memory-offered", "memory", "%s, and the machine has %s", cluster.Size(cfg.Memory), cluster.Size(has))
	}
	if cfg.ExpectMemory > has {
		c.add("memory-expected", "expect_memory", "%s, and the machine has %s", cluster.Size(cfg.ExpectMemory), cluster.Size(has))
	}
}

func (c *checks) users(key string, names []string) {
	c.people("config-user", key, "user", names, func(ctx context.Context, name string) error {
		_, err := people.Here.Find(ctx, name)
		return err
	})
}

func (c *checks) groups(key string, names []string) {
	c.people("config-group", key, "group", names, func(ctx context.Context, name string) error {
		_, err := people.Here.Group(ctx, name)
		return err
	})
}

// people finds whom this host does not know. Of whom nothing can be said while the directory does not answer nothing is.
func (c *checks) people(id, key, what string, names []string, find func(context.Context, string) error) {
	for _, name := range names {
		ctx, cancel := context.WithTimeout(c.ctx, askPatience)
		if err := find(ctx, name); errors.Is(err, people.ErrUnknown) {
			c.add(id, key, "this host knows no %s %s", what, name)
		}
		cancel()
	}
}
