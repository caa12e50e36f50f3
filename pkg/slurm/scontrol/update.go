package scontrol

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/client/submit"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/script"
	"gangd/pkg/core/table/jobfield"
)

// parameter is one word of create or update in front of its "=".
type parameter[Set any] struct {
	name string
	min  int // letters that are enough
	list cmdline.List
	text string
	set  Set // nil: refused, or handled by its name
}

type setJob = func(u *jobUpdate, v string) error

// jobUpdate is an update of jobs as it was asked for.
type jobUpdate struct {
	api.UpdateRequest
	now   time.Time
	delta time.Duration // TimeLimit=+10, -10
	end   time.Time     // EndTime=
	hold  bool          // Priority=0
	asked []string      // options of gsubmit: what a job that waits asks for from now on
	warn  []string
}

// ask is a parameter that is an option of sbatch's.
func ask(option string) setJob {
	return func(u *jobUpdate, v string) error { u.asked = append(u.asked, "--"+option+"="+v); return nil }
}

func setShared(u *jobUpdate, v string) error {
	switch strings.ToUpper(v) {
	case "EXCLUSIVE":
		u.asked = append(u.asked, "--exclusive")
	case "NO", "0", "YES", "1", "OK":
		u.asked = append(u.asked, "--exclusive=")
	default:
		return &invalidValue{"OverSubscribe"}
	}
	return nil
}

func setRequeue(u *jobUpdate, v string) error {
	switch v {
	case "0":
		u.asked = append(u.asked, "--no-requeue")
	case "1":
		u.asked = append(u.asked, "--requeue")
	default:
		return &invalidValue{"Requeue"}
	}
	return nil
}

func setContiguous(u *jobUpdate, v string) error {
	switch strings.ToUpper(v) {
	case "YES", "1", "NO", "0":
		u.warn = append(u.warn, "Contiguous has no effect: node names say nothing about cables")
		return nil
	}
	return &invalidValue{"Contiguous"}
}

const (
	noQOS = "gangd has no quality of service; Partition= and Priority= choose"
	noKey = "the key is not recorded; Account= and Comment= are"
)

// noEffect takes what changes nothing here, and says so.
func noEffect(name, why string) setJob {
	return func(u *jobUpdate, _ string) error {
		u.warn = append(u.warn, name+" has no effect: "+why)
		return nil
	}
}

const asked = "what a job asks for is fixed at its submission; submit it once more with other options"

func listParameters[Set any](what string, all []parameter[Set]) cmdline.Lists {
	c := cmdline.Lists{Name: "scontrol " + what}
	for i := range all {
		c.Options = append(c.Options, cmdline.Kept{Name: all[i].name, List: all[i].list, Text: all[i].text})
	}
	return c
}

var jobParameters = []parameter[setJob]{
	{"JobId", 3, cmdline.Exact, "jobs, arrays or elements", nil},
	{"Account", 2, cmdline.Exact, "of a waiting job", ask("account")},
	{"AdminComment", 3, cmdline.Refused, "use Comment=", nil},
	{"ArrayTaskThrottle", 10, cmdline.Exact, "elements that may run at once, 0 for all", setThrottle},
	{"BurstBuffer", 1, cmdline.Refused, "there is none", nil},
	{"Clusters", 8, cmdline.Refused, "there is one cluster", nil},
	{"ClusterFeatures", 8, cmdline.Refused, "there is one cluster", nil},
	{"Comment", 3, cmdline.Exact, "", func(u *jobUpdate, v string) error { u.Comment = &v; return nil }},
	{"Contiguous", 3, cmdline.Partial, "without effect, with a warning: node names say nothing about cables", setContiguous},
	{"CoreSpec", 4, cmdline.Refused, asked, nil},
	{"CPUsPerTask", 9, cmdline.Exact, "of a waiting job", ask("cpus-per-task")},
	{"Deadline", 3, cmdline.Exact, "", setDeadline},
	{"DelayBoot", 5, cmdline.Partial, "without effect, with a warning: gangd boots no nodes", noEffect("DelayBoot", "gangd boots no nodes")},
	{"Dependency", 3, cmdline.Partial, "on jobs that gangd knows; Slurm takes any number", setDependency},
	{"EarliestStartTime", 2, cmdline.Exact, "", setStart},
	{"EligibleTime", 2, cmdline.Exact, "", setStart},
	{"StartTime", 2, cmdline.Exact, "", setStart},
	{"EndTime", 2, cmdline.Exact, "of a running job, as a time limit", setEnd},
	{"ExcNodeList", 3, cmdline.Exact, "of a waiting job", ask("exclude")},
	{"Extra", 5, cmdline.Exact, "of a waiting job", ask("extra")},
	{"Features", 1, cmdline.Exact, "of a waiting job", func(u *jobUpdate, v string) error { u.Constraint = &v; return nil }},
	{"Gres", 1, cmdline.Partial, "of a waiting job", ask("gres")},
	{"JobName", 4, cmdline.Exact, "", setName},
	{"Name", 2, cmdline.Exact, "", setName},
	{"Licenses", 1, cmdline.Exact, "of a waiting job", ask("licenses")},
	{"MailType", 5, cmdline.Exact, "of a waiting job", ask("mail-type")},
	{"MailUser", 5, cmdline.Exact, "of a waiting job", ask("mail-user")},
	{"MinCPUsNode", 4, cmdline.Exact, "of a waiting job", ask("mincpus")},
	{"MinMemoryCPU", 10, cmdline.Exact, "of a waiting job", ask("mem-per-cpu")},
	{"MinMemoryNode", 10, cmdline.Exact, "of a waiting job", ask("mem")},
	{"MinTmpDiskNode", 5, cmdline.Exact, "of a waiting job", ask("tmp")},
	{"Nice", 2, cmdline.Partial, "lowers the priority by so much; less than 0 by admins", setNice},
	{"NodeList", 8, cmdline.Partial, "of a waiting job", ask("nodelist")},
	{"NumCPUs", 6, cmdline.Partial, "of a waiting job, as its tasks", ask("ntasks")},
	{"NumNodes", 6, cmdline.Partial, "of a waiting job; of a range the fewest", ask("nodes")},
	{"NumTasks", 6, cmdline.Exact, "of a waiting job", ask("ntasks")},
	{"OverSubscribe", 2, cmdline.Partial, "NO and YES are alike, as CPUs are never shared; EXCLUSIVE is --exclusive", setShared},
	{"Partition", 2, cmdline.Exact, "of a waiting job", func(u *jobUpdate, v string) error { u.Partition = &v; return nil }},
	{"Prefer", 3, cmdline.Exact, "of a waiting job", func(u *jobUpdate, v string) error { u.Prefer = &v; return nil }},
	{"Priority", 2, cmdline.Partial, "0 is a hold as in Slurm; above 4294901760, what a job has by itself, by admins", setPriority},
	{"QOS", 2, cmdline.Partial, "without effect, with a warning: " + noQOS, noEffect("QOS", noQOS)},
	{"Reboot", 3, cmdline.Refused, "gangd reboots no nodes", nil},
	{"ReqNodes", 8, cmdline.Partial, "of a waiting job; of a range the fewest", ask("nodes")},
	{"ReqNodeList", 8, cmdline.Exact, "of a waiting job", ask("nodelist")},
	{"ReqCores", 4, cmdline.Exact, "of a waiting job", ask("cores-per-socket")},
	{"ReqSockets", 4, cmdline.Exact, "of a waiting job", ask("sockets-per-node")},
	{"ReqThreads", 4, cmdline.Exact, "of a waiting job", ask("threads-per-core")},
	{"ReqProcs", 4, cmdline.Exact, "of a waiting job", ask("ntasks")},
	{"Requeue", 4, cmdline.Exact, "of a waiting job", setRequeue},
	{"ReservationName", 3, cmdline.Exact, "of a waiting job", ask("reservation")},
	{"ResetAccrueTime", 4, cmdline.Refused, "no priority grows with age by itself", nil},
	{"Shared", 2, cmdline.Partial, "NO and YES are alike, as CPUs are never shared; EXCLUSIVE is --exclusive", setShared},
	{"SiteFactor", 2, cmdline.Refused, "there is none; use Nice= or Priority=", nil},
	{"StdErr", 4, cmdline.Exact, "of a waiting job", ask("error")},
	{"StdIn", 4, cmdline.Exact, "of a waiting job", ask("input")},
	{"StdOut", 2, cmdline.Exact, "of a waiting job", ask("output")},
	{"Switches", 5, cmdline.Exact, "of a waiting job", ask("switches")},
	{"SystemComment", 3, cmdline.Refused, "use Comment=", nil},
	{"TasksPerNode", 2, cmdline.Exact, "of a waiting job", ask("ntasks-per-node")},
	{"ThreadSpec", 4, cmdline.Refused, asked, nil},
	{"TimeLimit", 5, cmdline.Exact, "a time, or +N, -N minutes; of a running job counted from its start", setLimit},
	{"TimeMin", 5, cmdline.Exact, "of a waiting job", ask("time-min")},
	{"TRESPerJob", 7, cmdline.Exact, "cards of a waiting job", ask("gpus")},
	{"TRESPerNode", 7, cmdline.Exact, "cards of a waiting job", ask("gres")},
	{"TRESPerTask", 7, cmdline.Exact, "cards of a waiting job", ask("gpus-per-task")},
	{"UserID", 1, cmdline.Refused, "a job stays its owner's", nil},
	{"WCKey", 1, cmdline.Partial, "without effect, with a warning: " + noKey, noEffect("WCKey", noKey)},
	{"WorkDir", 2, cmdline.Exact, "of a waiting job", ask("chdir")},
}

// find finds a parameter: a whole name first, else the first that is cut so short.
func find[Set any](word string, all []parameter[Set]) *parameter[Set] {
	for i := range all {
		if strings.EqualFold(word, all[i].name) {
			return &all[i]
		}
	}
	for i := range all {
		if cmdline.Short(word, all[i].name, all[i].min) {
			return &all[i]
		}
	}
	return nil
}

// invalidValue is said as "scontrol: error: Invalid NAME value".
type invalidValue struct{ name string }

func (e *invalidValue) Error() string { return "Invalid " + e.name + " value" }

func setThrottle(u *jobUpdate, v string) error {
	n, err := strconv.ParseUint(v, 10, 31)
	if err != nil {
		return &invalidValue{"ArrayTaskThrottle"}
	}
	u.ArrayLimit = new(int(n))
	return nil
}

func setDeadline(u *jobUpdate, v string) error {
	t, err := when.Parse(v, u.now, when.Future)
	u.Deadline = &t
	return err
}

func setDependency(u *jobUpdate, v string) (err error) {
	if v == "" {
		u.Dependency = &api.Dependency{}
		return nil
	}
	if u.Dependency, err = script.ParseDependency(v); err != nil {
		return fmt.Errorf("Job dependency problem") //nolint:staticcheck // Slurm's words
	}
	return nil
}

func setStart(u *jobUpdate, v string) error {
	t, err := when.Parse(v, u.now, when.Future)
	if err == nil {
		u.Begin = &t
	}
	return err
}

func setEnd(u *jobUpdate, v string) error {
	t, err := when.Parse(v, u.now, when.Future)
	u.end = t
	return err
}

func setName(u *jobUpdate, v string) error { u.Name = &v; return nil }

func setNice(u *jobUpdate, v string) error {
	if v == "" {
		v = "100" // Slurm's, for Nice without a number
	}
	n, err := strconv.ParseInt(v, 10, 32)
	if err != nil {
		return &invalidValue{"Nice"}
	}
	u.Nice = &n
	return nil
}

func setPriority(u *jobUpdate, v string) error {
	n, err := strconv.ParseUint(v, 10, 32)
	if err != nil {
		return &invalidValue{"Priority"}
	}
	if n == 0 {
		u.hold = true
		return nil
	}
	u.Priority = new(jobfield.OwnPriority(int64(n)))
	return nil
}

func setLimit(u *jobUpdate, v string) error {
	sign := time.Duration(1)
	rest := strings.TrimPrefix(v, "+")
	if strings.HasPrefix(v, "-") && len(v) > 1 {
		sign, rest = -1, v[1:]
	}
	if strings.EqualFold(v, "UNLIMITED") || strings.EqualFold(v, "INFINITE") || v == "-1" {
		u.TimeLimit = new(time.Duration(0))
		return nil
	}
	d, err := script.ParseTime(rest)
	if err != nil || strings.ContainsAny(rest, "smhdSMHD") {
		return &invalidValue{"TimeLimit"}
	}
	if rest != v {
		u.delta = sign * d
		return nil
	}
	u.TimeLimit = &d
	return nil
}

// update is "update KEY=VALUE ...": of jobs or of nodes.
func (c *call) update(args []string) int {
	for _, a := range args {
		key, _, _ := strings.Cut(a, "=")
		switch {
		case cmdline.Short(key, "NodeName", 4) && !cmdline.Short(key, "NodeList", 5):
			return c.updateNodes(args)
		case cmdline.Short(key, "JobId", 3), cmdline.Short(key, "JobName", 4):
			return c.updateJobs(args)
		case cmdline.Short(key, "PartitionName", 4):
			return c.putPartition(args, true)
		case cmdline.Short(key, "ReservationName", 3):
			return c.updateReservation(args)
		case cmdline.Short(key, "FrontendName", 4):
			c.errorf("update FrontendName is refused: there are no front ends")
			return 1
		case cmdline.Short(key, "StepId", 4):
			c.errorf("update StepId is refused: a step has no limit of its own that could be changed; cancel it: scancel JOB.STEP")
			return 1
		}
	}
	c.say("No valid entity in update command\nInput line must include \"NodeName\", \"PartitionName\", \"Reservation\", \"JobId\", or " +
		"\"SlurmctldDebug\"")
	return 1
}

func (c *call) updateJobs(args []string) int {
	u := &jobUpdate{now: c.now}
	var jobs []string
	var by jobsBy
	changes := 0
	if by.take(&args); by.asked() {
		found, err := by.find(c)
		if err != nil {
			return c.failed("slurm_load_jobs error", err)
		}
		if len(found) == 0 {
			c.errorf("%s", by.none())
			return 1
		}
		jobs = found
	}
	for i := 0; i < len(args); i++ {
		a := args[i]
		key, v, given := strings.Cut(a, "=")
		p := find(key, jobParameters)
		switch {
		case given, p != nil && p.name == "Nice": // which alone needs no value
		case i+1 == len(args):
			c.say("Invalid input: %s\nRequest aborted", a)
			return 1
		default: // "job 12" is "job=12", as every parameter may be written
			i++
			a, v = args[i], args[i]
		}
		switch {
		case p == nil:
			c.say("Update of this parameter is not supported: %s\nRequest aborted", a)
			return 1
		case p.name == "JobId":
			jobs = append(jobs, cmdline.SplitIDs(v)...)
			continue
		case p.list == cmdline.Refused:
			c.errorf("%s is refused: %s", p.name, p.text)
			c.say("Request aborted")
			return 1
		}
		if err := p.set(u, v); err != nil {
			return c.badValue(err)
		}
		changes++
	}
	if changes == 0 {
		c.say("No changes specified")
		return 1
	}
	status := 0
	for _, j := range jobs {
		if err := c.updateJob(u, j); err != nil {
			c.sayUpdated(j, err)
			status = 1
		}
	}
	for _, w := range u.warn {
		c.errorf("gangd: %s", w)
	}
	return status
}

func (c *call) badValue(err error) int {
	if _, ok := err.(*when.Error); ok {
		c.say("%v\nNo changes specified", err)
		return 1
	}
	c.errorf("%v", err)
	return 1
}

// sayUpdated says why a job was not changed; what Slurm has no words for in gangd's.
func (c *call) sayUpdated(job string, err error) {
	var own *script.Error // of an option that a parameter stands for
	if errors.As(err, &own) || !slurms(err) {
		c.errorf("%v", err)
		return
	}
	text := words(err)
	if strings.Contains(job, "_") {
		c.say("%s: %s", job, text)
		return
	}
	c.say("%s for job %s", text, job)
}

// updateJob changes one job, or all of an array.
func (c *call) updateJob(u *jobUpdate, job string) error {
	if err := oneComponent(job); err != nil {
		return err
	}
	refs, ok := jobRefs(job)
	if !ok {
		return api.Errorf(api.CodeNotFound, "no job %s", job)
	}
	q := api.JobQuery{Refs: refs}
	req := u.UpdateRequest
	req.JobQuery = q
	if u.delta != 0 {
		limit, err := c.movedLimit(q, u.delta)
		if err != nil {
			return err
		}
		req.TimeLimit = &limit
	}
	if !u.end.IsZero() {
		limit, err := c.limitUntil(q, u.end)
		if err != nil {
			return err
		}
		req.TimeLimit = &limit
	}
	if len(u.asked) > 0 {
		warn, err := submit.Change(c.ctx, c.client, &req, u.asked)
		if err != nil {
			return err
		}
		for _, w := range warn {
			u.warn = append(u.warn, w.String())
		}
	}
	if p := u.Partition; p != nil {
		if err := c.knownPartition(*p); err != nil {
			return err
		}
	}
	if u.hold {
		if err := firstError(c.client.Act(c.ctx, "hold", &api.ActionRequest{JobQuery: q, As: api.HoldAdmin})); err != nil {
			return err
		}
		if !req.Changes() {
			return nil
		}
	}
	if !req.Changes() {
		return nil
	}
	return firstError(c.client.Update(c.ctx, &req))
}

// movedLimit is a job's time limit and so much more or less.
func (c *call) movedLimit(q api.JobQuery, delta time.Duration) (time.Duration, error) {
	q.NoRanks = true
	reply, err := c.client.Jobs(c.ctx, &q)
	switch {
	case err != nil:
		return 0, err
	case len(reply.Jobs) == 0:
		return 0, api.Errorf(api.CodeNotFound, "no such job")
	case reply.Jobs[0].TimeLimitSeconds == 0:
		return 0, &inSlurmsWords{"Invalid time limit specified (it has none that could be moved)"}
	}
	d := time.Duration(reply.Jobs[0].TimeLimitSeconds)*time.Second + delta
	if d <= 0 {
		return 0, &inSlurmsWords{"Invalid time limit specified (nothing would be left)"}
	}
	return d, nil
}

// limitUntil is the time limit by which a running job ends then.
func (c *call) limitUntil(q api.JobQuery, end time.Time) (time.Duration, error) {
	q.NoRanks = true
	reply, err := c.client.Jobs(c.ctx, &q)
	switch {
	case err != nil:
		return 0, err
	case len(reply.Jobs) == 0:
		return 0, api.Errorf(api.CodeNotFound, "no such job")
	case reply.Jobs[0].State != api.JobRunning:
		return 0, &inSlurmsWords{"Job is not running"}
	case !end.After(c.now):
		return 0, &inSlurmsWords{"Invalid time specified"}
	}
	return end.Sub(reply.Jobs[0].StartTime).Round(time.Second), nil
}

// knownPartition refuses a partition in Slurm's words before anything is changed.
func (c *call) knownPartition(names string) error {
	reply, err := c.client.Nodes(c.ctx)
	if err != nil {
		return err
	}
	for _, name := range strings.Split(names, ",") {
		if !slices.ContainsFunc(reply.Partitions, func(p api.Partition) bool { return p.Name == name }) {
			return &inSlurmsWords{slurmErrors[errPartition]}
		}
	}
	return nil
}

// nodeUpdate is an update of nodes as it was asked for.
type nodeUpdate struct {
	names         []string
	features      *[]string
	state, reason string
}

type setNode = func(u *nodeUpdate, v string) error

var nodeParameters = []parameter[setNode]{
	{"NodeName", 4, cmdline.Exact, "nodes, as a list", setNodeName},
	{"State", 5, cmdline.Partial, "drain, down, resume, undrain, idle", func(u *nodeUpdate, v string) error { u.state = v; return nil }},
	{"Reason", 2, cmdline.Exact, "", func(u *nodeUpdate, v string) error { u.reason = strings.Trim(v, `"'`); return nil }},
	{"ActiveFeatures", 2, cmdline.Partial, "as AvailableFeatures: what a node has is active", func(u *nodeUpdate, v string) error {
		if u.features != nil { // what is available was said
			return nil
		}
		return setFeatures(u, v)
	}},
	{"AvailableFeatures", 2, cmdline.Exact, "until gnoded.toml says others, or scontrol reconfigure", setFeatures},
	{"Comment", 1, cmdline.Refused, "use Reason=", nil},
	{"CpuBind", 3, cmdline.Refused, "which CPUs a node gives to jobs is set on the node", nil},
	{"Extra", 1, cmdline.Refused, "use Reason=", nil},
	{"Gres", 1, cmdline.Refused, "cards are what the node finds; gctl card drain takes one out of service", nil},
	{"InstanceId", 9, cmdline.Refused, "use Reason=", nil},
	{"InstanceType", 9, cmdline.Refused, "use Reason=", nil},
	{"NodeAddr", 5, cmdline.Refused, "nodes call the controller; their address is not needed", nil},
	{"NodeHostname", 5, cmdline.Refused, "nodes call the controller; their host name is not needed", nil},
	{"ResumeAfter", 8, cmdline.Refused, "gangd wakes no nodes", nil},
	{"Weight", 1, cmdline.Refused, "placement weighs what would be stranded, not nodes", nil},
}

func setNodeName(u *nodeUpdate, v string) (err error) {
	if u.names, err = hostlist.Expand(v); err != nil {
		return errors.New("slurm_update error: " + slurmErrors[errNode])
	}
	return nil
}

func setFeatures(u *nodeUpdate, v string) error {
	u.features = new(cmdline.Split(v))
	return nil
}

// nodeStates are the words for State, by what gangd does.
var nodeStates = []struct{ word, action string }{
	{"DRAIN", "drain"}, {"DOWN", "down"}, {"RESUME", "resume"}, {"UNDRAIN", "resume"}, {"IDLE", "resume"},
	{"FAIL", ""}, {"FUTURE", ""}, {"NoResp", ""}, {"POWER_DOWN", ""}, {"POWER_DOWN_ASAP", ""}, {"POWER_DOWN_FORCE", ""}, {"POWER_UP", ""},
	{"CANCEL_REBOOT", "cancel-reboot"},
}

// assign reads the words of an update or a creation, KEY=VALUE each; what is wrong with one has been said then.
func assign[T any](c *call, args []string, all []parameter[func(*T, string) error], to *T) bool {
	for _, a := range args {
		key, v, given := strings.Cut(a, "=")
		p := find(key, all)
		switch {
		case p == nil || !given:
			c.say("Update of this parameter is not supported: %s\nRequest aborted", a)
			return false
		case p.list == cmdline.Refused:
			c.errorf("%s is refused: %s", p.name, p.text)
			c.say("Request aborted")
			return false
		}
		if err := p.set(to, v); err != nil {
			c.say("%v", err)
			return false
		}
	}
	return true
}

func (c *call) updateNodes(args []string) int {
	u := &nodeUpdate{}
	if !assign(c, args, nodeParameters, u) {
		return 1
	}
	if u.features != nil {
		for _, n := range u.names {
			if err := c.client.NodeAction(c.ctx, n, "features", &api.NodeAction{Features: *u.features}); err != nil {
				return c.failed("slurm_update error", forOperators(err))
			}
		}
		if u.state == "" {
			return 0
		}
	}
	if u.state == "" {
		c.say("No changes specified")
		return 1
	}
	return c.setNodes(u.names, u.state, u.reason)
}

func (c *call) setNodes(names []string, state, reason string) int {
	i := slices.IndexFunc(nodeStates, func(s struct{ word, action string }) bool { return cmdline.Short(state, s.word, 2) })
	if i < 0 {
		c.say("Invalid input: State=%s\nRequest aborted\nValid states are: DRAIN DOWN RESUME UNDRAIN IDLE\nNot all states are valid given a "+
			"node's prior state", state)
		return 1
	}
	action := nodeStates[i].action
	req := &api.NodeAction{Reason: reason}
	switch {
	case action == "":
		c.errorf("State=%s is refused: gangd has no such state; drain takes a node out of service, gctl node fence says that nothing runs "+
			"there any more", state)
		return 1
	case action != "resume" && action != "cancel-reboot" && reason == "":
		c.say("You must specify a reason when DOWNING or DRAINING a node. Request denied")
		return 1
	case action == "down":
		action, req.Down = "drain", true
	}
	if known, err := c.knownNodes(names); err != nil || !known {
		if err == nil {
			err = &inSlurmsWords{slurmErrors[errNode]}
		}
		return c.failed("slurm_update error", err)
	}
	for _, n := range names {
		if err := c.client.NodeAction(c.ctx, n, action, req); err != nil {
			return c.failed("slurm_update error", forOperators(err))
		}
	}
	return 0
}

func (c *call) knownNodes(names []string) (bool, error) {
	reply, err := c.client.Nodes(c.ctx)
	if err != nil {
		return false, err
	}
	for _, n := range names {
		if !slices.ContainsFunc(reply.Nodes, func(have api.Node) bool { return have.Name == n }) {
			return false, nil
		}
	}
	return len(names) > 0, nil
}
