package pkg

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// ofFiles are packages whose sentences are about files that an administrator writes, and so name their keys and
// write spans as those files do: 1m30s.
var ofFiles = []string{"gangd/pkg/controller/config", "gangd/pkg/core/finding", "gangd/pkg/slurm/conf"}

// ofDevelopers are packages whose sentences only those who change gangd read.
var ofDevelopers = []string{"gangd/pkg/lab", "gangd/pkg/controller/store/pgserver", "gangd/pkg/controller/store/storetest"}

// asTyped are packages that write spans as they are typed: in options' defaults, and in bounds.
var asTyped = []string{"gangd/pkg/client/program", "gangd/pkg/api/bound", "gangd/pkg/core/cmdline/when", "gangd/pkg/controller/store/internal/row"}

// ofTheFile reports whether a sentence is about a configuration and says so: it begins with the key that is wrong, or
// names the file.
func ofTheFile(text, key string) bool {
	return strings.HasPrefix(text, key) || strings.Contains(text, "gangd.toml") || strings.Contains(text, "gnoded.toml")
}

// checkedPackage is a package of ours with the types of its expressions.
type checkedPackage struct {
	path  string
	files []*ast.File
	info  *types.Info
}

// checkedPackages type-checks all of ours from their source, with what they import as the compiler exported it.
func checkedPackages(t *testing.T, set *token.FileSet) (out []checkedPackage) {
	t.Helper()
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Export,Dir,GoFiles,CgoFiles,Module", "gangd/pkg/...", "gangd/cmd/...")
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	type listedPackage struct {
		ImportPath, Export, Dir string
		GoFiles, CgoFiles       []string
		Module                  *struct{ Main bool }
	}
	exports := map[string]string{}
	var own []listedPackage
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var p listedPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		if p.Module != nil && p.Module.Main && len(p.CgoFiles) == 0 {
			own = append(own, p)
		}
	}
	known := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, p := range own {
		c := checkedPackage{path: p.ImportPath, info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}}
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			c.files = append(c.files, f)
		}
		if _, err := (&types.Config{Importer: known}).Check(p.ImportPath, set, c.files, c.info); err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	if len(out) < 100 {
		t.Fatalf("only %d packages were looked at", len(out))
	}
	return out
}

func within(path string, list []string) bool {
	for _, p := range list {
		if path == p || strings.HasPrefix(path, p+"/") {
			return true
		}
	}
	return false
}

// configurationKeys are those of docs/configuration.md that can be no word of a sentence.
func configurationKeys(t *testing.T) *regexp.Regexp {
	t.Helper()
	text, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)`").FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(m[1], "_") && m[1] != "min_nodes" && m[1] != "max_nodes" { // which are Slurm's words too
			keys = append(keys, m[1])
		}
	}
	if len(keys) < 80 {
		t.Fatalf("only %d keys are known", len(keys))
	}
	return regexp.MustCompile(`\b(` + strings.Join(keys, "|") + `)\b`)
}

// TestSentencesArePlain: what people read has spans in words (when.Words, never 1h5m0s), times as the commands write
// them, and no key of a file that they can't see.
func TestSentencesArePlain(t *testing.T) {
	set, keys := token.NewFileSet(), configurationKeys(t)
	for _, p := range checkedPackages(t, set) {
		if within(p.path, ofDevelopers) || within(p.path, ofFiles) {
			continue
		}
		records := map[*ast.CallExpr]bool{}
		for _, f := range p.files {
			ast.Inspect(f, func(n ast.Node) bool {
				switch x := n.(type) {
				case *ast.CompositeLit: // what a record keeps is for programs
					for _, e := range x.Elts {
						if c, ok := e.(*ast.CallExpr); ok {
							records[c] = true
						}
					}
				case *ast.KeyValueExpr: // other spellings of an option
					key, is := x.Key.(*ast.Ident)
					return !is || key.Name != "Names"
				case *ast.Field: // what a tag says is for programs
					return x.Tag == nil
				case *ast.CallExpr:
					if what := rawTime(p.info, x); what != "" && !records[x] && !within(p.path, asTyped) {
						t.Errorf("%s: %s", set.Position(x.Pos()), what)
					}
					return !logs(p.info, x)
				case *ast.BasicLit:
					text, err := strconv.Unquote(x.Value)
					if x.Kind != token.STRING || err != nil || !strings.Contains(text, " ") || !keys.MatchString(text) {
						return true
					}
					if ofTheFile(text, keys.FindString(text)) {
						return true
					}
					t.Errorf("%s: %q is a key of the configuration: say what it means: %q", set.Position(x.Pos()), keys.FindString(text), text)
				}
				return true
			})
		}
	}
}

// callee is the function or method that a call names, nil for others.
func callee(info *types.Info, call *ast.CallExpr) *types.Func {
	var id *ast.Ident
	switch f := ast.Unparen(call.Fun).(type) {
	case *ast.Ident:
		id = f
	case *ast.SelectorExpr:
		id = f.Sel
	default:
		return nil
	}
	f, _ := info.Uses[id].(*types.Func)
	return f
}

// logs reports whether a call writes a daemon's log.
func logs(info *types.Info, call *ast.CallExpr) bool {
	f := callee(info, call)
	return f != nil && f.Pkg() != nil && f.Pkg().Path() == "log/slog"
}

// rawTime says what is wrong where a call writes a span or a time as Go does.
func rawTime(info *types.Info, call *ast.CallExpr) string {
	sig, ok := info.Types[call.Fun].Type.(*types.Signature)
	if !ok || logs(info, call) {
		return ""
	}
	is := func(e ast.Expr, name string) bool {
		t := info.Types[e].Type
		return t != nil && t.String() == name
	}
	if s, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok && s.Sel.Name == "String" && is(s.X, "time.Duration") {
		return "a span as Go writes it: use when.Words"
	}
	last := sig.Params().Len() - 1
	if !sig.Variadic() || sig.Params().At(last).Type().String() != "[]any" && sig.Params().At(last).Type().String() != "[]interface{}" {
		return ""
	}
	for _, a := range call.Args[min(last, len(call.Args)):] {
		if is(a, "time.Duration") {
			return "a span as Go writes it: use when.Words"
		}
		if is(a, "time.Time") {
			return "a time as Go writes it: use when.Clock"
		}
	}
	return ""
}
