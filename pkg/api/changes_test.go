package api

import "testing"

// TestChanges: each field of an update is a change, and which jobs are meant is none.
func TestChanges(t *testing.T) {
	none := ""
	for want, all := range map[bool][]UpdateRequest{
		false: {{}, {JobQuery: JobQuery{Refs: []JobRef{{ID: 1}}, All: true}}},
		true:  {{Constraint: &none}, {Prefer: &none}, {Message: &none}, {Priority: new(int64)}, {Dependency: &Dependency{}}},
	} {
		for i := range all {
			if all[i].Changes() != want {
				t.Errorf("%+v: changes %v", all[i], !want)
			}
		}
	}
}

// TestInPartition: a job that may run in several is in each of them.
func TestInPartition(t *testing.T) {
	j := &Job{Partition: "gpu,long"}
	for want, names := range map[bool][][]string{true: {nil, {"gpu"}, {"x", "long"}}, false: {{"gpu,long"}, {"lon"}}} {
		for _, n := range names {
			if j.InPartition(n) != want {
				t.Errorf("in %v: %v", n, !want)
			}
		}
	}
}
