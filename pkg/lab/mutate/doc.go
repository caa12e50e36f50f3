// Package mutate changes the source of packages in small ways, to see whether their own tests
// notice.
//
// A mutant is one change: a condition negated, an operand of && or || dropped, < for <=, a
// constant off by one, min for max, a statement skipped, a zero value returned, a case dropped.
// All chosen mutants of a package are compiled into one test binary as switches that are off
// (go test -c -overlay; the tree is not touched), so that a mutant costs a run of tests and no
// build. Which one is on, the binary reads from a file beside itself, so that processes that a
// test starts from its own binary, with whatever environment, have the same mutant.
//
// [Load] finds the mutants of packages, [Draw] takes some by a seed, [Build] makes the binary,
// [Suite.Learn] runs each test once to see how long it takes and which mutants it reaches, and
// [Suite.Try] runs the tests that reach a mutant, the fast ones first, until one fails.
//
// Invariants: line numbers in the changed source are those of the tree. With no mutant on, the
// changed source does what the tree does. The same seed and the same source give the same
// mutants. A mutant that no test reaches survives without a run. A test that fails is run once
// more before it counts; one that takes ten times as long as it should has failed.
//
// Begin with Load, Build and Suite. It must not know gangd: it changes any Go package.
package mutate
