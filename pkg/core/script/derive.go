package script

import (
	"slices"
	"strconv"
	"strings"

	"gangd/pkg/api"
)

// derive computes what the settings imply, in the order in which one figure needs
// another: ranks, cards, CPUs, memory, stop.
func (a *Ask) derive() ([]Warning, error) {
	a.Spec.Notify = append(a.Spec.Notify, mail(a.mailTypes, a.mailUser)...)
	if len(a.Spec.Notify) > api.MaxNotify {
		return nil, &Error{Msg: "too many addresses to be told: " + strconv.Itoa(len(a.Spec.Notify)) + ", at most " + strconv.Itoa(api.MaxNotify)}
	}
	if a.roles != nil {
		if err := a.deriveRoles(); err != nil {
			return nil, err
		}
		return a.stop()
	}
	if err := a.reconcile(); err != nil {
		return nil, err
	}
	warn, err := a.ranks()
	if err != nil {
		return nil, err
	}
	for _, step := range []func() error{a.cards, a.cpus, a.memory} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	late, err := a.stop()
	if err != nil {
		return nil, err
	}
	a.asked()
	return append(warn, late...), nil
}

// asked keeps the words in which a batch job asked for tasks, memory, cards and CPUs, which deriving
// brings to others.
func (a *Ask) asked() {
	s := &a.Spec
	text := func(option string) string {
		if by := a.By(option); by != nil {
			return strings.TrimSpace(by.Value)
		}
		return ""
	}
	figures := text("cpus-per-task") != "" || a.overcommit || s.MemoryPerRank > 0 || s.MemoryPerNode > 0 || s.GPUsPerRank > 0 ||
		s.GPUsPerNode > 0
	slurms := a.size == 0 && a.By("ranks-per-node") == nil // counted in sbatch's words
	if s.Launch != api.LaunchBatch || !slurms && !figures {
		return
	}
	s.Asked = &api.Asked{MemoryPerNode: a.memNode, MemoryPerCPU: a.memCPU, MemoryPerGPU: a.memGPU, CPUsPerGPU: a.cpusPerGPU,
		GPUs: text("gpus"), GPUsPerNode: text("gpus-per-node"), GPUsPerTask: text("gpus-per-rank"),
		GPUsPerSocket: text("gpus-per-socket"), GPUBind: text("gpu-bind"), GPUFreq: text("gpu-freq")}
	if slurms {
		s.Asked.ByWords, s.Asked.Told, s.Asked.TasksLeft = true, a.told(), a.tasks() == 0
	}
	_ = numberInto(&s.Asked.CPUsPerTask, text("cpus-per-task"), 1, 1<<20) // taken before
	for _, option := range []string{"gpus-per-rank", "gpus-per-node", "gpus", "gres", "gpus-per-socket"} {
		if by := a.By(option); by != nil && s.Asked.CardsBy == "" {
			s.Asked.CardsBy = by.Name
		}
	}
	switch {
	case a.overcommit:
		s.Asked.Tasks = a.ntasks
	case a.slots > 0:
		s.Asked.Tasks = a.slots
	case a.gpusTotal > 1 && s.Size == 1 && a.nodesMin == 0 && a.ntasks == 0 && a.size == 0 && a.perNode == 0 && s.RanksPerNode == 0:
		s.Asked.Spread = true
	}
}

// ranks finds the size of the gang, its nodes and how it is launched.
//
// --size counts ranks and runs the script in each. sbatch's words count slots for tasks
// and run the script once; a script without either is one rank that is also the batch.
func (a *Ask) ranks() ([]Warning, error) {
	s := &a.Spec
	if s.Launch == "" {
		s.Launch = api.LaunchBatch
		if a.size > 0 {
			s.Launch = api.LaunchRanks
		}
	}
	if a.perNode == 0 && a.ntasks == 0 && a.size == 0 && s.RanksPerNode == 0 {
		a.perNode = a.tasksOfShape()
	}
	a.perNodeSaid = a.perNode > 0
	counted := countedNodes(s.Constraint)
	if a.nodesMax > 0 && counted > a.nodesMax {
		counted = 0 // which the controller refuses
	}
	nodes := max(a.nodesMin, counted, 1)
	switch {
	case a.size > 0:
		s.Size = a.size
	case a.ntasks > 0 && a.overcommit:
		s.Size = min(nodes, a.ntasks) // CPUs are asked for by node, and the tasks share them
		a.perNode = 1
	case a.ntasks > 0:
		s.Size = a.ntasks
	case s.RanksPerNode > 0:
		s.Size = nodes * s.RanksPerNode
	default:
		// One task a node is what sbatch takes when it is told only the nodes.
		if a.perNode == 0 && (a.nodesMin > 0 || counted > 0) {
			a.perNode = 1
		}
		s.Size = nodes * max(a.perNode, 1)
	}
	if s.Size > api.MaxGangSize {
		err := a.Refuse("nodes", "asks for "+strconv.Itoa(s.Size)+" ranks, at most "+strconv.Itoa(api.MaxGangSize)+" are accepted",
			"ask for fewer")
		if e, ok := err.(*Error); ok {
			e.Bad = a.By("nodes")
		}
		return nil, err
	}
	if s.RanksPerNode == 0 {
		s.RanksPerNode = a.perNode
	}
	var warn []Warning
	s.MinNodes, s.MaxNodes = a.nodesMin, min(a.nodesMax, s.Size)
	if s.MinNodes > s.Size {
		// As sbatch: fewer nodes rather than an empty one.
		by := a.By("nodes")
		warn = append(warn, Warning{by.Pos, by.String() + ": " + api.Count(s.Size, "rank") + " can't fill " + api.Count(s.MinNodes, "node") +
			", " + api.Count(s.Size, "node") + " are asked for"})
		s.MinNodes = s.Size
	}
	return warn, a.fitRanksToNodes()
}

// countedNodes is how many nodes a constraint counts in all ("[a*2&b*4]"). Whether it can be
// read the controller says; a star stands nowhere but before a count.
func countedNodes(constraint string) (sum int) {
	for _, after := range strings.Split(constraint, "*")[1:] {
		digits := 0
		for digits < len(after) && after[digits] >= '0' && after[digits] <= '9' {
			digits++
		}
		if n, err := strconv.Atoi(after[:digits]); err == nil && n <= api.MaxGangSize {
			sum += n
		}
	}
	return sum
}

// fitRanksToNodes checks ranks a node against ranks and nodes. With --ntasks sbatch's
// --ntasks-per-node is an upper bound, while RanksPerNode is exact, so it is taken only
// where it comes to the same.
func (a *Ask) fitRanksToNodes() error {
	s := &a.Spec
	if s.RanksPerNode == 0 || s.MinNodes == 0 {
		return nil
	}
	need := (s.Size + s.RanksPerNode - 1) / s.RanksPerNode
	word := "ranks-per-node"
	if a.perNode > 0 {
		word = "ntasks-per-node"
	}
	switch {
	case need > s.MaxNodes:
		return a.Refuse(word, api.Count(s.Size, "rank")+" need "+api.Count(need, "node")+" so, and "+a.By("nodes").where()+" allows "+
			strconv.Itoa(s.MaxNodes),
			"ask for --nodes="+strconv.Itoa(need)+" or for more ranks on each node")
	case need >= s.MinNodes:
		return nil
	case word == "ranks-per-node":
		return a.Refuse(word, api.Count(s.Size, "rank")+" fill "+api.Count(need, "node")+" so, and "+a.By("nodes").where()+" asks for "+
			strconv.Itoa(s.MinNodes),
			"ask for --nodes="+strconv.Itoa(need)+" or for fewer ranks on each node")
	}
	s.RanksPerNode = 0
	if s.Size%s.MinNodes == 0 && s.MinNodes == s.MaxNodes {
		s.RanksPerNode = s.Size / s.MinNodes
	}
	return nil
}

// cards brings the five ways to ask for cards to one of two: by rank or by node.
func (a *Ask) cards() error {
	s := &a.Spec
	counted := a.gres.sizeOnly && (a.By("gpus-per-node") != nil || a.By("gpus") != nil)
	if a.gres.gpus > 0 && s.GPUsPerRank == 0 && !counted {
		s.GPUsPerNode = a.gres.gpus
	}
	if a.gres.kind != "" {
		s.GPUType = a.gres.kind
	}
	if s.VRAMBytes == 0 {
		s.VRAMBytes = a.gres.vram
	}
	if s.GPUsPerRank > 0 {
		s.GPUsPerNode = 0 // the rivals that are left agree with it
	}
	if a.gpusTotal > 0 {
		switch {
		case a.gpusTotal%s.Size == 0:
			s.GPUsPerRank = a.gpusTotal / s.Size
		case s.MinNodes > 0 && s.MinNodes == s.MaxNodes && a.gpusTotal%s.MinNodes == 0:
			s.GPUsPerNode = a.gpusTotal / s.MinNodes
		case s.Launch == api.LaunchBatch && a.size == 0 && (a.gpusTotal > s.Size || a.tasksPerGPU > 0):
			a.slots = s.Size
			s.Size, s.GPUsPerRank, s.RanksPerNode = a.gpusTotal, 1, 0
		default:
			less := a.gpusTotal / s.Size * s.Size
			near := "--gpus=" + strconv.Itoa(less+s.Size)
			if less > 0 {
				near = "--gpus=" + strconv.Itoa(less) + " or " + near
			}
			return a.Refuse("gpus", api.Count(a.gpusTotal, "card")+" can't be shared out evenly over "+api.Count(s.Size, "rank"),
				"write "+near+", or --gpus-per-node=N")
		}
	}
	// Where a node holds one rank, by node is by rank: one spelling for the scheduler and
	// for what gqueue shows.
	if s.GPUsPerNode > 0 && (s.Size == 1 || s.RanksPerNode == 1) {
		s.GPUsPerRank, s.GPUsPerNode = s.GPUsPerNode, 0
	}
	if s.VRAMBytes > 0 && s.GPUsPerRank == 0 && s.GPUsPerNode == 0 {
		if a.asksNoCards() {
			return a.Refuse("vram", "asks for VRAM on no card", "ask for cards: --gpus-per-rank=1")
		}
		s.GPUsPerRank = 1
	}
	if c := &a.container; c.Image != "" {
		if c.Use == api.UseThere {
			return a.Refuse("container-name", "a job begins before any container of it", "leave out :exec, or give it to srun, for its steps")
		}
		c.Use = api.UseAny
		s.Container = c
	} else if option := CheckContainer(c); option != "" {
		return a.Refuse(option, NoContainer, NoContainerUse)
	}
	if s.MinCompute != "" && s.GPUsPerRank == 0 && s.GPUsPerNode == 0 {
		return a.Refuse("min-compute", "asks for a capability of no card", "ask for cards: --gpus-per-rank=1")
	}
	if s.Share && s.VRAMBytes == 0 {
		return a.Refuse("share", "needs --vram, or there is nothing to tell whether gangs fit on a card together",
			"write --share --vram=SIZE (sbatch's old --share is --oversubscribe)")
	}
	return nil
}

// asksNoCards tells "--gpus=0" from nothing said about cards.
func (a *Ask) asksNoCards() bool {
	for _, o := range []string{"gpus-per-rank", "gpus-per-node", "gpus", "gres"} {
		if s := a.By(o); s != nil && (o != "gres" || a.gres.vram == 0) {
			return true
		}
	}
	return false
}

// ranksPerNodeKnown is how many ranks a full node holds, 0 when that is left open.
func (a *Ask) ranksPerNodeKnown() int {
	if a.Spec.Size == 1 {
		return 1
	}
	return a.Spec.RanksPerNode
}

func (a *Ask) cpus() error {
	s := &a.Spec
	switch per := a.ranksPerNodeKnown(); {
	case a.minCPUs > 0 && per == 0:
		return a.Refuse("mincpus", "how many ranks a node has is left open", "add --ntasks-per-node=N, or write --cpus-per-task=N")
	case a.cpusPerGPU == 0:
		s.CPUsPerRank = max(s.CPUsPerRank, 1)
		if a.minCPUs > 0 {
			s.CPUsPerRank = max(s.CPUsPerRank, (a.minCPUs+per-1)/per)
		}
		if a.slots > 0 { // the tasks' CPUs, shared out over their cards
			s.CPUsPerRank = (s.CPUsPerRank*a.slots + s.Size - 1) / s.Size
		}
	case s.GPUsPerRank > 0:
		s.CPUsPerRank = a.cpusPerGPU * s.GPUsPerRank
	case s.GPUsPerNode > 0 && per > 0:
		s.CPUsPerRank = (a.cpusPerGPU*s.GPUsPerNode + per - 1) / per
	case s.GPUsPerNode > 0 && s.MinNodes > 0 && s.MinNodes == s.MaxNodes:
		s.CPUsPerRank = (a.cpusPerGPU*s.GPUsPerNode*s.MinNodes + s.Size - 1) / s.Size
	case s.GPUsPerNode > 0:
		return a.Refuse("cpus-per-gpu", "how many ranks share a node's cards is left open", "write --cpus-per-task=N, or add --ranks-per-node=N")
	default:
		return a.Refuse("cpus-per-gpu", "no card is asked for", "add --gpus-per-rank=N, or write --cpus-per-task=N")
	}
	return nil
}

// memory brings the four ways to ask for memory to one of two: by rank or by node.
func (a *Ask) memory() error {
	s := &a.Spec
	switch {
	case a.memNode > 0 && (s.Size == 1 || s.RanksPerNode == 1):
		s.MemoryPerRank = a.memNode
	case a.memNode > 0:
		s.MemoryPerNode = a.memNode
	case a.memCPU > 0:
		s.MemoryPerRank = product(a.memCPU, s.CPUsPerRank)
	case a.memGPU > 0 && s.GPUsPerRank > 0:
		s.MemoryPerRank = product(a.memGPU, s.GPUsPerRank)
	case a.memGPU > 0 && s.GPUsPerNode > 0:
		s.MemoryPerNode = product(a.memGPU, s.GPUsPerNode)
	case a.memGPU > 0:
		return a.Refuse("mem-per-gpu", "no card is asked for", "add --gpus-per-rank=N, or write --mem=SIZE")
	}
	if max(s.MemoryPerRank, s.MemoryPerNode) > maxBytes {
		by := "mem-per-gpu"
		if a.memCPU > 0 {
			by = "mem-per-cpu"
		}
		return a.Refuse(by, "comes to more than 64T", "ask for less")
	}
	return nil
}

// product is one more than a size may be, where it is more.
func product(bytes int64, n int) int64 {
	if bytes > maxBytes/int64(n) {
		return maxBytes + 1
	}
	return bytes * int64(n)
}

// stop checks notice, grace and time limit against each other.
func (a *Ask) stop() (warn []Warning, err error) {
	s := &a.Spec
	s.NoRequeue, s.RequeueCauses = a.noRequeue, a.requeueCauses
	if again := slices.Contains(s.RequeueCauses, api.CauseTimeout); again && s.MaxTimeTotal == 0 {
		return nil, a.Refuse("requeue", "a job that is run again after its time limit needs a bound on all its runs together",
			"add --max-time-total=3-00:00:00")
	} else if s.MaxTimeTotal > 0 && !again {
		return nil, a.Refuse("max-time-total", "the job is not run again after its time limit", "add --requeue=timeout,preempted,node-lost")
	} else if again && s.TimeLimit > s.MaxTimeTotal {
		return nil, a.Refuse("max-time-total", "it is shorter than the time limit of one run, "+a.By("time").where(), "write a longer one")
	}
	if s.GraceMax > 0 && s.GraceMax < s.Grace {
		return nil, a.Refuse("grace-max", "it is shorter than the grace ("+formatTime(s.Grace)+") of "+a.By("grace").where(),
			"write a longer --grace-max, or leave it out")
	}
	if s.TimeLimit > 0 && s.ReadyTimeout >= s.TimeLimit {
		return nil, a.Refuse("ready-timeout", "it is not shorter than the time limit, "+a.By("time").where(),
			"write a shorter one, or a longer --time")
	}
	if s.TimeLimit > 0 && s.TimeMin > s.TimeLimit {
		return nil, a.Refuse("time-min", "it is longer than the time limit, "+a.By("time").where(), "write a shorter one, or a longer --time")
	}
	n := s.Notice
	if n == nil {
		return nil, nil
	}
	if s.TimeLimit > 0 && n.Lead >= s.TimeLimit {
		by := a.By("signal")
		warn = append(warn, Warning{by.Pos, by.String() + ": the lead (" + formatTime(n.Lead) + ") is not shorter than the time limit, " +
			a.By("time").where() + ": the notice comes at the start; " +
			"write a shorter lead, --signal=" + signalTo(n) + "@" + strconv.Itoa(int(s.TimeLimit.Seconds()/10)) + ", or a longer --time"})
	}
	if s.Grace > n.Lead {
		return nil, a.Refuse("grace", "the grace is longer than the lead ("+formatTime(n.Lead)+") of "+a.By("signal").where(),
			"saving belongs before the stop signal: write --signal="+signalTo(n)+"@"+strconv.Itoa(int(s.Grace.Seconds()))+" or a shorter --grace")
	}
	return warn, nil
}
