package shim

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// appendSeen is how far from its end a file is looked through for a text that stands there already: the caller
// may have died before it noted that it was written.
const appendSeen = 256 << 10

// AppendLog writes a text behind a file, whole or not at all. It makes no file, and writes nothing twice.
func AppendLog(path string, text []byte) error {
	f, size, err := openRegular(path, os.O_RDWR|os.O_APPEND)
	if err != nil {
		return err
	}
	defer f.Close()
	tail, err := io.ReadAll(io.NewSectionReader(f, max(0, size-appendSeen), appendSeen))
	if err != nil {
		return err
	}
	if bytes.Contains(tail, text) {
		return nil
	}
	if len(tail) > 0 && tail[len(tail)-1] != '\n' {
		text = append([]byte{'\n'}, text...)
	}
	n, err := f.Write(text)
	if err != nil && n > 0 {
		// A piece of it helps nobody. What somebody else has written behind it stays.
		if st, e := f.Stat(); e == nil && st.Size() == size+int64(n) {
			_ = f.Truncate(size)
		}
	}
	return err
}

// openRegular opens a file of a user's, and says how large it is. A FIFO is not waited for, a terminal not taken:
// what is no regular file is refused.
func openRegular(path string, flags int) (*os.File, int64, error) {
	f, err := os.OpenFile(path, flags|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, 0, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, st.Size(), nil
}
