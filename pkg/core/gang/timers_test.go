package gang

import (
	"testing"
	"time"
)

// Moved and cancelled timers do not pile up, and those that count fire in order.
func TestTimersThatDoNotCountAreDropped(t *testing.T) {
	tm := timers{due: map[timer]time.Duration{}}
	const n = 100
	for round := range time.Duration(1000) {
		for job := range int64(n) {
			tm.set(timer{kind: timerLaunch, job: job}, round*time.Second+time.Duration(job))
			tm.set(timer{kind: timerForce, job: job}, time.Second)
			tm.cancel(timer{kind: timerForce, job: job})
			if most := 2*(len(tm.due)+1) + 64; len(tm.heap) > most {
				t.Fatalf("%d items for %d timers", len(tm.heap), len(tm.due))
			}
		}
	}
	for job := range int64(n) {
		k, ok := tm.pop(time.Hour)
		if !ok || k.job != job || k.kind != timerLaunch {
			t.Fatalf("timer %d is %+v", job, k)
		}
	}
	if k, ok := tm.pop(time.Hour); ok {
		t.Errorf("one too many: %+v", k)
	}
	tm.set(timer{job: 1}, 0)
	tm.cancel(timer{job: 1})
	if k, ok := tm.pop(0); ok {
		t.Errorf("one that was called off: %+v", k)
	}
}
