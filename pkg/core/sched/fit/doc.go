// Package fit says where a gang fits on nodes: the nodes as somebody sees them ([NodeView]), how a gang may be cut into members
// ([Layout]), and the places that cost least ([Finder]).
//
// States: a [Finder] remembers between plans what does not change with them: classes of nodes that are alike ([NodeClass]), classes of asks
// that say the same ([AskClass]), and what fits where. Views of one plan share what is the same in them, and are good until the
// next begins. It is one planner's.
//
// Invariants: if any placement of a gang without roles exists, one is found (see layout.go); nothing that is decided depends on what
// was remembered. Roles are packed in several orders, and in every way for so many steps (mixed.go, search.go). Among places the order
// is that of
// package sched: fewest nodes, least stranding (strand.go), nearest switches (topology.go).
//
// Failure rules: an ask that can't be read is Bad, and fits nowhere.
//
// Begin with layout.go and place.go. It must not know who waits, who is kept places, or for how long: that is package kept's.
package fit
