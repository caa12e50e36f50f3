package script

import (
	"strconv"

	"gangd/pkg/api"
)

// Clash is which rule the words that count cards break together. Slurm has a sentence for each.
type Clash int

// The rules.
const (
	NoClash          Clash = iota
	ClashOnNode            // cards of a node are counted twice, or are too few for its tasks
	ClashCPUs              // CPUs are counted by card and by task
	ClashSockets           // cards of a socket, and no number of sockets
	ClashSocketCount       // cards of a socket and of a node give another number of sockets
	ClashOrder             // more cards on a node or a socket than in all
	ClashTasksOfNode       // cards of a node and of a task give another number of tasks on it
	ClashTasks             // cards in all and of a task give another number of tasks
	ClashNodes             // cards in all and of a node give another number of nodes
	ClashFewer             // more nodes than cards
	ClashPartOfNode        // cards of a node are no whole number of tasks'
	ClashNotByNode         // cards in all are no whole number of nodes'
	ClashNotByTask         // cards in all are no whole number of tasks'
	ClashTasksOfCard       // tasks of a card, and cards of a task
	ClashTasksByNode       // tasks of a card, and of a node
)

// ClashText is the figures of a [ClashNodes], by which Slurm says it.
type ClashText struct{ Nodes, Min, Max int }

// cardWords are the options that count cards. Several of one source may stand beside each other: one
// says what follows from two others, --gpus=16 --gpus-per-node=8 two nodes, and they have to agree.
var cardWords = []string{"gpus", "gpus-per-node", "gres", "gpus-per-rank"}

// reconcile holds the words that count cards against each other and against ranks and nodes, and
// leaves one of them, with the numbers of ranks and nodes that follow.
func (a *Ask) reconcile() error {
	s := &a.Spec
	node, nodeBy, err := a.cardsOfNode()
	if err == nil && a.tasksPerGPU > 0 {
		err = a.tasksOfCards(node)
	}
	if err != nil {
		return err
	}
	total, task := a.gpusTotal, s.GPUsPerRank
	perNode, perNodeBy := a.perNode, "ntasks-per-node"
	if s.RanksPerNode > 0 {
		perNode, perNodeBy = s.RanksPerNode, "ranks-per-node"
	}
	ranks, ranksBy := a.ntasks, "ntasks"
	if a.size > 0 {
		ranks, ranksBy = a.size, "size"
	}
	switch {
	case total > 0 && total < max(node, a.gpusPerSocket):
		return a.clash(ClashOrder, "gpus", nodeBy, "it is fewer in all than there")
	case total > 0 && total < a.nodesMin:
		return a.clash(ClashFewer, "gpus", "nodes", "each node has a card")
	}
	if total > 0 && node > 0 {
		if total%node != 0 {
			return a.clash(ClashNotByNode, "gpus", nodeBy, strconv.Itoa(total)+" is no multiple of "+strconv.Itoa(node))
		}
		n := total / node
		if a.nodesMin > 0 && (n < a.nodesMin || n > a.nodesMax) {
			err := a.clash(ClashNodes, "gpus", "nodes", "with "+a.By(nodeBy).String()+" it is "+api.Count(n, "node"))
			err.Nodes = ClashText{n, a.nodesMin, a.nodesMax}
			return err
		}
		a.nodesMin, a.nodesMax, a.gpusTotal = n, n, 0
	}
	if total > 0 && task > 0 {
		if total%task != 0 {
			return a.clash(ClashNotByTask, "gpus", "gpus-per-rank", strconv.Itoa(total)+" is no multiple of "+strconv.Itoa(task))
		}
		n := total / task
		if ranks > 0 && ranks != n {
			return a.clash(ClashTasks, "gpus", ranksBy, "with "+a.By("gpus-per-rank").String()+" it is "+api.Count(n, "rank"))
		}
		if ranks == 0 {
			ranks, a.ntasks = n, n
		}
		a.gpusTotal = 0
	}
	if node > 0 && task > 0 {
		n := node / task
		switch {
		case node%task != 0:
			return a.clash(ClashPartOfNode, nodeBy, "gpus-per-rank", strconv.Itoa(node)+" is no multiple of "+strconv.Itoa(task))
		case perNode > 0 && perNode != n:
			return a.clash(ClashTasksOfNode, nodeBy, perNodeBy, "with "+a.By("gpus-per-rank").String()+" it is "+api.Count(n, "rank")+" a node")
		case ranks > 0 && a.nodesMax > 0 && ranks > n*a.nodesMax:
			return a.clash(ClashOnNode, nodeBy, ranksBy, "there are cards for "+api.Count(n, "rank")+" on a node")
		case ranks%n != 0:
			s.GPUsPerRank = 0 // some nodes have more cards than their ranks
			return nil
		case perNode == 0 && a.size > 0:
			s.RanksPerNode = n
		case perNode == 0:
			a.perNode = n
		}
	}
	return nil
}

// tasksOfCards finds the tasks of --ntasks-per-gpu by the cards, or the cards by the tasks.
func (a *Ask) tasksOfCards(node int) error {
	const word = "ntasks-per-gpu"
	switch n := a.tasksPerGPU; {
	case a.size > 0 || a.Spec.RanksPerNode > 0:
		return a.Refuse(word, "it counts sbatch's tasks", "leave it out, and write --gpus-per-rank=N")
	case a.Spec.GPUsPerRank > 0:
		return a.clash(ClashTasksOfCard, word, "gpus-per-rank", "one follows from the other")
	case a.perNode > 0:
		return a.clash(ClashTasksByNode, word, "ntasks-per-node", "one follows from the other")
	case a.gpusTotal > 0 && a.ntasks == 0:
		a.ntasks = a.gpusTotal * n
	case a.gpusTotal > 0:
	case node > 0 && a.ntasks == 0:
		a.perNode = node * n
	case node == 0 && a.ntasks > 0:
		a.gpusTotal = (a.ntasks + n - 1) / n
	case node == 0:
		return a.Refuse(word, "neither cards nor tasks are asked for", "add --gpus=N or --ntasks=N")
	}
	return nil
}

// cardsOfNode is how many cards a node of the gang has, by --gpus-per-node, --gres or
// --gpus-per-socket, and which of them says so.
func (a *Ask) cardsOfNode() (int, string, error) {
	s := &a.Spec
	node, by := s.GPUsPerNode, "gpus-per-node"
	if g := a.gres; g.gpus > 0 && !g.sizeOnly {
		if node > 0 && node != g.gpus {
			return 0, "", a.clash(ClashOnNode, "gres", by, "a node has one number of cards")
		}
		node, by = g.gpus, "gres"
	}
	if a.gpusPerSocket == 0 {
		return node, by, nil
	}
	if a.Spec.Shape.Sockets == 0 {
		err := a.Refuse("gpus-per-socket", "how many sockets a node has is left open", "add --sockets-per-node=N, or write --gpus-per-node=N")
		if e, ok := err.(*Error); ok {
			e.Clash = ClashSockets
		}
		return 0, "", err
	}
	n := a.gpusPerSocket * a.Spec.Shape.Sockets
	if node > 0 && node != n {
		return 0, "", a.clash(ClashSocketCount, by, "gpus-per-socket", "with "+a.By("sockets-per-node").String()+" it is "+api.Count(n, "card")+
			" a node")
	}
	if node == 0 {
		s.GPUsPerNode, node, by = n, n, "gpus-per-socket"
	}
	return node, by, nil
}

// clash refuses an option beside another that was given too.
func (a *Ask) clash(c Clash, option, other, why string) *Error {
	x, y := a.By(option), a.By(other)
	if later(y, x) {
		x, y = y, x
	}
	e := x.refuse(x.String()+" contradicts "+y.where()+": "+why, "keep one of them")
	e.Clash = c
	return e
}
