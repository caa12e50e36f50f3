// Package plot writes a page of a table and plots as one file, which fetches nothing: uPlot, which draws in the
// reader's browser, is in it. `make uplot` brings its files, held against a checksum.
//
// Invariants: names of people's can't end a script or a tag. Failure rules: what is no number in JSON is an error.
//
// Begin with Page. It must not know where figures come from.
package plot
