// Package cpus decides which CPUs of a machine belong to whom: a node gives each member of a
// gang CPUs of its own, and a member gives them on to its steps.
//
// A CPU is what the kernel counts as one: a hardware thread. Its core and its NUMA node are
// known from the [Topology]. A [Pool] says who has which.
//
// Invariants:
//   - No CPU has two holders, unless [Pool.Keep] was told so: what a daemon before has given out is
//     a fact, not a choice.
//   - What is taken has exactly as many CPUs as were asked for, or nothing is taken: the controller
//     counts CPUs, and whatever it counts as free can be had.
//   - The choice depends on the topology, the holders and the asks alone, so that it can be
//     played again.
//
// The package is pure. Begin with Pool.Take.
//
// It must not know jobs, processes or the controller.
package cpus
