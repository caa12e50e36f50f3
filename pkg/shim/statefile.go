package shim

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// stateRetry is how often a result that could not be written is tried again.
const stateRetry = time.Second

// stateFile keeps [StateFile] of the directory that the shim is in.
type stateFile struct {
	f       *os.File
	size    int
	unsaved bool          // the newest result is not on disk
	tryAt   time.Duration // monotonic
}

// retry reports whether it is time to try an unsaved result again.
func (s *stateFile) retry() bool { return s.unsaved && clock(unix.CLOCK_MONOTONIC) >= s.tryAt }

// save keeps b: a result so that it survives the machine, anything else so that it
// survives the shim. Measured on ext4: 0.01 ms in place, 0.4 ms renamed and synced.
func (s *stateFile) save(b []byte, result bool) {
	if !result {
		if err := s.inPlace(b); err != nil {
			logf("write state: %v", err)
		}
		return
	}
	err := s.replace(b)
	s.unsaved = err != nil
	if err != nil {
		logf("write result, will be tried again in %v: %v", stateRetry, err)
		s.tryAt = clock(unix.CLOCK_MONOTONIC) + stateRetry
	}
}

// inPlace is one write: a shim killed in the middle of it is what the padding is for, no
// longer text of before can follow a shorter one.
func (s *stateFile) inPlace(b []byte) error {
	if s.f == nil {
		f, err := os.OpenFile(StateFile, os.O_WRONLY|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		s.f = f
	}
	padded := append([]byte(nil), b...)
	for len(padded) < s.size {
		padded = append(padded, '\n')
	}
	s.size = len(b)
	_, err := s.f.WriteAt(padded, 0)
	return err
}

// replace renames before it syncs: one journal commit for both. A crash in between leaves
// a state that was never told, which is as good as none.
func (s *stateFile) replace(b []byte) error {
	if s.f != nil {
		_ = s.f.Close()
	}
	f, err := os.OpenFile(StateFile+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		s.f = nil
		return err
	}
	s.f, s.size = f, len(b)
	if _, err := f.Write(b); err != nil {
		return err
	}
	if err := os.Rename(StateFile+".new", StateFile); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return syncDir(".")
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// ReadState reads what the shim of dir wrote last: for when it does not answer any more.
func ReadState(dir string) (*State, error) {
	b, err := os.ReadFile(filepath.Join(dir, StateFile))
	if err != nil {
		return nil, err
	}
	s := &State{}
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, StateFile), err)
	}
	return s, nil
}

// ReadSpec reads what a shim was started with.
func ReadSpec(dir string) (*Spec, error) {
	b, err := os.ReadFile(filepath.Join(dir, SpecFile))
	if err != nil {
		return nil, err
	}
	s := &Spec{}
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, SpecFile), err)
	}
	return s, nil
}
