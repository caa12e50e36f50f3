package mutate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Package is one package of the tree with all mutants that it can have.
type Package struct {
	Path    string // import path
	Name    string
	Dir     string
	Mutants []*Mutant

	files map[string][]byte // source by path
	info  *types.Info
}

// listed is what go list says of a package.
type listed struct {
	ImportPath, Name, Dir, Export string
	GoFiles, CgoFiles             []string
}

func goList(args ...string) ([]listed, error) {
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Name,Dir,Export,GoFiles,CgoFiles"}, args...)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, errs.String())
	}
	var all []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
}

// Load reads packages, by import path, and finds their mutants, each known to compile.
func Load(paths ...string) ([]*Package, error) {
	args := append([]string{"-export", "-deps"}, paths...)
	all, err := goList(append(args, switchImports...)...)
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for _, l := range all {
		exports[l.ImportPath] = l.Export
	}
	var packages []*Package
	for _, l := range all {
		if !slices.Contains(paths, l.ImportPath) {
			continue
		}
		if len(l.CgoFiles) > 0 {
			return nil, fmt.Errorf("%s: has files with cgo", l.ImportPath)
		}
		p := &Package{Path: l.ImportPath, Name: l.Name, Dir: l.Dir, files: map[string][]byte{}}
		for _, f := range l.GoFiles {
			path := filepath.Join(l.Dir, f)
			if p.files[path], err = os.ReadFile(path); err != nil {
				return nil, err
			}
		}
		if err := p.find(exports); err != nil {
			return nil, fmt.Errorf("%s: %w", l.ImportPath, err)
		}
		packages = append(packages, p)
	}
	return packages, nil
}

// find looks for the mutants of a package and drops those that do not compile.
func (p *Package) find(exports map[string]string) error {
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	files, bad, err := p.check(fset, imports, p.files)
	if err != nil || len(bad) > 0 {
		return errors.Join(err, errors.Join(bad...))
	}
	root := moduleRoot(p.Dir)
	for _, f := range files {
		path := fset.Position(f.Pos()).Filename
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		s := seeker{p: p, fset: fset, source: p.files[path], file: filepath.ToSlash(rel), path: path}
		s.decls(f)
		p.Mutants = append(p.Mutants, s.found...)
	}
	name(p.Mutants)
	return p.prune(imports)
}

// prune takes out the mutants on lines where the changed source does not compile.
func (p *Package) prune(imports types.Importer) error {
	for range 10 {
		for i, m := range p.Mutants {
			m.ID = i + 1
		}
		fset := token.NewFileSet()
		_, bad, err := p.check(fset, imports, p.rewritten(p.Mutants))
		if err != nil || len(bad) == 0 {
			return err
		}
		lines := map[string]bool{}
		for _, err := range bad {
			var te types.Error
			if errors.As(err, &te) {
				at := fset.Position(te.Pos)
				lines[fmt.Sprint(at.Filename, ":", at.Line)] = true
			}
		}
		var good []*Mutant
		for _, m := range p.Mutants {
			if !lines[fmt.Sprint(m.path, ":", m.Line)] {
				good = append(good, m)
			}
		}
		if len(good) == len(p.Mutants) {
			return fmt.Errorf("changed source does not compile: %w", bad[0])
		}
		p.Mutants = good
	}
	return errors.New("changed source does not compile")
}

// check parses and type-checks source. What does not compile is returned as bad.
func (p *Package) check(fset *token.FileSet, imports types.Importer, source map[string][]byte) (files []*ast.File, bad []error, err error) {
	for _, path := range sorted(source) {
		f, err := parser.ParseFile(fset, path, source[path], parser.SkipObjectResolution)
		if err != nil {
			return nil, nil, err
		}
		files = append(files, f)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: imports, Error: func(err error) { bad = append(bad, err) }}
	// Errors are all in bad.
	_, _ = conf.Check(p.Path, fset, files, info)
	if p.info == nil {
		p.info = info
	}
	return files, bad, nil
}

func moduleRoot(dir string) string {
	for d := dir; d != "/"; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "go.mod")); err == nil {
			return d
		}
	}
	return dir
}

// rewritten is the source with some mutants in it, switched off, and the file that switches.
func (p *Package) rewritten(mutants []*Mutant) map[string][]byte {
	edits := map[string][]edit{}
	for _, m := range mutants {
		for _, e := range m.edits {
			e.text = strings.ReplaceAll(e.text, "$ID", fmt.Sprint(m.ID))
			edits[m.path] = append(edits[m.path], e)
		}
	}
	out := map[string][]byte{}
	for path, source := range p.files {
		out[path] = apply(source, edits[path])
	}
	out[filepath.Join(p.Dir, "mutant_switch.go")] = []byte(strings.Replace(switchSource, "package mutate", "package "+p.Name, 1))
	return out
}
