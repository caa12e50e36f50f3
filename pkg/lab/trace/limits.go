package trace

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"time"
)

// LimitLevels are how much the users of a trace are taken to know, see [Trace.SetLimits].
var LimitLevels = []string{"file", "half", "none", "x2", "exact"}

// SetLimits changes the time limits: file leaves them, none drops them, half drops those of every
// other job, by a hash of its id, x2 sets 1.05 to 2
// times the true duration by a hash of the job's id, exact the true duration.
func (t *Trace) SetLimits(level string) error {
	var limit func(j *Job) time.Duration
	switch level {
	case "", "file":
		return nil
	case "none":
		limit = func(*Job) time.Duration { return 0 }
	case "half":
		limit = func(j *Job) time.Duration {
			if Hash("limit", j.ID) < 0.5 {
				return 0
			}
			return j.Limit
		}
	case "x2":
		limit = func(j *Job) time.Duration {
			factor := 1.05 * math.Pow(2/1.05, Hash("factor", j.ID))
			return time.Duration(math.Ceil(j.Duration.Seconds()*factor)) * time.Second
		}
	case "exact":
		limit = func(j *Job) time.Duration { return j.Duration }
	default:
		return fmt.Errorf("limits %q: want one of %s", level, strings.Join(LimitLevels, ", "))
	}
	for i := range t.Jobs {
		t.Jobs[i].Limit = limit(&t.Jobs[i])
	}
	return nil
}

// Hash is a number between 0 and 1 that is always the same for a purpose and an id.
func Hash(purpose, id string) float64 { return (float64(HashInt(purpose+":"+id)) + 0.5) / (1 << 64) }

// HashInt is the first 8 bytes of the SHA-256 of s.
func HashInt(s string) uint64 {
	sum := sha256.Sum256([]byte(s))
	return binary.BigEndian.Uint64(sum[:8])
}

// Copies multiplies a trace: each job comes n times, the copies spread over the hour
// after it, so that n times the nodes see the same load from n times the users.
func (t *Trace) Copies(n int) {
	base := t.Jobs
	t.Jobs = make([]Job, 0, n*len(base))
	for _, j := range base {
		t.Jobs = append(t.Jobs, j)
		for k := 1; k < n; k++ {
			c := j
			c.ID = fmt.Sprintf("%s-c%d", j.ID, k)
			c.Submit += time.Hour * time.Duration(k) / time.Duration(n)
			t.Jobs = append(t.Jobs, c)
		}
	}
	t.order()
}
