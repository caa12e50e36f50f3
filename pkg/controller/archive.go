package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"gangd/pkg/controller/engine"
)

// archive writes ended jobs to files of a directory, one for each month in which jobs ended,
// a line of JSON each. A file only grows, but for a last line that a crash cut off.
type archive struct{ dir string }

// newArchive sees now that it can be written, not when the first job is due.
func newArchive(dir string) (*archive, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("history_archive: %w", err)
	}
	probe, err := os.CreateTemp(dir, ".probe")
	if err != nil {
		return nil, fmt.Errorf("history_archive: %w", err)
	}
	return &archive{dir}, errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// put returns when the jobs are on the disk.
func (a *archive) put(ctx context.Context, past []engine.Past) error {
	var order []string
	lines := map[string]*bytes.Buffer{}
	for i := range past {
		p := &past[i]
		at := p.Job.EndTime
		if at.IsZero() { // ended before it ever started
			at = p.Job.SubmitTime
		}
		name := at.UTC().Format("2006-01") + ".jsonl"
		b := lines[name]
		if b == nil {
			b = &bytes.Buffer{}
			lines[name] = b
			order = append(order, name)
		}
		if err := json.NewEncoder(b).Encode(p); err != nil {
			return err
		}
	}
	for _, name := range order {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := appendLines(filepath.Join(a.dir, name), lines[name].Bytes()); err != nil {
			return err
		}
	}
	return syncDir(a.dir)
}

// appendLines adds whole lines to a file and waits for the disk. When it fails the file ends
// where it did.
func appendLines(path string, lines []byte) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	end, err := endOfLines(f)
	if err == nil {
		if err = f.Truncate(end); err == nil {
			_, err = f.WriteAt(lines, end)
		}
		if err == nil {
			err = f.Sync()
		}
		if err != nil {
			err = errors.Join(err, f.Truncate(end))
		}
	}
	return errors.Join(err, f.Close())
}

// endOfLines is the size of a file without a last line that has no end.
func endOfLines(f *os.File) (int64, error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	buf := make([]byte, 64<<10)
	for size > 0 {
		n := min(size, int64(len(buf)))
		if _, err := f.ReadAt(buf[:n], size-n); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(buf[:n], '\n'); i >= 0 {
			return size - n + int64(i) + 1, nil
		}
		size -= n
	}
	return 0, nil
}
