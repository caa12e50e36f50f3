package script

import (
	"strings"
	"testing"

	"gangd/pkg/api"
)

func TestContainerOptions(t *testing.T) {
	build := func(lines ...string) (*api.Container, string) {
		text := "#!/bin/sh\n"
		for _, l := range lines {
			text += "#GANG --" + l + "\n"
		}
		req, _, err := buildOf(text)
		if err != nil {
			return nil, err.Error()
		}
		return req.Spec.Container, ""
	}
	c, err := build("container-image=dir:/images/torch", "container-mounts=/data:/data:ro,/scratch", "container-workdir=/w/", "container-mount-home", "container-readonly")
	want := api.Container{Image: "/images/torch", WorkDir: "/w", Home: true, ReadOnly: true,
		Mounts: []api.ContainerMount{{Source: "/data", Target: "/data", ReadOnly: true}, {Source: "/scratch", Target: "/scratch"}}}
	if err != "" || c == nil || c.Image != want.Image || c.WorkDir != want.WorkDir || !c.Home || !c.ReadOnly || len(c.Mounts) != 2 || c.Mounts[0] != want.Mounts[0] || c.Mounts[1] != want.Mounts[1] {
		t.Errorf("%+v, %s", c, err)
	}
	if c, err := build("container-image='nvcr.io#nvidia/pytorch:24.01'", "container-env=A,B"); err != "" || c.Image != "docker://nvcr.io/nvidia/pytorch:24.01" || len(c.Env) != 2 || c.Env[1] != "B" {
		t.Errorf("%+v, %s", c, err)
	}
	if c, err := build(); c != nil || err != "" {
		t.Errorf("%+v, %s", c, err)
	}
	for line, want := range map[string]string{
		"container-image=images/../torch": "is no name of an image",
		"container-image=nvcr.io#torch":   "in quotes",
		"container-env=A=b":               "want names of variables",
		"container-env=A,":                "want names of variables",
		"container-env=A":                 "speaks of a container, and none is asked for",
		"container-mounts=data:/data":     "want SRC:DST[:ro] with absolute paths",
		"container-mounts=/data:/data:x":  "the flag x is not known",
		"container-mounts=/a:/b:ro:z":     "want SRC:DST[:ro] with absolute paths",
		"container-workdir=w":             "want an absolute path",
		"container-mounts=/data:/data":    "speaks of a container, and none is asked for",
		"container-readonly":              "speaks of a container, and none is asked for",
		"container-mount-home":            "speaks of a container, and none is asked for",
		"container-name=x":                "speaks of a container, and none is asked for",
		"container-name=../x":             "want a name of letters, digits and . _ -, at most 64",
		"container-name=.x":               "want a name of letters",
		"container-name=x:again":          "the flag again is not known: want auto, create, exec or no_exec",
		"container-save=/x":               "containers are not saved",
		"container-remap-root":            "no script is root in a container; give it to srun, for its steps",
		"container-entrypoint":            "the program is what runs in the container",
	} {
		if c, err := build(line); !strings.Contains(err, want) {
			t.Errorf("%s: %+v, %q, want %s", line, c, err, want)
		}
	}
}
