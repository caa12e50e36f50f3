// Package slurmlab runs a private Slurm on this machine: munged, slurmctld and a slurmd for
// each node, all as root in one directory with a key, ports and names of their own, beside
// whatever else runs here. It is what gangd is measured and compared against.
//
// States: a [Slurm] is up from Start to Stop. Start returns when every node is idle, or
// with an error and nothing left running.
//
// Failure rules: what the machine lacks is named by [Missing] before anything is started.
// Every daemon is a child of this process in the foreground; Stop ends them in the opposite
// order of their start, with KILL for one that does not go within some seconds.
package slurmlab
