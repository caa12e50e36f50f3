package config

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/sched/order"
)

// Controller is the configuration of gangd.
type Controller struct {
	// Dir, when set, is the root of a cluster in one directory (gangd dev): the defaults
	// of StateDir and Socket lie in it, and GANG_DIR=Dir is all that a command needs.
	Dir               string          `mapstructure:"dir"`
	StateDir          string          `mapstructure:"state_dir"`
	Socket            string          `mapstructure:"socket"`
	Name              string          `mapstructure:"name"`      // of one of several controllers
	Database          string          `mapstructure:"database"`  // of several controllers; empty: SQLite, and one
	Listen            string          `mapstructure:"listen"`    // TCP address for nodes; empty: none
	Advertise         []string        `mapstructure:"advertise"` // where nodes reach this controller, best first
	SingleUser        bool            `mapstructure:"single_user"`
	Admins            []string        `mapstructure:"admins"`
	LogFormat         string          `mapstructure:"log_format"` // "text" or "json"
	MetricsListen     string          `mapstructure:"metrics_listen"`
	WebListen         string          `mapstructure:"web_listen"` // TCP address of the page; empty: none
	WebURL            string          `mapstructure:"web_url"`    // of the page, as people reach it
	WebGuest          string          `mapstructure:"web_guest"`  // "off" or "queue"
	WebCert           string          `mapstructure:"web_cert"`
	WebKey            string          `mapstructure:"web_key"`
	WebProxyCA        string          `mapstructure:"web_proxy_ca"`
	FenceHook         string          `mapstructure:"fence_hook"`
	FenceTimeout      time.Duration   `mapstructure:"fence_timeout"`
	IdleHook          string          `mapstructure:"idle_hook"`
	SubmitRule        string          `mapstructure:"submit_rule"`
	SubmitRuleTimeout time.Duration   `mapstructure:"submit_rule_timeout"`
	Archive           string          `mapstructure:"history_archive"`
	BackupEvery       time.Duration   `mapstructure:"backup_every"` // 0: none are written
	BackupKeep        int             `mapstructure:"backup_keep"`
	BackupDir         string          `mapstructure:"backup_dir"`
	UserRate          int             `mapstructure:"user_rate"` // requests a second; 0: no bound
	UserBurst         int             `mapstructure:"user_burst"`
	UserStreams       int             `mapstructure:"user_streams"` // 0: no bound
	Nodes             []string        `mapstructure:"nodes"`        // expected by name before they are seen
	Partitions        []api.Partition `mapstructure:"partition"`
	Accounts          []Account       `mapstructure:"account"`
	Webhooks          []Webhook       `mapstructure:"notify"`
	Scheduler         `mapstructure:",squash"`
	NotifyConfig      `mapstructure:",squash"`
	api.Settings      `mapstructure:",squash"`
	// Warnings are what may not be meant, each with its place; no key of its own.
	Warnings []string
}

// Scheduler is how the site wants waiting gangs ordered, and who may take whose place.
type Scheduler struct {
	Order         string        `mapstructure:"order"`
	BackfillDepth int           `mapstructure:"backfill_depth"`
	TopologyFile  string        `mapstructure:"topology_file"`
	MaxSwitchWait time.Duration `mapstructure:"max_switch_wait"`
	// Switches are those of TopologyFile, read by ReadController; no key of its own.
	Switches     []api.Switch
	Preempt      string        `mapstructure:"preempt"`
	GuardAfter   time.Duration `mapstructure:"guard_after"` // 0: off
	GuardPercent int           `mapstructure:"guard_percent"`
	// PreemptHysteresis is in percent: 120 is a fifth more.
	PreemptHysteresis int           `mapstructure:"preempt_hysteresis"`
	MinRunMax         time.Duration `mapstructure:"min_run_max"`
	ProtectDone       bool          `mapstructure:"protect_done"`
	HalfLife          time.Duration `mapstructure:"fair_half_life"`
	UserCards         int           `mapstructure:"user_cards"` // 0: no cap
}

// Account is a group of users whose use is counted together.
type Account struct {
	Name  string `mapstructure:"name"`
	Cards int    `mapstructure:"cards"` // 0: no cap
	Quota int    `mapstructure:"quota"`
	Share int    `mapstructure:"share"` // 0: 1
	// Users are those who may name it; empty: everybody.
	Users   []string `mapstructure:"users"`
	Default bool     `mapstructure:"default"`
}

// LoadController reads the configuration of gangd from the file at path ("" for none)
// and applies the overrides in set, each key=value.
func LoadController(path string, set []string) (*Controller, error) {
	file, err := readText(path)
	if err != nil {
		return nil, err
	}
	return controllerOf(file, set)
}

func controllerOf(file text, set []string) (*Controller, error) {
	c := controllerDefaults()
	src, err := load(controllerTable, file, set, c)
	if err != nil {
		return nil, err
	}
	c.Nodes = expanded(c.Nodes)
	for i := range c.Partitions {
		c.Partitions[i].Nodes = expanded(c.Partitions[i].Nodes)
	}
	c.fillPaths()
	c.fillPartitions()
	c.fillOrder()
	if err := src.problems(c.check(src)...); err != nil {
		return nil, err
	}
	c.Warnings = leftCaps(c.Accounts, src)
	return c, nil
}

// controllerDefaults are the values that do not depend on the host or on other keys.
func controllerDefaults() *Controller {
	return &Controller{LogFormat: "text", FenceTimeout: time.Minute, SubmitRuleTimeout: 200 * time.Millisecond,
		UserRate: 200, UserBurst: 2000, UserStreams: 256, WebGuest: "off", BackupKeep: 7,
		Settings: api.DefaultSettings(), NotifyConfig: NotifyConfig{MailTLS: "starttls", NotifyRate: 60, NotifyBurst: 20},
		Scheduler: Scheduler{Preempt: string(order.PreemptOff), MaxSwitchWait: 5 * time.Minute, GuardAfter: 48 * time.Hour, GuardPercent: 10,
			PreemptHysteresis: 120, MinRunMax: time.Hour,
			HalfLife: order.DefaultHalfLife}}
}

func (c *Controller) fillPaths() {
	state, run := "/var/lib/gangd", "/run/gangd"
	if c.Dir != "" {
		state, run = filepath.Join(c.Dir, "state", "gangd"), filepath.Join(c.Dir, "run")
	}
	if c.StateDir == "" {
		c.StateDir = state
	}
	if c.BackupDir == "" {
		if c.BackupDir = "/var/backups/gangd"; c.Dir != "" {
			c.BackupDir = filepath.Join(c.Dir, "backups")
		}
	}
	if c.Socket == "" {
		c.Socket = filepath.Join(run, "gangd.sock")
	}
	if len(c.Advertise) == 0 && c.Listen != "" {
		c.Advertise = []string{advertised(c.Listen)}
	}
	if c.Name == "" {
		host, _ := os.Hostname() // empty is refused as a name, with what is wanted
		c.Name, _, _ = strings.Cut(strings.ToLower(host), ".")
	}
}

// advertised replaces a listen address that no node could dial by this host's name.
func advertised(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		if host, err = os.Hostname(); err != nil {
			return listen
		}
	}
	return net.JoinHostPort(host, port)
}

// fillPartitions gives a site without partitions one of all nodes, and makes the first
// one the default where none says it is.
func (c *Controller) fillPartitions() {
	if len(c.Partitions) == 0 {
		c.Partitions = []api.Partition{{Name: "main"}}
	}
	for i := range c.Partitions {
		p := &c.Partitions[i]
		if p.State == "up" {
			p.State = api.PartitionUp
		}
		for _, list := range []*[]string{&p.AllowUsers, &p.AllowGroups, &p.AllowAccounts, &p.DenyAccounts} {
			if len(*list) == 0 || len(*list) == 1 && strings.EqualFold((*list)[0], "ALL") {
				*list = nil
			}
		}
	}
	for _, p := range c.Partitions {
		if p.Default {
			return
		}
	}
	c.Partitions[0].Default = true
}

// fillOrder is fair where there are accounts to be fair to, and keeps places for as many
// gangs as the kind of preemption leaves need for.
func (c *Controller) fillOrder() {
	if c.Order == "" {
		c.Order = string(order.OrderService)
		if len(c.Accounts) > 0 {
			c.Order = string(order.OrderFair)
		}
	}
	if c.BackfillDepth == 0 {
		c.BackfillDepth = order.DefaultBackfillDepth(order.Preempt(c.Preempt))
	}
}

// Policy is the scheduler's part of the configuration.
func (c *Controller) Policy() order.Policy {
	p := order.Policy{Partitions: c.Partitions, BackfillDepth: c.BackfillDepth, Order: order.Order(c.Order), GuardAfter: c.GuardAfter,
		GuardShare: float64(c.GuardPercent) / 100, HalfLife: c.HalfLife, Preempt: order.Preempt(c.Preempt), MinRun: c.PreemptMinRun,
		Hysteresis: float64(c.PreemptHysteresis) / 100, MaxMinRun: c.MinRunMax, ProtectDone: c.ProtectDone,
		UserCards: c.UserCards, Switches: c.Switches, MaxSwitchWait: c.MaxSwitchWait, Pools: c.Pools()}
	for _, a := range c.Accounts {
		p.Accounts = append(p.Accounts, order.Account{Name: a.Name, Cards: a.Cards, Quota: a.Quota, Share: float64(a.Share), Users: a.Users,
			Default: a.Default})
	}
	return p
}

// check finds what no single key can show.
func (c *Controller) check(src *source) []error {
	errs := c.checkTimes(src)
	if c.TopologyFile != "" {
		var err error
		if c.Switches, err = readTopology(c.TopologyFile); err != nil {
			errs = append(errs, src.wrong("topology_file", err.Error()))
		}
	}
	errs = append(errs, c.checkWeb(src)...)
	errs = append(errs, c.checkNotify(src)...)
	errs = append(errs, checkPartitions(c.Partitions, c.Accounts, src)...)
	errs = append(errs, c.checkPools(src)...)
	return append(errs, checkAccounts(c.Accounts, src)...)
}

// checkTimes are the rules between keys of which some take a restart and some do not.
func (c *Controller) checkTimes(src *source) []error {
	var errs []error
	if c.NodeTimeout <= c.Heartbeat {
		errs = append(errs, src.wrong("node_timeout", fmt.Sprintf("want more than heartbeat (%v): a node would be lost between two beats",
			c.Heartbeat)))
	}
	if c.RetryBackoffMax < c.RetryBackoff {
		errs = append(errs, src.wrong("retry_backoff_max", fmt.Sprintf("want at least retry_backoff (%v)", c.RetryBackoff)))
	}
	if c.Lease != 0 && c.Lease <= c.Heartbeat {
		errs = append(errs, src.wrong("lease", fmt.Sprintf("want off, or more than heartbeat (%v): beats renew it", c.Heartbeat)))
	}
	return errs
}

// checkWeb keeps sessions off a network that others can listen to.
func (c *Controller) checkWeb(src *source) []error {
	var errs []error
	if (c.WebCert == "") != (c.WebKey == "") {
		errs = append(errs, src.wrong("web_cert", "want web_key with it, and it with web_key"))
	}
	if c.WebProxyCA != "" && c.WebCert == "" {
		errs = append(errs, src.wrong("web_proxy_ca", "want web_cert and web_key: a proxy is known over TLS"))
	}
	host, _, err := net.SplitHostPort(c.WebListen)
	if ip := net.ParseIP(host); err == nil && c.WebCert == "" && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		errs = append(errs, src.wrong("web_listen", "want web_cert and web_key with an address that others reach, or 127.0.0.1:PORT and ssh "+
			"-L or a proxy before it"))
	}
	return errs
}

// checkPools: what there is so much of has a name of its own.
func (c *Controller) checkPools(src *source) []error {
	var errs []error
	for i := range api.PoolRows {
		row, seen := &api.PoolRows[i], map[string]bool{}
		for k, p := range row.Of(&c.Settings) {
			key := fmt.Sprintf("%s[%d].name", row.Kind, k)
			switch {
			case !api.PoolNameOK(p.Name):
				errs = append(errs, src.wrong(key, fmt.Sprintf("want a name for each [[%s]], of letters, digits and . _ - @ /", row.Kind)))
			case seen[p.Name]:
				errs = append(errs, src.wrong(key, fmt.Sprintf("there is a %s of that name above", row.Kind)))
			}
			seen[p.Name] = true
		}
	}
	return errs
}

func checkAccounts(as []Account, src *source) []error {
	var errs []error
	seen := map[string]bool{}
	defaults := 0
	for i, a := range as {
		key := func(field string) string { return fmt.Sprintf("account[%d].%s", i, field) }
		switch {
		case a.Name == "":
			errs = append(errs, src.wrong(key("name"), "want a name for each [[account]]"))
		case seen[a.Name]:
			errs = append(errs, src.wrong(key("name"), "there is an account of that name above"))
		case a.Cards > 0 && a.Quota > a.Cards:
			errs = append(errs, src.wrong(key("quota"), fmt.Sprintf("want at most cards (%d): more is never given", a.Cards)))
		}
		if slices.Contains(a.Users, "") {
			errs = append(errs, src.wrong(key("users"), "want names of users"))
		}
		if a.Default {
			if defaults++; defaults == 2 {
				errs = append(errs, src.wrong(key("default"), "want one default account, there is one above"))
			}
		}
		seen[a.Name] = true
	}
	return errs
}

// leftCaps warns of caps of accounts that hold nobody: whoever is bound by one may name an account that is open to all, or, of an
// account that lists nobody and is no default, name none.
func leftCaps(as []Account, src *source) (out []string) {
	hasDefault := slices.ContainsFunc(as, func(a Account) bool { return a.Default })
	for i, a := range as {
		if a.Cards == 0 {
			continue
		}
		at := fmt.Sprintf("account[%d].cards", i)
		if k := slices.IndexFunc(as, func(o Account) bool { return o.Name != a.Name && len(o.Users) == 0 }); k >= 0 {
			out = append(out, src.wrong(at, fmt.Sprintf("users of account %s can leave this cap: account %s has no users, which is open to "+
				"everybody (--account=%s)", a.Name, as[k].Name, as[k].Name)).Error())
		} else if len(a.Users) == 0 && !hasDefault {
			out = append(out, src.wrong(at, fmt.Sprintf("whoever names no account is not under this cap: account %s has no users, and no account "+
				"is the default", a.Name)).Error())
		}
	}
	return out
}

func checkPartitions(ps []api.Partition, as []Account, src *source) []error {
	var errs []error
	seen := map[string]bool{}
	defaults := 0
	for i, p := range ps {
		key := func(field string) string { return fmt.Sprintf("partition[%d].%s", i, field) }
		switch {
		case p.Name == "":
			errs = append(errs, src.wrong(key("name"), "want a name for each [[partition]]"))
		case !partitionRE.MatchString(p.Name):
			errs = append(errs, src.wrong(key("name"), wantPartition))
		case seen[p.Name]:
			errs = append(errs, src.wrong(key("name"), "there is a partition of that name above"))
		}
		seen[p.Name] = true
		if p.MaxTime > 0 && p.DefaultTime > p.MaxTime {
			errs = append(errs, src.wrong(key("default_time"), "want at most max_time ("+p.MaxTime.Round(time.Second).String()+")"))
		}
		if p.MaxNodes > 0 && p.MinNodes > p.MaxNodes {
			errs = append(errs, src.wrong(key("min_nodes"), fmt.Sprintf("want at most max_nodes (%d)", p.MaxNodes)))
		}
		unknown := func(field string, names []string) {
			for _, name := range names {
				if len(as) > 0 && !slices.ContainsFunc(as, func(a Account) bool { return a.Name == name }) {
					errs = append(errs, src.wrong(key(field), fmt.Sprintf("there is no account %q", name)))
				}
			}
		}
		unknown("allow_accounts", p.AllowAccounts)
		unknown("deny_accounts", p.DenyAccounts)
		if p.Default {
			if defaults++; defaults == 2 {
				errs = append(errs, src.wrong(key("default"), "want one default partition, there is one above"))
			}
		}
	}
	return errs
}
