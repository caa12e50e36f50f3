package completion

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gangd/pkg/lab/tool"
)

// stubs answer as the commands do.
const stubs = `
sinfo() { case "$*" in *%R*) printf 'main\nshort\nbig\n' ;; *%N*) printf 'n1\nn2\n' ;; esac; }
squeue() { case "$*" in *-s*) echo 12.0 ;; *) printf '12\n20_1\n' ;; esac; }
scontrol() { echo "ReservationName=upkeep StartTime=x"; }
compopt() { :; }
`

// completed is what bash offers for a line as readline splits it.
func completed(t *testing.T, file string, words ...string) []string {
	t.Helper()
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = "'" + w + "'"
	}
	script := "source " + file + "\n" + stubs + "COMP_WORDS=(" + strings.Join(quoted, " ") + "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n" +
		"_gangd_slurm " + words[0] + "\nprintf '%s\\n' \"${COMPREPLY[@]}\""
	out, err := exec.Command("bash", "--norc", "-c", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", words, err, out)
	}
	return strings.Fields(string(out))
}

func TestCompletion(t *testing.T) {
	tool.Need(t, "bash")
	file := filepath.Join(t.TempDir(), "completion")
	var b strings.Builder
	if err := Write(&b); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ line, want string }{
		{"squeue --part", "--partition="},
		{"squeue --no", "--noconvert --nodelist= --noheader --notme"},
		{"squeue --partition = ma", "main"},
		{"squeue -p main,sh", "main,short"},
		{"squeue -p _", "main short big"},
		{"squeue -j 1", "12"},
		{"squeue -t COMPLETI", "COMPLETING"},
		{"sinfo -t dr", "drain draining drained"},
		{"sinfo -n n", "n1 n2"},
		{"scancel 2", "20_1"},
		{"scancel _", "12 20_1"},
		{"scancel --reserv", "--reservation="},
		{"/opt/slurm/scancel 1", "12"},
		{"sbatch --gpus-per-t", "--gpus-per-task="},
		{"sbatch -w n", "n1 n2"},
		{"sbatch -N 1", ""},
		{"sbatch --licen", "--licenses="}, {"sbatch --batc", ""}, // refused
		{"sbatch --reservation = u", "upkeep"},
		{"srun --resv", "--resv-ports="},
		{"srun -t 1", ""},
		{"salloc --no-sh", ""},
		{"sacct --star", "--starttime="},
		{"sacct -r b", "big"},
		{"scontrol requeueh", "requeuehold"},
		{"scontrol suspe", ""}, // refused
		{"scontrol show par", "partition"},
		{"scontrol show partition ma", "main"},
		{"scontrol -o show job 2", "20_1"},
		{"scontrol show step _", "12.0"},
		{"scontrol hold 12 2", "20_1"},
		{"scontrol update J", "JobId="},
	} {
		words := strings.Fields(c.line)
		if last := len(words) - 1; words[last] == "_" {
			words[last] = ""
		}
		if got := completed(t, file, words...); !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%s: %v, want %s", c.line, got, c.want)
		}
	}
}
