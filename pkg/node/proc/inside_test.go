package proc

import (
	"testing"
	"time"
)

// TestPeekIsNotHeldUp: looks at memory that never comes are left, and no more than a few of them are begun.
func TestPeekIsNotHeldUp(t *testing.T) {
	never := make(chan struct{})
	begun := time.Now()
	for range 3 * cap(unanswered) {
		if b := soon(func() []byte { <-never; return []byte{1} }); b != nil {
			t.Fatal("a look that never came gave something")
		}
	}
	if d, most := time.Since(begun), time.Duration(2*cap(unanswered))*peekTime; d > most {
		t.Errorf("held up for %s, want at most %s", d, most)
	}
	close(never)
	for range cap(unanswered) {
		unanswered <- struct{}{} // each has come back
	}
	for range cap(unanswered) {
		<-unanswered
	}
	if b := soon(func() []byte { return []byte{7} }); len(b) != 1 {
		t.Error("nothing is seen after they came back")
	}
}
