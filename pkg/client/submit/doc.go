// Package submit is the command gsubmit: it reads a script, has pkg/core/script decide what is
// asked for, checks on this host what can be checked here, and queues the job.
//
// The order is the promise: everything is read and checked before the controller is
// called, so that a refusal leaves nothing behind; the call carries a key of its own, so
// that it is tried again across a restart of the controller and still queues one job.
// After the id is printed nothing that happens to this process touches the job.
//
// Exit status: 2 for wrong words on the command line, 1 for the same in a script or in the
// environment and for what the controller refuses, 4 when there is no controller; with
// --wait and --follow the job's own.
//
// Begin with New and Find. It must not know the options' meaning (script does) or where a job will run.
package submit
