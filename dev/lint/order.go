package lint

import (
	"go/ast"
	"go/types"
	"strings"
)

// ordered are the packages whose output must not depend on a map's order, besides
// the pure ones.
var ordered = []string{"trace", "exec", "app/report", "config", "cmd"}

// checkMapOrder reports a range over a map, whose order could reach a result, but for keys
// in slices.Sorted and similar functions; "//lint:sorted reason" says why it does not.
func checkMapOrder(r *reporter) {
	if !isPure(r.p.Path) && !isUnderAny(r.p.Path, ordered) {
		return
	}
	for _, f := range r.built() {
		excused := escapes(r.p.Fset, f.Syn, "sorted")
		ast.Inspect(f.Syn, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && sortsArgument(r.p.Info, call) {
				return false // slices.Sorted(maps.Keys(m)) and similar calls
			}
			if call, ok := n.(*ast.CallExpr); ok && iteratesMap(r.p.Info, call) &&
				!excused[r.p.Fset.Position(n.Pos()).Line] {
				r.report(f, n.Pos(), "map-order", "iterating a map in its random order; wrap it in "+
					"slices.Sorted or say //lint:sorted and why the order cannot show")
				return false
			}
			if loop, ok := n.(*ast.RangeStmt); ok && rangesOverMap(r.p.Info, loop) &&
				!excused[r.p.Fset.Position(loop.Pos()).Line] {
				r.report(f, loop.Pos(), "map-order", "range over a map in its random order; range over "+
					"sorted keys or say //lint:sorted and why the order cannot show")
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
