package lint

import (
	"go/ast"
	"go/types"
	"strconv"
	"strings"
)

// checkImports holds every non-test file to the table of rooms, on all
// systems and tags.
func checkImports(r *reporter) {
	home := roomOf(r.p.Path)
	if home == nil {
		if len(r.p.Files) > 0 && r.p.Path != "." {
			f := r.p.Files[0]
			r.report(f, f.Syn.Package, "import", "package %s is in no room of the table; add it to dev/lint with what it may import and why", r.p.Path)
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
	if home.pure {
		for _, e := range impure {
			if under(path, e.to) {
				r.report(f, spec.Pos(), "pure", "%s imports %s, that is %s: a pure room's result is a function of its arguments; take the value as a parameter", r.p.Path, path, e.why)
				return
			}
		}
	}
	if rel, ours := strings.CutPrefix(path, module+"/"); ours {
		to := roomOf(rel)
		if to == nil || to == home {
			return
		}
		for _, e := range home.may {
			if e.to == "*" || e.to == to.dir {
				return
			}
		}
		r.report(f, spec.Pos(), "import", "%s imports %s: %s; it may import %s", r.p.Path, rel, home.idea, names(home.may))
		return
	}
	if first, _, _ := strings.Cut(path, "/"); !strings.Contains(first, ".") {
		return // standard library
	}
	for _, e := range home.modules {
		if under(path, e.to) {
			return
		}
	}
	r.report(f, spec.Pos(), "import", "%s imports %s, which is not a third-party module of this package (it has %s); each has one package, see docs/DEPENDENCIES.md", r.p.Path, path, names(home.modules))
}

func names(edges []edge) string {
	if len(edges) == 0 {
		return "none"
	}
	var out []string
	for _, e := range edges {
		out = append(out, e.to)
	}
	return strings.Join(out, ", ")
}

// worldly are functions and variables through which a package meets the world,
// each with the rooms that may.
var worldly = map[string]struct {
	rooms []string
	why   string
}{
	"os.Getenv":       {[]string{"internal"}, "only main reads the environment, and config gets it as a value, so that every value has an origin"},
	"os.LookupEnv":    {[]string{"internal"}, "only main reads the environment, and config gets it as a value, so that every value has an origin"},
	"os.Environ":      {[]string{"cmd", "internal"}, "only main reads the environment, and config gets it as a value, so that every value has an origin"},
	"os.Exit":         {[]string{"cmd", "internal", "real/internal/cmd"}, "only main ends the process"},
	"os.Stdout":       {[]string{"cmd", "internal", "real/internal/cmd"}, "only cmd prints"},
	"os.Stderr":       {[]string{"cmd", "internal", "real/internal/cmd"}, "only cmd prints"},
	"fmt.Print":       {[]string{"cmd", "internal"}, "only cmd prints"},
	"fmt.Printf":      {[]string{"cmd", "internal"}, "only cmd prints"},
	"fmt.Println":     {[]string{"cmd", "internal"}, "only cmd prints"},
	"log.Print":       {nil, "logs go to the slog.Logger of Params"},
	"log.Printf":      {nil, "logs go to the slog.Logger of Params"},
	"log.Println":     {nil, "logs go to the slog.Logger of Params"},
	"log.Fatal":       {nil, "only main ends the process"},
	"log.Fatalf":      {nil, "only main ends the process"},
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
			rule, ok := worldly[obj.Pkg().Name()+"."+obj.Name()]
			if !ok || !standard(obj) {
				return true
			}
			for _, dir := range rule.rooms {
				if under(r.p.Path, dir) {
					return true
				}
			}
			r.report(f, sel.Pos(), "edge", "%s uses %s.%s: %s", r.p.Path, obj.Pkg().Name(), obj.Name(), rule.why)
			return true
		})
	}
}

func standard(obj types.Object) bool {
	first, _, _ := strings.Cut(obj.Pkg().Path(), "/")
	return !strings.Contains(first, ".")
}
