package scontrol

import (
	"gangd/pkg/cmdline/getopt"
	"gangd/pkg/cmdline/lists"
	"gangd/pkg/slurm/cmdline"
)

const (
	oneCluster = "there is one cluster, and what is shown is always of it"
	noSuspend  = "a gang is never frozen: its cards would stay taken; scontrol requeue gives them up, gsubmit --signal tells it in time"
	byHand     = "edit the configuration of gangd and restart it (gangd.toml(5)); running jobs are not touched"
)

var options = cmdline.Rows{
	cmdline.On('a', "all", getopt.None, lists.Exact, "no partition is hidden"),
	cmdline.On('M', "clusters", getopt.Required, lists.Partial, "gangd is the one cluster; another name is refused"),
	cmdline.Also(cmdline.On(0, "clusters", getopt.Required, lists.Own, ""), "cluster"),
	cmdline.On('d', "details", getopt.None, lists.Exact, "more of jobs: nodes with their cards, exit code of steps"),
	cmdline.On(0, "federation", getopt.None, lists.Exact, oneCluster),
	cmdline.On('F', "future", getopt.None, lists.Exact, "there are no FUTURE nodes"),
	cmdline.On('h', "help", getopt.None, lists.Partial, "in gangd's words"),
	cmdline.On(0, "hide", getopt.None, lists.Exact, "no partition is hidden"),
	cmdline.On(0, "local", getopt.None, lists.Exact, oneCluster),
	cmdline.On('o', "oneliner", getopt.None, lists.Exact, "one record a line"),
	cmdline.On('Q', "quiet", getopt.None, lists.Exact, "no warnings and no errors, only the exit status"),
	cmdline.On(0, "sibling", getopt.None, lists.Exact, oneCluster),
	cmdline.On('u', "uid", getopt.Required, lists.Refused, "who calls is known from the kernel and can't be another; run it as that user"),
	cmdline.On('v', "verbose", getopt.None, lists.Partial, "says how many records there are; there are no plugins to name"),
	cmdline.On('V', "version", getopt.None, lists.Partial, "names gangd too"),
}

// Lists is how each option of scontrol is kept.
func Lists() lists.Command { return options.Lists("scontrol") }

// keyword is one command of scontrol.
type keyword struct {
	name string
	min  int // letters that are enough
	few  int // arguments that it needs
	list lists.List
	text string
	run  func(*call, []string) int
	most int // arguments above which it is refused, 0: any number
}

// keywords is every command of 22.05's scontrol.
var keywords []keyword

func init() { // help prints the table
	keywords = []keyword{
		{"abort", 5, 0, lists.Refused, "gangd is stopped by its service manager: systemctl stop gangd", nil, 0},
		{"all", 3, 0, lists.Exact, "as --all", nothing, 0},
		{"cancel_reboot", 3, 1, lists.Refused, "gangd reboots no nodes", nil, 0},
		{"cluster", 2, 0, lists.Exact, oneCluster, nothing, 0},
		{"completing", 3, 0, lists.Exact, "jobs that are being stopped, with their nodes", (*call).completing, 0},
		{"create", 2, 1, lists.Partial, "reservations; partitions are configured: " + byHand, (*call).create, 0},
		{"delete", 3, 1, lists.Partial, "reservations; partitions are configured: " + byHand, (*call).remove, 0},
		{"details", 3, 0, lists.Exact, "as --details", nothing, 0},
		{"errnumstr", 3, 1, lists.Exact, "the text of one of Slurm's error numbers that gangd gives", (*call).errnumstr, 2},
		{"exit", 1, 0, lists.Exact, "does nothing: there is no prompt", nothing, 0},
		{"fsdampeningfactor", 2, 1, lists.Refused, "there is no fair-share factor", nil, 0},
		{"getent", 2, 0, lists.Refused, "users are the node's own; ask getent there", nil, 0},
		{"gethost", 4, 0, lists.Partial, "what gangd knows of the node's address", (*call).gethost, 0},
		{"help", 2, 0, lists.Partial, "in gangd's words", (*call).help, 0},
		{"hide", 2, 0, lists.Exact, "as --hide", nothing, 0},
		{"hold", 4, 1, lists.Exact, "keep jobs from being started; an operator's hold only operators release", (*call).hold, 0},
		{"holdu", 5, 1, lists.Exact, "as uhold", (*call).uhold, 0},
		{"listpids", 1, 0, lists.Partial, "of each rank its first process, on every node, not only here", (*call).listpids, 0},
		{"local", 2, 0, lists.Exact, oneCluster, nothing, 0},
		{"notify", 1, 2, lists.Partial, "the message is an event of the job, for those who follow it (gctl events JOB); it does not come out of its standard error", (*call).notify, 0},
		{"oneliner", 1, 0, lists.Exact, "as --oneliner", nothing, 0},
		{"pidinfo", 3, 1, lists.Partial, "of the first process of a rank or step", (*call).pidinfo, 2},
		{"ping", 3, 0, lists.Exact, "whether the controller answers", (*call).ping, 0},
		{"quiet", 4, 0, lists.Exact, "as --quiet", nothing, 0},
		{"quit", 4, 0, lists.Exact, "does nothing: there is no prompt", nothing, 0},
		{"reboot", 3, 1, lists.Refused, "gangd reboots no nodes", nil, 0},
		{"reconfigure", 3, 0, lists.Refused, byHand, nil, 0},
		{"release", 3, 1, lists.Exact, "let held jobs be started", (*call).release, 0},
		{"requeue", 3, 1, lists.Partial, "a job that has ended is not run again under its number: gctl rerun JOB", (*call).requeue, 0},
		{"requeuehold", 7, 1, lists.Partial, "as requeue; State=SpecialExit is a hold like any other", (*call).requeuehold, 0},
		{"resume", 3, 1, lists.Refused, noSuspend, nil, 0},
		{"schedloglevel", 3, 1, lists.Refused, "gangd's log is set by log_format and read in the journal", nil, 0},
		{"setdebug", 4, 1, lists.Refused, "gangd's log is set by log_format and read in the journal", nil, 0},
		{"setdebugflags", 9, 1, lists.Refused, "gangd's log is set by log_format and read in the journal", nil, 0},
		{"show", 3, 1, lists.Partial, "see the entities", (*call).show, 2},
		{"shutdown", 3, 0, lists.Refused, "gangd is stopped by its service manager: systemctl stop gangd", nil, 0},
		{"sibling", 2, 0, lists.Exact, oneCluster, nothing, 0},
		{"suspend", 2, 1, lists.Refused, noSuspend, nil, 0},
		{"takeover", 4, 0, lists.Refused, "there is one controller", nil, 0},
		{"token", 2, 0, lists.Refused, "who calls is known from the kernel; no token is needed", nil, 0},
		{"top", 3, 1, lists.Refused, "raise one job with scontrol update JobId=N Priority=P (admins), or lower the others with Nice=", nil, 0},
		{"uhold", 5, 1, lists.Exact, "hold so that their owner may release them", (*call).uhold, 0},
		{"update", 1, 1, lists.Partial, "see the parameters", (*call).update, 0},
		{"verbose", 4, 0, lists.Partial, "as --verbose", nothing, 0},
		{"version", 4, 0, lists.Partial, "names gangd too", (*call).version, 0},
		{"wait_job", 1, 1, lists.Exact, "wait until the nodes of a job are ready", (*call).waitJob, 2},
		{"write", 1, 1, lists.Partial, "batch_script JOB [FILE|-] of your own jobs; the configuration is gangd's own", (*call).write, 0},
	}
}

func nothing(*call, []string) int { return 0 }

// entities are what show knows.
var entities = []struct {
	name string
	min  int
	list lists.List
	text string
	run  func(c *call, entity, id string) int
}{
	{"aliases", 3, lists.Exact, "prints nothing: node names are host names", silent},
	{"assoc_mgr", 2, lists.Refused, "there are no associations; sacctmgr show assoc lists users and accounts", nil},
	{"bbstat", 2, lists.Exact, "prints nothing: there is no burst buffer", silent},
	{"burstbuffer", 2, lists.Exact, "prints nothing: there is no burst buffer", silent},
	{"config", 1, lists.Partial, "what gangd has of it, by Slurm's names", (*call).showConfig},
	{"daemons", 2, lists.Partial, "of the controller's host and of nodes by gangd's names", (*call).showDaemons},
	{"dwstat", 2, lists.Exact, "prints nothing: there is no DataWarp", silent},
	{"federation", 2, lists.Exact, "prints nothing: there is none", silent},
	{"frontend", 2, lists.Exact, "there are none", (*call).noFrontends},
	{"hostlist", 5, lists.Exact, "names made short", (*call).hostlist},
	{"hostlistsorted", 9, lists.Exact, "sorted and made short", (*call).hostlistSorted},
	{"hostnames", 5, lists.Exact, "a short list written out", (*call).hostnames},
	{"job", 1, lists.Exact, "a job or an array", (*call).showJob},
	{"jobid", 4, lists.Exact, "a job or an array", (*call).showJob},
	{"licenses", 2, lists.Exact, "there are none", (*call).noLicenses},
	{"node", 1, lists.Exact, "nodes", (*call).showNode},
	{"partition", 1, lists.Exact, "partitions", (*call).showPartition},
	{"powercap", 2, lists.Refused, "there is no power management", nil},
	{"reservation", 1, lists.Exact, "reservations", (*call).showReservation},
	{"slurmd", 2, lists.Refused, "ginfo shows what a node's daemon says of itself", nil},
	{"step", 2, lists.Exact, "steps that run", (*call).showStep},
	{"topology", 1, lists.Exact, "as a Slurm without a topology", (*call).noTopology},
}

func silent(*call, string, string) int { return 0 }

// Keywords is how each command, entity of show and parameter of update is kept.
func Keywords() []lists.Command {
	cmds := lists.Command{Name: "scontrol COMMAND"}
	for i := range keywords {
		cmds.Options = append(cmds.Options, lists.Option{Name: keywords[i].name, List: keywords[i].list, Text: keywords[i].text})
	}
	shows := lists.Command{Name: "scontrol show ENTITY"}
	for i := range entities {
		shows.Options = append(shows.Options, lists.Option{Name: entities[i].name, List: entities[i].list, Text: entities[i].text})
	}
	return []lists.Command{cmds, shows, listParameters("update job", jobParameters), listParameters("update node", nodeParameters),
		listParameters("create and update reservation", reservationParameters)}
}
