// Package html writes a page of tables and plots as one file, which fetches nothing: uPlot, which draws in the
// reader's browser, is in it. `make uplot` brings its files, held against a checksum.
//
// It is apart from what a page says (package plot) because html/template is linked with it, whose load every command would pay.
//
// Invariants: names of people's can't end a script or a tag. Failure rules: what is no number in JSON is an error.
//
// Begin with Write. It must not know where figures come from.
package html
