package lint

import (
	"go/ast"
	"go/token"
	"go/types"
)

// enums are the types whose constants have NCCL's order or none: what such an
// order means is said once, by a predicate beside the constants. A comparison
// elsewhere breaks silently when a constant is inserted.
var enums = map[string]bool{
	module + "/coll.Func": true, module + "/coll.Algorithm": true, module + "/coll.Protocol": true,
	module + "/coll.DataType": true, module + "/coll.RedOp": true, module + "/plan.Role": true,
}

// checkEnums forbids <, <=, > and >= between values of those types outside the
// package that declares them, also where they are converted to numbers first.
func checkEnums(r *reporter) {
	for _, f := range r.built() {
		ast.Inspect(f.Syn, func(n ast.Node) bool {
			b, ok := n.(*ast.BinaryExpr)
			if !ok || (b.Op != token.LSS && b.Op != token.LEQ && b.Op != token.GTR && b.Op != token.GEQ) {
				return true
			}
			for _, e := range []ast.Expr{b.X, b.Y} {
				if name := enumOf(r.p.Info, e); name != "" && name != r.p.Path {
					r.report(f, b.OpPos, "enum", "%s compares by order: that is known only where the "+
						"constants of %s are; add or use a predicate there, like Func.IsP2P",
						types.ExprString(b), name)
					break
				}
			}
			return true
		})
	}
}

// enumOf returns the package, relative to the module, of the enum that an
// expression is of or was converted from; "" for all other expressions.
func enumOf(info *types.Info, e ast.Expr) string {
	e = ast.Unparen(e)
	if call, ok := e.(*ast.CallExpr); ok && len(call.Args) == 1 && info.Types[call.Fun].IsType() {
		if name := enumOf(info, call.Args[0]); name != "" {
			return name
		}
	}
	named, ok := types.Unalias(info.TypeOf(e)).(*types.Named)
	if !ok || named.Obj().Pkg() == nil || !enums[named.Obj().Pkg().Path()+"."+named.Obj().Name()] {
		return ""
	}
	return named.Obj().Pkg().Path()[len(module)+1:]
}
