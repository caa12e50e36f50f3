// Package pmi is what MPI libraries ask the launcher of a step: how many tasks there are, who
// is on the same node, and what the others have published about how to reach them. It speaks
// PMI-1 and PMI-2 (the wire protocols of MPICH's process management interface) to tasks that
// were started with PMI_FD; MPICH, MVAPICH and Intel MPI have one of the two built in.
//
// A server serves the tasks of one node. What they publish goes to the client of the step when
// all of them are at the fence, and comes back with what all other nodes published when all nodes
// are there. It knows neither steps nor connections: the launcher carries both ways.
//
// Invariants:
//   - A task sees what another published if it was published before a fence that both have passed.
//   - What is held is bounded: by the length of a key, of a value and of a message, and by [MaxStore].
//
// Failure rules: a task that breaks the protocol is not answered any more, and its MPI library ends
// it. What is not offered (spawning, name publishing) is answered with an error. A task that aborts
// ends the step.
//
// Begin with Server.
package pmi
