package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"
)

// TestRules runs every rule over snippets: each archive of testdata holds files
// of one package at its place in the tree, and in the member "want" what must
// be found, as "file:line: rule: part of the message". Nothing else may be.
func TestRules(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal("no snippets")
	}
	std, err := list(".", []string{"fmt", "maps", "math", "math/rand/v2", "os", "slices", "sort", "time", "sync",
		module + "/units", module + "/coll"})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			checkArchive(t, ar, std)
		})
	}
}

func checkArchive(t *testing.T, ar *txtar.Archive, std []*listed) {
	p := &Package{Fset: token.NewFileSet()}
	var built []*ast.File
	var want []string
	for _, f := range ar.Files {
		if f.Name == "want" {
			want = strings.Split(strings.TrimSpace(string(f.Data)), "\n")
			continue
		}
		p.Path = path.Dir(f.Name)
		syn, err := parser.ParseFile(p.Fset, f.Name, f.Data, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		typed := !strings.HasSuffix(f.Name, "_test.go") && !strings.Contains(f.Name, "untyped")
		p.Files = append(p.Files, &File{Name: path.Base(f.Name), Syn: syn, Lines: strings.Count(string(f.Data), "\n"),
			Test: strings.HasSuffix(f.Name, "_test.go"), Built: typed})
		if typed {
			built = append(built, syn)
		}
	}
	var err error
	if p.Info, err = typeCheck(p.Fset, exportData(p.Fset, std), "x", built); err != nil {
		t.Fatal(err)
	}
	found := Check(p)
	for i := range max(len(found), len(want)) {
		switch {
		case i >= len(found):
			t.Errorf("not found: %s", want[i])
		case i >= len(want) || want[i] == "":
			t.Errorf("found without cause: %v", found[i])
		default:
			place, message, _ := strings.Cut(want[i], ": ")
			rule, part, _ := strings.Cut(message, ": ")
			f := found[i]
			if fmt.Sprintf("%s:%d", f.Pos.Filename, f.Pos.Line) != place || f.Rule != rule || !strings.Contains(f.Message, part) {
				t.Errorf("got  %v\nwant %s", f, want[i])
			}
		}
	}
}

// TestTableIsSound: every room that the table lets in is itself in the table,
// no permission runs against another (two rooms that may import each other),
// and pure rooms stand on pure ones.
func TestTableIsSound(t *testing.T) {
	byDir := map[string]*room{}
	for i := range rooms {
		if byDir[rooms[i].dir] != nil {
			t.Errorf("%s stands twice", rooms[i].dir)
		}
		byDir[rooms[i].dir] = &rooms[i]
	}
	for _, r := range rooms {
		for _, e := range r.may {
			to := byDir[e.to]
			switch {
			case e.to == "*":
			case to == nil:
				t.Errorf("%s may import %s, which is no room", r.dir, e.to)
			case r.pure && !to.pure && e.to != "trace" && e.to != "trace/nccltrace" && e.to != "exec":
				t.Errorf("%s is pure and may import %s, which is not", r.dir, e.to)
			default:
				for _, back := range to.may {
					if back.to == r.dir {
						t.Errorf("%s and %s may import each other", r.dir, e.to)
					}
				}
			}
		}
	}
	for _, c := range []struct{ pkg, room string }{
		{"topo/xml", "topo/xml"}, {"sim/event", "sim"}, {"real/ibv", "real"}, {"cmd/simccl", "cmd"}, {"topography", ""}, {"", ""},
	} {
		got := ""
		if r := roomOf(c.pkg); r != nil {
			got = r.dir
		}
		if got != c.room {
			t.Errorf("%s is in room %q, want %q", c.pkg, got, c.room)
		}
	}
}

// TestLoadReadsThisModule loads two real packages, one of them with files for
// tests, and finds nothing in the leaves.
func TestLoadReadsThisModule(t *testing.T) {
	packages, err := Load(".", module+"/units", module+"/coll")
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) != 2 {
		t.Fatalf("%d packages", len(packages))
	}
	for _, p := range packages {
		if len(p.Files) == 0 || len(p.Info.Defs) == 0 {
			t.Errorf("%s is empty", p.Path)
		}
		for _, f := range Check(p) {
			t.Error(f)
		}
	}
}

func TestDocsLeadSomewhere(t *testing.T) {
	tree := fstest.MapFS{
		"README.md":       {Data: []byte("see [a](docs/A.md#part), [b](docs/B.md), [web](https://example.com/x.md)\n")},
		"docs/A.md":       {Data: []byte("back [up](../README.md) and [aside](C.md)\n")},
		"x/x.go":          {Data: []byte("// told in docs/A.md\n\n// and docs/D.md.\n")},
		".hidden/y.md":    {Data: []byte("[no](where.md)")},
		"testdata/t.json": {Data: []byte("docs/E.md")},
	}
	found, err := CheckDocs(tree)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range found {
		got = append(got, fmt.Sprintf("%s:%d %s", f.Pos.Filename, f.Pos.Line, strings.Fields(f.Message)[0]))
	}
	if want := "README.md:1 docs/B.md|docs/A.md:1 docs/C.md|x/x.go:3 docs/D.md"; strings.Join(got, "|") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "|"), want)
	}
}
