package script

import (
	"strconv"
	"strings"
	"time"
	"unicode"

	"gangd/pkg/api"
	"gangd/pkg/core/hostlist"
)

// Ask is what the settings say, one field for each, before figures are derived from each
// other. Its embedded Request holds what needs no deriving.
type Ask struct {
	Request
	now time.Time // what --begin is relative to

	size, ntasks, perNode   int  // --size, --ntasks, --ntasks-per-node
	perNodeSaid             bool // how many tasks a node has was asked for, or follows from what was
	nodesMin, nodesMax      int
	gpusTotal               int
	gpusPerSocket           int
	slots                   int // tasks, where cards that they can't share evenly are ranks; 0: each rank is a task
	gres                    gres
	memNode, memCPU, memGPU int64
	cpusPerGPU, minCPUs     int
	tasksPerGPU             int
	overcommit              bool
	noRequeue               bool
	requeueCauses           []api.Cause
	roles                   []askedRole
	container               api.Container
	setting                 *Setting // that is being set, for errors found later
	mailTypes               []api.NotifyType
	mailUser                string
	warned                  []string // what is to be known of the setting that is being set
}

// warn tells something of a value that is taken.
func (a *Ask) warn(text string) { a.warned = append(a.warned, text) }

// number reads a whole number from lo to hi.
func number(s string, lo, hi int) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err == nil && n >= lo && n <= hi {
		return n, nil
	}
	want := "write a number from " + strconv.Itoa(lo) + " to " + strconv.Itoa(hi)
	t := strings.TrimPrefix(strings.TrimSpace(s), "-")
	switch {
	case err != nil && !digits(t):
		return 0, bad("not a whole number", want)
	case strings.HasPrefix(strings.TrimSpace(s), "-") || n < lo:
		return 0, bad("less than "+strconv.Itoa(lo), want)
	}
	return 0, bad("more than "+strconv.Itoa(hi), want)
}

// numberInto is a setter of one number.
func numberInto(dst *int, s string, lo, hi int) error {
	n, err := number(s, lo, hi)
	if err == nil {
		*dst = n
	}
	return err
}

// numberPtr is a setter of one number that may also be unset.
func numberPtr(dst **int, s string, lo, hi int) error {
	n, err := number(s, lo, hi)
	if err == nil {
		*dst = &n
	}
	return err
}

func sizeInto(dst *int64, s string) error {
	n, err := ParseSize(s)
	if err == nil {
		*dst = n
	}
	return err
}

// memoryInto is a setter of memory, which is counted in MiB: less than one is one.
func memoryInto(dst *int64, s string) error {
	err := sizeInto(dst, s)
	if *dst > 0 {
		*dst = max(*dst, 1<<20)
	}
	return err
}

// maxText bounds names, comments and paths: longer ones are a mistake of quoting.
const maxText = 4096

// textInto is a setter of one line of text, which is for show: bytes that are no UTF-8 become "?".
func textInto(dst *string, s string) error {
	return lineInto(dst, strings.ToValidUTF8(s, "?"))
}

// noteInto is textInto of what may be taken back with an empty value.
func noteInto(dst *string, s string) error {
	if *dst = ""; s == "" {
		return nil
	}
	return textInto(dst, s)
}

// lineInto is a setter of one line, of whatever bytes.
func lineInto(dst *string, s string) error {
	switch {
	case s == "":
		return bad("the value is empty", "")
	case len(s) > maxText:
		return bad("longer than "+strconv.Itoa(maxText)+" bytes", "check the quotes")
	}
	if i := strings.IndexFunc(s, unicode.IsControl); i >= 0 {
		return bad("holds the control character "+strconv.QuoteRune(rune(s[i])), "write it on one line, with printable characters")
	}
	*dst = s
	return nil
}

// nameListInto is a setter of a comma list of names (partitions).
func nameListInto(dst *string, s string) error {
	for _, n := range strings.Split(s, ",") {
		if n == "" || strings.ContainsAny(n, " \t/") {
			return bad("not a list of names", "write --partition=gpu or --partition=gpu,debug")
		}
	}
	return textInto(dst, s)
}

// pathInto is a setter of an output pattern.
func (a *Ask) pathInto(dst *string, s string) error {
	var p string
	if err := lineInto(&p, s); err != nil {
		return err
	}
	a.warnPattern(p)
	if strings.HasSuffix(p, "/") {
		return bad("names a directory, not a file", "write "+p+"gang-%j.out")
	}
	*dst = p
	return nil
}

func hostsInto(dst *[]string, s string) error {
	names, err := hostlist.Expand(s)
	if err != nil || len(names) == 0 {
		return bad("not a list of nodes", "write n1,n2 or n[1-4,7]")
	}
	*dst = names
	return nil
}

func gpusInto(count *int, kind *string, s string) error {
	k, n, err := parseGPUs(s)
	if err == nil {
		*count, *kind = n, k
	}
	return err
}

// nodeCount reads 4, 2k or 1m. What is too many is refused when it counts: the command line may
// say otherwise.
func nodeCount(s string) (int, error) {
	unit := 1
	switch {
	case strings.HasSuffix(s, "k"), strings.HasSuffix(s, "K"):
		unit = 1 << 10
	case strings.HasSuffix(s, "m"), strings.HasSuffix(s, "M"):
		unit = 1 << 20
	}
	if unit > 1 {
		s = s[:len(s)-1]
	}
	n, err := number(s, 1, 1<<31/unit)
	return n * unit, err
}

func setNodes(a *Ask, v string) error {
	lo, hi, isRange := strings.Cut(v, "-")
	if strings.HasPrefix(v, "-") {
		lo, isRange = v, false
	}
	var err error
	if a.nodesMin, err = nodeCount(lo); err != nil {
		return err
	}
	a.nodesMax = a.nodesMin
	if isRange {
		if a.nodesMax, err = nodeCount(hi); err != nil {
			return err
		}
	}
	if a.nodesMax < a.nodesMin {
		return bad("the range runs backwards", "write --nodes="+hi+"-"+lo)
	}
	return nil
}

func setTime(a *Ask, v string) error {
	switch strings.ToUpper(v) {
	case "UNLIMITED", "INFINITE", "0":
		a.Spec.TimeLimit = 0
		return nil
	}
	d, err := ParseTime(v)
	if err != nil {
		return err
	}
	a.Spec.TimeLimit = d
	return nil
}

func setTimeMin(a *Ask, v string) error {
	d, err := ParseTime(v)
	if err != nil {
		return err
	}
	if d < time.Second {
		return bad("there is no shortest limit of nothing", "write --time-min=10 (minutes), or leave it out")
	}
	a.Spec.TimeMin = d
	return nil
}

func setDeadline(a *Ask, v string) error {
	t, err := ParseBegin(v, a.now)
	a.Spec.Deadline = t
	return err
}

// maxGrace bounds the time from TERM to KILL: a gang that is being stopped holds its cards
// that long.
const maxGrace = 24 * time.Hour

func setGrace(a *Ask, v string) (err error) {
	a.Spec.Grace, err = graceOf(v)
	return err
}

func setStallTimeout(a *Ask, v string) error {
	if strings.EqualFold(v, "off") {
		a.Spec.StallTimeout = api.WatchdogOff
		return nil
	}
	d, err := ParseSeconds(v)
	if err == nil && d <= 0 {
		err = bad("the time-out must be more than nothing", "write --stall-timeout=120, or off: silence is not judged")
	}
	a.Spec.StallTimeout = d
	return err
}

func graceOf(v string) (time.Duration, error) {
	d, err := ParseSeconds(v)
	switch {
	case err != nil:
		return 0, err
	case d <= 0:
		return 0, bad("the grace must be more than nothing", "write --grace=15")
	case d > maxGrace:
		return 0, bad("longer than a day", "write --grace=15, or use --signal=USR1@2h for an early notice")
	}
	return d, nil
}

// setSwitches reads N and N@TIME.
func setSwitches(a *Ask, v string) error {
	count, wait, timed := strings.Cut(v, "@")
	if timed {
		d, err := ParseTime(wait)
		if err != nil {
			return err
		}
		a.Spec.SwitchWait = &d
	}
	return numberInto(&a.Spec.Switches, count, 1, 1<<20)
}

func setReservation(a *Ask, v string) error {
	if strings.Contains(v, ",") {
		return bad("more than one reservation", "name one of them")
	}
	return textInto(&a.Spec.Reservation, v)
}

func setConstraint(a *Ask, v string) error {
	// What it means is read by the controller, which names the column of a mistake.
	return textInto(&a.Spec.Constraint, v)
}

func setRequeue(a *Ask, v string) error {
	a.requeueCauses = nil
	if v == "" {
		return nil
	}
	for _, c := range strings.Split(v, ",") {
		cause := api.Cause(strings.TrimSpace(c))
		if !requeueable(cause) {
			hint := "causes are crash, oom, launch, node-lost, preempted, requeued, stalled, gpu-hang, idle, timeout"
			return bad("unknown cause "+strconv.Quote(string(cause)), hint)
		}
		a.requeueCauses = append(a.requeueCauses, cause)
	}
	return nil
}

func requeueable(c api.Cause) bool {
	switch c {
	case api.CauseCrash, api.CauseOOM, api.CauseLaunch, api.CauseNodeLost, api.CausePreempted, api.CauseRequeued,
		api.CauseStalled, api.CauseGPUHang, api.CauseIdle, api.CauseTimeout:
		return true
	}
	return false
}

func setNice(a *Ask, v string) error {
	n, err := number(v, -2147483645, 2147483645)
	if err == nil {
		a.Spec.Nice = int64(n)
	}
	return err
}

func setPriority(a *Ask, v string) error {
	n, err := number(v, 0, 4294967294)
	if err == nil {
		p := int64(n)
		a.Spec.Priority = &p
	}
	return err
}

func setExclusive(a *Ask, v string) error {
	switch strings.ToLower(v) {
	case "":
		a.Spec.Exclusive = true
		return nil
	case "user", "mcs":
		a.warn("nodes can't be kept for one user; no other gang is on them")
		a.Spec.Exclusive = true
		return nil
	}
	return bad("unknown value", "write --exclusive alone: no other gang on the nodes")
}

func setCPUBind(a *Ask, v string) error {
	switch v = strings.ToLower(v); v {
	case api.BindNone, api.BindCores, api.BindNUMA:
		a.Spec.CPUBind = v
		return nil
	}
	return bad("want none, cores or ldoms", "lists of CPUs are for steps: srun --cpu-bind=map_cpu:0,1")
}

// setShape reads sockets[:cores[:threads]], each a number, a range or *.
func setShape(a *Ask, v string) error {
	s := &a.Spec.Shape
	parts := strings.Split(v, ":")
	into := []*int{&s.Sockets, &s.Cores, &s.Threads}
	if len(parts) > len(into) {
		return bad("more than sockets, cores and threads", "write SOCKETS:CORES:THREADS, * for any")
	}
	for i, p := range parts {
		least, _, _ := strings.Cut(p, "-")
		if p == "*" || p == "" {
			continue
		}
		if err := numberInto(into[i], least, 1, 1<<16); err != nil {
			return err
		}
	}
	return nil
}

func setCardNames(a *Ask, v string) error {
	if a.Spec.CardNames = strings.ToLower(v); a.Spec.CardNames != api.CardsByUUID && a.Spec.CardNames != api.CardsByNumber {
		return bad("want uuid or number", "")
	}
	return nil
}

func setHint(a *Ask, v string) error {
	switch strings.ToLower(v) {
	case "nomultithread":
		a.Spec.ThreadsPerCore = 1
	case "multithread", "compute_bound", "memory_bound":
	default:
		return bad("want nomultithread, multithread, compute_bound or memory_bound", "")
	}
	return nil
}

func setGPUBind(a *Ask, v string) error {
	kind, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(strings.ToLower(v), "verbose,"), "v,"), ":")
	switch kind {
	case "none":
	case "closest", "single", "per_task", "map_gpu", "mask_gpu":
		a.warn("every rank sees all cards of its gang on the node; choose by GANG_LOCAL_RANK in the program, as torchrun does; " +
			"a step's tasks have their own with srun --gpus-per-task")
	default:
		return bad("unknown type", "types are none, closest, single:N, per_task:N, map_gpu:LIST and mask_gpu:LIST")
	}
	return nil
}

func setInput(a *Ask, v string) error {
	if strings.Contains(v, "%") {
		return bad("an input is one path, without %", "let the script choose: exec < input.$GANG_RANK")
	}
	return lineInto(&a.Spec.Input, v)
}

func setOpenMode(a *Ask, v string) error {
	if a.Spec.OpenMode = OpenMode(v); a.Spec.OpenMode == "" {
		return bad("unknown mode", "write --open-mode=append or --open-mode=truncate")
	}
	return nil
}

// OpenMode is what --open-mode says, in any case and cut short; empty: nothing that is known.
func OpenMode(v string) string {
	for _, mode := range []string{"append", "truncate"} {
		if v != "" && strings.HasPrefix(mode, strings.ToLower(v)) {
			return mode
		}
	}
	return ""
}

func setLaunch(a *Ask, v string) error {
	switch l := api.Launch(strings.ToLower(v)); l {
	case api.LaunchRanks, api.LaunchBatch:
		a.Spec.Launch = l
		return nil
	}
	return bad("unknown way to launch", "write --launch=ranks (the script runs in every rank) or --launch=batch (once, on the first node)")
}

func setBegin(a *Ask, v string) error {
	t, err := ParseBegin(v, a.now)
	if err == nil {
		a.Spec.Begin = t
	}
	return err
}

func setInvalidDependency(a *Ask, v string) error {
	switch strings.ToLower(v) {
	case "yes", "y", "1", "true":
		a.Spec.InvalidDependency = api.InvalidCancel
	case "no", "n", "0", "false":
		a.Spec.InvalidDependency = api.InvalidWait
	default:
		return bad("not yes or no", "write --kill-on-invalid-dep=yes or =no")
	}
	return nil
}
