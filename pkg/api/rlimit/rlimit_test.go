package rlimit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChoose(t *testing.T) {
	all := Soft{"NOFILE": 600, "STACK": Unlimited}
	for _, c := range []struct {
		list string
		want Soft
		bad  bool
	}{
		{"", all, false}, {"ALL", all, false}, {"NONE", nil, false}, {"NOFILE", Soft{"NOFILE": 600}, false},
		{"RLIMIT_STACK, NOFILE", all, false}, {"AS", Soft{}, false}, {"nofile", nil, true}, {"none", nil, true}, {"NOFILE,", nil, true},
	} {
		got, err := all.Choose(c.list)
		if diff := cmp.Diff(c.want, got); diff != "" || (err != nil) != c.bad {
			t.Errorf("%q: %v %s", c.list, err, diff)
		}
	}
}
