package finding

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"gangd/pkg/api"
)

// Where a kind is looked for.
const (
	OfConfig  = "configuration" // gangd check, gnoded check
	OfHost    = "host"          // the same, and gctl doctor by what each gnoded says of its own
	OfCluster = "cluster"       // gctl doctor
	OfStore   = "store"         // gangd verify, and gctl doctor for admins
)

// Kind is one kind of finding.
type Kind struct {
	ID       string
	Severity api.Severity
	Of       string
	What     string // what is wrong, in general
	Remedy   string // what to do where the finding does not say it more exactly
}

const (
	bad  = api.SeverityError
	warn = api.SeverityWarning
	note = api.SeverityNote
)

// Kinds are all of them.
var Kinds = []Kind{
	{"config-unreadable", bad, OfConfig, "A configuration file can't be read, or others than root and the daemon's user may change it.",
		"make the file readable for the daemon's user and writable for root alone"},
	{"config-syntax", bad, OfConfig, "The file is no TOML.", "mend the line that is named"},
	{"config-value", bad, OfConfig, "A key is unknown, or its value is not what it takes, alone or beside others.",
		"mend the line that is named; gangd.toml(5) has the keys"},
	{"config-cap", warn, OfConfig, "A cap of an account can be left by naming another one.", "list the users of every account"},
	{"config-user", warn, OfConfig, "A user that is named is not known on this host.", "mend the name, or make the user known here"},
	{"config-group", warn, OfConfig, "A group that is named is not known on this host.", "mend the name, or make the group known here"},
	{"config-lease", warn, OfConfig, "The lease is over before a gangd that hangs twice has been started again.",
		"set lease to 372s or more, or shorten the times of the unit"},
	{"config-partition-nodes", warn, OfConfig, "A partition names nodes that `nodes` does not have.", "mend the names, or list the nodes"},
	{"config-topology-nodes", warn, OfConfig, "Nodes that `nodes` lists are below no switch, or the other way round.",
		"mend the names in the topology file"},
	{"config-hook-timeout", warn, OfConfig, "A hook around jobs may take longer than a start is waited for by default.",
		"shorten hook_timeout, or lengthen start_timeout of gangd"},

	{"program-missing", bad, OfHost, "A program of the site is not there.", "install it, or take the key out"},
	{"program-not-executable", bad, OfHost, "A program of the site can't be executed.", "chmod a+x"},
	{"program-writable", bad, OfHost, "Others than root and the daemon's user may change a program of the site, so that it is not run.",
		"chown root and chmod go-w, for the file and the directories above it"},
	{"program-none", warn, OfHost, "A directory of hooks has no program that would be run.", "put one there, or take the key out"},
	{"directory-missing", bad, OfHost, "A directory that is named is not there, or is none.", "make it"},
	{"directory-not-writable", bad, OfHost, "A directory that the daemon writes to can't be written.", "chown it to the daemon's user"},
	{"directory-closed", bad, OfHost, "Users can't pass the directory of a socket.", "chmod a+x"},
	{"state-open", bad, OfHost, "Others can look into a state directory, in which scripts, environments and keys lie.",
		"chmod 0700, that of gnoded 0711"},
	{"disk-low", bad, OfHost, "The disk of a state directory has less than 64 MiB left: nothing more is taken in.", "make room"},
	{"disk-low-soon", warn, OfHost, "The disk of a state directory has less than a twentieth, and less than 2 GiB, left.", "make room"},
	{"certificate-unreadable", bad, OfHost, "A certificate or its key can't be read, or they don't belong together.",
		"put the right files there"},
	{"certificate-expired", bad, OfHost, "A certificate has run out, or does not hold yet.", "renew it; look at the clock"},
	{"certificate-expires", warn, OfHost, "A certificate runs out within two weeks.", "renew it, and restart the daemon"},
	{"node-not-joined", bad, OfHost, "The node has no certificate.", "on the controller: gangd token new; here: gnoded join LINE"},
	{"node-certificate", bad, OfHost, "The node's certificate has run out or will within a week: it should have renewed itself.",
		"look in journalctl -u gnoded why it does not, then join again: gangd token new --node=NAME"},
	{"controller-address", bad, OfHost, "The name of a controller has no address here.", "mend the name or the resolver"},
	{"mount-missing", bad, OfHost, "Nothing is mounted at a place of require_mounts.", "mount it"},
	{"name-unresolved", bad, OfHost, "A host of require_names has no address here.", "mend the resolver"},
	{"tool-missing", bad, OfHost, "A program that a key needs is not installed.", "install it"},
	{"cpus-absent", bad, OfHost, "cpu_list has CPUs that this machine has not.", "mend cpu_list"},
	{"cpus-offered", warn, OfHost, "More CPUs are offered than the machine has.", "lower cpus, unless it is meant"},
	{"memory-offered", warn, OfHost, "More memory is offered than the machine has.", "lower memory"},
	{"memory-expected", bad, OfHost, "The machine has less memory than expect_memory.", "look at its modules, or mend the figure"},

	{"controller-unreachable", bad, OfCluster, "The controller does not answer.",
		"systemctl status gangd; through a relay: journalctl -u gnoded"},
	{"controller-hold", bad, OfCluster, "The controller is on hold: its store went back in time.", "HOLD in operations.md"},
	{"controller-version", warn, OfCluster, "The commands here are of another release than the controller.", "upgrade the older one"},
	{"controller-silent", bad, OfCluster, "A controller does not answer the one that leads.",
		"start its gangd, or take it off the list: gangd controller remove NAME"},
	{"controller-joins", warn, OfCluster, "A controller may not lead yet.", "look whether all nodes have a session: ginfo"},
	{"controller-behind", warn, OfCluster, "A controller that stands by is far behind the one that leads.",
		"look at its host and its database"},
	{"controller-alone", warn, OfCluster, "Only one of several controllers is left: nobody stands by.", "start the other one"},
	{"clock-differs", warn, OfCluster, "The clock of this host and that of the controller differ by more than a minute.",
		"have both follow one time server"},
	{"notices-given-up", warn, OfCluster, "People were not told of their jobs within a day, and it was given up.",
		"gctl outbox; gctl outbox --retry"},
	{"notices-late", warn, OfCluster, "Notices wait for more than an hour.", "gctl outbox says what their delivery fails by"},
	{"nodes-none", bad, OfCluster, "No node has joined.", "gangd token new; gnoded join LINE"},
	{"node-lost", bad, OfCluster, "A node is silent.", "look at the host; when nothing runs there any more: gctl node fence NAME"},
	{"node-suspect", warn, OfCluster, "The session of a node is cut.", "it comes back by itself, or is lost soon: journalctl -u gnoded there"},
	{"node-unknown", warn, OfCluster, "A node that is listed was never seen.", "start its gnoded, or take it off the list"},
	{"node-unfit", bad, OfCluster, "A node is out of service by its health, or for what it should have and has not.",
		"mend what the reason names; it comes back by itself"},
	{"node-strikes", bad, OfCluster, "A node was drained because jobs could not be started there.",
		"mend what the reason names; gctl node resume NAME"},
	{"node-strike", warn, OfCluster, "Launches failed on a node and went well elsewhere.", "look at the reason"},
	{"node-drained", note, OfCluster, "A person has taken a node out of service.", "gctl node resume NAME, when it is good again"},
	{"node-version", warn, OfCluster, "A node is of another release than the controller.", "upgrade it: docs/operations.md, Upgrade"},
	{"node-containment", note, OfCluster, "A node holds jobs without control groups: what they use is sampled, and limits don't hold.",
		"mount cgroup2 with its controllers, and let the unit delegate them (Delegate=yes)"},
	{"node-limits", note, OfCluster, "On a node some limits of jobs can't be held.", "enable the controllers of cgroup2 that it names"},
	{"node-devices", note, OfCluster, "On a node the kernel does not keep jobs from each other's cards.",
		"let gnoded run as root, with cgroup2"},
	{"node-address", bad, OfCluster, "Nodes have the same address, so that ranks of one reach the other.", "set address in gnoded.toml"},
	{"node-odd", warn, OfCluster, "A node has less memory or fewer CPUs or cards than all others of the same kind.",
		"look for a module or a card that is gone; expect_memory and expect_cards drain it"},
	{"card-unhealthy", bad, OfCluster, "A card is out of service.", "reset it, then: gctl card resume NODE CARD"},
	{"card-strangers", warn, OfCluster, "Processes that no job started hold memory of a card.", "end them; nvidia-smi names them"},
	{"partition-default", warn, OfCluster, "No partition is the default: who names none is refused.", "gctl partition update NAME --default"},
	{"partition-empty", bad, OfCluster, "A partition has no node that could take work.", "bring one back, or give it others"},
	{"partition-closed", note, OfCluster, "A partition does not start or does not take jobs.", "gctl partition update NAME --state=up"},
	{"partition-left", warn, OfCluster, "Jobs wait that name no partition that is still there.",
		"gctl update JOB --partition=NAME, or bring the partition back"},
	{"partition-nodes", warn, OfCluster, "A partition names nodes that nobody has seen.", "mend the names"},
	{"partition-changed", note, OfCluster, "A partition is not as the configuration says: it was changed at run time.",
		"write the change into gangd.toml, or take it back"},
	{"reservation-lost", warn, OfCluster, "A reservation holds nodes that are lost or out of service.",
		"give it others: gctl reservation update"},
	{"job-never", warn, OfCluster, "A job waits for what can never be.", "gqueue --why JOB; its owner may change or cancel it"},
	{"job-held", note, OfCluster, "An admin has held a job for more than a week.", "gctl release JOB"},
	{"job-starting", bad, OfCluster, "A job has been starting for more than an hour.", "gqueue --why JOB; the log of gnoded on its nodes"},
	{"job-stopping", bad, OfCluster, "A job has been stopping for much longer than its grace.",
		"gctl show job JOB names the processes that do not end"},
	{"job-restarts", warn, OfCluster, "A job was run again more than ten times.", "gctl show job JOB says by what its attempts ended"},
	{"epilog-runs", warn, OfCluster, "The site's epilog has not succeeded on a node for more than ten minutes.", "journalctl -u gnoded there"},

	{"store-disagrees", bad, OfStore, "Memory and store of the controller, or rows of the store, disagree.",
		"restart gangd, which reads the store; report it"},
	{"store-row", bad, OfStore, "A row of the store can't be: gangd would not load it.", "gangd verify --repair sets it aside"},
}

// KindOf is the kind of an id, nil where there is none.
func KindOf(id string) *Kind {
	if i := slices.IndexFunc(Kinds, func(k Kind) bool { return k.ID == id }); i >= 0 {
		return &Kinds[i]
	}
	return nil
}

// Looked is how many kinds are looked for in some places.
func Looked(in ...string) (n int) {
	for i := range Kinds {
		if slices.Contains(in, Kinds[i].Of) {
			n++
		}
	}
	return n
}

// List are findings.
type List []api.DoctorFinding

// Add adds one of a kind.
func (l *List) Add(id, subject, format string, args ...any) *api.DoctorFinding {
	k := KindOf(id)
	if k == nil {
		panic("finding: no kind " + id) // a name of ours that is wrong
	}
	*l = append(*l, api.DoctorFinding{ID: id, Severity: k.Severity, Subject: clip(subject, 1000),
		Evidence: clip(fmt.Sprintf(format, args...), 2000), Remedy: k.Remedy})
	return &(*l)[len(*l)-1]
}

// clip keeps a text within what a finding holds on its way to others.
func clip(s string, most int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "?"), "\x00", "?")
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-3], "") + "..."
}

var severities = []api.Severity{bad, warn, note}

// Sorted are they, the worst first, those of one kind together.
func (l List) Sorted() List {
	out := slices.Clone(l)
	slices.SortStableFunc(out, func(a, b api.DoctorFinding) int {
		return cmp.Or(cmp.Compare(slices.Index(severities, a.Severity), slices.Index(severities, b.Severity)),
			cmp.Compare(at(a.ID), at(b.ID)), cmp.Compare(a.Node, b.Node))
	})
	return out
}

func at(id string) int { return slices.IndexFunc(Kinds, func(k Kind) bool { return k.ID == id }) }

// Bad reports whether any of them is worse than a note: then the exit status of who looked is 1.
func (l List) Bad() bool {
	return slices.ContainsFunc(l, func(f api.DoctorFinding) bool { return f.Severity != note })
}

// Write says them, each on a line that begins with what it is about, and its remedy below.
func (l List) Write(w io.Writer) error {
	for i := range l {
		f := &l[i]
		subject := f.Subject
		if f.Node != "" && f.Node != subject && !strings.HasPrefix(subject, f.Node+" ") {
			subject = f.Node + ": " + subject
		}
		_, err := fmt.Fprintf(w, "%s: %s [%s %s]\n    %s\n", line(subject), line(f.Evidence), f.Severity, line(f.ID), line(f.Remedy))
		if err != nil {
			return err
		}
	}
	return nil
}

// line keeps what others wrote on one line, and their escapes off a terminal.
func line(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}
