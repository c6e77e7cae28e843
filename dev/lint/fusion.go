package lint

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"math"
)

// exact are the rooms whose floating point must give NCCL's very bits.
var exact = []string{"rules", "search", "tuning", "topo"}

// checkFusion reports a floating-point product that is summed without an
// explicit conversion around it. Go may fuse x*y+z into one rounding, also
// where the product passes through a variable or a small function (language
// specification, "Floating-point operators"), and does so on arm64 and with
// GOAMD64=v3; float64(x*y)+z prevents it.
func checkFusion(r *reporter) {
	if !isUnderAny(r.p.Path, exact) || under(r.p.Path, "tuning/fit") || under(r.p.Path, "topo/detect") {
		return
	}
	c := &fusion{info: r.p.Info, products: map[types.Object]bool{}}
	for changed := true; changed; { // a variable may take its product from another
		changed = false
		for _, f := range r.built() {
			changed = c.collect(f.Syn) || changed
		}
	}
	for _, f := range r.built() {
		excused := escapes(r.p.Fset, f.Syn, "fma")
		c.sums(f.Syn, func(at token.Pos) {
			if !excused[r.p.Fset.Position(at).Line] {
				r.report(f, at, "fma", "a product is summed without a conversion around it and may be "+
					"fused, with another rounding than NCCL's; write float64(x*y)+z (or float32)")
			}
		})
	}
}

// fusion knows which variables, fields and functions may hold a product that
// was not rounded.
type fusion struct {
	info     *types.Info
	products map[types.Object]bool
}

// collect notes what is assigned or returned as a bare product and reports
// whether it learnt something.
func (c *fusion) collect(f *ast.File) bool {
	before := len(c.products)
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.FuncLit:
				return true
			case *ast.AssignStmt:
				c.assigned(x)
			case *ast.ValueSpec:
				for i, v := range x.Values {
					if i < len(x.Names) && c.product(v) {
						c.note(x.Names[i])
					}
				}
			case *ast.ReturnStmt:
				if len(x.Results) == 1 && c.product(x.Results[0]) {
					c.note(fn.Name)
				}
			}
			return true
		})
	}
	return len(c.products) > before
}

func (c *fusion) assigned(x *ast.AssignStmt) {
	for i, l := range x.Lhs {
		isProduct := x.Tok == token.MUL_ASSIGN && c.isFloat(l)
		if len(x.Rhs) == len(x.Lhs) && (x.Tok == token.ASSIGN || x.Tok == token.DEFINE) {
			isProduct = c.product(x.Rhs[i])
		}
		if !isProduct {
			continue
		}
		if id, ok := l.(*ast.Ident); ok {
			c.note(id)
		}
	}
}

// note remembers a local variable or a function; a field or an element is
// stored to memory, and gc does not fuse across that.
func (c *fusion) note(id *ast.Ident) {
	if obj := c.info.ObjectOf(id); obj != nil {
		c.products[obj] = true
	}
}

// sums calls back for each sum or difference with a bare product in it.
func (c *fusion) sums(f *ast.File, found func(token.Pos)) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.BinaryExpr:
			if (x.Op == token.ADD || x.Op == token.SUB) && c.isFloat(x) &&
				(c.product(x.X) || c.product(x.Y)) {
				found(x.OpPos)
			}
		case *ast.AssignStmt:
			if (x.Tok == token.ADD_ASSIGN || x.Tok == token.SUB_ASSIGN) && c.isFloat(x.Lhs[0]) &&
				(c.product(x.Rhs[0]) || c.product(x.Lhs[0])) {
				found(x.TokPos)
			}
		}
		return true
	})
}

// product reports whether e may be a product that nothing has rounded yet. A
// power of two as a factor rounds nothing, so fusing it changes nothing.
func (c *fusion) product(e ast.Expr) bool {
	switch x := e.(type) {
	case *ast.ParenExpr:
		return c.product(x.X)
	case *ast.UnaryExpr:
		return x.Op == token.SUB && c.product(x.X)
	case *ast.BinaryExpr:
		return x.Op == token.MUL && c.isFloat(x) && !c.powerOfTwo(x.X) && !c.powerOfTwo(x.Y)
	case *ast.Ident:
		return c.products[c.info.ObjectOf(x)] && c.isFloat(x)
	case *ast.CallExpr:
		switch fun := x.Fun.(type) {
		case *ast.Ident:
			_, isFunc := c.info.ObjectOf(fun).(*types.Func)
			return isFunc && c.products[c.info.ObjectOf(fun)]
		case *ast.SelectorExpr:
			return c.products[c.info.ObjectOf(fun.Sel)]
		}
	}
	return false
}

// isFloat reports whether e is a floating-point value computed at run time.
func (c *fusion) isFloat(e ast.Expr) bool {
	tv, ok := c.info.Types[e]
	if !ok {
		id, isIdent := e.(*ast.Ident)
		if !isIdent || c.info.ObjectOf(id) == nil {
			return false
		}
		tv.Type = c.info.ObjectOf(id).Type()
	}
	if tv.Value != nil || tv.Type == nil {
		return false
	}
	b, ok := tv.Type.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsFloat != 0
}

func (c *fusion) powerOfTwo(e ast.Expr) bool {
	v := c.info.Types[e].Value
	if v == nil {
		return false
	}
	f, _ := constant.Float64Val(constant.ToFloat(v))
	frac, _ := math.Frexp(math.Abs(f))
	return frac == 0.5
}
