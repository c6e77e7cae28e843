package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"testing"
)

// apiListed lists the exported names of a source text.
func apiListed(t *testing.T, text string) []string {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "p.go", "package p\n"+text, 0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := new(types.Config).Check("p", fset, []*ast.File{f}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return apiList(p)
}

// TestIncompatibleChangesAreFound: a name that went, another type, a method that an
// interface gains and a struct that cannot be compared any more break programs; names of
// parameters, unexported names and what is added do not.
func TestIncompatibleChangesAreFound(t *testing.T) {
	const was = `
type T struct { A int; b string }
func (T) M(n int) error { return nil }
func (*T) P() {}
type I interface { M(n int) error }
type S = []T
type hidden int
const C = 1
var V map[string]func(name string) bool
func F(x int, y ...string) (n int, err error) { return 0, nil }
`
	for _, c := range []struct{ old, now, went, came string }{
		{"", "", "", ""},
		{"(n int) error", "(m int) error", "", ""},
		{"name string", "text string", "", ""},
		{"type hidden int", "type other int", "", ""},
		{"b string", "b string; C int", "", "field T.C int"},
		{"A int", "A int64", "field T.A int", "field T.A int64"},
		{"b string", "b []string", "comparable T", ""},
		{"const C = 1", "const C = 2", "const C untyped int = 1", "const C untyped int = 2"},
		{"func (*T) P() {}", "", "method (*T) P()", ""},
		{"func (*T) P() {}", "func (T) P() {}", "method (*T) P()", "method (T) P()"},
		{"type I interface { M(", "type I interface { N(); M(", "type I interface{M(int) error}",
			"type I interface{M(int) error; N()}"},
		{"y ...string", "y []string", "func F(int, ...string) (int, error)",
			"func F(int, []string) (int, error)"},
		{"type S = []T", "type S []T", "type S = []p.T", "type S []p.T"},
	} {
		went, came := compare(apiListed(t, was), apiListed(t, strings.ReplaceAll(was, c.old, c.now)))
		if strings.Join(went, "\n") != c.went || strings.Join(came, "\n") != c.came {
			t.Errorf("%q for %q: went %q, came %q; want %q, %q", c.now, c.old, went, came, c.went, c.came)
		}
	}
}
