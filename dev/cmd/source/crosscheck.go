package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"

	"github.com/simccl/simccl/dev/golist"
)

func crosscheck() {
	goos, goarch, ok := "", "", false
	if len(os.Args) > 2 {
		goos, goarch, ok = strings.Cut(os.Args[1], "/")
	}
	if !ok {
		fmt.Fprintln(os.Stderr, "usage: crosscheck OS/ARCH PACKAGES...")
		os.Exit(2)
	}
	n, err := check(".", goos, goarch, os.Args[2:]...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%s/%s: %d packages type-checked\n", goos, goarch, n)
}

// listed is what `go list -json` says of a package, as far as it is used.
type listed struct {
	ImportPath, Dir string
	GoFiles, SFiles []string
	ImportMap       map[string]string
	Standard        bool
	Module          *struct{ GoVersion string }
	Error           *struct{ Pos, Err string }
}

// check type-checks the packages that patterns name in dir, and what they import, and
// returns how many these are. All errors of the first packages that have some come back.
func check(dir, goos, goarch string, patterns ...string) (int, error) {
	all, err := list(dir, goos, goarch, patterns)
	if err != nil {
		return 0, err
	}
	sizes := types.SizesFor("gc", goarch)
	if sizes == nil {
		return 0, fmt.Errorf("crosscheck: no architecture %q", goarch)
	}
	fset, checked := token.NewFileSet(), map[string]*types.Package{"unsafe": types.Unsafe}
	for _, l := range all { // what is imported comes before what imports it
		if l.ImportPath == "unsafe" {
			continue
		}
		if err := l.check(fset, checked, sizes); err != nil {
			return 0, err
		}
	}
	return len(all), nil
}

func list(dir, goos, goarch string, patterns []string) ([]*listed, error) {
	all, err := golist.Packages[listed](golist.Query{Dir: dir, Flags: []string{"-deps"}, Patterns: patterns,
		Env: []string{"GOOS=" + goos, "GOARCH=" + goarch, "CGO_ENABLED=0"}})
	for _, l := range all {
		if l.Error != nil {
			return nil, fmt.Errorf("%s: %s: %s", l.Error.Pos, l.ImportPath, l.Error.Err)
		}
	}
	return all, err
}

// check type-checks one package and adds it to those that are. Of the standard library
// declarations suffice.
func (l *listed) check(fset *token.FileSet, checked map[string]*types.Package, sizes types.Sizes) error {
	var errs []error
	var files []*ast.File
	for _, name := range l.GoFiles {
		if !filepath.IsAbs(name) {
			name = filepath.Join(l.Dir, name)
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		files = append(files, f)
		if len(l.SFiles) == 0 && !l.Standard {
			errs = append(errs, bodiless(fset, f)...)
		}
	}
	conf := types.Config{
		Importer:         importer{l.ImportMap, checked},
		Sizes:            sizes,
		IgnoreFuncBodies: l.Standard,
		Error:            func(err error) { errs = append(errs, err) },
	}
	if l.Module != nil && l.Module.GoVersion != "" {
		conf.GoVersion = "go" + l.Module.GoVersion
	}
	p, _ := conf.Check(l.ImportPath, fset, files, nil) // its error is the first that Error got
	checked[l.ImportPath] = p
	return errors.Join(errs...)
}

// bodiless finds functions whose body would have to be assembly, or another package's.
func bodiless(fset *token.FileSet, f *ast.File) (errs []error) {
	linked := map[string]bool{}
	for _, group := range f.Comments {
		for _, c := range group.List {
			if words := strings.Fields(c.Text); len(words) > 1 && words[0] == "//go:linkname" {
				linked[words[1]] = true
			}
		}
	}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body == nil && !linked[fn.Name.Name] {
			errs = append(errs, fmt.Errorf("%v: missing function body of %s, and no assembly for this system",
				fset.Position(fn.Pos()), fn.Name.Name))
		}
	}
	return errs
}

// importer gives a package those it imports; the standard library has names of its own
// for what it vendors.
type importer struct {
	names   map[string]string
	checked map[string]*types.Package
}

func (i importer) Import(path string) (*types.Package, error) {
	if name, ok := i.names[path]; ok {
		path = name
	}
	if p := i.checked[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%s is not among what go list names", path)
}
