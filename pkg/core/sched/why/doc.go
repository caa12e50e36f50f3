// Package why writes why gangs stay: a word of Slurm's and a line for each, more for the one that is explained, and what is wrong
// with an ask that no node could ever hold ([Unsatisfiable]).
//
// Input: what the owners before it know of a plan.
// Output: [Reason], lines of text, an [api.Error] with the nearest ask that would do.
//
// Invariants: figures are noted while the plan is made, and texts are written when somebody reads them: of a hundred thousand that
// wait few are asked about. A verdict is never changed after its plan.
//
// Failure rules: an ask that can't be read has the reason BadConstraints.
//
// Begin with reason.go, and with unsat.go for what is refused. It decides nothing: no other package of a plan asks it.
package why
