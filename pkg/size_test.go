package pkg

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// What a person can keep in mind of one type at a time.
const (
	mostFields  = 20
	mostMethods = 60
)

// TestTypesCanBeReadInParts: the state of the life of gangs, and of a plan, is in parts that have their own fields and methods.
func TestTypesCanBeReadInParts(t *testing.T) {
	fields, methods := map[string]int{}, map[string]int{}
	for _, places := range []string{"core/gang/*.go", "core/sched/*.go", "core/sched/*/*.go"} {
		names, err := filepath.Glob(places)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			dir := filepath.Dir(name)
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					if d.Recv != nil {
						methods[dir+"."+receiver(d.Recv.List[0].Type)]++
					}
				case *ast.GenDecl:
					for _, s := range d.Specs {
						if ts, ok := s.(*ast.TypeSpec); ok {
							fields[dir+"."+ts.Name.Name] = countFields(ts.Type)
						}
					}
				}
			}
		}
	}
	if len(fields) < 100 {
		t.Fatalf("%d types were found", len(fields))
	}
	for name, n := range fields {
		if n > mostFields || methods[name] > mostMethods {
			t.Errorf("%s has %d fields and %d methods, and may have %d and %d: give what belongs together a type of its own", name, n, methods[name], mostFields, mostMethods)
		}
	}
}

// receiver names the type of a receiver.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// countFields counts the fields of a struct; an embedded type is one.
func countFields(e ast.Expr) (n int) {
	st, ok := e.(*ast.StructType)
	if !ok {
		return 0
	}
	for _, f := range st.Fields.List {
		n += max(1, len(f.Names))
	}
	return n
}
