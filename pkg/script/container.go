package script

import (
	"strings"

	"gangd/pkg/api"
)

// setContainerImage takes the path of an unpacked image. Images of registries, and files that have to
// be unpacked first, are named by what they are: nothing ever runs outside instead.
func setContainerImage(a *Ask, v string) error {
	dir := strings.TrimPrefix(v, "dir:")
	switch {
	case strings.HasPrefix(dir, "/") && (strings.HasSuffix(dir, ".sqsh") || strings.HasSuffix(dir, ".squashfs") || strings.HasSuffix(dir, ".sif")):
		return bad("a packed image is not run", "unpack it once into a directory that the nodes see: unsquashfs -d DIR "+dir)
	case !strings.HasPrefix(dir, "/"):
		return bad("images are not imported from registries", "unpack it once into a directory that the nodes see, and give its absolute path")
	}
	return absoluteInto(&a.container.Image, dir)
}

// setContainerMounts reads pyxis' list: SRC:DST[:FLAGS], where flags are ro, rw, and those that say nothing here.
func setContainerMounts(a *Ask, v string) error {
	for item := range strings.SplitSeq(v, ",") {
		f := strings.Split(item, ":")
		m := api.ContainerMount{Source: f[0], Target: f[0]}
		if len(f) > 1 {
			m.Target = f[1]
		}
		if len(f) > 3 || !absolute(m.Source) || !absolute(m.Target) {
			return bad("want SRC:DST[:ro] with absolute paths", "write --container-mounts=/data:/data:ro")
		}
		if len(f) == 3 {
			for flag := range strings.SplitSeq(f[2], "+") {
				switch flag {
				case "ro":
					m.ReadOnly = true
				case "rw", "rbind", "bind", "private", "rprivate", "slave", "rslave":
				default:
					return bad("the flag "+flag+" is not known: want ro or rw", "")
				}
			}
		}
		a.container.Mounts = append(a.container.Mounts, m)
	}
	return nil
}

// notContained is an option of pyxis that would change what a job means.
func notContained(msg, hint string) func(*Ask, string) error {
	return func(*Ask, string) error { return bad(msg, hint) }
}

func absolute(path string) bool { return strings.HasPrefix(path, "/") }

func absoluteInto(into *string, v string) error {
	if !absolute(v) {
		return bad("want an absolute path", "")
	}
	if len(v) > 1 {
		v = strings.TrimRight(v, "/")
	}
	return textInto(into, v)
}

// containerOption is the option that spoke of a container.
func (a *Ask) containerOption() string {
	for _, o := range []string{"container-workdir", "container-mounts", "container-mount-home"} {
		if a.By(o) != nil {
			return o
		}
	}
	return "container-readonly"
}
