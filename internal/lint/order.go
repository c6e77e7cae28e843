package lint

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// ordered are the rooms whose output must not depend on a map's order, besides
// the pure ones.
var ordered = []string{"trace", "exec", "report", "config", "cmd"}

// checkMapOrder reports a range over a map whose order could reach a result.
// It knows the harmless forms, collecting what is sorted right after and
// storing under the key itself; all else needs "//lint:sorted reason".
func checkMapOrder(r *reporter) {
	home := roomOf(r.p.Path)
	if home == nil || !home.pure && !isUnderAny(r.p.Path, ordered) {
		return
	}
	for _, f := range r.built() {
		excused := escapes(r.p.Fset, f.Syn, "sorted")
		ast.Inspect(f.Syn, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && sortsArgument(r.p.Info, call) {
				return false // slices.Sorted(maps.Keys(m)) and its kin
			}
			if call, ok := n.(*ast.CallExpr); ok && iteratesMap(r.p.Info, call) && !excused[r.p.Fset.Position(n.Pos()).Line] {
				r.report(f, n.Pos(), "map-order", "iterating a map in its random order; wrap it in slices.Sorted or say //lint:sorted and why the order cannot show")
				return false
			}
			for _, list := range statementLists(n) {
				for i, s := range list {
					loop, ok := unlabel(s).(*ast.RangeStmt)
					if !ok || !rangesOverMap(r.p.Info, loop) || excused[r.p.Fset.Position(loop.Pos()).Line] {
						continue
					}
					if !collectsThenSorts(r.p.Info, loop, list[i+1:]) && !touchesOnlyItsKey(r.p.Info, loop) {
						r.report(f, loop.Pos(), "map-order", "range over a map in its random order; range over sorted keys or say //lint:sorted and why the order cannot show")
					}
				}
			}
			return true
		})
	}
}

func isUnderAny(path string, dirs []string) bool {
	for _, d := range dirs {
		if under(path, d) {
			return true
		}
	}
	return false
}

// statementLists returns the lists of statements directly in n.
func statementLists(n ast.Node) [][]ast.Stmt {
	switch x := n.(type) {
	case *ast.BlockStmt:
		return [][]ast.Stmt{x.List}
	case *ast.CaseClause:
		return [][]ast.Stmt{x.Body}
	case *ast.CommClause:
		return [][]ast.Stmt{x.Body}
	}
	return nil
}

func unlabel(s ast.Stmt) ast.Stmt {
	for {
		l, ok := s.(*ast.LabeledStmt)
		if !ok {
			return s
		}
		s = l.Stmt
	}
}

func rangesOverMap(info *types.Info, loop *ast.RangeStmt) bool {
	t := info.TypeOf(loop.X)
	if t == nil {
		return false
	}
	if loop.Key == nil {
		return false // for range m: only its length matters
	}
	_, isMap := t.Underlying().(*types.Map)
	return isMap
}

// collectsThenSorts knows `for k := range m { ks = append(ks, …) }`, with or
// without an if around the append, followed in the same list by a sort of ks
// before any other use of it.
func collectsThenSorts(info *types.Info, loop *ast.RangeStmt, rest []ast.Stmt) bool {
	into := appended(loop.Body)
	if into == nil {
		return false
	}
	for _, s := range rest {
		if sortsVariable(info, s, info.ObjectOf(into)) {
			return true
		}
		if mentions(info, s, info.ObjectOf(into)) {
			return false
		}
	}
	return false
}

// appended returns the variable that a block does nothing but append to.
func appended(body *ast.BlockStmt) *ast.Ident {
	if len(body.List) != 1 {
		return nil
	}
	switch s := body.List[0].(type) {
	case *ast.IfStmt:
		if s.Else == nil {
			return appended(s.Body)
		}
	case *ast.AssignStmt:
		if len(s.Lhs) != 1 || s.Tok != token.ASSIGN {
			return nil
		}
		call, isCall := s.Rhs[0].(*ast.CallExpr)
		if !isCall {
			return nil
		}
		if fun, ok := call.Fun.(*ast.Ident); ok && fun.Name == "append" {
			into, _ := s.Lhs[0].(*ast.Ident)
			return into
		}
	}
	return nil
}

// touchesOnlyItsKey knows bodies that store under, or delete, just the key of
// each turn: whatever the order, the same is left.
func touchesOnlyItsKey(info *types.Info, loop *ast.RangeStmt) bool {
	key, ok := loop.Key.(*ast.Ident)
	if !ok || len(loop.Body.List) != 1 {
		return false
	}
	isKey := func(e ast.Expr) bool {
		id, ok := e.(*ast.Ident)
		return ok && info.ObjectOf(id) == info.ObjectOf(key)
	}
	switch s := loop.Body.List[0].(type) {
	case *ast.AssignStmt:
		ix, ok := s.Lhs[0].(*ast.IndexExpr)
		return ok && len(s.Lhs) == 1 && isKey(ix.Index)
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 {
			return false
		}
		fun, ok := call.Fun.(*ast.Ident)
		return ok && fun.Name == "delete" && isKey(call.Args[1])
	}
	return false
}

func sortsVariable(info *types.Info, s ast.Stmt, v types.Object) bool {
	e, ok := s.(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := e.X.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}
	name := callee(info, call)
	if !strings.HasPrefix(name, "slices.Sort") && !strings.HasPrefix(name, "sort.") {
		return false
	}
	return mentions(info, call.Args[0], v)
}

func mentions(info *types.Info, n ast.Node, v types.Object) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && info.ObjectOf(id) == v {
			found = true
		}
		return !found
	})
	return found
}

// sortsArgument knows slices.Sorted, SortedFunc and SortedStableFunc.
func sortsArgument(info *types.Info, call *ast.CallExpr) bool {
	return strings.HasPrefix(callee(info, call), "slices.Sorted")
}

// iteratesMap knows maps.Keys, Values and All.
func iteratesMap(info *types.Info, call *ast.CallExpr) bool {
	switch callee(info, call) {
	case "maps.Keys", "maps.Values", "maps.All":
		return true
	}
	return false
}
