package shim

import (
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// openFile is os.OpenFile without the six system calls by which the runtime finds out that
// a regular file can't be polled: a member opens about ten.
func openFile(path string, flags int, mode uint32) (*os.File, error) {
	for {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, mode)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
		return os.NewFile(uintptr(fd), path), nil
	}
}

func readFile(path string) ([]byte, error) {
	f, err := openFile(path, unix.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	buf := make([]byte, 0, 4096) // a spec of a few ranks; more than that grows
	for {
		n, err := f.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return nil, err
		}
		if len(buf) == cap(buf) {
			buf = append(buf, make([]byte, cap(buf))...)[:len(buf)]
		}
	}
}

func writeFile(path string, b []byte, mode uint32) error {
	f, err := openFile(path, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// RemoveDir removes a member's directory. What is always in it goes by name; a directory
// with anything else is looked through.
func RemoveDir(dir string) error {
	for _, name := range [...]string{SocketFile, SpecFile, ScriptFile, StateFile} {
		_ = unix.Unlink(filepath.Join(dir, name))
	}
	if err := unix.Rmdir(dir); err == nil || err == unix.ENOENT {
		return nil
	}
	return os.RemoveAll(dir)
}
