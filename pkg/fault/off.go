//go:build !mutants

package fault

// Built says whether this program carries the mutants.
const Built = false

// Is reports whether a mutant is active: never, in a program without them.
func Is(Mutant) bool { return false }
