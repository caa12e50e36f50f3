// Package jobs is what squeue and gqueue, scancel and gcancel, sacct and gacct have in common:
// which jobs are meant, how the queue is asked for and put into order, and the steps of
// running jobs.
//
// The commands are two dialects over it. What a dialect owns is its options and its words: how
// it says that a name is not known, which mistakes end it and with which status, and how wide
// a column is. What can be shown of a job is in pkg/core/table/jobfield.
//
// Begin with Look. It must not know a dialect's options or words.
package jobs
