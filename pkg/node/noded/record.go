package noded

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/node/shim"
)

// record is what a member's directory says of it. What is damaged, or of another member, is not
// taken in, and named.
type record struct {
	dir               string
	spec              *shim.Spec
	state             *shim.State
	badSpec, badState string // why it is there and is not believed; empty: it is whole, or not there
}

const (
	// readAgain is how often a record that is not whole is read, and readPause is between: a shim
	// may have been writing it.
	readAgain = 3
	readPause = 5 * time.Millisecond
)

func readMember(dir string, k api.MemberKey) *record {
	for n := 1; ; n++ {
		r := &record{dir: dir}
		r.spec, r.badSpec = readPart(dir, k, shim.SpecFile, shim.ReadSpec, func(s *shim.Spec) api.MemberKey { return s.MemberKey })
		r.state, r.badState = readPart(dir, k, shim.StateFile, shim.ReadState, func(s *shim.State) api.MemberKey { return s.MemberKey })
		if r.damaged() == "" || n == readAgain {
			return r
		}
		time.Sleep(readPause)
	}
}

func readPart[T any](dir string, k api.MemberKey, name string, read func(dir string) (*T, error), key func(*T) api.MemberKey) (part *T,
	bad string) {
	part, err := read(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ""
	case err != nil:
		return nil, err.Error()
	case key(part) != k:
		return nil, fmt.Sprintf("%s is that of job %d epoch %d", name, key(part).Job, key(part).Epoch)
	}
	return part, ""
}

// damaged says what of it is not believed; empty: nothing.
func (r *record) damaged() string {
	if r.badSpec == "" || r.badState == "" {
		return r.badSpec + r.badState
	}
	return r.badSpec + "; " + r.badState
}

// contradicted: processes of a member live that is over by its state.
func (r *record) contradicted() {
	r.badState = fmt.Sprintf("%s says that it is %s, and processes of it live", shim.StateFile, r.state.Phase)
	r.state = nil
}

// uncertain: whether anything lives decides what is made of it.
func (r *record) uncertain(otherBoot bool) bool {
	return r.spec == nil || r.damaged() != "" || r.state == nil && otherBoot
}

// remains is what is left of a member that a daemon finds.
type remains int

const (
	remainsNothing remains = iota // it never began, or ended with another run of the machine
	remainsMember                 // it is as far as its state says, or further
	remainsName                   // it began and is over, and how it ended can't be read
)

// judge says what is left of a member by its record, with lastBoot as of [EndedWithBoot]. alive:
// processes of it, or its shim, are there, which counts before what any file says. begun: a shim
// took it on.
func judge(r *record, alive, begun bool, lastBoot, boot string) remains {
	whole := r.damaged() == ""
	switch {
	case alive:
		return remainsMember
	case whole && EndedWithBoot(r.state, lastBoot, boot):
		return remainsNothing
	case r.state != nil && Ended(r.state.Phase):
		return remainsMember // a result needs nothing else
	case r.spec != nil && whole:
		return remainsMember
	case r.state == nil && r.badState == "" && !begun:
		return remainsNothing // the spec is written first, perhaps not to its end
	}
	return remainsName
}
