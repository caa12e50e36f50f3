package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gangd/e2e/trial"
	"gangd/pkg/api"
)

// TestSavesSurviveTheStop: a checkpoint that is on its way when its job is requeued, and gangd is away for the two seconds after
// that, is what the next run begins with.
func TestSavesSurviveTheStop(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=2", "--set", "cpus=8")
	const beside = 5
	lost := 0
	for round := range trial.Rounds(1) {
		var ids []int64
		name := func(what string, i int) string { return filepath.Join(c.tmp, fmt.Sprintf("%s.%d.%d", what, round, i)) }
		for i := range beside {
			script := c.script(fmt.Sprint("save", i), strings.NewReplacer("MID", name("mid", i), "RC", name("rc", i), "GOT", name("got", i), "GO", name("go", 0)).Replace(`#!/bin/bash
if [ $GANG_RESTART_COUNT = 0 ]; then
	echo old | gckpt put -
	trap : TERM
	(head -c 100000 /dev/zero; touch MID; until [ -e GO ]; do sleep 0.1; done; echo new) | gckpt put - & p=$!
	wait $p; wait $p; echo $? >RC
	exit 0
fi
gckpt get | tail -c 4 >GOT
`))
			ids = append(ids, c.submit("--requeue", "-o", "/dev/null", script))
		}
		for i := range ids {
			c.until("a save is under way", func() bool { _, err := os.Stat(name("mid", i)); return err == nil })
		}
		for _, id := range ids {
			c.must("gctl", "requeue", "--now", fmt.Sprint(id))
		}
		c.kill("gangd")
		time.Sleep(time.Second) // half of the time that it is away
		if err := os.WriteFile(name("go", 0), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		c.restart("gangd")
		for i, id := range ids {
			c.wait(id, api.JobCompleted)
			got, _ := os.ReadFile(name("got", i))
			rc, _ := os.ReadFile(name("rc", i))
			if string(got) != "new\n" || string(rc) != "0\n" {
				lost++
				t.Errorf("the next run begins with %q, the put ended with %q\n%s", got, rc, c.story(id))
			}
		}
	}
	t.Logf("%d of %d saves were lost", lost, beside*trial.Rounds(1))
}
