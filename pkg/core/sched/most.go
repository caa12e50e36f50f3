package sched

import "gangd/pkg/core/cluster"

// most is no less than any one node has free.
type most struct {
	amount
	known  bool
	starts int // with so many grants of starts it was worked out
	looks  int // at the nodes since then, for it did not tell
}

// fewClasses of nodes are looked at again after each start, and more when as many looks at all nodes could have been spared.
const fewClasses = 64

func (kp *kept) mostFree() *most {
	if m := &kp.most; !m.known || m.starts != len(kp.ends.started) && len(kp.views[0].live) <= fewClasses*(1+m.looks) {
		*m = most{known: true, starts: len(kp.ends.started)}
		for _, k := range kp.views[0].live {
			if kp.views[0].members(k).count == 0 {
				continue
			}
			m.cards = max(m.cards, k.node.OpenCards())
			for r := range m.of {
				m.of[r] = max(m.of[r], k.node.Free(cluster.Resource(r)))
			}
		}
	}
	return &kp.most
}
