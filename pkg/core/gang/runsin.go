package gang

import (
	"slices"
	"strings"
)

// RunsIn is the partition that a gang with nodes runs in: the first of those it may run in that
// has all of its nodes. Of a gang without nodes, and of one whose nodes no single partition has
// (any longer), it is all that it named. node gives what is known of a node, nil: nothing.
func RunsIn(j *Job, node func(name string) *Node) string {
	if len(j.Members) == 0 || !strings.Contains(j.Partition, ",") {
		return j.Partition
	}
	for name := range strings.SplitSeq(j.Partition, ",") {
		if !slices.ContainsFunc(j.Members, func(m Member) bool {
			n := node(m.Node)
			return n == nil || !slices.Contains(n.Res.Partitions, name)
		}) {
			return name
		}
	}
	return j.Partition
}
