package noded

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/lab/registry"
	"gangd/pkg/node/shim"
)

// openTree lets other users read a tree, and makes it differ by a file.
func openTree(t *testing.T, root, word string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(root, "etc/os-release"), []byte("ID="+word+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestImport: an image of a registry is imported once for all jobs that want it, as the user, with its digest
// and its environment; a moved tag is another image, and an attempt that names the digest runs the old one.
func TestImport(t *testing.T) {
	needRoot(t)
	c, r := newController(t), registry.New(t)
	root := imageDir(t, "bash", "cat", "sleep")
	openTree(t, root, "one")
	first := r.Push(t, "1", root, "PATH=/bin:/image", "LAB=image", "KEPT=image")
	r.WithPodman(t)
	cache := filepath.Join(t.TempDir(), "images")
	for at := filepath.Dir(cache); at != "/tmp" && at != "/"; at = filepath.Dir(at) {
		_ = os.Chmod(at, 0o755)
	}
	o := c.options(t.TempDir())
	o.Containers = Containers{On: true, Import: Import{Driver: "podman", Cache: cache, Timeout: time.Minute}}
	c.run(o)
	work := t.TempDir()
	script := "#!/bin/bash\ncat /etc/os-release\necho $PATH $LAB $KEPT\n[ -S \"$GANG_SOCKET\" ] && echo socket\n"
	release := r.Hold()
	box := &api.Container{Image: r.Name("1"), Env: []string{"KEPT"}}
	want := func(box *api.Container, digest string) func(*api.Assignment, *api.Spec) {
		return func(a *api.Assignment, s *api.Spec) {
			contained(work, box)(a, s)
			s.Env = append(s.Env, "LAB=job", "KEPT=job")
			a.Body.Image = digest
		}
	}
	var keys []api.MemberKey
	for job := int64(1); job <= 8; job++ {
		keys = append(keys, c.desire(job, 1, 1, script, want(box, "")))
	}
	c.until("word of the import", func() bool {
		far := c.latest[keys[0]].Importing
		return far.Total > 0 && far.Bytes > 0 && far.Bytes < far.Total && c.latest[keys[0]].Phase == api.PhasePreparing
	})
	release()
	for i, k := range keys {
		a := c.untilPhase(k, api.PhaseStopped)
		b, _ := os.ReadFile(filepath.Join(work, fmt.Sprintf("gang-%d.out", i+1)))
		if a.Image != first || a.Importing != (api.Import{}) || !strings.HasPrefix(string(b), "ID=one\n/bin:/image:") || !strings.HasSuffix(string(b), " image job\nsocket\n") {
			t.Errorf("job %d: %+v\n%s", i+1, a, b)
		}
	}
	if n := r.Layers(); n != 1 {
		t.Errorf("the layer was fetched %d times", n)
	}
	openTree(t, root, "two")
	if second := r.Push(t, "1", root); second == first {
		t.Fatal("the same")
	}
	for job, x := range map[int64]struct{ digest, word string }{11: {"", "two"}, 12: {first, "one"}} {
		k := c.desire(job, 2, 1, "#!/bin/bash\ncat /etc/os-release\n", want(box, x.digest))
		a := c.untilPhase(k, api.PhaseStopped)
		if b, _ := os.ReadFile(filepath.Join(work, fmt.Sprintf("gang-%d.out", job))); string(b) != "ID="+x.word+"\n" || a.Image == "" {
			t.Errorf("job %d: %q %+v", job, b, a)
		}
	}
	if n := r.Layers(); n != 2 {
		t.Errorf("layers were fetched %d times", n)
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "stage.*")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if f := c.hellos[0].Features; !slices.Equal(f, []string{"container-dir", "container-podman"}) {
		t.Errorf("features %v", f)
	}
}

// TestImportRefused: what can't be imported is refused by name before a rank runs, and leaves nothing.
func TestImportRefused(t *testing.T) {
	needRoot(t)
	c, r := newController(t), registry.New(t)
	root := imageDir(t, "bash")
	r.Push(t, "1", root)
	r.WithPodman(t)
	host := r.Host()
	broken := imageDir(t, "bash")
	openTree(t, broken, "broken")
	r.Push(t, "broken", broken)
	r.Spoil("broken")
	state := t.TempDir()
	o := c.options(state)
	for at := state; at != "/tmp" && at != "/"; at = filepath.Dir(at) {
		_ = os.Chmod(at, 0o755)
	}
	o.Containers = Containers{On: true, Images: []string{root}, Import: Import{Driver: "podman", Registries: []string{host + "/lab/"}, Timeout: 30 * time.Second}}
	c.run(o)
	work := t.TempDir()
	for i, x := range []struct {
		image, want string
		blame       api.Blame
	}{
		{r.Name("2"), "manifest unknown", api.BlameFiles},
		{r.Name("broken"), "container image: " + r.Name("broken") + ": podman: exit status 125: ", api.BlameFiles},
		{"docker://" + host + "/other/tool:1", "container image: docker://" + host + "/other/tool:1 is not of " + host + "/lab/, from where this site's jobs may import", api.BlameUser},
		{"docker://" + host + "/labs:1", " is not of " + host + "/lab/", api.BlameUser},
		{"docker://docker.io/library/debian:12", " is not of " + host + "/lab/", api.BlameUser},
		{"/images/x.sqsh", "container image: /images/x.sqsh can't be imported on this node, which has podman", api.BlameUnfit},
		{"/images/x.sif", "container image: /images/x.sif can't be imported on this node, which has podman", api.BlameUnfit},
		{"docker-archive:/images/x.tar", "container image: docker-archive:/images/x.tar is not below " + root + ", where this site's images are", api.BlameUser},
		{"docker-archive:" + root + "/none.tar", "no such file or directory", api.BlameFiles},
		{"docker-archive:" + root + "/etc/os-release", "podman: exit status 125: ", api.BlameFiles},
		{"oci-archive:" + root + "/etc", "/etc is no file", api.BlameFiles},
		{"Debian", "container image: \"Debian\" is no name of an image", api.BlameJob},
	} {
		k := c.desire(int64(i+1), 1, 1, "#!/bin/bash\ntouch ran\n", contained(work, &api.Container{Image: x.image}))
		if a := c.untilPhase(k, api.PhaseRefused); !strings.Contains(a.Refusal.Text, x.want) || a.Refusal.Blame != x.blame || len(a.Ranks) != 0 {
			t.Errorf("%+v, want %s (%s)", a.Refusal, x.want, x.blame)
		}
		c.forget(k)
	}
	if _, err := os.Stat(filepath.Join(work, "ran")); err == nil {
		t.Error("a rank ran")
	}
	left, _ := os.ReadDir(filepath.Join(state, "images"))
	if len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// TestImportCalledOff: an import ends with the last job that waits for it.
func TestImportCalledOff(t *testing.T) {
	needRoot(t)
	c, r := newController(t), registry.New(t)
	r.Push(t, "1", imageDir(t, "bash"))
	r.WithPodman(t)
	state := t.TempDir()
	for at := state; at != "/tmp" && at != "/"; at = filepath.Dir(at) {
		_ = os.Chmod(at, 0o755)
	}
	o := c.options(state)
	o.Containers = Containers{On: true, Import: Import{Driver: "podman", Timeout: 5 * time.Second}}
	c.run(o)
	defer r.Hold()()
	box := &api.Container{Image: r.Name("1")}
	k := c.desire(1, 1, 1, "#!/bin/bash\n", contained(t.TempDir(), box))
	for deadline := time.Now().Add(20 * time.Second); r.Layers() == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not begun")
		}
	}
	c.stop(k, 0)
	c.untilPhase(k, api.PhaseStopped)
	late := c.desire(2, 1, 1, "#!/bin/bash\n", contained(t.TempDir(), box))
	if a := c.untilPhase(late, api.PhaseRefused); !strings.Contains(a.Refusal.Text, "not imported within 5 s") {
		t.Errorf("%+v", a.Refusal)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		left, _ := filepath.Glob(filepath.Join(state, "images", "stage.*"))
		if len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("left: %v", left)
		}
	}
}

// TestImageCache: above the high mark the images used longest ago go, down to the low one, and none that is in use;
// a new daemon finds what is whole.
func TestImageCache(t *testing.T) {
	state := t.TempDir()
	path := filepath.Join(state, "images")
	d := &daemon{opts: Options{Containers: Containers{Import: Import{High: 50, Low: 50}}}, log: slog.New(slog.DiscardHandler), jobs: map[int64][]*member{}}
	put := func(name string, age time.Duration) *image {
		m := &image{ID: name, Name: name, Bytes: 10, Used: time.Now().Add(-age), dir: filepath.Join(path, "0", name, "root")}
		if err := os.MkdirAll(m.dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := m.save(); err != nil {
			t.Fatal(err)
		}
		return m
	}
	for i, name := range []string{"a", "b", "c", "d", "e", "f"} {
		put(name, time.Duration(10-i)*time.Hour)
	}
	for _, bad := range []string{"stage.1", "0/torn", "0/g"} {
		if err := os.MkdirAll(filepath.Join(path, bad), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(filepath.Join(path, "0/f/root"), filepath.Join(path, "0/f/other")); err != nil { // not whole
		t.Fatal(err)
	}
	if err := os.Symlink("other", filepath.Join(path, "0/f/root")); err != nil {
		t.Fatal(err)
	}
	list := func() string {
		entries, err := os.ReadDir(path)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		_ = fs.WalkDir(os.DirFS(path), "0", func(p string, _ fs.DirEntry, _ error) error {
			if strings.Count(p, "/") == 1 {
				names = append(names, strings.TrimPrefix(p, "0/"))
			}
			return nil
		})
		return strings.Join(names, " ")
	}
	c := &images{path: path, flights: map[flightKey]*flight{}}
	c.load(d)
	d.images = c
	if got := list(); got != "0 a b c d e" {
		t.Errorf("after the start: %s", got)
	}
	d.tidyImages()
	if got := list(); got != "0 a b c d e" {
		t.Errorf("at the mark: %s", got)
	}
	named := func(id string) *image {
		return c.list[slices.IndexFunc(c.list, func(m *image) bool { return m.ID == id })]
	}
	used := &member{d: d, dir: t.TempDir()}
	used.image.Store(named("b"))
	d.jobs[1] = []*member{used}
	c.flights[flightKey{name: "c"}] = &flight{image: named("c")}
	step, err := json.Marshal(shim.Container{Image: named("d").dir})
	if err == nil {
		err = os.WriteFile(filepath.Join(used.dir, shim.StepContainerFile(7)), step, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if c.find(&image{ID: "a", Used: time.Now()}) == nil || c.find(&image{ID: "a", uid: 7}) != nil || c.find(&image{}) != nil || c.find(&image{ID: "f"}) != nil ||
		c.find(&image{ID: "a", Digest: "sha256:a"}) != nil {
		t.Error("not found, or found for another user")
	}
	c.list = append(c.list, put("h", 0))
	d.tidyImages() // 60: a member has b, who imports c has not got it yet, a step runs in d, a was used
	if got := list(); got != "0 a b c d h" {
		t.Errorf("after it: %s", got)
	}
}
