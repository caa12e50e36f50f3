package attack

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gangd/e2e/tally"
	"gangd/pkg/api"
)

// guarded are files that eve must neither read nor change, by what stands in them now.
func (s *site) guarded() (check func() error) {
	s.t.Helper()
	dir := filepath.Join(s.dir, "root-only")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "file"), []byte(secret), 0o600)); err != nil {
		s.t.Fatal(err)
	}
	watched := []string{filepath.Join(dir, "file"), filepath.Join(s.ada.home, "secret"), "/etc/passwd", "/proc/sys/kernel/core_pattern",
		filepath.Join(s.dir, "gangd.toml"), filepath.Join(s.dir, "n1", "id")}
	was := map[string]string{}
	for _, p := range watched {
		b, _ := os.ReadFile(p)
		was[p] = string(b)
	}
	return func() error {
		for p, old := range was {
			if b, _ := os.ReadFile(p); string(b) != old {
				return fmt.Errorf("%s was changed", p)
			}
		}
		for _, d := range []string{dir, s.ada.home, filepath.Join(s.dir, "n1"), filepath.Join(s.dir, "gangd")} {
			if _, err := os.Lstat(filepath.Join(d, "evil")); err == nil {
				return fmt.Errorf("eve made a file in %s", d)
			}
		}
		return nil
	}
}

// mine makes something in eve's home, as eve.
func (p *person) mine(name string, make func(path string) error) string {
	path := filepath.Join(p.home, name)
	var err error
	p.do(func() { err = make(path) })
	if err != nil {
		p.s.t.Fatal(err)
	}
	return path
}

func link(to string) func(string) error {
	return func(path string) error { return os.Symlink(to, path) }
}

// paths: what a job of eve's names as its files.
func paths(s *site) (out []try) {
	check := s.guarded()
	rootFile, adaFile := filepath.Join(s.dir, "root-only", "file"), filepath.Join(s.ada.home, "secret")
	up := strings.Repeat("../", 12)
	long := strings.Repeat("x", 300)
	fifo := s.eve.mine("fifo", func(p string) error { return syscall.Mkfifo(p, 0o600) })
	sock := s.eve.mine("sock", func(p string) error { l, err := net.Listen("unix", p); _ = l; return err })
	loop := s.eve.mine("loop", link("loop"))
	targets := []struct{ name, path string }{
		{"a file of root's", rootFile}, {"a new file in root's directory", filepath.Join(s.dir, "root-only", "evil")},
		{"a file of ada's", adaFile}, {"a new file in ada's home", filepath.Join(s.ada.home, "evil")},
		{"/etc/passwd", "/etc/passwd"}, {"/etc/shadow by ..", s.eve.home + "/" + up + "etc/shadow"},
		{"a link to root's file", s.eve.mine("l1", link(rootFile))}, {"a link to ada's file", s.eve.mine("l2", link(adaFile))},
		{"a link into ada's home", s.eve.mine("l3", link(s.ada.home)) + "/evil"}, {"a link to /proc/1/root", s.eve.mine("l4", link("/proc/1/root")) + "/etc/passwd"},
		{"a link to itself", loop}, {"gangd's store", filepath.Join(s.dir, "gangd", "state.db")}, {"gangd's key", filepath.Join(s.dir, "gangd", "pki", "ca.pem")},
		{"a node's key", filepath.Join(s.dir, "n1", "tls", "node.pem")}, {"a new file in a node's state", filepath.Join(s.dir, "n1", "evil")},
		{"gangd's configuration", filepath.Join(s.dir, "gangd.toml")}, {"/proc/1/mem", "/proc/1/mem"}, {"core_pattern", "/proc/sys/kernel/core_pattern"},
		{"/proc/self/fd/3", "/proc/self/fd/3"}, {"sysrq", "/proc/sysrq-trigger"}, {"/dev/mem", "/dev/mem"}, {"/dev/kmsg", "/dev/kmsg"}, {"/dev/tty", "/dev/tty"},
		{"a FIFO that nobody reads", fifo}, {"a socket", sock}, {"a directory", s.eve.home}, {"a name of 300 bytes", s.eve.home + "/" + long},
		{"a path of 3,900 bytes", s.eve.home + strings.Repeat("/abcdefg", 460)}, {"..", ".."}, {"an empty pattern of slashes", "//////"},
		{"a file of the shim's", filepath.Join(s.dir, "n1", "m", fmt.Sprintf("%d.1", s.running), "state.json")},
		{"the control group", "/sys/fs/cgroup/cgroup.procs"},
	}
	for _, field := range []string{"output", "error", "input"} {
		for i, x := range targets {
			out = append(out, try{"files and paths", field + ": " + x.name, "a job of eve's with " + field + " = " + fmt.Sprintf("%.60s", x.path),
				"what she may not touch is as it was, the job ends, the node stays", field != "output" || i%2 > 0, func() error {
					a := s.eve.ask(map[string]any{field: x.path, "script": []byte("#!/bin/sh\necho evil\necho evil >&2\nhead -c 100 | tee " + s.eve.home + "/stolen\n")})
					if a.refused() == nil {
						return check()
					}
					var r api.SubmitReply
					if err := a.decode(&r); err != nil {
						return err
					}
					if _, err := s.ended(r.JobID); err != nil {
						return err
					}
					if b, _ := os.ReadFile(s.eve.home + "/stolen"); strings.Contains(string(b), secret) {
						return errors.New("the secret was read")
					}
					return check()
				}})
		}
	}
	for _, x := range []struct{ name, dir string }{{"ada's home", s.ada.home}, {"not there", "/nonexistent/x"}, {"a file", "/etc/passwd"}, {"relative", "x/y"},
		{"empty", ""}, {"a loop", loop}, {"root's", "/root"}} {
		out = append(out, try{"files and paths", "work_dir: " + x.name, "a job of eve's in " + x.dir, "refused or FAILED, and the node stays", false, func() error {
			a := s.eve.ask(map[string]any{"work_dir": x.dir, "script": []byte("#!/bin/sh\ncat secret\ntouch evil\n"), "output": s.eve.home + "/out"})
			if a.refused() == nil {
				return nil
			}
			var r api.SubmitReply
			if err := a.decode(&r); err != nil {
				return err
			}
			j, err := s.ended(r.JobID)
			if err == nil && j.State == api.JobCompleted {
				err = fmt.Errorf("job %d COMPLETED there", j.JobID)
			}
			return errors.Join(err, check())
		}})
	}
	out = append(out,
		try{"files and paths", "log of a swapped link", "the output of an ended job of eve's becomes a link to ada's file, then glog", "read as eve: refused", false, func() error {
			return s.swapped(adaFile, rootFile)
		}},
		try{"files and paths", "log of a FIFO", "the output of an ended job becomes a FIFO, then glog", "answered at once, nobody hangs", false, func() error {
			id := s.eve.submit(map[string]any{"output": s.eve.home + "/f"})
			if _, err := s.ended(id); err != nil {
				return err
			}
			_ = os.Remove(s.eve.home + "/f")
			s.eve.mine("f", func(p string) error { return syscall.Mkfifo(p, 0o600) })
			defer os.Remove(s.eve.home + "/f")
			began := time.Now()
			a := s.eve.call("GET", fmt.Sprintf("/v1/log?job=%d", id), nil)
			if a.err != nil || time.Since(began) > 20*time.Second {
				return fmt.Errorf("%d after %s: %w", a.code, time.Since(began), a.err)
			}
			return nil
		}},
		try{"files and paths", "a directory raced", "for 20 jobs the output's directory is exchanged for a link to root's again and again", "nothing is written there", true, func() error {
			return errors.Join(s.raced(20), check())
		}})
	return out
}

func (s *site) swapped(targets ...string) error {
	out := s.eve.home + "/swap"
	id := s.eve.submit(map[string]any{"output": out, "script": []byte("#!/bin/sh\necho mine\n")})
	if _, err := s.ended(id); err != nil {
		return err
	}
	for _, to := range targets {
		_ = os.Remove(out)
		s.eve.mine("swap", link(to))
		if a := s.eve.call("GET", fmt.Sprintf("/v1/log?job=%d", id), nil); strings.Contains(a.body, secret) {
			return fmt.Errorf("%s was read", to)
		}
	}
	return nil
}

func (s *site) raced(jobs int) error {
	dir, evil := s.eve.home+"/race", s.eve.home+"/race-evil"
	s.eve.mine("race", func(p string) error { return os.Mkdir(p, 0o700) })
	s.eve.mine("race-evil", link(filepath.Join(s.dir, "root-only")))
	stop, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		s.eve.do(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_ = unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, evil, unix.RENAME_EXCHANGE)
				}
			}
		})
	}()
	defer func() { close(stop); <-over }()
	var ids []int64
	for range jobs {
		ids = append(ids, s.eve.submit(map[string]any{"output": dir + "/evil"}))
	}
	for _, id := range ids {
		if _, err := s.ended(id); err != nil {
			return err
		}
	}
	return nil
}

// mount gives eve a file system of her own.
func (s *site) mount(name, options string, fill bool) string {
	s.t.Helper()
	dir := filepath.Join(s.dir, name)
	err := os.Mkdir(dir, 0o755)
	if err == nil {
		err = unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("%s,mode=700,uid=%d,gid=%d", options, s.eve.uid, s.eve.gid))
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	if fill {
		s.eve.do(func() { _ = os.WriteFile(dir+"/fill", make([]byte, 1<<20), 0o600) })
	}
	return dir
}

// disks are a file system of eve's that is full, and one that is read-only.
func (s *site) disks() (full, sealed string) {
	s.t.Helper()
	full, sealed = s.mount("full", "size=4k", true), s.mount("sealed", "size=64k", false)
	if err := unix.Mount("", sealed, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		s.t.Fatal(err)
	}
	return full, sealed
}

// draining: what eve can bring about where her jobs start, six times each, which is twice what drains a node.
func draining(s *site) (out []try) {
	full, sealed := s.disks()
	inodes := s.mount("inodes", "nr_inodes=1", false)
	prog := s.eve.home + "/prog"
	six := func(change map[string]any) func() error {
		return func() error {
			var ids []int64
			for range 6 {
				a := s.eve.ask(change)
				if a.refused() == nil {
					return nil
				}
				var r api.SubmitReply
				if err := a.decode(&r); err != nil {
					return err
				}
				ids = append(ids, r.JobID)
			}
			for _, id := range ids {
				if !waitFor(func() bool {
					j := s.job(id)
					// What no node has room for waits, and a limit of years runs.
					return j.State.Ended() || j.State == api.JobRunning || j.State == api.JobPending && j.Epoch == 0 && s.started(id)
				}) {
					return fmt.Errorf("job %d is %s", id, s.job(id).State)
				}
			}
			s.eve.call("POST", "/v1/cancel", map[string]any{"users": []string{s.eve.name}, "now": true})
			for _, id := range ids {
				if _, err := s.ended(id); err != nil {
					return err
				}
			}
			return nil
		}
	}
	add := func(name string, long bool, change map[string]any) {
		out = append(out, try{"draining nodes", name, "six jobs of eve's", "no node is drained, whatever becomes of them", long, six(change)})
	}
	out = append(out, try{"draining nodes", "ETXTBSY", "six jobs of eve's whose output is her own running program", "no node is drained", false, func() error {
		s.eve.shell("cp /bin/sleep " + prog + "; setsid " + prog + " 20 >/dev/null 2>&1 &")
		return six(map[string]any{"output": prog})()
	}})
	add("ENOSPC", false, map[string]any{"output": full + "/new/out"})
	add("no inodes", true, map[string]any{"output": inodes + "/out"})
	add("EROFS", false, map[string]any{"output": sealed + "/out"})
	if dir := s.failing(); dir == "" {
		tally.Lacks(s.t, "no FUSE for a file system of a user's own: quotas and file servers that fail are not tried")
	} else {
		for _, e := range []syscall.Errno{syscall.EDQUOT, syscall.EIO, syscall.ESTALE, syscall.ENOTCONN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE,
			syscall.ETIMEDOUT, syscall.EHOSTDOWN, syscall.EBUSY, syscall.EAGAIN, syscall.ENODEV, syscall.EACCES, syscall.EUCLEAN} {
			change := map[string]any{"output": fmt.Sprintf("%s/%d", dir, e)}
			out = append(out, try{"draining nodes", "an output's file system says: " + e.Error(), "six jobs of eve's", "no node is drained, and the next job is told so", e != syscall.EDQUOT, func() error {
				if err := six(change)(); err != nil {
					return err
				}
				j, err := s.ended(s.eve.submit(change))
				if err == nil && !strings.Contains(j.Verdict, e.Error()) {
					err = fmt.Errorf("job %d ended %s: %s", j.JobID, j.State, j.Verdict)
				}
				return err
			}})
		}
	}
	bad := s.badMounts()
	for i, name := range slices.Sorted(maps.Keys(bad)) {
		add("a container: "+name, i%8 > 0, bad[name])
	}
	add("EROFS of the error file", true, map[string]any{"error": sealed + "/err"})
	add("input not there", true, map[string]any{"input": "/nonexistent"})
	add("a script that is no program", false, map[string]any{"script": []byte("#!/nonexistent/shell\n")})
	add("a script without a first line", true, map[string]any{"script": []byte("\x7fELF\x02garbage")})
	add("an empty script", true, map[string]any{"script": []byte{}})
	add("a limit of 1 ns", false, map[string]any{"time_limit_ns": 1, "script": []byte("#!/bin/sh\nsleep 1\n")})
	add("ready never", true, map[string]any{"ready_timeout_ns": 1})
	add("dies of SIGKILL", true, map[string]any{"script": []byte("#!/bin/sh\nkill -9 $$\n"), "max_retries": 0})
	add("kills its group", true, map[string]any{"script": []byte("#!/bin/sh\nkill -9 0 -1\n"), "max_retries": 0})
	for _, f := range []string{"grace_ns", "time_limit_ns", "memory_per_rank", "memory_per_node", "cpus_per_rank", "gpus_per_rank", "gpus_per_node", "vram_bytes",
		"size", "ports", "min_nodes", "ranks_per_node", "grace_max_ns", "ready_timeout_ns", "min_run_ns", "switch_wait_ns", "umask"} {
		for _, n := range []int64{math.MaxInt64, 1 << 53, 87600 * int64(time.Hour)} {
			add(fmt.Sprintf("%s = %d", f, n), n != math.MaxInt64, map[string]any{f: n, "time_min_ns": 0})
		}
	}
	add("arguments of 2 MiB", false, map[string]any{"args": repeat(strings.Repeat("x", 130000), 15)})
	add("5,000 variables", true, map[string]any{"env": repeat("A="+strings.Repeat("x", 300), 5000)})
	out = append(out, try{"draining nodes", "kills its gshim check", "everything under eve's uid that is named gshim is killed for two seconds while she submits", "no node is drained", true, func() error {
		stop, over := make(chan struct{}), make(chan struct{})
		go func() { defer close(over); s.eve.do(func() { s.killShims(stop) }) }()
		var err error
		for end := time.Now().Add(2 * time.Second); time.Now().Before(end) && err == nil; {
			err = six(map[string]any{})()
		}
		close(stop)
		<-over
		return err
	}})
	return out
}

// started: the plan has looked at the job.
func (s *site) started(id int64) bool {
	var w api.WhyReply
	return s.root.call("GET", fmt.Sprintf("/v1/jobs/%d/why", id), nil).decode(&w) == nil && w.Why != ""
}

// killShims is run as eve: the kernel keeps her from others' processes.
func (s *site) killShims(stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		procs, _ := filepath.Glob("/proc/[0-9]*")
		for _, p := range procs {
			var st syscall.Stat_t
			if syscall.Stat(p, &st) != nil || st.Uid != s.eve.uid {
				continue
			}
			if b, _ := os.ReadFile(p + "/comm"); strings.HasPrefix(string(b), "gshim") {
				var pid int
				_, _ = fmt.Sscan(filepath.Base(p), &pid)
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

func repeat(text string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = text
	}
	return out
}
