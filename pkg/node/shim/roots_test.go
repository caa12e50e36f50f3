package shim

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
)

// TestWhoHandsOverAContainer: a namespace is taken from the process of root's that makes a container, once, and from nobody else; what is
// not taken is closed.
func TestWhoHandsOverAContainer(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to send as somebody else")
	}
	const user = 65534
	for _, c := range []struct {
		name, makes string
		as, pid     int
		sends       int // times
		file        bool
		want        bool
	}{
		{"root's process", "k", 0, os.Getpid(), 1, true, true},
		{"it twice", "k", 0, os.Getpid(), 2, true, true},
		{"the user's", "k", user, os.Getpid(), 1, true, false},
		{"another one of root's", "k", 0, 1, 1, true, false},
		{"one that makes none", "", 0, os.Getpid(), 1, true, false},
		{"one whose record is gone", "k", 0, os.Getpid(), 1, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if c.file {
				write(t, StepContainerFile(3), `{"image":"/i","name":"n"}`)
			}
			near, far := socketpair(t)
			p := &stepProc{id: 3, pid: c.pid, ctl: near, makes: c.makes}
			p.start.InImage = &InImage{Name: "n"}
			p.start.Container = &api.Container{Name: "k", Image: "n", Mounts: []api.ContainerMount{{Source: "/a", Target: "/b"}}}
			if err := p.knowSenders(near); err != nil {
				t.Fatal(err)
			}
			m := runningMember(&Spec{})
			before := openNow(t)
			sent := make(chan error)
			go func() {
				runtime.LockOSThread() // and never unlocked: its user is another
				var err error
				if c.as != 0 {
					_, _, no := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(c.as), uintptr(c.as), uintptr(c.as))
					if no != 0 {
						err = no
					}
				}
				for range c.sends {
					if err == nil {
						err = unix.Sendmsg(far, line(LauncherWord{Made: true}), unix.UnixRights(2), nil, 0)
					}
				}
				sent <- err
			}()
			if err := <-sent; err != nil {
				t.Fatal(err)
			}
			m.hearStep(p)
			r := m.roots["k"]
			if (r != nil) != c.want {
				t.Fatalf("kept: %+v", m.roots)
			}
			more := 0
			if c.want {
				more = 1
				if r.Name != "n" || len(r.mounts) != 1 || !m.newRoot {
					t.Errorf("%+v, those who wait are told: %v", r, m.newRoot)
				}
				if _, err := os.Stat(KeptContainerFile("k")); err != nil {
					t.Error(err)
				}
				if _, err := os.Stat(StepContainerFile(3)); err == nil {
					t.Error("the step's record is there, too")
				}
			} else if c.makes != "" && !c.file && (p.makes != "" || !m.newRoot) {
				t.Errorf("others wait for %q for ever: %v", p.makes, m.newRoot)
			}
			if n := openNow(t); n != before+more {
				t.Errorf("%d files are open, before %d", n, before)
			}
			m.closePrivate()
			if n := openNow(t); n != before || m.roots != nil {
				t.Errorf("%d files are open at the end, before %d", n, before)
			}
		})
	}
}

func openNow(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// TestWhichContainer: what a step with the name of a container runs in, by what is there and what it wants.
func TestWhichContainer(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, StepContainerFile(3), `{"image":"/dir","name":"image","digest":"d"}`)
	many := map[string]*root{}
	for i := range maxRoots {
		many[fmt.Sprint("n", i)] = &root{}
	}
	kept := map[string]*root{"k": {InImage: InImage{Name: "image", Digest: "of k"}}}
	none := "no step of this job has made k on this node: name an image, and leave out :exec"
	there := "k is there already: leave out :create, or give it another name"
	for _, c := range []struct {
		roots       map[string]*root
		job         string // the job's own container is called so
		asks        api.Container
		want, error string // makes NAME, joins, the member's
		digest      string
	}{
		{nil, "", api.Container{Image: "image"}, "makes ", "", "d"},
		{nil, "", api.Container{Image: "image", Name: "k"}, "makes k", "", "d"},
		{nil, "", api.Container{Image: "image", Name: "k", Use: api.UseNew}, "makes k", "", "d"},
		{nil, "", api.Container{Image: "image", Name: "k", Use: api.UseThere}, "", none, ""},
		{nil, "", api.Container{Name: "k"}, "", none, ""},
		{kept, "", api.Container{Image: "image"}, "makes ", "", "d"},
		{kept, "", api.Container{Image: "image", Name: "k"}, "joins", "", "of k"},
		{kept, "", api.Container{Image: "another", Name: "k"}, "joins", "", ""},
		{kept, "", api.Container{Name: "k"}, "joins", "", ""},
		{kept, "", api.Container{Name: "k", Use: api.UseThere}, "joins", "", ""},
		{kept, "", api.Container{Image: "image", Name: "k", Use: api.UseNew}, "", there, ""},
		{nil, "k", api.Container{Name: "k"}, "the member's", "", ""},
		{nil, "k", api.Container{Name: "k", Use: api.UseThere}, "the member's", "", ""},
		{nil, "k", api.Container{Image: "image", Name: "k", Use: api.UseNew}, "", there, ""},
		{nil, "k", api.Container{Image: "image", Name: "l"}, "makes l", "", "d"},
		{many, "", api.Container{Image: "image", Name: "k"}, "", "this job has 64 containers with names on this node, which is all that it may have", ""},
		{many, "", api.Container{Image: "image"}, "makes ", "", "d"},
		{many, "", api.Container{Name: "n3"}, "joins", "", ""},
	} {
		s := &Spec{}
		if c.job != "" {
			s.Container = &Container{InImage: InImage{Container: c.job}}
		}
		m := runningMember(s)
		m.roots = c.roots
		m.state.Steps = []api.StepActual{{ID: 3}}
		p := &stepProc{id: 3}
		own, err := m.rootOf(p, &c.asks)
		got, text := "", ""
		switch {
		case err != nil:
			text = err.Error()
		case own != nil && own.Container == p.makes:
			got = "makes " + p.makes
		case p.at != nil && p.at == c.roots[c.asks.Name]:
			got = "joins"
		default:
			got = "the member's"
		}
		if got != c.want || text != c.error || m.state.Steps[0].Image != c.digest {
			t.Errorf("%+v with %d there: %q, %q, digest %q", c.asks, len(c.roots), got, text, m.state.Steps[0].Image)
		}
	}
}

// TestWaitsForWhoMakesIt: a step that names a container which another is making is held back until that is there, or will not be.
func TestWaitsForWhoMakesIt(t *testing.T) {
	m := runningMember(&Spec{})
	m.lastStep = 3
	near, _ := socketpair(t)
	maker := &stepProc{id: 3, makes: "k", ctl: near}
	m.steps = []*stepProc{maker}
	order := func(id int, name string) api.StepOrder {
		return api.StepOrder{ID: id, Container: &api.Container{Name: name}}
	}
	m.takeSteps([]api.StepOrder{{ID: 3}, order(4, "k")})
	if len(m.held) != 1 || len(m.state.Steps) != 0 {
		t.Fatalf("held are %v, started %+v", m.held, m.state.Steps)
	}
	stop := order(4, "k")
	stop.Stop = true
	if m.isBeingMade(&stop); len(m.held) != 1 {
		t.Fatal("it is not held")
	}
	m.takeSteps([]api.StepOrder{{ID: 3}, stop})
	if len(m.held) != 0 || len(m.state.Steps) != 1 || !m.state.Steps[0].Over {
		t.Errorf("one that is called off: held are %v, %+v", m.held, m.state.Steps)
	}
	for _, c := range []struct {
		change func()
		o      api.StepOrder
		want   bool
	}{
		{func() {}, order(5, "k"), true},
		{func() {}, order(5, "l"), false},
		{func() {}, api.StepOrder{ID: 5}, false},
		{func() {}, api.StepOrder{ID: 5, Container: &api.Container{Image: "i"}}, false},
		{func() { maker.refused = "no" }, order(5, "k"), false},
		{func() { maker.refused = ""; m.roots = map[string]*root{"k": {}} }, order(5, "k"), false},
		{func() { m.roots = nil; maker.makes = "" }, order(5, "k"), false},
	} {
		if c.change(); m.isBeingMade(&c.o) != c.want {
			t.Errorf("%+v: want %v", c.o.Container, c.want)
		}
	}
}

// TestRootOfALayer: the root of a layer has the owner and mode of its image's.
func TestRootOfALayer(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to give a directory away")
	}
	image, upper := t.TempDir(), t.TempDir()
	if err := os.Chmod(image, 0o711); err != nil {
		t.Fatal(err)
	}
	if err := os.Lchown(image, 65534, 65533); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(image, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := likeImage(upper, fd); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat(upper, &st); err != nil || st.Uid != 65534 || st.Gid != 65533 || st.Mode&0o7777 != 0o711 {
		t.Errorf("%v %+v", err, st)
	}
	if err := likeImage(filepath.Join(upper, "none"), fd); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
}
