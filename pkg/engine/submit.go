package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/cluster"
	"gangd/pkg/gang"
	"gangd/pkg/sched"
)

// Caller is who asks, as the kernel or a certificate says.
type Caller struct {
	UID, GID uint32
	User     string
	Admin    bool
}

// Submit checks a submission against the site, queues it, and answers when it is on disk.
func (e *Engine) Submit(ctx context.Context, r *api.SubmitRequest, who Caller) (*api.SubmitReply, error) {
	ev, warnings, err := e.resolve(r, who)
	if err != nil {
		return nil, err
	}
	count := 1
	if r.Array != nil {
		count = len(r.Array.Indices)
	}
	reply := &api.SubmitReply{SchemaVersion: api.SchemaVersion, Count: count, Warnings: warnings}
	if r.TestOnly {
		reply.Why, err = e.wouldStart(ctx, ev)
		return reply, err
	}
	out, err := e.Do(ctx, *ev)
	if err != nil {
		return nil, err
	}
	reply.JobID = out.JobIDs[0]
	return reply, nil
}

// resolve fills in what the site decides and refuses what can never run.
func (e *Engine) resolve(r *api.SubmitRequest, who Caller) (*gang.Submit, []string, error) {
	s := &r.Spec
	if err := checkSpec(s, r.Array); err != nil {
		return nil, nil, err
	}
	if who.User == "" {
		return nil, nil, api.Errorf(api.CodePermission, "user id %d has no name on the controller's host", who.UID)
	}
	part, parts, err := e.partition(s)
	if err != nil {
		return nil, nil, err
	}
	if s.Priority != nil && *s.Priority > 0 && !who.Admin {
		return nil, nil, api.Errorf(api.CodePermission, "only an admin may set a priority above 0; lower your own with --nice")
	}
	if s.Nice < 0 && !who.Admin {
		return nil, nil, api.Errorf(api.CodePermission, "only an admin may raise a priority with --nice=%d; write --nice=N with N above 0 to lower your own", s.Nice)
	}
	ev := &gang.Submit{Key: r.Key, Spec: s, Array: r.Array, UID: who.UID, GID: who.GID,
		User: who.User, Partition: strings.Join(parts, ","), TimeLimit: s.TimeLimit, Priority: -s.Nice}
	if s.Priority != nil {
		ev.Priority = *s.Priority - s.Nice
	}
	watchDefaults(s, part)
	ev.SpecHash = hashSpec(s)
	if ev.TimeLimit == 0 {
		ev.TimeLimit = part.DefaultTime
	}
	if part.MaxTime > 0 && (ev.TimeLimit > part.MaxTime || ev.TimeLimit == 0) {
		return nil, nil, &api.Error{Code: api.CodeInvalid, Message: fmt.Sprintf("time limit %s is above the %s that partition %s allows",
			limitText(ev.TimeLimit), part.MaxTime, part.Name), Hint: fmt.Sprintf("ask for --time=%d or less (minutes)", int(part.MaxTime.Minutes()))}
	}
	nodes := e.resources()
	if len(nodes) == 0 {
		return ev, []string{"no node has joined this cluster yet: the job waits for the first one that fits"}, nil
	}
	if err := sched.Unsatisfiable(nodes, &e.opt.Policy, cluster.AskOf(s, parts)); err != nil {
		return nil, nil, err
	}
	return ev, nil, nil
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
	s.GPUWatch = s.GPUWatch || p.GPUWatch && (s.GPUsPerRank > 0 || s.GPUsPerNode > 0)
}

func limitText(d time.Duration) string {
	if d == 0 {
		return "unlimited"
	}
	return d.String()
}

// partition resolves --partition: the first named one's limits apply, any of them will do.
func (e *Engine) partition(s *api.Spec) (*api.Partition, []string, error) {
	all := e.opt.Policy.Partitions
	if s.Partition == "" {
		i := slices.IndexFunc(all, func(p api.Partition) bool { return p.Default })
		if i < 0 {
			return nil, nil, &api.Error{Code: api.CodeInvalid, Message: "no partition was asked for and the site has no default one",
				Hint: "name one with --partition; ginfo -s lists them"}
		}
		return &all[i], []string{all[i].Name}, nil
	}
	var first *api.Partition
	names := strings.Split(s.Partition, ",")
	for _, name := range names {
		i := slices.IndexFunc(all, func(p api.Partition) bool { return p.Name == name })
		if i < 0 {
			have := make([]string, len(all))
			for k := range all {
				have[k] = all[k].Name
			}
			return nil, nil, &api.Error{Code: api.CodeInvalid, Message: fmt.Sprintf("no partition %q", name),
				Hint: "partitions here: " + strings.Join(have, ", ")}
		}
		if first == nil {
			first = &all[i]
		}
	}
	return first, names, nil
}

// checkSpec refuses what no client of ours would send; others speak this API too.
func checkSpec(s *api.Spec, a *api.Array) error {
	bad := func(format string, args ...any) error { return api.Errorf(api.CodeInvalid, format, args...) }
	switch {
	case s.Size < 1 || s.Size > api.MaxGangSize:
		return bad("size %d: want 1 to %d ranks", s.Size, api.MaxGangSize)
	case s.Launch != api.LaunchRanks && s.Launch != api.LaunchBatch:
		return bad("launch %q: want ranks or batch", s.Launch)
	case s.CPUsPerRank < 1:
		return bad("cpus_per_rank %d: a rank takes at least one", s.CPUsPerRank)
	case s.GPUsPerRank < 0 || s.GPUsPerNode < 0 || s.MemoryPerRank < 0 || s.MemoryPerNode < 0 || s.VRAMBytes < 0 || s.RanksPerNode < 0:
		return bad("a resource may not be negative")
	case s.GPUsPerRank > 0 && s.GPUsPerNode > 0:
		return bad("gpus_per_rank and gpus_per_node exclude each other")
	case s.Share && s.VRAMBytes == 0:
		return bad("share needs vram_bytes: cards are shared by VRAM")
	case s.GPUWatch && s.GPUsPerRank == 0 && s.GPUsPerNode == 0:
		return &api.Error{Code: api.CodeInvalid, Message: "gpu_watch: the job asks for no cards that could be watched",
			Hint: "ask for some with --gpus-per-rank, or leave --gpu-watch out"}
	case s.StallTimeout < 0 && s.StallTimeout != api.WatchdogOff:
		return bad("stall_timeout_ns %d: want a time, 0 for the site's, or -1 for none", s.StallTimeout)
	case s.TimeLimit < 0 || s.Grace < 0:
		return bad("a time may not be negative")
	case len(s.Script) == 0:
		return bad("the script is empty")
	case len(s.Script) > api.MaxScriptBytes:
		return api.Errorf(api.CodeTooLarge, "the script has %d bytes, at most %d are accepted", len(s.Script), api.MaxScriptBytes)
	case !strings.HasPrefix(s.WorkDir, "/"):
		return bad("work_dir %q is not absolute", s.WorkDir)
	case strings.ContainsFunc(s.Name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return bad("name %q has control characters", s.Name)
	case s.Notice != nil && s.TimeLimit > 0 && s.Notice.Lead >= s.TimeLimit:
		return bad("the notice comes %s before the end, but the time limit is %s", s.Notice.Lead, s.TimeLimit)
	}
	for _, v := range s.Env {
		if !strings.Contains(v, "=") || strings.ContainsRune(v, 0) {
			return bad("environment entry %.40q is not NAME=value", v)
		}
	}
	if a != nil {
		return checkArray(a)
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
func (e *Engine) wouldStart(ctx context.Context, ev *gang.Submit) (string, error) {
	var v *sched.View
	if err := e.inspect(ctx, func() { v = e.keptView() }); err != nil {
		return "", err
	}
	parts := strings.Split(ev.Partition, ",")
	c := &sched.Candidate{Job: 1 << 62, Priority: ev.Priority, Size: ev.Spec.Size, Submit: e.opt.Clock.Now().Wall,
		Ask: cluster.AskOf(ev.Spec, parts), TimeLimit: ev.TimeLimit}
	i, _ := slices.BinarySearchFunc(v.Queue, c, func(a, b *sched.Candidate) int {
		if sched.Less(a, b) {
			return -1
		}
		return 1
	})
	v.Queue = slices.Insert(v.Queue, i, c)
	now := e.opt.Clock.Now().Wall
	first := waitsFirst(ev, now)
	for _, s := range sched.Make(now, v, &e.opt.Policy).Starts {
		if s.Job == c.Job {
			return first + "would start now on " + strings.Join(slotNodes(s.Slots), ","), nil
		}
	}
	return first + "would wait: " + sched.Explain(v, &e.opt.Policy, c.Job).Text, nil
}

// waitsFirst says what keeps a job from being looked at before any resource does.
func waitsFirst(ev *gang.Submit, now time.Time) string {
	switch s := ev.Spec; {
	case s.Hold:
		return "would be held until gctl release; if it were not, it "
	case s.Begin.After(now):
		return fmt.Sprintf("would wait until %s; if that were now, it ", s.Begin.Format(time.RFC3339))
	case ev.Array != nil:
		return "the first of its elements "
	}
	return ""
}

func slotNodes(slots []cluster.Slot) []string {
	var out []string
	for _, s := range slots {
		if !slices.Contains(out, s.Node) {
			out = append(out, s.Node)
		}
	}
	return out
}

// Explain says why a job waits, fresh from the newest state.
func (e *Engine) Explain(ctx context.Context, j *gang.Job) (*api.WhyReply, error) {
	shown := e.show(j, false)
	out := &api.WhyReply{SchemaVersion: api.SchemaVersion, JobID: j.ID, State: shown.State, Reason: shown.Reason, Why: shown.Why}
	if shown.State != api.JobPending {
		out.Why = "not waiting: " + string(shown.State)
		if shown.Verdict != "" {
			out.Why += ": " + shown.Verdict
		}
		return out, nil
	}
	var v *sched.View
	if err := e.inspect(ctx, func() { v = e.keptView() }); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(v.Queue, func(c *sched.Candidate) bool { return c.Job == j.ID }) {
		r := sched.Explain(v, &e.opt.Policy, j.ID)
		out.Reason, out.Why = r.Word, r.Text
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
	if err != nil {
		return err
	}
	for _, ev := range slices.Backward(evs) {
		if ev.Type == api.EventRolledBack {
			out.Why += "\nlast try: " + ev.Text
			break
		}
	}
	return nil
}
