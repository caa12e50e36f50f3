package script

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gangd/pkg/api"
)

// fields cuts arguments at blanks; a value may have them as _.
func fields(args string) []string {
	out := strings.Fields(args)
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], "_", " ")
	}
	return out
}

// TestRefusedByWord: what each option refuses, with the place and the next step.
func TestRefusedByWord(t *testing.T) {
	big := strconv.Itoa(api.MaxGangSize)
	for args, want := range map[string]string{
		"--time=x":                          "--time=x: not a time; " + timeForms,
		"--size=":                           "--size=: not a whole number; write a number from 1 to " + big,
		"--time-min=0":                      "--time-min=0: there is no shortest limit of nothing; write --time-min=10 (minutes), or leave it out",
		"--time-min=x":                      "--time-min=x: not a time; " + timeForms,
		"--deadline=never":                  "--deadline=never: not a time; " + beginForms,
		"--begin=never":                     "--begin=never: not a time; " + beginForms,
		"--grace=0":                         "--grace=0: the grace must be more than nothing; write --grace=15",
		"--grace=86401":                     "--grace=86401: longer than a day; write --grace=15, or use --signal=USR1@2h for an early notice",
		"--grace=x":                         "--grace=x: not a time; write 120 (seconds), 2m or 1h",
		"--grace-max=0":                     "--grace-max=0: the grace must be more than nothing; write --grace=15",
		"--stall-timeout=0":                 "--stall-timeout=0: the time-out must be more than nothing; write --stall-timeout=120, or off: silence is not judged",
		"--stall-timeout=x":                 "--stall-timeout=x: not a time; write 120 (seconds), 2m or 1h",
		"--ready-timeout=0":                 "--ready-timeout=0: want more than nothing and at most a day; write --ready-timeout=5m",
		"--ready-timeout=86401":             "--ready-timeout=86401: want more than nothing and at most a day; write --ready-timeout=5m",
		"--ready-timeout=x":                 "--ready-timeout=x: not a time; write 120 (seconds), 2m or 1h",
		"--min-run=x":                       "--min-run=x: not a time; write 120 (seconds), 2m or 1h",
		"--max-time-total=0":                "--max-time-total=0: want more than nothing; write --max-time-total=3-00:00:00",
		"--max-time-total=x":                "--max-time-total=x: not a time; " + timeForms,
		"--checkpoint=always":               "--checkpoint=always: not known; write --checkpoint=drain, or leave it out to take them at any time",
		"--fail=all":                        "--fail=all: not known; write --fail=any, or leave it out to let the script decide",
		"--switches=2@x":                    "--switches=2@x: not a time; " + timeForms,
		"--switches=x":                      "--switches=x: not a whole number; write a number from 1 to 1048576",
		"--reservation=a,b":                 "--reservation=a,b: more than one reservation; name one of them",
		"--requeue=crash,fire":              `--requeue=crash,fire: unknown cause "fire"; causes are crash, oom, launch, node-lost, preempted, requeued, stalled, gpu-hang, idle, timeout`,
		"--exclusive=topo":                  "--exclusive=topo: unknown value; write --exclusive alone: no other gang on the nodes",
		"--cpu-bind=map_cpu":                "--cpu-bind=map cpu: want none, cores or ldoms; lists of CPUs are for steps: srun --cpu-bind=map_cpu:0,1",
		"--hint=fast":                       "--hint=fast: want nomultithread, multithread, compute_bound or memory_bound",
		"--gpu-bind=near":                   "--gpu-bind=near: unknown type; types are none, closest, single:N, per_task:N, map_gpu:LIST and mask_gpu:LIST",
		"--input=a%j":                       "--input=a%j: an input is one path, without %; let the script choose: exec < input.$GANG_RANK",
		"--open-mode=x":                     "--open-mode=x: unknown mode; write --open-mode=append or --open-mode=truncate",
		"--launch=x":                        "--launch=x: unknown way to launch; write --launch=ranks (the script runs in every rank) or --launch=batch (once, on the first node)",
		"--kill-on-invalid-dep=x":           "--kill-on-invalid-dep=x: not yes or no; write --kill-on-invalid-dep=yes or =no",
		"--output=logs/":                    "--output=logs/: names a directory, not a file; write logs/gang-%j.out",
		"--error=":                          "--error=: the value is empty",
		"--nodelist=n[":                     "--nodelist=n[: not a list of nodes; write n1,n2 or n[1-4,7]",
		"--nodelist=":                       "--nodelist=: not a list of nodes; write n1,n2 or n[1-4,7]",
		"--partition=a,,b":                  "--partition=a,,b: not a list of names; write --partition=gpu or --partition=gpu,debug",
		"--partition=a/b":                   "--partition=a/b: not a list of names; write --partition=gpu or --partition=gpu,debug",
		"-N -3":                             "--nodes=-3: less than 1; write a number from 1 to 2147483648",
		"-N 1-x":                            "--nodes=1-x: not a whole number; write a number from 1 to 2147483648",
		"-N 3-2":                            "--nodes=3-2: the range runs backwards; write --nodes=2-3",
		"-B 1:2:3:4":                        "--extra-node-info=1:2:3:4: more than sockets, cores and threads; write SOCKETS:CORES:THREADS, * for any",
		"-B 1:x":                            "--extra-node-info=1:x: not a whole number; write a number from 1 to 65536",
		"--key=":                            "--key=: want 1 to 256 bytes",
		"--key=" + strings.Repeat("k", 257): "--key=" + strings.Repeat("k", 80) + "...: want 1 to 256 bytes",
		"--wrap=":                           "--wrap=: the command is empty; write --wrap='python train.py'",
		"--help=me":                         "--help=me: unknown topic; write --help or --help=slurm",
		"--notify=:END":                     "--notify=:END: no name of a target; write --notify=NAME, or --notify=NAME:END,FAIL",
		"--notify=chat:LATER":               "--notify=chat:LATER: not a kind of mail; kinds are NONE, ALL, " + strings.Join(names(api.NotifyTypes), ", "),
		"--mail-type=LATER":                 "--mail-type=LATER: not a kind of mail; kinds are NONE, ALL, " + strings.Join(names(api.NotifyTypes), ", "),
		"--clusters=other":                  "--clusters=other: there is one cluster, gangd; set GANG_DIR to the directory of another one",
		"--clusters=gangd,other":            "--clusters=gangd,other: there is one cluster, gangd; set GANG_DIR to the directory of another one",
		"--distribution=block:near":         "--distribution=block:near: not a distribution; kinds are block, cyclic, plane=N, arbitrary and *, for nodes, sockets and cores with colons between, and behind a comma Pack or NoPack",
		"--export=A=1,2B=3":                 `--export=A=1,2B=3: "2B" is not the name of a variable; ` + exportForms,
		"--gpus=a100:2,h100:2":              "--gpus=a100:2,h100:2: only one type of card for a job; write alternatives as --gres=gpu:a100|h100:4, or submit one job for each type",
		"--min-compute=0.9":                 "--min-compute=0.9: not a CUDA compute capability; write --min-compute=8.0 or sm_80; ginfo --json has those of the cards",
		"--licenses=a|b":                    "--licenses=a|b: one or another can't be asked for; write each with a comma between: all are needed",
		"--licenses=a:x":                    "--licenses=a:x: not a whole number; write a number from 0 to 1048576",
		"--licenses=a:1000000,a:50000":      "--licenses=a:1000000,a:50000: too many of a; write 1048576 or fewer in all",
		"--licenses=,a":                     "--licenses=,a: want names of letters, digits and . _ - @ /; write NAME:N,NAME:N",
		"--container-mount-home=x":          "--container-mount-home takes no value; write --container-mount-home",
		"--container-image=a --container-workdir=w": "--container-workdir=w: want an absolute path",

		// What follows from several together.
		"--ntasks-per-gpu=2":                                         "--ntasks-per-gpu=2: neither cards nor tasks are asked for; add --gpus=N or --ntasks=N",
		"--ntasks-per-gpu=2 --size=4":                                "--ntasks-per-gpu=2: it counts sbatch's tasks; leave it out, and write --gpus-per-rank=N",
		"--ntasks-per-gpu=2 --ranks-per-node=4":                      "--ntasks-per-gpu=2: it counts sbatch's tasks; leave it out, and write --gpus-per-rank=N",
		"--gpus-per-task=1 --ntasks-per-gpu=2 -n2":                   "--ntasks-per-gpu=2 contradicts --gpus-per-task=1: one follows from the other; keep one of them",
		"--gpus-per-socket=1":                                        "--gpus-per-socket=1: how many sockets a node has is left open; add --sockets-per-node=N, or write --gpus-per-node=N",
		"--gpus=4 --gpus-per-task=2 -n3":                             "--gpus=4 contradicts --ntasks=3: with --gpus-per-task=2 it is 2 ranks; keep one of them",
		"--gpus=4 --gres=gpu:2 -N3":                                  "--gpus=4 contradicts --nodes=3: with --gres=gpu:2 it is 2 nodes; keep one of them",
		"--gpus=5 --gpus-per-task=2":                                 "--gpus=5 contradicts --gpus-per-task=2: 5 is no multiple of 2; keep one of them",
		"--gpus=5 --gpus-per-node=2":                                 "--gpus=5 contradicts --gpus-per-node=2: 5 is no multiple of 2; keep one of them",
		"--gpus=1 --gpus-per-node=2":                                 "--gpus=1 contradicts --gpus-per-node=2: it is fewer in all than there; keep one of them",
		"--gpus=1 -N2":                                               "--gpus=1 contradicts --nodes=2: each node has a card; keep one of them",
		"--gpus-per-task=2 --gpus-per-node=3":                        "--gpus-per-node=3 contradicts --gpus-per-task=2: 3 is no multiple of 2; keep one of them",
		"--gpus-per-task=2 --gpus-per-node=4 --ntasks-per-node=1":    "--gpus-per-node=4 contradicts --ntasks-per-node=1: with --gpus-per-task=2 it is 2 ranks a node; keep one of them",
		"--gpus-per-task=1 --gpus-per-node=1 -n3 -N2":                "--gpus-per-node=1 contradicts --ntasks=3: there are cards for 1 rank on a node; keep one of them",
		"--gpus-per-node=2 --gres=gpu:1":                             "--gres=gpu:1 contradicts --gpus-per-node=2: a node has one number of cards; keep one of them",
		"--gpus-per-node=3 --gpus-per-socket=1 --sockets-per-node=2": "--gpus-per-node=3 contradicts --gpus-per-socket=1: with --sockets-per-node=2 it is 2 cards a node; keep one of them",
		"-n3 --gpus=2":                                               "--gpus=2: 2 cards can't be shared out evenly over 3 ranks; write --gpus=3, or --gpus-per-node=N",
		"-n3 --gpus=4 --launch=ranks":                                "--gpus=4: 4 cards can't be shared out evenly over 3 ranks; write --gpus=3 or --gpus=6, or --gpus-per-node=N",
		"--size=3 --gpus=4":                                          "--gpus=4: 4 cards can't be shared out evenly over 3 ranks; write --gpus=3 or --gpus=6, or --gpus-per-node=N",
		"--vram=24G --gpus=0":                                        "--vram=24G: asks for VRAM on no card; ask for cards: --gpus-per-rank=1",
		"--min-compute=8.0":                                          "--min-compute=8.0: asks for a capability of no card; ask for cards: --gpus-per-rank=1",
		"--share --gpus=1":                                           "--share: needs --vram, or there is nothing to tell whether gangs fit on a card together; write --share --vram=SIZE (sbatch's old --share is --oversubscribe)",
		"--share --exclusive --vram=24G":                             "--share contradicts --exclusive; keep one of them",
		"-n2 --mincpus=4":                                            "--mincpus=4: how many ranks a node has is left open; add --ntasks-per-node=N, or write --cpus-per-task=N",
		"--cpus-per-gpu=4":                                           "--cpus-per-gpu=4: no card is asked for; add --gpus-per-rank=N, or write --cpus-per-task=N",
		"--size=4 --gpus-per-node=2 --cpus-per-gpu=4":                "--cpus-per-gpu=4: how many ranks share a node's cards is left open; write --cpus-per-task=N, or add --ranks-per-node=N",
		"--mem-per-gpu=1G":                                           "--mem-per-gpu=1G: no card is asked for; add --gpus-per-rank=N, or write --mem=SIZE",
		"--mem-per-cpu=33T -c2":                                      "--mem-per-cpu=33T: comes to more than 64T; ask for less",
		"--mem-per-gpu=33T -G2":                                      "--mem-per-gpu=33T: comes to more than 64T; ask for less",
		"--mem-per-gpu=33T --gpus-per-node=2 --size=2":               "--mem-per-gpu=33T: comes to more than 64T; ask for less",
		"--mem-per-cpu=64T -c1048576":                                "--mem-per-cpu=64T: comes to more than 64T; ask for less",
		"--ntasks-per-node=" + big + " -N2":                          "--nodes=2: asks for 131072 ranks, at most 65536 are accepted; ask for fewer",
		"-n9 -N2 --ntasks-per-node=4":                                "--ntasks-per-node=4: 9 ranks need 3 nodes so, and --nodes=2 allows 2; ask for --nodes=3 or for more ranks on each node",
		"--size=9 -N2 --ranks-per-node=4":                            "--ranks-per-node=4: 9 ranks need 3 nodes so, and --nodes=2 allows 2; ask for --nodes=3 or for more ranks on each node",
		"--size=4 -N2 --ranks-per-node=4":                            "--ranks-per-node=4: 4 ranks fill 1 node so, and --nodes=2 asks for 2; ask for --nodes=1 or for fewer ranks on each node",
		"--requeue=timeout":                                          "--requeue=timeout: a job that is run again after its time limit needs a bound on all its runs together; add --max-time-total=3-00:00:00",
		"--max-time-total=1h":                                        "--max-time-total=1h: the job is not run again after its time limit; add --requeue=timeout,preempted,node-lost",
		"--requeue=timeout --max-time-total=1h --time=61":            "--max-time-total=1h: it is shorter than the time limit of one run, --time=61; write a longer one",
		"--grace=20 --grace-max=19":                                  "--grace-max=19: it is shorter than the grace (20s) of --grace=20; write a longer --grace-max, or leave it out",
		"--ready-timeout=60 --time=1":                                "--ready-timeout=60: it is not shorter than the time limit, --time=1; write a shorter one, or a longer --time",
		"--time-min=2 --time=1":                                      "--time-min=2: it is longer than the time limit, --time=1; write a shorter one, or a longer --time",
		"--signal=USR1@60 --grace=61":                                "--grace=61: the grace is longer than the lead (1m) of --signal=USR1@60; saving belongs before the stop signal: write --signal=USR1@61 or a shorter --grace",
		strings.Repeat("--notify=a ", 9):                             "too many addresses to be told: 9, at most 8",
		strings.Repeat("--notify=a ", 8) + "--mail-type=END":         "too many addresses to be told: 9, at most 8",
		"--test-only --wait":                                         "--wait contradicts --test-only; keep one of them",
		"--cpus-per-task=2 --cpus-per-gpu=2 -G1":                     "--cpus-per-gpu=2 contradicts --cpus-per-task=2; keep one of them",

		// Roles.
		"--role=":                      "--role=: the value is empty; " + roleForm,
		"--role=A:1":                   `--role=A:1: "A" is not a name for a role; write lower-case letters, digits and -, a letter first, at most ` + strconv.Itoa(api.MaxRoleName) + ": worker, data-loader",
		"--role=a":                     "--role=a: how many ranks role a has is missing; write a:1",
		"--role=a:0":                   "--role=a:0: the ranks of role a: less than 1; write a number from 1 to " + big,
		"--role=a:1,gpus":              "--role=a:1,gpus: gpus of role a needs a value; " + roleForm,
		"--role=a:1,gpus=x1:y":         "--role=a:1,gpus=x1:y: gpus=x1:y of role a: not a number of cards; write 4 or a100:4",
		"--role=a:1,cpus=0":            "--role=a:1,cpus=0: cpus=0 of role a: less than 1; write a number from 1 to 1048576",
		"--role=a:1,vram=1":            "--role=a:1,vram=1: vram=1 of role a: 1M is less than a card needs for any program; did you mean 1G?",
		"--role=a:1,mem=x":             "--role=a:1,mem=x: mem=x of role a: not a size; " + sizeForms,
		"--role=a:1,constraint=":       "--role=a:1,constraint=: constraint= of role a: the value is empty",
		"--role=a:1,ends=job":          "--role=a:1,ends=job: ends=job of role a: unknown value; write ends=gang: when all ranks of the role are done the gang is done, and the others are stopped",
		"--role=a:1,men=1":             `--role=a:1,men=1: unknown option "men" of role a; did you mean mem? a role has gpus-per-rank, vram, cpus, mem, constraint, ends`,
		"--role=a:1,zzzzzz=1":          `--role=a:1,zzzzzz=1: unknown option "zzzzzz" of role a; a role has gpus-per-rank, vram, cpus, mem, constraint, ends`,
		"--role=a:1 --role=a:2":        "--role=a:2: role a is named twice; give each role one --role with all its ranks",
		"--role=a:1 --gpus=2":          "--gpus=2 does not go with --role=a:1; write --gpus-per-rank, or gpus-per-rank in the role",
		"--role=a:1 --gres=gpu:2":      "--gres=gpu:2 does not go with --role=a:1; write --gpus-per-rank, or gpus-per-rank in the role",
		"--role=a:1 --gpus-per-node=2": "--gpus-per-node=2 does not go with --role=a:1; write --gpus-per-rank, or gpus-per-rank in the role",
		"--role=a:1 --mem=2G":          "--mem=2G does not go with --role=a:1; write --mem-per-rank, or mem in the role",
		"--role=a:1 -N2":               "--nodes=2 does not go with --role=a:1; roles count ranks; leave it out",
		"--role=a:1 --size=2":          "--size=2: the roles come to 1 rank; leave --size out, or make them agree",
		"--role=a:1 --launch=batch":    "--launch=batch: the ranks of roles run the script each; leave --launch out",
		"--role=a:1 --share":           "--share: needs --vram, or there is nothing to tell whether gangs fit on a card together; write --share --vram=SIZE",
		"--role=a:1,gpus=0,vram=24G":   "--role=a:1,gpus=0,vram=24G: role a asks for VRAM on no card; leave one of them out",
		"--role=a:1,gpus=1 --cpus-per-gpu=2 --role=b:" + big: "the roles come to 65537 ranks, at most 65536 are accepted; ask for fewer",
		"--role=a:1,gpus=2 --mem-per-gpu=33T":                "--mem-per-gpu=33T: comes to more than 64T; ask for less",
	} {
		_, _, err := buildOf("", fields(args)...)
		if err == nil || err.Error() != want {
			t.Errorf("%.200s: %v\nwant %s", args, err, want)
			continue
		}
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %T", args, err)
		}
	}
	var many []string
	for i := range api.MaxRoles + 1 {
		many = append(many, fmt.Sprintf("--role=r%d:1", i))
	}
	if _, _, err := buildOf("", many[1:]...); err != nil {
		t.Errorf("%d roles: %v", api.MaxRoles, err)
	}
	if _, _, err := buildOf("", many...); err == nil || err.Error() != "33 roles asked for, at most 32 are accepted; join some of them" {
		t.Errorf("one more: %v", err)
	}
}

// TestTakenByWord: what each value comes to, to its bound.
func TestTakenByWord(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	wait, d := 10*time.Minute, 30*time.Second
	prio, none := int64(0), time.Duration(0)
	for args, want := range map[string]any{
		"--time=0": Request{}, "--time=infinite": Request{}, "--time=unlimited": Request{},
		"--time=1s":                   Request{Spec: api.Spec{TimeLimit: time.Second}},
		"--time-min=1s":               Request{Spec: api.Spec{TimeMin: time.Second}},
		"--time=1 --time-min=1":       Request{Spec: api.Spec{TimeLimit: time.Minute, TimeMin: time.Minute}},
		"--deadline=now+1hour":        Request{Spec: api.Spec{Deadline: now.Add(time.Hour)}},
		"--grace=1":                   Request{Spec: api.Spec{Grace: time.Second}},
		"--grace=86400":               Request{Spec: api.Spec{Grace: 24 * time.Hour}},
		"--grace=20 --grace-max=20":   Request{Spec: api.Spec{Grace: 20 * time.Second, GraceMax: 20 * time.Second}},
		"--min-run=90":                Request{Spec: api.Spec{MinRun: 90 * time.Second}},
		"--ready-timeout=86400":       Request{Spec: api.Spec{ReadyTimeout: 24 * time.Hour}},
		"--ready-timeout=59 --time=1": Request{Spec: api.Spec{ReadyTimeout: 59 * time.Second, TimeLimit: time.Minute}},
		"--stall-timeout=OFF":         Request{Spec: api.Spec{StallTimeout: api.WatchdogOff}},
		"--checkpoint=drain":          Request{Spec: api.Spec{Checkpoint: "drain"}},
		"--fail=any":                  Request{Spec: api.Spec{AsAsked: api.AsAsked{Fail: "any"}}},
		"--signal=USR1@60 --grace=60": Request{Spec: api.Spec{Notice: &api.Notice{Signal: "USR1", Lead: time.Minute, Scope: api.ScopeRanks}, Grace: time.Minute}},
		"--switches=1@10":             Request{Spec: api.Spec{Switches: 1, SwitchWait: &wait}},
		"--switches=3":                Request{Spec: api.Spec{Switches: 3}},
		"--reservation=r":             Request{Spec: api.Spec{Reservation: "r"}},
		"--requeue":                   Request{},
		"--requeue=timeout --max-time-total=1h --time=60":                               Request{Spec: api.Spec{RequeueCauses: []api.Cause{"timeout"}, MaxTimeTotal: time.Hour, TimeLimit: time.Hour}},
		"--requeue=crash,oom,launch,node-lost,preempted,requeued,stalled,gpu-hang,idle": Request{Spec: api.Spec{RequeueCauses: []api.Cause{"crash", "oom", "launch", "node-lost", "preempted", "requeued", "stalled", "gpu-hang", "idle"}}},
		"--cpu-bind=ldoms":              Request{Spec: api.Spec{CPUBind: "ldoms"}},
		"--hint=nomultithread":          Request{Spec: api.Spec{ThreadsPerCore: 1}},
		"--hint=multithread":            Request{},
		"--gpu-bind=none":               Request{},
		"--gpu-bind=v,NONE":             Request{},
		"--input=in":                    Request{Spec: api.Spec{Input: "in"}},
		"--open-mode=a":                 Request{Spec: api.Spec{OpenMode: "append"}},
		"--open-mode=append":            Request{Spec: api.Spec{OpenMode: "append"}},
		"--open-mode=truncate":          Request{Spec: api.Spec{OpenMode: "truncate"}},
		"--kill-on-invalid-dep=YES":     Request{Spec: api.Spec{InvalidDependency: api.InvalidCancel}},
		"--kill-on-invalid-dep=1":       Request{Spec: api.Spec{InvalidDependency: api.InvalidCancel}},
		"--kill-on-invalid-dep=no":      Request{Spec: api.Spec{InvalidDependency: api.InvalidWait}},
		"--kill-on-invalid-dep=0":       Request{Spec: api.Spec{InvalidDependency: api.InvalidWait}},
		"--priority=0":                  Request{Spec: api.Spec{Priority: &prio}},
		"--nice=-5":                     Request{Spec: api.Spec{Nice: -5}},
		"--output=a/%j --error=b":       Request{Spec: api.Spec{Output: "a/%j", Error: "b"}},
		"--nodelist=n[1-2] --exclude=":  Request{Spec: api.Spec{NodeList: []string{"n1", "n2"}}},
		"--exclude=n3,n4":               Request{Spec: api.Spec{Exclude: []string{"n3", "n4"}}},
		"--comment=":                    Request{},
		"--partition=a,b --account=acc": Request{Spec: api.Spec{Partition: "a,b", Account: "acc"}},
		"--resv-ports":                  Request{Spec: api.Spec{Ports: api.PortEach}},
		"--resv-ports=4":                Request{Spec: api.Spec{Ports: 4}},
		"--tmp=1":                       Request{Spec: api.Spec{TmpPerNode: 1 << 20}},
		"--tmp=1K":                      Request{Spec: api.Spec{TmpPerNode: 1 << 20}},
		"--report --gpu-watch --hold":   Request{Spec: api.Spec{AsAsked: api.AsAsked{Report: true}, GPUWatch: true, Hold: true}},
		"--dependency=singleton":        Request{Spec: api.Spec{Dependency: &api.Dependency{On: []api.Condition{{Kind: api.AfterSingle}}}}},
		"--no-requeue":                  Request{Spec: api.Spec{NoRequeue: true}},
		"--chdir=/d --export=NONE --wrap=w --export-file=f --uid=u --gid=g": Request{Chdir: "/d", Export: "NONE", Wrap: "w", ExportFile: "f", User: "u", UserGroup: "g"},
		"--key=" + strings.Repeat("k", 256):                                 Request{Key: strings.Repeat("k", 256)},
		"--timeout=30":                                                      Request{Timeout: &d},
		"--timeout=off":                                                     Request{Timeout: &none},
		"--wait --parsable --quiet --verbose --no-progress":                 Request{Wait: true, Parsable: true, Quiet: true, Verbose: true, NoProgress: true},
		"--follow":                        Request{Follow: true},
		"--test-only --usage --version":   Request{TestOnly: true, Usage: true, Version: true},
		"--help":                          Request{Help: true},
		"--help=slurm":                    Request{HelpSlurm: true},
		"--clusters=gangd,all":            Request{},
		"--ignore-pbs --wait-all-nodes=1": Request{},
		"-L b:2,a":                        Request{Spec: api.Spec{AsAsked: api.AsAsked{Pools: []api.Pool{{Kind: "licence", Name: "b", Count: 2}, {Kind: "licence", Name: "a", Count: 1}}}}},
		"-L b:2 --licenses=":              Request{},
		"-L a;b=2,a:3,c:0":                Request{Spec: api.Spec{AsAsked: api.AsAsked{Pools: []api.Pool{{Kind: "licence", Name: "a", Count: 4}, {Kind: "licence", Name: "b", Count: 2}}}}},
		"--comment=a --extra=b":           Request{Spec: api.Spec{AsAsked: api.AsAsked{Comment: "a", Extra: "b"}}},
		"--notify=chat":                   Request{Spec: api.Spec{AsAsked: api.AsAsked{Notify: []api.Notify{{Target: "chat", Types: api.NotifyDefault}}}}},
		"--notify=chat:END --mail-type=FAIL --mail-user=a@x": Request{Spec: api.Spec{AsAsked: api.AsAsked{Notify: []api.Notify{{Target: "chat", Types: []api.NotifyType{"END"}}, {To: "a@x", Types: []api.NotifyType{"FAIL"}}}}}},
		"--mail-type=END":                                           Request{Spec: api.Spec{AsAsked: api.AsAsked{Notify: []api.Notify{{Types: []api.NotifyType{"END"}}}}}},
		"--mail-user=a@x":                                           Request{},
		"--size=2 --role=a:1 --role=b:1":                            Request{Spec: api.Spec{Size: 2, Launch: "ranks", Roles: []api.Role{{Name: "a", Count: 1, CPUsPerRank: 1}, {Name: "b", Count: 1, CPUsPerRank: 1}}}},
		"--share --role=a:1,vram=24G --role=b:1":                    Request{Spec: api.Spec{Size: 2, Launch: "ranks", Share: true, Roles: []api.Role{{Name: "a", Count: 1, CPUsPerRank: 1, GPUsPerRank: 1, VRAMBytes: 24 << 30}, {Name: "b", Count: 1, CPUsPerRank: 1}}}},
		"--cpus-per-task=4 --role=a:1,cpus=1":                       Request{Spec: api.Spec{Size: 1, Launch: "ranks", CPUsPerRank: 4, Roles: []api.Role{{Name: "a", Count: 1, CPUsPerRank: 1}}}},
		"--gpus-per-rank=0 --role=a:1,vram=24G":                     Request{Spec: api.Spec{Size: 1, Launch: "ranks", Roles: []api.Role{{Name: "a", Count: 1, CPUsPerRank: 1, GPUsPerRank: 1, VRAMBytes: 24 << 30}}}},
		"--share --role=a:1,vram=24G":                               Request{Spec: api.Spec{Size: 1, Launch: "ranks", Share: true, Roles: []api.Role{{Name: "a", Count: 1, CPUsPerRank: 1, GPUsPerRank: 1, VRAMBytes: 24 << 30}}}},
		"--vram=24G --gpus-per-rank=0 --role=a:1 --cpus-per-task=3": Request{Spec: api.Spec{Size: 1, Launch: "ranks", CPUsPerRank: 3, VRAMBytes: 24 << 30, Roles: []api.Role{{Name: "a", Count: 1, CPUsPerRank: 3}}}},
	} {
		r, _, err := buildOf("", fields(args)...)
		if err != nil {
			t.Errorf("%.200s: %v", args, err)
			continue
		}
		wanted := want.(Request)
		s := &wanted.Spec
		if s.Size == 0 {
			s.Size, s.Launch = 1, api.LaunchBatch
		}
		s.CPUsPerRank = max(s.CPUsPerRank, 1)
		r.Used, r.Spec.Asked = nil, nil
		if d := cmp.Diff(&wanted, r, figuresAlone); d != "" {
			t.Errorf("%.200s: -want +got\n%s", args, d)
		}
	}
}

// TestWarnedByWord: what is taken and does less than is hoped for.
func TestWarnedByWord(t *testing.T) {
	const cards = "every rank sees all cards of its gang on the node; choose by GANG_LOCAL_RANK in the program, as torchrun does; a step's tasks have their own with srun --gpus-per-task"
	for args, want := range map[string]string{
		"--gpu-bind=closest":               "--gpu-bind=closest: " + cards,
		"--gpu-bind=verbose,single:2":      "--gpu-bind=verbose,single:2: " + cards,
		"--exclusive=mcs":                  "--exclusive=mcs: nodes can't be kept for one user; no other gang is on them",
		"--qos=q":                          "--qos has no effect: there is no quality of service; --partition and --priority choose",
		"--qos=q --qos=r":                  "--qos has no effect: there is no quality of service; --partition and --priority choose",
		"--distribution=cyclic:block,Pack": "--distribution has no effect: ranks are numbered node by node (block)",
		"--distribution=plane=4":           "--distribution has no effect: ranks are numbered node by node (block)",
		"--signal=USR1@60 --time=1":        "--signal=USR1@60: the lead (1m) is not shorter than the time limit, --time=1: the notice comes at the start; write a shorter lead, --signal=USR1@6, or a longer --time",
		"--signal=USR1@59 --time=1":        "",
		"--gpu-bind=none":                  "",
		"-N2 -n2":                          "",
		"-N3 -n2":                          "--nodes=3: 2 ranks can't fill 3 nodes, 2 nodes are asked for",
		"--output=%q":                      `--output=%q: "%q" stands for nothing and stays in the name; there are %j job, %x name, %A array, %a index, %u user, %N node, %n node number, %t rank, %r restart, %%`,
	} {
		_, warn, err := buildOf("", strings.Fields(args)...)
		var got []string
		for _, w := range warn {
			got = append(got, w.String())
		}
		if err != nil || strings.Join(got, "|") != want {
			t.Errorf("%s: %q, %v\nwant %q", args, got, err, want)
		}
	}
}

// TestRefusedInAScript: by the line and the column, and no usage of a command line.
func TestRefusedInAScript(t *testing.T) {
	for text, want := range map[string]string{
		"#GANG --comment='x\n":                 "job.sh:1:17: the quote is never closed; close it on the same line",
		"#GANG --size=2 four\n":                `job.sh:1:16: unexpected word "four"; options begin with - or --, a comment with #, and blanks in a value need quotes`,
		"true\n":                               "",
		"#SBATCH --output=$HOME/x\n":           `job.sh:1:9: --output=$HOME/x: variables and ~ are not expanded in a directive; write the path out, or give it on the command line: gsubmit --output="$HOME/x" job.sh`,
		"#SBATCH -D ~/x\n":                     `job.sh:1:9: --chdir=~/x: variables and ~ are not expanded in a directive; write the path out, or give it on the command line: gsubmit --chdir="~/x" job.sh`,
		"#GANG -e a/$X -i b\n":                 `job.sh:1:7: --error=a/$X: variables and ~ are not expanded in a directive; write the path out, or give it on the command line: gsubmit --error="a/$X" job.sh`,
		"#GANG -i /a/$X\n":                     `job.sh:1:7: --input=/a/$X: variables and ~ are not expanded in a directive; write the path out, or give it on the command line: gsubmit --input="/a/$X" job.sh`,
		"#GANG -o a$X --comment=$Y -J ~z\n":    "",
		"#GANG -n2 --wrap=x\n":                 "job.sh:1:11: --wrap belongs on the command line; remove it here",
		"#GANG --nosuch\n":                     "job.sh:1:7: unknown option --nosuch; gsubmit --help lists the options",
		"#GANG --size=0\n":                     "job.sh:1:7: --size=0: less than 1; write a number from 1 to 65536",
		"#SBATCH --licenses=a:-1\n":            "job.sh:1:9: --licenses=a:-1: less than 0; write a number from 0 to 1048576",
		"#SBATCH hetjob\n#SBATCH -N3-2\n":      "job.sh:2:9: --nodes=3-2: the range runs backwards; write --nodes=2-3",
		strings.Repeat("#SBATCH hetjob\n", 31): "",
		strings.Repeat("#SBATCH hetjob\n", 32): "job.sh:32:9: more than 32 components; join some of them",
		"#SBATCH --gpus=2\n#SBATCH hetjob\n#SBATCH -n3 --gpus=2\n": "job.sh:3:13: component 1: --gpus=2: 2 cards can't be shared out evenly over 3 ranks; write --gpus=3, or --gpus-per-node=N",
		"#SBATCH -n1\n#SBATCH hetjob\n#SBATCH --array=1-3\n":       `job.sh:3:9: --array=1-3: a heterogeneous job has components instead; leave it out, or submit without ":" and hetjob`,
		"#SBATCH --gres=gpu:1\n#SBATCH --gpus-per-node=2\n":        "job.sh:2:9: --gpus-per-node=2 contradicts --gres=gpu:1 (job.sh:1:9): a node has one number of cards; keep one of them",
		"#SBATCH --gpus-per-node=2\n#SBATCH -n1 --gres=gpu:1\n":    "job.sh:2:13: --gres=gpu:1 contradicts --gpus-per-node=2 (job.sh:1:9): a node has one number of cards; keep one of them",
	} {
		_, _, err := buildOf(text)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %s\nwant %s", text, got, want)
		}
		var e *Error
		if errors.As(err, &e) && e.Usage {
			t.Errorf("%q is no wrong use of the command line", text)
		}
	}
	for args, whose := range map[string]string{"--size=0": "--size=0", "--licenses=a:": "--licenses=a:", "--gpus=1 -N2": "", "--ntasks-per-node=65536 -N2": "--nodes=2", "--size=2 : -n1": "--size=2"} {
		_, _, err := buildOf("", strings.Fields(args)...)
		var e *Error
		if !errors.As(err, &e) || !e.Usage || (e.Bad == nil) != (whose == "") || whose != "" && e.Bad.String() != whose {
			t.Errorf("%s: %+v", args, e)
		}
	}
}

// TestValidAlone: settings are looked at before there is a script.
func TestValidAlone(t *testing.T) {
	for args, want := range map[string]string{"--size=2": "<nil>", "--size=0": "--size=0: less than 1; write a number from 1 to 65536", "--share --exclusive": "<nil>"} {
		s, _, err := Flags(strings.Fields(args))
		if err != nil {
			t.Fatal(err)
		}
		if err := Valid(s, time.Now()); fmt.Sprint(err) != want {
			t.Errorf("%s: %v", args, err)
		}
	}
	r, _, err := buildOf("#GANG --size=4\n", "--gpus-per-rank=2")
	if err != nil {
		t.Fatal(err)
	}
	var used []string
	for i := range r.Used {
		used = append(used, r.Used[i].String())
	}
	if !slices.Equal(used, []string{"--size=4", "--gpus-per-rank=2"}) {
		t.Errorf("used are %q", used)
	}
	for long, want := range map[string]string{"size": "job.sh:1:7: --size=4: no; do it", "gpus-per-rank": "--gpus-per-rank=2: no; do it", "mem": "no; do it"} {
		if err := r.Refuse(long, "no", "do it"); err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if r.By("mem") != nil || r.By("size").Source != FromGANG {
		t.Error("who said it is not known")
	}
}

// TestNodefilesAreRead: a file of nodes that can't be read, or names none, is refused by its option.
func TestNodefilesAreRead(t *testing.T) {
	for text, want := range map[string]string{"": "--nodefile=f: no node is named in it; write a node a line", "!": "--nodefile=f: no such file", "n1\nn2\n": ""} {
		s, _, err := Flags([]string{"-n2", "--nodefile=f"})
		if err != nil {
			t.Fatal(err)
		}
		err = Nodefiles(s, func(file string) (string, error) {
			if text == "!" {
				return "", errors.New("no such file")
			}
			return text, nil
		})
		var e *Error
		switch {
		case want == "":
			if err != nil || s[1].String() != "--nodelist=n1,n2" || s[1].Option.Long != "nodelist" || s[0].String() != "--ntasks=2" {
				t.Errorf("%v, %v", s, err)
			}
		case !errors.As(err, &e) || e.Error() != want || e.Bad != &s[1]:
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestContainerVariables: those of pyxis say yes and no.
func TestContainerVariables(t *testing.T) {
	for env, want := range map[string]string{
		"PYXIS_CONTAINER_IMAGE=/i PYXIS_CONTAINER_MOUNT_HOME=1":                          "home",
		"PYXIS_CONTAINER_IMAGE=/i PYXIS_NO_CONTAINER_REMAP_ROOT=1":                       "",
		"PYXIS_CONTAINER_IMAGE=/i PYXIS_CONTAINER_READONLY=1":                            "readonly",
		"PYXIS_CONTAINER_IMAGE=/i PYXIS_CONTAINER_MOUNT_HOME=0":                          "",
		"PYXIS_CONTAINER_IMAGE=/i PYXIS_CONTAINER_READONLY=1 PYXIS_CONTAINER_WRITABLE=1": "",
		"PYXIS_CONTAINER_IMAGE=/i PYXIS_CONTAINER_REMAP_ROOT=0":                          "",
		"PYXIS_CONTAINER_IMAGE=/i PYXIS_CONTAINER_REMAP_ROOT=1":                          "PYXIS_CONTAINER_REMAP_ROOT: --container-remap-root: no script is root in a container; give it to srun, for its steps",
		"PYXIS_CONTAINER_IMAGE=/i PYXIS_CONTAINER_NAME=0:create":                         "called 0",
		"PYXIS_CONTAINER_IMAGE=/i PYXIS_CONTAINER_NAME=0:exec":                           "PYXIS_CONTAINER_NAME: --container-name=0:exec: a job begins before any container of it; leave out :exec, or give it to srun, for its steps",
		"PYXIS_CONTAINER_IMAGE=/i PYXIS_CONTAINER_NAME=../0":                             "PYXIS_CONTAINER_NAME: --container-name=../0: want a name of letters, digits and . _ -, at most 64; write --container-name=trainer",
	} {
		s, _, err := Environ(strings.Fields(env))
		if err != nil {
			t.Fatal(err)
		}
		r, _, err := Build(s, time.Now())
		got := ""
		switch {
		case err != nil:
			got = err.Error()
		case r.Spec.Container == nil || r.Spec.Container.Image != "/i":
			got = fmt.Sprintf("%+v", r.Spec.Container)
		case r.Spec.Container.Home:
			got = "home"
		case r.Spec.Container.Name != "":
			got = "called " + r.Spec.Container.Name + r.Spec.Container.Use
		case r.Spec.Container.ReadOnly:
			got = "readonly"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", env, got, want)
		}
	}
	for v, want := range map[string]string{"": "true", "1": "true", "true": "true", "0": "false", "false": "false", "maybe": "want 1 or 0"} {
		var c api.Container
		err := truth(func(c *api.Container, on bool) { c.Home = on })(&c, v)
		if got := strconv.FormatBool(c.Home); err != nil && err.Error() != want || err == nil && got != want {
			t.Errorf("%q: %s, %v", v, got, err)
		}
	}
}

// TestTimesForPeople: in the largest units, without those that are nothing.
func TestTimesForPeople(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0s", -1: "0s", time.Second: "1s", 90 * time.Second: "1m30s", 24 * time.Hour: "1d", 25*time.Hour + time.Second: "1d1h1s", 59 * time.Minute: "59m",
		time.Second + time.Millisecond: "1s"} {
		if got := formatTime(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
	for unit, want := range map[string]time.Duration{"sec": time.Second, "secs": time.Second, "second": time.Second, "seconds": time.Second, "mins": time.Minute, "minute": time.Minute, "minutes": time.Minute,
		"hour": time.Hour, "day": 24 * time.Hour, "days": 24 * time.Hour, "S": time.Second} {
		if d, err := ParseTime("2" + unit); err != nil || d != 2*want {
			t.Errorf("2%s: %v, %v", unit, d, err)
		}
	}
	if d, err := ParseTime("1h05m"); err != nil || d != 65*time.Minute {
		t.Errorf("%v, %v", d, err)
	}
	if d, err := ParseSeconds("90"); err != nil || d != 90*time.Second {
		t.Errorf("%v, %v", d, err)
	}
}

// TestHelpHasWhatDoesSomething: not what is refused, and not what is there for sbatch's sake.
func TestHelpHasWhatDoesSomething(t *testing.T) {
	var b strings.Builder
	WriteHelp(&b)
	lines := strings.Split(b.String(), "\n")
	shown := map[string]int{}
	for _, line := range lines {
		if len(line) > 6 && strings.HasPrefix(line[6:], "--") {
			head, _, _ := strings.Cut(line[6:], " ")
			shown[head]++
		}
	}
	for i := range Options {
		o := &Options[i]
		want := 0
		if o.List != Refused && o.Group != groupHints && o.Group != groupNot {
			want = 1
		}
		if got := shown["--"+o.Long+o.Argument()]; got != want {
			t.Errorf("--%s is in the help %d times, want %d", o.Long, got, want)
		}
	}
	heads := map[string]int{}
	for _, line := range lines {
		if len(line) > 80 && strings.Contains(line[2:], "  ") {
			t.Errorf("wider than a terminal: %q", line)
		}
		if line != "" && line[0] != ' ' {
			heads[line]++
		}
	}
	for head, n := range heads {
		if n > 1 {
			t.Errorf("%s stands %d times", head, n)
		}
	}
	// Eight lines stand above it: what the program is, three examples, the usage.
	if rest := slices.Index(lines[2:], ""); len(heads) < 7 || rest > 24-8-2 {
		t.Errorf("%d headings, the first has %d lines:\n%s", len(heads), rest, b.String())
	}
	if strings.Contains(b.String(), groupHints) || strings.Contains(b.String(), "--batch") {
		t.Errorf("%s", b.String())
	}
}

// TestVariablesOfOptions: a variable without a value, with a no, and one that nearly is one.
func TestVariablesOfOptions(t *testing.T) {
	s, warn, err := Environ([]string{"SBATCH_PARTITON=x", "GSUBMIT_SIZ=2", "GSUBMIT_NICE=", "GSUBMIT_REQUEUE=crash", "SBATCH_WAIT=0", "SBATCH_NO_REQUEUE=1", "GSUBMIT_HOLD=false", "GSUBMIT_QUIET=No",
		"SBATCH_CPU_BIND=x", "GSUBMIT_BATCH=a", "GSUBMIT_WRAP=x", "PYXIS_CONTAINER_IMAG=x", "SBATCHX=1"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range s {
		got = append(got, fmt.Sprintf("%s %v %s", s[i].String(), s[i].Source, s[i].Pos))
	}
	if want := []string{"--nice 3 GSUBMIT_NICE", "--requeue=crash 3 GSUBMIT_REQUEUE", "--no-requeue 2 SBATCH_NO_REQUEUE"}; !slices.Equal(got, want) || s[0].Value != "100" {
		t.Errorf("%q, %q", got, s[0].Value)
	}
	got = nil
	for _, w := range warn {
		got = append(got, w.String())
	}
	if want := []string{"GSUBMIT_BATCH: this variable sets no option", "GSUBMIT_SIZ: this variable sets no option; did you mean GSUBMIT_SIZE?", "GSUBMIT_WRAP: this variable sets no option",
		"PYXIS_CONTAINER_IMAG: this variable sets no option; did you mean PYXIS_CONTAINER_IMAGE?", "SBATCH_PARTITON: this variable sets no option; did you mean SBATCH_PARTITION?"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestExportsToTheirEnd: names as shells and modules have them, and what is never handed on.
func TestExportsToTheirEnd(t *testing.T) {
	for name, want := range map[string]bool{"": false, "a": true, "z": true, "A": true, "Z": true, "_": true, "a0": true, "a9": true, "0a": false, "9": false, "a.b": true, "a-b": true, "a:b": true, "f%%": true, "f()": true,
		".a": false, "a{": false, "a`": false, "a@": false, "a[": false, "a/": false, "a;": false} {
		if got := varName(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
	e, err := ParseExport("ALL,")
	if err != nil || !e.All || len(e.Names) > 0 {
		t.Errorf("%+v, %v", e, err)
	}
	if e, err = ParseExport("A,/usr/bin,B=1,"); err != nil || !reflect.DeepEqual(e, Export{Names: []string{"A", "/usr/bin"}, Set: []string{"B=1"}}) {
		t.Errorf("%+v, %v", e, err)
	}
	if e, err = ParseExport("ALL=1,NONE=2"); err != nil || e.All || len(e.Set) != 2 {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err = ParseExport(","); err == nil {
		t.Error("two names of nothing")
	}
	if _, err = ParseExport("/a=1"); err == nil {
		t.Error("a path is given a value")
	}
	for name, want := range map[string]bool{"GANG_DIR": false, "SLURM_CONF": false, "NOTIFY_SOCKET": true, "WATCHDOG_USEC": true, "WATCHDOG_PID": true, "CHECKPOINT_DATA": true, "RANK": true, "WORLD_SIZE": true, "LOCAL_RANK": true,
		"LOCAL_WORLD_SIZE": true, "MASTER_ADDR": true, "MASTER_PORT": true, "GANG_X": true, "SLURM_X": true, "GANGS": false, "PATH": false} {
		if ofOtherJob(name) != want {
			t.Errorf("%s is of another job: %v", name, !want)
		}
	}
	if got := setEnv([]string{"AB=1", "A=2", "A=3"}, "A=4"); !slices.Equal(got, []string{"AB=1", "A=4", "A=3"}) {
		t.Errorf("%q", got)
	}
}

// TestNothingBesideAnError: what can't be read comes to nothing.
func TestNothingBesideAnError(t *testing.T) {
	for _, in := range []string{"", "x", "1-", "2-1", "1-x", "1:0", "1:x", "-1", "1-2:-1", "1073741824"} {
		if lo, hi, step, err := arrayRange(in); err == nil || lo != 0 || hi != 0 || step != 0 {
			t.Errorf("%q: %d-%d:%d, %v", in, lo, hi, step, err)
		}
	}
	for in, want := range map[string][3]int{"7": {7, 7, 1}, "1-3": {1, 3, 1}, "1-9:4": {1, 9, 4}, "5-5": {5, 5, 1}, "0-1073741823:1073741823": {0, maxArrayIndex, maxArrayIndex}} {
		if lo, hi, step, err := arrayRange(in); err != nil || [3]int{lo, hi, step} != want {
			t.Errorf("%q: %d-%d:%d, %v", in, lo, hi, step, err)
		}
	}
	for _, in := range []string{"", "x y", "-1", "65537", "a100:", "a100:x", "7:7", "-a:1", "a,b:1", "a100:1,b:2"} {
		if kind, n, err := parseGPUs(in); err == nil || kind != "" || n != 0 {
			t.Errorf("%q: %q %d, %v", in, kind, n, err)
		}
	}
	for in, want := range map[string]string{"a100": "a100 1", "A100:4": "a100 4", "0": " 0", "a-b_c.d|E:2": "a-b_c.d|e 2", "z:1": "z 1", "Z9:1": "z9 1", "9a0:1": "9a0 1", "65536": " 65536"} {
		if kind, n, err := parseGPUs(in); err != nil || fmt.Sprint(kind, " ", n) != want {
			t.Errorf("%q: %q %d, %v", in, kind, n, err)
		}
	}
	for _, in := range []string{"{:1", "@:1", "a`:1", "a[:1", "a/:1", "a;:1", "a b:1"} { // beside the letters and digits
		if kind, n, err := parseGPUs(in); err == nil {
			t.Errorf("%q: %q %d", in, kind, n)
		}
	}
	for _, in := range []string{"", "x", "9", "-1"} {
		if n, err := number(in, 1, 8); err == nil || n != 0 {
			t.Errorf("number %q: %d", in, n)
		}
		if n, err := index(in + "x"); err == nil || n != 0 {
			t.Errorf("index %q: %d", in, n)
		}
		if v, err := parseVRAM(in + "k"); err == nil || v != 0 {
			t.Errorf("VRAM %q: %d", in, v)
		}
		if g, err := parseGRES("gpu:1," + in); err == nil || g != (gres{}) {
			t.Errorf("gres %q: %+v", in, g)
		}
		if d, err := ParseTime(in + "x"); err == nil || d != 0 {
			t.Errorf("time %q: %v", in, d)
		}
		if d, err := unitDuration(in + "y"); err == nil || d != 0 {
			t.Errorf("time %q: %v", in, d)
		}
		if d, err := graceOf(in + "x"); err == nil || d != 0 {
			t.Errorf("grace %q: %v", in, d)
		}
		if u, ok := sizeUnit(in + "q"); ok || u != 0 {
			t.Errorf("unit %q: %d", in, u)
		}
	}
	for _, in := range []string{"", "99999999999y", "99999999999d", "3651d", "3650d1s", "1s1m"} {
		if d, err := ParseTime(in); err == nil || d != 0 {
			t.Errorf("%q: %v, %v", in, d, err)
		}
	}
	if d, err := times("", time.Second); err == nil || d != 0 {
		t.Errorf("%v, %v", d, err)
	}
	if d, err := times("9999999999999", time.Hour); err == nil || d != 0 {
		t.Errorf("%v, %v", d, err)
	}
	for in, want := range map[string]int64{"k": 1 << 10, "kb": 1 << 10, "kib": 1 << 10, "m": 1 << 20, "gib": 1 << 30, "t": 1 << 40, "p": 1 << 50, "b": 1, "": 1 << 20} {
		if u, ok := sizeUnit(in); !ok || u != want {
			t.Errorf("unit %q: %d", in, u)
		}
	}
	for in, want := range map[string]int64{"64T": 64 << 40, "65536G": 64 << 40, "9": 9 << 20, "0.5": 1 << 19, "65.0M": 65 << 20} {
		if n, err := ParseSize(in); err != nil || n != want {
			t.Errorf("size %q: %d, %v", in, n, err)
		}
	}
	for _, in := range []string{"64.1T", "65T", "65537G", "1e3", "/1", ":1", "1:", "-"} {
		if n, err := ParseSize(in); err == nil || n != 0 {
			t.Errorf("size %q: %d", in, n)
		}
	}
	for n, want := range map[int64]string{1 << 50: "1P", 1 << 10: "1K", 1025: "1025B", 1 << 20: "1M", 1023: "1023B", 3 << 30: "3G"} {
		if got := formatSize(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
	for _, in := range []string{"1-4%99999999999999999999", "1-4%+1", "1-4%1x", "0-10000", "0-5000,6000-11000"} {
		if a, err := parseArray(in); err == nil || a != nil {
			t.Errorf("array %q: %+v", in, a)
		}
	}
	if a, err := parseArray("0-9999"); err != nil || len(a.Indices) != api.MaxArraySize {
		t.Errorf("%v", err)
	}
}

// TestWhoSaysTheSameStays: of two sources that count the same cards neither is dropped, and of two that do not the closer stays.
func TestWhoSaysTheSameStays(t *testing.T) {
	for _, c := range []struct {
		text, args string
		used       string
	}{
		{"#SBATCH --ntasks-per-node=4 --gres=gpu:4\n", "--gpus-per-rank=1", "ntasks-per-node gpus-per-rank gres"},
		{"#SBATCH --ntasks-per-node=4 --gres=gpu:8\n", "--gpus-per-rank=2", "ntasks-per-node gpus-per-rank gres"},
		{"#SBATCH --ntasks-per-node=4 --gres=gpu:8\n", "--gpus-per-rank=1", "ntasks-per-node gpus-per-rank"},
		{"#SBATCH --gpus-per-node=4\n", "--gpus-per-rank=1 --ranks-per-node=4", "ranks-per-node gpus-per-rank gpus-per-node"},
		{"#SBATCH --gpus-per-node=4\n", "--gpus-per-rank=1 --ranks-per-node=2", "ranks-per-node gpus-per-rank"},
		{"#SBATCH --gpus-per-node=4\n", "--gpus-per-rank=4", "gpus-per-rank"},
		{"#SBATCH --gpus=4 --ntasks-per-node=4\n", "--gpus-per-rank=1", "ntasks-per-node gpus-per-rank"},
		{"#SBATCH --gpus-per-rank=1 --ntasks-per-node=4\n", "--gpus=4", "ntasks-per-node gpus"},
		{"#SBATCH --gres=gmem:24G\n", "--gpus=2", "gpus gres"},
		{"#SBATCH --gres=gpu:1\n", "--gpus=2", "gpus"},
		{"#SBATCH --gres=gpu:1,gmem:24G\n", "--gpus=2", "gpus"},
		{"#SBATCH --gpus=2\n", "--gres=gmem:24G", "gpus gres"},
		{"#SBATCH --mem=1G\n", "--mem-per-cpu=1G", "mem-per-cpu"},
		{"#SBATCH --mem-per-cpu=1G\n", "--mem=1G", "mem"},
	} {
		r, _, err := buildOf(c.text, strings.Fields(c.args)...)
		if err != nil {
			t.Errorf("%s %s: %v", c.text, c.args, err)
			continue
		}
		var used []string
		for i := range r.Used {
			used = append(used, r.Used[i].Option.Long)
		}
		if strings.Join(used, " ") != c.used {
			t.Errorf("%s %s: %q, want %s", c.text, c.args, used, c.used)
		}
	}
}

// TestCardsTasksAndNodes: what the words for cards leave of each other.
func TestCardsTasksAndNodes(t *testing.T) {
	for _, c := range []struct {
		args string
		want api.Spec
	}{
		{"-n2 --gpus-per-node=2 --ntasks-per-gpu=2", api.Spec{Size: 2, GPUsPerNode: 2}},
		{"--gpus-per-node=2 --ntasks-per-gpu=2", api.Spec{Size: 4, GPUsPerNode: 2, RanksPerNode: 4}},
		{"--gpus=2 --ntasks-per-gpu=2 -n4", api.Spec{Size: 2, GPUsPerRank: 1, CPUsPerRank: 2}},
		{"--gpus=2 --ntasks-per-gpu=4 -n4", api.Spec{Size: 2, GPUsPerRank: 1, CPUsPerRank: 2}},
		{"-n5 --ntasks-per-gpu=2", api.Spec{Size: 3, GPUsPerRank: 1, CPUsPerRank: 2}},
		{"-n4 --ntasks-per-gpu=2", api.Spec{Size: 2, GPUsPerRank: 1, CPUsPerRank: 2}},
		{"--gpus=2 -N2", api.Spec{Size: 2, GPUsPerRank: 1, MinNodes: 2, MaxNodes: 2, RanksPerNode: 1}},
		{"--gpus=2 --gpus-per-node=2", api.Spec{Size: 1, GPUsPerRank: 2, MinNodes: 1, MaxNodes: 1, RanksPerNode: 1}},
		{"--gpus=4 --gpus-per-node=2 -N1-2", api.Spec{Size: 2, GPUsPerRank: 2, MinNodes: 2, MaxNodes: 2, RanksPerNode: 1}},
		{"--gpus=4 --gpus-per-node=2 -N2-9", api.Spec{Size: 2, GPUsPerRank: 2, MinNodes: 2, MaxNodes: 2, RanksPerNode: 1}},
		{"--gpus=2 --gpus-per-task=2 -n1", api.Spec{Size: 1, GPUsPerRank: 2}},
		{"--size=2 --gpus=4 --gpus-per-rank=2", api.Spec{Size: 2, GPUsPerRank: 2, Launch: api.LaunchRanks}},
		{"--gpus-per-task=1 --gpus-per-node=2 -n4 -N2", api.Spec{Size: 4, GPUsPerRank: 1, MinNodes: 2, MaxNodes: 2, RanksPerNode: 2}},
		{"--gpus-per-task=1 --gpus-per-node=2 -n4 -N2-3", api.Spec{Size: 4, GPUsPerRank: 1, MinNodes: 2, MaxNodes: 3, RanksPerNode: 2}},
		{"--gpus-per-task=2 --gpus-per-node=4 --ntasks-per-node=2", api.Spec{Size: 2, GPUsPerRank: 2, RanksPerNode: 2}},
		{"--gpus-per-task=1 --gpus-per-node=2 -n3", api.Spec{Size: 3, GPUsPerNode: 2}},
		{"--gpus-per-socket=2 --sockets-per-node=2 --gpus-per-node=4", api.Spec{Size: 1, GPUsPerRank: 4, Shape: api.CPUShape{Sockets: 2}}},
		{"--gpus-per-socket=2 --sockets-per-node=2 --gpus=4", api.Spec{Size: 1, GPUsPerRank: 4, MinNodes: 1, MaxNodes: 1, RanksPerNode: 1, Shape: api.CPUShape{Sockets: 2}}},
		{"--gres=gpu:2 --gpus-per-node=2", api.Spec{Size: 1, GPUsPerRank: 2}},
		{"--gres=gpu:a100:1,gmem:24G", api.Spec{Size: 1, GPUsPerRank: 1, GPUType: "a100", VRAMBytes: 24 << 30}},
		{"--gres=gmem:24G --vram=40G", api.Spec{Size: 1, GPUsPerRank: 1, VRAMBytes: 40 << 30}},
		{"--gres=gmem:24G --gpus-per-node=2", api.Spec{Size: 1, GPUsPerRank: 2, VRAMBytes: 24 << 30}},
		{"--gres=gmem:24G --gpus-per-task=3", api.Spec{Size: 1, GPUsPerRank: 3, VRAMBytes: 24 << 30}},
		{"--size=2 --vram=24G", api.Spec{Size: 2, GPUsPerRank: 1, VRAMBytes: 24 << 30, Launch: api.LaunchRanks}},
		{"-n2 -N1 --gpus-per-node=3", api.Spec{Size: 2, GPUsPerNode: 3, MinNodes: 1, MaxNodes: 1}},
		{"-n4 -N2 --gpus=6", api.Spec{Size: 4, GPUsPerNode: 3, MinNodes: 2, MaxNodes: 2}},
		{"-n4 -N2-3 --gpus=6", api.Spec{Size: 6, GPUsPerRank: 1, MinNodes: 2, MaxNodes: 3}},
		{"-n4 -N4 --gpus=6 -c3", api.Spec{Size: 6, GPUsPerRank: 1, MinNodes: 4, MaxNodes: 4, CPUsPerRank: 2}},
		{"-N2 --gpus-per-node=4 --cpus-per-gpu=2", api.Spec{Size: 2, GPUsPerRank: 4, MinNodes: 2, MaxNodes: 2, RanksPerNode: 1, CPUsPerRank: 8}},
		{"--ntasks-per-node=2 --gpus-per-node=3 --cpus-per-gpu=1", api.Spec{Size: 2, GPUsPerNode: 3, RanksPerNode: 2, CPUsPerRank: 2}},
		{"-n3 -N2 --gpus-per-node=3 --cpus-per-gpu=2", api.Spec{Size: 3, GPUsPerNode: 3, MinNodes: 2, MaxNodes: 2, CPUsPerRank: 4}},
		{"--mincpus=4", api.Spec{Size: 1, CPUsPerRank: 4}},
		{"--mincpus=4 -c5", api.Spec{Size: 1, CPUsPerRank: 5}},
		{"--mincpus=4 --ntasks-per-node=2", api.Spec{Size: 2, RanksPerNode: 2, CPUsPerRank: 2}},
		{"-n4 -N2 --ntasks-per-node=2", api.Spec{Size: 4, MinNodes: 2, MaxNodes: 2, RanksPerNode: 2}},
		{"-n4 -N2 --ntasks-per-node=3", api.Spec{Size: 4, MinNodes: 2, MaxNodes: 2, RanksPerNode: 3}},
		{"-n4 -N2 --ntasks-per-node=4", api.Spec{Size: 4, MinNodes: 2, MaxNodes: 2, RanksPerNode: 2}},
		{"-n5 -N2-3 --ntasks-per-node=5", api.Spec{Size: 5, MinNodes: 2, MaxNodes: 3}},
		{"-n4 -N2-3 --ntasks-per-node=4", api.Spec{Size: 4, MinNodes: 2, MaxNodes: 3}},
		{"--overcommit -n4", api.Spec{Size: 1, RanksPerNode: 1}},
		{"--mem=4G -N2", api.Spec{Size: 2, MinNodes: 2, MaxNodes: 2, RanksPerNode: 1, MemoryPerRank: 4 << 30}},
		{"--mem=1K", api.Spec{Size: 1, MemoryPerRank: 1 << 20}},
		{"--mem-per-cpu=32T -c2", api.Spec{Size: 1, CPUsPerRank: 2, MemoryPerRank: 64 << 40}},
		{"--mem-per-gpu=1G --gpus-per-node=2 -n2", api.Spec{Size: 2, GPUsPerNode: 2, MemoryPerNode: 2 << 30}},
		{"--mem-per-rank=1G -n2", api.Spec{Size: 2, MemoryPerRank: 1 << 30}},
		{"-C a*3 -N1-9", api.Spec{Size: 3, MinNodes: 1, MaxNodes: 3, RanksPerNode: 1, Constraint: "a*3"}},
		{"-C a*3 -N3", api.Spec{Size: 3, MinNodes: 3, MaxNodes: 3, RanksPerNode: 1, Constraint: "a*3"}},
	} {
		r, _, err := buildOf("", strings.Fields(c.args)...)
		if err != nil {
			t.Errorf("%s: %v", c.args, err)
			continue
		}
		r.Spec.Asked = nil
		c.want.CPUsPerRank = max(c.want.CPUsPerRank, 1)
		if c.want.Launch == "" {
			c.want.Launch = api.LaunchBatch
		}
		if d := cmp.Diff(c.want, r.Spec, figuresAlone); d != "" {
			t.Errorf("%s: -want +got\n%s", c.args, d)
		}
	}
}

// TestAskedInItsWords: what a batch job asked for is kept as it was written.
func TestAskedInItsWords(t *testing.T) {
	for _, c := range []struct {
		args string
		want *api.Asked
	}{
		{"", nil}, {"-n2", nil}, {"--mem=0", nil}, {"--size=2 -c2", nil}, {"--size=2 -c2 --launch=batch", &api.Asked{CPUsPerTask: 2}},
		{"-c1", &api.Asked{CPUsPerTask: 1}}, {"--overcommit", &api.Asked{}}, {"--overcommit -n3", &api.Asked{Tasks: 3}},
		{"--mem=1G", &api.Asked{MemoryPerNode: 1 << 30}}, {"--mem=1G -n2 -N1", &api.Asked{MemoryPerNode: 1 << 30}}, {"--mem-per-cpu=1G", &api.Asked{MemoryPerCPU: 1 << 30}},
		{"--gpus=1", &api.Asked{GPUs: "1", CardsBy: "gpus"}}, {"--gpus=2", &api.Asked{GPUs: "2", CardsBy: "gpus", Spread: true}}, {"--gpus=2 -n1", &api.Asked{GPUs: "2", CardsBy: "gpus"}},
		{"--gpus=2 -N1", &api.Asked{GPUs: "2", CardsBy: "gpus"}}, {"--gpus=2 --ntasks-per-node=1", &api.Asked{GPUs: "2", CardsBy: "gpus"}}, {"--gpus=2 --ranks-per-node=1", &api.Asked{GPUs: "2", CardsBy: "gpus"}},
		{"--gpus=2 --size=1 --launch=batch", &api.Asked{GPUs: "2", CardsBy: "gpus"}}, {"--gpus=4 -n2", &api.Asked{GPUs: "4", CardsBy: "gpus"}},
		{"--gpus-per-node=2 -n2", &api.Asked{GPUsPerNode: "2", CardsBy: "gpus-per-node"}}, {"--gpus-per-task=a100:1 --gpu-freq=high --gpu-bind=none", &api.Asked{GPUsPerTask: "a100:1", CardsBy: "gpus-per-task", GPUFreq: "high", GPUBind: "none"}},
		{"--gpus=3 -n2", &api.Asked{GPUs: "3", CardsBy: "gpus", Tasks: 2}},
	} {
		r, _, err := buildOf("", strings.Fields(c.args)...)
		if err != nil {
			t.Errorf("%s: %v", c.args, err)
			continue
		}
		if d := cmp.Diff(c.want, r.Spec.Asked, figuresAlone); d != "" {
			t.Errorf("%s: -want +got\n%s", c.args, d)
		}
	}
}
