package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/client/output"
)

// mergedTail is how much of each rank is read to be put in order, when nothing else was said:
// it is all kept in memory.
const mergedTail = 1 << 20

// mergeLogs prints the output of several ranks.
func mergeLogs(cmd *cobra.Command, c *client.Client, q api.LogQuery, ranks string, all bool) error {
	m := newLogMerge(screenOf(cmd.OutOrStdout()), cmd.ErrOrStderr())
	named, err := namedJobs(cmd.Context(), c, q.Ref)
	if err != nil {
		return err
	}
	m.name(named)
	if !all && ranks == "" && m.single {
		return c.FollowLog(cmd.Context(), q, cmd.OutOrStdout(), false, waiting(cmd))
	}
	if q.Follow {
		err = c.FollowLogs(cmd.Context(), q, ranks, false, waiting(cmd), m.print)
		return errors.Join(err, m.finish())
	}
	if q.Tail == 0 {
		q.Tail = mergedTail
	}
	keep := func(p *api.LogPiece) error {
		m.lines[p.Rank] = append(m.lines[p.Rank], p.Data...)
		return m.complain(p)
	}
	if err := c.FollowLogs(cmd.Context(), q, ranks, true, waiting(cmd), keep); err != nil {
		return err
	}
	return errors.Join(m.inOrder(q.Tail), m.finish())
}

// logMerge prints lines of several ranks, each behind its rank.
type logMerge struct {
	out    output.Ranks
	err    io.Writer
	single bool           // there is one rank, or one file for all of them
	lines  map[int][]byte // of each rank what is to be put in order
	failed bool
}

func newLogMerge(s *screen, errors io.Writer) *logMerge {
	paint := func(rank int, lead string) string { return s.paint(rankColours[rank%len(rankColours)], lead) }
	return &logMerge{out: output.Ranks{W: s.w, Paint: paint}, err: errors, lines: map[int][]byte{}}
}

// name learns how long a rank is written from the job; of one that is not in memory any more it is
// as long as it comes.
func (m *logMerge) name(named []api.Job) {
	if len(named) == 0 {
		return
	}
	j := &named[0]
	m.out.Size = j.Size
	m.single = j.Size <= 1 || j.Launch == api.LaunchBatch
}

// print writes whole lines as they come.
func (m *logMerge) print(p *api.LogPiece) error {
	if err := m.out.Print(p.Rank, p.Data); err != nil {
		return err
	}
	return m.complain(p)
}

// complain says why the output of a rank can't be read, while the others go on.
func (m *logMerge) complain(p *api.LogPiece) error {
	if p.Error == "" {
		return nil
	}
	m.failed = true
	_, err := fmt.Fprintf(m.err, "glog: rank %d: %s\n", p.Rank, p.Error)
	return err
}

// finish is the error when some rank could not be read.
func (m *logMerge) finish() error {
	if m.failed {
		return &ExitError{Status: api.ExitRefused, Err: errors.New("not all ranks could be read")}
	}
	return nil
}

// rankColours tell ranks apart; red is left for what failed.
var rankColours = []style{"\x1b[36m", "\x1b[32m", "\x1b[33m", "\x1b[35m", "\x1b[34m", "\x1b[96m", "\x1b[92m", "\x1b[95m"}

// inOrder prints the lines of all ranks in the order of their times. A rank keeps its own order;
// lines before its first time come first.
func (m *logMerge) inOrder(tail int64) error {
	type stamped struct {
		at   time.Time
		rank int
		line []byte
	}
	var all []stamped
	for rank, text := range m.lines {
		if int64(len(text)) == tail { // it begins within a line
			_, text, _ = bytes.Cut(text, []byte{'\n'})
		}
		var at time.Time
		for line := range bytes.Lines(text) {
			if t, ok := lineTime(line); ok && t.After(at) {
				at = t
			}
			all = append(all, stamped{at, rank, line})
		}
	}
	slices.SortStableFunc(all, func(a, b stamped) int {
		if d := a.at.Compare(b.at); d != 0 {
			return d
		}
		return a.rank - b.rank
	})
	for _, l := range all {
		if err := m.out.Lines(l.rank, l.line); err != nil {
			return err
		}
	}
	return nil
}

// lineTime reads the time that a line begins with, behind a bracket or not, as programs log it:
// 2026-01-31 12:00:00,123 or 2026-01-31T12:00:00.123Z.
func lineTime(line []byte) (time.Time, bool) {
	text := strings.TrimLeft(string(line[:min(len(line), 48)]), "[( ")
	if len(text) < 19 || text[4] != '-' || text[10] != ' ' && text[10] != 'T' {
		return time.Time{}, false
	}
	end := 19
	if end < len(text) && (text[end] == '.' || text[end] == ',') {
		for end++; end < len(text) && text[end] >= '0' && text[end] <= '9'; end++ {
		}
	}
	stamp := text[:10] + "T" + strings.Replace(text[11:end], ",", ".", 1)
	for _, zone := range []string{"Z07:00", "Z0700"} {
		for _, more := range []int{1, 5, 6} {
			if end+more <= len(text) {
				if t, err := time.Parse("2006-01-02T15:04:05"+zone, stamp+text[end:end+more]); err == nil {
					return t, true
				}
			}
		}
	}
	t, err := time.ParseInLocation("2006-01-02T15:04:05", stamp, time.Local)
	return t, err == nil
}
