// Package sinfo is sinfo of Slurm 22.05 by its own name.
//
// A line of sinfo stands for all nodes that are alike in what the line shows: [group] puts
// nodes together whose partition, state, reason ... are written the same where these are in
// the format, whatever else differs. With --Node each node has its own line in each partition.
//
// What gangd has nothing of (weights) is shown as Slurm shows it where it is
// not configured.
//
// Begin with Run and record.go. It must not know jobs, or how a node gets its state.
package sinfo
