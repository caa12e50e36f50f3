package api

import "testing"

// A component is shown by its own name, or by the job's.
func TestPartHasItsName(t *testing.T) {
	j := Job{Name: "first", Components: []JobComponent{{}, {Name: "second"}, {}}}
	for i, want := range []string{"first", "second", "first"} {
		if got := j.Part(i).Name; got != want {
			t.Errorf("component %d is %q, want %q", i, got, want)
		}
	}
	s := Spec{Name: "first", Roles: []Role{{Component: &Component{}}, {Component: &Component{JobName: "second"}}}}
	for i, want := range []string{"first", "second"} {
		if got := s.Part(i).Name; got != want {
			t.Errorf("the spec of component %d is %q, want %q", i, got, want)
		}
	}
}
