package lint

import (
	"go/ast"
	"go/types"
	"strconv"
	"strings"
)

// checkImports holds every non-test file to the floors, on all systems and tags.
func checkImports(r *reporter) {
	home := roomOf(r.p.Path)
	if home == nil {
		if len(r.p.Files) > 0 {
			f := r.p.Files[0]
			r.report(f, f.Syn.Package, "import",
				"package %s is in no room of the table; add its folder to dev/lint/table.go with its floor",
				r.p.Path)
		}
		return
	}
	for _, f := range r.p.Files {
		if f.Test {
			continue
		}
		for _, spec := range f.Syn.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err == nil {
				checkImport(r, f, spec, home, path)
			}
		}
	}
}

func checkImport(r *reporter, f *File, spec *ast.ImportSpec, home *room, path string) {
	if isPure(r.p.Path) {
		for _, e := range impure {
			if under(path, e.to) {
				r.report(f, spec.Pos(), "pure", "%s imports %s, that is %s: a pure package's result is a "+
					"function of its arguments; take the value as a parameter", r.p.Path, path, e.why)
				return
			}
		}
	}
	if path == module {
		path = module + "/."
	}
	if rel, ours := strings.CutPrefix(path, module+"/"); ours {
		checkFloor(r, f, spec, home, rel)
		return
	}
	if first, _, _ := strings.Cut(path, "/"); !strings.Contains(first, ".") {
		return // standard library
	}
	for _, m := range modules {
		for _, e := range m.by {
			if under(path, m.path) && under(r.p.Path, e.to) {
				return
			}
		}
	}
	r.report(f, spec.Pos(), "import", "%s imports %s, which is not a third-party module of this package; "+
		"each has its packages, see modules in dev/lint/table.go and CONTRIBUTING.md", r.p.Path, path)
}

// checkFloor reports an import of another room that is not below, or that is excepted.
func checkFloor(r *reporter, f *File, spec *ast.ImportSpec, home *room, rel string) {
	to := roomOf(rel)
	if to == nil || to == home {
		return
	}
	if to.floor >= home.floor {
		r.report(f, spec.Pos(), "import", "%s (floor %d) imports %s (floor %d): imports lead to lower "+
			"floors only; move what both need down, or pass it in", r.p.Path, home.floor, rel, to.floor)
		return
	}
	for _, e := range home.not {
		if e.to == to.dir {
			r.report(f, spec.Pos(), "import", "%s imports %s: %s", r.p.Path, rel, e.why)
			return
		}
	}
}

// surroundings are functions and variables through which a package meets the world,
// each with the rooms that may.
var surroundings = map[string]struct {
	rooms []string
	why   string
}{
	"os.Getenv": {[]string{"app", "dev", "internal/require"},
		"only main reads the environment, and config gets it as a value, so that every value has an origin"},
	"os.LookupEnv": {[]string{"app", "dev", "internal/require"},
		"only main reads the environment, and config gets it as a value, so that every value has an origin"},
	"os.Environ": {[]string{"cmd", "app", "dev"},
		"only main reads the environment, and config gets it as a value, so that every value has an origin"},
	"os.Exit":         {[]string{"cmd", "app", "dev", "internal/interrupt"}, "only main ends the process"},
	"os.Stdout":       {[]string{"cmd", "app", "dev", "internal/interrupt"}, "only cmd prints"},
	"os.Stderr":       {[]string{"cmd", "app", "dev", "internal/interrupt"}, "only cmd prints"},
	"fmt.Print":       {[]string{"cmd", "app", "dev", "examples"}, "only cmd prints"},
	"fmt.Printf":      {[]string{"cmd", "app", "dev", "examples"}, "only cmd prints"},
	"fmt.Println":     {[]string{"cmd", "app", "dev", "examples"}, "only cmd prints"},
	"log.Print":       {nil, "logs go to the slog.Logger of Params"},
	"log.Printf":      {nil, "logs go to the slog.Logger of Params"},
	"log.Println":     {nil, "logs go to the slog.Logger of Params"},
	"log.Fatal":       {[]string{"examples"}, "only main ends the process"},
	"log.Fatalf":      {[]string{"examples"}, "only main ends the process"},
	"rand.Int":        {nil, "chance comes from a seeded, named stream"},
	"rand.IntN":       {nil, "chance comes from a seeded, named stream"},
	"rand.Float64":    {nil, "chance comes from a seeded, named stream"},
	"rand.Shuffle":    {nil, "chance comes from a seeded, named stream"},
	"rand.Perm":       {nil, "chance comes from a seeded, named stream"},
	"slog.SetDefault": {[]string{"cmd"}, "the default logger is the process's"},
}

// checkEdges holds uses of the process's surroundings to the rooms that may.
func checkEdges(r *reporter) {
	for _, f := range r.built() {
		ast.Inspect(f.Syn, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			obj := r.p.Info.Uses[sel.Sel]
			if obj == nil || obj.Pkg() == nil || obj.Parent() != obj.Pkg().Scope() {
				return true
			}
			rule, ok := surroundings[obj.Pkg().Name()+"."+obj.Name()]
			if !ok || !standard(obj) {
				return true
			}
			for _, dir := range rule.rooms {
				if under(r.p.Path, dir) {
					return true
				}
			}
			r.report(f, sel.Pos(), "edge", "%s uses %s.%s: %s", r.p.Path, obj.Pkg().Name(), obj.Name(),
				rule.why)
			return true
		})
	}
}

func standard(obj types.Object) bool {
	first, _, _ := strings.Cut(obj.Pkg().Path(), "/")
	return !strings.Contains(first, ".")
}
