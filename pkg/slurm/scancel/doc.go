// Package scancel is scancel of Slurm 22.05 by its own name.
//
// It has two ways, and they differ in what they say. Ids alone are cancelled in silence: a job
// that is not known or has ended is told with -v only, and the status is 0. With a signal, a
// question (-i) or a filter the queue is looked at first: an id that is not in it is an error,
// status 1; jobs that a filter leaves out are passed over, status 0.
//
// Begin with Run. It must not know how a job is ended: the controller does it.
package scancel
