// Package jobfield is what can be shown of a job in a table: squeue's letters and names, and
// what gqueue knows beside them. squeue and gqueue print from this one list, so that the same
// letter means the same in both.
//
// Where the two differ the field stands twice, in [Squeue]'s part and in [Gqueue]'s: squeue
// writes CONFIGURING for what gangd calls RESERVED, and gqueue tells the reason of every end.
//
// A [Row] is a job, or the waiting elements of an array folded into one line. The package
// asks no controller; the group of a user is looked up on this host.
//
// Begin with Field and Row. It must not know the options of commands.
package jobfield
