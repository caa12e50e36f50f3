package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/client/program"
)

// NewGlog is the command glog.
func NewGlog() *cobra.Command {
	q := api.LogQuery{}
	var tail, ranks string
	var all bool
	cmd := &cobra.Command{
		Use:   "glog [OPTIONS] JOB",
		Short: "print the output of a job, from any host",
		Example: `  glog --rank=3 @         what rank 3 of my last job writes
  glog -f 12              go on until it ends, of a gang all ranks
  glog -a 12              all ranks, merged by the times in their lines`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return Usagef("glog takes one job: glog 12, glog 12_3, or glog @ for your last one")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if q.Ref, err = oneRef(args[0]); err != nil {
				return err
			}
			if err := checkLog(cmd, &q, tail); err != nil {
				return err
			}
			one := cmd.Flags().Changed("rank") || q.Attempt > 0
			switch {
			case one && (all || ranks != ""):
				return Usagef("--rank and --attempt are about the output of one rank, --all and --ranks about that of several")
			case all && ranks != "":
				return Usagef("--all and --ranks exclude each other")
			}
			c := client.New()
			if all || ranks != "" || q.Follow && !one {
				return mergeLogs(cmd, c, q, ranks, all)
			}
			if q.Follow && q.Attempt == 0 {
				return c.FollowLog(cmd.Context(), q, cmd.OutOrStdout(), false, waiting(cmd))
			}
			return c.Log(cmd.Context(), &q, cmd.OutOrStdout())
		},
		ValidArgsFunction: completeJobs,
	}
	f := cmd.Flags()
	f.IntVarP(&q.Rank, "rank", "r", -1, "the output of this `RANK`")
	f.Lookup("rank").DefValue = "0" // -1 goes over the wire as "none chosen", which is rank 0
	f.BoolVarP(&all, "all", "a", false, "of all ranks, each line with its rank before it")
	f.StringVar(&ranks, "ranks", "", "of these `RANKS` (0,2-4), likewise")
	f.IntVar(&q.Attempt, "attempt", 0, "of this `ATTEMPT`, counted from 1 (default the newest)")
	f.BoolVarP(&q.Follow, "follow", "f", false, "go on until the job ends, across its restarts")
	f.BoolVarP(&q.Stderr, "stderr", "e", false, "the error output, where the job keeps it apart")
	f.StringVar(&tail, "tail", "", "only the last `SIZE` bytes (4000, 64K, 1M)")
	program.Coloured(cmd)
	program.Timeout(cmd)
	return cmd
}

// checkLog refuses figures that mean nothing, before anything is asked.
func checkLog(cmd *cobra.Command, q *api.LogQuery, tail string) error {
	switch {
	case cmd.Flags().Changed("rank") && q.Rank < 0:
		return Usagef("invalid value %d for --rank: ranks count from 0", q.Rank)
	case cmd.Flags().Changed("attempt") && q.Attempt < 1:
		return Usagef("invalid value %d for --attempt: attempts count from 1; gctl show job %s lists them", q.Attempt, q.Ref)
	}
	var err error
	if tail != "" {
		q.Tail, err = parseSize(tail)
	}
	return err
}

// parseSize reads a number of bytes with K, M or G.
func parseSize(s string) (int64, error) {
	text, shift := s, 0
	for i, unit := range []string{"K", "M", "G"} {
		if t, ok := strings.CutSuffix(strings.ToUpper(text), unit); ok {
			text, shift = t, 10*(i+1)
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 || n > 1<<32 {
		return 0, Usagef("invalid value %q for --tail: want bytes, as in 4000, 64K or 1M", s)
	}
	return n << shift, nil
}

// waiting tells whoever follows something why nothing comes.
func waiting(cmd *cobra.Command) func() {
	return func() {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: the controller does not answer; waiting for it\n", cmd.Root().Name())
	}
}
