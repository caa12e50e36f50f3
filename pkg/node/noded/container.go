package noded

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/node/shim"
)

// Containers is whether and how jobs run in unpacked images here.
type Containers struct {
	On     bool
	Images []string // directories that images have to be below; none: any that the user reaches
	Mounts []string // SRC:DST[:ro], shown in every container
	Within []string // directories that what jobs mount has to be below; none: any that the user reaches
	Import Import
	mounts []shim.Mount
}

// openContainers says at start what could not be done later.
func (d *daemon) openContainers() error {
	c := &d.opts.Containers
	if !c.On {
		if c.Import.Driver != "" {
			return fmt.Errorf("container_driver: %s imports nothing where containers is not true", c.Import.Driver)
		}
		return nil
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("containers: needs root, gnoded runs as user id %d", os.Geteuid())
	}
	for _, text := range c.Mounts {
		f := strings.Split(text, ":")
		if len(f) < 2 || len(f) > 3 || !filepath.IsAbs(f[0]) || !filepath.IsAbs(f[1]) || len(f) == 3 && f[2] != "ro" {
			return fmt.Errorf("container_mounts: %q: want SRC:DST or SRC:DST:ro with absolute paths", text)
		}
		if _, err := os.Stat(f[0]); err != nil {
			return fmt.Errorf("container_mounts: %w", err)
		}
		c.mounts = append(c.mounts, shim.Mount{Source: f[0], Target: f[1], ReadOnly: len(f) == 3})
	}
	for _, dir := range c.Images {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return fmt.Errorf("container_images: %s is no directory", dir)
		}
	}
	for i, dir := range c.Within {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return fmt.Errorf("container_mount_dirs: %w", err)
		}
		c.Within[i] = real // mounts are compared by where they are
	}
	return d.openImages()
}

// features are those of the site, and what this node can do.
func (d *daemon) features() []string {
	features := slices.Clone(d.now().Features)
	if !d.opts.Containers.On {
		return features
	}
	own := []string{api.FeatureContainer}
	if d.images != nil {
		own = append(own, d.images.driver.Feature())
	}
	for _, f := range own {
		if !slices.Contains(features, f) {
			features = append(features, f)
		}
	}
	return features
}

// contain writes the container of a member into its spec. Nothing of a job that asked for one ever runs
// outside of it.
func (d *daemon) contain(s *shim.Spec, spec *api.Spec, image *image) {
	if spec.Container != nil {
		s.StartDir = spec.Container.WorkDir
		s.Container = d.container(spec.Container, s, image, "")
		s.Container.Container = spec.Container.Name
		s.Container.Needs = shim.Interpreter(string(spec.Script))
	}
}

// container is what a member's processes, or those of a step of it that runs in a directory of its own, see as
// their root.
func (d *daemon) container(c *api.Container, s *shim.Spec, image *image, dir string) *shim.Container {
	site := &d.opts.Containers
	out := &shim.Container{InImage: shim.InImage{Name: c.Image, Digest: image.Digest, Env: image.Env, Keep: c.Env},
		Image: cmp.Or(image.dir, c.Image), ReadOnly: c.ReadOnly,
		Creds: s.Credentials()}
	out.Mounts = append(out.Mounts, site.mounts...)
	user := func(source, target string, readOnly bool) {
		out.Mounts = append(out.Mounts, shim.Mount{Source: source, Target: target, ReadOnly: readOnly, User: true})
	}
	if c.Home && s.Home != "" {
		user(s.Home, s.Home, false)
	}
	if s.WorkDir != "/" {
		user(s.WorkDir, s.WorkDir, false)
	}
	if dir != "" && dir != "/" && dir != s.WorkDir {
		user(dir, dir, false)
		out.Mounts[len(out.Mounts)-1].Maybe = true // a step whose directory is not there begins in /tmp, as in Slurm
	}
	for _, m := range c.Mounts {
		user(m.Source, m.Target, m.ReadOnly)
		out.Mounts[len(out.Mounts)-1].Within = site.Within
	}
	// Last, so that nothing hides them: what the member and gangd's commands need.
	ours := []string{s.Dir, filepath.Dir(d.opts.Shim), d.opts.BinDir}
	if d.opts.Commands != "" {
		ours = append(ours, filepath.Dir(d.opts.Commands))
	}
	if s.TaskHooks != nil { // each may be a link in a directory of them
		for _, p := range slices.Concat(s.TaskHooks.Prolog, s.TaskHooks.Epilog) {
			out.Mounts = append(out.Mounts, shim.Mount{Source: p, Target: p, ReadOnly: true})
		}
	}
	// Members may be in memory, by a link in the state directory. Where that is below what a container shows of the machine (/tmp, a
	// home), the link leads to a place in the container that has to be there.
	if members, err := filepath.EvalSymlinks(filepath.Dir(s.Dir)); err == nil && members != filepath.Dir(s.Dir) {
		real := filepath.Join(members, filepath.Base(s.Dir))
		out.Mounts = append(out.Mounts, shim.Mount{Source: real, Target: real, Maybe: true})
	}
	for i, dir := range ours {
		if dir != "" && !slices.Contains(ours[:i], dir) {
			out.Mounts = append(out.Mounts, shim.Mount{Source: dir, Target: dir, ReadOnly: i > 0 && dir != s.Dir, Maybe: i > 0})
		}
	}
	return out
}
