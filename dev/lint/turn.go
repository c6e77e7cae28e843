package lint

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// turn judges the body of a range over a map: whether its turns leave the same
// behind in whatever order they come. It may change what belongs to the turn
// (its variables, what they point to, entries under the turn's own key), count
// in integers, and append to slices that are sorted right after the loop.
type turn struct {
	info  *types.Info
	loop  *ast.RangeStmt
	lists []string // slices appended to, as written
}

// orderless reports whether the loop's order cannot show; rest is what follows
// it in the same list of statements.
func orderless(info *types.Info, loop *ast.RangeStmt, rest []ast.Stmt) bool {
	t := &turn{info: info, loop: loop}
	if !t.quiet(loop.Body.List) {
		return false
	}
	for _, list := range t.lists {
		if !sortedIn(info, list, rest) {
			return false
		}
	}
	return true
}

func (t *turn) quiet(list []ast.Stmt) bool {
	for _, s := range list {
		if !t.quietStmt(s) {
			return false
		}
	}
	return true
}

func (t *turn) quietStmt(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.DeclStmt, *ast.EmptyStmt:
		return true
	case *ast.BlockStmt:
		return t.quiet(s.List)
	case *ast.IfStmt:
		return (s.Init == nil || t.quietStmt(s.Init)) && t.quiet(s.Body.List) &&
			(s.Else == nil || t.quietStmt(s.Else))
	case *ast.RangeStmt:
		return t.quiet(s.Body.List)
	case *ast.ForStmt:
		return (s.Init == nil || t.quietStmt(s.Init)) && (s.Post == nil || t.quietStmt(s.Post)) &&
			t.quiet(s.Body.List)
	case *ast.BranchStmt:
		return s.Tok == token.CONTINUE && s.Label == nil
	case *ast.IncDecStmt:
		return t.own(s.X) || t.integer(s.X)
	case *ast.AssignStmt:
		return t.assignment(s)
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		return ok && t.quietCall(call)
	}
	return false
}

func (t *turn) assignment(s *ast.AssignStmt) bool {
	if s.Tok == token.DEFINE {
		return true
	}
	for i, l := range s.Lhs {
		switch {
		case t.own(l):
		case (s.Tok == token.ADD_ASSIGN || s.Tok == token.SUB_ASSIGN || s.Tok == token.OR_ASSIGN) &&
			t.integer(l):
		case s.Tok == token.ASSIGN && len(s.Rhs) == len(s.Lhs) && t.appends(l, s.Rhs[i]):
			t.lists = append(t.lists, types.ExprString(l))
		default:
			return false
		}
	}
	return true
}

// quietCall knows delete(m, key), methods of the turn's own values, and sorting
// what belongs to the turn.
func (t *turn) quietCall(call *ast.CallExpr) bool {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		return fun.Name == "delete" && len(call.Args) == 2 && t.own(call.Args[1])
	case *ast.SelectorExpr:
		if sorts(t.info, call) {
			return t.own(call.Args[0])
		}
		return t.own(fun.X)
	}
	return false
}

// own reports whether an expression is a variable of this turn, a part of one,
// or an entry under one.
func (t *turn) own(e ast.Expr) bool {
	for {
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			if key, ok := x.Index.(*ast.Ident); ok && t.isKey(key) {
				return true
			}
			e = x.X
		case *ast.Ident:
			obj := t.info.ObjectOf(x)
			return x.Name == "_" || obj != nil && obj.Pos() >= t.loop.Pos() && obj.Pos() < t.loop.End()
		default:
			return false
		}
	}
}

func (t *turn) isKey(id *ast.Ident) bool {
	key, ok := t.loop.Key.(*ast.Ident)
	return ok && t.info.ObjectOf(key) != nil && t.info.ObjectOf(id) == t.info.ObjectOf(key)
}

func (t *turn) integer(e ast.Expr) bool {
	b, ok := t.info.TypeOf(e).Underlying().(*types.Basic)
	return ok && b.Info()&types.IsInteger != 0
}

func (t *turn) appends(into, value ast.Expr) bool {
	call, ok := value.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}
	fun, ok := call.Fun.(*ast.Ident)
	return ok && fun.Name == "append" && types.ExprString(call.Args[0]) == types.ExprString(into)
}

// sortedIn reports whether a list is sorted by the statements before any of
// them reads it; further loops over maps that append to it come in between.
func sortedIn(info *types.Info, list string, rest []ast.Stmt) bool {
	for _, s := range rest {
		if e, ok := s.(*ast.ExprStmt); ok {
			if call, ok := e.X.(*ast.CallExpr); ok && sorts(info, call) && types.ExprString(call.Args[0]) ==
				list {
				return true
			}
		}
		if loop, ok := s.(*ast.RangeStmt); ok && rangesOverMap(info, loop) {
			continue // judged by itself
		}
		if mentions(s, list) {
			return false
		}
	}
	return false
}

// sorts knows the sorting functions of slices and sort.
func sorts(info *types.Info, call *ast.CallExpr) bool {
	name := callee(info, call)
	return len(call.Args) > 0 && (strings.HasPrefix(name, "slices.Sort") || strings.HasPrefix(name, "sort."))
}

func mentions(n ast.Node, expr string) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok && types.ExprString(e) == expr {
			found = true
		}
		return !found
	})
	return found
}
