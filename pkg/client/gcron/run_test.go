package gcron

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/client/program"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/lab/slurmtest"
	"gangd/pkg/slurm"
	"gangd/pkg/wire/people"
)

var update = flag.Bool("update", false, "write the files anew")

func TestMain(m *testing.M) {
	time.Local = time.UTC
	api.Version = "1.2.3"
	os.Exit(m.Run())
}

func TestFiles(t *testing.T) {
	write := func(lines []string, _ cmdline.Streams) int {
		if err := os.WriteFile("t", []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return 0
	}
	slurmtest.Files(t, "testdata/*.txt", *update, nil, map[string]slurm.Runner{"gcron": gcronRun, "scrontab": Scrontab, "write": write})
}

// gcronRun is gcron as cobra runs it.
func gcronRun(args []string, s cmdline.Streams) int { return program.Run(New(), args, s.Out, s.Err) }

func TestOptions(t *testing.T) { slurmtest.Texts(t, scrontabCommand.Lists()) }

var owner = &people.User{Name: "ada", Home: "/home/ada"}

// What a line asks for is its own: nothing of who typed it.
func TestAsk(t *testing.T) {
	t.Setenv("SECRET", "1")
	t.Setenv("SBATCH_PARTITION", "other")
	req, warnings, mistakes := ask(`MSG=hello
PATH=/opt/bin
#SCRON -t 5 --job-name=night --export=ALL,K=v
@daily run "$MSG"
#GANG --size=2
@hourly   each rank
`, owner, "login", time.Now())
	if mistakes != nil || warnings != nil || len(req.Jobs) != 2 {
		t.Fatal(mistakes, warnings, req)
	}
	s := req.Jobs[0].Spec
	if s.Name != "night" || s.TimeLimit != 5*time.Minute || s.Launch != api.LaunchBatch || s.WorkDir != "/home/ada" || s.Partition != "" || s.Output != "slurm-%j.out" {
		t.Errorf("%+v", s)
	}
	want := []string{"HOME=/home/ada", "K=v", "LOGNAME=ada", "MSG=hello", "PATH=/opt/bin", "PWD=/home/ada", "SHELL=/bin/sh", "USER=ada"}
	if slices.Sort(s.Env); !slices.Equal(s.Env, want) {
		t.Errorf("environment %q, want %q", s.Env, want)
	}
	if got, want := string(s.Script), "#!/bin/sh\n#SBATCH -t 5 --job-name=night --export=ALL,K=v\n# due: @daily\nrun \"$MSG\"\n"; got != want {
		t.Errorf("script %q, want %q", got, want)
	}
	if g := req.Jobs[1].Spec; g.Name != "each" || g.Size != 2 || g.Launch != api.LaunchRanks || req.Jobs[1].First != 5 {
		t.Errorf("%+v", g)
	}
}

// Each line that can't be is named, by the line that is to be looked at; what it makes useless is marked.
func TestMistakes(t *testing.T) {
	_, _, mistakes := ask("61 * * * * x\n#SCRON -t 5\n#SCRON --bogus\n@daily y\n#SCRON -a 1-3\n@daily z\n", owner, "login", time.Now())
	got := (&badLines{mistakes}).Error()
	for _, want := range []string{`line 1: minute "61"`, "line 3: unknown option --bogus", "line 6: an array does not go"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nlacks %s", got, want)
		}
	}
	if m := mistakes[1]; m.First != 2 || m.Last != 4 {
		t.Errorf("%+v", m)
	}
}

// An editor has the table, and what it left there holds.
func TestEdited(t *testing.T) {
	t.Setenv("VISUAL", `sed -i s/old/new/`)
	c := &call{name: "gcron", Streams: cmdline.Streams{In: strings.NewReader(""), Out: os.Stdout, Err: os.Stderr}}
	if got, err := c.edited("@daily old\n"); err != nil || got != "@daily new\n" {
		t.Errorf("%q, %v", got, err)
	}
	t.Setenv("VISUAL", "false")
	if _, err := c.edited("x"); err == nil {
		t.Error("an editor that failed was believed")
	}
}
