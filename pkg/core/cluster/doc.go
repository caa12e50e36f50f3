// Package cluster is the arithmetic of nodes and cards: what a node has, what is granted,
// what an ask needs, and whether it fits.
//
// States: a [Node] is an immutable value. Taking or releasing makes a copy, so that a
// snapshot is a slice of pointers and costs nothing to keep.
//
// Invariants:
//   - The sum of the grants on a node never exceeds its CPUs, memory, card slots or the
//     VRAM of a card less what strangers hold there: [Node.Take] refuses otherwise.
//   - A grant is freed by the key it was taken under (job, epoch), never by amount.
//   - Figures are per card, not per node: two cards with 8G free each are not 16G.
//
// Failure rules: every refusal is an error that names the node, what is short and by how
// much. The package is pure.
//
// Whether a card may be used is here too: one that has a fault, that something holds which should
// be gone, or that a person took out is quarantined ([Card.Judged]).
//
// Begin with Node.Take and Need.Ranks. It must not know the queue, time or who asks.
package cluster
