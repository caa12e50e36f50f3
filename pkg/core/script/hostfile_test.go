package script

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// asIs takes the name of a file for its text.
func asIs(text string) (string, error) { return text, nil }

// A file with a node for each task: repeats count, and their places.
func TestTaskNodes(t *testing.T) {
	for text, want := range map[string]string{"n3\nn1\nn1\n": "n3 n1 n1", "n1*2\nn[3-4]*2 # both\nn1,n1": "n1 n1 n3 n4 n3 n4 n1 n1"} {
		if got, err := TaskNodes(text, asIs); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %q, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "n1*x", "n1*0", "n1*99999999", "n[1-60000]*60000"} {
		if got, err := TaskNodes(text, asIs); err == nil {
			t.Errorf("%q: %d nodes", text, len(got))
		}
	}
}

func TestHostfile(t *testing.T) {
	for text, want := range map[string]string{
		"n1\nn2\n":                       "n1,n2",
		"# of a\n n2 # one\n\nn[3-4],x7": "n2,n[3-4],x7",
		"n1*4\nn2\nn1\n":                 "n1,n2,n1",
		"a1,z1\nA2\nZ9\n0a,9z":           "a1,z1,A2,Z9,0a,9z",
		"a\nz\nA\nZ\n0\n9\n":             "a,z,A,Z,0,9",
	} {
		if got, err := NodesOf(text, asIs); got != want || err != nil {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{"": "no node", "#n1\n": "no node", "n1\n*x\n": "line 2", "[1-2]": "line 1", "{": "line 1", "@n1": "line 1", "/n1": "line 1", ":n1": "line 1"} {
		if _, err := NodesOf(text, asIs); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestListed: sbatch's list of nodes is of those that the job has, a file of them is such a list, and what is closer wins.
func TestListed(t *testing.T) {
	for args, want := range map[string][2]int{ // nodes at least, and how many are named
		"-F f --launch=batch":                  {3, 3},
		"-w n1 -F f --launch=batch":            {3, 3},
		"-F f -w n1 --launch=batch":            {0, 1},
		"-w n[1-4] -n2 --launch=batch":         {2, 4},
		"-w n[1-4] -N4 -n8 --launch=batch":     {4, 4},
		"-w n[1-4] --size=2 --gpus-per-rank=1": {0, 4},
		"-w n[1-4] --role=a:1":                 {0, 4},
		"-w n1 -n2 --launch=batch":             {0, 1},
		"-w n[1-2] -n2 --launch=batch":         {2, 2},
	} {
		settings, _, err := Flags(strings.Fields(args))
		if err == nil {
			err = Nodefiles(settings, func(string) (string, error) { return "n1\nn2\nn3\n", nil })
		}
		if err != nil {
			t.Fatal(err)
		}
		req, _, err := Build(Listed(settings), time.Now())
		if err != nil {
			t.Fatalf("%s: %v", args, err)
		}
		if got := [2]int{req.Spec.MinNodes, len(req.Spec.NodeList)}; got != want {
			t.Errorf("%s: %d nodes at least of %d, want %v", args, got[0], got[1], want)
		}
	}
}

// TestHostfileOfSbatch: of a file with a node for each task a job has the nodes, and the tasks where nobody says how many; srun in the script is
// told to put them there.
func TestHostfileOfSbatch(t *testing.T) {
	for args, want := range map[string]string{
		"":          "n1,n3 3 SLURM_NTASKS=3 SLURM_NPROCS=3 SLURM_DISTRIBUTION=arbitrary SLURM_ARBITRARY_NODELIST=n[1,3]",
		"-n2":       "n1,n3 2 SLURM_NTASKS=2 SLURM_NPROCS=2 SLURM_DISTRIBUTION=arbitrary SLURM_ARBITRARY_NODELIST=n[1,3]",
		"-n1":       "n3 1 SLURM_NTASKS=1 SLURM_NPROCS=1 SLURM_DISTRIBUTION=arbitrary SLURM_ARBITRARY_NODELIST=n3",
		"-n2 -w n2": "n2 2 SLURM_NTASKS=2 SLURM_NPROCS=2",
		"-n4":       "it has fewer nodes than tasks are asked for",
	} {
		settings, _, err := Flags(append(strings.Fields(args), "--launch=batch"))
		if err == nil {
			settings, err = Hostfile(settings, "n3\nn1\nn1\n", asIs)
		}
		got := ""
		if err == nil {
			req, warn, e := Build(Listed(settings), time.Now())
			if err = e; err == nil {
				got = strings.Join(req.Spec.NodeList, ",") + " " + strconv.Itoa(req.Spec.Size) + " " + strings.Join(req.Spec.Asked.Told, " ")
			}
			if len(warn) > 0 {
				t.Errorf("%s: %v", args, warn)
			}
		}
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %s, want %s", args, got, want)
		}
	}
}
