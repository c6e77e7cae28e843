package sim_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// policyFiles are where decisions on the method of simulation are made.
var policyFiles = []string{"cost.go", "draws.go", "long.go", "method.go", "quotients.go", "window.go",
	"internal/fold/*.go"}

// TestPolicyConstantsHaveASource: each number that a decision on the method of simulation reads is named, and
// has its value, unit and source in the table of REDUCTIONS.md. What follows from another
// constant has no row.
func TestPolicyConstantsHaveASource(t *testing.T) {
	have := map[string]string{}
	for _, pattern := range policyFiles {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: no files, %v", pattern, err)
		}
		for _, name := range names {
			if !strings.HasSuffix(name, "_test.go") {
				constantsOf(t, name, have)
			}
		}
	}
	page, err := os.ReadFile("../docs/results/REDUCTIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n## Constants\n")
	want := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| `([^`]+)` \\| ([^|]+) \\| ([^|]+) \\|$").
		FindAllStringSubmatch(table, -1) {
		want[row[1]] = row[2]
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if want[name] != have[name] {
			t.Errorf("%s = %s, but the table in docs/results/REDUCTIONS.md has %q", name, have[name],
				want[name])
		}
	}
	for name := range want {
		if have[name] == "" {
			t.Errorf("docs/results/REDUCTIONS.md has %s, which no decision reads", name)
		}
	}
	t.Logf("%d constants are set by hand", len(have))
}

// constantsOf adds the constants of a file that follow from no other: their names and values.
func constantsOf(t *testing.T, name string, have map[string]string) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != len(spec.Names) || spec.Names[0].Obj.Kind != ast.Con {
			return true
		}
		for i, v := range spec.Values {
			if text := textOf(t, fset, v); ownNumber(v) {
				have[spec.Names[i].Name] = text
			}
		}
		return true
	})
}

// ownNumber reports whether a constant is a number that refers to units at most.
func ownNumber(v ast.Expr) bool {
	own := true
	ast.Inspect(v, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			own = own && fmt.Sprint(n.X) == "units"
			return false
		case *ast.Ident:
			own = false
		case *ast.BasicLit:
			own = own && n.Kind != token.STRING
		}
		return true
	})
	return own
}

func textOf(t *testing.T, fset *token.FileSet, v ast.Expr) string {
	var b bytes.Buffer
	if err := printer.Fprint(&b, fset, v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
