// Package container reads the names of container images, and knows by which command lines podman, enroot
// and apptainer turn one into an unpacked directory. It runs nothing: nodes do, in
// their preparation of a job. Begin with [Parse].
//
// It must not know the cache of a node or who may use an image: those are noded's.
package container

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"gangd/pkg/api"
)

// Kind is where an image is, and how it is packed.
type Kind int

// Kinds of images.
const (
	Dir           Kind = iota // unpacked, in a directory of the node
	Registry                  // docker://HOST/NAME:TAG or @DIGEST
	Squash                    // FILE.sqsh
	SIF                       // FILE.sif
	DockerArchive             // docker-archive:FILE
	OCIArchive                // oci-archive:FILE
)

// Image is the name of an image.
type Image struct {
	Kind   Kind
	Path   string // of what is a directory or a file: absolute
	Host   string // of a registry, with its port
	Name   string // in the registry: "library/debian"
	Tag    string // "latest" where none is given, empty with a digest
	Digest string // "sha256:..."; empty: the tag's at the time
}

const digestPrefix = "sha256:"

// maxName bounds the name of a container.
const maxName = 64

// IsName reports whether a container may be called so: its name is that of a file, too.
func IsName(name string) bool {
	for i, c := range name {
		word := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
		if !word && (i == 0 || c != '.' && c != '-') {
			return false
		}
	}
	return name != "" && len(name) <= maxName
}

// Parse reads a name as people write it: as docker has it, as pyxis has it (HOST#NAME), with or without
// docker://, and paths. The error says what was expected.
func Parse(text string) (Image, error) {
	for prefix, kind := range map[string]Kind{"dir:": Dir, "docker-archive:": DockerArchive, "oci-archive:": OCIArchive} {
		if at, ok := strings.CutPrefix(text, prefix); ok {
			return file(kind, at)
		}
	}
	if strings.HasPrefix(text, "/") {
		switch path.Ext(text) {
		case ".sqsh", ".squashfs":
			return file(Squash, text)
		case ".sif":
			return file(SIF, text)
		case ".tar", ".tgz", ".gz", ".zip", ".img":
			return Image{}, fmt.Errorf("%s may be packed in several ways: write docker-archive:%s or oci-archive:%s", text, text, text)
		}
		return file(Dir, text)
	}
	return registry(text)
}

func file(kind Kind, at string) (Image, error) {
	if !strings.HasPrefix(at, "/") {
		return Image{}, fmt.Errorf("want an absolute path, not %q", at)
	}
	if strings.ContainsAny(at, "\x00\n") {
		return Image{}, fmt.Errorf("%q is no path", at)
	}
	if len(at) > 1 {
		at = strings.TrimRight(at, "/")
	}
	return Image{Kind: kind, Path: at}, nil
}

func registry(text string) (Image, error) {
	m := Image{Kind: Registry}
	rest, _ := strings.CutPrefix(text, "docker://")
	if scheme, _, ok := strings.Cut(rest, "://"); ok {
		return m, fmt.Errorf("images of %s:// are not known: want docker://HOST/NAME:TAG, docker-archive:FILE, oci-archive:FILE, or the path "+
			"of a directory, a .sqsh or a .sif", scheme)
	}
	wrong := fmt.Errorf("%q is no name of an image: want [HOST/]NAME[:TAG] or [HOST/]NAME@sha256:DIGEST", text)
	if host, name, ok := strings.Cut(rest, "#"); ok {
		if strings.Contains(host, "@") {
			return m, fmt.Errorf("credentials are not named with an image: they are those that you have stored (podman login, enroot's " +
				".credentials)")
		}
		m.Host, rest = host, name
		if !hostLike(host) {
			return m, wrong
		}
	} else if first, name, ok := strings.Cut(rest, "/"); ok && (strings.ContainsAny(first, ".:") || first == "localhost") {
		m.Host, rest = first, name
	} else if m.Host = hub; strings.Contains(rest, ".") && !strings.ContainsAny(rest, ":@/") {
		return m, fmt.Errorf("%q is a host without a name; where the rest was behind a #, a script has it in quotes, or / in its place", text)
	}
	name, digest, pinned := strings.Cut(rest, "@")
	if pinned {
		if !isDigest(digest) {
			return m, wrong
		}
		m.Digest = digest
	}
	m.Name = name
	if at := strings.LastIndexByte(name, ':'); at >= 0 {
		m.Name, m.Tag = name[:at], name[at+1:]
		if !word(m.Tag, "._-ABCDEFGHIJKLMNOPQRSTUVWXYZ") || len(m.Tag) > 128 {
			return m, wrong
		}
	}
	switch {
	case pinned:
		m.Tag = "" // the digest says it
	case m.Tag == "":
		m.Tag = "latest"
	}
	for part := range strings.SplitSeq(m.Name, "/") {
		if !word(part, "._-") || strings.Trim(part, "._-") != part {
			return m, wrong
		}
	}
	if m.Host == hub && !strings.Contains(m.Name, "/") {
		m.Name = "library/" + m.Name
	}
	if !hostLike(m.Host) || len(text) > 1024 {
		return m, wrong
	}
	return m, nil
}

// hub is the registry of names without one.
const hub = "docker.io"

// isDigest reports whether it is one: sha256: and 64 hexadecimal digits.
func isDigest(s string) bool {
	hex, ok := strings.CutPrefix(s, digestPrefix)
	return ok && len(hex) == 64 && strings.Trim(hex, "0123456789abcdef") == ""
}

func hostLike(s string) bool {
	return word(strings.ToLower(s), ".-:") && strings.Trim(s, "-:.") == s
}

// word: lower case letters, digits, and these.
func word(s, more string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789"+more) == ""
}

// String is the one way in which a job's record has it.
func (m Image) String() string {
	switch m.Kind {
	case Registry:
		return "docker://" + m.Ref()
	case DockerArchive:
		return "docker-archive:" + m.Path
	case OCIArchive:
		return "oci-archive:" + m.Path
	}
	return m.Path
}

// Ref is a registry's name as docker has it.
func (m Image) Ref() string { return m.repository() + m.version() }

func (m Image) repository() string { return m.Host + "/" + m.Name }

func (m Image) version() string {
	if m.Digest != "" {
		return "@" + m.Digest
	}
	return ":" + m.Tag
}

// At is the image with a digest in place of its tag.
func (m Image) At(digest string) Image {
	if m.Kind == Registry && digest != "" {
		m.Tag, m.Digest = "", digest
	}
	return m
}

// Features are those of nodes that can run it: one of them is enough.
func (m Image) Features() (features []string) {
	if m.Kind == Dir {
		return []string{api.FeatureContainer}
	}
	for _, d := range drivers() {
		if d.Takes(m.Kind) {
			features = append(features, d.Feature())
		}
	}
	return features
}

// EnvName is the variable that names the image which a process runs in. Who finds the name of its own there has an
// environment that was made for it.
const EnvName = "GANG_CONTAINER_IMAGE"

// Environ is an environment as an image changes it: what the image brings counts, but for the names in keep.
func Environ(env, image, keep []string) []string {
	name := func(v string) string { n, _, _ := strings.Cut(v, "="); return n }
	env = slices.Clone(env)
	for _, v := range image {
		at := slices.IndexFunc(env, func(o string) bool { return name(o) == name(v) })
		switch {
		case at < 0:
			env = append(env, v)
		case !slices.Contains(keep, name(v)):
			env[at] = v
		}
	}
	return env
}
