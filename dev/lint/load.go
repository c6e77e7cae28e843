package lint

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// Load lists, parses and type-checks the packages of the module at dir that the patterns name ("./..."), as
// built without cgo; what they import comes from the build's export data. A package that does not compile is
// an error.
func Load(dir string, patterns ...string) ([]*Package, error) {
	all, err := packages.Load(&packages.Config{Dir: dir, Env: append(os.Environ(), "CGO_ENABLED=0"),
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedModule | packages.NeedImports |
			packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo}, patterns...)
	var out []*Package
	for _, l := range all {
		if len(l.Errors) > 0 {
			return nil, fmt.Errorf("%s: %w", l.PkgPath, l.Errors[0])
		}
		p, err := read(l)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, err
}

// read adds the files that the build leaves out, and the tests, to those that were type-checked.
func read(l *packages.Package) (*Package, error) {
	rel := cmp.Or(strings.TrimPrefix(strings.TrimPrefix(l.PkgPath, l.Module.Path), "/"), ".")
	p := &Package{Path: rel, Fset: l.Fset, Info: l.TypesInfo}
	built := map[string]*ast.File{}
	for _, syn := range l.Syntax {
		built[l.Fset.File(syn.Package).Name()] = syn
	}
	tests, err := filepath.Glob(filepath.Join(l.Dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	names := slices.Concat(l.GoFiles, l.IgnoredFiles, tests)
	slices.Sort(names)
	for _, path := range slices.Compact(names) {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		shown, err := filepath.Rel(l.Module.Dir, path)
		if err != nil {
			shown = path
		}
		syn := built[path]
		if syn == nil {
			mode := parser.ParseComments | parser.SkipObjectResolution
			if syn, err = parser.ParseFile(l.Fset, path, text, mode); err != nil {
				return nil, err
			}
		}
		p.Files = append(p.Files, &File{Name: shown, Syn: syn, Lines: bytes.Count(text, []byte("\n")),
			Test: strings.HasSuffix(path, "_test.go"), Built: built[path] != nil, Wide: wide(text)})
	}
	return p, nil
}
