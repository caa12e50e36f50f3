package engine

import (
	"strings"
	"testing"

	"gangd/pkg/api"
)

// TestCheckContainer: an image is called as package container writes it, and every path is one.
func TestCheckContainer(t *testing.T) {
	mount := func(source, target string) *api.Container {
		return &api.Container{Image: "/images/a", Mounts: []api.ContainerMount{{Source: "/data", Target: "/data"}, {Source: source, Target: target}}}
	}
	for _, c := range []struct {
		c    *api.Container
		want string
	}{
		{nil, ""},
		{&api.Container{Image: "/images/a"}, ""},
		{&api.Container{Image: "docker://docker.io/library/alpine:latest"}, ""},
		{&api.Container{Image: "::"}, "container.image: "},
		{&api.Container{Image: "alpine"}, `container.image "alpine": write it as docker://docker.io/library/alpine:latest`},
		{&api.Container{Image: "/images/a", WorkDir: "/x"}, ""},
		{&api.Container{Image: "/images/a", WorkDir: "x"}, `container.work_dir "x" is not absolute`},
		{mount("/src", "/dst"), ""},
		{mount("src", "/dst"), `container.mounts.source "src" is not absolute`},
		{mount("/src", "dst"), `container.mounts.target "dst" is not absolute`},
		{mount("/src", "/"), "container.mounts.target: nothing can be mounted on /, the image is there"},
		{mount("/src", "/a/.."), "container.mounts.target: nothing can be mounted on /, the image is there"},
		{mount("/", "/root"), ""},
		{&api.Container{Image: "/images/a", Name: "a-b.c_1"}, ""},
		{&api.Container{Image: "/images/a", Name: "../a"}, `container.name "../a": want a name of letters, digits and . _ -`},
		{&api.Container{Image: "/images/a", Name: "a", Use: api.UseNew}, ""},
		{&api.Container{Image: "/images/a", Use: "again"}, `container.use "again": want create or exec`},
		{&api.Container{Name: "a"}, "container.image: "},
	} {
		err := checkContainer(c.c, false)
		if got := errText(err); got != c.want && (!strings.HasSuffix(c.want, ": ") || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%+v: got %s, want %s", c.c, got, c.want)
		}
		if err != nil && api.CodeOf(err) != api.CodeInvalid {
			t.Errorf("%v is %s", err, api.CodeOf(err))
		}
	}
	if err := checkContainer(&api.Container{Name: "a"}, true); err != nil {
		t.Errorf("a step in one that is there: %v", err)
	}
	if err := checkContainer(&api.Container{}, true); err == nil {
		t.Error("a step in a container of no image and no name")
	}
}
