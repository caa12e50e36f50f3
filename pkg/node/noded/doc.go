// Package noded is the node daemon: it makes what the controller desires of this machine
// true, and says what is.
//
// One [daemon] has a set of members. Each member has one goroutine that owns it (its
// directory, its shim, what was last reported of it); whoever else wants something of a member writes
// it into its mailbox ([want]) and wakes it. Reports go to the [Board], which holds the
// newest word on each member and is emptied into one frame when the session can write.
// Shims come from a [shim.Pool], which keeps a few processes for the members to come.
//
// Life of a member:
//
//	body -> preparing -> ready --gate--> running --stop, or its own end--> stopped --forget--> gone
//	            |          |                                  |               ^
//	            |          +--stop----------------------------|---------------+
//	            +--> refused --forget--> gone                 +--> stuck (until what KILL left is gone)
//	       a shim that died without a result --> lost --forget--> gone
//
// Invariants:
//   - A gate is opened only for the newest epoch of a job here, while no older epoch of it
//     lives here, and only when the controller was heard a moment ago: a daemon that
//     was frozen acts on no order from before.
//   - A member that is desired with its gate open but is not known here is reported lost,
//     never started: whatever ran is not there any more.
//   - Gone is said when neither process nor file of the member is left.
//   - What the containments of this daemon hold is a member, with a record or without; nothing is
//     reported gone while they hold it (inventory.go).
//   - Nothing outlives its lease and grace, also when its shim hangs (fenceDue).
//   - Everything is idempotent: a repeated order finds its work done.
//   - The daemon's end, however it comes, touches no member: shims live on, and the next daemon
//     finds them by their directories.
//
// Failure rules: a member that can't be prepared is refused, with whose fault it is. A shim
// that dies leaves a containment that is killed until it is proven empty; only then the
// member is lost. A second daemon on the same state directory is refused by a lock.
//
// Where a rule stands: what is decided without files and processes in rules.go; when a card is
// proven free, or held by what can't be ended, in cards_proof.go; a rank over its VRAM on a shared card in
// member_cards.go; imports of container images in images.go; the rendezvous port, held until the gate opens, in ports.go;
// prolog and epilog in hooks.go.
//
// Begin with Daemon and member.go. It must not know the scheduler, the store, or why something is desired.
package noded
