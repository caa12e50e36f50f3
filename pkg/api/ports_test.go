package api

import "testing"

func TestPortRanges(t *testing.T) {
	for in, want := range map[string]PortRange{"": {}, "12000-12999": {12000, 12999}, "1024-1024": {1024, 1024}} {
		if got, err := ParsePortRange(in); err != nil || got != want {
			t.Errorf("%q: %v %v", in, got, err)
		}
	}
	for _, in := range []string{"12000", "12000-", "-", "80-90", "13000-12000", "12000-65536", "a-b", "none"} {
		_, err := ParsePortRange(in)
		if want := "ports \"" + in + "\": want FIRST-LAST, both from 1024 to 65535, such as 12000-12999"; err == nil || err.Error() != want {
			t.Errorf("%q: %v", in, err)
		}
	}
}
