// Package order says in which order gangs wait: what waits ([Candidate]) and what runs ([Running]), the queue that keeps the order
// ([Queue]), what of run times and of use is learnt for it ([Ledger]), and the site's rules ([Policy]).
//
// States: a queue is changed by who submits, ends or changes a gang, and a ledger learns of ends; both are one writer's, and a clone
// of a queue has a ledger of its own. Candidates, running gangs and policies are not changed.
//
// Invariants: the order is total, and the same after a restart; a queue stays sorted while time passes, for
// whatever decides a place is fixed when its candidate is taken in or ranked again; candidates of one [JobClass] differ in nothing
// that decides whether they can start, but for their place.
//
// Failure rules: nothing here fails. A bound that could never be kept is refused when a gang is submitted ([Policy.AboveCap]).
//
// Begin with queue.go and rank.go. It must not know nodes: where a gang fits is package sched's.
package order
