package rankenv

import "gangd/pkg/core/container"

// Variable is one that a rank finds in its environment.
type Variable struct {
	Name string
	Text string // what it is, for the manual
	When string // only then; empty: always
}

// Variables are gangd's own, and those of the frameworks, in the order of gsubmit(1), which is made of them. Slurm's
// names stand beside: gangd-slurm(7).
var Variables = []Variable{
	{"GANG_JOB_ID", "Number of the job; that of one element, of an array.", ""},
	{"GANG_JOB_NAME", "Its name.", ""},
	{"GANG_EPOCH", "Number of this run of the job, from 1. Everything that a node says of the job carries it.", ""},
	{"GANG_RESTART_COUNT", "How often the job was started before; 0 the first time.", ""},
	{"GANG_RANK", "Number of this rank, from 0.", ""},
	{"GANG_SIZE", "Ranks of the gang.", ""},
	{"GANG_LOCAL_RANK", "Number of this rank among those of its node, from 0.", ""},
	{"GANG_LOCAL_SIZE", "Ranks on this node.", ""},
	{"GANG_NODE_RANK", "Number of this node among those of the gang, from 0.", ""},
	{"GANG_NNODES", "Nodes of the gang.", ""},
	{"GANG_NODELIST", "Their names, as in n[1-4].", ""},
	{"GANG_PEERS", "Address of each rank, in the order of the ranks, with commas.", "where they fit an environment variable"},
	{"GANG_ROLE", "Role of this rank.", "with roles"},
	{"GANG_ROLE_RANK", "Its number in the role, from 0.", "with roles"},
	{"GANG_ROLE_SIZE", "Ranks of the role.", "with roles"},
	{"GANG_ROLES", "Names of all roles, with commas.", "with roles"},
	{rolePeers + "ROLE", "Address of each rank of a role; its name in capitals, with _ for what is no letter or digit.", "with roles"},
	{"GANG_PORTS", "Ports that the gang has for itself on each of its nodes.", "with --resv-ports"},
	{container.EnvName, "Image that the rank runs in.", "with a container"},
	{"GANG_STATUS_FILE", "File that says why and when the rank is to end; it is there from the notice on.", ""},
	{"GANG_SOCKET", "Socket for checkpoints and barriers, by HTTP: gckpt(1), gbarrier(1).", ""},
	{"GANG_CONTROLLER", "Socket on which commands reach the controller from here.", "where the node has one"},
	{"GANG_CHECKPOINT_DIR", "Directory that is the same in all runs of the job.", "with a directory for checkpoints"},
	{"GANG_CHECKPOINT_FILE", "What this rank is to start from.", "when there is a checkpoint"},
	{"CHECKPOINT_DATA", "The same bytes in base64.", "when there is a checkpoint of at most 96 KiB"},
	{"NOTIFY_SOCKET", "Socket for beats, status and READY=1, systemd's protocol.", ""},
	{"WATCHDOG_USEC", "Longest silence after the first beat, in microseconds.", "where ranks are watched for stalls"},
	{MarkerName, "Mark by which the node finds what belongs to the job.", ""},
	{"RANK", "As GANG_RANK, for torch.distributed and others.", "with --size"},
	{"WORLD_SIZE", "As GANG_SIZE.", "with --size"},
	{"LOCAL_RANK", "As GANG_LOCAL_RANK.", "with --size"},
	{"LOCAL_WORLD_SIZE", "As GANG_LOCAL_SIZE.", "with --size"},
	{"MASTER_ADDR", "Address of rank 0.", ""},
	{"MASTER_PORT", "Port that is free there, and no other run's.", ""},
	{"CUDA_VISIBLE_DEVICES", "Cards of the ranks on this node.", ""},
	{"CUDA_DEVICE_ORDER", "PCI_BUS_ID.", "where cards are named by number"},
	{"GPU_DEVICE_ORDINAL", "As CUDA_VISIBLE_DEVICES.", "where cards are named by number"},
	{"ROCR_VISIBLE_DEVICES", "As CUDA_VISIBLE_DEVICES.", "where cards are named by number"},
	{"ZE_AFFINITY_MASK", "As CUDA_VISIBLE_DEVICES.", "where cards are named by number"},
	{"PYTHONUNBUFFERED", "1, so that the log can be followed.", "unless it is set"},
}
