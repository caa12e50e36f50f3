package sacctmgr

import (
	"cmp"
	"context"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/wire/people"
)

// look is how far back jobs are looked at for the accounts that they named.
const look = 30 * 24 * time.Hour

// clock is the wall clock, a variable so that tests stand still.
var clock = time.Now

// myself is who calls, a variable for tests.
var myself = func() string {
	return people.Me(context.Background())
}

// knownUser: this host has such a user; a variable for tests.
var knownUser = func(name string) bool {
	_, err := people.Here.ByName(context.Background(), name)
	return err == nil
}

// association is a user with an account that one of their jobs has named, "" for none.
type association struct{ user, account string }

// associations are those of users (none: of everybody): by user and account. A user who was
// asked for and is known on this host has one, without an account when no job named any.
func associations(users []string) ([]association, error) {
	var out []association
	q := &api.HistoryQuery{Users: users, Since: clock().Add(-look)}
	err := client.New().History(context.Background(), q, func(d *api.JobDetail) error {
		out = append(out, association{d.Job.User, d.Job.Account})
		return nil
	})
	if err != nil {
		return nil, err
	}
	asked := users
	if len(asked) == 0 {
		asked = []string{myself()}
	}
	for _, name := range asked {
		if knownUser(name) {
			out = append(out, association{user: name})
		}
	}
	slices.SortFunc(out, func(a, b association) int {
		return cmp.Or(cmp.Compare(a.user, b.user), cmp.Compare(a.account, b.account))
	})
	out = slices.Compact(out)
	return slices.DeleteFunc(out, func(a association) bool {
		return a.account == "" && slices.ContainsFunc(out, func(b association) bool { return b.user == a.user && b.account != "" })
	}), nil
}

// adminLevel is what a user may do beyond their own.
func adminLevel(name string) string {
	if name == "root" {
		return "Administrator"
	}
	return "None"
}

// accounts are the distinct ones.
func accounts(all []association) []string {
	var out []string
	for _, a := range all {
		if a.account != "" {
			out = append(out, a.account)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
