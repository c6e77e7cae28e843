package lint

import (
	"fmt"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// promised are the packages of which docs/LIBRARY.md promises semantic versioning.
var promised = []string{"", "/scenario", "/workload", "/topo/xml"}

// TestPromisedTypesCanBeNamed: a program outside the module can name every type of the
// promised packages' exported functions, methods, fields and values; one of an internal
// folder it could receive, and never declare a variable for.
func TestPromisedTypesCanBeNamed(t *testing.T) {
	var patterns []string
	for _, p := range promised {
		patterns = append(patterns, module+p)
	}
	packages, err := Load(".", patterns...)
	if err != nil || len(packages) != len(promised) {
		t.Fatal(len(packages), err)
	}
	for _, p := range packages {
		w := walk{seen: map[types.Type]bool{}}
		for _, o := range p.Info.Defs { //lint:sorted the findings are sorted below
			if o != nil && o.Exported() && o.Pkg() != nil && o.Parent() == o.Pkg().Scope() {
				w.object(o)
			}
		}
		slices.Sort(w.found)
		for _, f := range slices.Compact(w.found) {
			t.Errorf("%s: %s", p.Path, f)
		}
	}
}

// walk visits the types that an exported name shows.
type walk struct {
	seen  map[types.Type]bool
	found []string
	at    string
}

func (w *walk) object(o types.Object) {
	w.at = o.Name()
	w.typ(o.Type())
	named, ok := o.Type().(*types.Named)
	if _, declared := o.(*types.TypeName); !ok || !declared {
		return
	}
	w.typ(named.Underlying())
	for m := range named.Methods() {
		if m.Exported() {
			w.at = o.Name() + "." + m.Name()
			w.typ(m.Type())
		}
	}
}

func (w *walk) typ(t types.Type) {
	if t == nil || w.seen[t] {
		return
	}
	w.seen[t] = true
	switch t := t.(type) {
	case *types.Named:
		if pkg := t.Obj().Pkg(); pkg != nil && strings.Contains(pkg.Path(), "simccl/") &&
			strings.Contains(pkg.Path()+"/", "/internal/") {
			w.found = append(w.found, fmt.Sprintf("%s shows %s.%s", w.at, pkg.Path(), t.Obj().Name()))
		}
	case *types.Pointer:
		w.typ(t.Elem())
	case *types.Slice:
		w.typ(t.Elem())
	case *types.Array:
		w.typ(t.Elem())
	case *types.Map:
		w.typ(t.Key())
		w.typ(t.Elem())
	case *types.Chan:
		w.typ(t.Elem())
	case *types.Signature:
		for v := range t.Params().Variables() {
			w.typ(v.Type())
		}
		for v := range t.Results().Variables() {
			w.typ(v.Type())
		}
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() {
				w.typ(f.Type())
			}
		}
	case *types.Interface:
		for m := range t.Methods() {
			w.typ(m.Type())
		}
	}
}
