package fake

import (
	"cmp"
	"net/http"
	"slices"

	"gangd/pkg/api"
)

func (c *Controller) partition(name string) int {
	return slices.IndexFunc(c.Partitions, func(p api.Partition) bool { return p.Name == name })
}

// putPartition makes a partition, or changes the state of the one that the path names.
func (c *Controller) putPartition(r *http.Request) (any, error) {
	var req api.PartitionRequest
	if err := body(r, &req); err != nil {
		return nil, err
	}
	name := cmp.Or(r.PathValue("name"), req.Name)
	at := c.partition(name)
	switch {
	case at < 0 && r.PathValue("name") != "":
		return nil, api.Errorf(api.CodeNotFound, "no partition %q", name).About(api.ReasonPartition, name)
	case at >= 0 && r.PathValue("name") == "":
		return nil, api.Errorf(api.CodeConflict, "there is a partition %s already", name).About(api.ReasonPartition, name)
	case at < 0:
		c.Partitions = append(c.Partitions, api.Partition{Name: name})
		at = len(c.Partitions) - 1
	}
	if req.State != nil {
		c.Partitions[at].State = *req.State
	}
	return struct{}{}, nil
}

func (c *Controller) dropPartition(r *http.Request) (any, error) {
	name := r.PathValue("name")
	at := c.partition(name)
	switch {
	case at < 0:
		return nil, api.Errorf(api.CodeNotFound, "no partition %q", name).About(api.ReasonPartition, name)
	case slices.ContainsFunc(c.Jobs, func(j api.Job) bool { return j.Partition == name && !j.State.Ended() }):
		return nil, api.Errorf(api.CodeConflict, "job 12 is of partition %s", name).About(api.ReasonPartitionUsed, name)
	}
	c.Partitions = slices.Delete(slices.Clone(c.Partitions), at, at+1)
	return struct{}{}, nil
}
