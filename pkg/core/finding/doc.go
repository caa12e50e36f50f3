// Package finding is the list of all that can be found wrong with a configuration, a host or a cluster, and the one way in
// which it is said: gangd check, gnoded check, gangd verify and gctl doctor have their findings here.
//
// States: none. A check looks at facts and gives findings; it changes nothing.
//
// Invariants:
//   - An id is never renamed and never used for something else: monitoring and runbooks (docs/doctor.md, made of [Kinds]) go by it.
//   - Each finding says what was seen, with its figures, and what to do.
//   - A cluster of which nothing is wrong has none.
//
// Failure rules: what can't be looked at is no finding but for the ids that say so; a check that lacks a fact (an older controller,
// a caller who may not ask) finds nothing.
//
// Begin with [Kinds]. It must not know how facts are come by: it is pure.
package finding
