package rpc

import (
	"net/url"
	"testing"
)

// What is no number, or less than means anything, is refused and not taken for what stands nearest.
func TestNumber(t *testing.T) {
	for text, want := range map[string]struct {
		n  int64
		ok bool
	}{"": {7, true}, "-1": {-1, true}, "12": {12, true}, "-2": {}, "1x": {}, "99999999999999999999": {}} {
		n, err := number(url.Values{"since": {text}}, "since", 7, -1)
		if n != want.n || err == nil != want.ok {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
}
