package container

import (
	"cmp"
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
	steps func(m Image, at Stage) []Step
	// ask prints what a tag is now, see [Content]; nil: it can't be asked.
	ask func(m Image, at Stage) []string
	// fetched are the files below the stage, as path.Match has them, that are there while an image is being
	// fetched and hold what has come, packed as it came; empty: that can't be told.
	fetched string
	version string // the argument with which it says its version
}

// Version is the command line that says which version it is, see [ReadVersion].
func (d *Driver) Version() []string { return []string{d.Name, d.version} }

// ReadVersion is the version in what it printed; empty: there is none.
func ReadVersion(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	words := strings.Fields(line)
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

// Stage is the directory of an import, which is the user's and gone with it.
type Stage struct {
	Dir string
	// Layers: overlays can be mounted on its file system, so that each layer is kept by itself. Else each is kept with
	// all below it, and an image of many takes many times its size.
	Layers bool
}

// Step is a command line.
type Step struct {
	Args []string
	Env  []string // NAME=value, beside the user's own
	Word string   // what its standard output is, one of the below; empty: nothing
}

// What a step's output is.
const (
	WordID      = "id"      // what takes the place of IDPlace in later steps
	WordConfig  = "config"  // see [ReadConfig]
	WordEnv     = "env"     // lines of NAME=value
	WordExports = "exports" // see [ReadExports]
)

// IDPlace stands in a command line for what a step before has printed.
const IDPlace = "{ID}"

// Root is the directory below its stage into which an image is unpacked.
const Root = "root"

// drivers gives all of them.
func drivers() []*Driver { return []*Driver{podman, enroot, apptainer} }

// DriverOf gives the one of a name; nil: there is none.
func DriverOf(name string) *Driver {
	if i := slices.IndexFunc(drivers(), func(d *Driver) bool { return d.Name == name }); i >= 0 {
		return drivers()[i]
	}
	return nil
}

// Feature is what nodes with it say of themselves.
func (d *Driver) Feature() string { return "container-" + d.Name }

// Takes reports whether it can import images of a kind.
func (d *Driver) Takes(k Kind) bool { return slices.Contains(d.kinds, k) }

// Import gives the command lines that unpack an image into stage/root, in this order. At last what is no use in a
// container, and a danger on the node, is taken away: devices, and programs that give rights.
func (d *Driver) Import(m Image, at Stage) []Step {
	root := path.Join(at.Dir, Root)
	return append(d.steps(m, at),
		Step{Args: []string{"find", root, "(", "-type", "b", "-o", "-type", "c", ")", "-delete"}},
		Step{Args: []string{"find", root, "-type", "f", "-perm", "/6000", "-exec", "chmod", "ug-s", "{}", "+"}})
}

// Fetched are the files below the stage that hold what has been fetched so far; empty: that can't be told.
func (d *Driver) Fetched() string { return d.fetched }

// Ask gives the command line that asks what a tag is now, without fetching it; nil: this driver
// can't.
func (d *Driver) Ask(m Image, at Stage) []string {
	if d.ask == nil || m.Kind != Registry {
		return nil
	}
	return d.ask(m, at)
}

var podman = &Driver{Name: "podman", kinds: []Kind{Registry, DockerArchive, OCIArchive}, fetched: "storage*/*", version: "--version",
	steps: func(m Image, at Stage) []Step {
		podman, packed := podmanAt(at), path.Join(at.Dir, "root.tar")
		return []Step{
			{Args: append(podman, "pull", "--quiet", m.String()), Word: WordID},
			{Args: append(podman, "image", "inspect", "--format", "{{.Digest}} {{json .Config.Env}}", IDPlace), Word: WordConfig},
			{Args: append(podman, "create", "--quiet", "--pull=never", "--network=none", "--name=unpack", IDPlace, "/")},
			{Args: append(podman, "export", "--output", packed, "unpack")},
			{Args: []string{"tar", "--extract", "--no-same-owner", "--exclude=dev/*", "--file", packed, "--directory", path.Join(at.Dir, Root)}},
		}
	},
	ask: func(m Image, at Stage) []string { return append(podmanAt(at), "manifest", "inspect", m.Ref()) },
}

// podmanAt has podman keep all that it makes in the stage. A user without ranges in /etc/subuid gets all
// files as his own, as he gets them in the end anyway. It takes no long name of a runroot, so that this one
// counts from the stage, which commands are run in.
func podmanAt(at Stage) []string {
	storage := "vfs"
	if at.Layers {
		storage = "overlay"
	}
	return slices.Clip([]string{"podman", "--log-level=fatal", "--root", path.Join(at.Dir, "podman"), "--runroot", "run",
		"--storage-driver=" + storage, "--storage-opt=" + storage + ".ignore_chown_errors=true", "--cgroup-manager=cgroupfs",
		"--events-backend=none"})
}

var enroot = &Driver{Name: "enroot", kinds: []Kind{Registry, Squash}, version: "version",
	steps: func(m Image, at Stage) []Step {
		stage := at.Dir
		env := []string{"ENROOT_DATA_PATH=" + stage, "ENROOT_TEMP_PATH=" + stage, "ENROOT_CACHE_PATH=" + path.Join(stage, "cache"),
			"ENROOT_RUNTIME_PATH=" + path.Join(stage, "run")}
		file := m.Path
		var steps []Step
		if m.Kind == Registry {
			file = path.Join(stage, "image.sqsh")
			steps = append(steps, Step{Args: []string{"enroot", "import", "--output", file, "docker://" + enrootRef(m)}, Env: env})
		}
		return append(steps, Step{Args: []string{"enroot", "create", "--name", Root, file}, Env: env},
			// What the image brings of an environment is put there by its import.
			Step{Args: catArgs(path.Join(stage, Root, "etc/environment")), Word: WordEnv})
	},
}

// catArgs print a file of the image where there is one.
func catArgs(file string) []string {
	return []string{"sh", "-c", `test ! -f "$1" || cat "$1"`, "sh", file}
}

// enrootRef is a registry's name as all its versions from 3.0 to 4.1 take it: Docker Hub by the host that serves it, and
// a digest as a tag.
func enrootRef(m Image) string {
	host := m.Host
	if host == hub {
		host = "registry-1.docker.io"
	}
	return host + "#" + m.Name + ":" + cmp.Or(m.Digest, m.Tag)
}

var apptainer = &Driver{Name: "apptainer", kinds: []Kind{Registry, SIF, DockerArchive, OCIArchive}, version: "--version",
	steps: func(m Image, at Stage) []Step {
		stage := at.Dir
		root := path.Join(stage, Root)
		return []Step{{Args: []string{"apptainer", "--silent", "build", "--sandbox", "--fix-perms", "--force", root, m.String()},
			Env: []string{"APPTAINER_TMPDIR=" + stage, "APPTAINER_CACHEDIR=" + path.Join(stage, "cache")}},
			{Args: catArgs(path.Join(root, ".singularity.d/env/10-docker2singularity.sh")), Word: WordExports}}
	},
}

// Content is what a tag of a registry is.
type Content struct {
	ID   string // sha256 of the image's configuration, which names every layer
	Then string // digest of a manifest to ask about instead: the tag is a list, and this is the entry for the machine
	Size int64  // bytes of its layers, packed
}

// ReadManifest reads what a registry has of a tag, for a machine of this architecture (as Go names it).
func ReadManifest(text []byte, arch string) (Content, error) {
	var m struct {
		Config    struct{ Digest string }
		Layers    []struct{ Size int64 }
		Manifests []struct {
			Digest   string
			Platform struct{ Architecture, OS string }
		}
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return Content{}, fmt.Errorf("manifest: %w", err)
	}
	if isDigest(m.Config.Digest) {
		what := Content{ID: m.Config.Digest}
		for _, l := range m.Layers {
			what.Size += max(l.Size, 0)
		}
		return what, nil
	}
	for _, e := range m.Manifests {
		if e.Platform.OS == "linux" && e.Platform.Architecture == arch && isDigest(e.Digest) {
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
	if err := json.Unmarshal([]byte(list), &env); err != nil || !isDigest(digest) {
		return "", nil, fmt.Errorf("image inspect: not understood: %q", text)
	}
	return digest, env, nil
}

// ReadExports reads the environment that apptainer's build has written as a shell script: lines of export NAME="value" and
// export NAME="${NAME:-"value"}", in which a backslash stands before what a shell would take as its own. Other lines say nothing.
func ReadExports(text string) (env []string) {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "export ")
		name, value, _ := strings.Cut(rest, "=")
		inner, whole := strings.CutPrefix(value, `"${`+name+`:-"`)
		if whole {
			inner, whole = strings.CutSuffix(inner, `"}"`)
		} else if inner, whole = strings.CutPrefix(value, `"`); whole && !strings.HasPrefix(inner, "${") {
			inner, whole = strings.CutSuffix(inner, `"`)
		} else {
			whole = false
		}
		if ok && whole && name != "" {
			env = append(env, name+"="+shellEscapes.Replace(inner))
		}
	}
	return env
}

var shellEscapes = strings.NewReplacer(`\\`, `\`, `\"`, `"`, "\\`", "`", `\$`, "$")
