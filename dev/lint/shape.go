package lint

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// Ceilings on length, in lines. They bound what a reader holds at once.
const (
	maxFunction = 70
	maxFile     = 600
)

// checkShape holds lengths and documentation.
func checkShape(r *reporter) {
	documented, first := false, (*File)(nil)
	for _, f := range r.p.Files {
		if ast.IsGenerated(f.Syn) {
			documented = documented || f.Syn.Doc != nil
			continue
		}
		checkLengths(r, f)
		if f.Test {
			continue
		}
		if first == nil {
			first = f
		}
		documented = documented || f.Syn.Doc != nil
		checkDocs(r, f)
	}
	if first != nil && !documented {
		r.report(first, first.Syn.Package, "doc", "package %s has no package comment: say purpose, inputs, "+
			"outputs, what it must not know and its NCCL counterpart", r.p.Path)
	}
}

func checkLengths(r *reporter, f *File) {
	line := func(p token.Pos) int { return r.p.Fset.Position(p).Line }
	tables := 0
	for _, d := range f.Syn.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if n := line(d.End()) - line(d.Pos()) + 1; n > maxFunction {
				r.report(f, d.Pos(), "length",
					"%s has %d lines, more than %d; give its parts names of their own", d.Name.Name, n,
					maxFunction)
			}
		case *ast.GenDecl:
			if d.Tok == token.VAR || d.Tok == token.CONST {
				tables += line(d.End()) - line(d.Pos()) + 1
			}
		}
	}
	if !f.Test && f.Lines > maxFile && 2*tables < f.Lines {
		r.report(f, f.Syn.Package, "length", "the file has %d lines, more than %d; split it by subject",
			f.Lines, maxFile)
	}
}

// wellKnown are methods whose meaning is the standard library's.
var wellKnown = map[string]bool{"Error": true, "Unwrap": true, "Is": true, "As": true, "Len": true,
	"Less": true, "Swap": true, "String": true}

// checkDocs requires a comment on each exported name of the package's scope and on each exported method of
// an exported type. Functions of packages below internal/ may do without: a comment that only repeats a name
// such as Empty or Push says nothing to those who can read the code.
func checkDocs(r *reporter, f *File) {
	inner := slices.Contains(strings.Split(r.p.Path, "/"), "internal")
	for _, d := range f.Syn.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Doc == nil && !inner &&
				(d.Recv == nil || ast.IsExported(receiver(d)) &&
					!wellKnown[d.Name.Name]) {
				r.report(f, d.Pos(), "doc", "exported %s has no comment", d.Name.Name)
			}
		case *ast.GenDecl:
			checkSpecs(r, f, d)
		}
	}
}

func checkSpecs(r *reporter, f *File, d *ast.GenDecl) {
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
				r.report(f, s.Pos(), "doc", "exported type %s has no comment", s.Name.Name)
			}
		case *ast.ValueSpec:
			if d.Doc != nil || s.Doc != nil || s.Comment != nil {
				continue
			}
			for _, n := range s.Names {
				if n.IsExported() {
					r.report(f, n.Pos(), "doc", "exported %s %s has no comment, nor has its group",
						strings.ToLower(d.Tok.String()), n.Name)
				}
			}
		}
	}
}

func receiver(d *ast.FuncDecl) string {
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}
