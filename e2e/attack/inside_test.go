package attack

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"gangd/pkg/api"
)

// secrets: what eve can read of others without a job.
func secrets(s *site) (out []try) {
	ranks := func() (pids []string) {
		for _, r := range s.job(s.running).Ranks {
			if r.PID > 0 {
				pids = append(pids, fmt.Sprint(r.PID))
			}
		}
		return pids
	}
	add := func(name, what, expect string, do func() error) {
		out = append(out, try{"secrets", name, what, expect, false, do})
	}
	nothing := func(script func() string) func() error {
		return func() error {
			o, _ := s.eve.shell(script())
			if o = strings.TrimSpace(o); o != "" {
				return fmt.Errorf("eve read: %.200s", o)
			}
			return nil
		}
	}
	fixed := func(script string) func() error { return nothing(func() string { return script }) }
	for _, d := range []string{"gangd", "n1", "n2", "n3"} {
		dir := filepath.Join(s.dir, d)
		add("files of "+d, "find as eve, every file that she can read below "+dir, "none", fixed("find "+dir+" -type f -readable 2>/dev/null"))
		add("directories of "+d, "find as eve, every directory that she can write", "none", fixed("find "+dir+" -type d -writable 2>/dev/null"))
		add("text of "+d, "grep for ada's secret", "nothing", fixed("grep -rl "+secret[:5]+" "+dir+" 2>/dev/null | grep -v "+s.eve.home))
	}
	add("logs of the daemons", "root looks for ada's secret in them", "it is not in any", func() error {
		logs, _ := filepath.Glob(s.dir + "/*.log")
		for _, l := range logs {
			if b, _ := os.ReadFile(l); strings.Contains(string(b), secret) {
				return fmt.Errorf("it is in %s", l)
			}
		}
		return nil
	})
	add("members' directories", "everything below /run/gnoded and /dev/shm/gnoded", "nothing is readable", fixed("find /run/gnoded /dev/shm/gnoded -type f -readable ! -user games 2>/dev/null"))
	for _, f := range []string{"environ", "mem", "maps", "fd", "cwd", "root", "stack", "io"} {
		add("/proc of ada's rank: "+f, "eve opens it", "refused", nothing(func() string {
			var b strings.Builder
			for _, p := range ranks() {
				fmt.Fprintf(&b, "head -c 64 /proc/%s/%s/ 2>/dev/null || cat /proc/%s/%s 2>/dev/null | head -c 64 | tr '\\0' ' '; ls /proc/%s/%s/ 2>/dev/null\n", p, f, p, f, p, f)
			}
			return b.String()
		}))
	}
	for _, d := range []string{"gangd", "n1"} {
		for _, f := range []string{"environ", "mem", "maps", "fd", "cwd", "root"} {
			add("/proc of "+d+": "+f, "eve opens it", "refused", nothing(func() string {
				p := s.daemons[d].cmd.Process.Pid
				return fmt.Sprintf("cat /proc/%d/%s 2>/dev/null | head -c 64 | tr '\\0' ' '; ls /proc/%d/%s/ 2>/dev/null", p, f, p, f)
			}))
		}
	}
	add("command lines", "ps of everything", "ada's secret and no token is in it", func() error {
		o, _ := s.eve.shell("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '")
		if strings.Contains(o, secret) || strings.Contains(o, "gang://") {
			return errors.New("it is")
		}
		return nil
	})
	add("core files of gangd", "the limit of its core", "0", func() error {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", s.daemons["gangd"].cmd.Process.Pid))
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); strings.HasPrefix(line, "Max core file size") && (f[4] != "0" || f[5] != "0") {
				return fmt.Errorf("%s", line)
			}
		}
		return err
	})
	add("a backup", "root makes one, eve looks", "its owner alone can read it", func() error {
		dir := filepath.Join(s.dir, "gangd", "backup")
		if a := s.root.call("POST", "/v1/backup", map[string]any{"path": dir}); a.code != 200 {
			return fmt.Errorf("%d %s", a.code, a.body)
		}
		return filepath.Walk(dir, func(p string, i os.FileInfo, err error) error {
			if err == nil && i.Mode().Perm()&0o077 != 0 {
				err = fmt.Errorf("%s has mode %04o", p, i.Mode().Perm())
			}
			return err
		})
	})
	add("a backup to eve's home", "root is made to", "written by gangd's user, who can't", func() error {
		return s.root.call("POST", "/v1/backup", map[string]any{"path": filepath.Join(s.eve.home, "b")}).refused()
	})
	for _, c := range []string{"gqueue -o %all", "gqueue --json", "gctl show job %d", "gctl events %d", "gctl show job %d --json", "gqueue --why %d", "gacct --json"} {
		if strings.Contains(c, "%d") {
			c = fmt.Sprintf(c, s.running)
		}
		add("command: "+c, "eve asks", "ada's secret is not in the answer", func() error {
			if o, _ := s.eve.shell(c); strings.Contains(o, secret) {
				return fmt.Errorf("it is: %.200s", o)
			}
			return nil
		})
	}
	return out
}

// accounts and caps.
func accounts(s *site) (out []try) {
	add := func(name, what string, change map[string]any, want string) {
		out = append(out, try{"accounts and caps", name, what, "refused with a sentence that names it", false, func() error {
			a := s.eve.ask(change)
			if err := a.refused(); err != nil {
				return err
			}
			if !strings.Contains(a.body, want) {
				return fmt.Errorf("%.200s does not say %q", a.body, want)
			}
			return nil
		}})
	}
	add("an account that is not hers", "-A closed", map[string]any{"account": "closed"}, "closed")
	add("an account that is not there", "-A typo", map[string]any{"account": "typo"}, "typo")
	add("an account by case", "-A CLOSED", map[string]any{"account": "CLOSED"}, "CLOSED")
	add("an account with a blank", "-A 'closed '", map[string]any{"account": "closed "}, "closed")
	add("a partition that is not there", "-p typo", map[string]any{"partition": "typo"}, "typo")
	add("a reservation that is not there", "--reservation", map[string]any{"reservation": "typo"}, "typo")
	out = append(out,
		try{"accounts and caps", "bytes by many jobs", "held jobs with 1 MB of environment each, without end", "refused at 8 MiB with both figures; ada's is taken", false, func() error {
			var a answer
			n := 0
			for ; n < 20; n++ {
				if a = s.eve.ask(map[string]any{"hold": true, "name": fmt.Sprint(n), "env": repeat("A="+strings.Repeat("x", 100000), 10)}); a.code != 200 {
					break
				}
			}
			err := a.refused()
			if err == nil && n > 9 {
				err = fmt.Errorf("only after %d", n)
			}
			return errors.Join(err, s.ada.ask(map[string]any{"hold": true, "env": []string{"A=" + strings.Repeat("x", 100000)}}).err, s.clear())
		}},
		try{"accounts and caps", "jobs by arrays", "arrays of 1,000 held elements, without end", "refused at 5,000 with both figures; ada's is taken", false, func() error {
			indices := make([]int, 1000)
			for i := range indices {
				indices[i] = i
			}
			var a answer
			n := 0
			for ; n < 10; n++ {
				keys++
				a = s.eve.call("POST", "/v1/jobs", map[string]any{"key": fmt.Sprintf("k%d", keys), "spec": s.eve.spec(map[string]any{"hold": true}), "array": map[string]any{"indices": indices}})
				if a.code != 200 {
					break
				}
			}
			err := a.refused()
			if err == nil && n > 5 {
				err = fmt.Errorf("only after %d arrays", n)
			}
			return errors.Join(err, s.ada.ask(map[string]any{"hold": true}).err, s.clear())
		}},
		try{"accounts and caps", "cards by an array", "eight elements with a card each, of 3 that one user may hold", "no more than three run at a time", false, func() error {
			keys++
			var r api.SubmitReply
			if err := s.eve.call("POST", "/v1/jobs", map[string]any{"key": fmt.Sprintf("k%d", keys), "spec": s.eve.spec(map[string]any{"gpus_per_rank": 1, "script": []byte("#!/bin/sh\nsleep 30\n")}),
				"array": map[string]any{"indices": []int{0, 1, 2, 3, 4, 5, 6, 7}}}).decode(&r); err != nil {
				return err
			}
			cards := func() (n int) {
				for _, name := range []string{"n1", "n2"} {
					for _, c := range s.node(name).Cards {
						if len(c.Jobs) > 0 {
							n++
						}
					}
				}
				return n - 1 // ada's
			}
			if !waitFor(func() bool { return cards() >= 3 }) {
				return fmt.Errorf("%d cards are taken", cards())
			}
			err := error(nil)
			if n := cards(); n > 3 {
				err = fmt.Errorf("%d cards are taken", n)
			}
			return errors.Join(err, s.clear())
		}},
		try{"accounts and caps", "priority -2^31 with nice 2^31-1", "the sum wraps to the top", "refused, or behind ada", false, func() error {
			a := s.eve.ask(map[string]any{"hold": true, "priority": -2147483648, "nice": 2147483647})
			if a.refused() == nil {
				return nil
			}
			var r api.SubmitReply
			if err := a.decode(&r); err != nil {
				return err
			}
			if j := s.job(r.JobID); j.Priority > 0 {
				return fmt.Errorf("its priority is %d", j.Priority)
			}
			return s.clear()
		}},
		try{"accounts and caps", "a priority above ada's", "priority 2^31-1 as an ordinary user", "refused, or not above others", false, func() error {
			a := s.eve.ask(map[string]any{"hold": true, "priority": 2147483647})
			if a.refused() == nil {
				return nil
			}
			var r api.SubmitReply
			if err := a.decode(&r); err != nil {
				return err
			}
			if e, ada := s.job(r.JobID).Priority, s.job(s.held).Priority; e > ada {
				return fmt.Errorf("eve's is %d, ada's %d", e, ada)
			}
			return s.clear()
		}})
	return out
}

// clear ends what eve has.
func (s *site) clear() error {
	s.root.call("POST", "/v1/cancel", map[string]any{"users": []string{s.eve.name}, "now": true})
	if !waitFor(func() bool {
		var r api.JobsReply
		return s.root.call("POST", "/v1/query", map[string]any{"users": []string{s.eve.name}}).decode(&r) == nil && len(r.Jobs) == 0
	}) {
		return errors.New("eve's jobs don't end")
	}
	return nil
}

// inside: what a job of eve's on ada's node tries. Each probe is a line of shell that succeeds when it broke out.
func inside(s *site) (out []try) {
	member := func() string { return s.memberDir(s.running) }
	gnoded, gangd := s.daemons["n1"].cmd.Process.Pid, s.daemons["gangd"].cmd.Process.Pid
	rank := 0
	for _, r := range s.job(s.running).Ranks {
		rank = r.PID
	}
	shim := s.shimOf(rank)
	sock := filepath.Join(s.dir, "n1.sock")
	curl := "curl -sf -m 5 --unix-socket "
	for i, p := range []struct{ name, what, script string }{
		{"kill gnoded", "kill -9", fmt.Sprintf("kill -9 %d", gnoded)}, {"stop gnoded", "SIGSTOP", fmt.Sprintf("kill -STOP %d", gnoded)}, {"kill gangd", "kill -9", fmt.Sprintf("kill -9 %d", gangd)},
		{"kill ada's shim", "kill -9", fmt.Sprintf("kill -9 %d", shim)}, {"kill its own shim", "kill -9 of the parent", "kill -9 $PPID"}, {"kill ada's rank", "kill -9", fmt.Sprintf("kill -9 %d", rank)},
		{"the priority of ada's rank", "renice", fmt.Sprintf("renice 19 %d", rank)}, {"limits of ada's rank", "prlimit", fmt.Sprintf("prlimit --pid %d --cpu=1", rank)},
		{"memory of gnoded", "/proc/PID/mem", fmt.Sprintf("head -c1 < /proc/%d/mem", gnoded)}, {"memory of its own shim", "/proc/PID/mem", "head -c1 < /proc/$PPID/mem"},
		{"descriptors of its own shim", "/proc/PID/fd", "ls /proc/$PPID/fd"}, {"environment of its own shim", "/proc/PID/environ", "cat /proc/$PPID/environ"}, {"ptrace of gnoded", "strace -p", fmt.Sprintf("timeout 3 strace -p %d -e trace=none -o /dev/null", gnoded)},
		{"setuid", "python's os.setuid(0)", "python3 -c 'import os; os.setuid(0)'"}, {"su", "su root", "su -c true root </dev/null"}, {"a setuid shell", "a copy of sh with the bit of its own", "cp /bin/sh ./rootsh && chmod u+s ./rootsh && ./rootsh -p -c 'test $(id -u) = 0'"},
		{"mount", "a tmpfs", "mount -t tmpfs x /mnt"}, {"a device", "mknod", "mknod ./mem c 1 1"}, {"raw sockets", "AF_PACKET", "python3 -c 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)'"},
		{"the host's name", "hostname", "hostname evil"}, {"kernel settings", "core_pattern", "echo x > /proc/sys/kernel/core_pattern"}, {"out of the group", "writes itself into the root group", "echo $$ > /sys/fs/cgroup/cgroup.procs || for d in /sys/fs/cgroup/*/cgroup.procs; do echo $$ > $d && exit 0; done; false"},
		{"its own limits", "writes its group's memory.max", "echo max > /sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)/memory.max"},
		{"a user namespace that submits", "unshare -Ur and the relay as root", "unshare -Ur " + curl + sock + " -X POST -d '{}' http://g/v1/nodes/n1/drain"},
		{"a drain", "the relay of its own node", curl + sock + " -X POST -d '{\"reason\":\"evil\"}' http://g/v1/nodes/n1/drain"},
		{"a token", "the relay of its own node", curl + sock + " -X POST -d '{}' http://g/v1/tokens"},
		{"ada's name at the relay", "Gang-User in the request", curl + sock + fmt.Sprintf(" -H 'Gang-User: %d %s' http://g/v1/jobs/%d/script", s.ada.uid, s.ada.name, s.running)},
		{"ada's job at the relay", "cancel", curl + sock + fmt.Sprintf(" -X POST -d '{\"refs\":[\"%d\"]}' http://g/v1/cancel | grep -v '\"code\"'", s.running)},
		{"root's at the relay", "Gang-User: 0 root", curl + sock + " -H 'Gang-User: 0 root' http://g/v1/verify"},
		{"a session at the relay", "an upgrade", curl + sock + " -H 'Connection: Upgrade' -H 'Upgrade: websocket' -H 'Sec-WebSocket-Version: 13' -H 'Sec-WebSocket-Key: x3JJHMbDL1EzLkh9GBhXDw==' http://g/v1/session"},
		{"ada's member", "ls of its directory's parts", "ls " + member() + "/* && cat " + member() + "/spec.json"}, {"ada's files in it", "find what is readable", "find " + member() + " -type f -readable | grep ."},
		{"sockets of ada's ranks", "connects to each", "for s in $(find " + member() + " -type s); do " + curl + "$s http://g/v1/me && exit 0; done; false"},
		{"words as ada's rank", "READY=1 to each of her sockets", "python3 - <<'E'\nimport glob,socket,sys\nn=0\nfor p in glob.glob('" + member() + "/**',recursive=True):\n  for k in (socket.SOCK_DGRAM,socket.SOCK_STREAM):\n    try:\n      s=socket.socket(socket.AF_UNIX,k); s.connect(p); s.send(b'READY=1'); n+=1\n    except OSError: pass\nsys.exit(0 if n else 1)\nE"},
		{"control socket of shims", "connects to every shim's", "python3 - <<'E'\nimport glob,socket,sys\nn=0\nfor p in glob.glob('" + filepath.Dir(member()) + "/*/**',recursive=True):\n  try:\n    s=socket.socket(socket.AF_UNIX,socket.SOCK_STREAM); s.settimeout(3); s.connect(p); s.send(b'{}'); n+=len(s.recv(100))\n  except OSError: pass\nsys.exit(0 if n else 1)\nE"},
		{"gnoded's state", "lists and writes it", "touch " + filepath.Join(s.dir, "n1", "evil") + " || ls " + filepath.Join(s.dir, "n1", "tls") + "/*"},
		{"inherited descriptors", "anything beside the standard three", "ls -l /proc/self/fd | awk '$9>2' | grep -v '/proc/' | grep -- '->'"},
		{"a privileged port", "listens on 80", "timeout 1 python3 -c 'import socket; s=socket.socket(); s.bind((\"\", 80))' && test $(cat /proc/sys/net/ipv4/ip_unprivileged_port_start) -gt 80"},
		{"a file that others trust", "writes gangd's configuration", "echo x >> " + filepath.Join(s.dir, "gangd.toml")},
		{"new privileges", "NoNewPrivs is off", "grep -q 'NoNewPrivs:.*0' /proc/self/status"}, {"capabilities", "any effective one", "grep CapEff /proc/self/status | grep -q '[1-9a-f]$'"},
		{"groups of root", "any of root's groups", "id -G | tr ' ' '\\n' | grep -qx 0"}, {"a card of ada's", "the name of it in its environment", "env | grep CUDA_VISIBLE_DEVICES= | grep -q GPU"},
	} {
		out = append(out, try{"privilege inside a job", p.name, "a job of eve's on ada's node: " + p.what, "it fails", i%3 > 0, func() error {
			w := filepath.Join(s.eve.home, "witness")
			_ = os.Remove(w)
			script := "#!/bin/bash\n( " + p.script + "\n) > " + w + ".out 2>&1 && touch " + w + "\nexit 0\n"
			id := s.eve.submit(map[string]any{"node_list": []string{"n1"}, "script": []byte(script), "time_limit_ns": 30e9, "no_requeue": true, "max_retries": 0})
			if _, err := s.ended(id); err != nil {
				return err
			}
			if _, err := os.Stat(w); err == nil {
				b, _ := os.ReadFile(w + ".out")
				return fmt.Errorf("it did not: %.300s", b)
			}
			return nil
		}})
	}
	out = append(out, try{"privilege inside a job", "what it leaves", "a double fork in a session of its own, with its environment cleared", "nothing of it lives after the job", false, func() error {
		name := fmt.Sprintf("%d.%d", os.Getpid()%1000+86000, 5) // seconds that nobody else sleeps
		id := s.eve.submit(map[string]any{"script": []byte("#!/bin/bash\nenv -i setsid bash -c 'setsid sleep " + name + " & setsid sleep " + name + " &' >/dev/null 2>&1 </dev/null\nexit 0\n")})
		if _, err := s.ended(id); err != nil {
			return err
		}
		if o, _ := exec.Command("pgrep", "-f", "sleep "+name).Output(); len(o) > 0 {
			return fmt.Errorf("process %s lives", o)
		}
		return nil
	}})
	return out
}

// memberDir is where gnoded keeps a member.
func (s *site) memberDir(id int64) string {
	dirs, _ := filepath.Glob(filepath.Join(s.dir, "n1", "m", fmt.Sprintf("%d.*", id)))
	if len(dirs) == 0 {
		s.t.Fatalf("job %d has no directory below %s/n1/m", id, s.dir)
	}
	if real, err := filepath.EvalSymlinks(dirs[0]); err == nil {
		return real
	}
	return dirs[0]
}

// shimOf is the process that supervises a rank.
func (s *site) shimOf(rank int) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", rank))
	_, rest, _ := strings.Cut(string(b), ") ")
	var state string
	var parent int
	_, _ = fmt.Sscan(rest, &state, &parent)
	return parent
}

// trustedFiles: a daemon does not start from what others can change.
func trustedFiles(s *site) (out []try) {
	dir := filepath.Join(s.dir, "trusted")
	if err := os.MkdirAll(filepath.Join(dir, "open"), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "open"), 0o777); err != nil {
		s.t.Fatal(err)
	}
	file := func(name string, mode os.FileMode, owner uint32, lines ...string) string {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600), os.Chown(path, int(owner), 0), os.Chmod(path, mode)); err != nil {
			s.t.Fatal(err)
		}
		return path
	}
	state := filepath.Join(dir, "state")
	conf := []string{fmt.Sprintf("state_dir = %q", state), fmt.Sprintf("socket = %q", filepath.Join(dir, "sock"))}
	node := []string{`name = "t1"`, fmt.Sprintf("controller = %q", "unix:"+filepath.Join(dir, "none")), fmt.Sprintf("state_dir = %q", filepath.Join(dir, "t1")), `cards = "none"`}
	refuses := func(name, what string, args ...string) {
		out = append(out, try{"files that daemons trust", name, what, "the daemon names it and does not start", false, func() error {
			cmd := exec.Command("timeout", append([]string{"5"}, args...)...)
			b, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code == 0 || code == 124 || !strings.Contains(string(b), "chmod ") && !strings.Contains(string(b), "chown ") {
				return fmt.Errorf("exit %d: %.200s", code, b)
			}
			return nil
		}})
	}
	for prog, lines := range map[string][]string{"gangd": conf, "gnoded": node} {
		bin := filepath.Join(s.bin, prog)
		refuses(prog+": a configuration open to all", "mode 0666", bin, "--config", file(prog+"-w.toml", 0o666, 0, lines...))
		refuses(prog+": a configuration of eve's", "owned by eve", bin, "--config", file(prog+"-eve.toml", 0o600, s.eve.uid, lines...))
		refuses(prog+": a configuration in an open directory", "mode 0777 above it", bin, "--config", file("open/"+prog+".toml", 0o600, 0, lines...))
		link := filepath.Join(dir, prog+"-link.toml")
		if err := os.Symlink(filepath.Join(dir, prog+"-w.toml"), link); err != nil {
			s.t.Fatal(err)
		}
		refuses(prog+": a link to an open configuration", "a safe link", bin, "--config", link)
	}
	ran := filepath.Join(dir, "ran")
	program := file("program", 0o777, 0, "#!/bin/sh", "touch "+ran)
	health := file("health.toml", 0o600, 0, append(node, fmt.Sprintf("health_program = %q", program))...)
	out = append(out, try{"files that daemons trust", "gnoded: a health_program open to all", "mode 0777", "it is not run, the log names it", false, func() error {
		log := filepath.Join(dir, "health.log")
		cmd := exec.Command("/bin/sh", "-c", "exec timeout 30 "+filepath.Join(s.bin, "gnoded")+" --config "+health+" 2> "+log)
		if err := cmd.Start(); err != nil {
			return err
		}
		defer func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() }()
		if !waitFor(func() bool { b, _ := os.ReadFile(log); return strings.Contains(string(b), "chmod o-w "+program) }) {
			return errors.New("the log does not name it")
		}
		if _, err := os.Stat(ran); err == nil {
			return errors.New("it was run")
		}
		return nil
	}})
	wide := filepath.Join(dir, "wide")
	if err := errors.Join(os.Mkdir(wide, 0o755), os.Chmod(wide, 0o755)); err != nil {
		s.t.Fatal(err)
	}
	refuses("gangd: a state directory that all can read", "mode 0755", filepath.Join(s.bin, "gangd"), "--config", file("wide.toml", 0o600, 0, fmt.Sprintf("state_dir = %q", wide), conf[1]))
	ca := filepath.Join(s.tls, "ca.pem")
	n3 := filepath.Join(s.dir, "n3.toml")
	out = append(out, try{"files that daemons trust", "gnoded: a CA open to all", "mode 0666", "the daemon names it and does not start", false, func() error {
		if err := os.Chmod(ca, 0o666); err != nil {
			return err
		}
		defer os.Chmod(ca, 0o600)
		cmd := exec.Command("timeout", "5", filepath.Join(s.bin, "gnoded"), "--config", n3)
		b, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code == 0 || code == 124 || !strings.Contains(string(b), "chmod ") {
			return fmt.Errorf("exit %d: %.200s", code, b)
		}
		return nil
	}})
	for _, d := range []string{"gangd", "n1"} {
		out = append(out, try{"files that daemons trust", "SIGHUP to " + d, "a log rotator sends it", "it lives", false, func() error {
			return s.daemons[d].cmd.Process.Signal(syscall.SIGHUP)
		}})
	}
	return out
}
