package fault

// The mutants, each named for its bug.
const (
	LeaseFromReceipt    Mutant = "lease-from-receipt"    // the node counts its lease from when an echo came, not from when its beat was sent
	DrainingIsFree      Mutant = "draining-is-free"      // what a draining gang holds is given on before it is proven gone
	SentUncommitted     Mutant = "sent-uncommitted"      // desired sets go out before their commit
	LeftUnasked         Mutant = "left-unasked"          // a member that is over is not asked for, where the node may never have been told of it
	StartAfterLease     Mutant = "start-after-lease"     // a start that slept with its machine begins after the lease has run out
	GateOutlivesSession Mutant = "gate-outlives-session" // a start that was ordered before a node was cut off is carried out when it finds contact again
	StrayIsNothing      Mutant = "stray-is-nothing"      // what was counted gone and lives all the same, on a node that is back, is no obstacle to new work there
)

// All is every mutant.
var All = []Mutant{LeaseFromReceipt, DrainingIsFree, SentUncommitted, LeftUnasked, StartAfterLease, GateOutlivesSession, StrayIsNothing}
