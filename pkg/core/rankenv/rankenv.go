package rankenv

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/container"
)

// MarkerName is the variable that names the member in the environment of each of its
// processes. The scan of a containment without cgroups looks for it.
const MarkerName = "GANG_MEMBER"

// ProgramsName is the variable that tells a batch script where the node keeps the programs that nobody starts by hand, gstep among them.
const ProgramsName = "GANG_PROGRAMS"

// defaultPath is what a submit environment without a PATH gets, as login(1) sets it.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// maxPeersBytes bounds GANG_PEERS: the kernel takes no single string above 128 KiB.
const maxPeersBytes = 96 << 10

// Member is what the environments of a node's ranks are made from.
type Member struct {
	api.MemberKey
	Spec     *api.Spec
	Body     *api.AssignmentBody
	Node     int    // index of this node in Body.Nodes
	NodeList string // compressed names of Body.Nodes: "n[1-4]"
	Marker   string // value of MarkerName
	BinDir   string // of gangd's programs: goes to the end of PATH
	Commands string // socket on which a relay of this node answers gangd's commands; empty: it has none
	Home     string // from the password file, for a submit environment without it
	Shell    string
	// CardIndex gives a card's index on this node; nil or a miss leaves SLURM_JOB_GPUS out.
	CardIndex map[string]int
	// CardNames is what CUDA_VISIBLE_DEVICES calls cards, by UUID; nil: by their UUIDs.
	CardNames map[string]string
	// Sockets gives the paths of a rank's sockets, empty where it has none; nil: nobody has.
	Sockets func(rank int) (notify, http string)
	// Watchdog is how long a rank that has begun to beat may be silent; 0: for ever.
	Watchdog time.Duration
	// Checkpoints are what is handed over to the ranks of this node.
	Checkpoints map[int]Checkpoint
}

// Checkpoint is what an earlier epoch left for a rank.
type Checkpoint struct {
	File string
	Data []byte // its content, nil where that does not fit an environment
}

// Ranks are the ranks of the member that run a process when the gate opens.
func (m *Member) Ranks() []int {
	var ranks []int
	for r, p := range m.Body.Ranks {
		if p.Node == m.Node && (m.Spec.Launch != api.LaunchBatch || r == 0) {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// Environ is the environment of each rank in Ranks, in that order.
func (m *Member) Environ() [][]string {
	l := newLayout(m.Spec, m.Body, m.Node)
	e := newEnv(m.Spec.Env, inherited)
	m.person(e)
	m.gang(e, l)
	m.slurm(e, l)
	m.cards(e, l)
	var out [][]string
	for _, r := range m.Ranks() {
		out = append(out, m.rank(e, l, r))
	}
	return out
}

// person sets what a login would have.
func (m *Member) person(e *env) {
	e.preset("HOME", m.Home)
	e.preset("SHELL", m.Shell)
	e.preset("USER", m.Body.User)
	e.preset("LOGNAME", m.Body.User)
	e.preset("PYTHONUNBUFFERED", "1") // a log that can be followed
	e.preset("PATH", defaultPath)
	if m.BinDir != "" {
		e.set("PATH", appendPath(e.get("PATH"), m.BinDir))
	}
	e.preset("PWD", m.Spec.WorkDir)
	e.set("SLURM_SUBMIT_DIR", e.get("PWD")) // before it becomes the rank's own
	e.set("PWD", m.Spec.WorkDir)
	e.drop("OLDPWD")
}

func appendPath(path, dir string) string {
	if slices.Contains(strings.Split(path, ":"), dir) {
		return path
	}
	return path + ":" + dir
}

func (m *Member) gang(e *env, l *layout) {
	b := m.Body
	e.set(MarkerName, m.Marker)
	e.setInt("GANG_JOB_ID", int(m.Job))
	e.set("GANG_JOB_NAME", b.Name)
	e.setInt("GANG_EPOCH", m.Epoch)
	e.setInt("GANG_RESTART_COUNT", b.RestartCount)
	e.setInt("GANG_SIZE", len(b.Ranks))
	e.setInt("GANG_LOCAL_SIZE", l.local)
	e.setInt("GANG_NODE_RANK", m.Node)
	e.setInt("GANG_NNODES", len(b.Nodes))
	e.set("GANG_NODELIST", m.NodeList)
	if l.peers != "" {
		e.set("GANG_PEERS", l.peers)
	}
	e.setGiven("GANG_PORTS", b.Ports)
	if c := m.Spec.Container; c != nil {
		e.set(container.EnvName, c.Image)
	}
	if m.Commands != "" {
		e.set("GANG_CONTROLLER", m.Commands)
		e.drop("GANG_DIR") // how the controller was found on another host
	}
	m.roles(e, l)
	e.set("MASTER_ADDR", l.master)
	if m.Spec.Launch == api.LaunchBatch {
		return // the script starts its ranks; a WORLD_SIZE would make a plain python wait for peers
	}
	e.setInt("WORLD_SIZE", len(b.Ranks))
	e.setInt("LOCAL_WORLD_SIZE", l.local)
}

// cards shows the member's cards, near ones first as the controller ordered them, and
// hides all others: a job without cards sees none.
func (m *Member) cards(e *env, l *layout) {
	visible(e, l.cards, m.CardNames)
	var indexes []string
	for _, c := range l.cards {
		if i, ok := m.CardIndex[c]; ok {
			indexes = append(indexes, strconv.Itoa(i))
		}
	}
	if len(indexes) > 0 && len(indexes) == len(l.cards) {
		e.set("SLURM_JOB_GPUS", strings.Join(indexes, ","))
	}
	if len(l.cards) > 0 {
		e.setInt("SLURM_GPUS_ON_NODE", len(l.cards))
	}
}

// visible says which cards CUDA shall show. NVML numbers them by the PCI bus, and so must CUDA where
// they are named by number.
func visible(e *env, cards []string, names map[string]string) {
	if names != nil {
		if len(cards) > 0 {
			e.set("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
		}
		named := make([]string, len(cards))
		for i, c := range cards {
			if named[i] = names[c]; named[i] == "" {
				named[i] = c
			}
		}
		cards = named
	}
	list := strings.Join(cards, ",")
	e.set("CUDA_VISIBLE_DEVICES", list)
	for _, name := range numberedCards {
		if names == nil || list == "" {
			e.drop(name)
		} else {
			e.set(name, list)
		}
	}
}

// numberedCards are the variables in which other libraries look for the numbers of cards: of AMD's and Intel's.
var numberedCards = []string{"GPU_DEVICE_ORDINAL", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"}

// speak sets how a rank, or a task, is heard, and what it starts from.
func speak(e *env, r int, sockets func(int) (notify, http string), watchdog time.Duration, checkpoints map[int]Checkpoint) {
	if sockets != nil {
		notify, http := sockets(r)
		if notify != "" && watchdog > 0 {
			e.set("WATCHDOG_USEC", strconv.FormatInt(watchdog.Microseconds(), 10))
		}
		e.setGiven("NOTIFY_SOCKET", notify)
		e.setGiven("GANG_SOCKET", http)
	}
	c, ok := checkpoints[r]
	if !ok {
		return
	}
	e.set("GANG_CHECKPOINT_FILE", c.File)
	if data := base64.StdEncoding.EncodeToString(c.Data); c.Data != nil && len(data) <= api.MaxCheckpointEnv {
		e.set("CHECKPOINT_DATA", data)
	}
}

// rank is a copy of e with what differs between the ranks of a node.
func (m *Member) rank(e *env, l *layout, r int) []string {
	e = e.clone()
	local := l.localRank[r]
	e.setInt("GANG_RANK", r)
	e.setInt("GANG_LOCAL_RANK", local)
	e.setInt("SLURM_PROCID", r)
	e.setInt("SLURM_LOCALID", local)
	if m.Spec.Launch != api.LaunchBatch {
		e.setInt("RANK", r)
		e.setInt("LOCAL_RANK", local)
	}
	if role, index := m.Spec.RoleAt(r); role != nil {
		e.set("GANG_ROLE", role.Name)
		e.setInt("GANG_ROLE_RANK", index)
		e.setInt("GANG_ROLE_SIZE", role.Count)
		if role.Component == nil {
			e.setInt("SLURM_CPUS_PER_TASK", role.CPUsPerRank)
		}
	}
	speak(e, r, m.Sockets, m.Watchdog, m.Checkpoints)
	return e.list
}
