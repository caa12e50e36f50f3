package scontrol

import (
	"os"

	"gangd/pkg/core/cmdline"
	"gangd/pkg/slurm"
)

const (
	oneCluster = "there is one cluster, and what is shown is always of it"
	noSuspend  = "a gang is never frozen: its cards would stay taken; scontrol requeue gives them up, gsubmit --signal tells it in time"
)

var options = &cmdline.Command[call]{Name: "scontrol", Tell: tell, Getenv: os.Getenv, Options: []cmdline.Option[call]{
	{Long: "all", Env: []string{"SCONTROL_ALL"}, Short: 'a', List: cmdline.Exact, Help: "no partition is hidden"},
	{Long: "clusters", Env: []string{"SLURM_CLUSTERS"}, Short: 'M', Names: "clusters cluster", Kind: cmdline.Required, List: cmdline.Partial,
		Help: "gangd is the one cluster; another name is refused", Set: cmdline.OneCluster[call]("scontrol")},
	{Long: "details", Short: 'd', List: cmdline.Exact, Help: "more of jobs: nodes with their cards, exit code of steps",
		Set: cmdline.Flag(func(c *call) *bool { return &c.details })},
	{Long: "federation", Env: []string{"SCONTROL_FEDERATION"}, List: cmdline.Exact, Help: oneCluster},
	{Long: "future", Env: []string{"SCONTROL_FUTURE"}, Short: 'F', List: cmdline.Exact, Help: "there are no FUTURE nodes"},
	{Long: "help", Short: 'h', List: cmdline.Partial, Help: "in gangd's words"},
	{Long: "hide", List: cmdline.Exact, Help: "no partition is hidden"},
	slurm.JSONRow(func(c *call) *slurm.Document { return &c.document }),
	{Long: "local", Env: []string{"SCONTROL_LOCAL"}, List: cmdline.Exact, Help: oneCluster},
	{Long: "oneliner", Short: 'o', List: cmdline.Exact, Help: "one record a line",
		Set: cmdline.Flag(func(c *call) *bool { return &c.oneLine })},
	{Long: "quiet", Short: 'Q', List: cmdline.Exact, Help: "no warnings and no errors, only the exit status",
		Set: cmdline.Flag(func(c *call) *bool { return &c.quiet })},
	{Long: "sibling", Env: []string{"SCONTROL_SIBLING"}, List: cmdline.Exact, Help: oneCluster},
	{Long: "uid", Short: 'u', Kind: cmdline.Required, List: cmdline.Refused, Help: "who calls is known from the kernel and can't be " +
		"another; run it as that user"},
	{Long: "usage", As: "help", List: cmdline.Partial, Help: "in gangd's words"},
	{Long: "verbose", Short: 'v', List: cmdline.Partial, Help: "says how many records there are; there are no plugins to name",
		Set: cmdline.Flag(func(c *call) *bool { return &c.verbose })},
	slurm.VersionRow[call](),
	slurm.YAMLRow(func(c *call) *slurm.Document { return &c.document }),
}}

// Lists is how each option of scontrol is kept.
func Lists() cmdline.Lists { return options.Lists() }

// keyword is one command of scontrol.
type keyword struct {
	name string
	min  int // letters that are enough
	few  int // arguments that it needs
	list cmdline.List
	text string
	run  func(*call, []string) int
	most int // arguments above which it is refused, 0: any number
}

// keywords is every command of 22.05's scontrol.
var keywords []keyword

func init() { // help prints the table
	keywords = []keyword{
		{"abort", 5, 0, cmdline.Refused, "gangd is stopped by its service manager: systemctl stop gangd", nil, 0},
		{"all", 3, 0, cmdline.Exact, "as --all", nothing, 0},
		{"cancel_reboot", 3, 1, cmdline.Exact, "take a reboot back, until the node was told", (*call).cancelReboot, 0},
		{"cluster", 2, 0, cmdline.Exact, oneCluster, nothing, 0},
		{"completing", 3, 0, cmdline.Exact, "jobs that are being stopped, with their nodes", (*call).completing, 0},
		{"create", 2, 1, cmdline.Partial, "reservations and partitions", (*call).create, 0},
		{"delete", 3, 1, cmdline.Partial, "reservations and partitions", (*call).remove, 0},
		{"details", 3, 0, cmdline.Exact, "as --details", nothing, 0},
		{"errnumstr", 3, 1, cmdline.Exact, "the text of one of Slurm's error numbers that gangd gives", (*call).errnumstr, 2},
		{"exit", 1, 0, cmdline.Exact, "ends the prompt", nothing, 0},
		{"fsdampeningfactor", 2, 1, cmdline.Refused, "there is no fair-share factor", nil, 0},
		{"getent", 2, 0, cmdline.Refused, "users are the node's own; ask getent there", nil, 0},
		{"getaddrs", 4, 1, cmdline.Partial, "what gangd knows of the addresses of nodes; they listen on no port", (*call).getaddrs, 1},
		{"gethost", 4, 0, cmdline.Partial, "what gangd knows of the node's address", (*call).gethost, 0},
		{"help", 2, 0, cmdline.Partial, "in gangd's words", (*call).help, 0},
		{"hide", 2, 0, cmdline.Exact, "as --hide", nothing, 0},
		{"hold", 4, 1, cmdline.Exact, "keep jobs from being started; an operator's hold only operators release", (*call).hold, 0},
		{"holdu", 5, 1, cmdline.Exact, "as uhold", (*call).uhold, 0},
		{"listjobs", 5, 0, cmdline.Partial, "jobs that run, on every node, not only here", (*call).listjobs, 1},
		{"listpids", 1, 0, cmdline.Partial, "of each rank its first process, on every node, not only here", (*call).listpids, 0},
		{"liststeps", 5, 0, cmdline.Partial, "steps that run, on every node, not only here", (*call).liststeps, 1},
		{"local", 2, 0, cmdline.Exact, oneCluster, nothing, 0},
		{"notify", 1, 2, cmdline.Partial, "the message goes to the errors of the job's script, or to who holds the allocation, and is an " +
			"event of the job (gctl events JOB)", (*call).notify, 0},
		{"oneliner", 1, 0, cmdline.Exact, "as --oneliner", nothing, 0},
		{"pidinfo", 3, 1, cmdline.Partial, "of the first process of a rank or step", (*call).pidinfo, 2},
		{"ping", 3, 0, cmdline.Exact, "whether the controller answers", (*call).ping, 0},
		{"power", 3, 1, cmdline.Refused, "gangd turns no nodes off or on", nil, 0},
		{"quiet", 4, 0, cmdline.Exact, "as --quiet", nothing, 0},
		{"quit", 4, 0, cmdline.Exact, "ends the prompt", nothing, 0},
		{"reboot", 3, 1, cmdline.Exact, "[ASAP] [nextstate=RESUME|DOWN] [reason=TEXT] ALL|NODES: by reboot_program of gnoded.toml; back by " +
			"another " +
			"boot id and well by their own checks", (*call).reboot, 0},
		{"reconfigure", 3, 0, cmdline.Partial, "gangd reads its file again (gctl reload), and partitions and features are as configured again; " +
			"a node's file is read again by SIGHUP to its gnoded", (*call).reconfigure, 0},
		{"release", 3, 1, cmdline.Exact, "let held jobs be started", (*call).release, 0},
		{"requeue", 3, 1, cmdline.Exact, "queue jobs again, also those that ended a few minutes ago", (*call).requeue, 0},
		{"requeuehold", 7, 1, cmdline.Exact, "as requeue, and held until somebody releases them; State=SpecialExit shows them so",
			(*call).requeuehold, 0},
		{"resume", 3, 1, cmdline.Refused, noSuspend, nil, 0},
		{"schedloglevel", 3, 1, cmdline.Refused, "gangd's log is read in the journal", nil, 0},
		{"setdebug", 4, 1, cmdline.Refused, "gangd's log is read in the journal", nil, 0},
		{"setdebugflags", 9, 1, cmdline.Refused, "gangd's log is read in the journal", nil, 0},
		{"show", 3, 1, cmdline.Partial, "see the entities", (*call).show, 2},
		{"shutdown", 3, 0, cmdline.Refused, "gangd is stopped by its service manager: systemctl stop gangd", nil, 0},
		{"sibling", 2, 0, cmdline.Exact, oneCluster, nothing, 0},
		{"suspend", 2, 1, cmdline.Refused, noSuspend, nil, 0},
		{"takeover", 4, 0, cmdline.Refused, "there is one controller", nil, 0},
		{"token", 2, 0, cmdline.Refused, "who calls is known from the kernel; no token is needed", nil, 0},
		{"top", 3, 1, cmdline.Partial, "jobs in front of all others that wait of their user; by admins", (*call).top, 0},
		{"uhold", 5, 1, cmdline.Exact, "hold so that their owner may release them", (*call).uhold, 0},
		{"update", 1, 1, cmdline.Partial, "see the parameters", (*call).update, 0},
		{"verbose", 4, 0, cmdline.Partial, "as --verbose", nothing, 0},
		{"version", 4, 0, cmdline.Partial, "names gangd too", (*call).version, 0},
		{"wait_job", 1, 1, cmdline.Exact, "wait until the nodes of a job are ready", (*call).waitJob, 2},
		{"write", 1, 1, cmdline.Partial, "batch_script JOB [FILE|-] of your own jobs; the configuration is gangd's own", (*call).write, 0},
	}
}

func nothing(*call, []string) int { return 0 }

// entities are what show knows.
var entities = []struct {
	name string
	min  int
	list cmdline.List
	text string
	run  func(c *call, entity, id string) int
}{
	{"aliases", 3, cmdline.Exact, "prints nothing: node names are host names", silent},
	{"assoc_mgr", 2, cmdline.Refused, "there are no associations; sacctmgr show assoc lists users and accounts", nil},
	{"bbstat", 2, cmdline.Exact, "prints nothing: there is no burst buffer", silent},
	{"burstbuffer", 2, cmdline.Exact, "prints nothing: there is no burst buffer", silent},
	{"config", 1, cmdline.Partial, "what gangd has of it, by Slurm's names", (*call).showConfig},
	{"daemons", 2, cmdline.Partial, "of the controller's host and of nodes by gangd's names", (*call).showDaemons},
	{"dwstat", 2, cmdline.Exact, "prints nothing: there is no DataWarp", silent},
	{"federation", 2, cmdline.Exact, "prints nothing: there is none", silent},
	{"frontend", 2, cmdline.Exact, "there are none", (*call).noFrontends},
	{"hostlist", 5, cmdline.Exact, "names made short", (*call).hostlist},
	{"hostlistsorted", 9, cmdline.Exact, "sorted and made short", (*call).hostlistSorted},
	{"hostnames", 5, cmdline.Exact, "a short list written out", (*call).hostnames},
	{"job", 1, cmdline.Exact, "a job or an array", (*call).showJob},
	{"jobid", 4, cmdline.Exact, "a job or an array", (*call).showJob},
	{"licenses", 2, cmdline.Exact, "what the site has of each", (*call).showLicenses},
	{"node", 1, cmdline.Exact, "nodes", (*call).showNode},
	{"partition", 1, cmdline.Exact, "partitions", (*call).showPartition},
	{"powercap", 2, cmdline.Refused, "there is no power management", nil},
	{"reservation", 1, cmdline.Exact, "reservations", (*call).showReservation},
	{"slurmd", 2, cmdline.Refused, "ginfo shows what a node's daemon says of itself", nil},
	{"step", 2, cmdline.Exact, "steps that run", (*call).showStep},
	{"topology", 1, cmdline.Exact, "as a Slurm without a topology", (*call).noTopology},
}

func silent(*call, string, string) int { return 0 }

// Keywords is how each command, entity of show and parameter of update is kept.
func Keywords() []cmdline.Lists {
	cmds := cmdline.Lists{Name: "scontrol COMMAND"}
	for i := range keywords {
		cmds.Options = append(cmds.Options, cmdline.Kept{Name: keywords[i].name, List: keywords[i].list, Text: keywords[i].text})
	}
	shows := cmdline.Lists{Name: "scontrol show ENTITY"}
	for i := range entities {
		shows.Options = append(shows.Options, cmdline.Kept{Name: entities[i].name, List: entities[i].list, Text: entities[i].text})
	}
	return []cmdline.Lists{cmds, shows, listParameters("update job", jobParameters), listParameters("update node", nodeParameters),
		listParameters("create and update partition", partitionParameters),
		listParameters("create and update reservation", reservationParameters)}
}
