package nearest

import "testing"

func TestOf(t *testing.T) {
	choices := []string{"--size", "--signal", "--gpus-per-rank", "--gpus-per-node", "running", "pending", "n1", "main"}
	for typed, want := range map[string]string{
		"--szie": "--size", "--gpu-per-rank": "--gpus-per-rank", "RUNING": "running", "pend": "pending",
		"mian": "main", "n2": "", "--frobnicate": "", "": "", "zzz": "",
	} {
		if got := Of(typed, choices); got != want {
			t.Errorf("Of(%q) = %q, want %q", typed, got, want)
		}
	}
}
