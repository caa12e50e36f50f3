package config

import (
	"time"

	"gangd/pkg/api"
)

// row is what the struct alone does not say of a key.
type row struct {
	key      string
	when     mark   // a change of it counts
	check    check  // of one value
	fallback string // what the default is where the struct's zero value stands for something
	text     string
}

// table is all keys of one daemon.
type table struct {
	daemon string
	rows   []row
	lists  map[string]list // arrays of tables, by key
	// renamed are keys of earlier releases, which are refused with their name of today.
	renamed map[string]string
}

type list struct {
	rows  []row
	items func(config any) []any
}

// itemsOf are the items of a list of gangd's configuration.
func itemsOf[T any](list func(*Controller) []T) func(any) []any {
	return func(config any) []any {
		var all []any
		for _, item := range list(config.(*Controller)) {
			all = append(all, item)
		}
		return all
	}
}

func (t *table) row(key string) *row { return findRow(t.rows, key) }

func findRow(rows []row, key string) *row {
	for i := range rows {
		if rows[i].key == key {
			return &rows[i]
		}
	}
	return nil
}

func namesOf(rows []row) []string {
	var out []string
	for _, r := range rows {
		out = append(out, r.key)
	}
	return out
}

func (t *table) names() []string {
	out := namesOf(t.rows)
	for k := range t.lists {
		out = append(out, k)
	}
	return out
}

var controllerTable = &table{daemon: "gangd", rows: append([]row{
	{"dir", restart, absolute, "none", "Root of a cluster in one directory, as `gangd dev` makes it: `state_dir` and `socket` default into " +
		"it, and " +
		"`GANG_DIR` set to it is all that a command needs."},
	{"state_dir", restart, absolute, "`DIR/state/gangd`, without `dir` `/var/lib/gangd`", "The store, the certificate authority and the " +
		"join " +
		"tokens. On a local disk."},
	{"socket", restart, socketPath, "`DIR/run/gangd.sock`, without `dir` `/run/gangd/gangd.sock`",
		"Unix socket for the commands, for relays and for nodes on this host. Its directory is made; where one is there that users can't " +
			"pass, gangd does not start and names it, but with `dir` or `single_user`. One that a group of the site's can pass is left to that " +
			"group."},
	{"listen", restart, listenAddr, "none", "TCP address for nodes and login relays (TLS), such as `:7420`."},
	{"advertise", restart, dialAddrs, "this host's name with the port of `listen`", "Addresses at which nodes reach this controller, best " +
		"first. " +
		"The lines of `gangd token new` have the first."},
	{"name", restart, nil, "this host's name", "Of this controller, where there are several: unlike those of the others, and never changed."},
	{"database", restart, database, "none", "PostgreSQL that several controllers share, as a URL or `key=value` pairs: see " +
		"two-controllers.md. " +
		"Without " +
		"it there is one controller, on SQLite in `state_dir`."},
	{"single_user", restart, nil, "", "Only the person who started gangd may use it, as admin; nodes on the unix socket are trusted by " +
		"name. For " +
		"one's own cluster without root."},
	{"admins", live, nil, "none", "Users who may act on everyone's jobs, drain nodes and make tokens, on this host; through a relay they " +
		"are " +
		"users like any other. Besides them only root and, with `single_user`, the person who started gangd. Who asks for Slurm's SlurmUser " +
		"is told the first."},
	{"log_format", restart, oneOf("text", "json"), "", "Lines on standard error."},
	{"metrics_listen", restart, listenAddr, "none", "TCP address for `/metrics` without authentication; they are always on `socket`."},
	{"web_listen", restart, listenAddr, "none", "TCP address of the page, such as `127.0.0.1:7421`: see see.md. On an address that others " +
		"reach it " +
		"needs `web_cert` and `web_key`."},
	{"web_url", restart, nil, "`web_listen`, by this host's name where that is no address", "The page's address as people reach it, which " +
		"is what " +
		"`gctl web` prints: that of a proxy before it. Under other names than this, `localhost` and addresses it is not served."},
	{"web_guest", restart, oneOf("off", "queue"), "", "`queue`: whoever opens the page sees the table of the queue and the nodes, with " +
		"names, " +
		"without logging in. For a screen on a wall."},
	{"web_cert", restart, absolute, "none", "Certificate of the page (PEM, with those between it and its authority). Read at the start."},
	{"web_key", restart, absolute, "none", "Its key."},
	{"web_proxy_ca", restart, absolute, "none", "Certificates (PEM) of the authority that signed the client certificate of the site's " +
		"proxy. Of a " +
		"connection with such a certificate the header `X-Remote-User` names who is logged in; the proxy must set it in every request. Nobody " +
		"is root or an admin by that."},
	{"fence_hook", live, absolute, "none", "Program that makes sure that nothing runs on a lost node (cuts its power), run with the node's " +
		"name; " +
		"its exit status 0 counts as `gctl node fence`."},
	{"fence_timeout", live, atLeast(time.Second), "", "It is ended after so long, and a hook that failed is asked again as much later."},
	{"idle_hook", live, absolute, "none", "Program told of idle gangs: `HOOK warn|end|over JOB USER`, its text in `GANG_TEXT`. It may send " +
		"a mail."},
	{"submit_rule", live, absolute, "none", "Program that is asked about each submission before it is taken, and may change or refuse it: " +
		"see " +
		"\"A rule of the site at submission\" in operations.md. Run as gangd's user; one that others may change is not run. Where it gives no " +
		"answer, nothing is taken."},
	{"submit_rule_timeout", live, within(10*time.Millisecond, 10*time.Second), "", "It is ended after so long, which counts as no answer. " +
		"The " +
		"client waits as long."},
	{"mail_server", live, nil, "none", "Mail server (SMTP) for `--mail-type`, such as `smtp.example.org:587`: see notices.md. Without one " +
		"no " +
		"mail is sent, and who asks for it is told so."},
	{"mail_tls", live, oneOf("starttls", "tls", "none"), "", "How its connection is kept secret: `starttls` and `tls` (from the first " +
		"byte, port " +
		"465) want a certificate that this host trusts."},
	{"mail_from", live, nil, "gangd at `mail_domain`", "Who the mail is from."},
	{"mail_login", live, nil, "none", "Name to log in with there."},
	{"mail_password_file", live, absolute, "none", "File with the password, which its owner alone can read."},
	{"mail_domain", live, nil, "none", "Domain of the users' own addresses: `--mail-type` without `--mail-user` goes to USER@DOMAIN."},
	{"mail_domains", live, nil, "`mail_domain`", "Domains to which mail may go; `.example.org` is all below that, `*` any. A job that asks " +
		"for " +
		"another is refused."},
	{"notify_rate", live, between(0, 1<<20), "", "Mails and posts that one user may cause in an hour for long; what comes then waits, and " +
		"goes " +
		"together. `0`: no bound."},
	{"notify_burst", live, between(1, 1<<20), "", "So many at once on top of that."},
	{"history_archive", live, absolute, "none", "Directory to which jobs are written before they are forgotten: `YYYY-MM.jsonl` by the " +
		"month of " +
		"their end, a line each. While that fails nothing is forgotten."},
	{"backup_every", live, atLeast(0), "off", "A backup of the state, as `gangd backup` writes it, is written to " +
		"`backup_dir` each time that so much has passed since the newest there. `off`: none is."},
	{"backup_keep", live, between(1, 10_000), "", "So many of them stay, the newest ones. Others than those that gangd has " +
		"written itself are " +
		"never removed."},
	{"backup_dir", live, absolute, "`DIR/backups`, without `dir` `/var/backups/gangd`", "Where they are, each in a directory of its own: " +
		"`gangd-YYYYMMDDThhmmssZ`. They hold private keys."},
	{"nodes", live, hostLists, "none", "Names of nodes, or lists of them (`n[1-4]`), that are shown (as unknown) before they were ever seen."},
	{"order", live, oneOf("service", "fair", "largest-first", "fifo"), "`service`, with accounts `fair`",
		"How waiting gangs of one tier and priority follow each other: `service` least expected use of the cards first, `fair` who used least " +
			"first, `largest-first` by size, `fifo` by submission."},
	{"topology_file", live, absolute, "none", "The network's switches, in the words of Slurm's topology.conf (`SwitchName=leaf1 " +
		"Nodes=n[1-4]`, " +
		"`SwitchName=spine Switches=leaf[1-2]`). Gangs of several nodes are placed below few of them."},
	{"max_switch_wait", live, atLeast(0), "", "How long at most a gang waits for the number of switches of its `--switches`; then it starts " +
		"anywhere."},
	{"backfill_depth", live, between(1, 100), "`8`, with `preempt = \"service\"` `1`", "So many of the first gangs that can't start are " +
		"given " +
		"places and, from time limits, a start that nothing behind them may delay."},
	{"preempt", live, oneOf("off", "tier", "service"), "", "`tier`: a gang that can't start takes the place of gangs of a lower tier or " +
		"priority. `service`: also of gangs of its own that hand their work over and need a fifth more yet."},
	{"guard_after", live, atLeast(0), "", "A gang that waited so long goes to the front of its tier, with `order = \"service\"` also after " +
		"four " +
		"times its own time limit. With `preempt = \"service\"` only the former counts, not before the time the cluster would need for all " +
		"that waits, and later for a gang larger than `guard_percent`, at most 50 times this. `off`: never."},
	{"preempt_hysteresis", live, between(101, 10000), "", "With `preempt = \"service\"`: a gang is stopped for one of its tier only when it " +
		"needs at least so many percent of what that one does yet."},
	{"min_run_max", nextJob, atLeast(0), "", "Longest `--min-run` that a job may ask for, and that counts: so long nobody can take its " +
		"cards. " +
		"`off`: no bound."},
	{"protect_done", live, nil, "", "A gang of which a rank is done is not preempted. Without it such a gang is a victim like others that " +
		"may " +
		"not run again: last among equals, and it ends."},
	{"guard_percent", live, between(1, 100), "", "Part of all cards that may be given away so at a time."},
	{"fair_half_life", restart, atLeast(time.Minute), "", "GPU time used so long ago counts half, in `order=fair`."},
	{"user_cards", live, between(0, 1<<20), "no cap", "Cards that the gangs of one user may hold at a time."},
	{"user_rate", live, between(0, 1<<20), "", "Requests that one user may make in a second for long; a submission of an array is one. What " +
		"comes earlier is refused with the time when it may come again, which our commands wait for. Admins and nodes are not counted. `0`: " +
		"no bound."},
	{"user_burst", live, between(1, 1<<20), "", "Requests that he may make at once on top of that."},
	{"user_streams", live, between(0, 1<<20), "", "Streams that one user may follow at a time: events, and output (`glog -f`). Admins are " +
		"not " +
		"counted. `0`: no bound."},
}, settingRows...), lists: map[string]list{
	"partition": {partitionRows, itemsOf(func(c *Controller) []api.Partition { return c.Partitions })},
	"account":   {accountRows, itemsOf(func(c *Controller) []Account { return c.Accounts })},
	"licence":   {licenceRows, itemsOf(func(c *Controller) []api.Pool { return c.Licences })},
	"notify":    {webhookRows, itemsOf(func(c *Controller) []Webhook { return c.Webhooks })}},
	renamed: map[string]string{"reservations": "backfill_depth", "reservation_timeout": "start_timeout"}}

var accountRows = []row{
	{"name", restart, nil, "", "Its name, needed; what `--account` says."},
	{"cards", live, between(0, 1<<20), "no cap", "Cards that its gangs may hold at a time."},
	{"quota", live, between(0, 1<<20), "none", "Cards that are its own: lent to others while it does not use them, and taken back by " +
		"preemption " +
		"when it does."},
	{"share", live, between(0, 1<<20), "1", "Weight in `order=fair`."},
	{"users", live, nil, "everybody", "Who may name it. Jobs of a user that name none belong to the first account that lists him. An " +
		"account " +
		"without it is open to all, so that a cap of another (`cards`) can be left by naming it: where caps shall hold, every account lists " +
		"its users. gangd warns at its start of a cap that can be left."},
	{"default", live, nil, "", "Jobs that name none, of users whom no account lists, belong to it. Without a default they belong to no " +
		"account, " +
		"and no account's `cards` bind them."},
}

var licenceRows = []row{
	{"name", restart, nil, "", "Its name, needed; what `--licenses` says."},
	{"count", live, between(0, 1<<20), "", "How many the site has. Jobs that ask for some (`--licenses=NAME:N`) hold them from their start " +
		"to " +
		"their end, whichever nodes they run on, and wait while there are too few."},
}

var webhookRows = []row{
	{"name", restart, nil, "", "Its name, needed; what `--notify` says."},
	{"url", live, nil, "", "Where it is posted to, `https://HOST/PATH`, or `url_file`. A redirect is not followed."},
	{"url_file", live, absolute, "none", "File with the URL, which its owner alone can read: for those whose path is a secret."},
	{"format", live, oneOf("gang", "text"), "gang", "`gang`: all of each event, as notices.md says; `text`: one text, as Slack, Mattermost " +
		"and " +
		"Teams take it."},
	{"secret_file", live, absolute, "none", "File with a key, which its owner alone can read: each post is signed with it (HMAC-SHA256)."},
	{"private", live, nil, "", "Its address may be one of this host or of a private network. Without it such an address is refused, " +
		"whatever its " +
		"name leads to."},
}

var partitionRows = []row{
	{"name", restart, nil, "", "Its name, needed."},
	{"nodes", live, hostLists, "every node", "Names of its nodes, or lists of them: `n[1-4]`."},
	{"default", live, nil, "the first partition", "Jobs that name no partition go here."},
	{"default_time", nextJob, atLeast(0), "unlimited", "Time limit of jobs that ask for none."},
	{"max_time", live, atLeast(0), "unlimited", "Longest time limit that a job may ask for."},
	{"tier", live, between(-1000, 1000), "", "Gangs of a higher tier go before all others, whatever their priority."},
	{"state", live, oneOf("up", "down", "drain", "inactive"), "up", "`down`: jobs are queued and not started; `drain`: no more are queued; " +
		"`inactive`: neither."},
	{"allow_users", live, nil, "everybody", "Users who may run jobs in it, besides those of `allow_groups`."},
	{"allow_groups", live, nil, "everybody", "Groups of this host, and of its directory, whose members may run jobs in it, besides " +
		"`allow_users`. Who is of them is looked up each minute."},
	{"allow_accounts", live, nil, "any", "Accounts under which jobs run in it."},
	{"deny_accounts", live, nil, "none", "Accounts under which none do; not looked at with `allow_accounts`."},
	{"min_nodes", live, between(0, 65536), "any", "Fewest nodes of a job in it. Of a heterogeneous job each component is counted by itself."},
	{"max_nodes", live, between(0, 65536), "any", "Most nodes of a job in it."},
	{"stall_timeout", nextJob, atLeast(0), "the site's", "`stall_timeout` of its jobs that do not say. `off`: their silence is not judged."},
	{"stall_retries", live, between(0, 1<<20), "the site's", "`stall_retries` of its jobs that do not say."},
	{"gpu_watch", nextJob, nil, "", "Watch the cards of every job as if it had asked with `--gpu-watch`."},
	{"idle_limit", nextJob, atLeast(0), "the site's", "`idle_limit` of its jobs. `off`: exempt."},
}

var settingRows = []row{
	{"start_timeout", nextJob, atLeast(10 * time.Millisecond), "", "A gang of which not every member is ready after this goes back to " +
		"blocked. A " +
		"node whose session broke is waited for as long."},
	{"grace", nextJob, atLeast(time.Millisecond), "", "From the stop signal to the forced exit, for jobs that do not say."},
	{"drain_slack", live, atLeast(time.Millisecond), "", "A member that has not reported its end within grace and this is forced out of " +
		"its gang " +
		"and fenced."},
	{"reboot_timeout", live, atLeast(time.Second), "", "So long a node that was told to reboot may take until it is back: it is not lost " +
		"by its silence before, and out of service for a person to look at afterwards."},
	{"node_timeout", live, atLeast(10 * time.Millisecond), "", "A node silent for so long is lost, and its gangs drain."},
	{"lease", restart, atLeast(0), "", "Ranks that no controller has reached for so long end by themselves, which is how a lost node is " +
		"known to be " +
		"empty. `off`: never."},
	{"heartbeat", restart, atLeast(10 * time.Millisecond), "", "Between two beats of a node's session, and between two readings of its " +
		"cards."},
	{"retry_backoff", live, atLeast(0), "", "Pause before the first run again of a gang that failed; doubles each time."},
	{"retry_backoff_max", live, atLeast(0), "", "Longest such pause."},
	{"stall_timeout", nextJob, atLeast(0), "", "A rank that has begun to beat and then is silent for so long is suspected to have stalled. " +
		"`off`: " +
		"not judged."},
	{"stall_confirm_samples", nextJob, between(1, 1000), "", "Readings that must all show the gang idle and still before a stall is " +
		"believed; at " +
		"least two are taken."},
	{"stall_confirm_interval", nextJob, atLeast(time.Millisecond), "", "Between two of them."},
	{"gpu_idle_percent", nextJob, between(0, 100), "", "A card that a gang's own processes use at most so much is idle."},
	{"memory_static_bytes", nextJob, atLeastBytes(0), "", "Memory of a card that moved less than this between readings is static."},
	{"host_static_bytes", nextJob, atLeastBytes(1), "", "Host memory of a gang's processes on a node, and their disk and network traffic, " +
		"that move " +
		"at most so much in a second are static; a burst of as much on top is."},
	{"gpu_hang_window", nextJob, atLeast(time.Millisecond), "", "Cards of a job with `--gpu-watch` that are idle and static for so long " +
		"hang."},
	{"gpu_hang_load_grace", nextJob, atLeast(0), "", "Not judged for so long after the start."},
	{"stall_retries", live, between(0, 1<<20), "", "Runs again after causes stalled and gpu-hang, for jobs that do not say."},
	{"stall_dump", live, atLeast(0), "", "Longest that the stop of a stalled or hanging gang waits for its stacks, which are written to the " +
		"job's log. They are begun an interval before the decision. `off`: none are written, and where ranks are is not compared at an end."},
	{"idle_limit", nextJob, atLeast(0), "", "Gangs whose cards were idle and static for so long are warned (event, `idle_hook`). `off`: " +
		"nobody is."},
	{"idle_end", nextJob, atLeast(0), "", "Warned gangs whose cards stay idle for so much longer are ended, cause idle. `off`: the warning " +
		"is all."},
	{"idle_retries", live, between(0, 1<<20), "", "Runs again after cause idle."},
	{"idle_exempt", nextJob, nil, "none", "Users whose gangs may idle. For a partition: its own `idle_limit = \"off\"`."},
	{"launch_retries", live, between(0, 1<<20), "", "Runs again after cause launch."},
	{"node_lost_retries", live, between(0, 1<<20), "", "Runs again after cause node-lost, for jobs that do not say."},
	{"launch_strikes", live, between(1, 1<<20), "", "Failed launches in a row that drain a node. They have to be of at least two users' " +
		"jobs; " +
		"several of one user alone count once."},
	{"shared_vram_grace", live, atLeast(0), "", "A rank over its VRAM on a shared card is stopped after so long."},
	{"preempt_min_run", live, atLeast(0), "", "A gang is not preempted before it has run so long."},
	{"invalid_dependency", nextJob, oneOf("cancel", "wait"), "", "A job whose dependency can never be met ends, or stays for a person to " +
		"look at; " +
		"`--kill-on-invalid-dep` says it for one job."},
	{"card_names", nextJob, oneOf(api.CardsAuto, api.CardsByUUID, api.CardsByNumber), "", "How `CUDA_VISIBLE_DEVICES` names cards to jobs: " +
		"`uuid`, " +
		"or `number` as Slurm does, for programs that count on numbers; `auto` is `number` for jobs that were submitted by Slurm's names " +
		"(sbatch, srun, salloc) and `uuid` for others. `--card-names` chooses for one job. Numbers are the node's, in the order of the PCI " +
		"bus (`CUDA_DEVICE_ORDER` says so); where a job is kept from the other cards' device files they count its own from 0. MIG instances " +
		"are always named by UUID."},
	{"propagate_limits", nextJob, limitNames, "", "Soft resource limits (`ulimit -S`) of the process that calls sbatch or srun that a " +
		"script or the " +
		"tasks of a step have, each at most the node's hard limit: `ALL` as Slurm's default, `NONE`, or names (`NOFILE,STACK,MEMLOCK`). " +
		"`--propagate` says it for one job."},
	{"mpi_default", nextJob, oneOf(api.MPINone, api.MPIPMI2, api.MPIPMIx), "", "What serves the tasks of a step that says no `--mpi`: " +
		"`pmix` (Open " +
		"MPI; where libpmix is installed on the nodes), `pmi2` (MPICH, MVAPICH, Intel MPI) or `none`, as Slurm's MpiDefault."},
	{"slurm_version", live, oneOf(api.SlurmVersions...), "", "The Slurm that the commands speak as, by Slurm's names: what --version says, " +
		"and " +
		"the shape of --json and --yaml. `GANG_SLURM_VERSION` says it for one caller."},
	{"ports", nextJob, portRange, "", "FIRST-LAST: out of them `--resv-ports` of grun and gsubmit gives ports that no other step or gang " +
		"on the " +
		"same nodes is told (`GANG_PORTS`). They should be free of services and outside the ephemeral range. Empty: none."},
	{"user_jobs", live, between(0, 1<<30), "", "Jobs of one user that have not ended; an element of an array is one. `0`: no cap."},
	{"user_bytes", live, atLeastBytes(0), "", "Scripts, environments and options of those, together; an array has one. `0`: no cap."},
	{"max_jobs", live, between(0, 1<<30), "", "Jobs of all users that have not ended. `0`: no cap."},
	{"keep_ended", nextJob, atLeast(0), "", "Ended jobs stay in memory, and in `gqueue -t all`, for so long, of more than 50,000 those " +
		"that ended " +
		"last; a submission that is repeated with the key of one gives its id."},
	{"history_keep", live, atLeast(0), "", "Ended jobs, and events of nodes, are forgotten so long after their end. `off`: they are not for " +
		"their age."},
	{"history_jobs", live, between(0, 1<<40), "", "So many of the jobs that ended last are kept, older ones are forgotten. `0`: no limit. " +
		"A job " +
		"takes 3 to 4 kB."},
}

var nodeTable = &table{daemon: "gnoded", rows: []row{
	{"name", restart, nil, "this host's name up to the first dot", "The node's name. With TLS it must be the one in its certificate."},
	{"dir", restart, absolute, "none", "Root of a cluster in one directory, as `gangd dev` makes it: `state_dir`, `controller` and " +
		"`sim_gpu_file` " +
		"default into it."},
	{"state_dir", restart, absolute, "`DIR/state/NAME`, without `dir` `/var/lib/gnoded`", "Members, their results, and the node's key and " +
		"certificate."},
	{"controller", restart, controllerAddrs, "`unix:DIR/run/gangd.sock`, without `dir` `unix:/run/gangd/gangd.sock`",
		"Where gangd is: `unix:/path`, or `host:port`. Without it a host that has joined goes to where it joined. Of several controllers one " +
			"is enough to begin with, and all are better: `a:7420,b:7420`."},
	{"address", restart, nil, "this host's name", "Where ranks on other nodes reach this one (`MASTER_ADDR`, `GANG_PEERS`)."},
	{"cards", restart, cards, "", "`auto` (NVML where there is a driver), `nvml`, `none`, or simulated cards such as `8x80G`."},
	{"sim_gpu_file", restart, absolute, "`DIR/sim/NAME.json`, without `dir` none", "Steers simulated cards at run time."},
	{"cpus", restart, between(0, 1<<20), "detected", "CPU slots offered."},
	{"cpu_bind", restart, oneOf("auto", "cores", "none"), "", "`cores`: each job has CPUs of its own on this node, whole cores near its " +
		"cards, and " +
		"can use no others. `none`: all may use all. `auto`: `cores`, but `none` where `cpus` is more than the machine has, and with `dir`, " +
		"where several nodes share a machine."},
	{"memory_near", restart, nil, "", "Memory of a job is taken at the NUMA nodes of its CPUs and nowhere else, so that who fills them " +
		"ends for " +
		"want of memory. Needs the controller cpuset."},
	{"cpu_list", restart, cpuList, "all", "CPUs for jobs, such as `2-63,66-127`: the others are left to the system. Of several gnoded on " +
		"one " +
		"machine each needs its own, or `cpu_bind = \"none\"`."},
	{"memory", restart, atLeastBytes(0), "detected", "Memory offered."},
	{"features", live, features, "none", "Words that `--constraint` matches."},
	{"cgroup", restart, cgroupDir, "found", "Directory of a control group hierarchy, which may be written, to make jobs' groups in; " +
		"`none`: jobs " +
		"are held without groups, and what they use is sampled."},
	{"job_processes", restart, between(0, 1<<22), "a quarter of what the machine can have", "Processes and threads that the ranks of one " +
		"job may " +
		"have here together. All jobs together leave an eighth of what the machine can have (64 to 4,096) to gnoded and the system, whatever " +
		"this says."},
	{"job_limits", nextJob, jobLimits, "`[\"memlock=unlimited\"]`", "`NAME=SOFT` or `NAME=SOFT:HARD`, by the names and units of " +
		"limits.conf(5), " +
		"over those that a login of the job's user has on this node, with which his ranks start. Neither gnoded's own limits nor its " +
		"niceness, oom_score_adj, CPUs and I/O class reach a job. The memory that a job locks is its memory all the same, and network cards " +
		"that reach into it ask for much."},
	{"min_uid", live, nil, "", "Users with a lower uid are refused, whatever gangd says."},
	{"groups", live, nil, "none", "When set, only members of one of these groups may run here, whatever gangd says."},
	{"reboot_program", live, absolute, "none", "Program that reboots this node, run as gnoded's user with the node's name when " +
		"nothing runs here and `gctl node reboot` (or `scontrol reboot`) has asked for it. An exit status other than 0 keeps " +
		"the node out of service; that it " +
		"is back is known from its boot id alone. It may be run again for the same reboot."},
	{"health_program", live, absolute, "none", "The site's own check of this node, run with its name. Exit status 0: fit; 75: can't tell; " +
		"any " +
		"other, or too late: the node is drained with the first line of its output, and comes back when the program is content."},
	{"health_interval", live, atLeast(100 * time.Millisecond), "", "Between two runs of it; at most 10 s while the node is out of service."},
	{"health_timeout", live, atLeast(100 * time.Millisecond), "", "It is ended after so long, which counts as not fit."},
	{"containers", restart, nil, "", "Jobs may run in unpacked images here (`--container-image`). Needs root."},
	{"container_images", restart, absolutePaths, "any directory that the user can enter", "Directories that images have to be below."},
	{"container_mounts", restart, nil, "none", "`SRC:DST` or `SRC:DST:ro`, shown in every container: the drivers' libraries, data sets."},
	{"container_mount_dirs", restart, absolutePaths, "any directory that the user can enter",
		"Directories that what a job mounts (`--container-mounts`) has to be below, wherever links lead. Its home and working directory are " +
			"always allowed."},
	{"container_driver", restart, oneOf("podman", "enroot", "apptainer"), "none", "What imports the images of registries and packed ones, " +
		"as the " +
		"job's user. It has to be installed. Without one only unpacked images are run."},
	{"container_registries", restart, nil, "any", "`HOST` or `HOST/NAME`: what images have to come from."},
	{"container_cache", restart, absolute, "`images` in `state_dir`", "Where imported images are unpacked, for each user. All users have " +
		"to be able " +
		"to pass to it."},
	{"container_cache_high", restart, atLeastBytes(0), "a quarter of the disk", "When the images there take more, those used longest ago " +
		"are removed."},
	{"container_cache_low", restart, atLeastBytes(0), "8/10 of `container_cache_high`", "Until they take no more than this. Images of jobs " +
		"that are " +
		"here stay."},
	{"import_timeout", restart, atLeast(time.Second), "", "An import that takes longer is ended. `start_timeout` of gangd does not run " +
		"while one " +
		"makes progress."},
	{"private_dirs", restart, absolutePaths, "none", "Directories of which each job has its own on this node, empty at its start and gone " +
		"with it: " +
		"`[\"/tmp\", \"/var/tmp\", \"/dev/shm\"]`. They lie in memory, which counts as the job's, unless `private_path` says where. Needs root."},
	{"private_path", restart, absolute, "none: in memory", "A directory on a local disk that they lie on, in a file without a name for " +
		"each job " +
		"whose blocks are reserved before it starts. `/dev/shm` stays in memory. Needs `mkfs.ext4` and loop devices."},
	{"private_size", restart, atLeastBytes(0), "a quarter of the machine's memory; with `private_path` a tenth of its disk",
		"What a job has in them together unless it asks by `--tmp`."},
	{"prolog", nextJob, absolute, "none", "A program of the site, or a directory of them, that runs as gnoded's user before anything of a " +
		"job does " +
		"on this node. Where one fails the job is started elsewhere, and the node gets a strike with its last line."},
	{"epilog", nextJob, absolute, "none", "Likewise when nothing of a job is left on this node, before its cards and CPUs are given on. " +
		"Where one " +
		"fails the node is drained with its last line; it is tried again each 10 s, and the node comes back when it succeeds."},
	{"task_prolog", nextJob, absolute, "none", "A program of the site, or a directory of them, that runs as the job's user, where and with " +
		"the " +
		"environment that it has, before each rank and each task of a step. Lines that it writes say what it does: `export NAME=value`, " +
		"`unset NAME`, `print TEXT` into the task's output. Where one fails the task ends with its exit status."},
	{"task_epilog", nextJob, absolute, "none", "Likewise after each of them."},
	{"hook_timeout", nextJob, atLeast(100 * time.Millisecond), "", "Each program of them is ended after so long, which counts as a " +
		"failure. Longer " +
		"than `start_timeout` of gangd it can't be waited for."},
	{"expect_cards", live, between(0, 1<<16), "any", "Cards that the driver has to list. With fewer the node is drained, with what lacks " +
		"as the " +
		"reason in `ginfo`, and comes back by itself when they are there. A card that is listed and bad is out alone."},
	{"expect_memory", live, atLeastBytes(0), "any", "Memory that the machine has to have, likewise."},
	{"require_mounts", live, absolutePaths, "none", "Directories at which something has to be mounted, such as `/home`, likewise. They are " +
		"looked up in `/proc/self/mountinfo` each 2 s and before each start; that a mounted file system answers is for `health_program` to try."},
	{"require_names", live, nil, "none", "Hosts whose names have to have an address here, such as the node of another rank or a file " +
		"server, " +
		"likewise: without its resolver a node fails what others would run. Each is asked for within 2 s."},
	{"socket", restart, relaySocket, "`DIR/run/gangd.sock`, without `dir` `/run/gangd/gangd.sock`; with `controller` on a unix socket none",
		"Unix socket of the relay, through which commands on this host, those of jobs above all, reach gangd. Needs `controller` as " +
			"host:port. `none`: no relay, so that `srun`, `squeue` and `sbatch` fail in jobs. Its directory is as gangd's. A node that was not " +
			"told a path goes on without a relay where it can't have this one."},
	{"login", restart, nil, "", "A login host: the relay alone, no ranks and no cards. Needs a certificate from `gangd token new --login`."},
	{"log_format", restart, oneOf("text", "json"), "", "Lines on standard error."},
}}

// IsControllerKey reports whether gangd knows the key.
func IsControllerKey(key string) bool { return controllerTable.row(key) != nil }

// IsNodeKey reports whether gnoded knows the key.
func IsNodeKey(key string) bool { return nodeTable.row(key) != nil }
