// Command scale measures gangd with many nodes: the real program in a directory of its own, and as many node
// daemons without processes as are asked for, in this process, on the real session over gangd's unix socket.
//
//	make scale
//	go run ./bench/scale -nodes 1000 -gangs 128,256,512
//	go run ./bench/scale -nodes 10000 -held 256 -busy 4 -idle 60s -stop 10s
//	go run ./bench/scale -nodes 64 -jobs 50000
//	go run ./bench/scale -nodes 8 -waiting 100000 -ended 1000000
//	go run ./bench/scale -nodes 8 -ended 1000000 -single
//
// For the sessions it prints how long they take to settle, what gangd costs then, how many broke while nothing
// happened, and what a standstill of gangd did to nodes and to ranks that run; for jobs of one rank, which end at once, how many went
// through in a second; for each gang what its
// start and its end cost: bytes that all nodes together read, CPU of gangd; for jobs that wait and jobs that have ended what
// gangd has in memory, what lists of them and a restart take, and what it costs that the ended ones leave its memory.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/client"
)

func main() {
	nodes := flag.Int("nodes", 512, "how many nodes")
	cards := flag.Int("cards", 8, "cards of each")
	gangs := flag.String("gangs", "", "widths in nodes of the gangs that are started one after the other, a rank on each card")
	idle := flag.Duration("idle", 10*time.Second, "how long nothing happens")
	stop := flag.Duration("stop", 0, "for how long gangd stands still then")
	held := flag.Int("held", 0, "on how many nodes a gang runs meanwhile, a rank on each")
	busy := flag.Int("busy", 0, "how many busy loops run beside all of it")
	jobs := flag.Int("jobs", 0, "how many jobs of one rank are run, a submission each")
	waiting := flag.Int("waiting", 0, "how many jobs of 1 to 64 ranks wait")
	ended := flag.Int("ended", 0, "how many ended jobs leave gangd's memory")
	single := flag.Bool("single", false, "these are a submission each, in place of arrays")
	clients := flag.Int("clients", 64, "how many submit them at a time")
	bin := flag.String("gangd", "bin/gangd", "the program")
	profile := flag.Bool("keep", false, "keep gangd's directory")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if err := run(ctx, *bin, *nodes, *cards, *gangs, *idle, *stop, *held, *busy, *jobs, *waiting, *ended, *single, *clients,
		*profile); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, bin string, nodes, cards int, widths string, idle, stop time.Duration, held, busy, jobs, waiting, ended int,
	single bool, clients int, keep bool) (err error) {
	g, err := newGangd(bin)
	if err != nil {
		return err
	}
	defer func() { g.stop(keep || err != nil) }()
	if err := g.start(ctx, 5*time.Minute); err != nil {
		return err
	}
	m := &meter{gangd: g, seen: new(seen)}
	end, err := loops(busy)
	defer end()
	if err != nil {
		return err
	}
	fmt.Printf(rowFormat, "what", "took", "gangd's CPU", "read by nodes", "gangd's memory", "downs")
	all := make([]*node, nodes)
	defer func() {
		for _, n := range all {
			n.client.Close()
		}
	}()
	if err := m.row(fmt.Sprintf("%d sessions", nodes), func() error {
		for i := range nodes {
			all[i] = newNode(g.socket, i+1, cards, m.seen)
			all[i].client.Start(ctx)
		}
		return m.until(ctx, func() bool { return m.seen.up.Load() == int64(nodes) })
	}); err != nil {
		return err
	}
	if held > 0 {
		if _, err := m.start(ctx, held, 1); err != nil {
			return err
		}
	}
	if err := m.idle(ctx, nodes, idle); err != nil {
		return err
	}
	if stop > 0 {
		if err := g.still(ctx, stop); err != nil {
			return err
		}
		if err := m.row(fmt.Sprintf("back after it stood still for %v", stop), func() error {
			if err := sleep(ctx, time.Second); err != nil {
				return err
			}
			return m.until(ctx, func() bool { return m.seen.up.Load() == int64(nodes) })
		}); err != nil {
			return err
		}
		if err := m.harm(ctx); err != nil {
			return err
		}
	}
	if jobs > 0 {
		if err := m.jobs(ctx, jobs, clients); err != nil {
			return err
		}
	}
	if waiting > 0 {
		if err := m.waiting(ctx, waiting, clients); err != nil {
			return err
		}
	}
	if ended > 0 {
		if err := m.ended(ctx, ended, single, clients); err != nil {
			return err
		}
	}
	for w := range strings.SplitSeq(widths, ",") {
		if w == "" {
			continue
		}
		n, err := strconv.Atoi(w)
		if err != nil || n < 1 || n > nodes {
			return fmt.Errorf("-gangs %s: want widths from 1 to %d nodes", w, nodes)
		}
		if err := m.gang(ctx, n, cards); err != nil {
			return err
		}
	}
	return nil
}

// loops starts processes that use a processor each, as far as there is one.
func loops(n int) (end func(), err error) {
	var all []*exec.Cmd
	end = func() {
		for _, c := range all {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	}
	for range n {
		c := exec.Command("/bin/sh", "-c", "while :; do :; done")
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := c.Start(); err != nil {
			return end, err
		}
		all = append(all, c)
	}
	return end, nil
}

// idle lets nothing happen.
func (m *meter) idle(ctx context.Context, nodes int, d time.Duration) error {
	cpu, downs := m.gangd.cpu(), m.seen.downs.Load()
	if err := m.row("idle", func() error { return sleep(ctx, d) }); err != nil {
		return err
	}
	fmt.Printf("%34s  %.2f of a core, %.1f %% of the sessions broke in a minute\n", "", (m.gangd.cpu()-cpu).Seconds()/d.Seconds(),
		100*float64(m.seen.downs.Load()-downs)/float64(nodes)/d.Minutes())
	return nil
}

// harm says what became of nodes and of ranks that ran.
func (m *meter) harm(ctx context.Context) error {
	all, err := client.NewAt(m.gangd.socket).Nodes(ctx)
	if err != nil {
		return err
	}
	out := 0
	for i := range all.Nodes {
		if all.Nodes[i].State != api.NodeUp {
			out++
		}
	}
	fmt.Printf("%34s  %d nodes out of service, %d ranks ended\n", "", out, m.seen.stopped.Load())
	return nil
}

// gang starts a gang and ends it.
func (m *meter) gang(ctx context.Context, nodes, cards int) error {
	ref, err := m.start(ctx, nodes, cards)
	if err != nil {
		return err
	}
	m.seen.gone.Store(0)
	return m.row(fmt.Sprintf("end of %d x %d", nodes, cards), func() error {
		if _, err := client.NewAt(m.gangd.socket).Cancel(ctx, &api.CancelRequest{JobQuery: api.JobQuery{Refs: []api.JobRef{ref}}}); err != nil {
			return err
		}
		return m.until(ctx, func() bool { return m.seen.gone.Load() >= int64(nodes) })
	})
}

// start starts a gang.
func (m *meter) start(ctx context.Context, nodes, cards int) (ref api.JobRef, err error) {
	c := client.NewAt(m.gangd.socket)
	m.seen.running.Store(0)
	began := time.Now()
	defer func() {
		if err == nil {
			fmt.Printf("%34s  %.2f s from the submission to the last of %d starts on %d nodes\n", "", m.seen.lastStart().Sub(began).Seconds(),
				nodes*cards, nodes)
		}
	}()
	err = m.row(fmt.Sprintf("start of %d x %d", nodes, cards), func() error {
		r, err := c.Submit(ctx, &api.SubmitRequest{Spec: api.Spec{Name: "wide", Size: nodes * cards, RanksPerNode: cards, GPUsPerRank: 1,
			CPUsPerRank: 1,
			Launch:      api.LaunchRanks, Script: []byte("#!/bin/sh\n"), WorkDir: "/tmp"}})
		if err != nil {
			return err
		}
		ref = api.JobRef{ID: r.JobID, Index: -1}
		return m.until(ctx, func() bool {
			if m.seen.running.Load() < int64(nodes) {
				return false
			}
			d, err := c.Job(ctx, ref)
			return err == nil && d.Job.State == api.JobRunning
		})
	})
	return ref, err
}

// jobs runs jobs of one rank to their end, submitted each by itself.
func (m *meter) jobs(ctx context.Context, jobs, clients int) error {
	m.seen.gone.Store(0)
	cpu, began := m.gangd.cpu(), time.Now()
	if err := m.row(fmt.Sprintf("%d jobs by %d clients", jobs, clients), func() error {
		if err := m.submit(ctx, jobs, clients, func(int) api.Spec {
			return api.Spec{Name: short, Size: 1, GPUsPerRank: 1, CPUsPerRank: 1, Launch: api.LaunchRanks, Script: []byte("#!/bin/sh\n"),
				WorkDir: "/tmp"}
		}); err != nil {
			return err
		}
		return m.until(ctx, func() bool { return m.seen.gone.Load() >= int64(jobs) })
	}); err != nil {
		return err
	}
	took := time.Since(began)
	fmt.Printf("%34s  %.0f jobs/s, %.2f ms of gangd's CPU a job\n", "", float64(jobs)/took.Seconds(),
		(m.gangd.cpu()-cpu).Seconds()*1000/float64(jobs))
	return nil
}

// submit has clients submit jobs, a submission each, the first of them number 1.
func (m *meter) submit(ctx context.Context, jobs, clients int, spec func(i int) api.Spec) error {
	submitting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var last atomic.Int64
	var all sync.WaitGroup
	for range clients {
		c := client.NewAt(m.gangd.socket)
		all.Go(func() {
			for i := last.Add(1); i <= int64(jobs) && submitting.Err() == nil; i = last.Add(1) {
				if _, err := c.Submit(submitting, &api.SubmitRequest{Spec: spec(int(i))}); err != nil {
					cancel(err)
				}
			}
		})
	}
	all.Wait()
	return context.Cause(submitting)
}

const rowFormat = "%34s  %9s  %11s  %13s  %14s  %6s\n"

// meter prints a row a thing that happens.
type meter struct {
	gangd *gangd
	seen  *seen
}

func (m *meter) row(what string, do func() error) error {
	cpu, read, downs, began := m.gangd.cpu(), readBytes(), m.seen.downs.Load(), time.Now()
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	fmt.Printf(rowFormat, what, fmt.Sprintf("%.2f s", time.Since(began).Seconds()), fmt.Sprintf("%.2f s", (m.gangd.cpu()-cpu).Seconds()),
		fmt.Sprintf("%.1f MB", float64(readBytes()-read)/1e6), fmt.Sprintf("%d MB", m.gangd.memory()>>20),
		strconv.FormatInt(m.seen.downs.Load()-downs, 10))
	return nil
}

func (m *meter) until(ctx context.Context, done func() bool) error {
	for !done() {
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// readBytes is what this process has read, which is what was sent to its nodes.
func readBytes() int64 { return field("/proc/self/io", "rchar:") }

// field is the number behind a word of a file of /proc; 0: there is none.
func field(path, word string) int64 {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), word)
	f := strings.Fields(rest)
	if len(f) == 0 {
		return 0
	}
	n, _ := strconv.ParseInt(f[0], 10, 64)
	return n
}

type gangd struct {
	bin, dir, socket string
	cmd              *exec.Cmd
	used             time.Duration // CPU, by those that ran before
}

func newGangd(bin string) (*gangd, error) {
	dir, err := os.MkdirTemp("", "gs")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // gangd refuses a socket that users can't reach
		return nil, err
	}
	return &gangd{bin: bin, dir: dir, socket: filepath.Join(dir, "g.sock")}, nil
}

// start lets it run until it answers. Ended jobs stay in its memory for so long.
func (g *gangd) start(ctx context.Context, keepEnded time.Duration) error {
	config := filepath.Join(g.dir, "gangd.toml")
	text := fmt.Sprintf("state_dir = %q\nsocket = %q\nuser_jobs = 0\nuser_bytes = 0\nkeep_ended = %q\n", filepath.Join(g.dir, "state"),
		g.socket, keepEnded)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(g.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	g.cmd = exec.Command(g.bin, "--config="+config)
	g.cmd.Stdout, g.cmd.Stderr = log, log
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := g.cmd.Start(); err != nil {
		return err
	}
	c := client.NewAt(g.socket)
	for range 6000 {
		if _, err := c.Ping(ctx); err == nil {
			return nil
		}
		if err := sleep(ctx, 10*time.Millisecond); err != nil {
			break
		}
	}
	return fmt.Errorf("gangd did not come up: see %s", log.Name())
}

// again ends it in good order and starts it again.
func (g *gangd) again(ctx context.Context, keepEnded time.Duration) error {
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	used := g.cpu()
	if err := g.cmd.Wait(); err != nil {
		return err
	}
	g.used = used
	return g.start(ctx, keepEnded)
}

func (g *gangd) stop(keep bool) {
	_ = g.cmd.Process.Kill()
	_ = g.cmd.Wait()
	if keep {
		fmt.Println("kept:", g.dir)
		return
	}
	_ = os.RemoveAll(g.dir)
}

// still keeps gangd from running for a while.
func (g *gangd) still(ctx context.Context, d time.Duration) error {
	if err := g.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	defer g.cmd.Process.Signal(syscall.SIGCONT)
	return sleep(ctx, d)
}

// cpu is the user and system time that it has used, with those that ran before it.
func (g *gangd) cpu() time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", g.cmd.Process.Pid))
	if err != nil {
		return g.used
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	user, _ := strconv.ParseInt(f[11], 10, 64)
	system, _ := strconv.ParseInt(f[12], 10, 64)
	return g.used + time.Duration(user+system)*time.Second/100 // USER_HZ
}

// peak is the most that it had in memory.
func (g *gangd) peak() int64 {
	return field(fmt.Sprintf("/proc/%d/status", g.cmd.Process.Pid), "VmHWM:") << 10
}

// memory is what it has in memory, bytes.
func (g *gangd) memory() int64 {
	return field(fmt.Sprintf("/proc/%d/status", g.cmd.Process.Pid), "VmRSS:") << 10
}
