package fault

// The mutants, each named for its bug. [All] says what each does.
const (
	LeaseFromReceipt    Mutant = "lease-from-receipt"
	DrainingIsFree      Mutant = "draining-is-free"
	SentUncommitted     Mutant = "sent-uncommitted"
	LeftUnasked         Mutant = "left-unasked"
	StartAfterLease     Mutant = "start-after-lease"
	GateOutlivesSession Mutant = "gate-outlives-session"
	StrayIsNothing      Mutant = "stray-is-nothing"

	// Of admission.
	EpochReused        Mutant = "epoch-reused"
	ReserveUnchecked   Mutant = "reserve-unchecked"
	PartialReserve     Mutant = "partial-reserve"
	GateTooEarly       Mutant = "gate-too-early"
	RollbackKeepsGrant Mutant = "rollback-keeps-grant"
	NoBackoff          Mutant = "no-backoff"
	ReservationForever Mutant = "reservation-forever"
	ReservationIgnored Mutant = "reservation-ignored"
	PortsOfDraining    Mutant = "ports-of-draining"
	ArrayLimitOff      Mutant = "array-limit-off-by-one"
	HeldAdmitted       Mutant = "held-admitted"
	FailedIsGood       Mutant = "failed-is-good"
	OutOfServiceUsed   Mutant = "out-of-service-used"

	// Of drains and verdicts.
	SiblingsCharged        Mutant = "siblings-charged"
	PreemptionCharged      Mutant = "preemption-charged"
	EveryoneRefunded       Mutant = "everyone-refunded"
	VerdictLater           Mutant = "verdict-later"
	VerdictOverwritten     Mutant = "verdict-overwritten"
	RequeueAfterCancel     Mutant = "requeue-after-cancel"
	CancelInDrainForgotten Mutant = "cancel-in-drain-forgotten"
	DoneOverwritten        Mutant = "done-overwritten"
	ForceUnfenced          Mutant = "force-unfenced"
	DrainForever           Mutant = "drain-forever"
	ExitBeforeStop         Mutant = "exit-before-stop"
	LastFailureBlamed      Mutant = "last-failure-blamed"

	// Of what nodes say.
	StaleEpoch        Mutant = "stale-epoch"
	ExitTwice         Mutant = "exit-twice"
	BootIDIgnored     Mutant = "boot-id-ignored"
	MissingStillRuns  Mutant = "missing-still-runs"
	LostReadmitted    Mutant = "lost-readmitted"
	FencedForever     Mutant = "fenced-forever"
	LeaseWithoutGrace Mutant = "lease-without-grace"
	MostVanished      Mutant = "most-vanished"
	NeverFull         Mutant = "never-full"

	// Of the store.
	AckBeforeCommit Mutant = "ack-before-commit"
	FsyncIgnored    Mutant = "fsync-ignored"
	DiskFullDropped Mutant = "disk-full-dropped"
	HoldIgnored     Mutant = "hold-ignored"
	LineageInBeats  Mutant = "lineage-in-beats"
	RunIgnored      Mutant = "run-ignored"
	IDReused        Mutant = "id-reused"
	KeyForgotten    Mutant = "key-forgotten"

	// Of checkpoints.
	StalePut      Mutant = "stale-put"
	SetIncomplete Mutant = "set-incomplete"
	SetMixed      Mutant = "set-mixed"

	// Of the node.
	LeaseOnMonotonic   Mutant = "lease-on-monotonic"
	LimitOnBootClock   Mutant = "limit-on-boot-clock"
	StopResentRestarts Mutant = "stop-resent-restarts"
	LongerGrace        Mutant = "longer-grace"
	NoticeTwice        Mutant = "notice-twice"
	DeadShimBelieved   Mutant = "dead-shim-believed"
)

// Known is a mutant and what it does.
type Known struct {
	Mutant Mutant
	Text   string
}

// All is every mutant.
var All = []Known{
	{LeaseFromReceipt, "the node counts its lease from when an echo came, not from when its beat was sent"},
	{DrainingIsFree, "what a draining gang holds is given on before it is proven gone"},
	{SentUncommitted, "desired sets go out before their commit"},
	{LeftUnasked, "a member that is over is not asked for, where the node may never have been told of it"},
	{StartAfterLease, "a start that slept with its machine begins after the lease has run out"},
	{GateOutlivesSession, "a start that was ordered before a node was cut off is carried out when it finds contact again"},
	{StrayIsNothing, "what was counted gone and lives all the same, on a node that is back, is no obstacle to new work there"},

	{EpochReused, "a gang that is admitted again keeps the epoch that it had"},
	{ReserveUnchecked, "a reservation is made as it was planned, without a look at what is free now"},
	{PartialReserve, "a gang is admitted though its last node keeps no grant for it"},
	{GateTooEarly, "the gate is opened while one member is still being prepared"},
	{RollbackKeepsGrant, "a member that refused keeps its grant after the gang was rolled back"},
	{NoBackoff, "a gang that failed is admitted again at once"},
	{ReservationForever, "a reserved gang waits for its last member without an end"},
	{PortsOfDraining, "the ports of a draining gang are given out while it still listens on them"},
	{ReservationIgnored, "gangs are admitted to nodes that are reserved for others"},
	{ArrayLimitOff, "one element more than its limit of an array is admitted"},
	{HeldAdmitted, "a held job is admitted"},
	{FailedIsGood, "a dependency on success is met by a job that failed"},
	{OutOfServiceUsed, "a node that was taken out of service is given new work"},

	{SiblingsCharged, "ranks that were stopped because of another are charged too"},
	{PreemptionCharged, "a preemption is charged as a crash"},
	{EveryoneRefunded, "a second cause during a drain gives the charge for the first one back"},
	{VerdictLater, "the last completion and the verdict are two commits"},
	{VerdictOverwritten, "a job that has ended is ended again"},
	{RequeueAfterCancel, "a cancelled job whose stop had another cause runs again"},
	{CancelInDrainForgotten, "a cancel that comes while the gang is being stopped is answered and forgotten"},
	{DoneOverwritten, "a gang of which a rank is done runs again and overwrites its work"},
	{ForceUnfenced, "what has not stopped in time is taken for gone"},
	{DrainForever, "a drain has no last moment"},
	{ExitBeforeStop, "the exits that a time limit brought about are taken for failures"},
	{LastFailureBlamed, "of several failures in one word the last one is the trigger"},

	{StaleEpoch, "what a node says of an old epoch is taken for the current one"},
	{ExitTwice, "a repeated report records an exit again"},
	{BootIDIgnored, "a node that has rebooted passes for one whose session broke"},
	{MissingStillRuns, "what a node does not list any more is believed to run on"},
	{LostReadmitted, "the gang of a lost node is admitted again before anything proves the node's part gone"},
	{FencedForever, "a fenced member is not let go of when it is known gone"},
	{LeaseWithoutGrace, "a member counts as gone when its lease ends, not when the stop that this brings is over"},
	{MostVanished, "a controller that can see hardly any node believes that all those leases matter"},
	{NeverFull, "the first set of a session is not the whole: what is not in it stays"},

	{AckBeforeCommit, "callers are answered before the commit"},
	{FsyncIgnored, "after a failed fsync the controller goes on"},
	{DiskFullDropped, "a commit that finds the disk full is dropped"},
	{HoldIgnored, "a store that is older than what nodes have seen is believed"},
	{LineageInBeats, "a node hears of the newest commit with the next beat, not with the order that it made"},
	{RunIgnored, "a store that lacks few commits is believed when it has caught up in number"},
	{IDReused, "after a restart ids follow the newest job that lives"},
	{KeyForgotten, "after a restart the keys of submissions are not known"},

	{StalePut, "a checkpoint of an epoch that is over is taken"},
	{SetIncomplete, "the first checkpoint of an epoch passes for a whole set"},
	{SetMixed, "a gang starts from a set of which only some ranks have put theirs"},

	{LeaseOnMonotonic, "the lease stands still while its machine is suspended"},
	{LimitOnBootClock, "the time limit runs on while the machine is suspended"},
	{StopResentRestarts, "a stop that is sent again restarts the clock of the grace"},
	{LongerGrace, "a later stop gives more grace than the first"},
	{NoticeTwice, "ranks get the early signal a second time"},
	{DeadShimBelieved, "the last words of a shim that died are taken for what is so"},
}
