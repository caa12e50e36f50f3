package script

import (
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/container"
)

// setContainerImage takes the name of an image, and writes it in the one way that nodes know.
func setContainerImage(a *Ask, v string) error {
	image, err := container.Parse(v)
	if err != nil {
		return bad(err.Error(), "write --container-image=nvcr.io/nvidia/pytorch:24.01-py3, or the path of an unpacked image")
	}
	return textInto(&a.container.Image, image.String())
}

func setContainerEnv(a *Ask, v string) error {
	for name := range strings.SplitSeq(v, ",") {
		if name == "" || strings.ContainsAny(name, "= \t") {
			return bad("want names of variables with commas", "write --container-env=PYTHONPATH,HF_HOME")
		}
		a.container.Env = append(a.container.Env, name)
	}
	return nil
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
	for _, o := range []string{"container-workdir", "container-mounts", "container-mount-home", "container-env"} {
		if a.By(o) != nil {
			return o
		}
	}
	return "container-readonly"
}
