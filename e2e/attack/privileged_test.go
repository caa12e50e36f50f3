package attack

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"gangd/e2e/tally"
)

// TestRootsPaths has a node do under strace what a hostile user asks of it, and compares each system call that took a path with
// root's rights, where the path is the user's or passes through what is his, with the table of docs/security.md.
func TestRootsPaths(t *testing.T) {
	s := build(t)
	s.guarded()
	tally.Need(t, "strace")
	table := readTable(t)
	out := filepath.Join(s.dir, "strace")
	stop := s.trace(out, "-p", strconv.Itoa(s.daemons["n1"].cmd.Process.Pid))
	s.hostileToANode()
	if err := s.clear(); err != nil {
		t.Error(err)
	}
	stop()
	adopted := filepath.Join(s.dir, "strace-gadopt")
	cmd := exec.Command("strace", append(traced(adopted), filepath.Join(s.bin, "gadopt"), "--state-dir="+filepath.Join(s.dir, "n1"))...)
	cmd.Env = []string{"PAM_USER=" + s.eve.name, "PAM_TYPE=account"}
	_ = cmd.Run() // she has no job: it is refused
	used := map[string]bool{}
	calls, privileged := 0, 0
	bad := map[string]string{} // the first of each kind
	say := func(key, format string, args ...any) {
		if bad[key] == "" {
			bad[key] = fmt.Sprintf(format, args...)
		}
	}
	for _, file := range []string{out, adopted} {
		all := readTrace(t, file)
		calls += len(all)
		for _, c := range all {
			if !c.root {
				continue
			}
			privileged++
			for _, p := range c.paths {
				of := s.whose(p)
				if of == "" || slices.Contains(filepath.SplitList(os.Getenv("PATH")), filepath.Dir(p)) { // where root's own programs are looked for
					continue
				}
				row := table[c.name+" "+of]
				used[c.name+" "+of] = true
				if row == nil {
					say(c.name+" "+of, "%s on the %s path %s is not in the table: %.300s", c.name, of, p, c.text)
				} else if i := slices.IndexFunc(row.needs, func(flag string) bool { return !strings.Contains(c.text, flag) }); i >= 0 {
					say(c.name+" "+of+" "+row.needs[i], "%s on the %s path %s without %s: %.300s", c.name, of, p, row.needs[i], c.text)
				}
			}
		}
	}
	fmt.Printf("%d calls with paths, %d with root's rights, %d kinds of them on users' paths\n", calls, privileged, len(used))
	if privileged < 1000 || len(used) < 5 {
		t.Errorf("%d privileged calls, of kinds %v: it was not seen what a node does", privileged, slices.Sorted(maps.Keys(used)))
	}
	tally.Checked(t, "calls with root's rights on users' paths that are not in docs/security.md", slices.Sorted(maps.Values(bad))...)
	if os.Getenv("GANG_E2E_CHAOS") != "" {
		for key := range table {
			if !used[key] && !table[key].rare {
				t.Errorf("the table has %s, and no job of this test brings it about", key)
			}
		}
	}
}

// hostileToANode has n1 do all that users can ask of it with paths of theirs. Each has mark in what is named.
func (s *site) hostileToANode() {
	s.t.Helper()
	at := func(change map[string]any) map[string]any {
		change["node_list"] = []string{"n1"}
		return change
	}
	home := s.eve.home
	s.eve.mine(mark+"-link", link("/root"))
	s.eve.mine(mark+"-dir", func(p string) error { return os.MkdirAll(p+"/sub", 0o755) })
	file := s.eve.mine(mark+"-file", func(p string) error { return os.WriteFile(p, []byte("x\n"), 0o644) })
	image := s.image(mark+"-image", map[string]string{"out": "/e/root", "here": "/dir"})
	var jobs []map[string]any
	for _, p := range []string{home + "/" + mark + "-out", home + "/" + mark + "-link/out", home + "/" + mark + "-new/a/b", "/etc/" + mark, "/root/" + mark, s.ada.home + "/" + mark} {
		jobs = append(jobs, map[string]any{"output": p}, map[string]any{"error": p, "output": home + "/" + mark + "-o"}, map[string]any{"input": p}, map[string]any{"work_dir": p})
	}
	for _, script := range []string{"#!" + home + "/" + mark + "-interpreter\n", "#!/root/" + mark + "\n", "#!/bin/sh\necho x > $GANG_CHECKPOINT_DIR/f; echo y | gckpt put -; ln -s /root/" + mark + " $GANG_CHECKPOINT_DIR/l\nexit 1\n"} {
		jobs = append(jobs, map[string]any{"script": []byte(script), "work_dir": home + "/" + mark + "-dir"})
	}
	send := "#!/bin/sh\ngcp " + file + " /tmp/" + mark + "-sent; gcp " + file + " /root/" + mark + "\ngrun sh -c 'echo step; cat " + home + "/" + mark + "-none'\n"
	jobs = append(jobs, map[string]any{"launch": "batch", "script": []byte(send), "work_dir": home + "/" + mark + "-dir", "output": home + "/" + mark + "-batch"})
	// A container that is kept, in which its user is root as far as he goes, and another step in what he has made of it.
	box := ""
	for _, m := range s.contained(image)["container"].(map[string]any)["mounts"].([]mount) {
		box += "," + m.Source + ":" + m.Target + ":ro"
	}
	kept := "#!/bin/sh\ngrun -n1 --container-image=" + image + " --container-mounts=" + box[1:] + " --container-name=k --container-remap-root sh -c 'id -u; mkdir /root; mv /dir /" + mark +
		"; ln -s /root/" + mark + " /dir; mv /etc /" + mark + "-etc; ln -s /root /etc; touch /made'\n" +
		"grun -n1 --container-name=k:exec sh -c 'id -u; ls -d /made /" + mark + "'\ngrun -n1 --container-name=k --container-remap-root sh -c 'echo $HOME; touch /etc/" + mark + "'\n"
	jobs = append(jobs, map[string]any{"launch": "batch", "script": []byte(kept), "work_dir": home + "/" + mark + "-dir", "output": home + "/" + mark + "-kept"})
	for _, tmp := range []string{"/root/" + mark, home + "/" + mark + "-link/tmp", home + "/" + mark + "-tmp", file} { // where that is missing it is made for a script of Slurm's
		jobs = append(jobs, map[string]any{"launch": "batch", "last_words": true, "env": []string{"TMPDIR=" + tmp}, "script": []byte("#!/bin/sh\ntrue\n"), "work_dir": home + "/" + mark + "-dir", "output": home + "/" + mark + "-tmp-out"})
	}
	for _, more := range [][]mount{nil, {{file, "/etc/" + mark, false}}, {{home + "/" + mark + "-dir", "/here/" + mark + "/a", true}}, {{"/", "/e", false}, {file, "/e/root/" + mark, false}}, {{"/", "/e", false}, {file, "/out/" + mark, false}},
		{{home + "/" + mark + "-link", "/m", false}}, {{home + "/" + mark + "-none", "/m", false}}, {{"/root/" + mark, "/m", false}}} {
		jobs = append(jobs, s.contained(image, more...))
	}
	for _, name := range []string{home + "/" + mark + "-none", home + "/" + mark + "-link/x", "/root/" + mark, file} {
		jobs = append(jobs, s.contained(name), s.contained("docker-archive:"+name))
	}
	jobs = append(jobs, s.contained(s.archive(mark+"-archive", "mkdir -p root/usr root/bin root/lib root/lib64 root/etc; ln -s /root/"+mark+" root/"+mark+"; ln -s /root "+mark+"\n")))
	bent := s.contained(s.archive(mark+"-bent", "rm -rf root; ln -s /root/"+mark+" root\n"))
	jobs = append(jobs, bent)
	var ids []int64
	for _, j := range jobs {
		var r struct {
			JobID int64 `json:"job_id"`
		}
		if a := s.eve.ask(at(j)); a.decode(&r) == nil {
			ids = append(ids, r.JobID)
		}
	}
	for _, id := range ids {
		if _, err := s.ended(id); err != nil {
			s.t.Error(err)
		}
		s.eve.call("GET", fmt.Sprintf("/v1/log?job=%d", id), nil)
	}
	if said, err := os.ReadFile(home + "/" + mark + "-kept"); string(said) != fmt.Sprintf("0\n%d\n/%s\n/made\n/root\n", s.eve.uid, mark) {
		s.t.Errorf("steps in a container that is kept: %s, %v", said, err)
	}
}

// traced are strace's options: calls with paths, and what says whose rights they are made with.
func traced(file string) []string {
	return []string{"-f", "-qq", "-y", "-s", "300", "-o", file, "-e", "signal=none", "-e",
		"trace=%file,clone,clone3,fork,vfork,setuid,setreuid,setresuid,setfsuid,mount,move_mount,open_tree,fsopen,openat2,mkdirat,fchownat,unlinkat,renameat2,pivot_root,umount2,?mount_setattr,?faccessat2,name_to_handle_at,open_by_handle_at,inotify_add_watch,fanotify_mark,bind,connect"}
}

// trace follows a process and all that it starts, until stop.
func (s *site) trace(file string, args ...string) (stop func()) {
	s.t.Helper()
	cmd := exec.Command("strace", append(traced(file), args...)...)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	tracer := func() bool {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.daemons["n1"].cmd.Process.Pid))
		return strings.Contains(string(b), fmt.Sprintf("TracerPid:\t%d\n", cmd.Process.Pid))
	}
	if !waitFor(tracer) {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		tally.Skip(s.t, "strace can't trace here: %s", said.String())
	}
	return func() {
		_ = cmd.Process.Signal(syscall.SIGINT) // lets go of all
		_ = cmd.Wait()
	}
}

// tracedCall is one that took paths.
type tracedCall struct {
	name, text string
	root       bool // with root's rights on files
	paths      []string
}

var (
	traceLine   = regexp.MustCompile(`^(\d+) +(\w+)\((.*)$`)
	traceResume = regexp.MustCompile(`^(\d+) +<\.\.\. (\w+) resumed>(.*)$`)
	tracePath   = regexp.MustCompile(`(?:(AT_FDCWD|\d+)(?:<((?:[^>\\]|\\.)*)>)?, )?"((?:[^"\\]|\\.)*)"(?:\.\.\.)?`)
	traceReturn = regexp.MustCompile(`\) += +(-?\d+)`)
)

// pathsOf says how many of a call's strings are paths, from which on.
func pathsOf(name string) (from, n int) {
	switch name {
	case "rename", "renameat", "renameat2", "link", "linkat", "mount", "move_mount", "pivot_root":
		return 0, 2
	case "symlink", "symlinkat":
		return 1, 1
	case "getcwd", "clone", "clone3", "fork", "vfork", "setuid", "setreuid", "setresuid", "setfsuid", "fsopen", "bind", "connect":
		return 0, 0 // sockets are the node's own, by their directories' descriptors
	}
	return 0, 1
}

// readTrace puts calls together that strace took apart, and follows who has whose rights: a thread begins with those of who made it.
func readTrace(t *testing.T, file string) (calls []tracedCall) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	type event struct {
		at         int // of its line
		name, text string
	}
	events, begun := map[int][]event{}, map[int]event{}
	type birth struct{ parent, at int }
	births := map[int]birth{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<22)
	for at := 0; lines.Scan(); at++ {
		line := lines.Text()
		var tid int
		var e event
		if m := traceResume.FindStringSubmatch(line); m != nil {
			tid, _ = strconv.Atoi(m[1])
			e = begun[tid]
			e.text += m[3]
		} else if m := traceLine.FindStringSubmatch(line); m != nil {
			tid, _ = strconv.Atoi(m[1])
			e = event{at, m[2], m[3]}
			if text, cut := strings.CutSuffix(e.text, "<unfinished ...>"); cut {
				e.text = text
				begun[tid] = e
				continue
			}
		} else {
			continue
		}
		events[tid] = append(events[tid], e)
		switch e.name {
		case "clone", "clone3", "fork", "vfork":
			if m := traceReturn.FindStringSubmatch(e.text); m != nil {
				if child, _ := strconv.Atoi(m[1]); child > 0 {
					births[child] = birth{tid, e.at}
				}
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	changes := func(e event) (uid int, ok bool) {
		args := strings.Split(strings.TrimSpace(strings.SplitN(e.text, ")", 2)[0]), ",")
		which := 0
		switch e.name {
		case "setuid", "setfsuid":
		case "setreuid", "setresuid":
			which = 1
		default:
			return 0, false
		}
		if which >= len(args) || e.name != "setfsuid" && !strings.Contains(e.text, "= 0") {
			return 0, false
		}
		uid, err := strconv.Atoi(strings.TrimSpace(args[which]))
		return uid, err == nil && uid >= 0
	}
	var rights func(tid, before int) int
	rights = func(tid, before int) int {
		uid, found := 0, false
		for _, e := range events[tid] {
			if e.at >= before {
				break
			}
			if n, ok := changes(e); ok {
				uid, found = n, true
			}
		}
		if b, ok := births[tid]; ok && !found && b.at < before {
			return rights(b.parent, b.at)
		}
		return uid
	}
	for tid, es := range events {
		uid := 0
		if b, ok := births[tid]; ok {
			uid = rights(b.parent, b.at)
		}
		for _, e := range es {
			if n, ok := changes(e); ok {
				uid = n
			}
			c := tracedCall{name: e.name, text: e.name + "(" + e.text, root: uid == 0}
			from, n := pathsOf(e.name)
			found := tracePath.FindAllStringSubmatch(e.text, -1)
			for i := from; i < min(from+n, len(found)); i++ {
				dir, path := found[i][2], found[i][3]
				switch {
				case path == "":
					path = dir
				case !strings.HasPrefix(path, "/") && dir != "":
					path = dir + "/" + path
				case dir != "" && found[i][1] != "AT_FDCWD": // an absolute path below a descriptor
					path = dir + path
				}
				c.paths = append(c.paths, path)
			}
			if len(c.paths) > 0 {
				calls = append(calls, c)
			}
		}
	}
	return calls
}

var (
	layerPath = regexp.MustCompile(`/c/root/.`)
	stagePath = regexp.MustCompile(`/images/stage\.[^/]+/`)
	imagePath = regexp.MustCompile(`/images/\d+/[0-9a-f]+/root/`)
	ownFile   = regexp.MustCompile(`^(/proc|/sys|/dev/(null|urandom|loop[^/]*)|socket:|pipe:|anon_inode:|pidfd:|/memfd:)`)
)

// whose says of a path with root's rights whose it is; empty: the node's own, or the machine's.
func (s *site) whose(path string) string {
	path = strings.TrimSuffix(path, " (deleted)")
	switch {
	case layerPath.MatchString(path):
		return "layer"
	case stagePath.MatchString(path):
		return "stage"
	case imagePath.MatchString(path), strings.Contains(path, mark):
		return "user"
	case !strings.HasPrefix(path, "/"), ownFile.MatchString(path):
		return ""
	}
	below := func(dirs ...string) bool {
		return slices.ContainsFunc(dirs, func(d string) bool { return path == d || strings.HasPrefix(path, d+"/") })
	}
	if below(s.dir+"/n1", s.bin, s.dir+"/tools", "/run/gnoded", "/dev/shm/gnoded", "/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/var/lib", "/run/systemd", "/var/run") ||
		slices.Contains([]string{"/", "/tmp", "/var", "/var/tmp", "/dev", "/dev/shm", "/run", s.dir, s.dir + "/n1.sock"}, path) || strings.HasPrefix(path, s.dir+"/n1.") {
		return ""
	}
	return "user"
}

var tableWord = regexp.MustCompile("`(\\w+)`")

// tableRow is a row of the table in docs/security.md.
type tableRow struct {
	needs []string // flags that the call has to have
	rare  bool     // no job of the test brings it about each time
}

// readTable reads it: | `call` | whose | how | flags | held by |.
func readTable(t *testing.T) map[string]*tableRow {
	t.Helper()
	b, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(b), "\n## Root on users' paths\n")
	if !found {
		t.Fatal("docs/security.md has no such table")
	}
	text, _, _ = strings.Cut(text, "\n## ")
	table := map[string]*tableRow{}
	for line := range strings.Lines(text) {
		cells := strings.Split(line, " | ")
		if len(cells) < 4 || !strings.HasPrefix(cells[0], "| `") {
			continue
		}
		of, rest, _ := strings.Cut(strings.TrimSpace(cells[1]), ": ")
		row := &tableRow{rare: strings.Contains(rest, "rare")}
		for _, m := range tableWord.FindAllStringSubmatch(cells[3], -1) {
			row.needs = append(row.needs, m[1])
		}
		for _, m := range tableWord.FindAllStringSubmatch(cells[0], -1) {
			table[m[1]+" "+of] = row
		}
	}
	if len(table) == 0 {
		t.Fatal("the table of docs/security.md is empty")
	}
	return table
}
