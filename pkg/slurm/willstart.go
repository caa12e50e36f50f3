package slurm

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/core/table/jobfield"
)

// WouldStart is the answer to --test-only of sbatch and srun: where the job would start.
func WouldStart(ctx context.Context, w io.Writer, program string, reply *api.SubmitReply, spec *api.Spec) {
	if reply.StartsOn == nil {
		fmt.Fprintf(w, "%s: %s\n", program, strings.ReplaceAll(strings.TrimSpace(reply.Why), "\n", "\n"+program+": "))
		return
	}
	row := &jobfield.Row{Job: &api.Job{Size: spec.Size, CPUsPerRank: spec.CPUsPerRank, Roles: spec.Roles}}
	fmt.Fprintf(w, "%s: Job %d to start at %s using %s processors on nodes %s in partition %s\n", program, reply.JobID,
		jobfield.Stamp(jobfield.Now()), strconv.FormatInt(jobfield.CPUs(row), 10), strings.Join(reply.StartsOn, ","), partition(ctx, spec))
}

// partition is the one that was asked for, or the site's default.
func partition(ctx context.Context, spec *api.Spec) string {
	if spec.Partition != "" {
		return spec.Partition
	}
	if reply, err := client.New().Nodes(ctx); err == nil {
		for _, p := range reply.Partitions {
			if p.Default {
				return p.Name
			}
		}
	}
	return "(null)"
}
