package output

import (
	"bytes"
	"testing"
)

// TestRanks: lines of several ranks come whole, however they were cut, and the last of each with what it ends in.
func TestRanks(t *testing.T) {
	var b bytes.Buffer
	r := &Ranks{W: &b, Size: 11}
	for _, p := range []struct {
		rank int
		data []byte
	}{{3, []byte("epo")}, {10, []byte("one\ntwo\nth")}, {3, []byte("ch 1\n")}, {10, nil}, {3, nil}} {
		if err := r.Print(p.rank, p.data); err != nil {
			t.Fatal(err)
		}
	}
	if want := "10: one\n10: two\n 3: epoch 1\n10: th\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}
