// Package reference has the orders and placements of published experiments: strict FIFO,
// FIFO with EASY backfill, shortest job first, shortest remaining time and service first,
// least attained service; random placement, best fit and the fragmentation gradient.
//
// They are the yardstick of the simulator, not a scheduler of the product: a run that
// misses their published rows is wrong, whatever else it shows. Those marked with a * know
// the true durations.
//
// States: an order keeps the candidates that it was told of. Invariants: decisions depend
// on the trace alone; ties go to the earlier submission, then to the node that comes first
// by name. Failure rules: none, an ask that never fits waits for ever and ends the run.
//
// Begin with FIFO, SJF and Placer. It must not know the product's scheduler.
package reference
