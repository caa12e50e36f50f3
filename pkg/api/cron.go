package api

import "time"

// Cron is when a job comes again: see package cron.
type Cron struct {
	Schedule string `json:"schedule"`       // five fields, or a shortcut as @daily
	Zone     string `json:"zone,omitempty"` // empty: the controller's
}

// Crontab is the cron table of a user. What stands in it and is no line with a time is the user's matter.
type Crontab struct {
	User  string     `json:"user"`
	Text  string     `json:"text"`
	Lines []CronLine `json:"lines"` // whose jobs come again, in their order
	By    string     `json:"by,omitempty"`
	Time  time.Time  `json:"time"`
}

// CronLine is a line with a time and the options before it, by their numbers from 1.
type CronLine struct {
	First int   `json:"first_line" bound:"1..65536"`
	Last  int   `json:"last_line" bound:"1..65536"`
	JobID int64 `json:"job_id,omitempty"`
	// Cron and Next are for people: the job has them.
	Cron
	Next time.Time `json:"next,omitzero"` // zero: it runs, or is kept from it
}

// CrontabRequest is the body of POST /v1/crontab: a table in place of the one there was.
type CrontabRequest struct {
	User string    `json:"user,omitempty"`                // whose, which only admins say; empty: the caller's
	Text string    `json:"text" bound:"any"`              // empty: none any more
	Jobs []CronJob `json:"jobs,omitempty" bound:"n=1000"` // of each line with a time, in their order
}

// CronJob is what a line asks for.
type CronJob struct {
	First int  `json:"first_line" bound:"1..65536"`
	Last  int  `json:"last_line" bound:"1..65536"`
	Spec  Spec `json:"spec"`
}

// CrontabReply is the table of a user, empty when there is none. `gcron -l --json` prints it.
type CrontabReply struct {
	SchemaVersion int `json:"schema_version"`
	Crontab
	Warnings []string `json:"warnings,omitempty"`
}
