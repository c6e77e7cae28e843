package lint

import (
	"go/ast"
	"go/token"
	"go/types"
)

// checkState holds that no result of a pure package depends on a package variable
// that can change: outside its declaration and init none is assigned, none is
// exported but errors (others could assign it), and none guards a state.
//
//	var table = map[int]string{1: "a"}  // fine: it is read
//	var Table = []int{1}                // exported: any importer may write
//	func f() { table[2] = "b" }         // state
func checkState(r *reporter) {
	if !isPure(r.p.Path) {
		return
	}
	s := &state{r: r, scope: map[types.Object]bool{}}
	for _, f := range r.built() {
		for _, d := range f.Syn.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
				s.declared(f, g)
			}
		}
	}
	for _, f := range r.built() {
		for _, d := range f.Syn.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil &&
				(fn.Recv != nil || fn.Name.Name != "init") {
				s.writes(f, fn.Body)
			}
		}
	}
}

// state is the package variables of one package.
type state struct {
	r     *reporter
	scope map[types.Object]bool
}

// declared notes variables, and reports those that are state by themselves.
func (s *state) declared(f *File, g *ast.GenDecl) {
	for _, spec := range g.Specs {
		for _, id := range spec.(*ast.ValueSpec).Names {
			o := s.r.p.Info.Defs[id]
			if o == nil || id.Name == "_" {
				continue
			}
			s.scope[o] = true
			switch {
			case guards(o.Type()):
				s.r.report(f, id.Pos(), "state",
					"%s guards a state of the package; give the state to a value that the caller owns",
					id.Name)
			case id.IsExported() && !types.Identical(o.Type(), types.Universe.Lookup("error").Type()):
				s.r.report(f, id.Pos(), "state",
					"exported variable %s can be assigned by any importer; make it a function or a constant",
					id.Name)
			}
		}
	}
}

// writes reports assignments to package variables, whole or in part.
func (s *state) writes(f *File, body ast.Node) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.AssignStmt:
			for _, l := range x.Lhs {
				s.written(f, l)
			}
		case *ast.IncDecStmt:
			s.written(f, x.X)
		case *ast.RangeStmt:
			if x.Tok == token.ASSIGN {
				s.written(f, x.Key)
				s.written(f, x.Value)
			}
		case *ast.CallExpr:
			if id, ok := x.Fun.(*ast.Ident); ok && len(x.Args) > 0 &&
				(id.Name == "delete" || id.Name == "clear" || id.Name == "copy") {
				s.written(f, x.Args[0])
			}
		}
		return true
	})
}

// written reports an expression that is assigned, where its root is a package
// variable: v, v.f, v[i], (*v).f and v[a:b].
func (s *state) written(f *File, e ast.Expr) {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			if s.scope[s.r.p.Info.Uses[x]] {
				s.r.report(f, x.Pos(), "state",
					"package variable %s is assigned outside its declaration; results must not depend on it",
					x.Name)
			}
			return
		case *ast.ParenExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		default:
			return
		}
	}
}

// guards reports whether a type is one of sync or sync/atomic.
func guards(t types.Type) bool {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := t.(*types.Named)
	return ok && n.Obj().Pkg() != nil && (n.Obj().Pkg().Path() == "sync" ||
		n.Obj().Pkg().Path() == "sync/atomic")
}
