package attack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"gangd/pkg/api"
)

// driver puts a program in the way of the nodes that stands for podman. An archive is a script to it: by his configuration a user has a
// real one run programs of his, too.
func (s *site) driver() {
	const text = `#!/bin/sh
[ "$1" = --version ] && { echo podman version 4.3.1; exit; }
for a; do last=$a; case $a in pull|image|create|export) cmd=${cmd:-$a} ;; esac; done
case $cmd in
pull) . "${last#docker-archive:}" && echo id ;;
image) printf 'sha256:%064d []\n' 0 ;;
export) for a; do [ "$was" = --output ] && tar -cf "$a" --files-from=/dev/null; was=$a; done ;;
esac
`
	tools := filepath.Join(s.dir, "tools")
	path := filepath.Join(tools, "podman")
	if err := errors.Join(os.MkdirAll(tools, 0o755), os.Chmod(tools, 0o755), os.WriteFile(path, []byte(text), 0o755), os.Chmod(path, 0o755)); err != nil {
		s.t.Fatal(err)
	}
}

// archive is an image of eve's whose import runs a script.
func (s *site) archive(name, script string) string {
	return "docker-archive:" + s.eve.mine(name, func(p string) error { return os.WriteFile(p, []byte(script), 0o644) })
}

// imports: what the import of an image tells of what eve can't see, and what it takes.
func imports(s *site) (out []try) {
	verdict := func(path string) (string, error) {
		a := s.eve.ask(s.contained("docker-archive:" + path))
		if a.refused() == nil {
			return strings.ReplaceAll(a.body, path, "X"), nil
		}
		var r api.SubmitReply
		if err := a.decode(&r); err != nil {
			return "", err
		}
		j, err := s.ended(r.JobID)
		return strings.ReplaceAll(j.Verdict, path, "X"), errors.Join(err, expectFailed(j))
	}
	for i, x := range []struct{ name, there, none string }{
		{"root's home", "/root/.bashrc", "/root/no-such-file"}, {"a directory of a state", s.dir + "/gangd/state.db", s.dir + "/gangd/none"}, {"ada's home", s.ada.home + "/secret", s.ada.home + "/none"},
		{"a node's key", s.dir + "/n1/tls/node.pem", s.dir + "/n1/tls/none"}, {"a link into ada's home", s.eve.mine("to-ada", link(s.ada.home)) + "/secret", s.eve.home + "/to-ada/none"},
		{"another's process", "/proc/1/fd/0", "/proc/1/fd/9999"}, {"a member of ada's", s.memberDir(s.running) + "/spec.json/x", s.memberDir(s.running) + "/script/x"},
	} {
		out = append(out, try{"imports", "what is there in " + x.name, "archives of eve's that name what is there and what is not", "the same answer", i%2 > 0, func() error {
			there, err1 := verdict(x.there)
			none, err2 := verdict(x.none)
			if err := errors.Join(err1, err2); err != nil || there == none {
				return err
			}
			return fmt.Errorf("%q, and %q where there is nothing", there, none)
		}})
	}
	runs := func(name, script string, change map[string]any) func() (string, error) {
		return func() (string, error) {
			said := filepath.Join(s.eve.home, "said-"+name)
			_ = os.Remove(said)
			spec := s.contained(s.archive("archive-"+name, "exec 3>"+said+"\n"+script+"\n"))
			for k, v := range change {
				spec[k] = v
			}
			if _, err := s.ended(s.eve.submit(spec)); err != nil {
				return "", err
			}
			b, err := os.ReadFile(said)
			return string(b), err
		}
	}
	add := func(name, what, expect string, said func() (string, error), bad func(said string) error) {
		out = append(out, try{"imports", name, what, expect, false, func() error {
			text, err := said()
			if err != nil {
				return err
			}
			return bad(text)
		}})
	}
	if limits := s.node("n1").Limits; limits.Memory == api.LimitEnforced {
		add("memory", "a job of 64 MiB whose import takes 400", "it is ended", runs("memory", "head -c 400000000 /dev/zero | tail -c 400000000 | wc -c >&3", map[string]any{"memory_per_rank": 64 << 20}), func(said string) error {
			if strings.Contains(said, "400000000") {
				return errors.New("it had them")
			}
			return nil
		})
	}
	add("as a login", "an import on a node whose gnoded is at nice 5", "it starts as a login", runs("login", "(cut -d' ' -f19 /proc/self/stat; cat /proc/self/oom_score_adj) >&3", map[string]any{"node_list": []string{"n2"}}), func(said string) error {
		if said != "0\n0\n" {
			return fmt.Errorf("it starts with %q", said)
		}
		return nil
	})
	add("as eve", "an import", "it is eve, in her groups, without new privileges", runs("id", "(id -u; id -G; grep NoNewPrivs /proc/self/status | tr -d '\\t') >&3", nil), func(said string) error {
		if want := fmt.Sprintf("%d\n%d\n", s.eve.uid, s.eve.gid); !strings.HasPrefix(said, want) || !strings.Contains(said, "NoNewPrivs:1") {
			return fmt.Errorf("it is %q", said)
		}
		return nil
	})
	only := filepath.Join(s.dir, "root-only")
	for _, x := range []struct{ name, script string }{
		{"root becomes a link", "rm -rf root; ln -s " + only + " root"}, {"root becomes a link to a file", "rm -rf root; ln -s " + only + "/file root"}, {"run becomes a link", "rm -rf run; ln -s " + only + " run"},
		{"root becomes a FIFO", "rm -rf root; mkfifo root"}, {"a tree of links", "cd root; for i in 1 2 3 4 5; do ln -s " + only + " l$i; ln -s / r$i; done"}, {"the archive becomes a link", "ln -s " + only + "/file root.tar"},
		{"storage becomes a link", "ln -s " + only + " storage1; ln -s /root storage2"}, {"a directory that can't be entered", "mkdir -p root/x/y; chmod 0 root/x"},
	} {
		out = append(out, try{"imports", "a bent stage: " + x.name, "an import changes what its node made for it", "root changes nothing of its own", false, func() error {
			if _, err := runs("bent", x.script, nil)(); err != nil {
				return err
			}
			for path, mode := range map[string]os.FileMode{only: os.ModeDir | 0o755, only + "/file": 0o600} {
				info, err := os.Stat(path)
				if err != nil || info.Mode() != mode || info.Sys().(*syscall.Stat_t).Uid != 0 {
					return fmt.Errorf("%s is %v, of uid %d, %w", path, info.Mode(), info.Sys().(*syscall.Stat_t).Uid, err)
				}
			}
			left, _ := filepath.Glob(s.dir + "/n[12]/images/stage.*")
			if len(left) > 0 {
				return fmt.Errorf("left: %v", left)
			}
			return nil
		}})
	}
	return out
}

// starts: what a rank has of how its node's daemon was started (n2: nice 5, oom_score_adj 200).
func starts(s *site) (out []try) {
	for name, x := range map[string]struct{ script, want string }{
		"niceness":            {"cut -d' ' -f19 /proc/self/stat", "0\n"},
		"oom_score_adj":       {"cat /proc/self/oom_score_adj", "0\n"},
		"lower oom_score_adj": {"echo -500 >/proc/self/oom_score_adj 2>/dev/null || echo refused", "refused\n"},
		"in a step":           {"grun sh -c 'cut -d\" \" -f19 /proc/self/stat; cat /proc/self/oom_score_adj'", "0\n0\n"},
	} {
		out = append(out, try{"how a rank starts", name, "a job of eve's on n2", "as a login", false, func() error {
			said := filepath.Join(s.eve.home, "start-of-rank")
			_ = os.Remove(said)
			change := map[string]any{"node_list": []string{"n2"}, "output": said, "script": []byte("#!/bin/sh\n" + x.script + "\n")}
			if name == "in a step" {
				change["launch"] = "batch"
			}
			if _, err := s.ended(s.eve.submit(change)); err != nil {
				return err
			}
			if b, err := os.ReadFile(said); err != nil || string(b) != x.want {
				return fmt.Errorf("it starts with %q, %w", b, err)
			}
			return nil
		}})
	}
	return out
}
