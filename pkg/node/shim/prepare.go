package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/node/proc"
)

// rankFiles are the open standard files of one rank. Equal paths are one descriptor.
type rankFiles struct{ in, out, err int }

// prepare does everything that can fail before the gate opens. On a refusal nothing is left.
func (m *member) prepare() *api.Refusal {
	s := m.spec
	if err := proc.Subreaper(); err != nil {
		return &api.Refusal{Blame: api.BlameNode, Text: err.Error()}
	}
	box, err := proc.Make(s.Place(), proc.Limits{Memory: s.MemoryMax, PIDs: s.PidsMax, CPUs: s.CPUs, CPUSet: s.CPUSet(), Mems: s.MemoryNodes,
		Whole: !s.Batch, Deny: s.Deny})
	if err != nil {
		whose := api.BlameNode
		if errors.As(err, new(*proc.LimitError)) {
			whose = api.BlameUnknown // the figure is the job's
		}
		return &api.Refusal{Blame: whose, Text: err.Error()}
	}
	m.box = box
	refusal := m.openPrivate()
	switch {
	case refusal != nil:
	case s.SwitchUser:
		m.files, refusal = m.openAsUser()
	default:
		m.files, refusal = openFiles(s, m.empty)
	}
	if refusal != nil {
		m.files = closeFiles(m.files)
		m.closePrivate()
		m.lookAtHome(refusal)
		if gone, err := box.Remove(); !gone || err != nil {
			logf("containment of a refused member: gone %v, %v", gone, err)
		}
	}
	return refusal
}

// openFiles checks the working directory and opens the files of every rank. It runs as
// the user: in the shim itself, or in the process that [Check] is. empty may be nil.
func openFiles(s *Spec, empty *emptyDir) ([]rankFiles, *api.Refusal) {
	if r := s.checkScript(); r != nil {
		return nil, r
	}
	if r := checkWorkDir(s.WorkDir); r != nil {
		return nil, r
	}
	old := unix.Umask(s.Umask)
	defer unix.Umask(old)
	if s.CheckpointDir != "" && !empty.give(s.CheckpointDir, s) {
		makeCheckpointDir(s.CheckpointDir)
	}
	o := opener{known: map[string]int{}}
	files := make([]rankFiles, 0, len(s.Ranks))
	for _, r := range s.Ranks {
		f, err := o.rank(r)
		if err != nil {
			for _, fd := range o.known {
				_ = unix.Close(fd)
			}
			return nil, refusal(err)
		}
		files = append(files, f)
	}
	s.ownTemporary(files)
	return files, nil
}

// checkScript: the file is the node's, and it was written for the user. The program that runs it would say that it can't be opened
// as if that were the user's matter.
func (s *Spec) checkScript() *api.Refusal {
	if !s.SwitchUser || len(s.Ranks) == 0 {
		return nil
	}
	fd, err := unix.Open(filepath.Join(s.Dir, ScriptFile), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &api.Refusal{Blame: api.BlameUnknown, Text: fmt.Sprintf("script: %s: %v", filepath.Join(s.Dir, ScriptFile), err)}
	}
	_ = unix.Close(fd)
	return nil
}

func checkWorkDir(dir string) *api.Refusal {
	st, err := os.Stat(dir)
	switch {
	case err != nil:
		return refusal(fmt.Errorf("working directory: %w", plain(err)))
	case !st.IsDir():
		return &api.Refusal{Blame: api.BlameFiles, Text: fmt.Sprintf("working directory: %s is not a directory", dir)}
	}
	if err := unix.Faccessat(unix.AT_FDCWD, dir, unix.X_OK, unix.AT_EACCESS); err != nil {
		return refusal(fmt.Errorf("working directory: %s: %w", dir, err))
	}
	return nil
}

// refusal judges whose fault an error in opening the user's files is. It is never the node's
// alone: full quotas, running programs, read-only and hanging mounts are easily made.
func refusal(err error) *api.Refusal {
	whose := api.BlameUnknown
	if errors.Is(err, syscall.ENAMETOOLONG) {
		whose = api.BlameJob
	}
	for _, e := range filesErrors {
		if errors.Is(err, e) {
			whose = api.BlameFiles
		}
	}
	return &api.Refusal{Blame: whose, Text: err.Error()}
}

// filesErrors speak of the files themselves; others (EIO, ESTALE, ENOMEM ...) may speak of what they
// are reached through.
var filesErrors = []error{fs.ErrNotExist, fs.ErrPermission, fs.ErrExist, syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP, syscall.ENXIO,
	syscall.EINVAL, syscall.ETXTBSY, syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}

// plain drops the name of the system call, which says nothing to people.
func plain(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return fmt.Errorf("%s: %w", p.Path, p.Err)
	}
	return err
}

type opener struct {
	known map[string]int // by cleaned path; input has a prefix of its own
}

func (o *opener) rank(r RankSpec) (f rankFiles, err error) {
	input := r.Input
	if input == "" {
		input = os.DevNull
	}
	if f.in, err = o.open("<", input, unix.O_RDONLY); err != nil {
		return f, fmt.Errorf("input of rank %d: %w", r.Rank, err)
	}
	if f.out, err = o.output(r.Output); err != nil {
		return f, fmt.Errorf("output of rank %d: %w", r.Rank, err)
	}
	f.err = f.out
	if r.Error != "" {
		if f.err, err = o.output(r.Error); err != nil {
			return f, fmt.Errorf("error output of rank %d: %w", r.Rank, err)
		}
	}
	return f, nil
}

// output opens for appending in both modes: ranks and their children share files, and only
// appending keeps their lines whole. Truncation waits for Go, see [member.truncate]: a
// gang that is rolled back must not have emptied anything.
func (o *opener) output(path string) (int, error) {
	if path == "" {
		path = os.DevNull
	}
	const flags = unix.O_WRONLY | unix.O_APPEND | unix.O_CREAT
	fd, err := o.open(">", path, flags)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return -1, plain(err)
		}
		fd, err = o.open(">", path, flags)
	}
	return fd, err
}

// open does not wait: a FIFO without a reader is an error now and not a hang for ever.
func (o *opener) open(kind, path string, flags int) (int, error) {
	key := kind + filepath.Clean(path)
	if fd, ok := o.known[key]; ok {
		return fd, nil
	}
	fd, err := unix.Open(path, flags|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0o666)
	if err != nil {
		return -1, fmt.Errorf("%s: %w", path, err)
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("%s: %w", path, err)
	}
	o.known[key] = fd
	return fd, nil
}

// outputStarts is how much the outputs of each rank already have, before any rank has written:
// what one attempt wrote to a file that all attempts append to is known by that. What is no
// file has nothing.
func (m *member) outputStarts() [][2]int64 {
	size := func(fd int) int64 {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
			return 0
		}
		return st.Size
	}
	starts := make([][2]int64, len(m.spec.Ranks))
	for i := range m.files {
		starts[i] = [2]int64{size(m.files[i].out), size(m.files[i].err)}
	}
	return starts
}

// truncate empties the outputs of a job that asked for it.
func (m *member) truncate() {
	if m.spec.OpenMode != "truncate" {
		return
	}
	for _, f := range m.files {
		_ = unix.Ftruncate(f.out, 0) // a terminal or a pipe can't be: nothing to empty
		_ = unix.Ftruncate(f.err, 0)
	}
}

func closeFiles(files []rankFiles) []rankFiles {
	done := map[int]bool{}
	for _, f := range files {
		for _, fd := range []int{f.in, f.out, f.err} {
			if !done[fd] {
				done[fd] = true
				_ = unix.Close(fd)
			}
		}
	}
	return nil
}
