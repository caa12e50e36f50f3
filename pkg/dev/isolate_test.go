package dev

import "testing"

// TestOthersOf: a node finds this machine by none of its names on the node's own loopback.
func TestOthersOf(t *testing.T) {
	for _, c := range []struct{ table, want string }{
		{"127.0.0.1 localhost\n127.0.1.1 box.lab box\n", "127.0.0.1 localhost\n"},
		{"127.0.0.1 localhost box # here\n10.1.1.1 other box2\n", "127.0.0.1 localhost # here\n10.1.1.1 other box2\n"},
		{"# box\n\n::1 ip6-localhost box\n", "# box\n\n::1 ip6-localhost\n"},
		{"", ""},
	} {
		if got := othersOf(c.table, "box"); got != c.want {
			t.Errorf("%q: %q, want %q", c.table, got, c.want)
		}
	}
	if got := othersOf("127.0.0.1 localhost\n", ""); got != "127.0.0.1 localhost\n" {
		t.Errorf("without a name: %q", got)
	}
}
