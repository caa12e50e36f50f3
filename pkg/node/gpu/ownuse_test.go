package gpu

import "testing"

// Of a gang's own utilization both ends are told; only a gang alone on its card, or a driver
// that says who used it, brings them together.
func TestShare(t *testing.T) {
	whose := func(pid int) Whose { return []Whose{Hidden, Own, Other}[pid/100] } // 1..: hidden, 100..: own, 200..: other
	list := func(pids ...int) (out []Process) {
		for _, p := range pids {
			out = append(out, Process{PID: p})
		}
		return out
	}
	for _, c := range []struct {
		name   string
		sample Sample
		shared bool
		want   Share
	}{
		{"alone", Sample{Utilization: 60, Processes: list(100, 101)}, false, Share{Low: 60, High: 60}},
		{"alone, and the driver lists nobody", Sample{Utilization: 60}, false, Share{Low: 60, High: 60}},
		{"with a stranger", Sample{Utilization: 60, Processes: list(100, 200)}, false, Share{High: 60, Others: true, Other: 200}},
		{"with a stranger on an idle card", Sample{Utilization: 2, Processes: list(100, 200)}, false, Share{High: 2, Others: true, Other: 200}},
		{"with somebody who is not listed", Sample{Utilization: 60, Processes: list(100)}, true, Share{High: 60, Others: true}},
		{"with somebody unknown", Sample{Utilization: 60, Processes: list(100, 1)}, false, Share{High: 60, Others: true, Other: 1}},
		{"no figure at all", Sample{Utilization: -1, Processes: list(100)}, false, Share{Low: -1, High: -1}},
		{"the driver says it was the stranger", Sample{Utilization: 60, Processes: list(100, 200), UsersKnown: true, Users: []User{{200, 58}}}, false,
			Share{Others: true, Other: 200}},
		{"the driver says it was both", Sample{Utilization: 60, Processes: list(200), UsersKnown: true, Users: []User{{100, 20}, {200, 30}, {101, 9}, {201, 1}}}, false,
			Share{Low: 29, High: 29, Others: true, Other: 200}},
		{"it was one of whom nothing can be told", Sample{Utilization: 60, Processes: list(100), UsersKnown: true, Users: []User{{1, 60}}}, false,
			Share{High: 60, Others: true, Other: 1}},
		{"the driver does not see the gang, and misses somebody", Sample{Utilization: 60, Processes: list(200), UsersKnown: true, Users: []User{{200, 50}}}, false,
			Share{High: 10, Others: true, Other: 200}},
		{"the driver sees the gang, and its figures differ a little", Sample{Utilization: 60, Processes: list(100, 200), UsersKnown: true, Users: []User{{200, 40}}}, false,
			Share{Others: true, Other: 200}},
		{"or a lot", Sample{Utilization: 60, Processes: list(100, 200), UsersKnown: true, Users: []User{{200, 5}}}, false, Share{High: 55, Others: true, Other: 200}},
		{"alone, whatever is said of its processes", Sample{Utilization: 60, Processes: list(100), UsersKnown: true}, false, Share{Low: 60, High: 60}},
		{"nor is there a figure of the whole", Sample{Utilization: -1, UsersKnown: true, Users: []User{{200, 30}}}, false, Share{High: 70, Others: true, Other: 200}},
		{"figures of several add up to no more than all", Sample{Utilization: 99, Processes: list(100), UsersKnown: true, Users: []User{{100, 70}, {101, 80}}}, true, Share{Low: 100, High: 100, Others: true}},
	} {
		if got := c.sample.Share(c.shared, whose); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
