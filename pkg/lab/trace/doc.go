// Package trace reads what a cluster did: its jobs as their users asked for them, and how
// long each really ran.
//
// Formats: CSV with named columns, the Standard Workload Format (SWF), what `sacct -P`
// prints, and gangd's own history (`gacct --json`). Each may be compressed with gzip. The
// format is seen from the first lines; see [Read].
//
// States: none. A read gives a whole [Trace] in the order of submission, or an error.
//
// Invariants:
//   - Times count from the first submission of the trace.
//   - [Job.Duration] is what really happened. It is not part of what a user asks for: who
//     plans with a trace hands on [Job.Limit] at most.
//   - Equal input gives an equal trace: derived limits come from a hash of the job's id.
//
// Failure rules: a line that can't be read ends the read, with the file, the line, the
// column, what was found and what is wanted. Lines that are well-formed but are no job to
// replay (never started, a step of a job) are counted in [Trace.Skipped] by reason.
//
// Begin with Read and Trace. It must not know the scheduler or the simulator.
package trace
