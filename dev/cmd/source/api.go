package main

import (
	"errors"
	"flag"
	"fmt"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

const (
	module = "github.com/simccl/simccl"
	folder = "dev/api" // of the lists
)

// promised are the packages of which docs/LIBRARY.md promises semantic versioning, by the
// file that has their list.
var promised = [...]struct{ path, file string }{
	{module, "simccl.txt"}, {module + "/scenario", "scenario.txt"},
	{module + "/workload", "workload.txt"}, {module + "/topo/xml", "topo-xml.txt"},
}

func api() {
	write := flag.Bool("write", false, "record the present state as the one to compare with")
	flag.Parse()
	if err := run(*write); err != nil {
		fmt.Fprintln(os.Stderr, "api:", err)
		os.Exit(1)
	}
}

// run compares the promised packages with their lists, or writes these.
func run(write bool) error {
	var paths []string
	for _, p := range promised {
		paths = append(paths, p.path)
	}
	all, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedTypes}, paths...)
	if err != nil {
		return err
	}
	byPath := map[string]*types.Package{}
	for _, p := range all {
		byPath[p.PkgPath] = p.Types
	}
	broken, unrecorded := 0, 0
	for _, p := range promised {
		now := apiList(byPath[p.path])
		name := filepath.Join(folder, p.file)
		if write {
			if err := os.WriteFile(name, []byte(strings.Join(now, "\n")+"\n"), 0o644); err != nil {
				return err
			}
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		went, came := compare(strings.Split(strings.TrimSpace(string(text)), "\n"), now)
		for _, line := range went {
			fmt.Printf("%s: incompatible: no longer %s\n", p.path, line)
		}
		for _, line := range came {
			fmt.Printf("%s: not recorded: %s\n", p.path, line)
		}
		broken, unrecorded = broken+len(went), unrecorded+len(came)
	}
	switch {
	case broken > 0:
		return fmt.Errorf("%d names of the promised packages went or have another type; keep them, or, "+
			"where the next "+
			"release may break programs, record it in the same commit: make api-record", broken)
	case unrecorded > 0:
		return fmt.Errorf("%d new names of the promised packages; record them in the same commit: make "+
			"api-record", unrecorded)
	}
	return nil
}

// compare returns the lines of was that now lacks, and those that it has beyond.
func compare(was, now []string) (went, came []string) {
	for _, line := range was {
		if line != "" && !slices.Contains(now, line) {
			went = append(went, line)
		}
	}
	for _, line := range now {
		if !slices.Contains(was, line) {
			came = append(came, line)
		}
	}
	return went, came
}

// apiList returns the exported names of a package with their types, sorted.
func apiList(p *types.Package) []string {
	var out []string
	for _, name := range p.Scope().Names() {
		o := p.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		switch o := o.(type) {
		case *types.Const:
			out = append(out, fmt.Sprintf("const %s %s = %s", name, show(o.Type()), o.Val()))
		case *types.Var:
			out = append(out, fmt.Sprintf("var %s %s", name, show(o.Type())))
		case *types.Func:
			out = append(out, fmt.Sprintf("func %s%s", name, signature(o.Signature())))
		case *types.TypeName:
			out = append(out, typeLines(o)...)
		}
	}
	slices.Sort(out)
	return out
}

// typeLines lists a type, its exported fields and its methods. A type of an internal
// package behind an alias is listed by the alias, with its fields and methods.
func typeLines(o *types.TypeName) []string {
	named, ok := types.Unalias(o.Type()).(*types.Named)
	if !ok || o.IsAlias() && !strings.Contains(named.Obj().Pkg().Path(), "/internal/") {
		return []string{fmt.Sprintf("type %s = %s", o.Name(), show(types.Unalias(o.Type())))}
	}
	var out []string
	kind := ""
	switch u := named.Underlying().(type) {
	case *types.Struct:
		kind = "struct"
		for f := range u.Fields() {
			if f.Exported() {
				out = append(out, fmt.Sprintf("field %s.%s %s", o.Name(), f.Name(), show(f.Type())))
			}
		}
	case *types.Interface:
		var methods []string
		for m := range u.Methods() {
			methods = append(methods, m.Name()+signature(m.Signature()))
		}
		kind = "interface{" + strings.Join(methods, "; ") + "}"
	default:
		kind = show(u)
	}
	out = append(out, fmt.Sprintf("type %s %s", o.Name(), kind))
	if types.Comparable(named) {
		out = append(out, fmt.Sprintf("comparable %s", o.Name()))
	}
	if types.IsInterface(named) {
		return out
	}
	values := types.NewMethodSet(named)
	pointers := types.NewMethodSet(types.NewPointer(named))
	for m := range pointers.Methods() {
		if m.Obj().Exported() {
			receiver := "*" + o.Name()
			if values.Lookup(m.Obj().Pkg(), m.Obj().Name()) != nil {
				receiver = o.Name()
			}
			out = append(out, fmt.Sprintf("method (%s) %s%s", receiver, m.Obj().Name(),
				signature(m.Type().(*types.Signature))))
		}
	}
	return out
}

// signature prints a function's type without the names of its parameters.
func signature(s *types.Signature) string {
	return strings.TrimPrefix(show(s), "func")
}

// show prints a type with import paths, and function types without names of parameters.
func show(t types.Type) string {
	return types.TypeString(unnamed(t), func(p *types.Package) string { return p.Path() })
}

// unnamed returns a type whose function types have no names of parameters.
func unnamed(t types.Type) types.Type {
	switch t := t.(type) {
	case *types.Pointer:
		return types.NewPointer(unnamed(t.Elem()))
	case *types.Slice:
		return types.NewSlice(unnamed(t.Elem()))
	case *types.Array:
		return types.NewArray(unnamed(t.Elem()), t.Len())
	case *types.Map:
		return types.NewMap(unnamed(t.Key()), unnamed(t.Elem()))
	case *types.Chan:
		return types.NewChan(t.Dir(), unnamed(t.Elem()))
	case *types.Signature:
		return types.NewSignatureType(nil, nil, nil, tuple(t.Params()), tuple(t.Results()), t.Variadic())
	}
	return t
}

// tuple is unnamed for parameters or results.
func tuple(t *types.Tuple) *types.Tuple {
	var out []*types.Var
	for v := range t.Variables() {
		out = append(out, types.NewParam(v.Pos(), v.Pkg(), "", unnamed(v.Type())))
	}
	return types.NewTuple(out...)
}
