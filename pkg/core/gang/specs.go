package gang

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
)

// specs are what jobs ask for, kept once for all that ask the same.
type specs struct {
	partitions *partitions

	byKey   map[specKey]*sharedSpec
	options map[optionsKey]*sharedOptions
	// optionsBy finds those of a start again, whose jobs share them as they were read.
	optionsBy map[*api.Spec]*sharedOptions
	asks      map[askKey]*sharedAsk

	whole map[string]*api.Spec // of new jobs by hash, for the store; nil: there are none
	left  []string             // hashes of those that jobs asked for before
}

type askKey struct {
	spec               *api.Spec
	partition          string
	constraint, prefer string // of now
	without            string // nodes that are out of the question for now
}

func (sp *specs) keyOfAsk(j *Job) askKey {
	s := j.Spec
	k := askKey{spec: s, partition: inText(sp.partitions.startsIn(j)), constraint: s.Constraint, prefer: s.Prefer}
	if j.Constraint != nil {
		k.constraint = *j.Constraint
	}
	if j.Prefer != nil {
		k.prefer = *j.Prefer
	}
	if j.Elsewhere {
		k.without = strings.Join(RefusedBy(j), ",")
	}
	return k
}

// sharedAsk counts the jobs that use an ask.
type sharedAsk struct {
	ask  *cluster.Ask
	key  askKey
	jobs int
}

// open: its jobs may be started in a partition.
func (a *sharedAsk) open() bool { return a.key.partition != "" }

// ask is shared by all jobs of one spec and partition that were changed alike.
func (sp *specs) ask(j *Job) *sharedAsk {
	k := sp.keyOfAsk(j)
	a := sp.asks[k]
	if a == nil {
		a = &sharedAsk{ask: cluster.AskIn(askSpec(j), sp.askedIn(j)), key: k}
		if j.Elsewhere {
			a.ask.Leave(RefusedBy(j))
		}
		sp.asks[k] = a
	}
	a.jobs++
	return a
}

// askedIn are the partitions of a job's ask: those it may be started in, and all of them where it
// may be in none, which keeps it from being a candidate.
func (sp *specs) askedIn(j *Job) []cluster.In {
	if open := sp.partitions.startsIn(j); len(open) > 0 {
		return open
	}
	return unboundedIn(j.Partition)
}

// askSpec is what a job asks for now, without the nodes that it is kept off.
func askSpec(j *Job) *api.Spec {
	s := SpecOf(j)
	if !j.Elsewhere {
		return s
	}
	c := *s
	c.Exclude = append(slices.Clip(c.Exclude), RefusedBy(j)...)
	return &c
}

// dropAsk is the other end of ask.
func (sp *specs) dropAsk(a *sharedAsk) {
	if a.jobs--; a.jobs == 0 {
		delete(sp.asks, a.key)
	}
}

// askAgain is to follow whatever may change what a job asks for.
func (sp *specs) askAgain(e *entry) {
	sp.dropAsk(e.asked)
	e.asked = sp.ask(e.job)
}

// sharedSpec counts the jobs of a user in memory that have a spec: whoever submits the same once more, a
// hundred thousand times perhaps, takes no more memory for it.
type sharedSpec struct {
	options *sharedOptions
	jobs    int32
	live    int32 // those of them that have not ended
}

type specKey struct {
	user uint32
	hash string
}

func (j *Job) specKey() specKey { return specKey{j.UID, j.SpecHash} }

// sharedOptions is a spec without its name, which each job has for itself. It counts the specs that are the same but for name
// and texts: a hundred thousand jobs of a user differ in little else.
type sharedOptions struct {
	spec  *api.Spec
	key   optionsKey
	specs int
}

type optionsKey [sha256.Size]byte

// keep counts a job in, and gives it the options that others have which say the same.
func (sp *specs) keep(j *Job) {
	s := sp.byKey[j.specKey()]
	if s == nil {
		s = &sharedSpec{options: sp.optionsOf(j.Spec)}
		s.options.specs++
		sp.byKey[j.specKey()] = s
	}
	s.jobs++
	j.Spec = s.options.spec
}

func (sp *specs) optionsOf(s *api.Spec) *sharedOptions {
	if o := sp.optionsBy[s]; o != nil {
		return o
	}
	if s.Name != "" {
		own := *s
		own.Name = ""
		s = &own
	}
	text, err := json.Marshal(s)
	if err != nil {
		panic("gang: a spec is plain data: " + err.Error())
	}
	key := optionsKey(sha256.Sum256(text))
	o := sp.options[key]
	if o == nil {
		o = &sharedOptions{spec: s, key: key}
		sp.options[key], sp.optionsBy[s] = o, o
	}
	return o
}

func (sp *specs) drop(j *Job) {
	s := sp.byKey[j.specKey()]
	if s.jobs--; s.jobs > 0 {
		return
	}
	delete(sp.byKey, j.specKey())
	if s.options.specs--; s.options.specs == 0 {
		delete(sp.options, s.options.key)
		delete(sp.optionsBy, s.options.spec)
	}
}

// SpecOf is what a job asks for now.
func SpecOf(j *Job) *api.Spec {
	if j.Constraint == nil && j.Prefer == nil {
		return j.Spec
	}
	s := *j.Spec
	if j.Constraint != nil {
		s.Constraint, s.Roles = *j.Constraint, slices.Clone(s.Roles)
		for i := range s.Roles {
			if s.Roles[i].Constraint == j.Spec.Constraint {
				s.Roles[i].Constraint = *j.Constraint
			}
		}
	}
	if j.Prefer != nil {
		s.Prefer = *j.Prefer
	}
	return &s
}
