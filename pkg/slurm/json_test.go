package slurm_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"gangd/pkg/cli/fake"
	"gangd/pkg/cmdline"
	"gangd/pkg/lab/clitest"
	"gangd/pkg/slurm"
	"gangd/pkg/slurm/sinfo"
	"gangd/pkg/slurm/squeue"
)

// TestJSONHasSlurmsShape compares --json with what Slurm 22.05 printed: every name is there, no
// other is, and each has a type that Slurm's has; null stands for what is not known.
func TestJSONHasSlurmsShape(t *testing.T) {
	for name, run := range map[string]slurm.Runner{"squeue": squeue.Run, "sinfo": sinfo.Run} {
		t.Run(name, func(t *testing.T) {
			c := fake.Small()
			clitest.Serve(t, c)
			var out, errs bytes.Buffer
			if code := run([]string{"--json"}, cmdline.Streams{Out: &out, Err: &errs}); code != 0 {
				t.Fatalf("status %d: %s", code, errs.String())
			}
			var v any
			if err := json.Unmarshal(out.Bytes(), &v); err != nil {
				t.Fatal(err)
			}
			want := recorded(t, "testdata/"+name+"-22.05.schema")
			got := map[string]map[string]bool{}
			shape(v, "", got)
			for path, types := range got {
				known, ok := want[path]
				if !ok {
					t.Errorf("%s is not in Slurm's", path)
				}
				for typ := range types {
					if typ != "null" && !known[typ] && !known["null"] {
						t.Errorf("%s is a %s, in Slurm's one of %v", path, typ, known)
					}
				}
			}
			for path := range want {
				// Which cores a job has, gangd leaves to the kernel.
				if got[path] == nil && !strings.Contains(path, ".sockets.") && !strings.HasSuffix(path, "[]") {
					t.Errorf("%s is missing", path)
				}
			}
		})
	}
}

// recorded reads lines of "path type".
func recorded(t *testing.T, file string) map[string]map[string]bool {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]bool{}
	for line := range strings.Lines(string(b)) {
		path, typ, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || path == "#" {
			continue
		}
		add(out, strings.TrimPrefix(path, "."), typ)
	}
	return out
}

func add(to map[string]map[string]bool, path, typ string) {
	if to[path] == nil {
		to[path] = map[string]bool{}
	}
	to[path][typ] = true
}

// shape collects the paths of v and their types; elements of a list share one.
func shape(v any, path string, into map[string]map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		add(into, strings.TrimPrefix(path, "."), "object")
		for k, e := range v {
			if strings.Trim(k, "0123456789") == "" {
				k = "N"
			}
			shape(e, path+"."+k, into)
		}
	case []any:
		add(into, strings.TrimPrefix(path, "."), "list")
		for _, e := range v {
			shape(e, path+"[]", into)
		}
	case string:
		add(into, strings.TrimPrefix(path, "."), "string")
	case float64:
		add(into, strings.TrimPrefix(path, "."), "number")
	case bool:
		add(into, strings.TrimPrefix(path, "."), "bool")
	case nil:
		add(into, strings.TrimPrefix(path, "."), "null")
	}
}
