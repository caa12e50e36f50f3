package noded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/node/proc"
	"gangd/pkg/node/shim"
)

// Private are the directories that each member has for itself.
type Private struct {
	Dirs []string // none: all jobs share those of the machine
	Path string   // a directory of the disk that they lie on; empty: in memory
	Size int64    // of a member's, together, in bytes; 0: a part of the machine's memory, or of the disk
}

// privateShare is the part of the machine's memory that the private directories of one member may have
// unless the site says otherwise.
const privateShare = 4

// privateDiskShare is the part of the disk likewise: so many members find room.
const privateDiskShare = 10

// openPrivate says at start what could not be held later: jobs never share in silence what the site
// wants to be private.
func (d *daemon) openPrivate() error {
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
	total := proc.MemTotal()
	private := &shim.Private{Dirs: p.Dirs}
	share, what := int64(privateShare), "the machine has %s of memory"
	if p.Path != "" {
		image, size, err := openImages(p.Path, total)
		if err != nil {
			return fmt.Errorf("private_path: %w", err)
		}
		private.Image, total, share, what = image, size, privateDiskShare, "the disk of private directories has %s"
	}
	if p.Size == 0 {
		p.Size = total / share
	}
	if total > 0 && p.Size > total {
		return fmt.Errorf("private_size: %s, and "+what, cluster.Size(p.Size), cluster.Size(total))
	}
	private.Size = p.Size
	keep := []string{d.state.path, d.opts.BinDir, filepath.Dir(d.opts.Shim)}
	if d.opts.Commands != "" {
		keep = append(keep, filepath.Dir(d.opts.Commands))
	}
	if members, err := filepath.EvalSymlinks(filepath.Join(d.state.path, membersDir)); err == nil {
		keep = append(keep, members) // they may lie in /dev/shm
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

// openImages tries what images need, and says how large the disk is: what is free of it may be in the hands of
// members of a daemon before.
func openImages(path string, memory int64) (*shim.Image, int64, error) {
	mkfs := ""
	for _, dir := range []string{"/usr/sbin", "/sbin", "/usr/local/sbin"} {
		if _, err := os.Stat(dir + "/mkfs.ext4"); err == nil && mkfs == "" {
			mkfs = dir + "/mkfs.ext4"
		}
	}
	if mkfs == "" {
		return nil, 0, errors.New("mkfs.ext4 is not installed: it is in the package e2fsprogs")
	}
	image := &shim.Image{Path: path, Mkfs: mkfs, Shared: memory / privateShare}
	if err := image.Try(); err != nil {
		return nil, 0, err
	}
	_, size, err := room(path)
	return image, size, err
}

// room is the space that is free at a path, and all that there is.
func room(path string) (free, total int64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, 0, fmt.Errorf("%s: %w", path, err)
	}
	return int64(st.Bavail) * st.Bsize, int64(st.Blocks) * st.Bsize, nil
}

// offerTmp settles how much temporary space jobs may ask for here together, and what each takes that does not
// ask. Members of a daemon before hold theirs already.
func (d *daemon) offerTmp() {
	switch {
	case d.private == nil: // counted alone: nothing holds them to it
		_, d.tmp, _ = room("/tmp")
	case d.private.Image == nil: // what each writes counts as its memory
		d.tmp = d.memory()
	default:
		free, _, _ := room(d.private.Image.Path)
		for _, m := range d.all() {
			if m.spec != nil && m.spec.Private != nil && m.spec.Private.Image != nil && !m.over.Load() {
				free += m.spec.Private.Size
			}
		}
		d.tmp, d.tmpEach = free, d.private.Size
	}
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
func (d *daemon) privateOf(workDir string, size int64) (*shim.Private, *api.Refusal) {
	if d.private == nil {
		return nil, nil
	}
	if dir := d.private.Hides(workDir); dir != "" {
		return nil, refuse(api.BlameFiles, "working directory: %s: each job has a %s of its own on this node", workDir, dir)
	}
	if size == 0 {
		return d.private, nil
	}
	p := *d.private
	p.Size = size
	return &p, nil
}
