package fake

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	"gangd/pkg/api"
)

// putCrontab takes a table whose jobs are of known partitions.
func (c *Controller) putCrontab(_ *http.Request, ask *api.CrontabRequest) (any, error) {
	t := api.CrontabReply{SchemaVersion: api.SchemaVersion, Crontab: api.Crontab{User: ask.User, Text: ask.Text, Lines: []api.CronLine{}}}
	for i := range ask.Jobs {
		j := &ask.Jobs[i]
		if p := j.Spec.Partition; p != "" && c.partition(p) < 0 {
			return nil, api.Errorf(api.CodeInvalid, "no partition %q", p).About(api.ReasonCronLine, fmt.Sprintf("%d-%d", j.First, j.Last))
		}
		t.Lines = append(t.Lines, api.CronLine{First: j.First, Last: j.Last, JobID: int64(30 + i), Cron: api.Cron{Schedule: j.Spec.Name}, Next: Now.Add(time.Hour)})
	}
	c.Crontab = t
	return t, nil
}

func (c *Controller) partition(name string) int {
	return slices.IndexFunc(c.Partitions, func(p api.Partition) bool { return p.Name == name })
}

// putPartition makes a partition, or changes the state of the one that the path names.
func (c *Controller) putPartition(r *http.Request, ask *api.PartitionRequest) (any, error) {
	changes := r.PathValue("name") != ""
	name := cmp.Or(r.PathValue("name"), ask.Name)
	at := c.partition(name)
	switch {
	case at < 0 && changes:
		return nil, api.Errorf(api.CodeNotFound, "no partition %q", name).About(api.ReasonPartition, name)
	case at >= 0 && !changes:
		return nil, api.Errorf(api.CodeConflict, "there is a partition %s already", name).About(api.ReasonPartition, name)
	case at < 0:
		at = len(c.Partitions)
		c.Partitions = append(c.Partitions, api.Partition{Name: name})
	}
	if ask.State != nil {
		c.Partitions[at].State = *ask.State
	}
	return struct{}{}, nil
}

func (c *Controller) dropPartition(r *http.Request) (any, error) {
	name := r.PathValue("name")
	at := c.partition(name)
	if at < 0 {
		return nil, api.Errorf(api.CodeNotFound, "no partition %q", name).About(api.ReasonPartition, name)
	}
	if slices.ContainsFunc(c.Jobs, func(j api.Job) bool { return j.Partition == name && !j.State.Ended() }) {
		return nil, api.Errorf(api.CodeConflict, "job 12 is of partition %s", name).About(api.ReasonPartitionUsed, name)
	}
	c.Partitions = slices.Delete(slices.Clone(c.Partitions), at, at+1)
	return struct{}{}, nil
}

// reservation finds one by name; nil: there is none.
func (c *Controller) reservation(name string) (*api.Reservation, error) {
	for i := range c.Reserved {
		if c.Reserved[i].Name == name {
			return &c.Reserved[i], nil
		}
	}
	return nil, api.Errorf(api.CodeNotFound, "no reservation %q", name)
}

func (c *Controller) reservations(r *http.Request) (any, error) {
	out := api.ReservationsReply{SchemaVersion: api.SchemaVersion, Reservations: c.Reserved}
	if names := r.URL.Query()["name"]; names != nil {
		out.Reservations = nil
		for _, name := range names {
			one, err := c.reservation(name)
			if err != nil {
				return nil, err
			}
			out.Reservations = append(out.Reservations, *one)
		}
	}
	return out, nil
}

// reserve makes a reservation, or changes the one that the path names.
func (c *Controller) reserve(r *http.Request, ask *api.ReservationRequest) (any, error) {
	if r.PathValue("name") == "" {
		c.Reserved = append(c.Reserved, api.Reservation{Name: ask.Name})
	}
	one, err := c.reservation(cmp.Or(r.PathValue("name"), ask.Name))
	if err != nil {
		return nil, err
	}
	set(&one.Start, ask.Start)
	set(&one.End, ask.End)
	if ask.Duration != nil {
		one.End = one.Start.Add(*ask.Duration)
	}
	set(&one.Nodes, ask.Nodes)
	set(&one.Users, ask.Users)
	set(&one.Accounts, ask.Accounts)
	set(&one.Flags, ask.Flags)
	return api.ReservationsReply{SchemaVersion: api.SchemaVersion, Reservations: []api.Reservation{*one}}, nil
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

func (c *Controller) unreserve(r *http.Request) (any, error) {
	if _, err := c.reservation(r.PathValue("name")); err != nil {
		return nil, err
	}
	c.Reserved = slices.DeleteFunc(c.Reserved, func(o api.Reservation) bool { return o.Name == r.PathValue("name") })
	return struct{}{}, nil
}
