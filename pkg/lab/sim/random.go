package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"gangd/pkg/api"
)

// Shape bounds what [Random] makes.
type Shape struct {
	Nodes, Jobs, Faults int
	Span                time.Duration // in which jobs come and faults happen
}

// DefaultShape is four to six nodes, twelve to sixteen jobs, up to twenty faults in a minute and a
// half.
var DefaultShape = Shape{Nodes: 4, Jobs: 12, Faults: 20, Span: 90 * time.Second}

// Random makes the scenario of a seed.
func Random(seed uint64, shape Shape) *Scenario {
	d := rand.New(rand.NewPCG(seed, 0))
	sc := &Scenario{Name: fmt.Sprintf("random %d", seed), Seed: seed}
	cards := d.IntN(3)
	for i := range shape.Nodes + d.IntN(3) {
		sc.Nodes = append(sc.Nodes, Node{Name: fmt.Sprintf("n%d", i+1), CPUs: 4, Cards: cards * 2})
	}
	for range shape.Jobs + d.IntN(5) {
		sc.Jobs = append(sc.Jobs, randomJob(d, len(sc.Nodes), cards*2, shape.Span))
	}
	for range 1 + d.IntN(shape.Faults) {
		sc.Faults = append(sc.Faults, randomFault(d, sc, shape.Span))
	}
	enrich(rand.New(rand.NewPCG(seed, 7)), sc, shape.Span)
	reservations(rand.New(rand.NewPCG(seed, 1)), sc, shape.Span)
	imports(rand.New(rand.NewPCG(seed, 9)), sc)
	ports(rand.New(rand.NewPCG(seed, 2)), sc)
	allocations(rand.New(rand.NewPCG(seed, 3)), sc, shape.Span)
	peers(rand.New(rand.NewPCG(seed, 11)), sc)
	epilogs(rand.New(rand.NewPCG(seed, 12)), sc)
	licences(rand.New(rand.NewPCG(seed, 13)), sc)
	waiters(rand.New(rand.NewPCG(seed, 14)), sc)
	return sc
}

// waiters are some nodes of every third schedule, by dice of their own.
func waiters(d *rand.Rand, sc *Scenario) {
	if d.IntN(3) > 0 {
		return
	}
	for i := range sc.Nodes {
		sc.Nodes[i].Waits = d.IntN(2) == 0
	}
}

// licences are scarce in every third schedule, by dice of their own.
func licences(d *rand.Rand, sc *Scenario) {
	if d.IntN(3) > 0 {
		return
	}
	sc.Licences = 1 + d.IntN(3)
	for i := range sc.Jobs {
		if d.IntN(2) == 0 {
			sc.Jobs[i].Licences = 1 + d.IntN(sc.Licences)
		}
	}
}

// epilogs are on some nodes of every third schedule, by dice of their own.
func epilogs(d *rand.Rand, sc *Scenario) {
	if d.IntN(3) > 0 {
		return
	}
	for i := range sc.Nodes {
		if d.IntN(2) == 0 {
			sc.Nodes[i].Epilog = seconds(d, 0.05, []float64{2, 15}[d.IntN(2)])
		}
	}
}

// peers makes the ranks of some gangs notice each other, by dice of their own.
func peers(d *rand.Rand, sc *Scenario) {
	for i := range sc.Jobs {
		if j := &sc.Jobs[i]; !j.Batch && j.Ranks > 1 && d.IntN(2) == 0 {
			j.Runs.Peers = true
		}
	}
}

// Several makes of the scenario of a seed one of two or three controllers, and adds what can happen
// to them and to their database.
func Several(seed uint64, shape Shape) *Scenario {
	sc := Random(seed, shape)
	sc.Name = fmt.Sprintf("several %d", seed)
	d := rand.New(rand.NewPCG(seed, 4))
	sc.Controllers = 2 + d.IntN(2)
	if sc.History != (History{}) { // the clients here ask for as long as all are away: keys outlive that
		sc.History = History{Memory: 10 * time.Minute}
	}
	sc.Faults = slices.DeleteFunc(sc.Faults, func(f Fault) bool { return f.Do == DiskFull || f.Do == DiskBroken })
	total := 0
	for i := range severalMix {
		total += severalMix[i].weight
	}
	for range 3 + d.IntN(12) {
		x, i := d.IntN(total), 0
		for ; x >= severalMix[i].weight; i++ {
			x -= severalMix[i].weight
		}
		k := &severalMix[i]
		sc.Faults = append(sc.Faults, Fault{At: seconds(d, 0, shape.Span.Seconds()), Do: k.kind, For: seconds(d, k.from, k.to), N: d.IntN(5),
			Node: sc.Nodes[d.IntN(len(sc.Nodes))].Name})
	}
	return sc
}

// severalMix is mix, of several controllers.
var severalMix = []struct {
	kind     Kind
	weight   int
	from, to float64
}{
	{CrashController, 6, 0.1, 90}, {FreezeController, 6, 0.3, 30}, {Term, 3, 0.1, 30}, {CrashAll, 2, 0.5, 130},
	{CutNodes, 4, 1, 90}, {CutNode, 8, 1, 120}, {CutDatabase, 5, 0.3, 60}, {DatabaseDown, 3, 0.3, 130}, {DatabaseSlow, 2, 2, 20},
	{AddController, 2, 0, 0}, {DropController, 1, 0, 0},
}

// allocations makes steps of the scripts of most batch jobs, and adds what people and accidents
// do to steps, by dice of their own.
func allocations(d *rand.Rand, sc *Scenario, span time.Duration) {
	for i := range sc.Jobs {
		j := &sc.Jobs[i]
		if !j.Batch || d.IntN(4) == 0 {
			continue
		}
		for range 1 + d.IntN(3) {
			j.Steps = append(j.Steps, randomStep(d, j))
		}
		j.Runs.Awaits = d.IntN(2) == 0
		j.Runs.OnNotice = NoticeReaction(d.IntN(4))
		if j.Lead > 0 {
			j.Scope = []api.SignalScope{api.ScopeRanks, api.ScopeBatch, api.ScopeFull}[d.IntN(3)]
			j.Lead = seconds(d, 1, 15)
			if j.TimeLimit > 0 && d.IntN(3) == 0 {
				j.TotalTime = seconds(d, 10, 40)
			}
		}
		if j.GPUs > 0 && d.IntN(2) == 0 { // without cards nobody finds out
			j.StallTimeout = seconds(d, 2, 5)
			b := &j.Steps[d.IntN(len(j.Steps))].Runs
			b.Beats, b.Hangs = true, seconds(d, 0.5, 6)
		}
		if d.IntN(6) == 0 {
			j.ReadyTimeout = seconds(d, 4, 10)
		}
		for range d.IntN(2) {
			f := Fault{At: j.At + seconds(d, 0, span.Seconds()/3), Do: []Kind{CrashStep, StopStep, Requeue, Preempt, CrashRank, Cancel}[d.IntN(6)],
				Job: i, N: d.IntN(2)}
			sc.Faults = append(sc.Faults, f)
		}
	}
}

func randomStep(d *rand.Rand, j *Job) Step {
	s := Step{After: seconds(d, 0, 4), Tasks: 1 + d.IntN(max(j.Ranks, 1)), Overlap: d.IntN(4) == 0, KeepGoing: d.IntN(3) == 0,
		Runs: randomBehaviour(d, j.Ranks)}
	if d.IntN(3) == 0 {
		s.Nodes = 1 + d.IntN(max(j.Nodes, 1))
	}
	b := &s.Runs
	b.For = seconds(d, 0.05, 15)
	b.Daemon, b.Saves = false, seconds(d, 0.1, 5)
	b.OnNotice = NoticeReaction(d.IntN(4))
	b.Beats = d.IntN(2) == 0
	if d.IntN(3) > 0 {
		b.Ready = seconds(d, 0.1, 3)
	}
	return s
}

// enrich adds roles, gates, deadlines, dependencies, updates and a bounded history, with dice
// of their own: what the others give does not change with these.
func enrich(d *rand.Rand, sc *Scenario, span time.Duration) {
	for i := range sc.Jobs {
		j := &sc.Jobs[i]
		if i > 0 && d.IntN(6) == 0 {
			j.AfterOK = 1 + d.IntN(i)
		}
		if d.IntN(10) == 0 {
			j.Deadline = seconds(d, 10, 100)
		}
		if j.Batch || j.Array > 0 {
			continue
		}
		if d.IntN(6) == 0 {
			j.ReadyTimeout, j.Runs.Ready = seconds(d, 2, 8), seconds(d, 0.1, 4)
		}
		j.Lead0 = j.Ranks > 1 && j.GPUs == 0 && j.Nodes == 0 && d.IntN(6) == 0
	}
	for range d.IntN(5) {
		f := Fault{At: time.Duration(d.Int64N(int64(span))).Round(time.Millisecond), Do: Update, Job: d.IntN(len(sc.Jobs)),
			For: seconds(d, 1, 40), N: d.IntN(updates)}
		if d.IntN(2) == 0 {
			f = atMoment(d, f)
		}
		sc.Faults = append(sc.Faults, f)
	}
	if d.IntN(4) > 0 {
		return
	}
	sc.History = History{Memory: 30 * time.Second, Jobs: 1 + d.IntN(6)}
	if d.IntN(2) == 0 {
		sc.History = History{Memory: 30 * time.Second, Keep: seconds(d, 30, 90)}
	}
	// A key is forgotten with its job, which is another job for who repeats it then.
	sc.Faults = slices.DeleteFunc(sc.Faults, func(f Fault) bool { return f.Do == Resubmit || f.Do == LoseAnswer })
}

// reservations are added to every third schedule, by dice of their own.
func reservations(d *rand.Rand, sc *Scenario, span time.Duration) {
	if d.IntN(3) > 0 {
		return
	}
	for range 1 + d.IntN(3) {
		sc.Faults = append(sc.Faults, Fault{At: seconds(d, 0, span.Seconds()*2/3), Do: ReserveNode, Node: sc.Nodes[d.IntN(len(sc.Nodes))].Name,
			For: seconds(d, 2, 40), N: d.IntN(3)})
	}
}

// imports are added to jobs of every fourth schedule, by dice of their own.
func imports(d *rand.Rand, sc *Scenario) {
	if d.IntN(4) > 0 {
		return
	}
	for i := range sc.Jobs {
		if d.IntN(3) == 0 {
			sc.Jobs[i].Import, sc.Jobs[i].Stalls = seconds(d, 0.5, 30), d.IntN(4) == 0
		}
	}
}

func seconds(d *rand.Rand, from, to float64) time.Duration {
	return time.Duration((from + d.Float64()*(to-from)) * float64(time.Second)).Round(time.Millisecond)
}

func randomJob(d *rand.Rand, nodes, cards int, span time.Duration) Job {
	j := Job{At: time.Duration(d.Int64N(int64(span * 2 / 3))).Round(time.Millisecond), Ranks: 1 + d.IntN(6)}
	if d.IntN(3) == 0 {
		j.At = seconds(d, 0, 3)
	}
	if d.IntN(4) == 0 {
		j.Nodes = 1 + d.IntN(min(nodes, j.Ranks))
	}
	if cards > 0 && d.IntN(2) == 0 {
		j.GPUs = 1
	}
	// What no node could ever meet is refused at once, which teaches nothing here.
	if room := max(cards*j.GPUs, 4*(1-j.GPUs)); j.Nodes > 0 && (j.Ranks > room*j.Nodes || j.GPUs > 0 && room == 0) {
		j.Nodes = 0
	}
	j.Batch = d.IntN(6) == 0
	if d.IntN(8) == 0 {
		j.Array, j.Limit = 2+d.IntN(3), d.IntN(3)
		j.Ranks = 1 + d.IntN(2)
		j.Nodes = 0
	}
	if d.IntN(4) == 0 {
		j.TimeLimit = seconds(d, 3, 20)
	}
	if d.IntN(4) == 0 {
		j.Grace = seconds(d, 0.5, 6)
	}
	if d.IntN(4) == 0 {
		j.Lead = seconds(d, 0.5, 2.5)
	}
	if d.IntN(3) == 0 {
		j.MaxRetries = 1 + d.IntN(3)
	}
	j.NoRequeue = d.IntN(12) == 0
	j.Hold = d.IntN(20) == 0
	j.Priority = int64(d.IntN(3))
	j.Runs = randomBehaviour(d, j.Ranks)
	return j
}

func randomBehaviour(d *rand.Rand, ranks int) Behaviour {
	b := Behaviour{For: seconds(d, 0.05, 25), OnTerm: TermReaction(d.IntN(4))}
	if d.IntN(3) == 0 {
		b.Skew = seconds(d, 0, 2)
	}
	if d.IntN(8) == 0 {
		b.Exit = 1 + d.IntN(3)
	}
	if d.IntN(4) == 0 {
		b.FailEpochs, b.FailRank, b.FailCode = 1+d.IntN(3), d.IntN(ranks), 3
	}
	b.Daemon = d.IntN(6) == 0
	b.Checkpoints = d.IntN(4) == 0
	return b
}

// mix is how often each kind of fault is chosen, and how long it lasts.
var mix = []struct {
	kind     Kind
	weight   int
	from, to float64 // seconds
	n        int
}{
	{CrashGangd, 6, 0.1, 20, 0}, {FreezeGangd, 2, 0.5, 20, 0}, {DiskFull, 2, 1, 15, 2}, {DiskBroken, 2, 0, 0, 2}, {OldStore, 1, 2, 15, 0},
	{CrashNoded, 6, 0.05, 15, 0}, {FreezeNoded, 4, 0.5, 50, 0}, {CrashShim, 4, 0, 0, 2}, {CrashRank, 3, 0, 0, 2}, {Reboot, 4, 0.5, 70, 0},
	{Suspend, 4, 0.5, 90, 0}, {Unkillable, 3, 1, 40, 0}, {Refuse, 2, 1, 15, 6}, {SlowLaunch, 2, 2, 15, 0},
	{Cut, 6, 0.5, 80, 0}, {CutUp, 4, 0.5, 60, 0}, {CutDown, 4, 0.5, 60, 0}, {Flap, 3, 5, 30, 8}, {Reset, 4, 0, 0, 0}, {Slow, 3, 2, 20, 0},
	{Twice, 3, 5, 40, 0}, {ShutDown, 4, 0.5, 70, 0},
	{Cancel, 5, 0, 0, 2}, {Requeue, 4, 0, 0, 0}, {Preempt, 4, 0, 0, 0}, {HoldJob, 2, 0, 0, 0}, {ReleaseJob, 2, 0, 0, 0},
	{Resubmit, 3, 0, 0, 0}, {LoseAnswer, 3, 5, 30, 0}, {DrainNode, 2, 0, 0, 0}, {ResumeNode, 2, 0, 0, 0}, {FenceNode, 2, 0, 0, 0},
	{AskReboot, 3, 0, 0, 3},
}

func randomFault(d *rand.Rand, sc *Scenario, span time.Duration) Fault {
	total := 0
	for i := range mix {
		total += mix[i].weight
	}
	x := d.IntN(total)
	i := 0
	for ; x >= mix[i].weight; i++ {
		x -= mix[i].weight
	}
	k := &mix[i]
	f := Fault{At: time.Duration(d.Int64N(int64(span))).Round(time.Millisecond), Do: k.kind, Node: sc.Nodes[d.IntN(len(sc.Nodes))].Name,
		Job: d.IntN(len(sc.Jobs)), For: seconds(d, k.from, k.to)}
	if k.n > 0 {
		f.N = d.IntN(k.n)
	}
	if k.kind == CrashShim {
		f.Node = ""
	}
	switch k.kind {
	case CrashGangd, CrashNoded:
		f = atCount(d, f)
	case OldStore: // with its time doubled it has to end within the span
		f.At /= 2
	}
	if k.kind != OldStore && f.When.On == "" && d.IntN(3) == 0 {
		f = atMoment(d, f)
	}
	return f
}

// atCount turns some crashes into ones beside a commit or a sending.
func atCount(d *rand.Rand, f Fault) Fault {
	switch d.IntN(4) {
	case 0:
		f.At, f.Do, f.When = 0, CrashGangd, Point{On: AtCommit, N: 1 + d.IntN(180), After: d.IntN(2) == 0}
	case 1:
		f.At, f.Do, f.When = 0, CrashSender, Point{On: AtSend, N: 1 + d.IntN(2500), After: d.IntN(2) == 0}
	}
	return f
}

// moments are what happens to a job while things may go wrong.
var moments = []api.EventType{api.EventSubmitted, api.EventReserved, api.EventPrepared, api.EventStarted, api.EventNotice,
	api.EventRankExited,
	api.EventDrainStarted, api.EventMemberStopped, api.EventDrainCompleted, api.EventRolledBack}

// atMoment makes a fault follow an event of a job closely.
func atMoment(d *rand.Rand, f Fault) Fault {
	f.When = OnEvent(moments[d.IntN(len(moments))], f.Job, 1+d.IntN(2))
	f.At = 0
	if d.IntN(2) == 0 {
		f.At = seconds(d, 0, []float64{0.002, 0.05, 2, 10}[d.IntN(4)])
	}
	return f
}
