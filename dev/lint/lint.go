// Package lint holds the rules of the house that no public linter knows: which
// package may import which and why, what pure packages must not touch, ranges
// over maps, products that a compiler could fuse into a sum, limits on the length of functions and files,
// the presence of documentation, wording (words.go), which files git may track, and permissions of
// the table that nothing uses.
//
// It works on source text and type information alone (go/packages); `go run ./dev/cmd/source lint` prints
// what it finds, and each rule is held by tests on snippets that break it.
package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"sort"
	"strings"
)

// Finding is one broken rule at one place.
type Finding struct {
	Pos token.Position
	// "import", "pure", "edge", "map-order", "fma", "enum", "length", "doc", "docs", "words", "file",
	// "table", "single", "width"
	Rule    string
	Message string // what is wrong, why it matters, what to do
}

// String is the form editors jump to.
func (f Finding) String() string {
	return fmt.Sprintf("%s:%d:%d: %s: %s", f.Pos.Filename, f.Pos.Line, f.Pos.Column, f.Rule, f.Message)
}

// File is one source file; those that the build leaves out here (other systems,
// tags) have syntax but no types.
type File struct {
	Name  string // as reported, relative to the module's root
	Syn   *ast.File
	Lines int
	Test  bool
	Built bool  // part of the type-checked package
	Wide  []int // lines longer than maxWidth
}

// Package is the input of the rules.
type Package struct {
	Path  string // import path relative to the module, "topo/xml"; "." is the root
	Fset  *token.FileSet
	Files []*File
	Info  *types.Info // of the built, non-test files
}

// Check applies all rules to a package.
func Check(p *Package) []Finding {
	r := &reporter{p: p}
	checkImports(r)
	checkEdges(r)
	checkMapOrder(r)
	checkFusion(r)
	checkEnums(r)
	checkState(r)
	checkShape(r)
	checkWords(r)
	checkWidth(r)
	sort.SliceStable(r.found, func(i, j int) bool {
		a, b := r.found[i].Pos, r.found[j].Pos
		if a.Filename != b.Filename {
			return a.Filename < b.Filename
		}
		return a.Offset < b.Offset
	})
	return r.found
}

// reporter collects findings of one package.
type reporter struct {
	p     *Package
	found []Finding
}

func (r *reporter) report(f *File, pos token.Pos, rule, format string, args ...any) {
	at := r.p.Fset.Position(pos)
	at.Filename = f.Name
	r.found = append(r.found, Finding{Pos: at, Rule: rule, Message: fmt.Sprintf(format, args...)})
}

// built yields the files that have types and are not tests.
func (r *reporter) built() []*File {
	var out []*File
	for _, f := range r.p.Files {
		if f.Built && !f.Test {
			out = append(out, f)
		}
	}
	return out
}

// escapes returns the lines on which, or below which, the comment
// "//lint:WORD reason" is written. An escape without a reason counts for nothing.
func escapes(fset *token.FileSet, f *ast.File, word string) map[int]bool {
	lines := map[int]bool{}
	for _, group := range f.Comments {
		for _, c := range group.List {
			reason, ok := strings.CutPrefix(c.Text, "//lint:"+word+" ")
			if ok && strings.TrimSpace(reason) != "" {
				line := fset.Position(c.End()).Line
				lines[line], lines[line+1] = true, true
			}
		}
	}
	return lines
}

// callee names the function of a call as "package/path.Name" or "" where it is
// no plain package-level function.
func callee(info *types.Info, call *ast.CallExpr) string {
	fun := call.Fun
	if ix, ok := fun.(*ast.IndexExpr); ok {
		fun = ix.X
	}
	var id *ast.Ident
	switch x := fun.(type) {
	case *ast.Ident:
		id = x
	case *ast.SelectorExpr:
		id = x.Sel
	default:
		return ""
	}
	fn, ok := info.Uses[id].(*types.Func)
	if !ok || fn.Pkg() == nil || fn.Signature().Recv() != nil {
		return ""
	}
	return fn.Pkg().Path() + "." + fn.Name()
}
