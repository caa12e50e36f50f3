package auth

import (
	"errors"
	"net"
	"os"
	"path/filepath"

	"gangd/pkg/wire/dirlock"
)

// ListenUnix opens the socket on which the kernel tells who calls. It takes the socket's
// place in one step: bound under another name, then renamed over what a daemon before
// left. So there is always a socket at path, and a client that comes between two daemons
// is refused by the kernel, which it tells from "there is no cluster" and tries again. For
// the same reason it stays when this one ends. Everyone may connect, and enter the directory
// where that is made here, whatever the umask; who they are decides.
//
// Nothing here keeps a second daemon from the path: the caller holds a lock.
func ListenUnix(path string) (net.Listener, error) {
	if err := OpenDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	fresh := path + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: fresh, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err = os.Chmod(fresh, 0o666); err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

// OpenDir makes a directory that everybody may enter, and those above it; one that is there is
// left as it is.
func OpenDir(dir string) error { return dirlock.Open(dir, 0o755) }
