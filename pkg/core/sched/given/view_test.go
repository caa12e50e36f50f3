package given

import (
	"fmt"
	"testing"
)

// TestNamesOfJobs: each once, by number, five of them.
func TestNamesOfJobs(t *testing.T) {
	element := Names(func(job int64) string { return fmt.Sprintf("20_%d", job) })
	for _, tt := range []struct {
		names Names
		ids   []int64
		want  string
	}{
		{nil, []int64{3}, "job 3"}, {nil, []int64{3, 3}, "job 3"}, {nil, []int64{4, 3}, "jobs 3 and 4"}, {nil, []int64{5, 4, 3}, "jobs 3, 4 and 5"},
		{nil, []int64{1, 2, 3, 4, 5}, "jobs 1, 2, 3, 4 and 5"}, {nil, []int64{1, 2, 3, 4, 5, 6}, "jobs 1, 2, 3, 4, 5 and 1 more"},
		{element, []int64{4, 3}, "jobs 20_3 and 20_4"},
	} {
		if got := tt.names.List(tt.ids); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.ids, got, tt.want)
		}
	}
}
