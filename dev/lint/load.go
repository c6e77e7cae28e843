package lint

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/simccl/simccl/dev/golist"
)

// listed is what `go list -json` says of a package, as far as it is used.
type listed struct {
	ImportPath, Dir, Export                                      string
	GoFiles, CgoFiles, TestGoFiles, XTestGoFiles, IgnoredGoFiles []string
	Module                                                       *struct{ Path, Dir string }
	DepOnly, Standard                                            bool
	Error                                                        *struct{ Err string }
}

// Load lists, parses and type-checks the packages of the module at dir that
// the patterns name ("./..."). A package that does not compile is an error.
func Load(dir string, patterns ...string) ([]*Package, error) {
	all, err := list(dir, patterns)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	imp := exportData(fset, all)
	var out []*Package
	for _, l := range all {
		if l.DepOnly || l.Module == nil {
			continue
		}
		p, err := read(fset, imp, l)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// exportData imports what the build compiled, so that only the packages under
// scrutiny are type-checked from source.
func exportData(fset *token.FileSet, all []*listed) types.Importer {
	exports := map[string]string{}
	for _, l := range all {
		exports[l.ImportPath] = l.Export
	}
	return importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(exports[path])
	})
}

func list(dir string, patterns []string) ([]*listed, error) {
	all, err := golist.Packages[listed](golist.Query{Dir: dir, Flags: []string{"-export", "-deps"},
		Patterns: patterns})
	for _, l := range all {
		if l.Error != nil && !l.DepOnly {
			return nil, fmt.Errorf("%s: %s", l.ImportPath, l.Error.Err)
		}
	}
	return all, err
}

func read(fset *token.FileSet, imp types.Importer, l *listed) (*Package, error) {
	rel := cmp.Or(strings.TrimPrefix(strings.TrimPrefix(l.ImportPath, l.Module.Path), "/"), ".")
	p := &Package{Path: rel, Fset: fset}
	var built []*ast.File
	add := func(names []string, test, isBuilt bool) error {
		for _, name := range names {
			path := filepath.Join(l.Dir, name)
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			shown, err := filepath.Rel(l.Module.Dir, path)
			if err != nil {
				shown = path
			}
			syn, err := parser.ParseFile(fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			test := test || strings.HasSuffix(name, "_test.go")
			p.Files = append(p.Files, &File{Name: shown, Syn: syn, Lines: bytes.Count(text, []byte("\n")),
				Test: test, Built: isBuilt, Wide: wide(text)})
			if isBuilt {
				built = append(built, syn)
			}
		}
		return nil
	}
	for _, err := range []error{add(l.GoFiles, false, true), add(l.CgoFiles, false, true),
		add(l.IgnoredGoFiles, false, false), add(l.TestGoFiles, true, false),
		add(l.XTestGoFiles, true, false)} {
		if err != nil {
			return nil, err
		}
	}
	var err error
	p.Info, err = typeCheck(fset, imp, l.ImportPath, built)
	return p, err
}

func typeCheck(fset *token.FileSet, imp types.Importer, path string, files []*ast.File) (*types.Info, error) {
	info := &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{},
		Defs:  map[*ast.Ident]types.Object{},
		Uses:  map[*ast.Ident]types.Object{},
	}
	conf := types.Config{Importer: imp, FakeImportC: true}
	if _, err := conf.Check(path, fset, files, info); err != nil {
		return nil, fmt.Errorf("type check: %w", err)
	}
	return info, nil
}
