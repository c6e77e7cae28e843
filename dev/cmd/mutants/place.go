package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/dev/golist"
)

// Place is one change of one file.
type Place struct {
	File     string // relative to the module's root
	Line     int
	Func     string // or the declaration, in which it is
	Kind     string
	Old, New string
	Nth      int    // of equal changes in one function, from 1
	Cites    string `json:",omitempty"` // what the rule cites, "enqueue.cc:258"

	offset, end int // bytes of Old in the file
	id          int // from 1, of what is switched while the program runs
	switching
}

// switching is how a place is switched: what becomes something else, an expression or a statement (to is
// nought where that cannot be), and of an expression its type.
type switching struct {
	from, to int
	typed    string
	constant bool

	// Of a constant that becomes a variable: its name, what it is and what it becomes.
	name, is, becomes string
}

// pkg is the import path of the place's package.
func (p *Place) pkg(m *golist.Module) string {
	return strings.TrimSuffix(m.Path+"/"+filepath.ToSlash(filepath.Dir(p.File)), "/.")
}

// Key names a change though lines move.
func (p *Place) Key() string {
	return fmt.Sprintf("%s %s: %s: %s → %s #%d", p.File, p.Func, p.Kind, oneLine(p.Old), oneLine(p.New),
		p.Nth)
}

// String is the place and the change in a line.
func (p *Place) String() string {
	return fmt.Sprintf("%s:%d %s: %s: %s → %s", p.File, p.Line, p.Func, p.Kind, oneLine(p.Old),
		oneLine(p.New))
}

func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 80 {
		return string(r[:77]) + "..."
	}
	return s
}

// Kinds of changes.
const (
	number    = "number"
	negated   = "condition negated"
	shifted   = "comparison shifted"
	connected = "and for or"
	sign      = "sign"
	removed   = "statement removed"
)

// outside are rooms whose code is not drawn from unless it is named: what tests, and what prints. Packages
// of other rooms that import testing are for tests, too.
var outside = []string{"app", "cmd", "dev", "examples", "tools"}

// placesIn lists the places of the rooms, or of all but the outside ones, in files that this system compiles.
func placesIn(m *golist.Module, rooms []string) ([]*Place, error) {
	under := func(rel string, dirs []string) bool {
		return slices.ContainsFunc(dirs, func(d string) bool {
			return rel == d || strings.HasPrefix(rel, d+"/")
		})
	}
	var names []string
	for name := range m.Packages {
		rel := strings.TrimPrefix(name, m.Path+"/")
		if rooms == nil && !under(rel, outside) && !slices.Contains(m.Packages[name].Imports, "testing") ||
			under(rel, rooms) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if len(names) == 0 {
		return nil, fmt.Errorf("no package in %s", strings.Join(rooms, ","))
	}
	var out []*Place
	for _, name := range names {
		p := m.Packages[name]
		rel := strings.TrimPrefix(strings.TrimPrefix(name, m.Path), "/")
		for _, f := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, f))
			if err != nil {
				return nil, err
			}
			places, err := placesOf(token.NewFileSet(), filepath.Join(rel, f), text)
			if err != nil {
				return nil, err
			}
			out = append(out, places...)
		}
	}
	return out, nil
}

// placesOf lists the places of a file, none of a generated one.
func placesOf(fset *token.FileSet, name string, text []byte) ([]*Place, error) {
	f, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(f) {
		return nil, err
	}
	return places(fset, f, name, text, nil), nil
}

// places lists the places of a parsed file; with its types they say what can be switched.
func places(fset *token.FileSet, f *ast.File, name string, text []byte, types *typesOf) []*Place {
	w := &walk{name: name, text: text, file: fset.File(f.Pos()), nth: map[string]int{}, types: types}
	w.cites(f)
	ast.Inspect(f, w.visit)
	return w.out
}

// walk gathers the places of a file.
type walk struct {
	name  string
	text  []byte
	file  *token.File
	stack []ast.Node
	above map[int]string // citation of a comment, by the line that follows it
	on    map[int]string // or that it is on
	nth   map[string]int
	types *typesOf
	out   []*Place
}

// citation is a place in NCCL's source.
var citation = regexp.MustCompile(`\b[a-z0-9_/]+\.(?:cc|h|cu|cuh)(?::\d+)?`)

func (w *walk) cites(f *ast.File) {
	w.above, w.on = map[int]string{}, map[int]string{}
	for _, g := range f.Comments {
		if c := citation.FindString(g.Text()); c != "" {
			w.above[w.file.Line(g.End())+1] = c
			w.on[w.file.Line(g.Pos())] = c
		}
	}
}

// cited is the citation of the nearest node that has one: on its first or last line, or right above it.
func (w *walk) cited() string {
	for _, n := range slices.Backward(w.stack) {
		switch n.(type) {
		case ast.Stmt, ast.Spec, ast.Decl, *ast.KeyValueExpr:
			first := w.file.Line(n.Pos())
			for _, c := range []string{w.on[first], w.on[w.file.Line(n.End())], w.above[first]} {
				if c != "" {
					return c
				}
			}
		}
	}
	return ""
}

// visit keeps the nodes above the current one, and leaves out what no test should see: texts and their
// numbers.
func (w *walk) visit(n ast.Node) bool {
	if n == nil {
		w.stack = w.stack[:len(w.stack)-1]
		return true
	}
	switch x := n.(type) {
	case *ast.FuncDecl:
		if x.Name.Name == "String" || x.Name.Name == "Error" {
			return false
		}
	case *ast.CallExpr:
		if silent(x) {
			return false
		}
	case *ast.ArrayType, *ast.ImportSpec, *ast.StructType:
		return false
	}
	w.stack = append(w.stack, n)
	w.changes(n)
	return true
}

// silent are calls whose numbers decide nothing: of texts and errors, and of capacity.
func silent(c *ast.CallExpr) bool {
	switch f := c.Fun.(type) {
	case *ast.Ident:
		return f.Name == "make" || f.Name == "panic" || f.Name == "fail"
	case *ast.SelectorExpr:
		x, ok := f.X.(*ast.Ident)
		return ok && slices.Contains([]string{"fmt", "errors", "strconv", "fail"}, x.Name)
	}
	return false
}

var shifts = map[token.Token]string{token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">",
	token.EQL: "!=", token.NEQ: "=="}

// changes adds the changes of a node.
func (w *walk) changes(n ast.Node) {
	switch x := n.(type) {
	case *ast.BasicLit:
		w.numbers(x)
	case *ast.IfStmt:
		w.add(negated, x.Cond.Pos(), x.Cond.End(), "!("+w.source(x.Cond.Pos(), x.Cond.End())+")")
		if x.Else == nil && w.inBlock() {
			w.add(removed, x.Pos(), x.End(), "")
		}
	case *ast.BinaryExpr:
		end := x.OpPos + token.Pos(len(x.Op.String()))
		switch s := shifts[x.Op]; {
		case s != "" && x.Op != token.EQL && x.Op != token.NEQ: // those two are conditions negated
			w.add(shifted, x.OpPos, end, s)
		case x.Op == token.LAND:
			w.add(connected, x.OpPos, end, "||")
		case x.Op == token.LOR:
			w.add(connected, x.OpPos, end, "&&")
		case x.Op == token.ADD:
			w.add(sign, x.OpPos, end, "-")
		case x.Op == token.SUB:
			w.add(sign, x.OpPos, end, "+")
		}
	case *ast.AssignStmt:
		if x.Tok != token.DEFINE && w.inBlock() {
			w.add(removed, x.Pos(), x.End(), "")
		}
	case *ast.ExprStmt, *ast.IncDecStmt:
		if w.inBlock() {
			w.add(removed, x.Pos(), x.End(), "")
		}
	case *ast.BranchStmt:
		if w.inBlock() && (x.Tok == token.CONTINUE || x.Tok == token.BREAK) {
			w.add(removed, x.Pos(), x.End(), "")
		}
	}
}

// inBlock reports whether the current node is a statement by itself, not the begin of a loop or a switch.
func (w *walk) inBlock() bool {
	switch w.stack[len(w.stack)-2].(type) {
	case *ast.BlockStmt, *ast.CaseClause:
		return true
	}
	return false
}

// numbers changes an integer by one either way, and a number with a point by a tenth more.
func (w *walk) numbers(x *ast.BasicLit) {
	switch x.Kind {
	case token.INT:
		v, err := strconv.ParseInt(x.Value, 0, 64)
		if err != nil {
			return
		}
		for _, by := range []int64{1, -1} {
			if v+by >= 0 {
				w.add(number, x.Pos(), x.End(), strconv.FormatInt(v+by, 10))
			}
		}
	case token.FLOAT:
		if v, err := strconv.ParseFloat(x.Value, 64); err == nil {
			w.add(number, x.Pos(), x.End(), strconv.FormatFloat(cmp.Or(v*1.1, 1), 'g', -1, 64))
		}
	}
}

func (w *walk) source(from, to token.Pos) string {
	return string(w.text[w.file.Offset(from):w.file.Offset(to)])
}

func (w *walk) add(kind string, from, to token.Pos, text string) {
	p := &Place{File: w.name, Line: w.file.Line(from), Func: w.within(), Kind: kind, Old: w.source(from, to),
		New: text, Cites: w.cited(), offset: w.file.Offset(from), end: w.file.Offset(to)}
	w.nth[p.Key()]++ // with the number nought
	p.Nth = w.nth[p.Key()]
	if w.types != nil {
		w.switchable(p)
	}
	w.out = append(w.out, p)
}

// within names the declaration that the current node is in.
func (w *walk) within() string {
	for _, n := range w.stack {
		switch x := n.(type) {
		case *ast.FuncDecl:
			if x.Recv != nil && len(x.Recv.List) == 1 {
				t := x.Recv.List[0].Type
				return "(" + w.source(t.Pos(), t.End()) + ")." + x.Name.Name
			}
			return x.Name.Name
		case *ast.ValueSpec:
			return x.Names[0].Name
		case *ast.TypeSpec:
			return x.Name.Name
		}
	}
	return "?"
}
