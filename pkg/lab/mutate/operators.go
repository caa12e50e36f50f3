package mutate

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"strings"
)

// Operator is a kind of change.
type Operator string

const (
	Negate     Operator = "negate"      // a condition, a truth that is returned
	Drop       Operator = "drop"        // an operand of && or ||
	Bound      Operator = "bound"       // < for <=
	OffByOne   Operator = "off by one"  // a constant
	MinMax     Operator = "min max"     // one for the other
	Skip       Operator = "skip"        // a statement
	ReturnZero Operator = "return zero" // in place of what is computed
	DropCase   Operator = "drop case"   // of a switch
)

// Mutant is one change of a package.
type Mutant struct {
	ID       int // in its binary, from 1
	Package  string
	File     string // from the root of the module
	Line     int
	Func     string
	Operator Operator
	What     string // the source that changes, in a line
	Number   int    // of equal ones in a function, from 1

	path  string
	edits []edit
}

// Key names a mutant as long as its function stays as it is.
func (m *Mutant) Key() string {
	return fmt.Sprintf("%s %s: %s %q #%d", m.File, m.Func, m.Operator, m.What, m.Number)
}

func (m *Mutant) String() string {
	return fmt.Sprintf("%s:%d %s: %s `%s`", m.File, m.Line, m.Func, m.Operator, m.What)
}

// name numbers the equal mutants of each function.
func name(mutants []*Mutant) {
	seen := map[string]int{}
	for _, m := range mutants {
		m.Number = 0
		k := m.Key()
		seen[k]++
		m.Number = seen[k]
	}
}

// seeker finds the mutants of one file.
type seeker struct {
	p      *Package
	fset   *token.FileSet
	source []byte
	file   string // from the root of the module
	path   string
	fn     string
	found  []*Mutant
	seq    int
}

func (s *seeker) offset(p token.Pos) int { return s.fset.Position(p).Offset }

func (s *seeker) text(n ast.Node) string {
	return string(s.source[s.offset(n.Pos()):s.offset(n.End())])
}

// add notes a mutant of a node, which opens and closes put something around.
func (s *seeker) add(op Operator, what ast.Node, edits ...edit) {
	s.found = append(s.found, &Mutant{Package: s.p.Path, File: s.file, path: s.path, Line: s.fset.Position(what.Pos()).Line, Func: s.fn,
		Operator: op, What: inLine(s.text(what)), edits: edits})
}

func (s *seeker) around(n ast.Node, before, after string) []edit {
	s.seq++
	from, to := s.offset(n.Pos()), s.offset(n.End())
	return []edit{{at: from, end: from, text: before, seq: s.seq}, {at: to, end: to, text: after, closes: true, seq: s.seq}}
}

func (s *seeker) before(n ast.Node, text string) edit {
	s.seq++
	at := s.offset(n.Pos())
	return edit{at: at, end: at, text: text, seq: s.seq}
}

func (s *seeker) decls(f *ast.File) {
	for _, d := range f.Decls {
		fd, ok := d.(*ast.FuncDecl)
		if !ok || fd.Body == nil || fd.Name.Name == "init" {
			continue
		}
		s.fn = fd.Name.Name
		if fd.Recv != nil && len(fd.Recv.List) == 1 {
			s.fn = strings.TrimLeft(s.text(fd.Recv.List[0].Type), "*") + "." + s.fn
		}
		s.function(fd.Type, fd.Body)
	}
}

// function looks at a body; those of function literals in it are looked at by themselves.
func (s *seeker) function(ft *ast.FuncType, body *ast.BlockStmt) {
	w := walker{seeker: s, results: s.results(ft)}
	ast.Walk(&w, body)
}

// results are the result types in the words of the source.
func (s *seeker) results(ft *ast.FuncType) []ast.Expr {
	var all []ast.Expr
	if ft.Results == nil {
		return nil
	}
	for _, f := range ft.Results.List {
		for range max(1, len(f.Names)) {
			all = append(all, f.Type)
		}
	}
	return all
}

// walker looks at one function.
type walker struct {
	*seeker
	results []ast.Expr
	parents []ast.Node
}

func (w *walker) Visit(n ast.Node) ast.Visitor {
	if n == nil {
		w.parents = w.parents[:len(w.parents)-1]
		return nil
	}
	if lit, ok := n.(*ast.FuncLit); ok {
		w.function(lit.Type, lit.Body)
		return nil
	}
	var parent ast.Node
	if len(w.parents) > 0 {
		parent = w.parents[len(w.parents)-1]
	}
	switch n := n.(type) {
	case *ast.IfStmt:
		w.condition(n.Cond)
	case *ast.ForStmt:
		if n.Cond != nil {
			w.condition(n.Cond)
		}
	case *ast.CaseClause:
		w.clause(n)
	case ast.Stmt:
		w.statement(n, parent)
	case ast.Expr:
		if !w.expression(n, parent) {
			return nil
		}
	}
	w.parents = append(w.parents, n)
	return w
}

func unparen(e ast.Expr) ast.Expr {
	for {
		p, ok := e.(*ast.ParenExpr)
		if !ok {
			return e
		}
		e = p.X
	}
}

func logical(e ast.Expr) bool {
	b, ok := unparen(e).(*ast.BinaryExpr)
	return ok && (b.Op == token.LAND || b.Op == token.LOR)
}

// condition negates one that is not made of others: of those, the operands are dropped.
func (w *walker) condition(e ast.Expr) {
	if !logical(e) && isBool(w.p.info.TypeOf(e)) {
		w.add(Negate, e, w.around(e, "(mutantOn($ID) != (", "))")...)
	}
}

func isBool(t types.Type) bool {
	b, ok := t.(*types.Basic)
	return ok && b.Info()&types.IsBoolean != 0
}

// clause drops a case.
func (w *walker) clause(c *ast.CaseClause) {
	sw, tagless := w.parents[len(w.parents)-2].(*ast.SwitchStmt)
	if tagless = tagless && sw.Tag == nil; tagless && c.List != nil {
		var edits []edit
		for _, e := range c.List {
			edits = append(edits, w.around(e, "(", ") && !mutantOn($ID)")...)
		}
		w.add(DropCase, c.List[0], edits...)
		return
	}
	if len(c.Body) == 0 || c.List == nil {
		return
	}
	first, last := c.Body[0], c.Body[len(c.Body)-1]
	switch last.(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		return
	}
	s := w.around(first, "if !mutantOn($ID) { ", "")[:1]
	w.seq++
	to := w.offset(last.End())
	w.add(DropCase, c.List[0], append(s, edit{at: to, end: to, text: " }", closes: true, seq: s[0].seq})...)
}

// statement skips one, and returns zero values in place of what it returns.
func (w *walker) statement(n ast.Stmt, parent ast.Node) {
	switch parent.(type) {
	case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
	default:
		return
	}
	if c, ok := parent.(*ast.CommClause); ok && c.Comm == n {
		return
	}
	switch n := n.(type) {
	case *ast.ReturnStmt:
		w.returns(n)
		return
	case *ast.ExprStmt:
		if c, ok := n.X.(*ast.CallExpr); !ok || w.uninteresting(c) {
			return
		}
	case *ast.DeferStmt:
		if w.uninteresting(n.Call) {
			return
		}
	case *ast.AssignStmt:
		if n.Tok == token.DEFINE || blank(n.Lhs) {
			return
		}
	case *ast.IncDecStmt, *ast.SendStmt:
	default:
		return
	}
	w.add(Skip, n, w.around(n, "if !mutantOn($ID) { ", " }")...)
}

func blank(lhs []ast.Expr) bool {
	for _, e := range lhs {
		if id, ok := e.(*ast.Ident); !ok || id.Name != "_" {
			return false
		}
	}
	return true
}

// uninteresting are calls whose absence no test is meant to see, or any test sees at once:
// logs, locks, panics, the closing of files.
func (w *walker) uninteresting(c *ast.CallExpr) bool {
	switch f := c.Fun.(type) {
	case *ast.Ident:
		return f.Name == "panic"
	case *ast.SelectorExpr:
		switch f.Sel.Name {
		case "Lock", "Unlock", "RLock", "RUnlock", "Close", "Helper":
			return true
		}
		if t := w.p.info.TypeOf(f.X); t != nil && strings.HasSuffix(t.String(), "log/slog.Logger") {
			return true
		}
		if id, ok := f.X.(*ast.Ident); ok && (id.Name == "slog" || id.Name == "log") {
			return true
		}
	}
	return false
}

// returns gives back zero values, and of a truth the other one.
func (w *walker) returns(n *ast.ReturnStmt) {
	if len(n.Results) == 0 || len(w.results) == 0 {
		return
	}
	if len(n.Results) == 1 && len(w.results) == 1 && isBool(w.p.info.TypeOf(w.results[0])) {
		if e := n.Results[0]; !logical(e) {
			w.add(Negate, e, w.around(e, "(mutantOn($ID) != (", "))")...)
		}
		return
	}
	zero := true
	for _, e := range n.Results {
		zero = zero && w.zero(e)
	}
	if zero {
		return
	}
	var b, names strings.Builder
	for i, r := range w.results {
		fmt.Fprintf(&b, "var mutantR%d %s; ", i, w.text(r))
		if i > 0 {
			names.WriteString(", ")
		}
		fmt.Fprintf(&names, "mutantR%d", i)
	}
	if strings.Contains(b.String(), "\n") {
		return
	}
	w.add(ReturnZero, n, w.before(n, "if mutantOn($ID) { "+b.String()+"return "+names.String()+" }; "))
}

// zero says whether an expression is the zero value as it stands.
func (w *walker) zero(e ast.Expr) bool {
	tv := w.p.info.Types[e]
	if tv.IsNil() {
		return true
	}
	if tv.Value != nil {
		switch tv.Value.Kind() {
		case constant.Bool:
			return !constant.BoolVal(tv.Value)
		case constant.String:
			return constant.StringVal(tv.Value) == ""
		case constant.Int, constant.Float:
			return constant.Sign(tv.Value) == 0
		}
	}
	if c, ok := e.(*ast.CompositeLit); ok && len(c.Elts) == 0 {
		_, isStruct := tv.Type.Underlying().(*types.Struct)
		return isStruct
	}
	return false
}

// expression changes operators and constants. It says whether to look into it.
func (w *walker) expression(n ast.Expr, parent ast.Node) bool {
	tv := w.p.info.Types[n]
	if tv.IsType() {
		return false
	}
	if tv.Value != nil {
		w.constant(n, tv, parent)
		return false
	}
	switch n := n.(type) {
	case *ast.BinaryExpr:
		w.binary(n)
	case *ast.CallExpr:
		id, ok := n.Fun.(*ast.Ident)
		if ok && (id.Name == "make" || id.Name == "new") && w.p.info.Types[n.Fun].IsBuiltin() {
			return false
		}
		if ok && (id.Name == "min" || id.Name == "max") && w.p.info.Types[n.Fun].IsBuiltin() && n.Ellipsis == 0 && len(n.Args) > 1 {
			name := "mutant" + strings.ToUpper(id.Name[:1]) + id.Name[1:]
			at, to := w.offset(n.Fun.Pos()), w.offset(n.Lparen)+1
			w.seq++
			w.add(MinMax, n, edit{at: at, end: to, text: name + "[" + w.typeText(tv.Type) + "]($ID, ", seq: w.seq})
		}
	case *ast.KeyValueExpr:
		return true
	}
	return true
}

// typeText is a type in the words of the package. What needs an import that the file lacks
// does not compile, and the mutant is dropped.
func (w *walker) typeText(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p.Path() == w.p.Path {
			return ""
		}
		return p.Name()
	})
}

func (w *walker) binary(n *ast.BinaryExpr) {
	switch n.Op {
	case token.LAND, token.LOR:
		before, after := "(mutantOn($ID) || (", "))"
		if n.Op == token.LOR {
			before = "(!mutantOn($ID) && ("
		}
		for _, e := range []ast.Expr{n.X, n.Y} {
			if b, ok := e.(*ast.BinaryExpr); !ok || b.Op != n.Op {
				w.add(Drop, e, w.around(e, before, after)...)
			}
		}
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		name := map[token.Token]string{token.LSS: "mutantLess", token.LEQ: "mutantLessEqual", token.GTR: "mutantMore",
			token.GEQ: "mutantMoreEqual"}[n.Op]
		edits := w.around(n, name+"($ID, ", ")")
		at := w.offset(n.OpPos)
		w.add(Bound, n, append(edits, edit{at: at, end: at + len(n.Op.String()), text: ",", seq: w.seq})...)
	}
}

// constant makes one of a plain integer type larger by one.
func (w *walker) constant(n ast.Expr, tv types.TypeAndValue, parent ast.Node) {
	b, ok := tv.Type.(*types.Basic)
	if !ok || b.Info()&types.IsInteger == 0 || b.Info()&types.IsUntyped != 0 {
		return
	}
	switch p := parent.(type) {
	case *ast.BinaryExpr:
		if p.Op == token.SHL || p.Op == token.SHR {
			return
		}
	case *ast.KeyValueExpr:
		if p.Key == n {
			return
		}
	case *ast.ArrayType, *ast.CaseClause, *ast.ValueSpec:
		return
	}
	w.add(OffByOne, n, w.around(n, "mutantOffByOne["+b.Name()+"]($ID, ", ")")...)
}

func inLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 100 {
		s = s[:97] + "..."
	}
	return s
}
