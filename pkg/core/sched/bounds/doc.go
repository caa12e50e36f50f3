// Package bounds is what a gang may not exceed, whatever is free: the cards of its user and its account, and the pools of the site,
// as licences are.
//
// Input: a view with its policy, the places that are kept, and the starts of the plan so far ([Bounds.Book]).
// Output: for a gang the bound that it would exceed ([Excess]), with Slurm's word and a sentence; whether it only takes back what
// its account lent, or has lent itself.
//
// Invariants: what of a pool is kept for a gang is not taken by one behind it that would still hold it then. What is counted is what
// is held and planned, and no ask of who waits.
//
// Failure rules: an account or a pool that is not there any more is a bound that is always exceeded.
//
// Begin with caps.go. It must not know where a gang fits, or who makes room for it.
package bounds
