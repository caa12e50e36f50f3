// Package victims finds gangs that make room for others: who may be preempted at all, what that would cost, and the move that lets a
// gang start as a whole with the least of it.
//
// Input: a view with its policy, the places that are kept, and the gang that finds no room.
// Output: a backfill with its victims ([Victims.Preempt]), and those that are to be told now ([Victims.Stops]).
//
// Invariants: a whole move is gone through before anybody is told. Every victim is needed for it; none has a rank done, is inside
// its minimum run, or is being stopped. Who has a short notice is told later, so that all are through together.
//
// Failure rules: where no move is found the gang waits, and nobody is stopped.
//
// Begin with preempt.go. It must not know the words for people: these are package why's.
package victims
