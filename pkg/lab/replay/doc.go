// Package replay plays a trace on the production core under a virtual clock: the world of
// pkg/core/gang, the arithmetic of pkg/core/cluster, and a [Planner], which is sched.Make in all but
// the reference rows.
//
// States: a [Sim] is built from a [Cluster] and a trace, run once, and read. Each job is
// submitted as a user would: with its ask and its time limit, never with its duration. The
// node is an ideal one ([Sim] reports for it): it prepares a gang at once, runs it for what
// is left of its true duration, and stops it at once when told.
//
// Invariants:
//   - All state of jobs and nodes is the world's. What is kept beside it is what the trace
//     knows and the controller does not: the true duration and how much of it is done.
//   - A planner learns of a job what sched.Candidate holds. Only [Truth], which the
//     reference orders marked with a * take, tells durations.
//   - The same trace, cluster and planner give the same result, event by event. The one
//     thing measured on the machine's clock is how long planning took.
//
// At one instant everything that ends does so first, then what is submitted arrives, then
// timers fire, then plans are made until one changes nothing.
//
// Failure rules: an event that the world refuses, a start that it can't take, or jobs that
// wait for ever end the run with an error that names the job: a result with a hole in it
// is worse than none.
//
// Begin with Sim and Planner. It must not know files, flags or plots.
package replay
