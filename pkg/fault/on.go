//go:build mutants

package fault

// Built says whether this program carries the mutants.
const Built = true

var active Mutant

// Is reports whether a mutant is active.
func Is(m Mutant) bool { return active == m }

// Set activates one mutant, none with the empty name. It must not be called while
// anything runs that asks.
func Set(m Mutant) { active = m }
