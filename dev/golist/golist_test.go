package golist

import (
	"strings"
	"testing"
)

type some struct {
	ImportPath string
	Standard   bool
	Error      *struct{ Err string }
}

// Only what is asked for is listed, in the order of imports; what is not there says so itself.
func TestPackages(t *testing.T) {
	all, err := Packages[some](Query{Flags: []string{"-deps"}, Patterns: []string{"errors",
		"example.com/not/there"}})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range all {
		if p.Standard == (p.Error != nil) {
			t.Errorf("%s: standard %t, error %v", p.ImportPath, p.Standard, p.Error)
		}
		names = append(names, p.ImportPath)
	}
	got := strings.Join(names, " ")
	if !strings.Contains(got, "internal/reflectlite errors") ||
		!strings.Contains(got, "example.com/not/there") {
		t.Errorf("listed: %s", got)
	}
	if _, err := Packages[some](Query{Dir: "/not/there"}); err == nil {
		t.Error("no error where there is no directory")
	}
}
