package container

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Driver is one way to fetch and unpack images. Each is a program whose command lines are public:
// they are told where everything goes, so that nothing of an import is left but its directory.
type Driver struct {
	Name  string // of the program, and the word of container_driver
	kinds []Kind
	// steps unpack an image into stage/root.
	steps func(m Image, stage string) []Step
	// ask prints what a tag is now, see [Content]; nil: it can't be asked.
	ask func(m Image, stage string) []string
}

// Step is a command line.
type Step struct {
	Args []string
	Env  []string // NAME=value, beside the user's own
	Word string   // what its standard output is, one of the below; empty: nothing
}

// What a step's output is.
const (
	WordID     = "id"     // what takes the place of IDPlace in later steps
	WordConfig = "config" // see [ReadConfig]
	WordEnv    = "env"    // lines of NAME=value
)

// IDPlace stands in a command line for what a step before has printed.
const IDPlace = "{ID}"

// Root is the directory below its stage into which an image is unpacked.
const Root = "root"

// Drivers gives all of them.
func Drivers() []*Driver { return []*Driver{podman, enroot, apptainer} }

// DriverOf gives the one of a name; nil: there is none.
func DriverOf(name string) *Driver {
	if i := slices.IndexFunc(Drivers(), func(d *Driver) bool { return d.Name == name }); i >= 0 {
		return Drivers()[i]
	}
	return nil
}

// Feature is what nodes with it say of themselves.
func (d *Driver) Feature() string { return "container-" + d.Name }

// Takes reports whether it can import images of a kind.
func (d *Driver) Takes(k Kind) bool { return slices.Contains(d.kinds, k) }

// Import gives the command lines that unpack an image into stage/root, in this order.
func (d *Driver) Import(m Image, stage string) []Step { return d.steps(m, stage) }

// Ask gives the command line that asks what a tag is now, without fetching it; nil: this driver
// can't.
func (d *Driver) Ask(m Image, stage string) []string {
	if d.ask == nil || m.Kind != Registry {
		return nil
	}
	return d.ask(m, stage)
}

var podman = &Driver{Name: "podman", kinds: []Kind{Registry, DockerArchive, OCIArchive},
	steps: func(m Image, stage string) []Step {
		at := podmanAt(stage)
		return []Step{
			{Args: append(at, "pull", "--quiet", m.String()), Word: WordID},
			{Args: append(at, "image", "inspect", "--format", "{{.Digest}} {{json .Config.Env}}", IDPlace), Word: WordConfig},
			{Args: append(at, "create", "--quiet", "--pull=never", "--network=none", "--name=unpack", IDPlace, "/")},
			{Args: append(at, "export", "--output", path.Join(stage, "root.tar"), "unpack")},
			{Args: []string{"tar", "--extract", "--exclude=dev/*", "--file", path.Join(stage, "root.tar"), "--directory", path.Join(stage, Root)}},
		}
	},
	ask: func(m Image, stage string) []string { return append(podmanAt(stage), "manifest", "inspect", m.Ref()) },
}

// podmanAt has podman keep all that it makes in the stage. A user without ranges in /etc/subuid gets all
// files as his own, as he gets them in the end anyway. It takes no long name of a runroot, so that this one
// counts from the stage, which commands are run in.
func podmanAt(stage string) []string {
	return slices.Clip([]string{"podman", "--log-level=error", "--root", path.Join(stage, "podman"), "--runroot", "run",
		"--storage-driver=vfs", "--storage-opt=vfs.ignore_chown_errors=true", "--cgroup-manager=cgroupfs", "--events-backend=none"})
}

var enroot = &Driver{Name: "enroot", kinds: []Kind{Registry, Squash},
	steps: func(m Image, stage string) []Step {
		env := []string{"ENROOT_DATA_PATH=" + stage, "ENROOT_TEMP_PATH=" + stage, "ENROOT_RUNTIME_PATH=" + path.Join(stage, "run")}
		file := m.Path
		var steps []Step
		if m.Kind == Registry {
			file = path.Join(stage, "image.sqsh")
			steps = append(steps, Step{Args: []string{"enroot", "import", "--output", file, "docker://" + m.Host + "#" + m.Name + m.version()}, Env: env})
		}
		return append(steps, Step{Args: []string{"enroot", "create", "--name", Root, file}, Env: env},
			// What the image brings of an environment is put there by its import.
			Step{Args: []string{"sh", "-c", `test ! -f "$1" || cat "$1"`, "sh", path.Join(stage, Root, "etc/environment")}, Word: WordEnv})
	},
}

var apptainer = &Driver{Name: "apptainer", kinds: []Kind{Registry, SIF, DockerArchive, OCIArchive},
	steps: func(m Image, stage string) []Step {
		return []Step{{Args: []string{"apptainer", "--silent", "build", "--sandbox", "--fix-perms", "--force", path.Join(stage, Root), m.String()},
			Env: []string{"APPTAINER_TMPDIR=" + stage}}}
	},
}

// Content is what a tag of a registry is.
type Content struct {
	ID   string // sha256 of the image's configuration, which names every layer
	Then string // digest of a manifest to ask about instead: the tag is a list, and this is the entry for the machine
}

// ReadManifest reads what a registry has of a tag, for a machine of this architecture (as Go names it).
func ReadManifest(text []byte, arch string) (Content, error) {
	var m struct {
		Config    struct{ Digest string }
		Manifests []struct {
			Digest   string
			Platform struct{ Architecture, OS string }
		}
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return Content{}, fmt.Errorf("manifest: %w", err)
	}
	if IsDigest(m.Config.Digest) {
		return Content{ID: m.Config.Digest}, nil
	}
	for _, e := range m.Manifests {
		if e.Platform.OS == "linux" && e.Platform.Architecture == arch && IsDigest(e.Digest) {
			return Content{Then: e.Digest}, nil
		}
	}
	if len(m.Manifests) > 0 {
		return Content{}, fmt.Errorf("the image is not for linux/%s", arch)
	}
	return Content{}, errors.New("manifest: it names no configuration")
}

// ReadConfig reads what podman says of an image: its digest and the environment that it brings.
func ReadConfig(text string) (digest string, env []string, err error) {
	digest, list, _ := strings.Cut(strings.TrimSpace(text), " ")
	if err := json.Unmarshal([]byte(list), &env); err != nil || !IsDigest(digest) {
		return "", nil, fmt.Errorf("image inspect: not understood: %q", text)
	}
	return digest, env, nil
}
