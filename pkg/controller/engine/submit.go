package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/sched"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/core/sched/why"
	"gangd/pkg/core/script"
)

// Caller is who asks, as the kernel or a certificate says.
type Caller struct {
	UID, GID uint32
	User     string
	Admin    bool
	Asker    api.Asker // the process that called
}

// Submit checks a submission against the site, queues it, and answers when it is on disk.
func (e *Engine) Submit(ctx context.Context, r *api.SubmitRequest, who Caller) (*api.SubmitReply, error) {
	for {
		judged := new(api.SubmitRequest) // what the site decides is filled in
		*judged = *r
		judged.Spec.Cron = nil // which is for cron tables to say
		reply, err := e.submit(ctx, judged, who)
		if err != errMoved {
			return reply, err
		}
	}
}

// submit refuses with errMoved what was judged by a configuration that is not in force any more.
func (e *Engine) submit(ctx context.Context, r *api.SubmitRequest, who Caller) (*api.SubmitReply, error) {
	by := e.conf().Conf
	d, err := e.onWholeJobs(ctx, r.Spec.Dependency)
	if err != nil {
		return nil, err
	}
	r.Spec.Dependency = d
	ev, warnings, err := e.ruled(ctx, r, who)
	if err != nil {
		return nil, err
	}
	count := 1
	if r.Array != nil {
		count = len(r.Array.Indices)
	}
	reply := &api.SubmitReply{SchemaVersion: api.SchemaVersion, Count: count, Warnings: warnings}
	if r.TestOnly {
		reply.Why, reply.StartsOn, err = e.wouldStart(ctx, ev)
		return reply, err
	}
	if ev.Recalled, err = recall(ctx, e.store, ev.Spec.Dependency, e.view.job, maxWaits); err != nil {
		return nil, err
	}
	ev.Warned = slices.Concat(r.Warned, warnings)
	out, err := e.answered(ctx, request{ev: *ev, by: by})()
	if err != nil {
		return nil, err
	}
	reply.JobID = out.JobIDs[0]
	return reply, nil
}

// resolve fills in what the site decides and refuses what can never run.
func (e *Engine) resolve(ctx context.Context, r *api.SubmitRequest, who Caller) (*gang.Submit, []string, error) {
	s := &r.Spec
	if err := checkSpec(s, r.Array); err != nil {
		return nil, nil, err
	}
	if err := checkCron(s, r.Array); err != nil {
		return nil, nil, err
	}
	if who.User == "" {
		return nil, nil, api.Errorf(api.CodePermission, "user id %d has no name on the controller's host", who.UID)
	}
	if err := e.componentPartitions(s); err != nil {
		return nil, nil, err
	}
	part, parts, err := e.partition(s)
	if err != nil {
		return nil, nil, err
	}
	if s.Account, err = e.account(s.Account, who.User); err != nil {
		return nil, nil, err
	}
	if err := mayRank(s, who); err != nil {
		return nil, nil, err
	}
	watchDefaults(s, part)
	var warnings []string
	if s.Notify, warnings, err = e.notifySite().Resolve(s.Notify, who.User); err != nil {
		return nil, nil, err
	}
	ev := &gang.Submit{Key: ownKey(who.UID, r.Key), Spec: s, SpecHash: hashSpec(s), Array: r.Array, UID: who.UID, GID: who.GID,
		User: who.User, Partition: strings.Join(parts, ","), Priority: -s.Nice}
	if s.Priority != nil {
		ev.Priority = *s.Priority - s.Nice
	}
	ev.TimeLimit = cmp.Or(s.TimeLimit, part.DefaultTime)
	entrant, err := e.entrant(ctx, ev.Partition, gang.Entrant{UID: who.UID, User: who.User, Account: s.Account, TimeLimit: ev.TimeLimit,
		Spec: s})
	if err != nil {
		return nil, nil, err
	}
	ev.Groups = entrant.Groups
	in, err := e.enters(ev.Partition, entrant, false)
	if err != nil {
		return nil, nil, err
	}
	if most := e.policy().MaxMinRun; most > 0 && s.MinRun > most {
		return nil, nil, &api.Error{Code: api.CodeInvalid, Message: fmt.Sprintf("the minimum run of %s is above the %s that this site allows",
			when.Words(s.MinRun), when.Words(most)),
			Hint: fmt.Sprintf("ask for --min-run=%d or less (seconds)", int(most.Seconds()))}
	}
	if err := checkConstraints(s); err != nil {
		return nil, nil, err
	}
	if err := e.checkDeadline(s, ev.TimeLimit); err != nil {
		return nil, nil, err
	}
	if err := gang.CheckPorts(&e.conf().Settings, s.Ports, fullest(s)); err != nil {
		return nil, nil, err
	}
	if err := e.policy().AboveCap(s.Account, cluster.AskOf(s, parts)); err != nil {
		return nil, nil, err
	}
	nodes := e.resources()
	if s.Switches > 0 && len(e.policy().Switches) == 0 {
		warnings = append(warnings, "--switches has no effect: the site names no switches")
	}
	if s.Reservation != "" {
		if nodes, err = e.mayReserve(s.Reservation, who.User, s.Account, nodes); err != nil {
			return nil, nil, err
		}
	}
	if len(nodes) == 0 {
		return ev, append(warnings, "no node has joined this cluster yet: the job waits for the first one that fits"), nil
	}
	if err := why.Unsatisfiable(nodes, e.policy(), cluster.AskIn(s, in)); err != nil {
		if apart := cardsApart(s); apart != nil && why.Unsatisfiable(nodes, e.policy(), cluster.AskIn(apart, in)) == nil {
			ev.Spec, ev.SpecHash = apart, hashSpec(apart)
			return ev, warnings, nil
		}
		if s.Reservation != "" {
			err.Message = "in reservation " + s.Reservation + ": " + err.Message
		}
		return nil, nil, err
	}
	return ev, warnings, nil
}

// mayRank refuses who puts himself before others.
func mayRank(s *api.Spec, who Caller) error {
	switch {
	case who.Admin:
		return nil
	case s.Priority != nil && *s.Priority > 0:
		return api.Errorf(api.CodePermission, "only an admin may set a priority above 0; lower your own with --nice")
	case s.Nice < 0:
		return api.Errorf(api.CodePermission, "only an admin may raise a priority with --nice=%d; write --nice=N with N above 0 to "+
			"lower your own", s.Nice)
	}
	return nil
}

// cardsApart is the same job with its cards on as many nodes as they need, where it left that open:
// each card is a rank, so that nodes are filled one after the other. Nil: it has to have them on one.
func cardsApart(s *api.Spec) *api.Spec {
	n := s.GPUsPerRank
	if s.Launch != api.LaunchBatch || s.Asked == nil || !s.Asked.Spread || s.Size != 1 || n < 2 {
		return nil
	}
	out := *s
	out.Size, out.GPUsPerRank = n, 1
	out.CPUsPerRank = (s.CPUsPerRank + n - 1) / n
	if out.MemoryPerNode = s.Asked.MemoryPerNode; out.MemoryPerNode > 0 {
		out.MemoryPerRank = 0
	} else {
		out.MemoryPerRank = (s.MemoryPerRank + int64(n) - 1) / int64(n)
	}
	return &out
}

// ownKey is a submission's key within the keys of its user: nobody is answered with the job of
// somebody else who used the same one.
func ownKey(uid uint32, key string) string {
	if key == "" {
		return ""
	}
	return fmt.Sprintf("%d %s", uid, key)
}

// fullest is how many ranks a node of the gang may have at most.
func fullest(s *api.Spec) int {
	most := 0
	for i := range s.Components() {
		most = max(most, fullest(s.Part(i)))
	}
	switch {
	case most > 0:
		return most
	case s.RanksPerNode > 0:
		return min(s.Size, s.RanksPerNode)
	}
	return s.Size
}

// maxTypes bounds the types of cards that a job names: each card's model is held against all of them.
const maxTypes = 64

// checkConstraints refuses what can't be read, also while no node is known.
func checkConstraints(s *api.Spec) error {
	texts, types := []string{s.Constraint, s.Prefer}, []string{s.GPUType}
	for i := range s.Roles {
		texts, types = append(texts, s.Roles[i].Constraint), append(types, s.Roles[i].GPUType)
	}
	for _, text := range types {
		if n := 1 + strings.Count(text, "|"); n > maxTypes {
			return api.Errorf(api.CodeInvalid, "gpu_type names %d types, at most %d are accepted", n, maxTypes)
		}
	}
	for _, text := range texts {
		if _, err := cluster.ParseConstraint(text); err != nil {
			return err
		}
	}
	return nil
}

// watchDefaults fills in what the partition says of watchdogs for jobs that do not say.
func watchDefaults(s *api.Spec, p *api.Partition) {
	duration := func(d *time.Duration) time.Duration {
		switch {
		case d == nil:
			return 0
		case *d == 0:
			return api.WatchdogOff
		}
		return *d
	}
	if s.StallTimeout == 0 {
		s.StallTimeout = duration(p.StallTimeout)
	}
	if s.StallRetries == nil {
		s.StallRetries = p.StallRetries
	}
	s.IdleLimit = duration(p.IdleLimit)
	s.GPUWatch = s.GPUWatch || p.GPUWatch && wantsCards(s)
}

// wantsCards: any rank of it does.
func wantsCards(s *api.Spec) bool {
	return s.GPUsPerRank > 0 || s.GPUsPerNode > 0 || slices.ContainsFunc(s.Roles, func(r api.Role) bool { return r.WantsCards() })
}

func limitText(d time.Duration) string {
	if d == 0 {
		return "unlimited"
	}
	return when.Words(d)
}

// partition resolves --partition: the first named one's limits apply, any of them will do.
func (e *Engine) partition(s *api.Spec) (*api.Partition, []string, error) {
	all := e.policy().Partitions
	if s.Partition == "" {
		i := slices.IndexFunc(all, func(p api.Partition) bool { return p.Default })
		if i < 0 {
			return nil, nil, &api.Error{Code: api.CodeInvalid, Message: "no partition was asked for and the site has no default one",
				Hint: "name one with --partition; ginfo -s lists them", Reason: api.ReasonPartition}
		}
		return &all[i], []string{all[i].Name}, mayQueue(&all[i])
	}
	var first *api.Partition
	names := unique(strings.Split(s.Partition, ","))
	for _, name := range names {
		i := slices.IndexFunc(all, func(p api.Partition) bool { return p.Name == name })
		if i < 0 {
			have := make([]string, len(all))
			for k := range all {
				have[k] = all[k].Name
			}
			return nil, nil, &api.Error{Code: api.CodeInvalid, Message: fmt.Sprintf("no partition %q", name),
				Hint: "partitions here: " + strings.Join(have, ", "), Reason: api.ReasonPartition, Subject: name}
		}
		if err := mayQueue(&all[i]); err != nil {
			return nil, nil, err
		}
		if first == nil {
			first = &all[i]
		}
	}
	return first, names, nil
}

// componentPartitions gives each component its partition and an id, and the gang those of all: whose limits
// hold for it is the first one's.
func (e *Engine) componentPartitions(s *api.Spec) error {
	var all []string
	for i := range s.Components() {
		c := *s.Roles[i].Component
		_, names, err := e.partition(&api.Spec{Partition: cmp.Or(c.Partition, s.Partition)})
		if err != nil {
			if refused, ok := err.(*api.Error); ok {
				refused.Message = fmt.Sprintf("component %d: %s", i, refused.Message)
			}
			return err
		}
		all = unique(append(all, names...))
		c.Partition, c.Numbered, s.Roles[i].Component = strings.Join(names, ","), true, &c
	}
	if all != nil {
		s.Partition = strings.Join(all, ",")
	}
	return nil
}

// checkSpec refuses what no client of ours would send; others speak this API too.
func checkSpec(s *api.Spec, a *api.Array) error {
	bad := func(format string, args ...any) error { return api.Errorf(api.CodeInvalid, format, args...) }
	rank, member := cluster.AmountsOf(s)
	switch {
	case s.Size < 1 || s.Size > api.MaxGangSize:
		return bad("size %d: want 1 to %d ranks", s.Size, api.MaxGangSize)
	case s.Launch != api.LaunchRanks && s.Launch != api.LaunchBatch:
		return bad("launch %q: want ranks or batch", s.Launch)
	case s.CPUsPerRank < 1:
		return bad("cpus_per_rank %d: a rank takes at least one", s.CPUsPerRank)
	case s.GPUsPerRank < 0 || s.GPUsPerNode < 0 || s.VRAMBytes < 0 || s.RanksPerNode < 0 || slices.Min(rank[:]) < 0 ||
		slices.Min(member[:]) < 0:
		return bad("a resource may not be negative")
	case s.GPUsPerRank > 0 && s.GPUsPerNode > 0:
		return bad("gpus_per_rank and gpus_per_node exclude each other")
	case s.Roles != nil:
		if err := checkRoles(s); err != nil {
			return err
		}
	case s.Share && s.VRAMBytes == 0:
		return bad("share needs vram_bytes: cards are shared by VRAM")
	}
	switch {
	case s.GPUWatch && !wantsCards(s):
		return &api.Error{Code: api.CodeInvalid, Message: "--gpu-watch: the job asks for no cards that could be watched",
			Hint: "ask for some with --gpus-per-rank, or leave --gpu-watch out"}
	case s.StallTimeout < 0 && s.StallTimeout != api.WatchdogOff:
		return bad("stall_timeout_ns %d: want a time, 0 for the site's, or -1 for none", int64(s.StallTimeout))
	case s.TimeLimit < 0 || s.TimeMin < 0 || s.Grace < 0 || s.ReadyTimeout < 0:
		return bad("a time may not be negative")
	case len(s.Script) == 0:
		return bad("the script is empty")
	case len(s.Script) > api.MaxScriptBytes:
		return api.Errorf(api.CodeTooLarge, "the script has %d bytes, at most %d are accepted", len(s.Script), api.MaxScriptBytes)
	case s.Ports < api.PortEach:
		return bad("%d ports: want a number from 0, or %d for one each", s.Ports, api.PortEach)
	case !strings.HasPrefix(api.Unpack(s.WorkDir), "/"):
		return bad("work_dir %q is not absolute", s.WorkDir)
	case strings.ContainsFunc(s.Name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return bad("name %q has control characters", s.Name)
	}
	if err := checkWords(s); err != nil {
		return err
	}
	if err := checkExec(s); err != nil {
		return err
	}
	elements := 1
	if a != nil {
		if err := checkArray(a); err != nil {
			return err
		}
		elements = len(a.Indices)
	}
	eachOnce(s)
	return checkDependency(s.Dependency, elements)
}

// eachOnce takes out of lists of nodes what they say twice. Plans look names up in them for each node.
func eachOnce(s *api.Spec) {
	s.NodeList, s.Exclude = unique(s.NodeList), unique(s.Exclude)
	for i := range s.Components() {
		c := s.Roles[i].Component
		c.NodeList, c.Exclude = unique(c.NodeList), unique(c.Exclude)
	}
}

// checkWords refuses words that stand for one of few things and for none of them.
func checkWords(s *api.Spec) error {
	errs := []error{
		oneOf("open_mode", s.OpenMode, "append", "truncate"),
		oneOf("checkpoint", s.Checkpoint, api.CheckpointDrain),
		oneOf("fail", s.Fail, api.FailAny),
		oneOf("cpu_bind", s.CPUBind, api.BindNone, api.BindCores, api.BindNUMA),
		checkContainer(s.Container, false),
		oneOf("invalid_dependency", s.InvalidDependency, api.InvalidCancel, api.InvalidWait),
		knownSignal("stop_signal", s.StopSignal),
	}
	if n := s.Notice; n != nil {
		if n.Signal == "" {
			return api.Errorf(api.CodeInvalid, "notice.signal is empty")
		}
		errs = append(errs, knownSignal("notice.signal", n.Signal),
			knownScope("notice.scope", n.Scope))
	}
	for _, c := range s.RequeueCauses {
		if !slices.Contains(api.Causes, c) {
			errs = append(errs, api.Errorf(api.CodeInvalid, "requeue_causes: there is no cause %q", c))
		}
	}
	if again := slices.Contains(s.RequeueCauses, api.CauseTimeout); again != (s.MaxTimeTotal > 0) {
		errs = append(errs, api.Errorf(api.CodeInvalid, "requeue_causes with timeout and max_time_total_ns want each other: without a bound a "+
			"job that never is done would run for ever"))
	}
	return firstError(errs)
}

// oneOf takes one of few words, or nothing.
func oneOf(field, word string, of ...string) error {
	if word == "" || slices.Contains(of, word) {
		return nil
	}
	return api.Errorf(api.CodeInvalid, "%s %q: want %s, or nothing", field, word, strings.Join(of, " or "))
}

func knownScope(field string, s api.SignalScope) error {
	return oneOf(field, string(s), string(api.ScopeRanks), string(api.ScopeSteps), string(api.ScopeBatch), string(api.ScopeFull))
}

func firstError(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// knownSignal takes what a client of ours sends: a name without SIG, or nothing.
func knownSignal(field, name string) error {
	if name == "" {
		return nil
	}
	if known, err := script.ParseSignalName(name); err != nil || known != name {
		return api.Errorf(api.CodeInvalid, "%s %q is no signal: want a name as TERM or USR1", field, name)
	}
	return nil
}

// maxExec is what the arguments and the environment of a script may come to: the kernel takes
// a quarter of the stack's usual limit of 8 MiB, and refuses a program with more.
const maxExec = 2 << 20

// checkExec refuses what no node could start.
func checkExec(s *api.Spec) error {
	total := 0
	s = s.Unpacked()
	for _, v := range s.Env {
		if name, _, ok := strings.Cut(v, "="); !ok || name == "" {
			return api.Errorf(api.CodeInvalid, "environment entry %.40q is not NAME=value", v)
		}
	}
	for _, list := range [][]string{s.Args, s.Env} {
		for _, v := range list {
			if strings.IndexByte(v, 0) >= 0 { // in a packed text, where it was not seen before
				return api.Errorf(api.CodeInvalid, "an argument or a variable, %.40q, has a NUL in it", v)
			}
			total += len(v) + 1
		}
	}
	if total > maxExec {
		return &api.Error{Code: api.CodeTooLarge, Message: fmt.Sprintf("arguments and environment have %d bytes, a program can be started "+
			"with %d", total, maxExec),
			Hint: "leave out of the environment what the job does not need: --export=NAME,NAME"}
	}
	return nil
}

// checkRoles refuses roles that do not make up the gang.
func checkRoles(s *api.Spec) error {
	bad := func(format string, args ...any) error { return api.Errorf(api.CodeInvalid, format, args...) }
	switch {
	case len(s.Roles) > api.MaxRoles:
		return bad("%d roles: at most %d are accepted", len(s.Roles), api.MaxRoles)
	case s.Components() == 0 && s.Launch != api.LaunchRanks:
		return bad("launch %s: the ranks of roles run the script each", s.Launch)
	case s.Components() > 0 && s.Launch != api.LaunchBatch:
		return bad("launch %s: the script of a heterogeneous job runs once", s.Launch)
	case s.GPUsPerNode > 0 || s.MemoryPerNode > 0 || s.RanksPerNode > 0 || s.MinNodes > 0 || s.MaxNodes > 0:
		return bad("roles count ranks: figures by node do not go with them")
	}
	total := 0
	for i := range s.Roles {
		r := &s.Roles[i]
		switch {
		case !api.RoleNameOK(r.Name):
			return bad("role name %q: want lower-case letters, digits and -, a letter first, at most %d", r.Name, api.MaxRoleName)
		case slices.ContainsFunc(s.Roles[:i], func(o api.Role) bool { return o.Name == r.Name }):
			return bad("role %s is named twice", r.Name)
		case r.Count < 1 || r.Count > api.MaxGangSize:
			return bad("role %s: %d ranks, want 1 to %d", r.Name, r.Count, api.MaxGangSize)
		case r.CPUsPerRank < 1:
			return bad("role %s: cpus_per_rank %d: a rank takes at least one", r.Name, r.CPUsPerRank)
		case r.GPUsPerRank < 0 || r.MemoryPerRank < 0 || r.VRAMBytes < 0:
			return bad("role %s: a resource may not be negative", r.Name)
		case (r.Component != nil) != (s.Components() > 0):
			return bad("role %s: either all roles are components or none is", r.Name)
		}
		if err := checkComponent(s, i); err != nil {
			return err
		}
		total += r.Count
	}
	if total != s.Size {
		return bad("size %d: the roles come to %d ranks", s.Size, total)
	}
	return nil
}

// checkComponent refuses what no component can ask for.
func checkComponent(s *api.Spec, i int) error {
	c := s.Roles[i].Component
	if c == nil {
		return nil
	}
	bad := func(format string, args ...any) error {
		return api.Errorf(api.CodeInvalid, "component %d: "+format, append([]any{i}, args...)...)
	}
	switch {
	case c.GPUsPerNode > 0 && s.Roles[i].GPUsPerRank > 0:
		return bad("gpus_per_rank and gpus_per_node exclude each other")
	case c.MaxNodes > 0 && c.MaxNodes < c.MinNodes:
		return bad("at most %d nodes is below at least %d", c.MaxNodes, c.MinNodes)
	}
	return nil
}

func checkArray(a *api.Array) error {
	if n := len(a.Indices); n == 0 || n > api.MaxArraySize {
		return api.Errorf(api.CodeInvalid, "an array of %d elements: want 1 to %d", n, api.MaxArraySize)
	}
	for i, v := range a.Indices {
		if v < 0 || i > 0 && v <= a.Indices[i-1] {
			return api.Errorf(api.CodeInvalid, "array indices must be ascending and not negative, got %d", v)
		}
	}
	return nil
}

// hashSpec names a spec by content: equal ones are stored and sent once.
func hashSpec(s *api.Spec) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic("engine: a spec is plain data: " + err.Error())
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

func (e *Engine) resources() []*cluster.Node {
	nodes := e.view.allNodes()
	out := make([]*cluster.Node, len(nodes))
	for i, n := range nodes {
		out[i] = n.Res
	}
	return out
}

// wouldStart answers --test-only by planning with the job at its place in the queue.
func (e *Engine) wouldStart(ctx context.Context, ev *gang.Submit) (why string, on []string, err error) {
	var v *given.View
	if err := e.inspect(ctx, func() { v = e.keptView() }); err != nil {
		return "", nil, err
	}
	a := &gang.Entrant{UID: ev.UID, User: ev.User, Account: ev.Spec.Account, Groups: ev.Groups, TimeLimit: ev.TimeLimit, Spec: ev.Spec}
	in, kept, word := gang.Into(e.find, ev.Partition, a, gang.KeptBy)
	if kept != nil {
		return "would wait: " + gang.WhyKept(kept, 0, a, word), nil, nil
	}
	c := &order.Candidate{Job: 1 << 62, Submit: e.opt.Clock.Now().Wall, Terms: &order.Terms{
		Tier: tierOf(e.policy().Partitions, ev.Partition), Priority: ev.Priority, Nice: ev.Spec.Nice, Size: ev.Spec.Size,
		Ask: cluster.AskIn(ev.Spec, in), User: ev.User,
		Account:   ev.Spec.Account,
		TimeLimit: ev.TimeLimit, TimeMin: ev.Spec.TimeMin, Deadline: ev.Spec.Deadline, Stop: cmp.Or(ev.Spec.Grace, e.conf().Settings.Grace)}}
	v.Queue.Insert(c)
	now := e.opt.Clock.Now().Wall
	first := waitsFirst(ev, now)
	plan := sched.Make(now, v, e.policy())
	for _, s := range plan.Starts {
		if s.Job == c.Job {
			if on = cluster.NodesOf(s.Slots); first != "" {
				return first + "would start now on " + strings.Join(on, ","), nil, nil
			}
			return "would start now on " + strings.Join(on, ","), on, nil
		}
	}
	if victims := plan.WouldPreempt(c.Job); victims != nil {
		return first + "would take the place of " + e.jobNames(victims) + ": " + sched.Explain(now, v, e.policy(), c.Job).Text, nil, nil
	}
	return first + "would wait: " + sched.Explain(now, v, e.policy(), c.Job).Text, nil, nil
}

func (e *Engine) jobNames(ids []int64) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = e.jobName(id)
	}
	if len(names) == 1 {
		return "job " + names[0]
	}
	return "jobs " + strings.Join(names, ", ")
}

// jobName is what a person calls a job: 20_4 for an element of an array.
func (e *Engine) jobName(id int64) string {
	if j := e.view.job(id); j != nil {
		return j.Ref().String()
	}
	return strconv.FormatInt(id, 10)
}

// waitsFirst says what keeps a job from being looked at before any resource does.
func waitsFirst(ev *gang.Submit, now time.Time) string {
	switch s := ev.Spec; {
	case s.Hold:
		return "would be held until gctl release; if it were not, it "
	case s.Dependency != nil:
		return "would wait for " + s.Dependency.String() + "; if that were met, it "
	case s.Begin.After(now):
		return fmt.Sprintf("would wait until %s; if that were now, it ", s.Begin.Format(time.RFC3339))
	case ev.Array != nil:
		return "the first of its elements "
	}
	return ""
}

// Explain says why a job waits, fresh from the newest state.
func (e *Engine) Explain(ctx context.Context, j *gang.Job) (*api.WhyReply, error) {
	out, err := e.explain(ctx, j)
	if err == nil && len(j.Spec.Ruled) > 0 {
		out.Why += "\nthe site's rule changed " + api.RuleText(j.Spec.Ruled)
	}
	return out, err
}

func (e *Engine) explain(ctx context.Context, j *gang.Job) (*api.WhyReply, error) {
	shown := e.show(j, false)
	out := &api.WhyReply{SchemaVersion: api.SchemaVersion, JobID: j.ID, State: shown.State, Reason: shown.Reason, Why: shown.Why}
	if shown.State != api.JobPending {
		var err error
		out.Why, err = e.notWaiting(ctx, j, &shown)
		return out, err
	}
	var v *given.View
	if err := e.inspect(ctx, func() { v = e.keptView() }); err != nil {
		return nil, err
	}
	if out.Reason == "Dependency" || out.Reason == "JobArrayTaskLimit" || out.Reason == "BeginTime" {
		if more := e.waitLines(j); more != nil {
			out.Why += "\n" + strings.Join(more, "\n")
		}
	}
	if v.Queue.Get(j.ID) != nil {
		r := sched.Explain(e.opt.Clock.Now().Wall, v, e.policy(), j.ID)
		out.Reason, out.Why = r.Word, r.Text
	}
	if j.Epoch > 0 {
		evs, err := e.store.Events(ctx, j.ID, 0, 0)
		if err != nil {
			return nil, err
		}
		if said := newestText(evs, func(ev *api.Event) bool { return ev.Epoch == j.Epoch && ev.Type == api.EventStacks }); said != "" {
			out.Why += "\nwhen it was stopped: " + said
		}
	}
	if at := gang.LatestStart(j); !at.IsZero() {
		out.Why += fmt.Sprintf("\ndeadline %s: it ends with state DEADLINE when it has not started by %s", j.Deadline.Format(time.RFC3339),
			at.Format(time.RFC3339))
	}
	return out, e.lastTry(ctx, j, out)
}

// lastTry adds what the last reservation came to nothing by: a back-off alone does not say
// which node refused, and why.
func (e *Engine) lastTry(ctx context.Context, j *gang.Job, out *api.WhyReply) error {
	if j.Rollbacks == 0 {
		return nil
	}
	evs, err := e.store.Events(ctx, j.ID, 0, 0)
	if said := newestText(evs, func(ev *api.Event) bool { return ev.Type == api.EventRolledBack }); said != "" {
		out.Why += "\nlast try: " + said
	}
	if off := gang.RefusedBy(j); j.Elsewhere && len(off) > 0 {
		out.Why += fmt.Sprintf("\nnot tried again on %s, which refused the job, while others can hold it", hostlist.Compress(off))
	}
	return err
}

// newestText is what the newest event of some kind says, empty without one.
func newestText(evs []api.Event, wanted func(*api.Event) bool) string {
	for i := range slices.Backward(evs) {
		if wanted(&evs[i]) {
			return evs[i].Text
		}
	}
	return ""
}
