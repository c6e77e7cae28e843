package main

import (
	"errors"
	"fmt"
	"go/ast"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
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

// check type-checks the packages that patterns name in dir, and what they import, and returns how many
// these are.
func check(dir, goos, goarch string, patterns ...string) (int, error) {
	all, err := packages.Load(&packages.Config{Dir: dir,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps |
			packages.NeedModule | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesSizes,
		Env: append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")}, patterns...)
	n, errs := 0, []error{err}
	packages.Visit(all, nil, func(p *packages.Package) {
		n++
		for _, e := range p.Errors {
			errs = append(errs, e)
		}
		if p.Module != nil && len(p.OtherFiles) == 0 { // no assembly
			errs = append(errs, bodiless(p)...)
		}
	})
	return n, errors.Join(errs...)
}

// bodiless finds functions whose body would have to be assembly, or another package's.
func bodiless(p *packages.Package) (errs []error) {
	linked := map[string]bool{}
	for _, f := range p.Syntax {
		for _, group := range f.Comments {
			for _, c := range group.List {
				if words := strings.Fields(c.Text); len(words) > 1 && words[0] == "//go:linkname" {
					linked[words[1]] = true
				}
			}
		}
	}
	for _, f := range p.Syntax {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body == nil && !linked[fn.Name.Name] {
				errs = append(errs, fmt.Errorf("%v: missing function body of %s, and no assembly for this "+
					"system", p.Fset.Position(fn.Pos()), fn.Name.Name))
			}
		}
	}
	return errs
}
