package rpc

import "testing"

// TestSlowReaderIsCutByBytes: what waits for a reader who does not read is bounded, whatever the size of a frame. A
// first one he gets however large it is, else nobody could join.
func TestSlowReaderIsCutByBytes(t *testing.T) {
	l := &live{readers: map[*liveReader]bool{}, stop: func() {}}
	r := &liveReader{frames: make(chan []byte, liveFrames)}
	l.readers[r] = true
	give := func(n int) { l.give(make([]byte, n), []*liveReader{r}) }
	give(3 * liveBytes)
	if !l.readers[r] {
		t.Fatal("cut for the first")
	}
	f := <-r.frames
	r.held.Add(-int64(len(f)))
	for range 4 {
		give(liveBytes / 4)
	}
	if !l.readers[r] {
		t.Fatal("cut below the bound")
	}
	give(1)
	if l.readers[r] {
		t.Errorf("%d bytes wait for it", r.held.Load())
	}
}
