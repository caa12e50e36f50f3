package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/client"
)

// waiting lets jobs of 1 to 64 ranks wait, asks for all that is known of them, and starts gangd again.
func (m *meter) waiting(ctx context.Context, jobs, clients int) error {
	// What a login shell hands on: the most of it is the same for all jobs of a user.
	environment := []string{"PATH=" + strings.Repeat("/opt/tools/bin:", 60), "LS_COLORS=" + strings.Repeat("*.tar=01;31:", 100)}
	if err := m.row(fmt.Sprintf("%d jobs of 1 to 64 ranks wait", jobs), func() error {
		return m.submit(ctx, jobs, clients, func(i int) api.Spec {
			return api.Spec{Name: fmt.Sprintf("wait-%d", i), Size: 1 + i%64, GPUsPerRank: 1, CPUsPerRank: 1, Launch: api.LaunchRanks,
				Script: fmt.Appendf(nil, "#!/bin/sh\nexec ./train --run %d\n", i), WorkDir: "/tmp", Env: environment,
				TimeLimit: time.Duration(1+i%10) * time.Hour}
		})
	}); err != nil {
		return err
	}
	if err := m.row("gqueue", func() error { return m.ask("gqueue") }); err != nil {
		return err
	}
	if err := m.row("gqueue --json", func() error { return m.ask("gqueue", "--json") }); err != nil {
		return err
	}
	return m.row("started again", func() error { return m.gangd.again(ctx, 5*time.Minute) })
}

// ended lets jobs end that never ran, starts gangd again with them, and then so that all of them are to leave its memory.
func (m *meter) ended(ctx context.Context, jobs int, single bool, clients int) error {
	if err := m.gangd.again(ctx, 24*time.Hour); err != nil {
		return err
	}
	began := time.Now()
	if err := m.row(fmt.Sprintf("%d jobs ended", jobs), func() error {
		for left := jobs; left > 0; left -= api.MaxArraySize {
			if err := m.end(ctx, min(left, api.MaxArraySize), single, clients); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	if err := m.row("started again with them", func() error { return m.gangd.again(ctx, 24*time.Hour) }); err != nil {
		return err
	}
	// It stands still until the time of all has passed, so that they have to leave its memory at once.
	rest := 2 * time.Minute
	age := time.Since(began)
	if err := m.gangd.again(ctx, age+rest); err != nil {
		return err
	}
	if err := m.gangd.still(ctx, age+rest); err != nil {
		return err
	}
	return m.row("left its memory", func() error { return m.calm(ctx) })
}

// end submits jobs that are held, an array of them or each by itself, and cancels them.
func (m *meter) end(ctx context.Context, jobs int, single bool, clients int) error {
	c, held := client.NewAt(m.gangd.socket), api.Spec{Name: "ended", Size: 1, GPUsPerRank: 1, CPUsPerRank: 1, Launch: api.LaunchRanks,
		Script: []byte("#!/bin/sh\n"), WorkDir: "/tmp", Hold: true}
	which := api.JobQuery{Names: []string{held.Name}}
	if single {
		if err := m.submit(ctx, jobs, clients, func(int) api.Spec { return held }); err != nil {
			return err
		}
	} else {
		var indices []int
		for i := range jobs {
			indices = append(indices, i)
		}
		r, err := c.Submit(ctx, &api.SubmitRequest{Spec: held, Array: &api.Array{Indices: indices}})
		if err != nil {
			return err
		}
		which = api.JobQuery{Refs: []api.JobRef{{ID: r.JobID, Index: -1}}}
	}
	_, err := c.Cancel(ctx, &api.CancelRequest{JobQuery: which})
	return err
}

// calm waits until gangd does nothing any more, and says what was the most that it used within a second.
func (m *meter) calm(ctx context.Context) error {
	var most time.Duration
	for quiet := 0; quiet < 3; {
		cpu := m.gangd.cpu()
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
		used := m.gangd.cpu() - cpu
		most = max(most, used)
		if quiet++; used > 10*time.Millisecond {
			quiet = 0
		}
	}
	fmt.Printf("%34s  %.2f of a core at most within a second\n", "", most.Seconds())
	return nil
}

// ask runs a command on gangd and says what it took itself.
func (m *meter) ask(args ...string) error {
	before := m.gangd.peak()
	cmd := exec.Command(filepath.Join(filepath.Dir(m.gangd.bin), args[0]), args[1:]...)
	cmd.Env = append(os.Environ(), "GANG_CONTROLLER="+m.gangd.socket)
	out := new(counted)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(args, " "), err)
	}
	use := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	fmt.Printf("%34s  %d MB written, %d MB of its own memory, gangd's grew by %d MB at most\n", "", out.n>>20, use.Maxrss>>10,
		(m.gangd.peak()-before)>>20)
	return nil
}

type counted struct{ n int64 }

func (c *counted) Write(b []byte) (int, error) {
	c.n += int64(len(b))
	return len(b), nil
}
