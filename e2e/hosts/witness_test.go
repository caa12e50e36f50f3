package hosts

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Files of one rank of one epoch, in the job's working directory:
//
//	JOB.EPOCH.RANK.lock   locked for as long as any process of the rank exists
//	JOB.EPOCH.RANK.live   8 bytes: CLOCK_BOOTTIME when it last lived, every 20 ms
//	JOB.EPOCH.RANK.log    lines: what happened, CLOCK_BOOTTIME, pid, more
//
// What happened is start, term (told to end), exit (with the code, just before it), and
// overlap (another epoch of the job lives).

// rankMain is a rank: it lives for some time or until a file is there, and ends with a code.
//
//	RANK ms|FILE code[,code...] [escape]
//
// Of several codes each rank has its own.
func rankMain() {
	w := newWitness()
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	w.start()
	args := os.Args[1:]
	codes := strings.Split(args[1], ",")
	code := atoi(codes[atoi(w.rank)%len(codes)])
	if len(args) > 2 && args[2] == "escape" {
		w.escape()
	}
	until, file := time.Duration(1<<62), ""
	if ms, err := strconv.Atoi(args[0]); err == nil {
		until = boottime() + time.Duration(ms)*time.Millisecond
	} else {
		file = args[0]
	}
	tick := time.NewTicker(20 * time.Millisecond)
	for {
		select {
		case <-term:
			w.say("term")
			w.exit(0)
		case <-tick.C:
		}
		w.live()
		if boottime() >= until {
			w.exit(code)
		}
		if _, err := os.Stat(file); file != "" && err == nil {
			w.exit(code)
		}
	}
}

// witness is what a rank writes.
type witness struct {
	job, epoch, rank string
	lock, alive, log *os.File
}

func newWitness() *witness {
	w := &witness{job: os.Getenv("GANG_JOB_ID"), epoch: os.Getenv("GANG_EPOCH"), rank: os.Getenv("GANG_RANK")}
	open := func(kind string) *os.File {
		f, err := os.OpenFile(fmt.Sprintf("%s.%s.%s.%s", w.job, w.epoch, w.rank, kind), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
		if err != nil {
			panic(err)
		}
		return f
	}
	w.lock, w.log = open("lock"), open("log")
	alive, err := os.OpenFile(fmt.Sprintf("%s.%s.%s.live", w.job, w.epoch, w.rank), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		panic(err)
	}
	w.alive = alive
	return w
}

// start takes the lock and looks for other epochs. Who holds a lock holds it exclusively;
// who looks asks for a shared one, so two who look do not see each other.
func (w *witness) start() {
	if err := unix.Flock(int(w.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		// Somebody looks this instant, or this rank runs twice.
		time.Sleep(100 * time.Millisecond)
		if unix.Flock(int(w.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
			w.say("overlap", "with itself")
		}
	}
	w.live()
	w.say("start")
	others, _ := filepath.Glob(w.job + ".*.lock")
	for _, o := range others {
		f := strings.Split(filepath.Base(o), ".")
		if f[1] != w.epoch && held(o) {
			w.say("overlap", "with epoch", f[1], "rank", f[2])
		}
	}
}

// escape leaves a process behind that does what it can to survive: its own session, a
// parent that ends, no environment, TERM ignored. It keeps the lock.
func (w *witness) escape() {
	cmd := exec.Command("/usr/bin/setsid", "-f", "/bin/sh", "-c", "trap '' TERM HUP INT; while :; do sleep 5; done")
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	cmd.ExtraFiles = []*os.File{w.lock}
	if err := cmd.Run(); err != nil {
		w.say("no-escape", err.Error())
	}
}

func (w *witness) live() {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(boottime()))
	_, _ = w.alive.WriteAt(b[:], 0)
}

func (w *witness) say(what string, more ...string) {
	line := fmt.Sprintf("%s %d %d %s\n", what, int64(boottime()), os.Getpid(), strings.Join(more, " "))
	_, _ = w.log.WriteString(line)
}

func (w *witness) exit(code int) {
	w.live()
	w.say("exit", strconv.Itoa(code))
	os.Exit(code)
}

func boottime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}

// held reports whether somebody holds a lock file.
func held(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil
}

// rank is the command line of a rank that lives so long (or until a file is there) and ends
// with a code.
func (l *lab) rank(until string, code any, more ...string) string {
	return fmt.Sprintf("exec env %s=rank %s %s %v %s", role, l.self, until, code, strings.Join(more, " "))
}

// key names one rank of one epoch.
type key struct {
	job         int64
	epoch, rank int
}

// seen is what one rank of one epoch has witnessed.
type seen struct {
	starts   int
	pid      int
	start    time.Duration // all on CLOCK_BOOTTIME
	last     time.Duration // sign of life
	term     time.Duration // told to end, 0: never
	exit     *int          // its own word
	overlaps []string
}

// witnesses reads all files; those of one job when id is not 0.
func (l *lab) witnesses(id int64) map[key]*seen {
	l.t.Helper()
	out := map[key]*seen{}
	pattern := "*.log"
	if id != 0 {
		pattern = fmt.Sprintf("%d.*.log", id)
	}
	logs, _ := filepath.Glob(filepath.Join(l.tmp, pattern))
	for _, name := range logs {
		var k key
		if _, err := fmt.Sscanf(filepath.Base(name), "%d.%d.%d.log", &k.job, &k.epoch, &k.rank); err != nil {
			l.t.Fatal(name, err)
		}
		b, err := os.ReadFile(name)
		if err != nil {
			l.t.Fatal(err)
		}
		s := &seen{}
		for line := range bytes.Lines(b) {
			s.add(l.t, string(line))
		}
		if b, _ := os.ReadFile(strings.TrimSuffix(name, "log") + "live"); len(b) == 8 {
			s.last = time.Duration(binary.LittleEndian.Uint64(b))
		}
		out[k] = s
	}
	return out
}

func (s *seen) add(t *testing.T, line string) {
	t.Helper()
	f := strings.Fields(line)
	if len(f) < 3 {
		return // written in this instant
	}
	at, err := strconv.ParseInt(f[1], 10, 64)
	if err != nil {
		t.Fatalf("witness line %q", line)
	}
	switch f[0] {
	case "start":
		s.starts++
		s.start, s.pid = time.Duration(at), atoi(f[2])
	case "term":
		s.term = time.Duration(at)
	case "exit":
		code := atoi(f[3])
		s.exit = &code
	case "no-escape": // it was told to end before it had done that
	case "overlap":
		s.overlaps = append(s.overlaps, strings.Join(f[3:], " "))
	default:
		t.Fatalf("witness line %q", line)
	}
}

func atoi(s string) int { n, _ := strconv.Atoi(s); return n }

// runs waits until all ranks of an epoch have spoken.
func (l *lab) runs(id int64, epoch, size int) {
	l.t.Helper()
	l.until(fmt.Sprintf("epoch %d of job %d runs", epoch, id), func() bool {
		n := 0
		for k, s := range l.witnesses(id) {
			if k.epoch == epoch && s.starts > 0 {
				n++
			}
		}
		return n == size
	})
}

// placed waits until an epoch of the job runs with size ranks, and says which. A reservation
// that meets the last gasp of a cut is rolled back, so it need not be the first.
func (l *lab) placed(id int64, size int) int {
	l.t.Helper()
	epoch := 0
	l.until(fmt.Sprintf("job %d runs", id), func() bool {
		started := map[int]int{}
		for k, s := range l.witnesses(id) {
			if s.starts > 0 {
				started[k.epoch]++
			}
		}
		for e, n := range started {
			if n == size {
				epoch = e
			}
		}
		return epoch != 0
	})
	return epoch
}

// living names every rank of which a process exists, by its lock.
func (l *lab) living() []string {
	locks, _ := filepath.Glob(filepath.Join(l.tmp, "*.lock"))
	var out []string
	for _, f := range locks {
		if held(f) {
			out = append(out, strings.TrimSuffix(filepath.Base(f), ".lock"))
		}
	}
	return out
}

// overlaps names every rank that met another epoch of its job, or itself.
func overlaps(w map[key]*seen) []string {
	var out []string
	for k, s := range w {
		for _, o := range s.overlaps {
			out = append(out, fmt.Sprintf("job %d epoch %d rank %d %s", k.job, k.epoch, k.rank, o))
		}
		if s.starts > 1 {
			out = append(out, fmt.Sprintf("job %d epoch %d rank %d started %d times", k.job, k.epoch, k.rank, s.starts))
		}
	}
	return out
}
