package engine

import (
	"path"
	"slices"

	"gangd/pkg/api"
	"gangd/pkg/core/container"
)

// checkContainer refuses what no node could run. That of a step may be one that is there, by its name alone.
func checkContainer(c *api.Container, ofStep bool) error {
	if c == nil {
		return nil
	}
	image, err := container.Parse(c.Image)
	named := c.Name != ""
	switch {
	case named && !container.IsName(c.Name):
		return api.Errorf(api.CodeInvalid, "container.name %q: want a name of letters, digits and . _ -", c.Name)
	case !slices.Contains([]string{api.UseAny, api.UseNew, api.UseThere}, c.Use):
		return api.Errorf(api.CodeInvalid, "container.use %q: want %s or %s", c.Use, api.UseNew, api.UseThere)
	case named && ofStep && c.Image == "":
	case err != nil:
		return api.Errorf(api.CodeInvalid, "container.image: %v", err)
	case image.String() != c.Image:
		return api.Errorf(api.CodeInvalid, "container.image %q: write it as %s", c.Image, image)
	}
	var paths []struct{ name, path string }
	if c.WorkDir != "" {
		paths = append(paths, struct{ name, path string }{"container.work_dir", c.WorkDir})
	}
	for _, m := range c.Mounts {
		paths = append(paths, struct{ name, path string }{"container.mounts.source", m.Source},
			struct{ name, path string }{"container.mounts.target", m.Target})
	}
	for _, p := range paths {
		if !path.IsAbs(p.path) {
			return api.Errorf(api.CodeInvalid, "%s %q is not absolute", p.name, p.path)
		}
	}
	for _, m := range c.Mounts {
		if path.Clean(m.Target) == "/" {
			return api.Errorf(api.CodeInvalid, "container.mounts.target: nothing can be mounted on /, the image is there")
		}
	}
	return nil
}
