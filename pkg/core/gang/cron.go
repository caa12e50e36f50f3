package gang

import (
	"maps"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cron"
)

// A line of a cron table is one job, which waits for its next time, runs, ends, and waits again under its
// number. So it never runs twice at once, and a time that comes while it runs, or is kept from running, is left out. One that
// passes while no controller is there is late, and runs once.

// PutCrontab replaces the cron table of a user. Of lines that were in it before the jobs stay.
type PutCrontab struct {
	User, Text, By string
	Lines          []CronLine
}

// CronLine is a line of it, and what it asks for; [api.Spec.Cron] is set.
type CronLine struct {
	First, Last int
	Submit      Submit
}

func (PutCrontab) event() {}

// CrontabRow is a user's table in its newest form, nil: there is none any more.
type CrontabRow struct {
	User string
	T    *api.Crontab
}

// crontabs are the tables of all users.
type crontabs struct {
	byUser map[string]*api.Crontab
	zones  func(name string) *time.Location

	dirty map[string]*api.Crontab // those that changed, nil for one that is gone
}

// SetZones says what a time zone is; without it there is but one. An unknown one is nil.
func (w *World) SetZones(zone func(name string) *time.Location) { w.site.crontabs.zones = zone }

// list are those of all users, by name.
func (ct *crontabs) list() map[string]*api.Crontab { return maps.Clone(ct.byUser) }

// due is when a line is due after a time; zero: never.
func (ct *crontabs) due(c *api.Cron, after time.Time) time.Time {
	s, err := cron.Parse(c.Schedule)
	zone := ct.zone(c.Zone)
	if err != nil || zone == nil {
		return time.Time{}
	}
	return s.Next(after.In(zone)).UTC()
}

func (ct *crontabs) zone(name string) *time.Location {
	switch {
	case ct.zones != nil:
		return ct.zones(name)
	case name == "":
		return time.UTC
	}
	return nil
}

func (ct *crontabs) set(user string, t *api.Crontab) {
	if t.Text == "" {
		t = nil
		delete(ct.byUser, user)
	} else {
		ct.byUser[user] = t
	}
	ct.dirty[user] = t
}
