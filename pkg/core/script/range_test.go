package script

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gangd/pkg/api"
)

// TestRanges: each number is taken up to its bounds, and refused beyond them with the bound.
func TestRanges(t *testing.T) {
	for name, r := range map[string][2]int{
		"size": {1, api.MaxGangSize}, "ranks-per-node": {1, api.MaxGangSize}, "ntasks": {1, api.MaxGangSize}, "ntasks-per-node": {1, api.MaxGangSize},
		"threads-per-core": {1, 1 << 16}, "cpus-per-task": {1, 1 << 20}, "cpus-per-gpu": {1, 1 << 20}, "mincpus": {1, 1 << 20}, "ntasks-per-gpu": {1, 1 << 16},
		"sockets-per-node": {1, 1 << 10}, "cores-per-socket": {1, 1 << 16}, "extra-node-info": {1, 1 << 16}, "max-retries": {0, 1000000}, "backoff-limit": {0, 1000000}, "stall-retries": {0, 1000000}, "switches": {1, 1 << 20},
		"priority": {0, 4294967294}, "nice": {-2147483645, 2147483645}, "wait-all-nodes": {0, 1},
	} {
		o := named(name)
		for v, want := range map[int]string{r[0]: "", r[1]: "", r[0] - 1: "less than " + strconv.Itoa(r[0]), r[1] + 1: "more than " + strconv.Itoa(r[1])} {
			err := o.Set(&Ask{}, strconv.Itoa(v))
			if want == "" && err != nil || want != "" && (err == nil || err.Error() != want+"; write a number from "+strconv.Itoa(r[0])+" to "+strconv.Itoa(r[1])) {
				t.Errorf("--%s=%d: %v, want %q", name, v, err, want)
			}
		}
	}
	if _, err := number("+0", 1, 5); err == nil || err.Error() != "less than 1; write a number from 1 to 5" {
		t.Errorf("+0: %v", err)
	}
	for in, want := range map[string]int{"64": 64, "2k": 2048, "1M": 1 << 20, "2147483648": 1 << 31, "2097152k": 1 << 31, "2048m": 1 << 31} {
		if n, err := nodeCount(in); err != nil || n != want {
			t.Errorf("%s nodes: %d, %v", in, n, err)
		}
	}
	for _, in := range []string{"0", "0k", "2147483649", "2097153k", "2049m", "k"} {
		if n, err := nodeCount(in); err == nil {
			t.Errorf("%s nodes: %d", in, n)
		}
	}
	for kinds, want := range map[string]bool{"65536": true, "65537": false} {
		if _, _, err := parseGPUs(kinds); (err == nil) != want {
			t.Errorf("%s cards: %v", kinds, err)
		}
	}
	for in, want := range map[string]bool{"after:1+0": true, "after:1+1048576": true, "after:1+1048577": false, "after:1+-1": false} {
		if _, err := ParseDependency(in); (err == nil) != want {
			t.Errorf("%s: %v", in, err)
		}
	}
	for text, want := range map[string]bool{strings.Repeat("x", maxText): true, strings.Repeat("x", maxText+1): false, "": false, "a\tb": false} {
		var s string
		if err := textInto(&s, text); (err == nil) != want || want && s != text {
			t.Errorf("%.10q of %d bytes: %v", text, len(text), err)
		}
	}
}

// TestBoundsOfForms: where a form of a value ends.
func TestBoundsOfForms(t *testing.T) {
	for in, want := range map[string]time.Duration{"3650-0": maxDuration, "3650d": maxDuration, "87600h": maxDuration, "9m": 9 * time.Minute, "0h9s": 9 * time.Second} {
		if d, err := ParseTime(in); err != nil || d != want {
			t.Errorf("%s: %v, %v", in, d, err)
		}
	}
	for in, want := range map[string]string{"3650-0:1": "longer than ten years", "3651d": "longer than ten years", "3650d1s": "longer than ten years", "87601h": "longer than ten years",
		"9223372036854775807d": "longer than ten years", "d": "not a time", "1h:5m": "not a time", "1h/m": "not a time"} {
		if d, err := ParseTime(in); err == nil || err.Error() != want+"; "+timeForms {
			t.Errorf("%s: %v, %v", in, d, err)
		}
	}
	for in, want := range map[string]string{
		"255M": "255M is less than a card needs for any program; write --vram=24G",
		"0":    "0B is less than a card needs for any program; write --vram=24G",
		"1":    "1M is less than a card needs for any program; did you mean 1G?",
		"x":    "not a size; " + sizeForms,
	} {
		if _, err := parseVRAM(in); err == nil || err.Error() != want {
			t.Errorf("%s: %v", in, err)
		}
	}
	if v, err := parseVRAM("256M"); err != nil || v != 256<<20 {
		t.Errorf("256M: %d, %v", v, err)
	}
	for in, want := range map[string]int{"a*2": 2, "[a*20&b*09]": 29, "a*:": 0, "a*/1": 0, "a*65536": 65536, "a*65537": 0, "*": 0, "": 0} {
		if n := countedNodes(in); n != want {
			t.Errorf("%q counts %d nodes, want %d", in, n, want)
		}
	}
	for in, want := range map[string]bool{"#GANG --x": true, "#GANG\t--x": true, "#GANG": true, "#GANG--x": true, "#GANGx": false, "#GANG:x": false, "#GANG\n": false, "#GANG\b": false, "#GANG!": false} {
		if _, source, is := directive(in); is != want || want && source != FromGANG {
			t.Errorf("%q is a directive: %v", in, is)
		}
	}
	if _, source, is := directive("#SBATCHx"); !is || source != FromSBATCH { // a slip, which is refused as an option
		t.Errorf("#SBATCHx: %v, %v", source, is)
	}
}

// TestCheckScript: what can't be a script is refused with what it is.
func TestCheckScript(t *testing.T) {
	big := "#!/bin/sh\n" + strings.Repeat("x", api.MaxScriptBytes-len("#!/bin/sh\n"))
	for text, want := range map[string]string{
		"":                    "job.sh: the script is empty",
		big + "x":             "job.sh: the script is larger than 4M",
		"\x7fELF":             "job.sh: this is a program, not a script",
		"\xff\xfe#!":          "job.sh:1: the script is UTF-16",
		"\xfe\xff#!":          "job.sh:1: the script is UTF-16",
		"\xef\xbb\xbf#!":      "job.sh:1: a byte order mark stands before #!",
		"#!/bin/sh\na\x00":    "job.sh:2: the script holds a NUL byte",
		"#!/bin/sh\n\nx\r\n":  "job.sh:3: the line ends in CR LF, as DOS and Windows write it",
		"echo":                "job.sh:1: this is not a script: it does not begin with #!",
		"#! \necho":           "job.sh:1: #! names no interpreter",
		big:                   "",
		"#!/bin/sh\na\rb\n\r": "",
	} {
		got := ""
		if err := Check("job.sh", []byte(text)); err != nil {
			got, _, _ = strings.Cut(err.Error(), ";")
		}
		if got != want {
			t.Errorf("%.20q: %q, want %q", text, got, want)
		}
	}
	if err := Check("job.sh", Wrap("true")); err != nil || string(Wrap("a b")) != "#!/bin/sh\n# Made by gsubmit --wrap.\n\na b\n" {
		t.Errorf("%q: %v", Wrap("a b"), err)
	}
	for in, want := range map[string]string{"plain": "plain", `a"b\c`: `a"b\c`, "a\x1b[2J": `a\x1b[2J`, strings.Repeat("x", 80): strings.Repeat("x", 80), strings.Repeat("x", 81): strings.Repeat("x", 80) + "..."} {
		if got := oneLine(in); got != want {
			t.Errorf("%q is shown as %q", in, got)
		}
	}
}

// TestContainerWordsAlone: what speaks of a container without an image says so by its option.
func TestContainerWordsAlone(t *testing.T) {
	for want, c := range map[string]api.Container{
		"": {Image: "i", WorkDir: "/w", Home: true}, "container-workdir": {WorkDir: "/w"}, "container-mounts": {Mounts: []api.ContainerMount{{}}},
		"container-mount-home": {Home: true}, "container-env": {Env: []string{"A"}}, "container-readonly": {ReadOnly: true},
	} {
		if got := CheckContainer(&c); got != want {
			t.Errorf("%+v: %q", c, got)
		}
	}
	if got := CheckContainer(&api.Container{}); got != "" {
		t.Error(got)
	}
}

// TestWordsThatWarnOrName: values with a warning of their own, and lists that name what they mean.
func TestWordsThatWarnOrName(t *testing.T) {
	for _, c := range []struct {
		in        string
		exclusive bool
		warned    int
		refused   bool
	}{{"", true, 0, false}, {"USER", true, 1, false}, {"mcs", true, 1, false}, {"topo", false, 0, true}} {
		var a Ask
		if err := setExclusive(&a, c.in); (err != nil) != c.refused || a.Spec.Exclusive != c.exclusive || len(a.warned) != c.warned {
			t.Errorf("--exclusive=%s: %v, %v, %q", c.in, err, a.Spec.Exclusive, a.warned)
		}
	}
	full := new(Ask)
	if n, err := full.parseNotice("A:USR1"); err != nil || n.Scope != api.ScopeFull {
		t.Errorf("%+v, %v", n, err)
	}
	end := []api.NotifyType{api.NotifyTypes[0]}
	if got := mail(end, "a@x, b@y"); !reflect.DeepEqual(got, []api.Notify{{To: "a@x", Types: end}, {To: "b@y", Types: end}}) {
		t.Errorf("%+v", got)
	}
	if got := mail(nil, "a@x"); got != nil {
		t.Errorf("%+v", got)
	}
	all, err := notifyTypes("all")
	some, err2 := notifyTypes(" fail,END,end")
	none, err3 := notifyTypes("END,NONE")
	if _, err4 := notifyTypes("END,bogus"); err != nil || err2 != nil || err3 != nil || err4 == nil || len(all) != len(api.NotifyAll) || none != nil ||
		!slices.Equal(names(some), []string{"END", "FAIL"}) {
		t.Errorf("%v %v, %v %v, %v %v, %v", all, err, some, err2, none, err3, err4)
	}
}

// TestEnvironOfParts: a variable that sets a part of an option goes with that option.
func TestEnvironOfParts(t *testing.T) {
	for _, c := range []struct{ env, want string }{
		{"SBATCH_REQ_SWITCH=2 SBATCH_WAIT4SWITCH=10", "--switches=2@10"},
		{"SBATCH_REQ_SWITCH=2@5 SBATCH_WAIT4SWITCH=10", "--switches=2@5"},
		{"SBATCH_REQ_SWITCH=2 SBATCH_WAIT4SWITCH=", "--switches=2"},
		{"SBATCH_WAIT4SWITCH=10", ""},
		{"SBATCH_PARTITION=p SBATCH_WAIT4SWITCH=10", "--partition=p"},
	} {
		s, warn, err := Environ(strings.Fields(c.env))
		got := ""
		for i := range s {
			got += s[i].String()
		}
		if err != nil || got != c.want || len(warn) > 0 {
			t.Errorf("%s: %s, %v, %v", c.env, got, warn, err)
		}
	}
}

// TestUnreadable: what is no option is said in words of ours.
func TestUnreadable(t *testing.T) {
	for in, want := range map[string]string{
		"--size":   "--size needs a value; write --size=N",
		"-n":       "-n (--ntasks) needs a value; write --ntasks=N",
		"--hold=x": "--hold takes no value; write --hold",
		"--tiem=5": "unknown option --tiem; did you mean --time?",
		"--zzz":    "unknown option --zzz; gsubmit --help lists the options",
		"-j":       "unknown option -j; gsubmit --help lists the options",
		"--mail=a": "ambiguous option --mail; it may be --mail-type, --mail-user",
	} {
		if _, _, err := Flags([]string{in}); err == nil || err.Error() != want {
			t.Errorf("%s: %v", in, err)
		}
	}
}

// TestAskedOfNodes: figures that stand at the edge of what nodes, ranks and cards make of each other.
func TestAskedOfNodes(t *testing.T) {
	for _, c := range []struct {
		args string
		want api.Spec
	}{
		{"-N2-4 --gpus=2", api.Spec{Size: 2, Launch: "batch", CPUsPerRank: 1, RanksPerNode: 1, MinNodes: 2, MaxNodes: 2, GPUsPerRank: 1}},
		{"--overcommit -N2", api.Spec{Size: 2, Launch: "batch", CPUsPerRank: 1, RanksPerNode: 1, MinNodes: 2, MaxNodes: 2}},
		{"--overcommit -N2 -n8", api.Spec{Size: 2, Launch: "batch", CPUsPerRank: 1, RanksPerNode: 1, MinNodes: 2, MaxNodes: 2}},
		{"--overcommit -N4 -n3", api.Spec{Size: 3, Launch: "batch", CPUsPerRank: 1, RanksPerNode: 1, MinNodes: 3, MaxNodes: 3}},
		{"-n" + strconv.Itoa(api.MaxGangSize), api.Spec{Size: api.MaxGangSize, Launch: "batch", CPUsPerRank: 1}},
		{"--gpus=0", api.Spec{Size: 1, Launch: "batch", CPUsPerRank: 1}},
		{"-N2 -n4 --mem=4G", api.Spec{Size: 4, Launch: "batch", CPUsPerRank: 1, MinNodes: 2, MaxNodes: 2, MemoryPerNode: 4 << 30}},
		{"-n4 --ntasks-per-node=1 --mem=4G", api.Spec{Size: 4, Launch: "batch", CPUsPerRank: 1, RanksPerNode: 1, MemoryPerRank: 4 << 30}},
		{"--ntasks-per-node=3 --mincpus=7", api.Spec{Size: 3, Launch: "batch", CPUsPerRank: 3, RanksPerNode: 3}},
		{"-n3 --gpus-per-node=2 --ntasks-per-node=3 --cpus-per-gpu=4", api.Spec{Size: 3, Launch: "batch", CPUsPerRank: 3, RanksPerNode: 3, GPUsPerNode: 2}},
	} {
		r, _, err := buildOf("", strings.Fields(c.args)...)
		if err != nil {
			t.Errorf("%s: %v", c.args, err)
			continue
		}
		r.Spec.Asked = nil
		if d := cmp.Diff(c.want, r.Spec, figuresAlone); d != "" {
			t.Errorf("%s: -want +got\n%s", c.args, d)
		}
	}
	for text, want := range map[string]string{ // the later of two is the one to blame
		"#SBATCH --mem=1G\n#SBATCH --mem-per-cpu=2G\n":        "job.sh:2:9: --mem-per-cpu=2G contradicts --mem=1G (job.sh:1:9); keep one of them",
		"#SBATCH --mem-per-cpu=2G\n#SBATCH --hold --mem=1G\n": "job.sh:2:16: --mem=1G contradicts --mem-per-cpu=2G (job.sh:1:9); keep one of them",
		"#SBATCH --mem=1G --mem-per-cpu=2G\n":                 "job.sh:1:18: --mem-per-cpu=2G contradicts --mem=1G (job.sh:1:9); keep one of them",
		"#SBATCH -H --mem-per-cpu=2G\n#SBATCH --mem=1G\n":     "job.sh:2:9: --mem=1G contradicts --mem-per-cpu=2G (job.sh:1:12); keep one of them",
	} {
		if _, _, err := buildOf(text); err == nil || err.Error() != want {
			t.Errorf("%s: %v", text, err)
		}
	}
	for args, want := range map[string]string{
		"-N65537":                        "--nodes=65537: asks for 65537 ranks, at most 65536 are accepted; ask for fewer",
		"--mem-per-gpu=1G":               "--mem-per-gpu=1G: no card is asked for; add --gpus-per-rank=N, or write --mem=SIZE",
		"--cpus-per-gpu=2":               "--cpus-per-gpu=2: no card is asked for; add --gpus-per-rank=N, or write --cpus-per-task=N",
		"-n4 --mincpus=3":                "--mincpus=3: how many ranks a node has is left open; add --ntasks-per-node=N, or write --cpus-per-task=N",
		"--min-compute=8.0":              "--min-compute=8.0: asks for a capability of no card; ask for cards: --gpus-per-rank=1",
		"--gpus=0 --gres=gmem:40G":       "asks for VRAM on no card; ask for cards: --gpus-per-rank=1",
		"--gpus=4 --gpus-per-node=4 -N2": "--gpus=4 contradicts --nodes=2: with --gpus-per-node=4 it is 1 node",
		"--nodes=4-2":                    "--nodes=4-2: the range runs backwards; write --nodes=2-4",
		"--size=2 --role=a:1":            "--size=2: the roles come to 1 rank; leave --size out, or make them agree",
		"--role=a:1,cpus":                "--role=a:1,cpus: cpus of role a needs a value",
		"--role=a:1,cpux=2":              `--role=a:1,cpux=2: unknown option "cpux" of role a; did you mean cpus?`,
		"--role=a:1,cpus=0":              "--role=a:1,cpus=0: cpus=0 of role a: less than 1; write a number from 1 to 1048576",
		"--role=a:1,cpus=1048577":        "--role=a:1,cpus=1048577: cpus=1048577 of role a: more than 1048576; write a number from 1 to 1048576",
		"--role=a:0":                     "",
		"--role=a:65537":                 "",
	} {
		_, _, err := buildOf("", strings.Fields(args)...)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// TestWordsOfOptions: of options that take one of few words, each word and one that is none.
func TestWordsOfOptions(t *testing.T) {
	for _, c := range []struct{ option, value, want string }{
		{"hint", "nomultithread", ""}, {"hint", "compute_bound", ""}, {"hint", "x", "want nomultithread, multithread, compute_bound or memory_bound"},
		{"gpu-bind", "none", ""}, {"gpu-bind", "verbose,None", ""}, {"gpu-bind", "v,single:1", ""}, {"gpu-bind", "x:1", "unknown type; types are none, closest, single:N, per_task:N, map_gpu:LIST and mask_gpu:LIST"},
		{"cpu-bind", "ldoms", ""}, {"cpu-bind", "map_cpu:0", "want none, cores or ldoms; lists of CPUs are for steps: srun --cpu-bind=map_cpu:0,1"},
		{"requeue", "", ""}, {"requeue", "crash, idle", ""}, {"requeue", "crash,cancelled", `unknown cause "cancelled"; causes are crash, oom, launch, node-lost, preempted, requeued, stalled, gpu-hang, idle, timeout`},
		{"nodelist", "n[1-2]", ""}, {"nodelist", "n[1-", "not a list of nodes; write n1,n2 or n[1-4,7]"}, {"nodelist", "", "not a list of nodes; write n1,n2 or n[1-4,7]"},
		{"partition", "a,b", ""}, {"partition", "a,", "not a list of names; write --partition=gpu or --partition=gpu,debug"}, {"partition", "a/b", "not a list of names; write --partition=gpu or --partition=gpu,debug"},
		{"output", "x/%j.out", ""}, {"output", "x/", "names a directory, not a file; write x/gang-%j.out"}, {"output", "", "the value is empty"},
		{"gres", "gpu:x!:2", "not a number of cards; write 4 or a100:4"}, {"gres", "gpu:-a:2", "not a number of cards; write 4 or a100:4"},
	} {
		var a Ask
		got := ""
		if err := named(c.option).Set(&a, c.value); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("--%s=%s: %s, want %s", c.option, c.value, got, c.want)
		}
	}
	var a Ask
	if _ = setHint(&a, "multithread"); a.Spec.ThreadsPerCore != 0 {
		t.Errorf("multithread: %d threads", a.Spec.ThreadsPerCore)
	}
	if _ = setHint(&a, "nomultithread"); a.Spec.ThreadsPerCore != 1 {
		t.Errorf("nomultithread: %d threads", a.Spec.ThreadsPerCore)
	}
}

// TestExportNamesWhatIsMissing: a variable that is asked for by name and is not there.
func TestExportNamesWhatIsMissing(t *testing.T) {
	e, err := ParseExport("A,B,C=3")
	if err != nil {
		t.Fatal(err)
	}
	if out, missing := e.Environ([]string{"A=1", "D=4"}); !slices.Equal(out, []string{"A=1", "C=3"}) || !slices.Equal(missing, []string{"B"}) {
		t.Errorf("%q, missing %q", out, missing)
	}
}

// TestComponentsTogether: what the components come to is bounded, and what one is warned of is heard.
func TestComponentsTogether(t *testing.T) {
	text := func(n int) string {
		return "#!/bin/sh\n#SBATCH -n" + strconv.Itoa(api.MaxGangSize-1) + "\n#SBATCH hetjob\n#SBATCH -n" + strconv.Itoa(n) + "\n"
	}
	if r, _, err := buildOf(text(1)); err != nil || r.Spec.Size != api.MaxGangSize {
		t.Errorf("%v", err)
	}
	if _, _, err := buildOf(text(2)); err == nil || !strings.HasPrefix(err.Error(), "the components come to 65537 ranks, at most 65536 are accepted") {
		t.Errorf("%v", err)
	}
	if _, warn, err := buildOf("#!/bin/sh\n#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -N4 -n2\n"); err != nil || len(warn) != 1 || !strings.Contains(warn[0].String(), "2 ranks can't fill 4 nodes") {
		t.Errorf("%v, %v", warn, err)
	}
}

// TestBeginningsOfNames: on sbatch's line a beginning is of sbatch's names alone.
func TestBeginningsOfNames(t *testing.T) {
	for word, slurms := range map[string]bool{"--gpus-per-t=1": true, "--gpus-per-r=1": false} {
		_, _, own := Flags([]string{word})
		_, _, err := SlurmFlags([]string{word})
		if own != nil || (err == nil) != slurms {
			t.Errorf("%s: %v, as sbatch's %v", word, own, err)
		}
	}
}
