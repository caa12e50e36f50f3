package scontrol

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline"
)

// jobsBy chooses the jobs of an update that names none by id: by JobName=, of UserID=.
type jobsBy struct {
	name, user string
}

// take moves the choice out of the words of an update. Beside a JobId a name is what the job
// shall be called.
func (b *jobsBy) take(args *[]string) {
	if slices.ContainsFunc(*args, func(a string) bool { key, _, _ := strings.Cut(a, "="); return cmdline.Short(key, "JobId", 3) }) {
		return
	}
	var rest []string
	for _, a := range *args {
		key, v, given := strings.Cut(a, "=")
		switch {
		case given && b.name == "" && (cmdline.Short(key, "JobName", 4) || cmdline.Short(key, "Name", 2)):
			b.name = v
		case given && cmdline.Short(key, "UserId", 3):
			b.user = v
		default:
			rest = append(rest, a)
		}
	}
	if b.asked() {
		*args = rest
	}
}

func (b *jobsBy) asked() bool { return b.name != "" }

// find gives the ids of the jobs that have not ended.
func (b *jobsBy) find(c *call) ([]string, error) {
	q := &api.JobQuery{Names: []string{b.name}, NoRanks: true}
	reply, err := c.client.Jobs(c.ctx, q)
	if err != nil {
		return nil, err
	}
	var out []string
	for i := range reply.Jobs {
		if j := &reply.Jobs[i]; !j.State.Ended() && (b.user == "" || j.User == b.user || strconv.Itoa(int(j.UID)) == b.user) {
			out = append(out, strconv.FormatInt(j.JobID, 10))
		}
	}
	return out, nil
}

func (b *jobsBy) none() string {
	if b.user == "" {
		return fmt.Sprintf("No jobs with name '%s'", b.name)
	}
	return fmt.Sprintf("No jobs with user ID %s and name '%s'", b.user, b.name)
}
