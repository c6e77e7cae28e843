package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// house is a module of five packages: low, mid imports it, high imports mid, the tests of far import low, and
// top imports far.
func house(t *testing.T) string {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":            "module example.com/house\n\ngo 1.26\n",
		"low/low.go":        "package low\n",
		"mid/mid.go":        "package mid\n\nimport _ \"example.com/house/low\"\n",
		"high/high.go":      "package high\n\nimport _ \"example.com/house/mid\"\n",
		"far/far.go":        "package far\n",
		"far/far_test.go":   "package far\n\nimport _ \"example.com/house/low\"\n",
		"top/top.go":        "package top\n\nimport _ \"example.com/house/far\"\n",
		"low/testdata/a.in": "",
		"low/low_test.go":   "package low\n",
		"mid/mid_test.go":   "package mid\n",
		"high/high_test.go": "package high\n",
	} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func ofChange(t *testing.T, seconds float64, known bool, files ...string) (string, string) {
	t.Helper()
	var w, left strings.Builder
	if err := affected(house(t), &w, &left, files, known, seconds); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(w.String(), "example.com/house/", ""), left.String()
}

// A change reaches the packages that import the changed one, the nearest first, through those that tests
// alone import it from no further.
func TestNearestImportersFirst(t *testing.T) {
	got, _ := ofChange(t, 100, true, "low/testdata/a.in")
	if diff := cmp.Diff("low\nfar\nmid\nhigh\n", got); diff != "" {
		t.Error(diff)
	}
}

// The bound of time leaves out the farther packages, by name, and never the changed one.
func TestBoundLeavesFartherOnes(t *testing.T) {
	got, left := ofChange(t, 2, true, "low/low.go")
	if diff := cmp.Diff("low\nfar\nmid\n", got); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(left, "left to make test-all: example.com/house/high") {
		t.Errorf("says %q", left)
	}
}

// Everything is tested where the change is unknown or any package may read the file; pages are of the tests
// that read them, and of no others of the program.
func TestUnknownIsEverything(t *testing.T) {
	const pages = "cmd/simccl Documented|NoCommandIsOnlyText\n"
	for _, c := range []struct {
		known bool
		file  string
		want  string
	}{
		{false, "", "./...\n"}, {true, "go.mod", "./...\n"}, {true, "testdata/x.xml", "./...\n"},
		{true, "gone/gone.go", "./...\n"}, {true, ".ci/run", ""}, {true, "docs/A.md", pages},
		{true, "Makefile", pages},
	} {
		if got, _ := ofChange(t, 100, c.known, c.file); got != c.want {
			t.Errorf("%s: %q, want %q", c.file, got, c.want)
		}
	}
}

// TestReadersAreThere: the tests that read pages are those of the program that name them.
func TestReadersAreThere(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("../../..", reader, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	functions := regexp.MustCompile(`(?m)^func (Test\w+)(?s:.*?)^}`)
	run, found := regexp.MustCompile(readers), 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range functions.FindAllStringSubmatch(string(text), -1) {
			switch reads := strings.Contains(test[0], "range documents(t)"); {
			case reads != run.MatchString(test[1]):
				t.Errorf("%s: %s reads pages: %t; -run %s says otherwise", file, test[1], reads, readers)
			case reads:
				found++
			}
		}
	}
	if found < 3 {
		t.Errorf("%d tests of %s read pages, want 3", found, reader)
	}
}

// Every package of the table of costs is there.
func TestCostsAreOfPackages(t *testing.T) {
	for p := range costs(secondsTable) {
		if files, _ := filepath.Glob(filepath.Join("../../..", p, "*.go")); len(files) == 0 {
			t.Errorf("seconds.txt: no package %s", p)
		}
	}
}
