package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

// committed is the profile of the tree with its file name.
func committed(t *testing.T) (*profile.Profile, string, []byte) {
	t.Helper()
	files, err := filepath.Glob("*.pgo")
	if err != nil || len(files) != 1 {
		t.Fatalf("%v: %d profiles, want one: run make profile", err, len(files))
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	p, err := profile.ParseData(data)
	if err != nil {
		t.Fatal(err)
	}
	return p, files[0], data
}

// The profile is named by its bytes, is small, and names no file or time of the
// machine that it was made on.
func TestProfileIsOfNoMachine(t *testing.T) {
	p, file, data := committed(t)
	if file != name(data) || len(data) > 100_000 {
		t.Errorf("%s: %d bytes, named %s by them", file, len(data), name(data))
	}
	if len(p.Mapping) > 0 || p.TimeNanos != 0 || p.DurationNanos != 0 || len(p.Comments) > 0 {
		t.Errorf("%d mappings, time %d of %d ns, comments %q", len(p.Mapping), p.TimeNanos, p.DurationNanos,
			p.Comments)
	}
	for _, f := range p.Function {
		if filepath.IsAbs(f.Filename) {
			t.Errorf("%s is in %s: build the program with -trimpath", f.Name, f.Filename)
		}
	}
}

// A profile of functions that were removed is of no use: of the time in hot functions
// at least 80 % is in those that the tree still has.
func TestProfileIsOfThisTree(t *testing.T) {
	p, file, _ := committed(t)
	took := map[string]int64{}
	for _, s := range p.Sample {
		took[hottest(s)] += s.Value[0]
	}
	var all, there int64
	var removed []string
	known := map[string]map[string]bool{}
	for name, n := range took { //lint:sorted sums, and names for a message
		all += n
		if exists(t, known, name) {
			there += n
		} else {
			removed = append(removed, name)
		}
	}
	if all < 500 || there*100 < all*80 {
		t.Errorf("%s: %d of %d samples are in functions that exist: run make profile (removed: %q)", file,
			there, all, removed)
	}
	if exists(t, known, ours+"sim.NoSuchFunction") || exists(t, known, ours+"sim/nowhere.Run") ||
		!exists(t, known, ours+"sim/internal/engine.(*Engine).Run.func1") {
		t.Error("what exists is not told from what does not")
	}
	if got := bare("a/b.(*T[go.shape.[]c/d.E,int]).m[go.shape.struct { f g/h.K }].func1"); got !=
		"a/b.(*T).m.func1" {
		t.Errorf("without type arguments: %s", got)
	}
}

// hottest is the innermost hot function of a sample.
func hottest(s *profile.Sample) string {
	for _, l := range s.Location {
		for _, n := range l.Line {
			if isHot(n.Function.Name) {
				return n.Function.Name
			}
		}
	}
	return ""
}

// suffixes are what the compiler adds to the name of a declared function for closures.
var suffixes = regexp.MustCompile(`(\.func[0-9]+|\.gowrap[0-9]+|\.[0-9]+|-fm|-range[0-9]+)+$`)

// bare is a function's name without type arguments, which may have brackets and names of packages themselves.
func bare(function string) string {
	var b strings.Builder
	depth := 0
	for _, c := range function {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case depth == 0:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// exists says whether the tree declares a function; known keeps what was read.
func exists(t *testing.T, known map[string]map[string]bool, function string) bool {
	t.Helper()
	at := strings.TrimPrefix(bare(function), ours)
	slash := strings.LastIndex(at, "/") + 1
	dir, rest, _ := strings.Cut(at[slash:], ".")
	dir = at[:slash] + dir
	if known[dir] == nil {
		known[dir] = declared(t, filepath.Join("../../..", dir))
	}
	return known[dir][suffixes.ReplaceAllString(rest, "")]
}

// declared are the functions of a package as a profile names them: F, T.M, (*T).M.
func declared(t *testing.T, dir string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok {
				names[receiver(d)+d.Name.Name] = true
			}
		}
	}
	return names
}

// receiver is T. or (*T). of a method.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	of, left, right := d.Recv.List[0].Type, "", "."
	if p, ok := of.(*ast.StarExpr); ok {
		of, left, right = p.X, "(*", ")."
	}
	switch g := of.(type) {
	case *ast.IndexExpr:
		of = g.X
	case *ast.IndexListExpr:
		of = g.X
	}
	if id, ok := of.(*ast.Ident); ok {
		return left + id.Name + right
	}
	return "?"
}

// What is stripped leaves calls from and to hot functions as they were.
func TestHotKeepsCallsOfHotFunctions(t *testing.T) {
	var places []*profile.Location
	var functions []*profile.Function
	for i, name := range []string{"runtime.memmove", "runtime.growslice", ours + "sim/wire.grow",
		ours + "sim.Run", "main.main", "runtime.main"} {
		f := &profile.Function{ID: uint64(i + 1), Name: name, Filename: "f.go", StartLine: 3}
		functions = append(functions, f)
		places = append(places, &profile.Location{ID: f.ID, Address: 7 * f.ID,
			Line: []profile.Line{{Function: f, Line: 5}}})
	}
	p := hot(&profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}}, TimeNanos: 1, DurationNanos: 2,
		Comments: []string{"c"},
		Sample: []*profile.Sample{{Location: places, Value: []int64{2}},
			{Location: places[4:], Value: []int64{9}}},
		Location: places, Function: functions,
	})
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, l := range p.Sample[0].Location {
		kept = append(kept, l.Line[0].Function.Name)
	}
	if want := "runtime.growslice " + ours + "sim/wire.grow " + ours + "sim.Run main.main"; len(p.Sample) !=
		1 || strings.Join(kept, " ") != want || p.TimeNanos != 0 || p.Comments != nil {
		t.Errorf("%d samples, %q", len(p.Sample), kept)
	}
}

// The Makefile compiles by the profile what it is kept for.
func TestMakefileNamesTheRooms(t *testing.T) {
	text, err := os.ReadFile("../../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	if want := "HOTROOMS = " + strings.Join(rooms, " ") + "\n"; !bytes.Contains(text, []byte(want)) {
		t.Errorf("Makefile has no line %q", want)
	}
}
