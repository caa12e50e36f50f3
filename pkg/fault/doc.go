// Package fault puts known bugs back, to see that the tests catch them.
//
// A mutant is one named bug. Production code asks [Is] at the place where the bug was:
//
//	if fault.Is(fault.LeaseFromReceipt) {
//		at = c.now()
//	}
//
// Without the build tag "mutants" Is is the constant false: the compiler removes the branch,
// and the programs that are shipped carry none of it. With the tag one mutant at a time is
// switched on by [Set].
//
// Invariants: no mutant is active unless a test set it; at most one is.
package fault

// Mutant names a bug.
type Mutant string
