// Package gcron is gcron, and scrontab by Slurm's name: a user's cron table is shown, edited and replaced.
//
// What is wrong with a table is said by its lines, all of them at once, and then nothing of it holds. In an
// editor such lines are marked and the person is asked.
//
// Begin with Run. It must not know when a line is due: package cron and the controller do.
package gcron
