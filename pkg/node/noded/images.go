package noded

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/container"
	"gangd/pkg/node/proc"
	"gangd/pkg/node/shim"
	"gangd/pkg/node/sitehook"
	"gangd/pkg/wire/dirlock"
)

// Images that are not unpacked directories are imported before anything of their job is prepared: by the
// site's driver, as the user, with his credentials, into a directory of his in the cache. Jobs of a user that want
// the same one at the same time wait for one import, and later ones find it. Between users nothing is shared: who
// imports an image can change its files, and may see what others may not.

// Import is how images are imported here.
type Import struct {
	Driver     string        // podman, enroot, apptainer; empty: nothing is imported
	Registries []string      // HOST or HOST/NAME, what images have to come from; none: any
	Cache      string        // directory; empty: one in the state directory
	High, Low  int64         // bytes: above High the images used longest ago go, until Low; 0: a part of the disk, and of High
	Timeout    time.Duration // of one import
}

const (
	cacheShare = 4 // part of the disk that is High where the site says nothing
	lowTenths  = 8 // of High
	recordName = "image.json"
	stageName  = "stage."
	fullDisk   = 16 << 20 // an import that fails with less left failed for want of it
	maxWord    = 8 << 20  // of what a driver may print
	importTick = time.Second
	keptDisk   = 1 << 30
)

// importTail is what is kept of what a driver writes: registries explain themselves at the end.
const importTail = 1024

// image is an imported one; the zero value is none.
type image struct {
	ID     string    `json:"id"`               // what it is known by, beside its digest
	Digest string    `json:"digest,omitempty"` // of its manifest; empty: not known
	Name   string    `json:"name"`             // by which it was first asked for
	Bytes  int64     `json:"bytes"`
	Env    []string  `json:"env,omitempty"` // NAME=value, that it brings
	Used   time.Time `json:"used"`
	uid    uint32
	dir    string // where it is unpacked
}

// images is the cache, and the imports under way.
type images struct {
	driver  *container.Driver
	path    string
	layers  bool   // see [container.Stage]
	version string // of the driver

	mu      sync.Mutex
	list    []*image
	flights map[flightKey]*flight
}

type flightKey struct {
	uid  uint32
	name string
}

// flight is an import that members wait for.
type flight struct {
	cancel  context.CancelFunc
	waiters int // of images.mu
	done    chan struct{}
	state   atomic.Pointer[api.Import]
	image   *image       // once done
	refusal *api.Refusal // why not
}

// far is how far it is.
func (f *flight) far() api.Import {
	if far := f.state.Load(); far != nil {
		return *far
	}
	return api.Import{Bytes: 1}
}

// openImages reads the cache, and says what could not be imported later.
func (d *daemon) openImages() error {
	o := &d.opts.Containers.Import
	if o.Driver == "" {
		return nil
	}
	driver := container.DriverOf(o.Driver)
	if driver == nil {
		return fmt.Errorf("container_driver: %q is not known", o.Driver)
	}
	if _, err := exec.LookPath(driver.Name); err != nil {
		return fmt.Errorf("container_driver: %w", err)
	}
	c := &images{driver: driver, path: cmp.Or(o.Cache, filepath.Join(d.state.path, "images")), flights: map[flightKey]*flight{}}
	if err := dirlock.Open(c.path, 0o711); err != nil {
		return fmt.Errorf("container_cache: %w", err)
	}
	if !d.opts.SingleUser { // else all is of whom gnoded runs as
		if err := proc.Passable(c.path, d.userGroups()); err != nil {
			return fmt.Errorf("container_cache: %s: %w, or another container_cache", c.path, err)
		}
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(c.path, &disk); err != nil {
		return fmt.Errorf("container_cache: %w", err)
	}
	size := int64(disk.Blocks) * disk.Bsize
	if o.High > size {
		return fmt.Errorf("container_cache_high: %s, and the disk of %s has %s", cluster.Size(o.High), c.path, cluster.Size(size))
	}
	o.High = cmp.Or(o.High, size/cacheShare)
	o.Low = cmp.Or(o.Low, o.High/10*lowTenths)
	if o.Low > o.High {
		return fmt.Errorf("container_cache_low: %s is above container_cache_high, %s", cluster.Size(o.Low), cluster.Size(o.High))
	}
	c.layers, c.version = takesOverlays(disk.Type), versionOf(driver)
	c.load(d)
	d.images = c
	return nil
}

// versionWait bounds the question for a driver's version.
const versionWait = 10 * time.Second

// containers says what brings images to jobs here, with versions.
func (d *daemon) containers() []string {
	if !d.opts.Containers.On {
		return nil
	}
	all := []string{"dir"}
	if d.images != nil {
		all = append(all, d.images.driver.Name+" "+d.images.version)
	}
	return all
}

func versionOf(driver *container.Driver) string {
	ctx, stop := context.WithTimeout(context.Background(), versionWait)
	defer stop()
	args := driver.Version()
	out := &limited{max: maxWord}
	cmd := sitehook.Command(ctx, args[0], []string{"HOME=/"}, args[1:]...)
	cmd.Stdout = out
	if err := cmd.Run(); err != nil {
		return "of unknown version"
	}
	return cmp.Or(container.ReadVersion(out.String()), "of unknown version")
}

// takesOverlays: any user may mount overlays with their upper directory there.
func takesOverlays(fs int64) bool {
	switch fs {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC:
	default:
		return false
	}
	major, minor := kernel()
	return major > 5 || major == 5 && minor >= 13 // before, only root
}

func kernel() (major, minor int) {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return 0, 0
	}
	_, _ = fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor) // what can't be read is old
	return major, minor
}

// load takes over what a daemon before has imported, and removes what it has begun.
func (c *images) load(d *daemon) {
	users, _ := os.ReadDir(c.path)
	for _, u := range users {
		at := filepath.Join(c.path, u.Name())
		uid, err := strconv.ParseUint(u.Name(), 10, 32)
		if err != nil {
			if strings.HasPrefix(u.Name(), stageName) {
				_ = os.RemoveAll(at)
			}
			continue
		}
		entries, _ := os.ReadDir(at)
		for _, e := range entries {
			dir := filepath.Join(at, e.Name())
			text, err := os.ReadFile(filepath.Join(dir, recordName))
			m := &image{uid: uint32(uid), dir: filepath.Join(dir, container.Root)}
			if err == nil {
				err = json.Unmarshal(text, m)
			}
			if err == nil {
				err = isDir(m.dir)
			}
			if err != nil { // cut short, or somebody tidied up
				d.log.Warn("image in the cache is not whole: removed", "dir", dir, "err", err)
				_ = os.RemoveAll(dir)
				continue
			}
			c.list = append(c.list, m)
		}
	}
}

// isDir: a directory, and no link to one.
func isDir(path string) error {
	info, err := os.Lstat(path)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is no directory", path)
	}
	return err
}

// save writes a record down. It is of use while the image is there, so that a lost one is no loss.
func (m *image) save() error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(filepath.Dir(m.dir), recordName), text)
}

// environ is the job's environment as the image changes it.
func (m *image) environ(spec *api.Spec) *api.Spec {
	if spec.Container == nil {
		return spec
	}
	with := *spec
	with.Env = container.Environ(spec.Env, m.Env, spec.Container.Env)
	return &with
}

// importing begins the import of an image, or waits for one that is under way; nil: nothing has to be imported.
func (d *daemon) importing(box *api.Container, user string, uid, gid uint32, digest string, within proc.Limits) (*flight, *api.Refusal) {
	if !d.opts.Containers.On {
		return nil, refuse(api.BlameUnfit, "this node runs no jobs in containers")
	}
	name, err := container.Parse(box.Image)
	if err != nil {
		return nil, refuse(api.BlameJob, "container image: %v", err)
	}
	if name.Kind == container.Dir {
		return nil, d.mayUse(name)
	}
	if d.images == nil || !d.images.driver.Takes(name.Kind) {
		return nil, refuse(api.BlameUnfit, "container image: %s can't be imported on this node, which has %s", box.Image,
			cmp.Or(d.opts.Containers.Import.Driver, "no program for that"))
	}
	if r := d.mayUse(name); r != nil {
		return nil, r
	}
	acc, r := d.now().accounts.resolve(user, uid, gid)
	if r != nil {
		return nil, r
	}
	return d.images.join(d, acc, user, name.At(digest), within), nil
}

// imageOf has the image of a member here. ok is false when the member is over by now, or the daemon.
func (m *member) imageOf(ctx context.Context, body *api.AssignmentBody, spec *api.Spec) (_ *image, _ *api.Refusal, ok bool) {
	d := m.d
	if spec.Container == nil {
		return &image{}, nil, true
	}
	f, r := d.importing(spec.Container, body.User, body.UID, body.GID, body.Image,
		d.importLimits(memoryHere(spec, body, nodeOf(body, d.opts.Name))))
	if r != nil || f == nil {
		return &image{}, r, true
	}
	defer d.images.leave(f)
	tick := time.NewTicker(importTick)
	defer tick.Stop()
	for {
		select {
		case <-f.done:
			if f.image != nil {
				m.image.Store(f.image)
			}
			return f.image, f.refusal, true
		case <-tick.C:
			if far := f.far(); far != m.actual.Importing {
				m.become(ctx, api.MemberActual{Phase: api.PhasePreparing, Importing: far})
			}
		case <-m.wake:
			m.mu.Lock()
			off := m.want.Stop != nil || m.want.Forget
			m.mu.Unlock()
			if off {
				m.become(ctx, api.MemberActual{Phase: api.PhaseStopped})
				return nil, nil, false
			}
		case o := <-m.orders:
			m.pass(o)
		case <-ctx.Done():
			return nil, nil, false
		}
	}
}

// mayUse says why an image is not from where the site lets it.
func (d *daemon) mayUse(name container.Image) *api.Refusal {
	below := func(at string, places []string) bool {
		return len(places) == 0 || slices.ContainsFunc(places, func(p string) bool {
			return strings.HasPrefix(at, strings.TrimSuffix(p, "/")+
				"/")
		})
	}
	site := &d.opts.Containers
	switch {
	case name.Kind == container.Registry && !below(name.Host+"/"+name.Name+"/", site.Import.Registries):
		return refuse(api.BlameUser, "container image: %s is not of %s, from where this site's jobs may import", name,
			strings.Join(site.Import.Registries, ", "))
	case name.Kind != container.Registry && (!below(name.Path, site.Images) || len(site.Images) > 0 && name.Path != filepath.Clean(name.Path)):
		return refuse(api.BlameUser, "container image: %s is not below %s, where this site's images are", name, strings.Join(site.Images, ", "))
	}
	return nil
}

// importLimits are those of an import: what the job that began it may have.
func (d *daemon) importLimits(memory int64) proc.Limits {
	return proc.Limits{Memory: memory, PIDs: d.processes}
}

// join waits with others for an image, or begins to import it within these limits.
func (c *images) join(d *daemon, acc *account, user string, name container.Image, within proc.Limits) *flight {
	k := flightKey{acc.uid, name.String()}
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.flights[k]
	if f == nil {
		f = &flight{done: make(chan struct{})}
		ctx, cancel := context.WithTimeoutCause(d.ctx, d.opts.Containers.Import.Timeout, fmt.Errorf("not imported within %v",
			when.Words(d.opts.Containers.Import.Timeout)))
		f.cancel = cancel
		c.flights[k] = f
		d.running.Go(func() {
			i := &importer{d: d, c: c, f: f, acc: acc, user: user, within: within}
			m, err := i.get(ctx, name)
			if err != nil {
				f.refusal = importRefusal(name, err)
			}
			c.mu.Lock()
			f.image = m // in use from now on, by who waits for it
			c.mu.Unlock()
			cancel()
			close(f.done)
		})
	}
	f.waiters++
	return f
}

// leave: nobody imports what nobody waits for.
func (c *images) leave(f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.waiters--; f.waiters > 0 {
		return
	}
	f.cancel()
	for k, o := range c.flights {
		if o == f {
			delete(c.flights, k)
		}
	}
}

// importRefusal says whose fault it is: a driver that can't be started is the node's, a disk may be full of this image, all
// else is what the name leads to.
func importRefusal(name container.Image, err error) *api.Refusal {
	blame := api.BlameFiles
	switch {
	case errors.As(err, new(*exec.Error)):
		blame = api.BlameNode
	case errors.Is(err, syscall.ENOSPC):
		blame = api.BlameUnknown
	}
	return refuse(blame, "container image: %s: %v", name, err)
}

// importer is one import.
type importer struct {
	d      *daemon
	c      *images
	f      *flight
	acc    *account
	user   string
	within proc.Limits
	stage  string // a directory of the user's, which is gone with the import
	total  int64  // bytes to be fetched; 0: not known

	fetched bool // of watch: everything is
}

func (i *importer) at() container.Stage { return container.Stage{Dir: i.stage, Layers: i.c.layers} }

// get finds an image in the cache, or imports it.
func (i *importer) get(ctx context.Context, name container.Image) (*image, error) {
	m := &image{uid: i.acc.uid, Name: name.String(), Digest: name.Digest, Used: time.Now()}
	if name.Kind != container.Registry {
		id, err := i.fileID(name.Path)
		if err != nil {
			return nil, err
		}
		m.ID = id
	}
	if old := i.c.find(m); old != nil {
		return old, nil
	}
	var err error
	if i.stage, err = os.MkdirTemp(i.c.path, stageName); err != nil {
		return nil, err
	}
	defer func() {
		if err := os.RemoveAll(i.stage); err != nil {
			i.d.log.Warn("stage of an image not removed", "dir", i.stage, "err", err)
		}
	}()
	if err := i.furnish(); err != nil {
		return nil, err
	}
	if m.ID == "" {
		what, err := i.ask(ctx, name)
		if err != nil {
			return nil, err
		}
		i.total = what.Size
		if m.Digest == "" {
			m.ID = what.ID
		}
		if old := i.c.find(m); old != nil {
			return old, nil
		}
	}
	began := time.Now()
	if err := i.unpack(ctx, name, m); err != nil {
		if free, _, bad := room(i.c.path); bad == nil && free < fullDisk {
			err = fmt.Errorf("%w: %w", syscall.ENOSPC, err)
		}
		return nil, err
	}
	if err := i.keep(m); err != nil {
		return nil, err
	}
	i.d.log.Info("image imported", "image", m.Name, "user", i.user, "digest", m.Digest, "bytes", m.Bytes, "took",
		time.Since(began).Round(time.Millisecond))
	i.d.tidyImages()
	return m, nil
}

// furnish makes what the driver finds in its stage, and gives all of it to the user: the stage itself last, for
// from then on he can put links there.
func (i *importer) furnish() error {
	all := []string{filepath.Join(i.stage, "run")}
	if i.c.driver.Name == "podman" { // which unpacks into a directory; the others make it
		all = append(all, filepath.Join(i.stage, container.Root))
	}
	for _, dir := range all {
		mode := os.FileMode(0o700)
		if filepath.Base(dir) == container.Root {
			mode = 0o755
		}
		if err := os.Mkdir(dir, mode); err != nil {
			return err
		}
	}
	for _, dir := range append(all, i.stage) {
		if err := os.Lchown(dir, int(i.acc.uid), int(i.acc.gid)); err != nil {
			return err
		}
	}
	return nil
}

// asUser looks at what is the user's: he could bend its paths to where only root gets.
func (i *importer) asUser(look func() error) error {
	if i.d.opts.SingleUser {
		return look()
	}
	return proc.AsUser(&syscall.Credential{Uid: i.acc.uid, Gid: i.acc.gid, Groups: i.acc.groups}, look)
}

// size is what a directory of the user's takes on its disk.
func (i *importer) size(dir string) (n int64) {
	_ = i.asUser(func() error { n = sizeOf(dir); return nil })
	return n
}

// fileID knows a packed image by which file it is, and when that was last changed.
func (i *importer) fileID(path string) (string, error) {
	var st unix.Stat_t
	if err := i.asUser(func() error { return unix.Stat(path, &st) }); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return "", fmt.Errorf("%s is no file", path)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d %d %d", path, st.Dev, st.Ino, st.Size, st.Ctim.Nano()))
	return "file:" + hex.EncodeToString(sum[:]), nil
}

// ask resolves a tag without fetching it; the zero value where the driver can't.
func (i *importer) ask(ctx context.Context, name container.Image) (what container.Content, err error) {
	for range 2 {
		args := i.c.driver.Ask(name, i.at())
		if args == nil {
			return what, nil
		}
		text, err := i.run(ctx, container.Step{Args: args})
		if err != nil {
			return what, err
		}
		what, err = container.ReadManifest([]byte(text), runtime.GOARCH)
		if err != nil || what.ID != "" {
			return what, err
		}
		name = name.At(what.Then)
	}
	return what, errors.New("the manifest is a list of lists")
}

// watch keeps what is told of the import, and ends it when it would take what the node needs.
func (i *importer) watch(ctx context.Context, stop context.CancelCauseFunc) {
	for ctx.Err() == nil {
		began := time.Now()
		size := i.size(i.stage)
		i.f.state.Store(i.far(size))
		if most := i.d.opts.Containers.Import.High; size > most {
			stop(fmt.Errorf("it takes more than %s, which is all that this node keeps of images", cluster.Size(most)))
			return
		}
		if nearlyFull(i.c.path) {
			stop(fmt.Errorf("%w: the last of %s is kept for the node", syscall.ENOSPC, i.c.path))
			return
		}
		sleep(ctx, max(importTick/4, 10*time.Since(began)))
	}
}

// far is how far it is, with so much in its stage.
func (i *importer) far(size int64) *api.Import {
	if i.total == 0 || i.c.driver.Fetched() == "" {
		return &api.Import{Bytes: max(1, size)}
	}
	fetched := int64(0)
	_ = i.asUser(func() error {
		names, _ := filepath.Glob(filepath.Join(i.stage, i.c.driver.Fetched())) // fails for a bad pattern alone
		for _, name := range names {
			if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() {
				fetched += info.Size()
			}
		}
		return nil
	})
	if i.fetched = i.fetched || fetched >= i.total; i.fetched {
		return &api.Import{Bytes: max(1, size), Unpacking: true}
	}
	return &api.Import{Bytes: max(1, fetched), Total: i.total}
}

// nearlyFull: of a disk a twentieth is kept, at most keptDisk.
func nearlyFull(path string) bool {
	free, total, err := room(path)
	return err == nil && free < min(keptDisk, total/20)
}

// unpack runs the driver's commands, and watches how much there is.
func (i *importer) unpack(ctx context.Context, name container.Image, m *image) error {
	root := filepath.Join(i.stage, container.Root)
	ctx, stop := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { i.watch(ctx, stop) })
	defer watch.Wait()
	defer stop(nil)
	id := ""
	for _, step := range i.c.driver.Import(name, i.at()) {
		args := slices.Clone(step.Args)
		for n, a := range args {
			if a == container.IDPlace {
				args[n] = id
			}
		}
		word, err := i.run(ctx, container.Step{Args: args, Env: step.Env})
		if err != nil {
			return err
		}
		switch step.Word {
		case container.WordID:
			id = strings.TrimSpace(word)
			if m.ID == "" {
				m.ID = id
			}
		case container.WordConfig:
			digest, env, err := container.ReadConfig(word)
			if err != nil {
				return err
			}
			m.Digest, m.Env = cmp.Or(m.Digest, digest), env
		case container.WordExports:
			m.Env = container.ReadExports(word)
		case container.WordEnv:
			for line := range strings.Lines(word) {
				if n, _, ok := strings.Cut(line, "="); ok && n != "" {
					m.Env = append(m.Env, strings.TrimRight(line, "\n"))
				}
			}
		}
	}
	return isDir(root)
}

// keep moves what was unpacked to its place, which the user can't change.
func (i *importer) keep(m *image) error {
	name := make([]byte, 8)
	_, _ = rand.Read(name) // never fails
	at := filepath.Join(i.c.path, strconv.FormatUint(uint64(i.acc.uid), 10), hex.EncodeToString(name))
	if err := os.MkdirAll(at, 0o711); err != nil {
		return err
	}
	m.dir = filepath.Join(at, container.Root)
	err := os.Rename(filepath.Join(i.stage, container.Root), m.dir)
	if err == nil {
		err = isDir(m.dir) // the stage was the user's: he may have put a link there
	}
	if err == nil {
		m.Bytes = i.size(m.dir)
		err = m.save()
	}
	if err != nil {
		_ = os.RemoveAll(at)
		return err
	}
	i.c.mu.Lock()
	i.c.list = append(i.c.list, m)
	i.f.image = m // from now on it is in use
	i.c.mu.Unlock()
	return nil
}

// find gives the user's image of a digest or an id, and makes it the one used last.
func (c *images) find(want *image) *image {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.list {
		if m.uid != want.uid || want.Digest != "" && m.Digest != want.Digest || want.Digest == "" && (want.ID == "" || m.ID != want.ID) {
			continue
		}
		if isDir(m.dir) != nil {
			continue // somebody tidied up
		}
		m.Used = want.Used
		_ = m.save() // else it may go earlier than others
		return m
	}
	return nil
}

// tidyImages drops images above the high mark: those used longest ago, and none that a member has.
func (d *daemon) tidyImages() {
	inUse := map[string]bool{}
	for _, m := range d.all() {
		if at := m.image.Load(); at != nil && !m.over.Load() {
			inUse[at.dir] = true
		}
		if s := m.known.Load(); s != nil && s.Container != nil && !m.over.Load() {
			inUse[s.Container.Image] = true
		}
		for _, dir := range stepImages(m.dir) {
			inUse[dir] = true
		}
	}
	c, o := d.images, &d.opts.Containers.Import
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.flights {
		if f.image != nil {
			inUse[f.image.dir] = true
		}
	}
	var total int64
	for _, m := range c.list {
		total += m.Bytes
	}
	if total <= o.High {
		return
	}
	slices.SortStableFunc(c.list, func(a, b *image) int { return a.Used.Compare(b.Used) })
	c.list = slices.DeleteFunc(c.list, func(m *image) bool {
		if total <= o.Low || inUse[m.dir] {
			return false
		}
		if err := os.RemoveAll(filepath.Dir(m.dir)); err != nil {
			d.log.Warn("image not removed from the cache", "dir", m.dir, "err", err)
			return false
		}
		d.log.Info("image dropped from the cache", "image", m.Name, "uid", m.uid, "bytes", m.Bytes, "used", m.Used)
		total -= m.Bytes
		return true
	})
}

// run runs a command as the user, as his login would, in a containment of its own with the job's limits, and gives what
// it printed.
func (i *importer) run(ctx context.Context, step container.Step) (string, error) {
	program, err := exec.LookPath(step.Args[0])
	if err != nil {
		return "", err
	}
	args := append([]string{program}, step.Args[1:]...)
	if !i.d.opts.SingleUser {
		limits, nice := i.d.logins.Of(i.user, i.acc.uid, i.acc.groups)
		as := shim.Login{Credentials: shim.Credentials{Switch: true, UID: i.acc.uid, GID: i.acc.gid, Groups: i.acc.groups},
			Limits: proc.With(limits, i.d.now().JobLimits), Nice: nice}
		args = append([]string{i.d.opts.Shim}, as.Command(args)...)
	}
	cmd := sitehook.Command(ctx, args[0], append([]string{"HOME=" + i.acc.home, "USER=" + i.user, "LOGNAME=" + i.user,
		"TMPDIR=" + i.stage, "XDG_RUNTIME_DIR=" + filepath.Join(i.stage, "run")}, step.Env...), args[1:]...)
	cmd.Dir = i.stage
	cmd.SysProcAttr.Unshareflags |= syscall.CLONE_NEWNS // what it mounts is gone with it
	out, errs := &limited{max: maxWord}, &limited{max: maxWord}
	cmd.Stdout, cmd.Stderr = out, errs
	end, err := i.d.startIn(cmd, i.within)
	if err != nil {
		return "", err
	}
	err = cmd.Wait()
	end()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err == nil {
		return out.String(), nil
	}
	text := strings.Join(strings.Fields(errs.String()), " ")
	if len(text) > importTail {
		text = "..." + text[len(text)-importTail:]
	}
	if text == "" {
		return "", fmt.Errorf("%s: %w", step.Args[0], err)
	}
	return "", fmt.Errorf("%s: %w: %s", step.Args[0], err, strings.ToValidUTF8(text, "?"))
}

// limited keeps the beginning of what is written.
type limited struct {
	kept []byte
	max  int
}

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	l.kept = append(l.kept, p[:min(len(p), l.max-len(l.kept))]...)
	return len(p), nil
}

func (l *limited) String() string { return string(l.kept) }

// sizeOf is what a directory takes on its disk. What comes and goes while it is looked at may be missing.
func sizeOf(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := e.Info(); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				n += st.Blocks * 512
			}
		}
		return nil
	})
	return n
}
