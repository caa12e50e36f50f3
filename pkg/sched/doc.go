// Package sched decides which gangs start where. [Make] is a pure function of a snapshot:
// same view, same plan, whatever the machine or the hour.
package sched
