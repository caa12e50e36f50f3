// Package cron reads cron tables, and says when a line of one is due.
//
// The time zone is that of the time that is given. A clock that is put forward skips times, and one that is put
// back shows some twice. A line that names its hours runs once all the same: after the gap, and at the first of the two. One of
// every hour, or every n-th, follows the clock: it has nothing to make up for.
//
// The package is pure: the time it is now is given.
//
// Begin with Parse and Table. It must not know jobs, users or who submits.
package cron
