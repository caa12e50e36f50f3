// Package registry serves container images on loopback as registries do, for tests of those who import them. It
// counts what is fetched, and can hold it back.
package registry

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gangd/pkg/lab/tool"
)

// Registry is one that serves. User and Password are asked for where they are set, before it is used.
type Registry struct {
	*httptest.Server
	User, Password string

	mu        sync.Mutex
	manifests map[string][]byte // by tag and by digest
	kinds     map[string]string
	blobs     map[string][]byte
	fetched   []string      // layers
	hold      chan struct{} // closed: layers are served whole; nil: at once
}

// New starts one, which ends with the test.
func New(t testing.TB) *Registry {
	r := &Registry{manifests: map[string][]byte{}, kinds: map[string]string{}, blobs: map[string][]byte{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// Digest is what bytes are known by.
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// ServeHTTP implements [http.Handler].
func (r *Registry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if user, password, ok := q.BasicAuth(); r.User != "" && (!ok || user != r.User || password != r.Password) {
		w.Header().Set("WWW-Authenticate", `Basic realm="lab"`)
		http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`, http.StatusUnauthorized)
		return
	}
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
			w.Header().Set("Docker-Content-Digest", Digest(body))
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
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(code)
	if q.Method == http.MethodHead {
		return
	}
	if hold != nil && kind == "application/octet-stream" { // half of it is seen to come
		_, _ = w.Write(body[:len(body)/2])
		body = body[len(body)/2:]
		w.(http.Flusher).Flush()
		select {
		case <-hold:
		case <-q.Context().Done():
			return
		}
	}
	_, _ = w.Write(body)
}

// Layer is a tar of a tree, without its devices: registries serve none that any user can unpack. What a test wants to be
// in it beside is added by more.
func Layer(t testing.TB, root string, more func(*tar.Writer)) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if root != "" {
		if err := w.AddFS(withoutDevices{os.DirFS(root).(fs.ReadLinkFS)}); err != nil {
			t.Fatal(err)
		}
	}
	if more != nil {
		more(w)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// withoutDevices is a tree whose directories list files, directories and links alone.
type withoutDevices struct{ fs.ReadLinkFS }

// ReadDir implements [fs.ReadDirFS].
func (t withoutDevices) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(t.ReadLinkFS, name)
	return slices.DeleteFunc(all, func(e fs.DirEntry) bool { return e.Type()&^(fs.ModeDir|fs.ModeSymlink) != 0 }), err
}

const (
	manifestKind = "application/vnd.docker.distribution.manifest.v2+json"
	configKind   = "application/vnd.docker.container.image.v1+json"
)

// Push makes a tag of a tree, and gives the digest of its manifest.
func (r *Registry) Push(t testing.TB, tag, root string, env ...string) string {
	t.Helper()
	return r.PushLayers(t, tag, env, Layer(t, root, nil))
}

// PushLayers makes a tag of layers, the lowest first.
func (r *Registry) PushLayers(t testing.TB, tag string, env []string, layers ...[]byte) string {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	put := func(b []byte) string { r.blobs[Digest(b)] = b; return Digest(b) }
	config, list := Config(t, env, layers...), []any{}
	for _, b := range layers {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = z.Write(b)
		_ = z.Close()
		list = append(list, map[string]any{"mediaType": "application/vnd.docker.image.rootfs.diff.tar.gzip", "size": packed.Len(),
			"digest": put(packed.Bytes())})
	}
	manifest := text(t, map[string]any{"schemaVersion": 2, "mediaType": manifestKind, "layers": list,
		"config": map[string]any{"mediaType": configKind, "size": len(config), "digest": put(config)}})
	for _, name := range []string{tag, Digest(manifest)} {
		r.manifests[name], r.kinds[name] = manifest, manifestKind
	}
	return Digest(manifest)
}

// Config is the configuration of an image of layers.
func Config(t testing.TB, env []string, layers ...[]byte) []byte {
	ids := []string{}
	for _, b := range layers {
		ids = append(ids, Digest(b))
	}
	return text(t, map[string]any{"architecture": runtime.GOARCH, "os": "linux", "config": map[string]any{"Env": env},
		"rootfs": map[string]any{"type": "layers", "diff_ids": ids}})
}

// Archive writes an image as docker save does, and gives its path.
func Archive(t testing.TB, path string, env []string, layers ...[]byte) string {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	add := func(name string, b []byte) {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(b)), ModTime: time.Unix(0, 0)}); err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write(b)
	}
	var names []string
	for i, b := range layers {
		names = append(names, fmt.Sprintf("layer%d.tar", i))
		add(names[i], b)
	}
	add("config.json", Config(t, env, layers...))
	add("manifest.json", text(t, []any{map[string]any{"Config": "config.json", "RepoTags": []string{"lab/tool:1"}, "Layers": names}}))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func text(t testing.TB, v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Host is its address as images name it.
func (r *Registry) Host() string { return strings.TrimPrefix(r.URL, "http://") }

// Name is how a tag is named.
func (r *Registry) Name(tag string) string { return "docker://" + r.Host() + "/lab/tool:" + tag }

// Hold has layers come by half only, until release.
func (r *Registry) Hold() (release func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	hold := make(chan struct{})
	r.hold = hold
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.hold == hold {
			r.hold = nil
			close(hold)
		}
	}
}

// Spoil changes the last byte of the newest tag's layers, whose digests stay.
func (r *Registry) Spoil(tag string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var m struct{ Layers []struct{ Digest string } }
	_ = json.Unmarshal(r.manifests[tag], &m)
	for _, l := range m.Layers {
		b := bytes.Clone(r.blobs[l.Digest])
		b[len(b)-1]++
		r.blobs[l.Digest] = b
	}
}

// Layers is how many layers were fetched.
func (r *Registry) Layers() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.fetched)
}

// WithPodman has podman speak http to the registry, for processes that are started by this one from now on. Other
// users can use it, too.
func (r *Registry) WithPodman(t testing.TB) {
	t.Helper()
	tool.Need(t, "podman")
	real, err := exec.LookPath("podman")
	if err != nil {
		t.Fatal(err)
	}
	dir := Open(t, t.TempDir())
	for name, text := range map[string]string{
		"registries.conf": "[[registry]]\nlocation = \"" + r.Host() + "\"\ninsecure = true\n",
		"podman":          "#!/bin/sh\nexport CONTAINERS_REGISTRIES_CONF=" + dir + "/registries.conf\nexec " + real + " \"$@\"\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// Open lets other users through to a directory of a test, and gives its real path.
func Open(t testing.TB, dir string) string {
	t.Helper()
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	for at := real; at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
		_ = os.Chmod(at, 0o755)
	}
	return real
}

// Tree is an unpacked image of programs of this machine and the libraries that they need, which says in its
// os-release what it is. Other users can read it.
func Tree(t testing.TB, id string, programs ...string) string {
	t.Helper()
	root := Open(t, t.TempDir())
	put := func(from, to string) {
		b, err := os.ReadFile(from)
		if err == nil {
			if err = os.MkdirAll(filepath.Dir(to), 0o755); err == nil {
				err = os.WriteFile(to, b, 0o755)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range programs {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skip(err)
		}
		put(path, filepath.Join(root, "bin", name))
		out, err := exec.Command("ldd", path).Output()
		if err != nil {
			t.Skipf("ldd %s: %v", path, err)
		}
		for _, lib := range regexp.MustCompile(`/\S+`).FindAllString(string(out), -1) {
			lib = strings.TrimSuffix(lib, ":")
			put(lib, filepath.Join(root, lib))
		}
	}
	if err := os.MkdirAll(filepath.Join(root, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "etc/os-release"), []byte("ID="+id+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return root
}
