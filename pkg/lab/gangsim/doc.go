// Package gangsim is the command gangsim: it reads a trace, a description of a cluster and
// one or more policies, plays the trace once for each (pkg/lab/replay), and writes what came of
// it as a table, as JSON, or as a report with plots.
//
// States: none. Invariants: a figure that is printed is one of replay.Result; what stands in
// for something that the trace lacks (time limits, CPUs) is named beside the figures.
// Failure rules: what is wrong with a file or an option is said before anything is played,
// with file and line; nothing is written over that is not a report of gangsim.
//
// Begin with New and report.go. It must not know how a trace is played: package replay does.
package gangsim
