package lint

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/tools/go/packages"
)

// TestRules runs every rule over snippets: each archive of testdata holds files
// of one package at its place in the tree, and in the member "want" what must
// be found, as "file:line: rule: part of the message". Nothing else may be. An
// archive with a member "files" lists tracked files instead (see checkTracked).
func TestRules(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal("no snippets")
	}
	fset := token.NewFileSet()
	std, err := packages.Load(&packages.Config{Fset: fset, Mode: packages.NeedName | packages.NeedTypes},
		"errors", "fmt", "maps", "math", "math/rand/v2", "os", "slices", "sort", "time", "sync",
		module+"/units", module+"/coll")
	if err != nil {
		t.Fatal(err)
	}
	imp := imports{}
	for _, p := range std {
		imp[p.PkgPath] = p.Types
	}
	for _, file := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			checkArchive(t, ar, fset, imp)
		})
	}
}

// imports are the packages that snippets import.
type imports map[string]*types.Package

func (i imports) Import(path string) (*types.Package, error) {
	if i[path] == nil {
		return nil, errors.New("list it in TestRules")
	}
	return i[path], nil
}

func checkArchive(t *testing.T, ar *txtar.Archive, fset *token.FileSet, imp types.Importer) {
	var want []string
	var found []Finding
	var sources []txtar.File
	for _, f := range ar.Files {
		switch f.Name {
		case "want":
			want = strings.Split(strings.TrimSpace(string(f.Data)), "\n")
		case "files":
			found = checkTracked(t, string(f.Data))
		default:
			sources = append(sources, f)
		}
	}
	if len(sources) > 0 {
		found = append(found, checkSources(t, sources, fset, imp)...)
	}
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
			if fmt.Sprintf("%s:%d", f.Pos.Filename, f.Pos.Line) != place || f.Rule != rule ||
				!strings.Contains(f.Message, part) {
				t.Errorf("got  %v\nwant %s", f, want[i])
			}
		}
	}
}

func checkSources(t *testing.T, sources []txtar.File, fset *token.FileSet, imp types.Importer) []Finding {
	p := &Package{Fset: fset, Info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{},
		Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}}
	var built []*ast.File
	for _, f := range sources {
		p.Path = path.Dir(f.Name)
		syn, err := parser.ParseFile(p.Fset, f.Name, f.Data, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		typed := !strings.HasSuffix(f.Name, "_test.go") && !strings.Contains(f.Name, "untyped")
		p.Files = append(p.Files, &File{Name: path.Base(f.Name), Syn: syn,
			Lines: strings.Count(string(f.Data), "\n"),
			Test:  strings.HasSuffix(f.Name, "_test.go"), Built: typed})
		if typed {
			built = append(built, syn)
		}
	}
	conf := types.Config{Importer: imp, FakeImportC: true}
	if _, err := conf.Check("x", fset, built, p.Info); err != nil {
		t.Fatal(err)
	}
	return Check(p)
}

// checkTracked runs CheckFiles over a tree described line by line: name, size
// in bytes ("link" for a symbolic link, "deleted" for a file that is deleted), and
// what it holds, each piece as a quoted string with its offset behind "@".
func checkTracked(t *testing.T, listing string) []Finding {
	tree := fstest.MapFS{}
	var tracked []string
	for _, line := range strings.Split(strings.TrimSpace(listing), "\n") {
		words := strings.Fields(line)
		tracked = append(tracked, words[0])
		switch words[1] {
		case "deleted":
			continue
		case "link":
			tree[words[0]] = &fstest.MapFile{Data: []byte("away"), Mode: fs.ModeSymlink}
			continue
		}
		size, err := strconv.Atoi(words[1])
		if err != nil {
			t.Fatal(err)
		}
		data := make([]byte, size)
		for _, piece := range words[2:] {
			quoted, at, _ := strings.Cut(piece, "@")
			text, err := strconv.Unquote(quoted)
			if err != nil {
				t.Fatalf("%s: %v", piece, err)
			}
			offset, _ := strconv.Atoi(at)
			copy(data[offset:], text)
		}
		tree[words[0]] = &fstest.MapFile{Data: data}
	}
	found, err := CheckFiles(tree, tracked)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestProgramsAreKnown: the format of this test's own binary is recognised, and
// git tracks nothing of the kind here.
func TestProgramsAreKnown(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	found, err := CheckFiles(os.DirFS(filepath.Dir(self)), []string{filepath.Base(self)})
	if err != nil || len(found) != 1 || found[0].Rule != "file" || !strings.Contains(found[0].Message,
		"program") {
		t.Errorf("of %s: %v, %v", self, found, err)
	}
	tracked, err := Tracked("../..")
	if err != nil {
		t.Skip("tracked files are unknown: ", err)
	}
	if found, err = CheckFiles(os.DirFS("../.."), tracked); err != nil || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
}

// TestTrackedSaysWhyNot: without a checkout there is no list, and a reason.
func TestTrackedSaysWhyNot(t *testing.T) {
	t.Setenv("GIT_CEILING_DIRECTORIES", "/")
	t.Setenv("GIT_DIR", filepath.Join(t.TempDir(), "none"))
	if _, err := Tracked(t.TempDir()); err == nil || !strings.Contains(err.Error(), "git") {
		t.Errorf("got %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := Tracked("."); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("without git: %v", err)
	}
}

// TestTableIsSound: every room is listed once, in the order of floors, and what a room must
// not import is a room of a lower floor, which floors alone would permit.
func TestTableIsSound(t *testing.T) {
	byDir := map[string]*room{}
	for i := range rooms {
		r := &rooms[i]
		if byDir[r.dir] != nil || r.holds == "" || i > 0 && r.floor < rooms[i-1].floor {
			t.Errorf("%s is listed twice, out of order or without what it holds", r.dir)
		}
		byDir[r.dir] = r
	}
	for _, r := range rooms {
		for _, e := range r.not {
			if to := byDir[e.to]; to == nil || to.floor >= r.floor || e.why == "" {
				t.Errorf("%s must not import %s, which is no lower room, or has no reason", r.dir, e.to)
			}
		}
	}
	for _, c := range []struct{ pkg, room string }{
		{"topo/xml", "topo"}, {"real/internal/ibv", "real"}, {"cmd/simccl", "cmd"}, {".", "."},
		{"topography", ""}, {"", ""},
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

// parsed is a file that only has imports.
func parsed(t *testing.T, fset *token.FileSet, test bool, imports ...string) *File {
	text := "package x\n"
	for _, i := range imports {
		text += fmt.Sprintf("import _ %q\n", i)
	}
	syn, err := parser.ParseFile(fset, "x.go", text, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	return &File{Syn: syn, Test: test, Lines: 10}
}

// TestTableReportsIdlePermissions: a module that no file of a package imports, or only a
// test, is reported; packages below count.
func TestTableReportsIdlePermissions(t *testing.T) {
	fset := token.NewFileSet()
	packages := []*Package{
		{Path: "topo/xml/deep", Files: []*File{parsed(t, fset, false, "github.com/beevik/etree/sub")}},
		{Path: "study/sweep", Files: []*File{parsed(t, fset, true, "go.yaml.in/yaml/v3")}},
	}
	var got []string
	for _, f := range CheckTable(packages) {
		got = append(got, f.Message)
	}
	if slices.Contains(got,
		"topo/xml may import github.com/beevik/etree and no file of it does; take the permission away") {
		t.Error("an import of a package below is a use")
	}
	for _, want := range []string{
		"study/sweep may import go.yaml.in/yaml/v3 and no file of it does; take the permission away",
		"room units has no package; take it out"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not among %q", want, got)
		}
	}
}

// TestShape: an import up, a circle of folders and what leaves internal/ are counted, and
// imports of tests are not.
func TestShape(t *testing.T) {
	fset := token.NewFileSet()
	s := ShapeOf([]*Package{
		{Path: "topo", Files: []*File{parsed(t, fset, false, module+"/sim/wire", module+"/internal/fail"),
			parsed(t, fset, true, module+"/real")}},
		{Path: "sim", Files: []*File{parsed(t, fset, false, module+"/topo", module+"/sim/wire")}},
		{Path: "sim/wire", Files: []*File{parsed(t, fset, false)}},
		{Path: "internal/fail", Files: []*File{parsed(t, fset, false, module+"/coll", module+"/units")}},
		{Path: "coll", Files: []*File{parsed(t, fset, false)}},
	})
	for _, c := range []struct {
		what      string
		got, want []string
	}{
		{"up", s.Up, []string{"internal/fail -> coll", "topo -> sim/wire"}},
		{"circles", s.Circles, []string{"sim", "topo"}},
		{"leaving", s.Leaving, []string{"internal/fail -> coll"}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %q, want %q", c.what, c.got, c.want)
		}
	}
	if s.Packages != 5 || s.Total != 50 || s.Lines["sim"] != 20 {
		t.Errorf("%+v", s)
	}
}

// TestSinglePackageNeedsAReason: a small package with one importer is reported unless the
// table has its reason; a command and a helper of two packages' tests are packages by rule,
// and a reason that no package needs is reported.
func TestSinglePackageNeedsAReason(t *testing.T) {
	fset := token.NewFileSet()
	const fixture = module + "/topo/fixture"
	found := CheckSingle([]*Package{
		{Path: "topo", Files: []*File{parsed(t, fset, false, module+"/topo/names", module+"/coll",
			module+"/tuning/netplugin")}},
		{Path: "topo/names", Files: []*File{parsed(t, fset, false)}},
		{Path: "tuning/netplugin", Files: []*File{parsed(t, fset, false)}},
		{Path: "coll", Files: []*File{parsed(t, fset, false)}},
		{Path: "sim", Files: []*File{parsed(t, fset, false, module+"/coll", fixture),
			parsed(t, fset, true, module+"/topo/names")}},
		{Path: "search", Files: []*File{parsed(t, fset, true, fixture)}},
		{Path: "tuning", Files: []*File{parsed(t, fset, true, fixture)}},
		{Path: "topo/fixture", Files: []*File{parsed(t, fset, false)}},
	})
	var names, stale []string
	for _, f := range found {
		if f.Pos.Filename == "dev/lint/single.go" {
			stale = append(stale, f.Message)
		} else {
			names = append(names, f.Pos.Filename)
		}
	}
	if want := []string{"topo/names"}; !slices.Equal(names, want) {
		t.Errorf("without a reason: %q, want %q", names, want)
	}
	if len(stale) != len(alone)-1 {
		t.Errorf("%d reasons are stale, want all but that of tuning/netplugin, %d: %q", len(stale),
			len(alone)-1, stale)
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
		"README.md": {
			Data: []byte("see [a](docs/A.md#part), [b](docs/B.md), [web](https://example.com/x.md)\n")},
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
	if want := "README.md:1 docs/B.md|docs/A.md:1 docs/C.md|x/x.go:3 docs/D.md"; strings.Join(got, "|") !=
		want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "|"), want)
	}
}

func TestWordsOfDocuments(t *testing.T) {
	tree := fstest.MapFS{
		"README.md":           {Data: []byte("fine\n\nRanks that are alike.\n")},
		"CHANGELOG.md":        {Data: []byte("told\n")},
		"docs/A.md":           {Data: []byte("It Tells\n")},
		"docs/adr/1.md":       {Data: []byte("taken for equal\n")},
		"docs/img/x.png":      {Data: []byte("told\n")},
		"testdata/README.md":  {Data: []byte("told\n")},
		"docs/B/standard.txt": {Data: []byte("told\n")},
	}
	found, err := CheckWords(tree)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range found {
		got = append(got, fmt.Sprintf("%s:%d:%d", f.Pos.Filename, f.Pos.Line, f.Pos.Column))
	}
	if want := "README.md:3:16|docs/A.md:1:4|docs/adr/1.md:1:1"; strings.Join(got, "|") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "|"), want)
	}
}

// TestWordExceptionsAreUsed: an exception names a file that exists, a phrase
// that is denied and a reason, and without it the file is reported.
func TestWordExceptionsAreUsed(t *testing.T) {
	for _, x := range wordExceptions {
		text, err := os.ReadFile(filepath.Join("../..", x.under))
		if err != nil || x.why == "" {
			t.Errorf("%s: %v, reason %q", x.under, err, x.why)
			continue
		}
		used := false
		deniedIn("elsewhere", string(text), func(int, string, string) { used = true })
		if !used {
			t.Errorf("%s has no phrase that needs the exception", x.under)
		}
	}
}
