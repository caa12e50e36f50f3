package cli

import (
	"cmp"
	"strconv"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/slurm/jobfield"
)

// What is shown of a job is kept in pkg/slurm/jobfield, which squeue prints from too.
type (
	row   = jobfield.Row
	field = jobfield.Field
)

func elapsed(d time.Duration) string     { return jobfield.Elapsed(d) }
func timeLimit(seconds int64) string     { return jobfield.TimeLimit(seconds) }
func stamp(t time.Time) string           { return jobfield.Stamp(t) }
func bytesText(n int64) string           { return jobfield.BytesText(n) }
func idText(j *api.Job) string           { return jobfield.IDText(j) }
func rowID(r *row) string                { return jobfield.ID(r) }
func started(r *row) time.Time           { return jobfield.Started(r) }
func used(r *row) time.Duration          { return jobfield.Used(r) }
func expectedEnd(r *row) time.Time       { return jobfield.ExpectedEnd(r) }
func nodeCount(r *row) int64             { return jobfield.NodeCount(r) }
func cpus(r *row) int64                  { return jobfield.CPUs(r) }
func gpus(r *row) int64                  { return jobfield.GPUs(r) }
func exitCode(code *int, sig int) string { return jobfield.ExitCode(code, sig) }
func readyText(r *api.Readiness) string  { return jobfield.ReadyText(r) }
func beatAge(at time.Time) string        { return jobfield.BeatAge(at) }

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

func orNull(s string) string { return cmp.Or(s, "(null)") }

func reason(r *row) string { return cmp.Or(r.Reason, "None") }
