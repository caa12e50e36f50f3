package jobs

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/core/table/jobfield"
	"gangd/pkg/wire/people"
)

// Tables name groups as this host does.
func init() { jobfield.GroupName = people.Here.GroupText }

// User is the names under which a user's jobs may be known, of a name or a number; ok is false
// when this host knows no such user. The controller knows whose jobs a number means, so that nobody is
// looked up for one.
func User(name string) (names []string, ok bool) {
	if uid, err := strconv.ParseUint(name, 10, 32); err == nil {
		names = append(names, name)
		if u, there := people.Here.Local(uint32(uid)); there {
			names = append(names, u.Name)
		}
		return names, true
	}
	u, err := people.Here.ByName(context.Background(), name)
	switch {
	case err == nil:
		return []string{u.Name}, true
	case errors.Is(err, people.ErrUnknown):
		return nil, false
	}
	return []string{name}, true // this host can't say: the controller can
}

// Me is who runs the command, by number and by name: either may be what the controller's host
// knows.
func Me() []string {
	names, _ := User(strconv.Itoa(os.Getuid()))
	return names
}

// Ref is how a job is named to the controller.
func Ref(j *api.Job) api.JobRef {
	if j.ArrayIndex != nil {
		return api.JobRef{ID: j.ArrayJobID, Index: *j.ArrayIndex}
	}
	return api.JobRef{ID: j.JobID, Index: -1}
}

// SlurmState is a state that Slurm knows by name.
type SlurmState struct {
	Name, Code string
	Own        api.JobState // empty: no job of gangd's is ever in it
	Kept       bool         // in the history too; the others pass
}

// SlurmStates is every state that squeue knows, in its order.
var SlurmStates = []SlurmState{
	{"PENDING", "PD", api.JobPending, true}, {"RUNNING", "R", api.JobRunning, true}, {"SUSPENDED", "S", api.JobSuspended, true},
	{"COMPLETED", "CD", api.JobCompleted, true}, {"CANCELLED", "CA", api.JobCancelled, true}, {"FAILED", "F", api.JobFailed, true},
	{"TIMEOUT", "TO", api.JobTimeout, true}, {"NODE_FAIL", "NF", api.JobNodeFail, true}, {"PREEMPTED", "PR", api.JobPreempted, true},
	{"BOOT_FAIL", "BF", "", true}, {"DEADLINE", "DL", api.JobDeadline, true}, {"OUT_OF_MEMORY", "OOM", api.JobOutOfMemory, true},
	{"COMPLETING", "CG", api.JobCompleting, false}, {"CONFIGURING", "CF", api.JobReserved, false}, {"RESIZING", "RS", "", true},
	{"RESV_DEL_HOLD", "RD", "", false}, {"REQUEUED", "RQ", "", true}, {"REQUEUE_FED", "RF", "", false}, {"REQUEUE_HOLD", "RH", "", false},
	{"REVOKED", "RV", "", true}, {"SIGNALING", "SI", "", false}, {"SPECIAL_EXIT", "SE", "", false}, {"STAGE_OUT", "SO", "", false},
	{"STOPPED", "ST", "", false},
}

// StateNames are those of the states that squeue knows, or of those that the history has too.
func StateNames(kept bool) string {
	var names []string
	for i := range SlurmStates {
		if s := &SlurmStates[i]; s.Kept || !kept {
			names = append(names, s.Name)
		}
	}
	return strings.Join(names, "\n")
}

// StateOf finds a state by its name or short form, in any case; nil: there is none.
func StateOf(name string) *SlurmState {
	i := slices.IndexFunc(SlurmStates, func(s SlurmState) bool { return strings.EqualFold(name, s.Name) || strings.EqualFold(name, s.Code) })
	if i < 0 {
		return nil
	}
	return &SlurmStates[i]
}
