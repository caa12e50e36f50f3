package script

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sbatchNames are the options of sbatch of Slurm 22.05, as its manual page and its
// --usage list them.
const sbatchNames = `account acctg-freq array batch bb bbf begin chdir cluster-constraint clusters comment
constraint container contiguous core-spec cores-per-socket cpu-freq cpus-per-gpu cpus-per-task deadline delay-boot
dependency distribution error exclude exclusive export export-file extra-node-info get-user-env gid gpu-bind gpu-freq
gpus gpus-per-node gpus-per-socket gpus-per-task gres gres-flags help hint hold ignore-pbs input job-name
kill-on-invalid-dep licenses mail-type mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu mincpus network nice
no-kill no-requeue nodefile nodelist nodes ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket
open-mode output overcommit oversubscribe parsable partition power prefer priority profile propagate qos quiet reboot
requeue reservation signal sockets-per-node spread-job switches test-only thread-spec threads-per-core time time-min tmp
uid usage use-min-nodes verbose version wait wait-all-nodes wckey wrap
container-id context extra oom-kill-step resv-ports segment stepmgr tres-bind tres-per-task`

// Of later versions are those in the last line.

// sbatchShorts are its short forms, each with the option it means.
var sbatchShorts = map[byte]string{'a': "array", 'A': "account", 'b': "begin", 'B': "extra-node-info", 'c': "cpus-per-task",
	'C': "constraint", 'd': "dependency", 'D': "chdir", 'e': "error", 'F': "nodefile", 'G': "gpus", 'h': "help", 'H': "hold",
	'i': "input", 'J': "job-name", 'k': "no-kill", 'L': "licenses", 'm': "distribution", 'M': "clusters", 'n': "ntasks",
	'N': "nodes", 'o': "output", 'O': "overcommit", 'p': "partition", 'q': "qos", 'Q': "quiet", 's': "oversubscribe",
	'S': "core-spec", 't': "time", 'v': "verbose", 'V': "version", 'w': "nodelist", 'W': "wait", 'x': "exclude"}

func TestEverySbatchOptionIsListed(t *testing.T) {
	want := strings.Fields(sbatchNames)
	var got []string
	for i := range Options {
		if Options[i].List != Own {
			got = append(got, Options[i].SlurmName())
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("sbatch has %v\nthe table has %v", want, got)
	}
	for c, name := range sbatchShorts {
		if i := slices.IndexFunc(Options, func(o Option) bool { return o.Short == c }); i < 0 || Options[i].SlurmName() != name {
			t.Errorf("-%c is not --%s", c, name)
		}
	}
}

// TestInstalledSbatch compares the list with the manual page of a Slurm that is there.
func TestInstalledSbatch(t *testing.T) {
	page, err := exec.Command("zcat", "/usr/share/man/man1/sbatch.1.gz").Output()
	if err != nil {
		t.Skip("no manual page of sbatch here")
	}
	if !bytes.Contains(page, []byte("22.05")) && !strings.Contains(string(page[:min(len(page), 400)]), "2022") {
		t.Skip("the manual page is of another version than 22.05")
	}
	head := regexp.MustCompile(`(?m)^(?:\\fB\\-.\\fR, )?\\f[BI](?:\\-., )?\\-\\-([a-z\\-]+)\\fR(?:=<|\[=|=\[|=\{|$)`)
	for _, m := range head.FindAllStringSubmatch(string(page), -1) {
		name := strings.ReplaceAll(m[1], `\-`, "-")
		if !slices.Contains(strings.Fields(sbatchNames), name) {
			t.Errorf("the manual page has --%s", name)
		}
	}
}

func TestTableIsSound(t *testing.T) {
	names, shorts, envs := map[string]bool{}, map[byte]bool{}, map[string]bool{}
	for i := range Options {
		o := &Options[i]
		for _, n := range o.Spellings() {
			if names[n] {
				t.Errorf("--%s is there twice", n)
			}
			names[n] = true
		}
		if o.Short != 0 && shorts[o.Short] {
			t.Errorf("-%c is there twice", o.Short)
		}
		shorts[o.Short] = true
		for _, e := range append([]string{envName(o)}, o.Env...) {
			if envs[e] {
				t.Errorf("%s is there twice", e)
			}
			envs[e] = true
		}
		switch {
		case o.List == Refused && (o.Note == "" || o.Use == "" || o.Set != nil):
			t.Errorf("--%s is refused and needs a reason, an alternative and no setter", o.Long)
		case o.List == Partial && o.Note == "":
			t.Errorf("--%s does not say what differs", o.Long)
		case (o.List == Own || o.List == Exact) && o.Help == "":
			t.Errorf("--%s has no help", o.Long)
		case o.List != Refused && o.Set == nil && !o.Warn:
			t.Errorf("--%s does nothing and says nothing", o.Long)
		case o.Kind == Value && o.List != Refused && o.Arg == "":
			t.Errorf("--%s does not name its value", o.Long)
		}
	}
	for _, pair := range rivals {
		named(pair[0])
		named(pair[1])
	}
}

// TestManualPage compares the table with man/gsubmit.1: every option has its entry there,
// and the page knows no other.
func TestManualPage(t *testing.T) {
	page, err := os.ReadFile("../../../man/gsubmit.1")
	if err != nil {
		t.Fatal(err)
	}
	var inPage []string
	for _, m := range regexp.MustCompile(`(?m)^\.(?:It|Op)\b.*$`).FindAllString(string(page), -1) {
		for _, n := range regexp.MustCompile(`Fl Fl ([a-z-]+)`).FindAllStringSubmatch(m, -1) {
			inPage = append(inPage, n[1])
		}
	}
	var inTable []string
	for i := range Options {
		inTable = append(inTable, Options[i].Spellings()...)
	}
	for _, n := range inTable {
		if !slices.Contains(inPage, n) {
			t.Errorf("--%s is not in man/gsubmit.1", n)
		}
	}
	for _, n := range inPage {
		if !slices.Contains(inTable, n) {
			t.Errorf("man/gsubmit.1 has --%s, which is no option", n)
		}
	}
}

func TestSlurmListNamesEveryOptionOnce(t *testing.T) {
	var b strings.Builder
	SlurmLists().Write(&b)
	for _, n := range strings.Fields(sbatchNames) {
		if c := strings.Count(b.String(), "\n  --"+n+" "); c != 1 {
			t.Errorf("--%s is there %d times", n, c)
		}
	}
}

// TestPure: the package decides from what it is given alone.
func TestPure(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{join .Imports "\n"}}`, ".").Output()
	if err != nil {
		t.Skip("no go command")
	}
	allowed := strings.Fields("bytes fmt io slices sort strconv strings time unicode unicode/utf8 gangd/pkg/api gangd/pkg/core/hostlist gangd/pkg/core/nearest gangd/pkg/core/cmdline gangd/pkg/core/cmdline/when gangd/pkg/core/outpath gangd/pkg/core/container gangd/pkg/core/rankenv gangd/pkg/api/rlimit")
	for _, imp := range strings.Fields(string(out)) {
		if !slices.Contains(allowed, imp) {
			t.Errorf("imports %s: a pure package takes only %v", imp, allowed)
		}
	}
}

func BenchmarkSubmission(b *testing.B) {
	text := []byte("#!/bin/bash\n#GANG --size=4 --gpus-per-rank=1 --vram=40G\n#GANG --time=12:00:00 --signal=TERM@120 --requeue --max-retries=2\n#GANG --output=logs/%x-%j.%t.out\npython train.py \"$@\"\n")
	for b.Loop() {
		if _, _, err := buildOf(string(text), "-p", "gpu"); err != nil {
			b.Fatal(err)
		}
	}
}
