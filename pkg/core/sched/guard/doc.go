// Package guard lets gangs to the front of their tiers that have waited too long: too long for any gang, by the part of all cards
// that may be given away so, or beside their own time limit; and those of half of all cards as soon as they fit (wide.go).
//
// Input: a view with its policy.
// Output: who is let in, the longest wait first ([Guard.Guarded], [Guard.WaitingWide]), written down as the turn of each; when the
// next one is due.
//
// Invariants: one gang is always let in, however large. Who is bound by a cap, or fits on no node that is up, is not: it would keep
// the part from those who can start.
//
// Failure rules: nothing here fails.
//
// Begin with guard.go. It must not know who makes room for whom: that is package victims.
package guard
