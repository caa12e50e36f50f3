package proc

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLoginLimits: who is meant by a rule, which of several counts, and in which units.
func TestLoginLimits(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "limits.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	l := &LoginLimits{dir: dir, group: func(name string) (uint32, bool) { return 500, name == "lab" }}
	put := func(name string, lines ...string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	first := func(name string) Rlimit {
		i := slices.IndexFunc(firstLimits(), func(l Rlimit) bool { return l.Name == name })
		if i < 0 {
			t.Skipf("the first process of this machine says nothing of %s", name)
		}
		return firstLimits()[i]
	}
	of := func(user string, uid uint32, gids []uint32, name string) Rlimit {
		limits, _ := l.Of(user, uid, gids)
		i := slices.IndexFunc(limits, func(l Rlimit) bool { return l.Name == name })
		return limits[i]
	}
	if got := of("ada", 1000, nil, "nofile"); got != first("nofile") {
		t.Errorf("without rules %+v, want %+v", got, first("nofile"))
	}
	put("limits.conf", "# a comment", "* - nofile 100", "* hard memlock 64 # of all", "@lab soft nofile 200", "ada hard nofile 300", "* - nofile 400",
		"@none - nofile 1", "%lab - nofile 2", "* - maxlogins 3", "* - nofile", "* - nofile many", "2000:2999 - cpu 5", "@400:499 - fsize 7", ":3000 - rss 1", "4000: - rss 2", "bob - priority 5", "* - priority 10")
	put("limits.d/90.conf", "ada soft stack unlimited", "ada - as -1", "* - nice -5", "root - nofile 9")
	put("limits.d/not-read", "* - nofile 5")
	for _, c := range []struct {
		user       string
		uid        uint32
		gids       []uint32
		name       string
		soft, hard uint64
	}{
		{"bob", 1001, nil, "nofile", 400, 400},
		{"bob", 1001, []uint32{7, 500}, "nofile", 200, 400},
		{"ada", 1000, []uint32{500}, "nofile", 200, 300},
		{"ada", 1000, nil, "nofile", 300, 300},
		{"bob", 1001, nil, "memlock", min(64<<10, first("memlock").Soft), 64 << 10},
		{"eve", 2500, nil, "cpu", 300, 300},
		{"eve", 3000, []uint32{450}, "fsize", 7 << 10, 7 << 10},
		{"eve", 3000, nil, "rss", 1 << 10, 1 << 10},
		{"eve", 4001, nil, "rss", 2 << 10, 2 << 10},
		{"ada", 1000, nil, "as", NoRlimit, NoRlimit},
		{"bob", 1001, nil, "nice", 25, 25},
		{"root", 0, nil, "nofile", 9, 9},
		{"root", 0, nil, "memlock", first("memlock").Soft, first("memlock").Hard},
	} {
		if got := of(c.user, c.uid, c.gids, c.name); got.Soft != c.soft || got.Hard != c.hard {
			t.Errorf("%s (%d, %v): %+v, want %d:%d", c.user, c.uid, c.gids, got, c.soft, c.hard)
		}
	}
	for user, want := range map[string]int{"bob": 5, "ada": 10} {
		if _, nice := l.Of(user, 1001, nil); nice != want {
			t.Errorf("niceness of %s %d, want %d", user, nice, want)
		}
	}
	put("limits.conf", "* - nofile 77")
	if got := of("bob", 1001, nil, "nofile"); got.Soft != 77 {
		t.Errorf("after a change %+v", got)
	}
	put("limits.conf", "@lab - nofile 88", "* - nofile 77")
	for _, known := range []bool{false, true} { // its directory answers late, say
		l.group = func(string) (uint32, bool) { return 600, known }
		if got, want := of("bob", 1001, []uint32{600}, "nofile"), map[bool]uint64{false: 77, true: 88}[known]; got.Soft != want {
			t.Errorf("a group that is known: %v: %+v, want %d", known, got, want)
		}
	}
}

func TestReadLimits(t *testing.T) {
	const text = `Limit                     Soft Limit           Hard Limit           Units
Max cpu time              unlimited            unlimited            seconds
Max open files            1024                 524288               files
Max locked memory         8388608              8388608              bytes
Max realtime timeout      unlimited            unlimited            us
`
	want := []Rlimit{{"cpu", NoRlimit, NoRlimit}, {"nofile", 1024, 524288}, {"memlock", 8388608, 8388608}}
	if got := readLimits(text); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestJobLimits(t *testing.T) {
	got, err := JobLimits([]string{"memlock=unlimited", "nofile=10:20", "cpu=2"})
	if want := []Rlimit{{"memlock", NoRlimit, NoRlimit}, {"nofile", 10, 20}, {"cpu", 120, 120}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", "files=3", "nofile", "nofile=", "nofile=x", "nofile=5:4", "nofile=-2"} {
		if _, err := JobLimits([]string{bad}); err == nil || !strings.HasPrefix(err.Error(), `"`+bad+`": want `) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if got := With([]Rlimit{{"cpu", 1, 1}, {"rss", 2, 2}}, []Rlimit{{"rss", 3, 3}, {"core", 0, 0}}); !slices.Equal(got, []Rlimit{{"cpu", 1, 1}, {"rss", 3, 3}, {"core", 0, 0}}) {
		t.Errorf("%+v", got)
	}
}

// TestLimited: what is started has the limits, and this process has its own again. A hard limit above this process's is
// given as far as it goes.
func TestLimited(t *testing.T) {
	var before, within, after unix.Rlimit
	get := func(r *unix.Rlimit) {
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, r); err != nil {
			t.Fatal(err)
		}
	}
	get(&before)
	restore := Limited([]Rlimit{{"nofile", 256, before.Max}, {"no such", 1, 1}, {"as", 1, 1}})
	get(&within)
	restore()
	get(&after)
	if within != (unix.Rlimit{Cur: 256, Max: before.Max}) || after != before {
		t.Errorf("before %+v, within %+v, after %+v", before, within, after)
	}
	restore = Limited([]Rlimit{{"nofile", 1 << 40, 1 << 40}}) // more than the kernel lets anybody have
	get(&within)
	restore()
	if within != (unix.Rlimit{Cur: before.Max, Max: before.Max}) {
		t.Errorf("above the kernel's own bound: %+v", within)
	}
}
