package kept

import "gangd/pkg/core/sched/fit"

// most is no less than any one node has free.
type most struct {
	fit.Amount
	known  bool
	starts int // with so many grants of starts it was worked out
	looks  int // at the nodes since then, for it did not tell
}

// fewClasses of nodes are looked at again after each start, and more when as many looks at all nodes could have been spared.
const fewClasses = 64

func (kp *Backfills) mostFree() *most {
	if m := &kp.most; !m.known || m.starts != len(kp.ends.started) && kp.views[0].Kinds() <= fewClasses*(1+m.looks) {
		*m = most{Amount: kp.views[0].MostFree(), known: true, starts: len(kp.ends.started)}
	}
	return &kp.most
}

// NobodyHas reports whether a rank needs more of something than any one node has free.
func (kp *Backfills) NobodyHas(sh *fit.AskClass) bool {
	m := kp.mostFree()
	if sh.NeedsMore(&m.Amount) {
		return true
	}
	m.looks++
	return false
}
