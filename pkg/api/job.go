package api

import (
	"slices"
	"strings"
	"time"
)

// Job is a job as `gqueue --json` prints it.
type Job struct {
	JobID         int64            `json:"job_id"`
	ArrayJobID    int64            `json:"array_job_id,omitempty"`
	ArrayIndex    *int             `json:"array_index,omitempty"`
	ArrayLimit    int              `json:"array_limit,omitempty"` // the %4 of 0-15%4
	Name          string           `json:"name"`
	User          string           `json:"user"`
	UID           uint32           `json:"uid"`
	GID           uint32           `json:"gid"`
	Account       string           `json:"account"`
	Partition     string           `json:"partition"`
	State         JobState         `json:"state"`
	StateCode     string           `json:"state_code"`
	Reason        string           `json:"reason"` // Slurm's word: Resources, Priority, JobHeldUser ...
	Why           string           `json:"why"`    // the arithmetic
	Priority      int64            `json:"priority"`
	Cron          *Cron            `json:"cron,omitempty"` // it comes again by a cron table
	Held          string           `json:"held,omitempty"` // "user" or "admin"
	Size          int              `json:"size"`
	Launch        Launch           `json:"launch"`
	Epoch         int              `json:"epoch"`
	RestartCount  int              `json:"restart_count"`
	Budgets       map[Cause]Budget `json:"budgets"`
	Cause         Cause            `json:"cause"`
	TriggerRank   *int             `json:"trigger_rank,omitempty"`
	Verdict       string           `json:"verdict,omitempty"` // one sentence about how it ended
	CancelledBy   string           `json:"cancelled_by,omitempty"`
	ExitCode      *int             `json:"exit_code"`
	Signal        int              `json:"signal,omitempty"` // that ended it, 0: none
	SubmitTime    time.Time        `json:"submit_time"`
	EligibleTime  time.Time        `json:"eligible_time,omitzero"`
	StartTime     time.Time        `json:"start_time,omitzero"`
	ExpectedStart time.Time        `json:"expected_start_time,omitzero"` // of a waiting job, when asked for
	ExpectedSure  bool             `json:"expected_sure,omitempty"`      // at the latest then, by time limits; nobody may come before
	// of a waiting job, when asked for: 1 is next; 0: it is none that could start
	QueuePlace  int `json:"queue_place,omitempty"`
	QueueLength int `json:"queue_length,omitempty"` // of how many
	// ranks of a job that is being started whose nodes are ready for them
	Prepared         int         `json:"prepared,omitempty"`
	EndTime          time.Time   `json:"end_time,omitzero"`
	Epilog           []string    `json:"epilog,omitempty"`                 // nodes on which the site's epilog runs after its last attempt
	TimeLimitSeconds int64       `json:"time_limit_seconds"`               // of a started gang what its limit was cut to; 0: unlimited
	MaxTimeTotal     int64       `json:"max_time_total_seconds,omitempty"` // of all runs together, where the limit of one is no end
	RanSeconds       int64       `json:"ran_seconds,omitempty"`            // of that, used by runs that have ended
	TimeMinSeconds   int64       `json:"time_min_seconds,omitempty"`       // down to this the limit may be cut at a start, 0: not
	Deadline         time.Time   `json:"deadline,omitzero"`
	SafeUntil        time.Time   `json:"safe_until,omitzero"` // of a running gang: it is not preempted before
	SafeBy           string      `json:"safe_by,omitempty"`   // what says so: min-run, preempt_min_run, protect_done (until it ends)
	GraceSeconds     int64       `json:"grace_seconds"`
	Notice           *NoticeView `json:"notice,omitempty"`
	VRAMBytes        int64       `json:"vram_bytes"`
	GPUsPerRank      int         `json:"gpus_per_rank"`
	GPUsPerNode      int         `json:"gpus_per_node,omitempty"` // asked for by node instead
	// of all ranks together, as asked for; where the number of nodes is open, of the fewest
	Cards       int `json:"cards"`
	CPUsPerRank int `json:"cpus_per_rank"`
	// of each of Nodes, which it has to itself; none: what its ranks ask for
	NodeCPUs      []int    `json:"node_cpus,omitempty"`
	MemoryBytes   int64    `json:"memory_bytes"`                    // per rank
	MemoryPerNode int64    `json:"memory_per_node_bytes,omitempty"` // asked for by node instead
	TmpPerNode    int64    `json:"tmp_per_node_bytes,omitempty"`    // temporary space
	Shape         CPUShape `json:"shape,omitzero"`                  // what each of its nodes has at least
	Nodes         []string `json:"nodes"`
	MinNodes      int      `json:"min_nodes,omitempty"`      // the fewest nodes it can start on, 0: unknown
	RanksPerNode  int      `json:"ranks_per_node,omitempty"` // as asked for, 0: any
	NodeList      []string `json:"node_list,omitempty"`      // only these, as asked for
	Exclude       []string `json:"exclude,omitempty"`        // never these, as asked for
	Constraint    string   `json:"constraint,omitempty"`
	Prefer        string   `json:"prefer,omitempty"` // features that are tried before Constraint
	Reservation   string   `json:"reservation,omitempty"`
	Switches      int      `json:"switches,omitempty"` // below at most so many, 0: any number
	Exclusive     bool     `json:"exclusive,omitempty"`
	Share         bool     `json:"share,omitempty"`
	Nice          int64    `json:"nice,omitempty"`
	AsAsked
	Status         string      `json:"status,omitempty"`       // what rank 0 said last (STATUS=), or how far the import of its image is
	Acknowledged   int         `json:"acknowledged,omitempty"` // ranks that said they heard of the stop under way
	Ready          *Readiness  `json:"ready,omitempty"`
	Checkpoint     *Checkpoint `json:"checkpoint,omitempty"`
	TaskCheckpoint *Checkpoint `json:"task_checkpoint,omitempty"` // of the tasks of a step, beside that of a batch script
	WorkDir        string      `json:"work_dir"`
	Command        string      `json:"command"`
	StdOut         string      `json:"std_out"`                   // pattern as asked for or defaulted
	StdErr         string      `json:"std_err,omitempty"`         // empty: with the output
	StdIn          string      `json:"std_in,omitempty"`          // empty: /dev/null
	Image          string      `json:"container_image,omitempty"` // as asked for; empty: no container
	// of what was imported for the first attempt, which later ones run too
	ImageDigest string         `json:"container_image_digest,omitempty"`
	SubmitHost  string         `json:"submit_host,omitempty"`
	Dependency  string         `json:"dependency,omitempty"` // the part that is not met: "afterok:12(unfulfilled)"
	Asked       *Asked         `json:"asked,omitempty"`      // the words it was asked for in
	Words       []string       `json:"words,omitzero"`       // see [Spec].Words
	Roles       []Role         `json:"roles,omitempty"`      // none: all ranks ask for the same
	Components  []JobComponent `json:"components,omitempty"` // of a heterogeneous job, in the order of its roles
	Component   *int           `json:"-"`                    // it is this one of them, see [Job.Part]
	// ComponentID is the id of that one and ComponentIDs those of all, as 12-13; 0 and empty where they have none.
	ComponentID  int64  `json:"-"`
	ComponentIDs string `json:"-"`
	Ranks        []Rank `json:"ranks"`
	Steps        []Step `json:"steps,omitempty"` // that run in its current epoch

	// Of its watchdogs.
	LastBeat            time.Time `json:"last_beat,omitzero"`              // of the rank that has been silent longest
	StallTimeoutSeconds float64   `json:"stall_timeout_seconds,omitempty"` // 0: silence is not judged
	GPUWatch            bool      `json:"gpu_watch,omitempty"`
}

// InPartition reports whether a job is in one of these partitions, or may come to be; none of them means any.
func (j *Job) InPartition(names []string) bool {
	return len(names) == 0 || slices.ContainsFunc(strings.Split(j.Partition, ","), func(p string) bool { return slices.Contains(names, p) })
}

// JobComponent is where a component of a heterogeneous job is.
type JobComponent struct {
	JobID     int64    `json:"job_id,omitempty"` // its own; of one that was submitted to an older controller none
	Name      string   `json:"name,omitempty"`   // empty: the job's
	Size      int      `json:"size"`             // ranks
	MinNodes  int      `json:"min_nodes"`
	Nodes     []string `json:"nodes"`
	Partition string   `json:"partition"`
	NodeCPUs  []int    `json:"node_cpus,omitempty"` // as those of [Job]
}

// Readiness is how many ranks of the current epoch have said READY=1.
type Readiness struct {
	Ranks          int       `json:"ranks"`
	Size           int       `json:"size"`
	TimeoutSeconds int64     `json:"timeout_seconds,omitempty"` // of --ready-timeout, 0: nobody waits for it
	Time           time.Time `json:"time,omitzero"`             // when the gate was passed
}

// NoticeView is a [Notice] in whole seconds.
type NoticeView struct {
	Signal      string      `json:"signal"`
	LeadSeconds int64       `json:"lead_seconds"`
	Scope       SignalScope `json:"scope"`
}

// Budget is how many re-runs a cause has used of how many; Limit -1 is unlimited.
type Budget struct {
	Used  int `json:"used"`
	Limit int `json:"limit"`
}

// Rank is a rank as `gqueue --json` prints it.
type Rank struct {
	Rank      int       `json:"rank"`
	Role      string    `json:"role,omitempty"`
	State     RankState `json:"state"`
	Node      string    `json:"node,omitempty"`
	Cards     []string  `json:"cards,omitempty"` // UUIDs
	PID       int       `json:"pid,omitempty"`
	StartTime time.Time `json:"start_time,omitzero"`
	EndTime   time.Time `json:"end_time,omitzero"`
	ExitCode  *int      `json:"exit_code,omitempty"`
	Signal    int       `json:"signal,omitempty"`
	LastBeat  time.Time `json:"last_beat,omitzero"` // WATCHDOG=1
	Status    string    `json:"status,omitempty"`   // STATUS=
	Ready     bool      `json:"ready,omitempty"`    // READY=1
	Stopping  bool      `json:"stopping,omitempty"` // STOPPING=1: it heard of the stop
}

// JobsReply is `gqueue --json`.
type JobsReply struct {
	SchemaVersion int   `json:"schema_version"`
	Jobs          []Job `json:"jobs"`
}

// Attempt is one epoch that really started, as `gacct --json` prints it.
type Attempt struct {
	JobID       int64     `json:"job_id"`
	Attempt     int       `json:"attempt"` // counted from 1; an epoch that never started is none
	Epoch       int       `json:"epoch"`
	Cause       Cause     `json:"cause"`
	TriggerRank *int      `json:"trigger_rank,omitempty"`
	TriggerRole string    `json:"trigger_role,omitempty"`
	StartTime   time.Time `json:"start_time,omitzero"`
	EndTime     time.Time `json:"end_time,omitzero"`
	Nodes       []string  `json:"nodes"`
	ExitCodes   []int     `json:"exit_codes"`
	GPUSeconds  int64     `json:"gpu_seconds"`
	VRAMPeak    int64     `json:"vram_peak_bytes"` // the most that a rank used on one card, 0: not known
	// Code is how the attempt ended as one number: 0 completed, 75 time limit, 76 stalled,
	// 77 idle, 78 gpu-hang, else the exit code of the trigger rank; -1 where there is none.
	Code   int `json:"code"`
	Signal int `json:"signal,omitempty"` // that ended the trigger rank, where Code is its exit code; 0: none
	// Steps are all of the attempt, and its batch script and allocation as steps of their own.
	Steps []Step `json:"steps,omitempty"`
	// Measures are one a node, in the order of Nodes as far as they are known: of an attempt that has ended as
	// each node said last, of one that runs as of the last minute.
	Measures []Measure `json:"measures,omitempty"`
	// Efficiency sums them up; nil: nothing is known.
	Efficiency *Efficiency `json:"efficiency,omitempty"`
	// Text is what ended it, where something went wrong by itself. Cause, TriggerRank and Text are judged when all of it is
	// over; StartedBy is what was reported first, where that was something else. TiedRanks ended so near to the trigger that any of
	// them may have been the first.
	Text      string         `json:"text,omitempty"`
	TiedRanks []int          `json:"tied_ranks,omitempty"`
	StartedBy *AttemptReport `json:"started_by,omitempty"`
	// Ends are when its ranks ended, in the order of ranks, where something went wrong and there are several.
	Ends []AttemptEnd `json:"ends,omitempty"`
	// Stacks is where its processes were before they were stopped for a hang, or at the time limit; nil: nobody has looked.
	Stacks *Stacks `json:"stacks,omitempty"`
}

// AttemptReport is a reason for which an attempt had to end, as it came.
type AttemptReport struct {
	Cause       Cause  `json:"cause"`
	TriggerRank *int   `json:"trigger_rank,omitempty"`
	Text        string `json:"text"`
}

// AttemptEnd is when one rank ended.
type AttemptEnd struct {
	Rank   int     `json:"rank"`
	MS     float64 `json:"ms"`                  // after the first of all
	Within float64 `json:"within_ms,omitempty"` // what that may be wrong by for the clock of its node, in milliseconds
	Own    bool    `json:"own,omitempty"`       // by itself: others were stopped
}

// JobDetail is `gctl show job --json`: one job with its attempts.
type JobDetail struct {
	SchemaVersion int       `json:"schema_version"`
	Job           Job       `json:"job"`
	Attempts      []Attempt `json:"attempts"`
}

// EventType names what happened to a job.
type EventType string

// The event types of the outside contract.
const (
	EventSubmitted      EventType = "submitted"
	EventReserved       EventType = "reserved"
	EventPrepared       EventType = "prepared"
	EventRolledBack     EventType = "rolled_back"
	EventStarted        EventType = "started"
	EventNotice         EventType = "notice"
	EventRankExited     EventType = "rank_exited"
	EventDrainStarted   EventType = "drain_started"
	EventMemberStopped  EventType = "member_stopped"
	EventDrainCompleted EventType = "drain_completed"
	EventStaleRefused   EventType = "stale_refused"
	// its node's record of it is missing or damaged, as Text says; what lives of it is held to be it
	EventMemberFound  EventType = "member_found"
	EventHeld         EventType = "held"
	EventReleased     EventType = "released"
	EventRequeued     EventType = "requeued" // it had ended, and waits again under its number
	EventUpdated      EventType = "updated"  // Text: what is different
	EventSignalled    EventType = "signalled"
	EventMessage      EventType = "message"             // Text: what a person has to say of the job
	EventAcknowledged EventType = "notice_acknowledged" // ranks heard of the stop: Acknowledged of Size
	// nobody of a gang that is cancelled or requeued can hear the notice: the stop comes at once
	EventUnheard        EventType = "notice_unheard"
	EventReady          EventType = "ready" // each of Size ranks said READY=1, Seconds after the start
	EventCheckpoint     EventType = "checkpoint_saved"
	EventMemoryKills    EventType = "memory_kills" // the kernel killed processes of a member for want of memory, as Text says
	EventWarned         EventType = "warned"       // a rank does what it will be stopped for when it goes on
	EventEnded          EventType = "ended"
	EventStallSuspected EventType = "stall_suspected" // a rank stopped beating: the cards are looked at
	EventStallDismissed EventType = "stall_dismissed" // they were not idle, or could not be read
	EventIdleWarned     EventType = "idle_warned"     // the cards have been idle for the site's limit
	EventIdleOver       EventType = "idle_over"       // a warned gang works again
	// where the processes of a gang that hangs, or has used up its time, were, and who is not where the others are
	EventStacks           EventType = "stacks"
	EventWatchBlind       EventType = "watchdog_blind"    // for too long nothing could be told of the cards, or of a silent rank
	EventTimeLimitNear    EventType = "time_limit_near"   // Percent of the time limit is over, of which somebody asked to be told
	EventDependencyFailed EventType = "dependency_failed" // it can never be met, and the job waits for a person
)

// The event types of a node's story; their JobID is 0.
const (
	EventNodeUp              EventType = "node_up"       // first contact, or contact again
	EventNodeSuspect         EventType = "node_suspect"  // its session was cut
	EventNodeLost            EventType = "node_lost"     // silent for node_timeout: the DEAD NODE line
	EventNodeFeatures        EventType = "node_features" // said by a person, over what the node says of itself
	EventNodeDrained         EventType = "node_drained"  // taken out of service, by a person or after failed launches
	EventNodeResumed         EventType = "node_resumed"
	EventNodeRebootAsked     EventType = "node_reboot_asked" // Text: when, by whom, why
	EventNodeRebootCancelled EventType = "node_reboot_cancelled"
	EventNodeRebooting       EventType = "node_rebooting"     // nothing is left there, and it was told to
	EventNodeRebootFailed    EventType = "node_reboot_failed" // for the reason in Text; it stays out of service
	EventNodeForgotten       EventType = "node_forgotten"     // a person took a lost node out of the cluster
	EventNodeFenced          EventType = "node_fenced"        // a person's word, or the lease: nothing runs there any more
	EventCardState           EventType = "card_state"         // a card was quarantined, or is fine again
	// its health program, or what it lacks, took the node out of service; without Text: it is back
	EventNodeHealth EventType = "node_health"
)

// EventReconfigured is of the whole site: its configuration was read again, and Text says by whom and what is otherwise. Its JobID is 0.
const EventReconfigured EventType = "reconfigured"

// The event types of a reservation's story; their JobID is 0, and Text says the rest.
const (
	EventPartitionCreated   EventType = "partition_created"
	EventPartitionUpdated   EventType = "partition_updated"
	EventCrontab            EventType = "crontab"     // a user's cron table was replaced, or a line of it switched off
	EventComesAgain         EventType = "comes_again" // a job of a cron table waits for its next time
	EventPartitionDeleted   EventType = "partition_deleted"
	EventReservationCreated EventType = "reservation_created"
	EventReservationUpdated EventType = "reservation_updated"
	EventReservationDeleted EventType = "reservation_deleted"
	EventReservationBegan   EventType = "reservation_began"
	EventReservationEnded   EventType = "reservation_ended"
)

// Event is one line of a job's story. Seq orders all events of a controller and is the
// cursor of `gctl events --since`.
type Event struct {
	Seq   int64     `json:"seq"`
	Time  time.Time `json:"time"`
	JobID int64     `json:"job_id"`
	Epoch int       `json:"epoch"`
	Type  EventType `json:"type"`

	Nodes        []string      `json:"nodes,omitempty"`
	Node         string        `json:"node,omitempty"`
	Rank         *int          `json:"rank,omitempty"`
	Task         *TaskKey      `json:"task,omitempty"` // of a step, in the place of a rank
	Cause        Cause         `json:"cause,omitempty"`
	Trigger      *int          `json:"trigger,omitempty"` // rank whose failure began the drain
	Moved        int           `json:"moved,omitempty"`   // ranks that the drain stops
	Forced       bool          `json:"forced,omitempty"`
	ExitCode     *int          `json:"exit_code,omitempty"`
	ExitCodes    map[int]int   `json:"exit_codes,omitempty"` // by rank
	Signal       string        `json:"signal,omitempty"`
	LeadSeconds  int64         `json:"lead_seconds,omitempty"`
	Outcome      string        `json:"outcome,omitempty"`
	Seconds      float64       `json:"seconds,omitempty"`
	State        JobState      `json:"state,omitempty"`
	ClaimedEpoch int           `json:"claimed_epoch,omitempty"`
	Size         int           `json:"size,omitempty"`         // ranks of the gang
	Jobs         []int64       `json:"jobs,omitempty"`         // jobs that a node's fate touches
	LastSeen     time.Time     `json:"last_seen,omitzero"`     // of a lost node
	Bytes        int64         `json:"bytes,omitempty"`        // of a checkpoint
	Acknowledged int           `json:"acknowledged,omitempty"` // ranks that said STOPPING=1, of Size
	Samples      []CardFinding `json:"samples,omitempty"`      // what a watchdog saw of the cards, the least idle first
	Hosts        []HostFinding `json:"hosts,omitempty"`        // and of the gang's processes, by node
	Reservation  string        `json:"reservation,omitempty"`  // whose story this is
	Percent      int           `json:"percent,omitempty"`
	Text         string        `json:"text,omitempty"`
}

// EventsPage is how many events one answer lists at most.
const EventsPage = 1000

// EventsReply is `gctl events ID --json`, and one page of it on the wire.
type EventsReply struct {
	SchemaVersion int     `json:"schema_version"`
	Events        []Event `json:"events"`
	More          bool    `json:"more,omitempty"` // there are later ones: ask again, since the last of these
}
