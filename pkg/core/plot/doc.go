// Package plot is what a report says: a page of tables and plots, in words and figures. Package html writes it.
//
// Begin with Page. It must not know where figures come from, or how a page is written.
package plot
