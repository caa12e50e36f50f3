package proc

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// The files of /proc and of a cgroup are small and are read often: plain system calls cost
// a third of what os.ReadFile does, which also registers each file with the poller.

// readFile fills buf with the beginning of a file; 0 when it can't be read.
func readFile(path string, buf []byte) int {
	fd, err := openRetry(path, syscall.O_RDONLY)
	if err != nil {
		return 0
	}
	defer syscall.Close(fd)
	got := 0
	for got < len(buf) {
		n, err := syscall.Read(fd, buf[got:])
		if err == syscall.EINTR {
			continue
		}
		if n <= 0 || err != nil {
			break
		}
		got += n
	}
	return got
}

func readAll(path string) ([]byte, error) {
	fd, err := openRetry(path, syscall.O_RDONLY)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer syscall.Close(fd)
	buf := make([]byte, 0, 4096)
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := syscall.Read(fd, buf[len(buf):cap(buf)])
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return buf, &os.PathError{Op: "read", Path: path, Err: err}
		}
		if n <= 0 {
			return buf, nil
		}
		buf = buf[:len(buf)+n]
	}
}

// writeFile writes one value to a control file that exists.
func writeFile(path, value string) error {
	fd, err := openRetry(path, syscall.O_WRONLY)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer syscall.Close(fd)
	for {
		if _, err = syscall.Write(fd, []byte(value)); err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		return &os.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}

func openRetry(path string, flags int) (int, error) {
	for {
		fd, err := syscall.Open(path, flags|syscall.O_CLOEXEC, 0)
		if err != syscall.EINTR {
			return fd, err
		}
	}
}

func readNames(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// readPIDs reads a file of one pid a line. A pid 0 is a process outside our pid namespace, which
// can't be signalled.
func readPIDs(path string) ([]int, error) {
	b, err := readAll(path)
	if err != nil {
		return nil, err
	}
	var pids []int
	for line := range bytes.FieldsSeq(b) {
		if pid, err := strconv.Atoi(string(line)); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
