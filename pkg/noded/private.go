package noded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/cluster"
	"gangd/pkg/shim"
)

// Private are the directories that each member has for itself.
type Private struct {
	Dirs []string // none: all jobs share those of the machine
	Size int64    // of a member's, together, in bytes; 0: a part of the machine's memory
}

// privateShare is the part of the machine's memory that the private directories of one member may have
// unless the site says otherwise.
const privateShare = 4

// openPrivate says at start what could not be held later: jobs never share in silence what the site
// wants to be private.
func (d *Daemon) openPrivate() error {
	p := &d.opts.Private
	if len(p.Dirs) == 0 {
		return nil
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("private_dirs: needs root, gnoded runs as user id %d", os.Geteuid())
	}
	for i, dir := range p.Dirs {
		if err := checkPrivate(dir, p.Dirs[:i]); err != nil {
			return fmt.Errorf("private_dirs: %w", err)
		}
	}
	total := memTotal()
	if p.Size == 0 {
		p.Size = total / privateShare
	}
	if total > 0 && p.Size > total {
		return fmt.Errorf("private_size: %s, and the machine has %s of memory", cluster.Size(p.Size), cluster.Size(total))
	}
	private := &shim.Private{Dirs: p.Dirs, Size: p.Size}
	keep := []string{d.state.path, d.opts.BinDir, filepath.Dir(d.opts.Shim)}
	if d.opts.Commands != "" {
		keep = append(keep, filepath.Dir(d.opts.Commands))
	}
	for _, dir := range keep {
		if dir, err := filepath.Abs(dir); err == nil && private.Hides(dir) != "" && !slices.Contains(private.Keep, dir) {
			private.Keep = append(private.Keep, dir)
		}
	}
	slices.Sort(private.Keep) // what is above first
	d.private = private
	return nil
}

// checkPrivate refuses what can't be hidden from a job.
func checkPrivate(dir string, others []string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case real != filepath.Clean(dir):
		return fmt.Errorf("%s is %s: name that", dir, real)
	case slices.Contains([]string{"/", "/usr", "/etc", "/bin", "/lib", "/lib64", "/proc", "/sys", "/dev", "/run", "/var"}, real):
		return fmt.Errorf("%s: no program would run without what is there", dir)
	}
	for _, o := range others {
		if real == o || strings.HasPrefix(real, o+"/") || strings.HasPrefix(o, real+"/") {
			return errors.New(o + " and " + real + " lie in each other")
		}
	}
	return nil
}

// privateOf are the private directories of a member. What it needs of the machine's must not be hidden.
func (d *Daemon) privateOf(workDir string) (*shim.Private, *api.Refusal) {
	if d.private == nil {
		return nil, nil
	}
	if dir := d.private.Hides(workDir); dir != "" {
		return nil, refuse(api.BlameFiles, "working directory: %s: each job has a %s of its own on this node", workDir, dir)
	}
	return d.private, nil
}
