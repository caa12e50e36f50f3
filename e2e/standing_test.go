package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
)

var latestStart = regexp.MustCompile(`starts at the latest at ((?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d), if none`)

// TestUnderAStandingQueue: a gang of all cards comes to a queue of jobs of a card that never gets
// empty, with each order and preemption. It starts by the time that gqueue --why says of it.
func TestUnderAStandingQueue(t *testing.T) {
	t.Parallel()
	chaos(t)
	const waiting = 20
	for _, order := range []string{"service", "fair", "fifo", "largest-first"} {
		for _, preempt := range []string{"off", "tier", "service"} {
			for _, guard := range []string{"2s", "48h"} {
				t.Run(order+"/"+preempt+"/"+guard, func(t *testing.T) {
					if guard == "48h" && (order != "service" || preempt == "service") {
						t.Skip("its turn comes after two days: TestStartedAsStated of pkg/core/sched has it")
					}
					c := start(t, "--nodes=2", "--gpus=4x80G", "--set", "order="+order, "--set", "preempt="+preempt, "--set", "guard_after="+guard)
					for range rounds(1) {
						small := func() {
							if n := waiting - len(strings.Fields(c.must("gqueue", "-h", "-r", "-t", "PD", "-o", "%i"))); n > 0 {
								c.submit(fmt.Sprintf("--array=1-%d", n), "--gpus-per-rank=1", "--time=0:02", "-o", "/dev/null", "--wrap", "sleep 0.5")
							}
						}
						for range 5 {
							small()
							time.Sleep(200 * time.Millisecond)
						}
						small()
						ours := c.submit("--size=8", "--gpus-per-rank=1", "--time=0:02", "-o", "/dev/null", "--wrap", "true")
						came := time.Now()
						why := c.must("gqueue", "--why", fmt.Sprint(ours))
						var by time.Time
						switch m := latestStart.FindStringSubmatch(why); {
						case m == nil:
							by = came.Add(patience) // places are kept for it, and nobody may come before
						default:
							if len(m[1]) == len("15:04:05") {
								m[1] = came.Format("2006-01-02 ") + m[1]
							}
							var err error
							if by, err = time.ParseInLocation(time.DateTime, m[1], time.Local); err != nil {
								t.Fatal(err)
							}
						}
						for c.job(ours).State == api.JobPending {
							if small(); time.Now().After(by) {
								t.Fatalf("waits since %s, was to start by %s:\n%s", came, by, why)
							}
						}
						t.Logf("started after %.1f s, said within %.0f s", time.Since(came).Seconds(), by.Sub(came).Seconds())
					}
				})
			}
		}
	}
}
