package slurm

import "testing"

func TestOwn(t *testing.T) {
	for _, c := range []struct{ job, array, index, id, want string }{
		{"", "", "", "12", "12"},
		{"12", "", "", "12", "12"},
		{"12", "12", "3", "12", "12_3"}, // the element with the array's id
		{"12", "12", "3", "12.0", "12_3.0"},
		{"12", "12", "3", "13", "13"},
		{"12", "12", "3", "12_4", "12_4"},
		{"12", "12", "3", "12_[0-4]", "12_[0-4]"},
		{"12", "12", "3", "", ""},
		{"13", "12", "4", "12", "12"}, // another element means the array
		{"13", "12", "4", "13", "13"},
	} {
		t.Setenv("SLURM_JOB_ID", c.job)
		t.Setenv("SLURM_ARRAY_JOB_ID", c.array)
		t.Setenv("SLURM_ARRAY_TASK_ID", c.index)
		if got := Own(c.id); got != c.want {
			t.Errorf("%q in %s of %s: %q, want %q", c.id, c.job, c.array, got, c.want)
		}
	}
}
