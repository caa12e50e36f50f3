package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/lab/tool"
)

// say is a shell function by which a task speaks.
const say = `say() { python3 -c 'import os,socket,sys
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(sys.argv[1].encode(), os.environ["NOTIFY_SOCKET"])' "$1"; }
`

// fourTasks are allocations for four tasks: on one node, and on two.
var fourTasks = map[string][]string{"one node": {"-N1", "--ntasks-per-node=4"}, "two nodes": {"-N2", "--ntasks-per-node=2"}}

// step submits a batch script whose steps run task, and others.
func (c *cluster) step(script, task string, args ...string) int64 {
	c.t.Helper()
	c.setenv("TASK", c.script("task.sh", "#!/bin/bash\n"+say+task))
	path := c.script("batch.sh", "#!/bin/bash\nexport PATH="+filepath.Join(c.tmp, "slurm")+":$PATH\n"+script)
	return c.submit(append(args, "--requeue", "-o", "batch.out", path)...)
}

func (c *cluster) create(name string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.tmp, name), nil, 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// What each task says is shown as its own, the ready gate waits for all of them, and a barrier is
// one of a step: of two with the same name neither counts the other's tasks.
func TestTasksSpeakForThemselves(t *testing.T) {
	t.Parallel()
	tool.Need(t, "python3")
	c := start(t, "--nodes=2", "--set", "cpus=16")
	slurmNames(t, c)
	for name, shape := range fourTasks {
		t.Run(name, func(t *testing.T) {
			id := c.step("srun --overlap -n4 $TASK first & srun --overlap -n2 $TASK second & wait\n", `
say "WATCHDOG=1
STATUS=$1 $SLURM_PROCID of $GANG_SIZE"
while [ $1 = first ] && [ $SLURM_PROCID = 3 ] && [ ! -e ready ]; do sleep 0.05; done
[ $1 = second ] || say READY=1
while [ $1.$SLURM_PROCID = first.2 ] && [ ! -e meet ]; do sleep 0.05; done
gbarrier meet && echo $SLURM_PROCID >> met.$1
[ $1 = second ] || exec sleep 600
`, append(shape, "--ready-timeout=10m")...)
			said := func() (out []string) {
				for _, s := range c.job(id).Steps {
					for _, x := range s.TaskList {
						if !x.Ended {
							out = append(out, fmt.Sprintf("%s.%d %s %v %v", s.StepID, x.Task, x.Status, x.Ready, !x.LastBeat.IsZero()))
						}
					}
				}
				return out
			}
			// The second step passes its barrier alone, and ends.
			var wide string
			c.until("three tasks of the wide step are ready, the other step is over", func() bool {
				j := c.job(id)
				if len(j.Steps) != 1 || j.Steps[0].Tasks != 4 {
					return false
				}
				wide = j.Steps[0].StepID
				return strings.Join(said(), "; ") == fmt.Sprintf("%[1]s.0 first 0 of 4 true true; %[1]s.1 first 1 of 4 true true; %[1]s.2 first 2 of 4 true true; %[1]s.3 first 3 of 4 false true", wide)
			})
			j := c.job(id)
			if j.Ranks[0].Status != "" || !j.Ranks[0].LastBeat.IsZero() || j.Status != "first 0 of 4" || j.Reason != "NotReady" || j.Ready == nil || j.Ready.Ranks != 3 || j.Ready.Size != 4 {
				t.Errorf("status %q, reason %s, ready %+v, rank 0 %+v", j.Status, j.Reason, j.Ready, j.Ranks[0])
			}
			if n := lines(t, filepath.Join(c.tmp, "met.second")); len(n) != 2 {
				t.Errorf("of the second step %v met", n)
			}
			if _, err := os.Stat(filepath.Join(c.tmp, "met.first")); err == nil {
				t.Error("a barrier let tasks through without task 2")
			}
			c.create("ready")
			c.until("the ready gate is passed", func() bool { return c.job(id).Reason == "None" })
			c.create("meet")
			c.until("all four have met", func() bool {
				b, _ := os.ReadFile(filepath.Join(c.tmp, "met.first"))
				return strings.Count(string(b), "\n") == 4
			})
			c.must("gcancel", "--now", strconv.FormatInt(id, 10))
			c.wait(id, api.JobCancelled)
			for _, f := range []string{"ready", "meet", "met.first", "met.second"} {
				if err := os.Remove(filepath.Join(c.tmp, f)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// Checkpoints are by task of the widest step: after a requeue each task gets its own, as a file, in
// the environment and from gckpt; other steps are refused, and a set that not all have put is none.
func TestTasksResumeFromTheirOwn(t *testing.T) {
	t.Parallel()
	tool.Need(t, "python3")
	c := start(t, "--nodes=2", "--set", "cpus=16")
	slurmNames(t, c)
	for name, shape := range fourTasks {
		t.Run(name, func(t *testing.T) {
			id := c.step(`echo script $GANG_EPOCH | gckpt put -
srun --overlap -n4 $TASK wide &
while [ ! -e narrow ]; do sleep 0.05; done
srun --overlap -n2 $TASK narrow
srun --overlap -n4 $TASK beside
srun --overlap -n1 bash -c 'GANG_SOCKET= gckpt put $TASK; echo "without $?"'
cat $GANG_CHECKPOINT_FILE
touch narrowed
wait
`, `
me=$GANG_EPOCH.$1.$SLURM_PROCID
case $1 in
wide)
	{ cat $GANG_CHECKPOINT_FILE; base64 -d <<< $CHECKPOINT_DATA; gckpt get; gckpt get --rank=3; } > got.$me 2>&1
	[ $SLURM_PROCID = 3 ] && while [ ! -e all ] && [ $GANG_EPOCH = 1 ]; do sleep 0.05; done
	[ $GANG_EPOCH = 2 ] && [ $SLURM_PROCID = 0 ] || echo "state of $me" | gckpt put -
	echo $? > put.$me
	exec sleep 600 ;;
*)
	gckpt put $TASK 2> put.$me
	echo $? >> put.$me ;;
esac
`, shape...)
			read := func(name string) string { b, _ := os.ReadFile(filepath.Join(c.tmp, name)); return string(b) }
			c.until("three of four have put theirs", func() bool {
				k := c.job(id).TaskCheckpoint
				return k != nil && k.Bytes == int64(3*len("state of 1.wide.0\n"))
			})
			if k := c.job(id).TaskCheckpoint; k.Complete || k.Tasks != 4 {
				t.Errorf("a set of three is %+v", k)
			}
			c.create("narrow")
			c.until("the narrow steps have tried", func() bool { _, err := os.Stat(filepath.Join(c.tmp, "narrowed")); return err == nil })
			id0 := strconv.FormatInt(id, 10)
			for file, want := range map[string]string{
				"put.1.narrow.0": "gckpt: checkpoints are kept of a job's widest step: step " + id0 + ".1 has 2 tasks, step " + id0 + ".0 has 4; write it to a file in $GANG_CHECKPOINT_DIR\n1\n",
				"put.1.beside.3": "gckpt: checkpoints are kept of one step at a time: those of step " + id0 + ".0, which began before step " + id0 + ".2 and has as many tasks; write it to a file in $GANG_CHECKPOINT_DIR\n1\n",
			} {
				if got := read(file); got != want {
					t.Errorf("%s: %q, want %q", file, got, want)
				}
			}
			if out := read("batch.out"); !strings.Contains(out, "GANG_SOCKET is not set") || !strings.Contains(out, "without 1") {
				t.Errorf("without a socket: %s", out)
			}
			c.create("all")
			c.until("the set is complete", func() bool { k := c.job(id).TaskCheckpoint; return k != nil && k.Complete })
			c.must("gctl", "requeue", id0)
			// In the second attempt task 0 puts none: the set of the first stays the newest complete one.
			c.until("the second attempt has put three", func() bool {
				k := c.job(id).TaskCheckpoint
				return k != nil && k.Epoch == 2 && k.Bytes == int64(3*len("state of 1.wide.0\n"))
			})
			c.must("gctl", "requeue", id0)
			c.until("the third attempt has put its set", func() bool { k := c.job(id).TaskCheckpoint; return k != nil && k.Epoch == 3 && k.Complete })
			for _, epoch := range []string{"2", "3"} {
				for task := range 4 {
					own := fmt.Sprintf("state of 1.wide.%d\n", task)
					if got := read(fmt.Sprintf("got.%s.wide.%d", epoch, task)); got != own+own+own+"state of 1.wide.3\n" {
						t.Errorf("attempt %s, task %d started from %q", epoch, task, got)
					}
				}
			}
			c.until("the script has its own", func() bool { return strings.Contains(read("batch.out"), "script 2\n") })
			c.must("gcancel", "--now", id0)
			c.wait(id, api.JobCancelled)
			for _, f := range []string{"narrow", "narrowed", "all", "batch.out"} {
				_ = os.Remove(filepath.Join(c.tmp, f))
			}
		})
	}
}

// One silent task is enough, whichever: the beats of the others do not stand for it. A task that
// has ended is not waited for.
func TestSilentTaskEndsTheGang(t *testing.T) {
	t.Parallel()
	tool.Need(t, "python3")
	// The others beat by programs that they start: megabytes from one look to the next, and little in
	// a second, which is what counts where the looks are not 200 ms apart.
	c := start(t, append([]string{"--nodes=2", "--gpus=4x80G", "--set", "cpus=16", "--set", "host_static_bytes=64MiB"}, slowBeats...)...)
	slurmNames(t, c)
	for name, shape := range fourTasks {
		t.Run(name, func(t *testing.T) {
			id := c.step("srun -n4 $TASK\n", `
say "WATCHDOG=1"
[ $SLURM_PROCID != 1 ] || exit 0
[ $SLURM_PROCID != 3 ] || touch mute
while [ $SLURM_PROCID != 3 ] || [ ! -e silent ]; do say WATCHDOG=1; sleep 0.2; done
exec sleep 600
`, append(shape, "--gpus-per-node=1", "--stall-retries=0")...)
			c.until("task 3 beats", func() bool { _, err := os.Stat(filepath.Join(c.tmp, "mute")); return err == nil })
			c.create("silent")
			j := c.wait(id, api.JobFailed)
			if j.Cause != api.CauseStalled || *j.ExitCode != 76 {
				t.Errorf("cause %s, exit code %d\n%s", j.Cause, *j.ExitCode, c.story(id))
			}
			who := fmt.Sprintf("task 3 of step %d.0", id)
			ev := c.event(id, 1, api.EventStallSuspected)
			if ev == nil || ev.Task == nil || *ev.Task != (api.TaskKey{Step: 0, Task: 3}) || ev.Rank != nil || !strings.HasPrefix(ev.Text, who+" has not beaten for ") {
				t.Errorf("suspected %+v", ev)
			}
			if ev := c.event(id, 1, api.EventDrainStarted); ev == nil || !strings.HasPrefix(ev.Text, who+" was silent for ") {
				t.Errorf("drain %+v", ev)
			}
			for _, f := range []string{"silent", "mute"} {
				_ = os.Remove(filepath.Join(c.tmp, f))
			}
		})
	}
}

// A step that is ended alone tells its own tasks why, and no others. Its sockets end with it.
func TestStepEndedAlone(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=2", "--set", "cpus=16")
	slurmNames(t, c)
	c.setenv("PATH", c.bin+":"+os.Getenv("PATH"))
	id := c.step(`srun --overlap -n2 $TASK one & srun --overlap -n1 $TASK two &
until [ $(ls up.* 2> /dev/null | wc -l) = 3 ]; do sleep 0.05; done
gcancel $SLURM_JOB_ID.$(cat up.one.0)
wait %1
ls $(dirname $GANG_SOCKET) > left
touch done
wait
`, `
trap 'grep -v -e time -e seconds_left $GANG_STATUS_FILE > why.$1.$SLURM_PROCID; exit 0' TERM
echo $SLURM_STEP_ID > up.$1.$SLURM_PROCID
while [ ! -e done ]; do sleep 0.05; done
[ ! -e $GANG_STATUS_FILE ] && touch none.$1
`, "-N2", "--ntasks-per-node=2")
	c.wait(id, api.JobCompleted, api.JobFailed)
	step := lines(t, filepath.Join(c.tmp, "up.one.0"))[0]
	for task := range 2 {
		want := fmt.Sprintf("state=stopping cause=cancelled text=step %d.%s is ended signal=TERM epoch=1", id, step)
		if got := strings.Join(lines(t, filepath.Join(c.tmp, fmt.Sprintf("why.one.%d", task))), " "); got != want {
			t.Errorf("task %d read %q, want %q", task, got, want)
		}
	}
	if _, err := os.Stat(filepath.Join(c.tmp, "none.two")); err != nil {
		t.Error("the tasks of the other step read of an end, too")
	}
	left := lines(t, filepath.Join(c.tmp, "left"))
	if of := func(l string) bool { return strings.Contains(l, step+".") }; slices.ContainsFunc(left, of) || !slices.Contains(left, "g0") {
		t.Errorf("in the member's directory is left %q", left)
	}
}
