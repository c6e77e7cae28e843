package main

import (
	"fmt"
	"go/token"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/simccl/simccl/dev/golist"
	"github.com/simccl/simccl/dev/reductions"
)

// TestPlaces: what is changed, and what is not: texts, capacities, types.
func TestPlaces(t *testing.T) {
	const text = `package p

import "fmt"

// limit is NCCL's (enqueue.cc:258).
const limit = 4

var table = [3]int{7}

// f follows paths.cc:319.
func f(a, b int) error {
	s := make([]int, 9)
	if a < b && b > 0 {
		s[0] += a - 1
	}
	for range s {
		a++ // search.cc:12
	}
	return fmt.Errorf("%d is not 5", 6+a)
}
`
	places, err := placesOf(token.NewFileSet(), "p.go", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range places {
		got = append(got, strings.TrimPrefix(p.String(), "p.go:")+" "+p.Cites)
	}
	want := []string{"6 limit: number: 4 → 5 enqueue.cc:258", "6 limit: number: 4 → 3 enqueue.cc:258",
		"8 table: number: 7 → 8 ", "8 table: number: 7 → 6 ",
		"13 f: condition negated: a < b && b > 0 → !(a < b && b > 0) paths.cc:319",
		"13 f: statement removed: if a < b && b > 0 { s[0] += a - 1 } →  paths.cc:319",
		"13 f: and for or: && → || paths.cc:319", "13 f: comparison shifted: < → <= paths.cc:319",
		"13 f: comparison shifted: > → >= paths.cc:319", "13 f: number: 0 → 1 paths.cc:319",
		"14 f: statement removed: s[0] += a - 1 →  paths.cc:319", "14 f: number: 0 → 1 paths.cc:319",
		"14 f: sign: - → + paths.cc:319", "14 f: number: 1 → 2 paths.cc:319",
		"14 f: number: 1 → 0 paths.cc:319",
		"17 f: statement removed: a++ →  search.cc:12"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := string(mutated([]byte(text), places[0])); !strings.Contains(got, "const limit = 5\n") {
		t.Error(got)
	}
}

// TestDrawsGoOn: the seed says which places come in which order, and each comes once.
func TestDrawsGoOn(t *testing.T) {
	text := "package p\n\nfunc f(a int) int {\n\tif a < 1 {\n\t\ta++\n\t}\n\treturn a + 2\n}\n"
	places, err := placesOf(token.NewFileSet(), "p.go", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	drawn := func(seed uint64) (keys []string) {
		o := options{seed: seed}
		for p := range o.draws(places) {
			keys = append(keys, p.Key())
		}
		return keys
	}
	one := drawn(1)
	if len(one) != len(places) || !cmp.Equal(one, drawn(1)) || cmp.Equal(one, drawn(2)) {
		t.Errorf("of %d places %d are drawn: %v", len(places), len(one), one)
	}
	places = slices.DeleteFunc(places, func(p *Place) bool { return p.Key() == one[0] })
	if kept := drawn(1); len(kept) != len(one)-1 || !slices.Equal(ofKind(kept, number), ofKind(one[1:],
		number)) {
		t.Errorf("without the first place the order is %v, was %v", kept, one)
	}
}

// TestDrawsAreApart: equal changes of one function are drawn as far apart as any others.
func TestDrawsAreApart(t *testing.T) {
	var places []*Place
	for i := range 400 {
		places = append(places, &Place{File: "p.go", Func: fmt.Sprintf("f%d", i/4), Kind: sign, Old: "+",
			New: "-", Nth: 1 + i%4})
	}
	o := options{seed: 1}
	twins, before := 0, ""
	for p := range o.draws(places) {
		if p.Func == before {
			twins++
		}
		before = p.Func
	}
	if twins > 12 { // 3 of 399 on average
		t.Errorf("%d of 400 draws are of the function before", twins)
	}
}

func ofKind(keys []string, kind string) []string {
	return slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return !strings.Contains(k, kind) })
}

// TestEquivalentsHaveReasons: and are places that there are.
func TestEquivalentsHaveReasons(t *testing.T) {
	if _, err := reasons("equivalent.txt", "a\nb\n\twhy\n"); err == nil || !strings.Contains(err.Error(),
		"a has no reason") {
		t.Error(err)
	}
	s, err := reasons("equivalent.txt", equivalentTable)
	if err != nil {
		t.Fatal(err)
	}
	m, err := golist.Load("../../..")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("../../..")
	places, err := placesIn(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	if bad := s.unknown(places, nil); len(bad) > 0 {
		t.Errorf("no such places: %s", strings.Join(bad, "\n"))
	}
}

// TestHardwareIsLeftOut: places of files that only hardware reaches are not drawn, which is said by file with
// the reason and in a sum; a file that is not there is an error.
func TestHardwareIsLeftOut(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"a.go", "b.go"} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := []*Place{{File: "a.go", Line: 1}, {File: "b.go"}, {File: "a.go", Line: 2}, {File: "c.go"}}
	var said strings.Builder
	left, err := reachable(&said, all, same{"a.go": "a GPU: make device."})
	if err != nil || len(left) != 2 || left[0].File != "b.go" || left[1].File != "c.go" {
		t.Errorf("%v %v", left, err)
	}
	const want = `a.go: 2 places are left out: a GPU: make device.
2 of 4 places are left out, which only hardware reaches (-hardware draws them)
`
	if said.String() != want {
		t.Errorf("%s", cmp.Diff(want, said.String()))
	}
	if _, err := reachable(&said, left, same{"x.go": "why"}); err == nil ||
		!strings.Contains(err.Error(), "hardware.txt") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestHardwareHasReasons: each with the command that reaches it, in files of this module with places.
func TestHardwareHasReasons(t *testing.T) {
	files, err := reasons("hardware.txt", hardwareTable)
	if err != nil {
		t.Fatal(err)
	}
	for name, why := range files {
		text, err := os.ReadFile(filepath.Join("../../..", name))
		if err != nil {
			t.Error(err)
			continue
		}
		if p, err := placesOf(token.NewFileSet(), name, text); err != nil || len(p) == 0 {
			t.Errorf("%s has no places: %v", name, err)
		}
		if !strings.Contains(why, "make ") {
			t.Errorf("%s: no command: %s", name, why)
		}
	}
}

// TestVerdicts: a mutant dies by the tests of its package or of one that imports it, or survives; what does
// not compile is neither, and a package that no test reaches is said to have none.
func TestVerdicts(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it compiles tests of several mutants")
	}
	m, places := module(t, map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.26\n",
		"a/a.go": "package a\n\nconst limit = 3\n\nfunc F(n int) int {\n\tif n > limit {\n\t\tn = 3\n\t}\n" +
			"\treturn n + 1\n}\n",
		"a/a_test.go": "package a\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) {\n" +
			"\tif F(1) != 2 {\n\t\tt.Fatal()\n\t}\n}\n",
		"b/b.go": "package b\n\nimport \"example.com/m/a\"\n\nfunc G() int { return a.F(9) }\n",
		"b/b_test.go": "package b\n\nimport \"testing\"\n\nfunc TestNine(t *testing.T) {\n" +
			"\tif G() != 4 {\n\t\tt.Fatal()\n\t}\n}\n",
		"alone/alone.go":  "package alone\n\nfunc H() int { return 1 }\n",
		"bad/bad.go":      "package bad\n\nfunc I(a int) int { return a + a }\n",
		"bad/bad_test.go": testOf("bad", "TestBad", "I(1) != 3"),
	})
	places = slices.DeleteFunc(places, func(p *Place) bool {
		return p.Kind != sign && p.Kind != shifted && p.Old != "n = 3" && p.Func != "H" && p.Func != "limit"
	})
	f, err := reductions.Resume[row](filepath.Join(t.TempDir(), "rows"))
	if err != nil {
		t.Fatal(err)
	}
	o := options{seconds: 60}
	if _, err := o.testAll(t.Context(), m, places, places, nil, f); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range latest(f.All) {
		key := r.Kind + " " + r.Old + " → " + r.New
		if r.Kind == sign {
			key += " " + r.Func
		}
		got[key] = r.Verdict + " " + r.By
	}
	for key, want := range map[string]string{"sign + → - F": "dies TestOne", "sign + → - I": "no tests ",
		"comparison shifted > → >=":  "survives ",
		"statement removed n = 3 → ": "dies TestNine", "number 1 → 2": "no tests ",
		"number 1 → 0": "no tests ", "number 3 → 2": "survives ", "number 3 → 4": "survives "} {
		if got[key] != want {
			t.Errorf("%s: %q, want %q", key, got[key], want)
		}
	}
}

// TestUndecidedGoOn: a mutant that the tests of its package let live is in the file before importers are
// asked, and a later call asks these alone.
func TestUndecidedGoOn(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it compiles tests of several mutants")
	}
	m, places := module(t, map[string]string{
		"go.mod":      "module example.com/m\n\ngo 1.26\n",
		"a/a.go":      "package a\n\nfunc F(n int) int {\n\treturn n + n\n}\n",
		"a/a_test.go": testOf("a", "TestOwn", "F(1) != 2"),
		"b/b.go":      "package b\n\nimport \"example.com/m/a\"\n\nfunc G() int { return a.F(9) }\n",
		"b/b_test.go": testOf("b", "TestNine", "G() != 18"),
	})
	f, err := reductions.Resume[row](filepath.Join(t.TempDir(), "rows"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Add(&row{Place: *places[0], Verdict: undecided}); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	o := options{seconds: 60}
	if n := show(&b, latest(f.All), &o); n != 0 || !strings.Contains(b.String(), "\n0 of 0 mutants survive\n"+
		"1 more are undecided") {
		t.Errorf("%d survivors: %s", n, b.String())
	}
	pending := map[string]*row{places[0].Key(): &f.All[0]}
	if _, err := o.testAll(t.Context(), m, places, places[:1], pending, f); err != nil {
		t.Fatal(err)
	}
	if r := latest(f.All); len(r) != 1 || r[0].Verdict != dies || r[0].By != "TestNine" {
		t.Errorf("%+v", r)
	}
}

// TestMemoryIsBounded: a test that takes more memory than it may fails; what it only reserves, as the address
// sanitizer does, costs nothing.
func TestMemoryIsBounded(t *testing.T) {
	if testing.Short() || runtime.GOOS != "linux" {
		t.Skip("-short, or no Linux: it compiles tests")
	}
	m, places := module(t, map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.26\n",
		"a.go":   "package a\n\nfunc F(n int) int { return n + n }\n",
		"a_test.go": `package a

import (
	"syscall"
	"testing"
	"time"
)

func TestReserve(t *testing.T) {
	if _, err := syscall.Mmap(-1, 0, 1<<36, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second / 2)
}

func TestTake(t *testing.T) {
	taken := make([]byte, 1<<28)
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		for i := 0; i < len(taken); i += 4096 {
			taken[i]++
		}
	}
}
`})
	s, err := switchedSuite(m, &options{}, places)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	s.memory = 1 << 27
	for test, want := range map[string]string{"TestReserve": "", "TestTake": "example.com/m"} {
		by, _, err := s.run(t.Context(), s.of("example.com/m"), "example.com/m", short,
			asked{only: test, limit: time.Minute})
		if err != nil || by != want {
			t.Errorf("%s: %q, %v; want %q", test, by, err, want)
		}
	}
}

// TestMeetingsAreKept: what tests do without a mutant is known to a later call, until a file of their package
// or of its testdata changes.
func TestMeetingsAreKept(t *testing.T) {
	m, places := module(t, map[string]string{
		"go.mod":          "module example.com/m\n\ngo 1.26\n",
		"a.go":            "package a\n\nfunc F(n int) int { return n + n }\n",
		"testdata/x/y":    "",
		"below/below.txt": "",
	})
	file := filepath.Join(t.TempDir(), "met")
	kept := func() *meeting {
		f, err := reductions.Resume[meeting](file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		s, err := newSuite(m, &options{known: &meetings{f}}, places)
		if err != nil {
			t.Fatal(err)
		}
		defer s.close()
		if got := s.known.find(s, "example.com/m", short); got != nil {
			return got
		}
		if err := s.known.keep(s, "example.com/m", short, &mode{meets: map[int][]string{1: {}, 2: {"TestA"}},
			usual: time.Second}); err != nil {
			t.Fatal(err)
		}
		return nil
	}
	for _, changed := range []string{"a.go", "testdata/x/y", "new_test.go", "below/below.txt"} {
		before := kept()
		if (before != nil) != (changed != "a.go") {
			t.Errorf("before %s changes: %v", changed, before)
		}
		if got := kept(); got == nil || got.Usual != time.Second || len(got.Meets) != 2 ||
			got.Meets[1] == nil {
			t.Errorf("before %s changes: %+v", changed, got)
		}
		if err := os.WriteFile(changed, []byte("// "+changed), 0o600); err != nil {
			t.Fatal(err)
		}
		if now := kept(); (now == nil) != (changed != "below/below.txt") {
			t.Errorf("after %s changed: %+v", changed, now)
		}
	}
}

// testOf is a file with a test that fails where a condition holds.
func testOf(pkg, name, fails string) string {
	return fmt.Sprintf("package %s\n\nimport \"testing\"\n\nfunc %s(t *testing.T) {\n\tif %s {\n"+
		"\t\tt.Fatal()\n\t}\n}\n", pkg, name, fails)
}

// TestMeetingsAreOfTests: of a mutant the tests that meet it are known, those below a function of the test,
// too, and run before the others.
func TestMeetingsAreOfTests(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it compiles tests")
	}
	m, places := module(t, map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.26\n",
		"a.go":   "package a\n\nfunc F(n int) int { return n + n }\n\nfunc G(n int) int { return -n }\n",
		"a_test.go": testOf("a", "TestOther", "G(1) != -1") +
			"\nfunc TestFirst(t *testing.T) { t.Run(\"sub\", func(*testing.T) { F(1) }) }\n" +
			"\nfunc TestLoop(t *testing.T) {\n\tfor range 9 {\n\t\tF(2)\n\t}\n}\n",
	})
	o := &options{}
	s, err := switchedSuite(m, o, places)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	mode, err := s.usual(t.Context(), s.of("example.com/m"), "example.com/m", short, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := map[int][]string{}
	for _, p := range places {
		if want[p.id] = []string{"TestFirst", "TestLoop"}; p.Func == "G" {
			want[p.id] = []string{"TestOther"}
		}
	}
	if diff := cmp.Diff(want, mode.meets); diff != "" {
		t.Error(diff)
	}
}

// TestSwitches: a place becomes its mutant where that is on, also inside another; a constant's declaration
// and what would not compile cannot.
func TestSwitches(t *testing.T) {
	const text = `package p

const limit = 4

func f(a uint8, b float64, s []int, name string) float64 {
	if a < 2*3 {
		s[0]++
	}
	name += "s" + name
	return b + limit
}
`
	const want = `package p

const _ = 4

func f(a uint8, b float64, s []int, name string) float64 {
	if !mutant_(4) { if (mutant_(5) && (a <= CONST) || !mutant_(5) && (((a < CONST) != mutant_(3)))) {
		if !mutant_(10) { s[mutantPick_[int](11, 0, 1)]++ }
	} }/*line :8:1*/
	if !mutant_(12) { name += "s" + name }
	return func() float64 { if mutant_(14) { return b - limit }; return b + limit }()
}
`
	constant := "2*3"
	for i, mutant := range []string{"3*3", "1*3", "2*4", "2*2"} {
		constant = fmt.Sprintf("mutantPick_[uint8](%d, %s, %s)", 6+i, constant, mutant)
	}
	m, places := module(t, map[string]string{"go.mod": "module example.com/m\n\ngo 1.26\n", "p.go": text})
	s, err := switchedSuite(m, &options{}, places)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	for i, p := range places {
		if alone := p.Kind == sign && p.Line == 9; (p.id == 0) != alone || p.id > 0 && p.id != i+1 {
			t.Errorf("number %d for %v", p.id, p)
		}
	}
	helper, err := os.ReadFile(s.file("0.go"))
	if err != nil {
		t.Fatal(err)
	}
	if v := "\nvar limit = mutantPick_[float64](2, mutantPick_[float64](1, 4, 5), 3)\n"; !strings.HasSuffix(
		string(helper), v) {
		t.Errorf("%s\nends without %s", helper, v)
	}
	got, err := os.ReadFile(s.file("1.go"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.ReplaceAll(want, "CONST", constant), string(got)); diff != "" {
		t.Error(diff)
	}
}

// TestSwitchesCompile: a file whose only place cannot be switched is left as it is, and so is a constant that
// tests name, where it may have another type.
func TestSwitchesCompile(t *testing.T) {
	m, places := module(t, map[string]string{"go.mod": "module example.com/m\n\ngo 1.26\n",
		"p.go":      "package p\n\nconst least = -1 << 31\n\nconst size = 7\n\nvar u uint8 = size\n",
		"q.go":      "package p\n\nfunc f(a int32) int32 {\n\treturn a * (least + 2*9)\n}\n",
		"p_test.go": "package p\n\nvar sizes = map[int]bool{size: true}\n"})
	places = slices.DeleteFunc(places, func(p *Place) bool { return p.Kind != sign && p.Old != "7" })
	s, err := switchedSuite(m, &options{}, places)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	wrong, err := s.goes(t.Context(), "test", "-c", "-o", s.file("p.test"), ".")
	if err != nil || wrong != nil || slices.ContainsFunc(places, func(p *Place) bool { return p.id != 0 }) {
		t.Errorf("%v, %v: numbers %v", wrong, err, places)
	}
}

// TestRulesAreHeldByTheNearest: the conversations of a rule's package are asked first, then its other tests,
// then those of importers; a rule has what the nearest of its mutants has.
func TestRulesAreHeldByTheNearest(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it compiles tests of several mutants")
	}
	check := func(call, want string) string {
		return "{\n\tif " + call + " != " + want + " {\n\t\tt.Fatal()\n\t}\n}\n"
	}
	const head = "import \"testing\"\n\nfunc "
	m, places := module(t, map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.26\n",
		"a/a.go": "package a\n\n// A is a.cc:1.\nfunc A() int { return 1 }\n\n" +
			"// B is a.cc:2.\nfunc B() int { return 2 }\n\n" +
			"// C is a.cc:3.\nfunc C() int { return 3 }\n\n// D is a.cc:4.\nfunc D() int { return 4 }\n",
		"a/testdata/rules/a.txt": "# A is 1 (a.cc:1).\n",
		"a/a_test.go": "package a\n\n" + head + "TestAll(t *testing.T) " + check("A()+B()", "3") +
			"\nfunc TestConversations(t *testing.T) " + check("A()", "1"),
		"b/b.go":      "package b\n\nimport \"example.com/m/a\"\n\nfunc C() int { return a.C() }\n",
		"b/b_test.go": "package b\n\n" + head + "TestC(t *testing.T) " + check("C()", "3"),
	})
	f, err := reductions.Resume[row](filepath.Join(t.TempDir(), "rows"))
	if err != nil {
		t.Fatal(err)
	}
	o := options{seconds: 60, cited: true, each: 2}
	drawn := slices.Collect(o.draws(places))
	if _, err := o.testAll(t.Context(), m, drawn, drawn, nil, f); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	showHeld(&b, latest(f.All))
	if want := "no case: a/a.go D a.cc:4\nby a story: 1 rules, 2 mutants\n" +
		"by another test of its package: 1 rules, 2 mutants\n" +
		"by a test of what imports it: 1 rules, 2 mutants\n" +
		"by none: 1 rules, 2 mutants\n"; want != b.String() {
		t.Errorf("%s\nwant\n%s", b.String(), want)
	}
}

// module writes a module, makes it the working directory, and finds the places of mutants in it.
func module(t *testing.T, files map[string]string) (*golist.Module, []*Place) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	m, err := golist.Load(".")
	if err != nil {
		t.Fatal(err)
	}
	places, err := placesIn(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m, places
}

// TestGivenPlaces: a table's changes are found in their files, once each.
func TestGivenPlaces(t *testing.T) {
	t.Chdir("../../..")
	places, err := givenPlaces("dev/cmd/mutants/review.txt")
	if err != nil || len(places) != 16 {
		t.Fatalf("%d places, %v", len(places), err)
	}
	if p := places[1]; p.String() != fmt.Sprintf("%s:%d 2: five ports in a virtual NIC instead of four "+
		"(NCCL_NET_MAX_DEVS_PER_NIC): given: maxPerVNIC = 4 → maxPerVNIC = 5", p.File, p.Line) {
		t.Error(p)
	}
	bad := filepath.Join(t.TempDir(), "bad.txt")
	if err := os.WriteFile(bad, []byte("# x\ngo.mod\n- simccl\n+ y\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := givenPlaces(bad); err == nil || !strings.Contains(err.Error(), "bad.txt:1: go.mod has") {
		t.Error(err)
	}
}
