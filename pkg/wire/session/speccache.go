package session

import (
	"fmt"

	"gangd/pkg/api"
)

// specCache is the node's side of the rule in [sent]: what of the specs it was told the
// controller may name again without sending it.
type specCache struct {
	specs   map[string]*api.Spec
	refs    map[string]int
	members map[api.MemberKey]string
}

func newSpecCache() specCache {
	return specCache{map[string]*api.Spec{}, map[string]int{}, map[api.MemberKey]string{}}
}

// apply takes d's specs in, and gives d those that its bodies name.
func (c *specCache) apply(d *api.Desired) error {
	if d.Full {
		clear(c.refs)
		clear(c.members)
	}
	for hash, s := range d.Specs {
		c.specs[hash] = s
	}
	named := map[string]*api.Spec{}
	for i := range d.Assignments {
		a := &d.Assignments[i]
		if a.Body == nil {
			continue
		}
		hash := a.Body.SpecHash
		s := c.specs[hash]
		if s == nil {
			return fmt.Errorf("%w: job %d names spec %q, which was not sent", errFrame, a.Job, hash)
		}
		named[hash] = s
		if old, known := c.members[a.MemberKey]; known {
			release(c.refs, old)
		}
		c.members[a.MemberKey] = hash
		c.refs[hash]++
	}
	d.Specs = named
	for _, k := range d.Forget {
		c.forget(k)
	}
	return nil
}

func (c *specCache) forget(k api.MemberKey) {
	hash, known := c.members[k]
	if !known {
		return
	}
	delete(c.members, k)
	release(c.refs, hash)
	if _, used := c.refs[hash]; !used {
		delete(c.specs, hash)
	}
}
