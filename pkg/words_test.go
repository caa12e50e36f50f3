package pkg

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sentences are the fields in which our text for people travels.
var sentences = []string{"Message", "Hint", "Why", "Verdict", "Text"}

// cutters are the functions of package strings by which a program would read it.
var cutters = []string{"Contains", "HasPrefix", "HasSuffix", "Cut", "CutPrefix", "CutSuffix", "Index", "EqualFold"}

// TestNoSentenceIsRead: what a program decides on is a code, a reason or a number. A sentence that
// one reads back can't be made better any more.
func TestNoSentenceIsRead(t *testing.T) {
	files := token.NewFileSet()
	for _, root := range []string{".", "../cmd"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(filepath.Dir(path), "test") {
				return err
			}
			file, err := parser.ParseFile(files, path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && readsSentence(call) {
					t.Errorf("%s: a branch on a sentence: give it a code or a reason (api.Error)", files.Position(call.Pos()))
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// readsSentence reports whether a call cuts a field of sentences, or an error's text, apart.
func readsSentence(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains(cutters, f.Sel.Name) || len(call.Args) == 0 {
		return false
	}
	if p, ok := f.X.(*ast.Ident); !ok || p.Name != "strings" {
		return false
	}
	found := false
	var methods []ast.Expr // that are called: a Scanner's Text is no field
	ast.Inspect(call.Args[0], func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.CallExpr:
			methods = append(methods, x.Fun)
			if s, ok := x.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Error" && len(x.Args) == 0 {
				found = true
			}
		case *ast.SelectorExpr:
			found = found || slices.Contains(sentences, x.Sel.Name) && !slices.Contains(methods, ast.Expr(x))
		}
		return !found
	})
	return found
}
