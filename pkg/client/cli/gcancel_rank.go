package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client"
)

// someRanks are ranks of one job, by number or by role.
type someRanks struct {
	job   string
	ranks []int
	role  string
}

// splitRanks takes ranks (12:3, 12:0-3,5) and roles (12/worker) out of what a person named.
func splitRanks(args []string) (jobs []string, some []someRanks, err error) {
	for _, a := range args {
		if job, text, is := strings.Cut(a, ":"); is {
			elements, err := api.ParseJobRefs("1_[" + text + "]") // which are written alike
			if err != nil || job == "" {
				return nil, nil, Usagef("%q names no ranks: want JOB:RANKS, as in 12:3 or 12:0-3,5", a)
			}
			s := someRanks{job: job}
			for _, e := range elements {
				s.ranks = append(s.ranks, e.Index)
			}
			some = append(some, s)
		} else if job, role, is := strings.Cut(a, "/"); is {
			if !api.RoleNameOK(role) || job == "" {
				return nil, nil, Usagef("%q names no role: want JOB/ROLE, as in 12/worker", a)
			}
			some = append(some, someRanks{job: job, role: role})
		} else {
			jobs = append(jobs, a)
		}
	}
	return jobs, some, nil
}

// ranks signals some ranks of jobs.
func (g *gcancel) ranks(cmd *cobra.Command, some []someRanks) error {
	switch {
	case g.signal == "":
		return Usagef("ranks end together: gcancel %s ends the job; a signal to one is gcancel --signal=NAME", some[0].job)
	case g.batch || g.full || g.interactive:
		return Usagef("--batch, --full and --interactive are for jobs, not for ranks")
	}
	signal, err := parseSignal(g.signal)
	if err != nil {
		return err
	}
	var failed []error
	c := client.New()
	for _, s := range some {
		refs, err := parseRefs([]string{s.job})
		if err != nil {
			return err
		}
		req := &api.CancelRequest{JobQuery: api.JobQuery{Refs: refs, NoRanks: true}, Signal: signal, Ranks: s.ranks, Role: s.role}
		reply, err := c.Cancel(cmd.Context(), req)
		if err == nil {
			err = g.report(cmd, req, reply)
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	return joinFailures(cmd, failed)
}
