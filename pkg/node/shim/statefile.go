package shim

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/core/checksum"
	"gangd/pkg/core/cmdline/when"
)

// stateRetry is how often a result that could not be written is tried again.
const stateRetry = time.Second

// stateFile keeps [StateFile] of the directory that the shim is in.
type stateFile struct {
	f           *os.File
	size        int
	holdsResult bool
	unsaved     bool          // the newest result is not on disk
	tryAt       time.Duration // monotonic
}

// retry reports whether it is time to try an unsaved result again.
func (s *stateFile) retry() bool { return s.unsaved && clock(unix.CLOCK_MONOTONIC) >= s.tryAt }

// save keeps b: a result so that it survives the machine, anything else so that it
// survives the shim.
//
// The first result of a small state is written over what was there, which was no result:
// one page in one write can't be torn by a kill of the shim, and what a crash of the machine
// tears was never told. It costs 0.25 ms on ext4; the rename of later ones 0.4 ms.
func (s *stateFile) save(b []byte, result bool) {
	b = []byte(checksum.Add(b, StateFile))
	if !result && !s.holdsResult { // later changes must not endanger the result in the file
		if err := s.inPlace(b, false); err != nil {
			logf("write state: %v", err)
		}
		return
	}
	var err error
	if s.holdsResult || len(b) > pageSize {
		err = s.replace(b)
	} else {
		err = s.inPlace(b, true)
	}
	s.holdsResult = true
	s.unsaved = err != nil
	if err != nil {
		logf("write result, will be tried again in %v: %v", when.Words(stateRetry), err)
		s.tryAt = clock(unix.CLOCK_MONOTONIC) + stateRetry
	}
}

// close ends the use of the file; its directory may go then.
func (s *stateFile) close() {
	if s.f != nil {
		_ = s.f.Close()
		s.f = nil
	}
}

// pageSize is the smallest page of any machine: so much is copied into a file in one go.
const pageSize = 4096

// inPlace is one write. The padding covers the rest of a longer text of before.
func (s *stateFile) inPlace(b []byte, sync bool) error {
	if s.f == nil {
		f, err := openFile(StateFile, unix.O_WRONLY|unix.O_CREAT, 0o600)
		if err != nil {
			return err
		}
		s.f = f
	}
	padded := append([]byte(nil), b...)
	for len(padded) < s.size {
		padded = append(padded, '\n')
	}
	s.size = len(padded)
	if _, err := s.f.WriteAt(padded, 0); err != nil || !sync {
		return err
	}
	if err := s.f.Sync(); err != nil {
		return err
	}
	return syncDir(".")
}

// replace renames before it syncs: one journal commit for both. A crash in between leaves
// a state that was never told, which is as good as none.
func (s *stateFile) replace(b []byte) error {
	f, err := openFile(StateFile+".new", unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(b); err != nil {
		return err
	}
	if err := os.Rename(StateFile+".new", StateFile); err != nil {
		return err
	}
	if s.f != nil { // another file has its name now
		_ = s.f.Close()
		s.f = nil
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return syncDir(".")
}

func syncDir(dir string) error {
	d, err := openFile(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// ReadState reads what the shim of dir wrote last: for when it does not answer any more. The
// error is [fs.ErrNotExist], or says how the file is damaged.
func ReadState(dir string) (*State, error) {
	return readRecord[State](dir, StateFile)
}

// ReadSpec reads what a shim was started with; errors as of [ReadState].
func ReadSpec(dir string) (*Spec, error) {
	return readRecord[Spec](dir, SpecFile)
}

// readRecord reads a file of a member's directory. Each is checked against what it was written
// with, under its own name, so that neither stands for the other.
func readRecord[T any](dir, name string) (*T, error) {
	b, err := readFile(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	r := new(T)
	if err = checksum.Check(b, name); err == nil {
		err = json.Unmarshal(b, r)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}
