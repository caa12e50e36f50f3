package hosts

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// The people of a site, the same on all its hosts: ada is the admin whom the documented
// configuration names.
var people = map[string]string{
	"passwd": "ada:x:20001:20001::/home/ada:/bin/bash\nbob:x:20002:20002::/home/bob:/bin/bash\n",
	"group":  "ada:x:20001:\nbob:x:20002:\n",
}

// homes makes the people's directories, which hosts show at /home.
func (l *lab) homes() {
	l.t.Helper()
	for name, id := range map[string]int{"ada": 20001, "bob": 20002} {
		home := filepath.Join(l.dir, "home", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(home), 0o755), os.Mkdir(home, 0o700), os.Chown(home, id, id)); err != nil {
			l.t.Fatal(err)
		}
	}
}

const path = "/opt/gangd/slurm:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

type result struct {
	out  string // and errors
	code int
}

func (r result) has(text string) bool { return strings.Contains(r.out, text) }

// sh runs a line in the shell of somebody on a host, at home.
func (l *lab) sh(host, user, line string) result {
	l.t.Helper()
	log := filepath.Join(l.dir, "sh.out")
	_ = os.Remove(log)
	d := l.spawn(host, user, line, log)
	<-d.gone
	b, _ := os.ReadFile(log)
	return result{string(b), d.code}
}

// spawn is sh that does not wait.
func (l *lab) spawn(host, user, line, log string) *daemon {
	l.t.Helper()
	args := []string{"/bin/bash", "-c", line}
	home := "/"
	if user != "root" {
		home = "/home/" + user
		args = []string{"/usr/bin/setpriv", "--reuid=" + user, "--regid=" + user, "--init-groups", "/bin/bash", "-c", "cd && " + line}
	}
	if user == "root" && l.opt.umask != "" {
		args = append([]string{"/bin/sh", "-c", "umask " + l.opt.umask + " && exec \"$@\"", "sh"}, args...)
	}
	d, err := l.hosts[host].start(&start{Args: args, Env: []string{"PATH=" + path, "HOME=" + home, "USER=" + user}, Log: log})
	if err != nil {
		l.t.Fatal(err)
	}
	return d
}
