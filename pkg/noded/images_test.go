package noded

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gangd/pkg/api"
)

// registry serves images as container registries do, and counts what was fetched.
type registry struct {
	*httptest.Server
	mu        sync.Mutex
	manifests map[string][]byte // by tag and by digest
	kinds     map[string]string
	blobs     map[string][]byte
	fetched   []string      // layers
	hold      chan struct{} // closed: layers are served; nil: at once
}

func newRegistry(t *testing.T) *registry {
	r := &registry{manifests: map[string][]byte{}, kinds: map[string]string{}, blobs: map[string][]byte{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// ServeHTTP implements [http.Handler].
func (r *registry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	at := strings.LastIndexByte(q.URL.Path, '/')
	last := q.URL.Path[at+1:]
	body, hold := []byte("{}"), r.hold
	kind, code := "application/json", http.StatusOK
	switch {
	case strings.Contains(q.URL.Path, "/manifests/"):
		if body = r.manifests[last]; body == nil {
			body, code = []byte(`{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}`), http.StatusNotFound
		} else {
			kind = r.kinds[last]
			w.Header().Set("Docker-Content-Digest", digestOf(body))
		}
	case strings.Contains(q.URL.Path, "/blobs/"):
		body, kind = r.blobs[last], "application/octet-stream"
		if !bytes.HasPrefix(body, []byte("{")) {
			r.fetched = append(r.fetched, last)
		} else {
			hold = nil
		}
	}
	r.mu.Unlock()
	if hold != nil && kind == "application/octet-stream" {
		select {
		case <-hold:
		case <-q.Context().Done():
			return
		}
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(code)
	if q.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}

// push makes a tag of a tree, and gives the digest of its manifest.
func (r *registry) push(t *testing.T, tag, root string, env ...string) string {
	t.Helper()
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	if err := w.AddFS(os.DirFS(root)); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	put := func(b []byte) string { r.blobs[digestOf(b)] = b; return digestOf(b) }
	text := func(v any) []byte {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	id := put(layer.Bytes())
	config := text(map[string]any{"architecture": runtime.GOARCH, "os": "linux", "config": map[string]any{"Env": env},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{id}}})
	const v2 = "application/vnd.docker.distribution.manifest.v2+json"
	manifest := text(map[string]any{"schemaVersion": 2, "mediaType": v2,
		"config": map[string]any{"mediaType": "application/vnd.docker.container.image.v1+json", "size": len(config), "digest": put(config)},
		"layers": []any{map[string]any{"mediaType": "application/vnd.docker.image.rootfs.diff.tar", "size": layer.Len(), "digest": id}}})
	for _, name := range []string{tag, digestOf(manifest)} {
		r.manifests[name], r.kinds[name] = manifest, v2
	}
	return digestOf(manifest)
}

func (r *registry) name(tag string) string {
	return "docker://" + strings.TrimPrefix(r.URL, "http://") + "/lab/tool:" + tag
}

// withPodman has podman speak http to the registry.
func (r *registry) withPodman(t *testing.T) {
	t.Helper()
	real, err := exec.LookPath("podman")
	if err != nil {
		t.Skip("podman is not installed")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for at := dir; at != "/tmp" && at != "/"; at = filepath.Dir(at) {
		_ = os.Chmod(at, 0o755)
	}
	for name, text := range map[string]string{
		"registries.conf": "[[registry]]\nlocation = \"" + strings.TrimPrefix(r.URL, "http://") + "\"\ninsecure = true\n",
		"podman":          "#!/bin/sh\nexport CONTAINERS_REGISTRIES_CONF=" + dir + "/registries.conf\nexec " + real + " \"$@\"\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func (r *registry) layers() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.fetched)
}

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
	c, r := newController(t), newRegistry(t)
	root := imageDir(t, "bash", "cat", "sleep")
	openTree(t, root, "one")
	first := r.push(t, "1", root, "PATH=/bin:/image", "LAB=image", "KEPT=image")
	r.withPodman(t)
	cache := filepath.Join(t.TempDir(), "images")
	for at := filepath.Dir(cache); at != "/tmp" && at != "/"; at = filepath.Dir(at) {
		_ = os.Chmod(at, 0o755)
	}
	o := c.options(t.TempDir())
	o.Containers = Containers{On: true, Import: Import{Driver: "podman", Cache: cache, Timeout: time.Minute}}
	c.run(o)
	work := t.TempDir()
	script := "#!/bin/bash\ncat /etc/os-release\necho $PATH $LAB $KEPT\n[ -S \"$GANG_SOCKET\" ] && echo socket\n"
	hold := make(chan struct{})
	r.hold = hold
	box := &api.Container{Image: r.name("1"), Env: []string{"KEPT"}}
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
	c.until("word of the import", func() bool { return c.latest[keys[0]].Importing > 0 && c.latest[keys[0]].Phase == api.PhasePreparing })
	close(hold)
	for i, k := range keys {
		a := c.untilPhase(k, api.PhaseStopped)
		b, _ := os.ReadFile(filepath.Join(work, fmt.Sprintf("gang-%d.out", i+1)))
		if a.Image != first || a.Importing != 0 || !strings.HasPrefix(string(b), "ID=one\n/bin:/image:") || !strings.HasSuffix(string(b), " image job\nsocket\n") {
			t.Errorf("job %d: %+v\n%s", i+1, a, b)
		}
	}
	if n := r.layers(); n != 1 {
		t.Errorf("the layer was fetched %d times", n)
	}
	openTree(t, root, "two")
	if second := r.push(t, "1", root); second == first {
		t.Fatal("the same")
	}
	for job, x := range map[int64]struct{ digest, word string }{11: {"", "two"}, 12: {first, "one"}} {
		k := c.desire(job, 2, 1, "#!/bin/bash\ncat /etc/os-release\n", want(box, x.digest))
		a := c.untilPhase(k, api.PhaseStopped)
		if b, _ := os.ReadFile(filepath.Join(work, fmt.Sprintf("gang-%d.out", job))); string(b) != "ID="+x.word+"\n" || a.Image == "" {
			t.Errorf("job %d: %q %+v", job, b, a)
		}
	}
	if n := r.layers(); n != 2 {
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
	c, r := newController(t), newRegistry(t)
	root := imageDir(t, "bash")
	r.push(t, "1", root)
	r.withPodman(t)
	host := strings.TrimPrefix(r.URL, "http://")
	broken := imageDir(t, "bash")
	openTree(t, broken, "broken")
	r.push(t, "broken", broken)
	for id, b := range r.blobs { // a layer that is not what its name says
		if bytes.Contains(b, []byte("ID=broken")) {
			r.blobs[id] = append(slices.Clone(b[:len(b)-1]), b[len(b)-1]+1)
		}
	}
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
		{r.name("2"), "manifest unknown", api.BlameFiles},
		{r.name("broken"), "container image: " + r.name("broken") + ": podman: exit status 125: ", api.BlameFiles},
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
	c, r := newController(t), newRegistry(t)
	r.push(t, "1", imageDir(t, "bash"))
	r.withPodman(t)
	state := t.TempDir()
	for at := state; at != "/tmp" && at != "/"; at = filepath.Dir(at) {
		_ = os.Chmod(at, 0o755)
	}
	o := c.options(state)
	o.Containers = Containers{On: true, Import: Import{Driver: "podman", Timeout: 5 * time.Second}}
	c.run(o)
	r.hold = make(chan struct{})
	box := &api.Container{Image: r.name("1")}
	k := c.desire(1, 1, 1, "#!/bin/bash\n", contained(t.TempDir(), box))
	for deadline := time.Now().Add(20 * time.Second); r.layers() == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not begun")
		}
	}
	c.stop(k, 0)
	c.untilPhase(k, api.PhaseStopped)
	late := c.desire(2, 1, 1, "#!/bin/bash\n", contained(t.TempDir(), box))
	if a := c.untilPhase(late, api.PhaseRefused); !strings.Contains(a.Refusal.Text, "not imported within 5s") {
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
	d := &Daemon{opts: Options{Containers: Containers{Import: Import{High: 50, Low: 30}}}, log: slog.New(slog.DiscardHandler), jobs: map[int64][]*member{}}
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
	used := &member{d: d}
	used.image.Store(c.list[slices.IndexFunc(c.list, func(m *image) bool { return m.ID == "b" })])
	d.jobs[1] = []*member{used}
	if c.find(&image{ID: "a", Used: time.Now()}) == nil || c.find(&image{ID: "a", uid: 7}) != nil || c.find(&image{}) != nil || c.find(&image{ID: "f"}) != nil {
		t.Error("not found, or found for another user")
	}
	c.list = append(c.list, put("h", 0))
	d.tidyImages() // 60: b is in use, a was used
	if got := list(); got != "0 a b h" {
		t.Errorf("after it: %s", got)
	}
}
