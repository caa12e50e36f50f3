package noded

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/outpath"
	"gangd/pkg/core/rankenv"
	"gangd/pkg/core/script"
	"gangd/pkg/node/proc"
	"gangd/pkg/node/shim"
	"gangd/pkg/wire/session"
)

// prepare starts the member's shim, which answers ready or refused. What the user owns
// (working directory, output) is checked by the shim, as the user.
func (m *member) prepare(ctx context.Context, body *api.AssignmentBody, spec *api.Spec) {
	m.begun.at = time.Now()
	refusal, seen := m.start(ctx, body, spec)
	if refusal != nil {
		m.become(ctx, api.MemberActual{Phase: api.PhaseRefused, Refusal: refusal, Cards: seen})
	}
}

// start says why the member is refused, and how its cards were seen where they are why; nil, too, of a
// member that is over by now, or where the daemon ends.
func (m *member) start(ctx context.Context, body *api.AssignmentBody, spec *api.Spec) (refusal *api.Refusal, seen []api.CardSample) {
	if err := m.d.state.placeMembers(); err != nil { // somebody may have tidied up
		return nodeFault("%v", err), nil
	}
	if len(spec.Script) == 0 { // no job is without one: the controller has lost it
		return refuse(api.BlameJob, "the controller can't read its script and environment from its store any more"), nil
	}
	if refusal := m.d.refuseUnfit(ctx); refusal != nil {
		return refusal, nil
	}
	handed, refusal := m.d.fetchCheckpoints(ctx, m.key, body, spec)
	defer handed.drop()
	if refusal != nil {
		return refusal, nil
	}
	asked := time.Now()
	image, refusal, ok := m.imageOf(ctx, body, spec)
	m.begun.image = time.Since(asked)
	if !ok || refusal != nil {
		return refusal, nil
	}
	s, refusal := m.d.shimSpec(m.key, m.dir, body, spec, handed, image)
	if refusal != nil {
		return refusal, nil
	}
	if seen, refusal = m.d.cards.give(ctx, m.key, s.Cards); refusal != nil {
		return refusal, seen
	}
	m.spec = s // from here on its cards go back with it
	asked = time.Now()
	if refusal, ok := m.prolog(ctx, s, body); refusal != nil || !ok {
		return refusal, nil
	}
	m.begun.prolog = time.Since(asked)
	select {
	case m.d.starts <- struct{}{}:
		defer func() { <-m.d.starts }()
	case <-ctx.Done():
		return nil, nil
	}
	m.known.Store(s)
	conn, err := m.d.shims.Start(s, spec.Script)
	if err == nil {
		if err = handed.place(s); err != nil { // before the shim's first word is taken in
			_ = conn.Send(shim.Command{Bye: true})
			_ = conn.Close()
		}
	}
	if err != nil {
		return refuse(blameForFiles(err, body, spec), "%v", err), nil
	}
	m.talk(conn)
	return nil, nil
}

// smallMember is what any node has room for.
const smallMember = 64 << 10

// blameForFiles judges why a member's own files could not be written: that a node has no room
// for a small member is its fault, for a large one perhaps that of those who made it large.
func blameForFiles(err error, body *api.AssignmentBody, spec *api.Spec) api.Blame {
	size := spec.TextBytes() + 256*int64(len(body.Ranks))
	if body.Checkpoint == 0 && size <= smallMember || !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return api.BlameNode
	}
	return api.BlameUnknown
}

func (m *member) talk(c *shim.Conn) { m.conn, m.answers = c, c.Answers() }

func (d *daemon) shimSpec(k api.MemberKey, dir string, body *api.AssignmentBody, spec *api.Spec, handed *fetchedCheckpoints,
	image *image) (*shim.Spec, *api.Refusal) {
	spec = image.environ(spec)
	node := nodeOf(body, d.opts.Name)
	if node < 0 || len(body.Ranks) == 0 {
		return nil, nodeFault("job %d epoch %d is not placed on node %s", k.Job, k.Epoch, d.opts.Name)
	}
	acc, refusal := d.now().accounts.resolve(body.User, body.UID, body.GID)
	if refusal != nil {
		return nil, refusal
	}
	if acc.name != body.User { // what he is called here is what his processes are told
		own := *body
		own.User = acc.name
		body = &own
	}
	var err error
	// The number at the end makes names fresh even when the daemon died between two tries of
	// one epoch: a cgroup that was killed once kills what is later cloned into it.
	name := fmt.Sprintf("%s.%08x", keyName(k), rand.Uint32())
	s := &shim.Spec{MemberKey: k, Node: d.opts.Name, Dir: dir, JobName: body.Name, Restarts: body.RestartCount,
		SwitchUser: !d.opts.SingleUser, User: body.User, UID: acc.uid, GID: acc.gid, Groups: acc.groups, Home: acc.home,
		WorkDir: spec.WorkDir, Umask: spec.Umask, OpenMode: spec.OpenMode, Args: spec.Args,
		TimeLimit: body.TimeLimit, Notice: spec.Notice, StopSignal: spec.StopSignal, Grace: body.Grace, GraceMax: spec.GraceMax,
		Lease: d.leaseLeft(),
		Watch: body.Watch}
	if spec.WorkDir != "" {
		s.CheckpointDir = filepath.Join(spec.WorkDir, ".gang", strconv.FormatInt(k.Job, 10))
	}
	if s.SwitchUser {
		limits, nice := d.logins.Of(s.User, s.UID, s.Groups)
		s.LoginLimits, s.Nice = proc.With(limits, d.now().JobLimits), nice
	}
	s.Whole = len(body.Nodes) == 1
	s.Batch = spec.Launch == api.LaunchBatch
	if s.Propagate = d.site().PropagateLimits; spec.LimitsAsked {
		s.Limits = spec.Limits
	} else if s.Limits, err = spec.Limits.Choose(s.Propagate); err != nil {
		return nil, nodeFault("propagate_limits: %v", err)
	}
	s.LastWords = s.Batch && spec.LastWords
	if s.OpenMode == "" {
		s.OpenMode = "append" // a requeue never wipes what it had
	}
	if s.StopSignal == "" {
		s.StopSignal = "TERM"
	}
	s.Traps = trapped(spec, s.StopSignal)
	s.SetPlace(d.cgroups.Place(d.state.id+"-"+name, d.marker(name)))
	s.Cards = cardsOf(node, body, spec)
	d.fillRanks(s, node, acc, body, spec, handed)
	if s.Private, refusal = d.privateOf(spec.WorkDir, spec.TmpPerNode); refusal != nil {
		return nil, refusal
	}
	if s.TaskHooks, err = d.now().Hooks.around(); err != nil {
		return nil, nodeFault("%v", err)
	}
	d.contain(s, spec, image)
	if refusal := d.cpus.give(s, node, body, spec, d.cards.list()); refusal != nil {
		return nil, refusal
	}
	if s.Deny, err = d.deny(s.Cards); err != nil {
		return nil, nodeFault("%v", err)
	}
	if body.Ranks[0].Node == node {
		port, err := d.ports.take(k)
		if err != nil {
			return nil, refuse(api.BlameUnknown, "%v", err) // anybody can bind them
		}
		s.Port = port
	}
	return s, nil
}

// nodeOf is the place of a node in a gang, -1: it has none.
func nodeOf(body *api.AssignmentBody, name string) int {
	return slices.IndexFunc(body.Nodes, func(p api.Place) bool { return p.Name == name })
}

// trapped are the signals of the job's end that its script sets a trap for.
func trapped(spec *api.Spec, stop string) (signals []string) {
	ask := []string{"TERM", stop}
	if spec.Notice != nil {
		ask = append(ask, spec.Notice.Signal)
	}
	for _, sig := range ask {
		if !slices.Contains(signals, sig) && script.Traps(string(spec.Script), sig) {
			signals = append(signals, sig)
		}
	}
	return signals
}

// leaseLeft is the lease of a member that starts now, counted from the last contact.
func (d *daemon) leaseLeft() time.Duration {
	return LeaseLeft(d.site().Lease, d.client.LastContact(), session.BootTime())
}

// fillRanks writes the ranks of this node that run a process: their environment and files.
func (d *daemon) fillRanks(s *shim.Spec, node int, acc *account, body *api.AssignmentBody, spec *api.Spec, handed *fetchedCheckpoints) {
	names := make([]string, len(body.Nodes))
	for i, p := range body.Nodes {
		names[i] = p.Name
	}
	s.CardNames = d.cardNames(spec, s.Cards)
	env := rankenv.Member{MemberKey: s.MemberKey, Spec: spec, Body: body, Node: node, NodeList: hostlist.Compress(names),
		Marker: s.Marker[len(rankenv.MarkerName)+1:], BinDir: d.opts.BinDir, Commands: d.opts.Commands, Home: acc.home,
		CardIndex: d.cards.indexes(), CardNames: s.CardNames,
		Sockets: rankSockets(s.Dir), Watchdog: body.Watch.StallTimeout, Checkpoints: handed.env(s.Dir)}
	environ := env.Environ()
	for i, r := range env.Ranks() {
		v := outpath.Vars{Job: s.Job, ArrayJob: body.ArrayJobID, ArrayIndex: body.ArrayIndex, Name: body.Name, User: body.User,
			Node: d.opts.Name, NodeIndex: node, Rank: r, Restarts: body.RestartCount}
		s.Ranks = append(s.Ranks, shim.RankSpec{Rank: r, Env: environ[i],
			Output: outpath.Output(spec, v), Error: outpath.Error(spec, v), Input: input(spec, v)})
	}
	s.PidsMax, s.CPUs = d.processes, cpusOf(spec, body, node)
	s.MemoryMax = memoryHere(spec, body, node)
}

// memoryHere is what a member may use, 0: it is not limited.
func memoryHere(spec *api.Spec, body *api.AssignmentBody, node int) int64 {
	first := slices.IndexFunc(body.Ranks, func(p api.RankPlace) bool { return p.Node == node })
	if whole := spec.PartAt(max(first, 0)).MemoryPerNode; whole > 0 {
		return whole
	}
	return memoryOf(spec, body, node)
}

// memoryOf is what the ranks of a node may use together; 0 where one of them has no figure,
// because what it uses is not limited then.
func memoryOf(spec *api.Spec, body *api.AssignmentBody, node int) int64 {
	var sum int64
	for r, p := range body.Ranks {
		if p.Node != node {
			continue
		}
		mem := spec.FiguresOf(r).Memory
		if mem == 0 {
			return 0
		}
		sum += mem
	}
	return sum
}

func input(spec *api.Spec, v outpath.Vars) string {
	if spec.Input == "" {
		return ""
	}
	p := outpath.Expand(spec.Input, v)
	if path.IsAbs(p) {
		return path.Clean(p)
	}
	return path.Join(spec.WorkDir, p)
}
