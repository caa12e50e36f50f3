package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gangd/pkg/api"
)

var updateWhy = flag.Bool("update", false, "write the golden files")

var (
	moments   = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)`)
	clocks    = regexp.MustCompile(`(\d{4}-\d\d-\d\d )?\b\d\d:\d\d:\d\d\b`)
	durations = regexp.MustCompile(`\bin (\d+h)?(\d+m)?\d+s\b`)
	limits    = regexp.MustCompile(`--time=\d+`)
)

// TestWhy: what gqueue --why answers to each thing that keeps a job from starting, word by word.
// Each answer has to name what to do, or until when to wait.
func TestWhy(t *testing.T) {
	t.Parallel()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	var c *cluster
	sleep := func(args ...string) int64 { return c.submit(append(args, "-o", "/dev/null", "--wrap", "sleep 600")...) }
	why := func(title, id string) {
		text := c.must("gqueue", "--why", id)
		text = moments.ReplaceAllString(text, "MOMENT")
		text = clocks.ReplaceAllString(text, "CLOCK")
		text = limits.ReplaceAllString(durations.ReplaceAllString(text, "in DURATION"), "--time=MINUTES")
		fmt.Fprintf(&out, "== %s\n%s", title, strings.ReplaceAll(text, me.Username, "USER"))
	}
	num := func(id int64) string { return fmt.Sprint(id) }

	c = start(t, "--nodes=4", "--gpus=2x80G")
	whole := c.wait(sleep("--size=3", "--gpus-per-rank=2", "--time=60", "--nodelist=n[1-3]"), api.JobRunning).JobID
	c.wait(sleep("--gpus-per-rank=1", "--vram=60G", "--share", "--time=30", "--nodelist=n4"), api.JobRunning)
	resources := sleep("--size=2", "--gpus-per-rank=2", "--time=10")
	why("resources", num(resources))
	behind := sleep("--size=2", "--gpus-per-rank=2", "--time=10")
	why("behind its equal", num(behind))
	c.must("gcancel", num(resources), num(behind))
	vram := sleep("--gpus-per-rank=1", "--vram=40G", "--share", "--nodelist=n4", "--size=2")
	why("VRAM", num(vram))
	low := sleep("--gpus-per-rank=1", "--time=120", "--nodelist=n4", "--nice=5")
	why("behind a claim", num(low))
	c.must("gcancel", num(vram), num(low))
	held := sleep("--hold")
	why("held", num(held))
	why("begin time", num(sleep("--begin=now+1hour")))
	why("dependency", num(sleep("-d", "afterok:"+num(whole))))
	array := sleep("--array=0-3%1")
	c.until("one element runs", func() bool { return c.must("gqueue", "-h", "-t", "R", "-j", num(array), "-o", "%i") != "" })
	why("array limit", num(array)+"_2")
	c.must("gcancel", num(array))
	c.until("the array is gone", func() bool { return c.must("gqueue", "-h", "-t", "PD,R,CG", "-j", num(array), "-o", "%i") == "" })
	c.must("gctl", "node", "drain", "n4", "--reason=fan")
	node := sleep("--nodelist=n4")
	why("required node drained", num(node))
	c.must("gcancel", num(node))
	c.must("gctl", "node", "resume", "n4")
	c.must("gctl", "create", "reservation", "talk", "starttime=now+10minutes", "duration=60", "nodes=n4", "users="+me.Username, "flags=ignore_jobs")
	into := sleep("--nodelist=n4", "--time=20")
	why("reservation of others", num(into))
	c.must("gcancel", num(into))
	why("its own reservation", num(sleep("--reservation=talk")))
	why("deadline", num(sleep("--gpus-per-rank=2", "--size=4", "--deadline=now+2hours", "--time=60")))

	c = start(t, "--nodes=1", "--gpus=4x80G", "--set", "user_cards=3")
	c.wait(sleep("--gpus-per-rank=2", "--time=30"), api.JobRunning)
	why("cap", num(sleep("--gpus-per-rank=2", "--time=30")))

	golden := filepath.Join("testdata", "why.golden")
	if *updateWhy {
		if err := os.WriteFile(golden, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), out.String()); d != "" {
		t.Errorf("testdata/why.golden (-want +got; run with -update to accept):\n%s", d)
	}
}
