// Package leader says who of several controllers leads.
//
// The seat is a row in the store that they share: a term, who holds it, and until when. Its holder
// renews it; when it has run out another takes over, with a higher term. Each write of a leader
// carries its term, so that the store refuses what one writes that was replaced. What is not
// written (an answer, an echo of a node's beat) a leader says only while it trusts its seat.
//
// States of a [Seat]: waiting, leading in a term, out. It leads once: one that has lost its seat ends
// its process, and the next one waits again.
//
// Invariants:
//   - A holder trusts a renewal from when it was sent, on a clock that runs on in a suspend, less a
//     margin: so it stops before the seat has run out for anybody else.
//   - Nobody takes a seat before its time has passed on his own clock too: the database that tells
//     the time may be another one than before, with another clock.
//   - A controller that was added to the site leads only when every node needs its word, or has had no
//     leave to run anything since before ([Roster]).
//
// Begin with Seat. It must not know what an engine is.
package leader
