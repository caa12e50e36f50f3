package shim

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// followPoll is how often a followed file is looked at. Inotify sees nothing of what other
// hosts write to a shared disk, which is where most logs are.
const followPoll = 50 * time.Millisecond

// The exit status of a process that reads a log for a user, or writes behind it, where it could not.
const (
	ReadFailed = 1 + iota
	_          // the usage
	ReadNoFile
	ReadDenied
)

// ReadStatus is that status for an error of [ReadLog] or [AppendLog].
func ReadStatus(err error) int {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return ReadNoFile
	case errors.Is(err, os.ErrPermission):
		return ReadDenied
	}
	return ReadFailed
}

// ReadLog copies a file to w from an offset (from the end when negative), and with follow
// goes on with what is appended, until w is gone. A file that is not there yet is waited
// for when followed; one that was truncated is read from its beginning again. With head, eight
// bytes come first: the offset of what follows, which only the reader knows of a tail.
func ReadLog(w io.Writer, path string, offset int64, follow, head bool) error {
	f, size, err := openLog(w, path, follow)
	if err != nil {
		return err
	}
	defer f.Close()
	if offset < 0 {
		offset = max(0, size+offset)
	}
	if head {
		if _, err := w.Write(binary.BigEndian.AppendUint64(nil, uint64(offset))); err != nil {
			return err
		}
	}
	for {
		n, err := io.Copy(w, io.NewSectionReader(f, offset, 1<<62-offset))
		offset += n
		if err != nil || !follow {
			return err
		}
		if st, err := f.Stat(); err == nil && st.Size() < offset {
			offset = 0
			continue
		}
		if n == 0 {
			if unread(w) {
				return nil
			}
			time.Sleep(followPoll)
		}
	}
}

func openLog(w io.Writer, path string, follow bool) (*os.File, int64, error) {
	for {
		f, size, err := openRegular(path, os.O_RDONLY)
		if err == nil || !follow || !errors.Is(err, os.ErrNotExist) {
			return f, size, err
		}
		if unread(w) {
			return nil, 0, io.ErrClosedPipe
		}
		time.Sleep(followPoll)
	}
}

// unread reports whether nobody reads w any more. A gnoded that was killed can't end the
// process that follows for it, and a quiet file gives no write that would fail.
func unread(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	p := []unix.PollFd{{Fd: int32(f.Fd())}}
	n, _ := unix.Poll(p, 0)
	return n == 1 && p[0].Revents&unix.POLLERR != 0
}
