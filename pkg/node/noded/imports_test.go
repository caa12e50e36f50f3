package noded

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gangd/pkg/core/container"
	"gangd/pkg/lab/registry"
	"gangd/pkg/lab/tool"
	"gangd/pkg/node/proc"
)

const somebody = 65534

// importing is a daemon that imports, for a user whose home is made for the test.
type importing struct {
	t    *testing.T
	d    *daemon
	acc  *account
	log  string // a file
	home string
}

func newImporting(t *testing.T, uid uint32, high int64) *importing {
	t.Helper()
	needRoot(t)
	tool.Need(t, "podman")
	x := &importing{t: t, log: filepath.Join(t.TempDir(), "log"), home: registry.Open(t, t.TempDir()), acc: &account{uid: uid, gid: uid}}
	x.acc.home = x.home
	if err := os.Chown(x.home, int(uid), int(uid)); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(x.log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	state, err := openState(registry.Open(t, t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(state.close)
	x.d = newDaemon(Options{Name: "n1", Shim: program, Log: slog.New(slog.NewTextHandler(log, nil)), Containers: Containers{On: true, Import: Import{Driver: "podman", High: high, Timeout: time.Minute}}}, state)
	x.d.cgroups = proc.Detect("")
	ctx, stop := context.WithCancel(context.Background())
	x.d.ctx = ctx
	t.Cleanup(x.d.running.Wait)
	t.Cleanup(stop)
	if err := x.d.openContainers(); err != nil {
		t.Fatal(err)
	}
	return x
}

// get imports an image as a job of the user would.
func (x *importing) get(name string) (*image, string) {
	x.t.Helper()
	m, err := container.Parse(name)
	if err != nil {
		x.t.Fatal(err)
	}
	f := x.d.images.join(x.d, x.acc, "sb", m, proc.Limits{})
	defer x.d.images.leave(f)
	<-f.done
	if f.refusal != nil {
		return nil, f.refusal.Text
	}
	return f.image, ""
}

// TestFlights: those of one user who want the same image wait for one import, which goes on as long as one of them waits; other users,
// tags and digests have their own.
func TestFlights(t *testing.T) {
	dir := registry.Open(t, t.TempDir())
	began, open := filepath.Join(dir, "began"), filepath.Join(dir, "open")
	driver := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = --version ] && exit\necho >> %s\nuntil [ -e %s ]; do sleep 0.02; done\necho no such image >&2\nexit 1\n", began, open)
	if err := os.WriteFile(filepath.Join(dir, "podman"), []byte(driver), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(began, nil, 0o666); err != nil || os.Chmod(began, 0o666) != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	x := newImporting(t, 0, 0)
	join := func(uid uint32, name string) *flight {
		m, err := container.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		return x.d.images.join(x.d, &account{uid: uid, gid: uid, home: "/"}, "sb", m, proc.Limits{})
	}
	begun := func(n int) {
		t.Helper()
		for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
			b, _ := os.ReadFile(began)
			if len(b) == n {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%d imports have begun, want %d", len(b), n)
			}
		}
	}
	ended := func(f *flight, want string) {
		t.Helper()
		select {
		case <-f.done:
		case <-time.After(patience):
			t.Fatal("an import goes on")
		}
		if f.refusal == nil || !strings.Contains(f.refusal.Text, want) {
			t.Errorf("%+v, want %s", f.refusal, want)
		}
	}
	digest := "@sha256:" + strings.Repeat("0", 64)
	all := []*flight{join(0, "lab/tool:1"), join(somebody, "lab/tool:1"), join(0, "lab/tool:2"), join(0, "lab/tool"+digest), join(0, "lab/tool@sha256:"+strings.Repeat("1", 64))}
	if again := join(0, "lab/tool:1"); again != all[0] {
		t.Error("two who want the same image import it each")
	}
	begun(len(all))
	x.d.images.leave(all[0])
	if err := os.WriteFile(open, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		ended(f, "no such image")
		x.d.images.leave(f)
	}
	if err := os.Remove(open); err != nil {
		t.Fatal(err)
	}
	last := join(0, "lab/tool:1")
	if last == all[0] {
		t.Fatal("one who comes later has what was refused before")
	}
	begun(len(all) + 1)
	x.d.images.leave(last)
	ended(last, "context canceled")
	if left, _ := filepath.Glob(filepath.Join(x.d.images.path, stageName+"*")); len(left) != 0 || len(x.d.images.flights) != 0 {
		t.Errorf("left: %v, %d flights", left, len(x.d.images.flights))
	}
}

// TestImportAsUser: another user than root imports with the credentials of his home, all files are his, and what he
// is known by stands nowhere but there.
func TestImportAsUser(t *testing.T) {
	x := newImporting(t, somebody, 0)
	const password = "s3cret-of-somebody"
	r := registry.New(t)
	root := imageDir(t, "bash", "cat")
	digest := r.Push(t, "1", root, "LAB=1")
	r.User, r.Password = "sb", password
	r.WithPodman(t)
	if m, why := x.get(r.Name("1")); m != nil || !strings.Contains(why, ": unauthorized") {
		t.Errorf("without credentials: %+v %s", m, why)
	}
	auth := filepath.Join(x.home, ".config/containers/auth.json")
	token := base64.StdEncoding.EncodeToString([]byte("sb:" + password))
	if err := os.MkdirAll(filepath.Dir(auth), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(auth, fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, r.Host(), token), 0o600); err != nil {
		t.Fatal(err)
	}
	_ = filepath.WalkDir(filepath.Join(x.home, ".config"), func(p string, _ fs.DirEntry, _ error) error { return os.Chown(p, somebody, somebody) })
	m, why := x.get(r.Name("1"))
	if m == nil || m.Digest != digest || len(m.Env) == 0 {
		t.Fatalf("%+v %s", m, why)
	}
	walk(t, m.dir, func(path string, st *syscall.Stat_t) {
		if st.Uid != somebody || st.Gid != somebody {
			t.Errorf("%s is of %d:%d", path, st.Uid, st.Gid)
		}
	})
	secrets := []string{password, token}
	for _, dir := range []string{x.d.state.path, filepath.Dir(x.log)} {
		walk(t, dir, func(path string, st *syscall.Stat_t) {
			if st.Mode&syscall.S_IFMT != syscall.S_IFREG {
				return
			}
			b, _ := os.ReadFile(path)
			for _, s := range secrets {
				if bytes.Contains(b, []byte(s)) {
					t.Errorf("%s has the credentials", path)
				}
			}
		})
	}
}

func walk(t *testing.T, root string, look func(path string, st *syscall.Stat_t)) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		n++
		look(p, info.Sys().(*syscall.Stat_t))
		return nil
	})
	if err != nil || n < 2 {
		t.Errorf("%s: %d files, %v", root, n, err)
	}
}

// TestImportOfEvil: what an archive has beside plain files leads nowhere, as root and as another user.
func TestImportOfEvil(t *testing.T) {
	outside := registry.Open(t, t.TempDir())
	if err := os.Chmod(outside, 0o777); err != nil {
		t.Fatal(err)
	}
	plain := registry.Layer(t, imageDir(t, "bash"), func(w *tar.Writer) {
		for _, name := range []string{"gone", "kept", "dir/old"} {
			_ = w.WriteHeader(&tar.Header{Name: name, Mode: 0o644})
		}
	})
	layer := func(headers ...*tar.Header) []byte {
		return registry.Layer(t, "", func(w *tar.Writer) {
			for _, h := range headers {
				if err := w.WriteHeader(h); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	up := strings.Repeat("../", 20)
	for _, uid := range []uint32{0, somebody} {
		t.Run(fmt.Sprint("as ", uid), func(t *testing.T) {
			x := newImporting(t, uid, 0)
			registry.New(t).WithPodman(t)
			for _, y := range []struct {
				name  string
				layer []byte
				look  string // a command in the image, which has to succeed
			}{
				{"through a link", layer(&tar.Header{Name: "link", Typeflag: tar.TypeSymlink, Linkname: outside, Mode: 0o777},
					&tar.Header{Name: "link/through", Mode: 0o644}), "true"},
				{"hard link", layer(&tar.Header{Name: "shadow", Typeflag: tar.TypeLink, Linkname: up + "etc/shadow", Mode: 0o644}), "test ! -e shadow"},
				{"all else", layer(&tar.Header{Name: up + strings.TrimPrefix(outside, "/") + "/above", Mode: 0o644}, &tar.Header{Name: outside + "/absolute", Mode: 0o644},
					&tar.Header{Name: "mem", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 1, Mode: 0o666}, &tar.Header{Name: "sub/disk", Typeflag: tar.TypeBlock, Devmajor: 254, Mode: 0o666},
					&tar.Header{Name: "su", Mode: 0o4755}, &tar.Header{Name: "sg", Mode: 0o2755},
					&tar.Header{Name: ".wh.gone", Mode: 0o644}, &tar.Header{Name: "dir/.wh..wh..opq", Mode: 0o644}, &tar.Header{Name: "dir/new", Mode: 0o644}),
					"test ! -e mem && test ! -e sub/disk && test -x su && test ! -u su && test -x sg && test ! -g sg && test ! -e gone && test -e kept && test ! -e dir/old && test -e dir/new"},
			} {
				file := registry.Archive(t, filepath.Join(outside, "image.tar"), nil, plain, y.layer)
				m, why := x.get("docker-archive:" + file)
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
				if left, _ := os.ReadDir(outside); len(left) != 0 {
					t.Errorf("%s: written outside: %v", y.name, left)
				}
				if m == nil && y.name != "all else" {
					t.Logf("%s: refused: %s", y.name, why) // which is as good
					continue
				}
				if m == nil {
					t.Fatal(why)
				}
				look := exec.Command("sh", "-c", y.look)
				look.Dir = m.dir
				if out, err := look.CombinedOutput(); err != nil {
					t.Errorf("%s: %v %s", y.name, err, out)
				}
				walk(t, m.dir, func(path string, st *syscall.Stat_t) {
					if k := st.Mode & syscall.S_IFMT; k == syscall.S_IFBLK || k == syscall.S_IFCHR || st.Uid != uid || k == syscall.S_IFREG && st.Mode&0o6000 != 0 {
						t.Errorf("%s: %s has mode %o and is of %d", y.name, path, st.Mode, st.Uid)
					}
				})
			}
		})
	}
}

// tooLarge imports what would take the whole cache of 64M: it is refused with a sentence, and nothing of it is left.
func (x *importing) tooLarge(name string) {
	x.t.Helper()
	_, why := x.get(name)
	if !strings.Contains(why, "it takes more than 64M, which is all that this node keeps of images") {
		x.t.Error(why)
	}
	if left, _ := filepath.Glob(filepath.Join(x.d.images.path, "*")); len(left) != 0 {
		x.t.Errorf("left: %v", left)
	}
}

// TestImportTooLarge: what would take the whole cache, of which an archive may be full that is small itself, ends
// there with a sentence.
func TestImportTooLarge(t *testing.T) {
	x := newImporting(t, somebody, 64<<20)
	r := registry.New(t)
	r.WithPodman(t)
	r.PushLayers(t, "1", nil, registry.Layer(t, "", func(w *tar.Writer) {
		zeros := make([]byte, 1<<20)
		_ = w.WriteHeader(&tar.Header{Name: "huge", Mode: 0o644, Size: 256 << 20})
		for range 256 {
			_, _ = w.Write(zeros)
		}
	}))
	x.tooLarge(r.Name("1"))
}

// TestImportOfSparse: a file of an archive that is all holes takes little there, and as much as it says when it is unpacked:
// that ends where the cache would be full, long before.
func TestImportOfSparse(t *testing.T) {
	x := newImporting(t, somebody, 64<<20)
	registry.New(t).WithPodman(t)
	const says = 7 << 30
	dir := t.TempDir()
	huge := filepath.Join(dir, "huge")
	if err := os.WriteFile(huge, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(huge, says); err != nil {
		t.Fatal(err)
	}
	layer, err := exec.Command("tar", "--create", "--sparse", "--format=pax", "--directory="+dir, "huge").Output()
	if err != nil || len(layer) > 1<<20 {
		t.Fatalf("the archive is not what it should be: %d bytes, %v", len(layer), err)
	}
	file := registry.Archive(t, filepath.Join(registry.Open(t, t.TempDir()), "image.tar"), nil, layer)
	x.tooLarge("docker-archive:" + file)
}

// TestImportDropsOldest: an import that takes the cache over its mark drops the image that was used longest ago, and no other.
func TestImportDropsOldest(t *testing.T) {
	x := newImporting(t, somebody, 64<<20)
	registry.New(t).WithPodman(t)
	dir, all := registry.Open(t, t.TempDir()), map[string]*image{}
	get := func(name string) {
		file := filepath.Join(dir, name)
		if _, err := os.Stat(file); err != nil {
			registry.Archive(t, file, nil, registry.Layer(t, registry.Tree(t, name), nil))
		}
		m, why := x.get("docker-archive:" + file)
		if m == nil {
			t.Fatal(why)
		}
		all[name] = m
	}
	for _, name := range []string{"a", "b", "a"} { // a is found again
		get(name)
	}
	all["a"].Bytes, all["b"].Bytes = 40<<20, 24<<20 // as if they were that large: the mark is reached
	get("c")
	left := ""
	for _, name := range []string{"a", "b", "c"} {
		if isDir(all[name].dir) == nil {
			left += name
		}
	}
	if left != "ac" {
		t.Errorf("left are %s, want a and c", left)
	}
}
