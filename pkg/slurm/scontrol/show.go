package scontrol

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/table/jobfield"
	"gangd/pkg/slurm"
	"gangd/pkg/wire/people"
)

// show is "show ENTITY[=ID] [ID]".
func (c *call) show(args []string) int {
	entity, id, given := strings.Cut(args[0], "=")
	if len(args) > 1 {
		if given {
			c.say("too many arguments for keyword:show")
			return 1
		}
		id = args[1]
	}
	if cmdline.Short(entity, "partitionname", len("partitionn")) { // as update and create call it
		entity = "partition"
	}
	for i := range entities {
		e := &entities[i]
		if !cmdline.Short(entity, e.name, e.min) && !cmdline.Short(entity, e.name+"s", e.min) {
			continue
		}
		if e.list == cmdline.Refused {
			c.errorf("show %s is refused: %s", e.name, e.text)
			return 1
		}
		if write := documents[e.name]; c.document.Asked() && write != nil {
			return write(c, id)
		}
		return e.run(c, entity, id)
	}
	c.say("invalid entity:%s for keyword:show ", entity)
	return 1
}

func (c *call) noFrontends(string, string) int {
	fmt.Fprintln(c.Out, "No nodes in the system")
	return 0
}

func (c *call) noTopology(string, string) int {
	c.errorf("No topology information available")
	return 0
}

func (c *call) showDaemons(string, string) int {
	fmt.Fprintln(c.Out, "slurmctld slurmd")
	return 0
}

// settings are what show config says: by Slurm's names what holds for gangd.
func settings(host, socket, release string, site *api.Site) [][2]string {
	return append(ofSite(site), [][2]string{
		{"AccountingStorageEnforce", "none"},
		{"AccountingStorageType", "accounting_storage/gangd"},
		{"AuthType", "auth/gangd"},
		{"ClusterName", cmdline.Cluster},
		{"JobAcctGatherType", "jobacct_gather/gangd"},
		{"CompleteWait", "0 sec"},
		{"EnforcePartLimits", "ALL"}, // what can never run is refused at its submission
		{"GresTypes", "gpu"},
		{"InactiveLimit", "0 sec"},
		{"JobRequeue", "1"},
		{"BurstBufferType", "(null)"},
		{"CliFilterPlugins", "(null)"},
		{"DisableRootJobs", "No"},
		{"FederationParameters", "(null)"},
		{"JobCompType", "jobcomp/none"},
		{"JobFileAppend", "1"}, // an output that is there is appended to
		{"JobSubmitPlugins", "(null)"},
		{"KillOnBadExit", "0"},
		{"LaunchType", "launch/slurm"}, // which tools take for: srun starts tasks
		{"Licenses", jobfield.OrNull(licenses(site))},
		{"MCSPlugin", "mcs/none"},
		{"PlugStackConfig", "(null)"},
		{"PrivateData", "none"},
		{"PrologFlags", "Alloc,Contain"}, // hooks run at the start, and what is beside the steps has a line
		{"PropagatePrioProcess", "0"},
		{"RebootProgram", "(null)"},
		{"ResumeProgram", "(null)"},
		{"SlurmdUser", "root(0)"},
		{"SrunEpilog", "(null)"},
		{"SrunProlog", "(null)"},
		{"SuspendProgram", "(null)"},
		{"TrackWCKey", "No"},
		{"UsePam", "No"},
		{"WaitTime", "0 sec"},
		{"MaxArraySize", strconv.Itoa(api.MaxArraySize)},
		{"MaxTasksPerNode", strconv.Itoa(api.MaxGangSize)},
		{"MpiDefault", "none"},
		{"NodeFeaturesPlugins", "(null)"},
		{"OverTimeLimit", "0 min"},
		{"PriorityType", "priority/basic"},
		{"ProctrackType", "proctrack/linuxproc"},
		{"SchedulerType", "sched/backfill"},
		{"SchedulerParameters", "(null)"},
		{"SelectType", "select/cons_tres"},
		{"SelectTypeParameters", "CR_CPU_MEMORY"},
		{"SlurmctldHost[0]", host + "(" + socket + ")"},
		{"SlurmUser", slurmUser(site)},
		{"SLURM_CONF", "(null)"},
		{"SLURM_VERSION", release},
		{"SwitchType", "switch/none"},
		{"TaskPlugin", "task/none"},
		{"TopologyPlugin", "topology/none"},
	}...)
}

// slurmUser is who may do what Slurm's SlurmUser may.
func slurmUser(site *api.Site) string {
	name := "root"
	if site != nil && site.Operator != "" {
		name = site.Operator
	}
	id := "4294967294" // nobody of this host
	if u, err := people.Here.ByName(context.Background(), name); err == nil {
		id = strconv.FormatUint(uint64(u.UID), 10)
	}
	return name + "(" + id + ")"
}

// ofSite is the settings of the site that do what Slurm's of these names do. A member that
// is not done in grace and drain_slack is what Slurm calls an unkillable step, and a gang
// whose nodes do not answer in start_timeout what does not start in BatchStartTimeout.
func ofSite(s *api.Site) [][2]string {
	if s == nil { // a controller that does not say yet
		return nil
	}
	depends := "(null)"
	if s.InvalidDependency == "cancel" {
		depends = "kill_invalid_depend"
	}
	kind := "preempt/none"
	if slurm.PreemptMode(s.Preempt) != "OFF" {
		kind = "preempt/partition_prio"
	}
	return [][2]string{
		{"BatchStartTimeout", seconds(s.StartTimeout)},
		{"DependencyParameters", depends},
		{"KillWait", seconds(s.Grace)},
		{"MinJobAge", seconds(s.KeepEnded)},
		{"PreemptExemptTime", when.Span(s.PreemptMinRun)},
		{"PreemptMode", slurm.PreemptMode(s.Preempt)},
		{"PreemptType", kind},
		{"SlurmdTimeout", seconds(s.NodeTimeout)},
		{"UnkillableStepTimeout", seconds(s.DrainSlack)},
	}
}

// seconds is a time as show config has it; a part of a second counts as one.
func seconds(d time.Duration) string {
	return fmt.Sprintf("%d sec", int64((d+time.Second-1)/time.Second))
}

func (c *call) showConfig(string, string) int {
	reply, err := c.client.Ping(c.ctx)
	if err != nil {
		return c.failed("slurm_load_ctl_conf error", err)
	}
	spoken, err := slurm.Spoken(c.ctx, c.client)
	if err != nil {
		c.errorf("%s", err)
		return 1
	}
	fmt.Fprintf(c.Out, "Configuration data as of %s\n", slurm.Stamp(c.now, ""))
	all := append(slices.Concat(notSet, ofController(reply), settings(hostname(), c.client.Socket(), spoken.Release, reply.Site)),
		[2]string{"BOOT_TIME", slurm.Stamp(reply.StartTime, "N/A")}, [2]string{"GANGD_VERSION", reply.Version})
	slices.SortFunc(all, func(a, b [2]string) int { return cmp.Compare(strings.ToLower(a[0]), strings.ToLower(b[0])) })
	for _, s := range all {
		fmt.Fprintf(c.Out, "%-23s = %s\n", s[0], s[1])
	}
	fmt.Fprint(c.Out, "\nMPI Plugins Configuration:\n")
	for _, s := range pmixKeys {
		fmt.Fprintf(c.Out, "%-23s = %s\n", s[0], s[1])
	}
	fmt.Fprintln(c.Out)
	return c.pingLine(nil)
}

// hostname is this host's, a variable for tests.
var hostname = func() string {
	h, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	h, _, _ = strings.Cut(h, ".")
	return h
}

func (c *call) ping([]string) int {
	begun := time.Now()
	_, err := c.client.Ping(c.ctx)
	if c.document.Asked() {
		return c.pingDocument(time.Since(begun), err)
	}
	return c.pingLine(err)
}

func (c *call) pingLine(err error) int {
	if err == nil {
		fmt.Fprintf(c.Out, "Slurmctld(primary) at %s is UP\n", hostname())
		return 0
	}
	fmt.Fprintf(c.Out, "Slurmctld(primary) at %s is DOWN\n", hostname())
	c.say("*****************************************\n** RESTORE SLURMCTLD DAEMON TO SERVICE **\n*****************************************")
	return 1
}

// hostnames writes out a list, the job's own when none is given.
func (c *call) hostnames(_, text string) int {
	if text == "" {
		text = cmp.Or(os.Getenv("SLURM_NODELIST"), os.Getenv("SLURM_JOB_NODELIST"))
	}
	if text == "" {
		c.errorf("host list is empty")
		return 0 // as Slurm's
	}
	names, err := expand(text)
	if err != nil {
		c.say("Invalid hostlist: %s", text)
		return 0 // as Slurm's
	}
	for _, n := range names {
		fmt.Fprintln(c.Out, n)
	}
	return 0
}

func (c *call) hostlist(_, text string) int { return c.compress(text, false) }

func (c *call) hostlistSorted(_, text string) int { return c.compress(text, true) }

// maxHostFile bounds a file of names.
const maxHostFile = 16 << 20

func (c *call) compress(text string, sorted bool) int {
	if strings.HasPrefix(text, "/") {
		b, err := os.ReadFile(text)
		if err != nil || len(b) > maxHostFile {
			c.say("unable to read host list file: %s", text)
			return 1
		}
		text = strings.Join(strings.Fields(string(b)), ",")
	}
	if text == "" {
		c.say("invalid encode argument")
		return 1
	}
	names, err := expand(text)
	if err != nil {
		c.say("Invalid hostlist: %s", text)
		return 1
	}
	if sorted {
		slices.SortStableFunc(names, hostlist.Compare)
	}
	fmt.Fprintln(c.Out, shorten(names))
	return 0
}

// expand writes out a list: a name that stands there twice comes twice.
func expand(text string) (out []string, err error) {
	for _, part := range cmdline.SplitIDs(text) {
		names, err := hostlist.Expand(part)
		if err != nil {
			return nil, err
		}
		out = append(out, names...)
	}
	return out, nil
}

// shorten writes names as Slurm's list does: in their order, twice what is there twice.
func shorten(names []string) string {
	type group struct {
		head   string
		ranges [][2]string
	}
	var groups []group
	for _, n := range names {
		head := strings.TrimRight(n, "0123456789")
		digits := n[len(head):]
		if k := len(groups) - 1; digits != "" && k >= 0 && groups[k].head == head && groups[k].ranges != nil {
			g := &groups[k]
			if r := &g.ranges[len(g.ranges)-1]; follows(r[1], digits) {
				r[1] = digits
			} else {
				g.ranges = append(g.ranges, [2]string{digits, digits})
			}
			continue
		}
		if digits == "" {
			groups = append(groups, group{head: n})
			continue
		}
		groups = append(groups, group{head, [][2]string{{digits, digits}}})
	}
	var parts []string
	for _, g := range groups {
		var in []string
		for _, r := range g.ranges {
			if r[0] == r[1] {
				in = append(in, r[0])
			} else {
				in = append(in, r[0]+"-"+r[1])
			}
		}
		switch {
		case in == nil:
			parts = append(parts, g.head)
		case len(in) == 1 && g.ranges[0][0] == g.ranges[0][1]:
			parts = append(parts, g.head+in[0])
		default:
			parts = append(parts, g.head+"["+strings.Join(in, ",")+"]")
		}
	}
	return strings.Join(parts, ",")
}

// follows: b is the number behind a, written as wide where there are leading zeros.
func follows(a, b string) bool {
	x, err := strconv.ParseUint(a, 10, 63)
	if err != nil {
		return false
	}
	y, err := strconv.ParseUint(b, 10, 63)
	padded := a[0] == '0' || b[0] == '0'
	return err == nil && y == x+1 && (len(a) == len(b) || !padded)
}
