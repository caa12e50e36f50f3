// Package api holds every name that crosses a process border: what a person asks for
// ([Spec]), what the commands print ([Job], [Event], [Node]), what controller and node
// say to each other ([Assignment], [MemberActual] and the frames), the error codes, the
// settings and their defaults.
//
// Invariants:
//   - The package is pure: types, constants and small total functions; no I/O, no clock.
//   - JSON fields are additive only within one [SchemaVersion].
//   - Bytes and seconds are integers in what people and tools read (job.go, node.go,
//     event.go); between our own processes durations are nanoseconds (`_ns`).
//   - Instants never cross the wire between daemons to arm a timer: only durations do.
//     Times in reports are for display and for the record.
//
// Begin with job.go and session.go. It must not know anything of ours.
package api
