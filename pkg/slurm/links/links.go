// Package links makes the names of Slurm's commands: symbolic links to gangd's programs.
//
// Nothing is changed unless everything can be: what stands in the way and is not a link of
// ours is named, all of it, before the first link is made.
//
// Begin with Make. It must not know what the commands do.
package links

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"gangd/pkg/core/cmdline"
	"gangd/pkg/wire/dirlock"
)

// Result is what [Make] did.
type Result struct {
	Dir     string   // absolute
	Made    []string // names, those that were right already included
	Missing []string // programs that are not beside gangd
}

// Make makes a link in dir, which is made too, for each name whose program is in bin. force
// replaces files and links that are not ours; a directory is never replaced.
func Make(dir, bin string, force bool) (*Result, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	r := &Result{Dir: dir}
	var inTheWay []string
	todo := map[string]string{}
	for _, c := range cmdline.Names {
		target := filepath.Join(bin, c.Program)
		if _, err := os.Stat(target); err != nil {
			r.miss(c.Program)
			continue
		}
		path := filepath.Join(dir, c.Name)
		what, err := standing(path, c.Program)
		switch {
		case err != nil:
			return nil, err
		case what == nothing, what == ours, what == others && force:
			todo[c.Name] = target
		default:
			inTheWay = append(inTheWay, c.Name)
		}
		r.Made = append(r.Made, c.Name)
	}
	if len(inTheWay) > 0 {
		return nil, refuse(dir, inTheWay, force)
	}
	if len(todo) == 0 {
		return nil, fmt.Errorf("no program of gangd's is in %s; install gqueue, gsubmit and the others beside gangd", bin)
	}
	if err := dirlock.Open(dir, 0o755); err != nil { // for everybody, whatever the umask
		return nil, fmt.Errorf("can't make %s: %w", dir, err)
	}
	for _, name := range r.Made {
		if err := place(filepath.Join(dir, name), todo[name]); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *Result) miss(program string) {
	for _, m := range r.Missing {
		if m == program {
			return
		}
	}
	r.Missing = append(r.Missing, program)
}

func refuse(dir string, names []string, force bool) error {
	if force {
		return fmt.Errorf("in %s there are directories called %s, which are not replaced; choose another directory", dir,
			strings.Join(names, ", "))
	}
	return fmt.Errorf("%s holds %s, not made by gangd; choose another directory, or replace them: gangd slurm-links -f %s", dir,
		strings.Join(names, ", "), dir)
}

// What stands at the place of a link.
type thing int

const (
	nothing thing = iota
	ours          // a link to the same program, wherever it was installed
	others
	directory
)

func standing(path, program string) (thing, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nothing, nil
	case err != nil:
		return others, err
	case info.IsDir():
		return directory, nil
	case info.Mode().Type() != fs.ModeSymlink:
		return others, nil
	}
	target, err := os.Readlink(path)
	if err != nil {
		return others, err
	}
	if filepath.Base(target) == program {
		return ours, nil
	}
	return others, nil
}

// place puts the link there in one step: a command that is called meanwhile finds the old
// one or the new one.
func place(path, target string) error {
	next := path + ".gangd-new"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(target, next); err != nil {
		return err
	}
	return os.Rename(next, path)
}
