package slurmtest

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// Shape compares a document with a file of paths and types ("path type", # begins a comment): every path of
// it is in the document, no other is, and each has a type of the file's; null stands for what is not known.
func Shape(t *testing.T, schema string, b []byte) {
	t.Helper()
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	want := recorded(t, schema)
	got := map[string]map[string]bool{}
	shape(v, "", got)
	for path, types := range got {
		known, ok := want[path]
		if !ok && !ours(path) {
			t.Errorf("%s is not in Slurm's", path)
		}
		for typ := range types {
			if typ != "null" && ok && !known[typ] && !known["null"] {
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
}

// ours are what gangd adds, and the elements of lists that Slurm's tables say nothing of.
func ours(path string) bool {
	return strings.HasPrefix(path, "meta.gangd") || path == "" || strings.HasSuffix(path, "max_rss_bytes") ||
		strings.Contains(path, "].tres.") ||
		strings.HasSuffix(path, "[]") || strings.Contains(path, "allocated_nodes[].")
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
		if _, set := v["set"]; set && len(v) == 3 {
			add(into, strings.TrimPrefix(path, "."), "optional")
			return
		}
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
