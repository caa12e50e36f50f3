// Package sdiag is sdiag, sbcast and strigger by Slurm's names: what a controller says of itself, a file for
// the nodes of a job, and programs that Slurm runs when something happens, which are refused.
//
// Invariants: the text of sdiag is Slurm's, line by line, as exporters read it; what gangd does not have (agents, a
// database's queue, calls by their numbers) is 0 or left out as of a Slurm that has seen none. One scheduler does what
// Slurm shares out between two: its cycles stand in both places.
//
// Begin with Run and Strigger. It must not know how the controller counts: it asks for figures.
package sdiag
