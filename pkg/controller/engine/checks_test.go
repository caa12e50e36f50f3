package engine

import (
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
	"gangd/pkg/lab/disk"
)

// TestCheckSpec: what no client of ours sends is refused at the first value that is wrong, and the last that is right
// is taken. Others speak this API too.
func TestCheckSpec(t *testing.T) {
	roles := func(rs ...api.Role) func(*api.Spec) {
		return func(s *api.Spec) { s.Roles, s.Size = rs, len(rs) }
	}
	role := func(edit func(*api.Role)) func(*api.Spec) {
		r := api.Role{Name: "a", Count: 1, CPUsPerRank: 1}
		edit(&r)
		return roles(r)
	}
	component := func(edit func(*api.Spec, *api.Role)) func(*api.Spec) {
		return func(s *api.Spec) {
			r := api.Role{Name: "a", Count: 1, CPUsPerRank: 1, Component: &api.Component{}}
			s.Launch = api.LaunchBatch
			edit(s, &r)
			s.Roles = []api.Role{r}
		}
	}
	env := func(n int) []string { return []string{"A=" + strings.Repeat("x", n-3)} }
	for _, c := range []struct {
		edit func(*api.Spec)
		want string // empty: taken
	}{
		{func(s *api.Spec) {}, ""},
		{func(s *api.Spec) { s.Size = 0 }, "size 0: want 1 to 65536 ranks"},
		{func(s *api.Spec) { s.Size = api.MaxGangSize }, ""},
		{func(s *api.Spec) { s.Size = api.MaxGangSize + 1 }, "size 65537: want 1 to 65536 ranks"},
		{func(s *api.Spec) { s.Launch = "x" }, `launch "x": want ranks or batch`},
		{func(s *api.Spec) { s.Launch = api.LaunchBatch }, ""},
		{func(s *api.Spec) { s.CPUsPerRank = 0 }, "cpus_per_rank 0: a rank takes at least one"},
		{func(s *api.Spec) { s.GPUsPerRank = -1 }, "a resource may not be negative"},
		{func(s *api.Spec) { s.GPUsPerNode = -1 }, "a resource may not be negative"},
		{func(s *api.Spec) { s.MemoryPerRank = -1 }, "a resource may not be negative"},
		{func(s *api.Spec) { s.MemoryPerNode = -1 }, "a resource may not be negative"},
		{func(s *api.Spec) { s.TmpPerNode = -1 }, "a resource may not be negative"},
		{func(s *api.Spec) { s.VRAMBytes = -1 }, "a resource may not be negative"},
		{func(s *api.Spec) { s.RanksPerNode = -1 }, "a resource may not be negative"},
		{func(s *api.Spec) { s.GPUsPerRank, s.GPUsPerNode = 1, 1 }, "gpus_per_rank and gpus_per_node exclude each other"},
		{func(s *api.Spec) { s.GPUsPerNode, s.GPUWatch = 1, true }, ""},
		{func(s *api.Spec) { s.Share = true }, "share needs vram_bytes: cards are shared by VRAM"},
		{func(s *api.Spec) { s.Share, s.VRAMBytes, s.GPUsPerRank = true, 1, 1 }, ""},
		{func(s *api.Spec) { s.GPUWatch = true }, "--gpu-watch: the job asks for no cards that could be watched; ask for some with --gpus-per-rank, or leave --gpu-watch out"},
		{func(s *api.Spec) { s.GPUWatch, s.GPUsPerRank = true, 1 }, ""},
		{func(s *api.Spec) { s.StallTimeout = api.WatchdogOff }, ""},
		{func(s *api.Spec) { s.StallTimeout = -2 }, "stall_timeout_ns -2: want a time, 0 for the site's, or -1 for none"},
		{func(s *api.Spec) { s.TimeLimit = -1 }, "a time may not be negative"},
		{func(s *api.Spec) { s.TimeMin = -1 }, "a time may not be negative"},
		{func(s *api.Spec) { s.Grace = -1 }, "a time may not be negative"},
		{func(s *api.Spec) { s.ReadyTimeout = -1 }, "a time may not be negative"},
		{func(s *api.Spec) { s.Script = nil }, "the script is empty"},
		{func(s *api.Spec) { s.Script = make([]byte, api.MaxScriptBytes) }, ""},
		{func(s *api.Spec) { s.Script = make([]byte, api.MaxScriptBytes+1) }, "the script has 4194305 bytes, at most 4194304 are accepted"},
		{func(s *api.Spec) { s.Ports = api.PortEach }, ""},
		{func(s *api.Spec) { s.Ports = -2 }, "-2 ports: want a number from 0, or -1 for one each"},
		{func(s *api.Spec) { s.WorkDir = "tmp" }, `work_dir "tmp" is not absolute`},
		{func(s *api.Spec) { s.Name = "a b~" }, ""},
		{func(s *api.Spec) { s.Name = "a\x1f" }, `name "a\x1f" has control characters`},
		{func(s *api.Spec) { s.Name = "a\x7f" }, `name "a\x7f" has control characters`},
		{func(s *api.Spec) { s.OpenMode = "x" }, `open_mode "x": want append or truncate, or nothing`},
		{func(s *api.Spec) {
			s.OpenMode, s.Checkpoint, s.CPUBind, s.InvalidDependency, s.StopSignal = "truncate", "drain", "cores", "wait", "USR1"
		}, ""},
		{func(s *api.Spec) { s.Checkpoint = "x" }, `checkpoint "x": want drain, or nothing`},
		{func(s *api.Spec) { s.CPUBind = "x" }, `cpu_bind "x": want none or cores or ldoms, or nothing`},
		{func(s *api.Spec) { s.InvalidDependency = "x" }, `invalid_dependency "x": want cancel or wait, or nothing`},
		{func(s *api.Spec) { s.StopSignal = "SIGTERM" }, `stop_signal "SIGTERM" is no signal: want a name as TERM or USR1`},
		{func(s *api.Spec) { s.Notice = &api.Notice{} }, "notice.signal is empty"},
		{func(s *api.Spec) { s.Notice = &api.Notice{Signal: "usr1"} }, `notice.signal "usr1" is no signal: want a name as TERM or USR1`},
		{func(s *api.Spec) { s.Notice = &api.Notice{Signal: "USR1", Scope: "x"} }, `notice.scope "x": want ranks or steps or batch or full, or nothing`},
		{func(s *api.Spec) { s.Notice = &api.Notice{Signal: "USR1", Scope: api.ScopeFull} }, ""},
		{func(s *api.Spec) { s.RequeueCauses = []api.Cause{api.CauseCrash, "x"} }, `requeue_causes: there is no cause "x"`},
		{func(s *api.Spec) { s.RequeueCauses = []api.Cause{api.CauseTimeout} }, "requeue_causes with timeout and max_time_total_ns want each other: without a bound a job that never is done would run for ever"},
		{func(s *api.Spec) { s.MaxTimeTotal = 1 }, "requeue_causes with timeout and max_time_total_ns want each other: without a bound a job that never is done would run for ever"},
		{func(s *api.Spec) { s.RequeueCauses, s.MaxTimeTotal = []api.Cause{api.CauseTimeout}, 1 }, ""},
		{func(s *api.Spec) { s.Env = []string{"A=", "B=1=2"} }, ""},
		{func(s *api.Spec) { s.Env = []string{"A=1", "B"} }, `environment entry "B" is not NAME=value`},
		{func(s *api.Spec) { s.Env = []string{"=x"} }, `environment entry "=x" is not NAME=value`},
		{func(s *api.Spec) { s.Env = env(maxExec) }, ""},
		{func(s *api.Spec) { s.Env = env(maxExec + 1) }, "arguments and environment have 2097153 bytes, a program can be started with 2097152; leave out of the environment what the job does not need: --export=NAME,NAME"},
		{func(s *api.Spec) { s.Env, s.Args = env(maxExec-3), []string{"xy"} }, ""},
		{func(s *api.Spec) { s.Env, s.Args = env(maxExec-3), []string{"x", "y"} }, "arguments and environment have 2097153 bytes, a program can be started with 2097152; leave out of the environment what the job does not need: --export=NAME,NAME"},
		{role(func(r *api.Role) {}), ""},
		{role(func(r *api.Role) { r.Name = "A" }), `role name "A": want lower-case letters, digits and -, a letter first, at most 32`},
		{role(func(r *api.Role) { r.Count = 0 }), "role a: 0 ranks, want 1 to 65536"},
		{role(func(r *api.Role) { r.Count = api.MaxGangSize + 1 }), "role a: 65537 ranks, want 1 to 65536"},
		{role(func(r *api.Role) { r.Count = 2 }), "size 1: the roles come to 2 ranks"},
		{role(func(r *api.Role) { r.CPUsPerRank = 0 }), "role a: cpus_per_rank 0: a rank takes at least one"},
		{role(func(r *api.Role) { r.GPUsPerRank = -1 }), "role a: a resource may not be negative"},
		{role(func(r *api.Role) { r.MemoryPerRank = -1 }), "role a: a resource may not be negative"},
		{role(func(r *api.Role) { r.VRAMBytes = -1 }), "role a: a resource may not be negative"},
		{roles(api.Role{Name: "a", Count: 1, CPUsPerRank: 1}, api.Role{Name: "a", Count: 1, CPUsPerRank: 1}), "role a is named twice"},
		{roles(api.Role{Name: "a", Count: 1, CPUsPerRank: 1}, api.Role{Name: "b", Count: 1, CPUsPerRank: 1}), ""},
		{roles(make([]api.Role, api.MaxRoles+1)...), "33 roles: at most 32 are accepted"},
		{func(s *api.Spec) { role(func(*api.Role) {})(s); s.Launch = api.LaunchBatch }, "launch batch: the ranks of roles run the script each"},
		{func(s *api.Spec) { role(func(*api.Role) {})(s); s.GPUsPerNode = 1 }, "roles count ranks: figures by node do not go with them"},
		{func(s *api.Spec) { role(func(*api.Role) {})(s); s.MemoryPerNode = 1 }, "roles count ranks: figures by node do not go with them"},
		{func(s *api.Spec) { role(func(*api.Role) {})(s); s.RanksPerNode = 1 }, "roles count ranks: figures by node do not go with them"},
		{func(s *api.Spec) { role(func(*api.Role) {})(s); s.MinNodes = 1 }, "roles count ranks: figures by node do not go with them"},
		{func(s *api.Spec) { role(func(*api.Role) {})(s); s.MaxNodes = 1 }, "roles count ranks: figures by node do not go with them"},
		{component(func(*api.Spec, *api.Role) {}), ""},
		{component(func(s *api.Spec, r *api.Role) { s.Launch = api.LaunchRanks }), "launch ranks: the script of a heterogeneous job runs once"},
		{component(func(s *api.Spec, r *api.Role) { r.Component.MinNodes, r.Component.MaxNodes = 2, 2 }), ""},
		{component(func(s *api.Spec, r *api.Role) { r.Component.MinNodes = 2 }), ""},
		{component(func(s *api.Spec, r *api.Role) { r.Component.MinNodes, r.Component.MaxNodes = 2, 1 }), "component 0: at most 1 nodes is below at least 2"},
		{component(func(s *api.Spec, r *api.Role) { r.Component.GPUsPerNode = 1 }), ""},
		{component(func(s *api.Spec, r *api.Role) { r.Component.GPUsPerNode, r.GPUsPerRank = 1, 1 }), "component 0: gpus_per_rank and gpus_per_node exclude each other"},
	} {
		s := spec(1)
		c.edit(&s)
		if got := errText(checkSpec(&s, nil)); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
	up := func(n int) []int {
		out := make([]int, n)
		for i := range out {
			out[i] = i
		}
		return out
	}
	for _, c := range []struct {
		indices []int
		want    string
	}{{up(1), ""}, {up(api.MaxArraySize), ""}, {up(api.MaxArraySize + 1), "an array of 10001 elements: want 1 to 10000"}, {nil, "an array of 0 elements: want 1 to 10000"},
		{[]int{-1}, "array indices must be ascending and not negative, got -1"}, {[]int{3, 4, 4}, "array indices must be ascending and not negative, got 4"}, {[]int{1, 0}, "array indices must be ascending and not negative, got 0"}} {
		s := spec(1)
		if got := errText(checkSpec(&s, &api.Array{Indices: c.indices})); got != c.want {
			t.Errorf("%d indices: got %s, want %s", len(c.indices), got, c.want)
		}
	}
}

// TestCheckUpdate: a change names something, is within its bounds, and raises nothing but for an admin.
func TestCheckUpdate(t *testing.T) {
	long := strings.Repeat("x", maxComment)
	user, admin := me, Caller{UID: 1, Admin: true}
	for _, c := range []struct {
		who  Caller
		r    api.UpdateRequest
		want string
	}{
		{user, api.UpdateRequest{}, "nothing to change was given"},
		{user, api.UpdateRequest{Name: new("a")}, ""},
		{user, api.UpdateRequest{Name: new("")}, `name "" is empty or has control characters`},
		{user, api.UpdateRequest{Name: new("a\x1f")}, `name "a\x1f" is empty or has control characters`},
		{user, api.UpdateRequest{Name: new("a\x7f")}, `name "a\x7f" is empty or has control characters`},
		{user, api.UpdateRequest{Name: new("a ~")}, ""},
		{user, api.UpdateRequest{Comment: &long}, ""},
		{user, api.UpdateRequest{Comment: new("")}, ""},
		{user, api.UpdateRequest{Comment: new(long + "x")}, "a comment may have 1024 bytes and no control characters"},
		{user, api.UpdateRequest{Comment: new("a\n")}, "a comment may have 1024 bytes and no control characters"},
		{user, api.UpdateRequest{Message: &long}, ""},
		{user, api.UpdateRequest{Message: new("")}, "a message may have 1 to 1024 bytes and no control characters"},
		{user, api.UpdateRequest{Message: new(long + "x")}, "a message may have 1 to 1024 bytes and no control characters"},
		{user, api.UpdateRequest{TimeLimit: new(time.Duration(0))}, ""},
		{user, api.UpdateRequest{TimeLimit: new(time.Duration(-1))}, "a time may not be negative"},
		{user, api.UpdateRequest{ArrayLimit: new(0)}, ""},
		{user, api.UpdateRequest{ArrayLimit: new(-1)}, "an array limit may not be negative"},
		{user, api.UpdateRequest{Priority: new(int64(0))}, ""},
		{user, api.UpdateRequest{Priority: new(int64(1))}, "only an admin may set a priority above 0; lower your own with --nice"},
		{admin, api.UpdateRequest{Priority: new(int64(1))}, ""},
		{user, api.UpdateRequest{Nice: new(int64(0))}, ""},
		{user, api.UpdateRequest{Nice: new(int64(-1))}, "only an admin may raise a priority with --nice=-1"},
		{admin, api.UpdateRequest{Nice: new(int64(-1))}, ""},
		{admin, api.UpdateRequest{Nice: new(int64(1)), Priority: new(int64(1))}, "--priority and --nice exclude each other"},
		{user, api.UpdateRequest{Dependency: &api.Dependency{}}, ""},
		{user, api.UpdateRequest{Dependency: &api.Dependency{On: []api.Condition{{Kind: "aftr", Job: 1}}}}, `dependency kind "aftr" is not known`},
	} {
		if got := errText(checkUpdate(&c.r, c.who)); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// TestCheckName: names of reservations and partitions stand in lists, in files and on command lines.
func TestCheckName(t *testing.T) {
	for name, ok := range map[string]bool{"a": true, "azAZ09_.-": true, strings.Repeat("x", 64): true, strings.Repeat("x", 65): false, "": false, "a b": false,
		"a`": false, "a{": false, "a@": false, "a[": false, "a/": false, "a:": false, "a,b": false, "ä": false} {
		err := checkName("partition", name)
		if (err == nil) != ok || err != nil && !strings.HasPrefix(err.Error(), "partition name ") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestCardsApart: cards that may be on several nodes are a rank each, with their share of CPUs and memory rounded up.
func TestCardsApart(t *testing.T) {
	ask := func(edit func(*api.Spec)) *api.Spec {
		s := spec(1)
		s.Launch, s.GPUsPerRank, s.CPUsPerRank, s.MemoryPerRank, s.Asked = api.LaunchBatch, 2, 3, 5, &api.Asked{Spread: true}
		edit(&s)
		return &s
	}
	for name, s := range map[string]*api.Spec{
		"ranks": ask(func(s *api.Spec) { s.Launch = api.LaunchRanks }), "one card": ask(func(s *api.Spec) { s.GPUsPerRank = 1 }), "two ranks": ask(func(s *api.Spec) { s.Size = 2 }),
		"together": ask(func(s *api.Spec) { s.Asked.Spread = false }), "not said": ask(func(s *api.Spec) { s.Asked = nil }),
	} {
		if got := cardsApart(s); got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if s := cardsApart(ask(func(*api.Spec) {})); s == nil || s.Size != 2 || s.GPUsPerRank != 1 || s.CPUsPerRank != 2 || s.MemoryPerRank != 3 || s.MemoryPerNode != 0 {
		t.Errorf("%+v", s)
	}
	if s := cardsApart(ask(func(s *api.Spec) { s.Asked.MemoryPerNode = 7 })); s == nil || s.MemoryPerRank != 0 || s.MemoryPerNode != 7 {
		t.Errorf("by node: %+v", s)
	}
}

// TestWaitsFirst: what is said ahead of a plan of what waits for no resource.
func TestWaitsFirst(t *testing.T) {
	now := time.Unix(1e9, 0).UTC()
	for want, ev := range map[string]*gang.Submit{
		"":                           {Spec: &api.Spec{Begin: now}},
		"the first of its elements ": {Spec: &api.Spec{}, Array: &api.Array{}},
		"would be held until gctl release; if it were not, it ":        {Spec: &api.Spec{Hold: true, Dependency: &api.Dependency{}}},
		"would wait for singleton; if that were met, it ":              {Spec: &api.Spec{Begin: now.Add(1), Dependency: &api.Dependency{On: []api.Condition{{Kind: api.AfterSingle}}}}},
		"would wait until 2001-09-09T01:46:41Z; if that were now, it ": {Spec: &api.Spec{Begin: now.Add(time.Second)}, Array: &api.Array{}},
	} {
		if got := waitsFirst(ev, now); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestCheckCron: what holds for one run does not go with a line that is due again and again.
func TestCheckCron(t *testing.T) {
	cron := func(edit func(*api.Spec)) *api.Spec {
		s := spec(1)
		s.Cron = &api.Cron{Schedule: "@daily"}
		edit(&s)
		return &s
	}
	plain := spec(1)
	plain.Begin = time.Unix(1e9, 0)
	for what, c := range map[string]struct {
		s *api.Spec
		a *api.Array
	}{
		"":             {&plain, &api.Array{}},
		"an array":     {cron(func(*api.Spec) {}), &api.Array{}},
		"--begin":      {cron(func(s *api.Spec) { s.Begin = time.Unix(1e9, 0) }), nil},
		"--deadline":   {cron(func(s *api.Spec) { s.Deadline = time.Unix(1e9, 0) }), nil},
		"--dependency": {cron(func(s *api.Spec) { s.Dependency = &api.Dependency{} }), nil},
	} {
		want := ""
		if what != "" {
			want = what + " does not go with a line of a cron table, which is due again and again"
		}
		if got := errText(checkCron(c.s, c.a)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if err := checkCron(cron(func(*api.Spec) {}), nil); err != nil {
		t.Error(err)
	}
}

// TestMayQueue: a partition that takes no jobs says so, and which others there are.
func TestMayQueue(t *testing.T) {
	for state, want := range map[api.PartitionState]string{api.PartitionUp: "", api.PartitionDown: "",
		api.PartitionDrain: "partition p takes no jobs: it is " + string(api.PartitionDrain) + "; ginfo -s lists the others"} {
		if got := errText(mayQueue(&api.Partition{Name: "p", State: state})); got != want {
			t.Errorf("%s: %q, want %q", state, got, want)
		}
	}
}

// TestReservationRequests: what a request for a reservation leaves open, or says twice.
func TestReservationRequests(t *testing.T) {
	r := newRig(t, disk.Open(t))
	now := time.Now()
	hour := time.Hour
	for _, c := range []struct {
		req  api.ReservationRequest
		want string
	}{
		{api.ReservationRequest{Start: new(now.Add(-time.Hour)), Duration: &hour}, "the start time " + now.Add(-time.Hour).Format(time.RFC3339) + " has passed; starttime=now starts at once"},
		{api.ReservationRequest{Duration: &hour}, "a reservation needs a start; starttime=now, starttime=18:00, starttime=2030-01-20T12:00:00"},
		{api.ReservationRequest{Start: &now}, "a reservation needs an end; duration=120 (minutes), duration=2:00:00 or endtime=20:00"},
		{api.ReservationRequest{Start: &now, End: new(now.Add(hour)), Duration: &hour}, "endtime and duration exclude each other"},
	} {
		c.req.Name = "talk"
		if got := errText(r.fillIn(&api.Reservation{}, &c.req, false)); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
