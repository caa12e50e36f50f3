package submit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/core/script"
)

// What can be known on this host is checked before anything is queued: a job that waits a
// night for its cards must not fail then for a directory that was never there. The node
// checks again, as the user, before any rank starts.

// workDir makes the working directory absolute and checks that it can be entered.
func (s *submission) workDir() error {
	here, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("this directory is gone (%w); cd to one that is there", err)
	}
	dir := s.req.Chdir
	switch {
	case dir == "":
		dir = here
	case !filepath.IsAbs(dir):
		dir = filepath.Join(here, dir)
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && s.silent: // sbatch takes one of the nodes
		s.warn("%s is not there on this host; where the job runs it has to be", api.Shown(api.Pack(dir)))
		s.spec.WorkDir = dir
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return s.req.Refuse("chdir", dir+" is not there", "make it: mkdir -p "+dir)
	case err != nil:
		return s.req.Refuse("chdir", dir+" can't be reached ("+cause(err)+")", "choose a directory of yours")
	case !info.IsDir():
		return s.req.Refuse("chdir", dir+" is not a directory", "name the directory: "+filepath.Dir(dir))
	}
	if err := unix.Access(dir, unix.X_OK); err != nil {
		return s.req.Refuse("chdir", dir+" can't be entered ("+err.Error()+")", "choose a directory of yours")
	}
	s.spec.WorkDir = dir
	return nil
}

// checkFiles checks output, error and input.
func (s *submission) checkFiles() error {
	output := s.spec.Output
	if output == "" {
		output = "gang-%j.out"
	}
	if err := s.checkOutput("output", output); err != nil {
		return err
	}
	if s.spec.Error != "" {
		if err := s.checkOutput("error", s.spec.Error); err != nil {
			return err
		}
	}
	return s.checkInput()
}

// checkOutput checks a pattern as far as it is the same for all ranks: an existing file
// must be writable, and else the nearest directory that exists, in which the missing ones
// are made.
func (s *submission) checkOutput(option, pattern string) error {
	path := pattern
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.spec.WorkDir, path)
	}
	if !strings.Contains(path, "%") {
		info, err := os.Stat(path)
		switch {
		case err == nil && info.IsDir():
			return s.req.Refuse(option, path+" is a directory", "name a file in it: --"+option+"="+pattern+"/gang-%j.out")
		case err == nil:
			if err := unix.Access(path, unix.W_OK); err != nil {
				return s.req.Refuse(option, path+" can't be written ("+err.Error()+")", "choose another file, or remove this one")
			}
			return nil
		}
	}
	return s.checkDir(option, script.FixedDir(path))
}

// checkDir climbs to the nearest directory that exists.
func (s *submission) checkDir(option, dir string) error {
	for d := dir; ; d = filepath.Dir(d) {
		info, err := os.Stat(d)
		switch {
		case err == nil && !info.IsDir():
			return s.req.Refuse(option, d+" is a file, and the output needs it to be a directory", "choose another directory, or remove the file")
		case err == nil:
			if err := unix.Access(d, unix.W_OK|unix.X_OK); err != nil {
				return s.req.Refuse(option, "you can't write in "+d+" ("+err.Error()+")", "choose a directory of yours: --"+option+"="+home()+
					"/gang-%j.out")
			}
			if kernels(d) {
				return s.req.Refuse(option, d+" is the kernel's and holds no files of yours", "choose a directory of yours: --"+option+"="+home()+
					"/gang-%j.out")
			}
			return nil
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		default:
			return s.req.Refuse(option, d+" can't be reached ("+cause(err)+")", "choose a directory of yours: --"+option+"="+home()+"/gang-%j.out")
		}
		if d == filepath.Dir(d) {
			return nil
		}
	}
}

// kernels: root may write in /proc and /sys, as far as access(2) knows, and still can't make
// a file there.
func kernels(dir string) bool {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return false
	}
	switch int64(st.Type) {
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC:
		return true
	}
	return false
}

func (s *submission) checkInput() error {
	path := s.spec.Input
	if path == "" {
		return nil
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.spec.WorkDir, path)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && s.silent: // made later, or on the nodes
		s.warn("the input %s is not there yet", api.Shown(api.Pack(path)))
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return s.req.Refuse("input", path+" is not there", "check the name: ls "+filepath.Dir(path))
	case err != nil:
		return s.req.Refuse("input", path+" can't be reached ("+cause(err)+")", "choose a file of yours")
	case info.IsDir():
		return s.req.Refuse("input", path+" is a directory", "name a file in it")
	}
	if err := unix.Access(path, unix.R_OK); err != nil {
		return s.req.Refuse("input", "you can't read "+path+" ("+err.Error()+")", "choose a file of yours")
	}
	return nil
}

// cause is the innermost reason: "permission denied" without operation and path.
func cause(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

func home() string {
	if h := os.Getenv("HOME"); h != "" {
		return h
	}
	return "/tmp"
}
