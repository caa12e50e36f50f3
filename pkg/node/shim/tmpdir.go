package shim

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"gangd/pkg/core/cmdline"
)

const tmpVariable = "TMPDIR="

// Temporary is an environment whose TMPDIR can be used: where that is missing it is made, and where it can not be, as one of the
// host that the job was submitted on, it is /tmp, and why says so. It runs as the user.
func Temporary(env []string) (out []string, why string) {
	at := slices.IndexFunc(env, func(kv string) bool { return strings.HasPrefix(kv, tmpVariable) })
	if at < 0 {
		return append(slices.Clip(env), tmpVariable+"/tmp"), ""
	}
	dir := env[at][len(tmpVariable):]
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, syscall.EEXIST) {
		if err = unix.Faccessat(unix.AT_FDCWD, dir, unix.X_OK|unix.W_OK, unix.AT_EACCESS); err == nil {
			if st, e := os.Stat(dir); e == nil && !st.IsDir() {
				err = syscall.ENOTDIR
			}
		}
	}
	if err == nil {
		return env, ""
	}
	out = slices.Clone(env)
	out[at] = tmpVariable + "/tmp"
	return out, fmt.Sprintf("slurmstepd: error: Unable to create TMPDIR [%s]: %s\nslurmstepd: error: Setting TMPDIR to /tmp", dir,
		cmdline.ErrnoText(err))
}

// ownTemporary gives a script of Slurm's a TMPDIR that it can use, and says in its output what was wrong with its own.
func (s *Spec) ownTemporary(files []rankFiles) {
	if !s.Batch || !s.LastWords {
		return
	}
	for i := range s.Ranks {
		env, why := Temporary(s.Ranks[i].Env)
		s.Ranks[i].Env = env
		if why != "" {
			_, _ = unix.Write(files[i].err, []byte(why+"\n"))
		}
	}
}

// temporaries are the TMPDIR of each rank.
func (s *Spec) temporaries() (out []string) {
	for i := range s.Ranks {
		at := slices.IndexFunc(s.Ranks[i].Env, func(kv string) bool { return strings.HasPrefix(kv, tmpVariable) })
		if at < 0 {
			return nil
		}
		out = append(out, s.Ranks[i].Env[at])
	}
	return out
}

// setTemporaries puts what [Spec.temporaries] gave elsewhere in place. The user may have written it: with a zero byte in its environment
// no rank could be started.
func (s *Spec) setTemporaries(all []string) {
	for i := range min(len(all), len(s.Ranks)) {
		if strings.HasPrefix(all[i], tmpVariable) && strings.IndexByte(all[i], 0) < 0 {
			env := slices.DeleteFunc(slices.Clone(s.Ranks[i].Env), func(kv string) bool { return strings.HasPrefix(kv, tmpVariable) })
			s.Ranks[i].Env = append(env, all[i])
		}
	}
}
