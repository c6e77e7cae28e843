package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/simccl/simccl/dev/golist"
)

// typesOf is what the compiler knows of a file's expressions, and how the file names packages.
type typesOf struct {
	info  *types.Info
	own   *types.Package
	names map[*types.Package]string // that the file imports
	tests map[string]bool           // what the package's tests name
}

// text is the type of an expression as the file writes it, or nothing where it cannot.
func (t *typesOf) text(e ast.Expr) string {
	typ := t.info.Types[e].Type
	if typ == nil {
		return ""
	}
	known := true
	s := types.TypeString(types.Default(typ), func(p *types.Package) string {
		if p == t.own {
			return ""
		}
		known = known && t.names[p] != ""
		return t.names[p]
	})
	if !known {
		return ""
	}
	return s
}

// switchable sets what of the current node is switched: a constant expression as a whole, a condition, a sum,
// a statement. A constant's declaration cannot be.
func (w *walk) switchable(p *Place) {
	at := len(w.stack) - 1
	e, ok := w.stack[at].(ast.Expr)
	if s, is := w.stack[at].(*ast.IfStmt); is && p.Kind == negated {
		e, ok = s.Cond, true
	}
	if !ok {
		p.from, p.to = w.file.Offset(w.stack[at].Pos()), w.file.Offset(w.stack[at].End())
		return
	}
	constant := func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		return ok && w.types.info.Types[e].Value != nil
	}
	for ; constant(e) && constant(w.stack[at-1]); at-- {
		e = w.stack[at-1].(ast.Expr)
	}
	if i := slices.IndexFunc(w.stack, func(n ast.Node) bool {
		d, ok := n.(*ast.GenDecl)
		return ok && d.Tok == token.CONST
	}); i >= 0 {
		w.declared(p, w.stack[i+1].(*ast.ValueSpec))
		return
	}
	if p.Kind == number || p.Kind == sign {
		if p.typed = w.types.text(e); p.typed == "" || p.Kind == sign && p.typed == "string" {
			return
		}
		p.constant = constant(e)
	}
	p.from, p.to = w.file.Offset(e.Pos()), w.file.Offset(e.End())
}

// declared sets how a constant becomes a variable: one of this package without its tests, of one type
// wherever it is used, whose value names nothing of other packages.
func (w *walk) declared(p *Place, s *ast.ValueSpec) {
	if len(s.Names) != 1 || len(s.Values) != 1 || s.Names[0].IsExported() || w.types.tests[s.Names[0].Name] {
		return
	}
	value := s.Values[0]
	from, to := w.file.Offset(value.Pos()), w.file.Offset(value.End())
	is := string(w.text[from:to])
	typed := w.types.uses(s.Names[0])
	if typed == "" || strings.ContainsFunc(is, unicode.IsLetter) {
		return
	}
	p.name, p.is, p.typed = s.Names[0].Name, is, typed
	p.becomes = string(w.text[from:p.offset]) + p.New + string(w.text[p.end:to])
	p.from, p.to = w.file.Offset(s.Names[0].Pos()), w.file.Offset(s.Names[0].End())
}

// uses is the type that a constant has wherever it is used, or nothing.
func (t *typesOf) uses(name *ast.Ident) (typed string) {
	is := t.info.Defs[name]
	for use, o := range t.info.Uses {
		if o != is {
			continue
		}
		s := t.text(use)
		if typed != "" && s != typed {
			return ""
		}
		typed = s
	}
	return typed
}

// A source is a file whose mutants are switched while the program runs.
type source struct {
	text   []byte
	places []*Place
}

// render is the text from one offset to another with the switches of places inside it, not of that whole.
func (s *source) render(from, to int) string {
	inner := slices.DeleteFunc(slices.Clone(s.places), func(p *Place) bool {
		return p.from < from || p.to > to || p.from == from && p.to == to
	})
	slices.SortStableFunc(inner, func(a, b *Place) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to))
	})
	var b strings.Builder
	for i := 0; i < len(inner); {
		p := inner[i]
		b.Write(s.text[from:p.from])
		out := s.render(p.from, p.to)
		for ; i < len(inner) && inner[i].from < p.to; i++ {
			if q := inner[i]; q.from == p.from && q.to == p.to {
				out = s.wrap(q, out)
			}
		}
		b.WriteString(out)
		if from = p.to; strings.Contains(out, "\n") { // which a mutant may have twice
			fmt.Fprintf(&b, "/*line :%d:1*/", s.line(from))
		}
	}
	b.Write(s.text[from:to])
	return b.String()
}

// wrap is an expression or statement that becomes its mutant where that is on.
func (s *source) wrap(p *Place, text string) string {
	mutant := func() string {
		return s.render(p.from, p.offset) + p.New + s.render(p.end, p.to)
	}
	switch {
	case p.name != "":
		return "_"
	case p.Kind == removed:
		return fmt.Sprintf("if !mutant_(%d) { %s }", p.id, text)
	case p.Kind == negated:
		return fmt.Sprintf("((%s) != mutant_(%d))", text, p.id)
	case p.constant:
		return fmt.Sprintf("mutantPick_[%s](%d, %s, %s%s%s)", p.typed, p.id, text, s.text[p.from:p.offset],
			p.New, s.text[p.end:p.to])
	case p.Kind == sign:
		return fmt.Sprintf("func() %s { if mutant_(%d) { return %s }; return %s }()", p.typed, p.id,
			mutant(), text)
	}
	return fmt.Sprintf("(mutant_(%[1]d) && (%[2]s) || !mutant_(%[1]d) && (%[3]s))", p.id, mutant(), text)
}

// helper is what the switched files of a package call: which mutant is on is in a file, since tests clear
// the environment of programs that they start. In a run without one, the mutants that are met are listed,
// with the test on whose stack they are: at the first call, the second, the fourth and so on, so that the
// tests that come later have their turn, and a loop costs next to nothing.
const helper = `package %s

import (
	"os"
	runtime_ "runtime"
	"strconv"
	strings_ "strings"
	"sync/atomic"
)

var mutantOn_ = func() int {
	text, _ := os.ReadFile(%q)
	n, _ := strconv.Atoi(string(text))
	return n
}()

var mutantMet_ [%d]atomic.Uint64

func mutant_(id int) bool {
	if mutantOn_ < 0 {
		if n := mutantMet_[id].Add(1); n&(n-1) == 0 {
			mutantNote_(id)
		}
	}
	return id == mutantOn_
}

func mutantNote_(id int) {
	var calls [256]uintptr
	test := ""
	frames := runtime_.CallersFrames(calls[:runtime_.Callers(2, calls[:])])
	for more := true; more && test == ""; {
		var f runtime_.Frame
		f, more = frames.Next()
		path := strings_.Split(f.Function[strings_.LastIndex(f.Function, "/")+1:], ".")
		if len(path) > 1 && strings_.HasPrefix(path[1], "Test") && strings_.HasSuffix(f.File, "_test.go") {
			test = path[1]
		}
	}
	if f, err := os.OpenFile(%q, os.O_APPEND|os.O_WRONLY, 0o600); err == nil {
		f.WriteString(strconv.Itoa(id) + " " + test + "\n")
		f.Close()
	}
}

func mutantPick_[T any](id int, is, mutant T) T {
	if mutant_(id) {
		return mutant
	}
	return is
}
`

// switcher writes files whose mutants are switched.
type switcher struct {
	m     *golist.Module
	fset  *token.FileSet
	from  types.Importer
	texts map[string]string
}

func newSwitcher(m *golist.Module, packages []string) (*switcher, error) {
	type listed struct{ ImportPath, Export string }
	all, err := golist.Packages[listed](golist.Query{Flags: []string{"-deps", "-export"},
		Patterns: append(packages, "os", "runtime", "strconv", "strings", "sync/atomic")}) // the helper's
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for _, l := range all {
		exports[l.ImportPath] = l.Export
	}
	w := &switcher{m: m, fset: token.NewFileSet(), texts: map[string]string{}}
	w.from = importer.ForCompiler(w.fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	return w, nil
}

// switchedSuite compiles tests with the places that can be switched, which get their numbers.
func switchedSuite(m *golist.Module, o *options, places []*Place) (*suite, error) {
	byPackage := map[string]map[string]*Place{}
	for i, p := range places {
		p.id = i + 1
		name := p.pkg(m)
		if byPackage[name] == nil {
			byPackage[name] = map[string]*Place{}
		}
		byPackage[name][p.Key()] = p
	}
	w, err := newSwitcher(m, slices.Collect(maps.Keys(byPackage)))
	if err != nil {
		return nil, err
	}
	s, err := newSuite(m, o, places)
	if err != nil {
		return nil, err
	}
	for name, of := range byPackage {
		if err := w.write(name, of, s, len(places)); err != nil {
			return s, err
		}
	}
	return s, s.replace(w.texts)
}

// parsed is a file of a package.
type parsed struct {
	source
	name string
	file *ast.File
}

// write writes the files of a package with switches. A place that does not compile so has no number.
func (w *switcher) write(name string, of map[string]*Place, s *suite, n int) error {
	dir := strings.TrimPrefix(strings.TrimPrefix(name, w.m.Path), "/")
	var files []*parsed
	for _, f := range w.m.Packages[name].GoFiles {
		p := &parsed{name: filepath.Join(dir, f)}
		var err error
		if p.text, err = os.ReadFile(p.name); err != nil {
			return err
		}
		if p.file, err = w.parse(p.name, p.text); err != nil {
			return err
		}
		files = append(files, p)
	}
	if err := w.places(name, files, of); err != nil {
		return err
	}
	help := fmt.Sprintf(helper, files[0].file.Name.Name, s.file("on"), n+1, s.file("met"))
	return w.compile(name, filepath.Join(dir, "mutants_.go"), help, files)
}

func (w *switcher) parse(name string, text []byte) (*ast.File, error) {
	return parser.ParseFile(w.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
}

// places finds the places of a package again, with what the types say of them.
func (w *switcher) places(name string, files []*parsed, of map[string]*Place) error {
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Implicits: map[ast.Node]types.Object{},
		Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	var all []*ast.File
	for _, f := range files {
		all = append(all, f.file)
	}
	own, err := (&types.Config{Importer: w.from}).Check(name, w.fset, all, info)
	if err != nil {
		return err
	}
	named, err := w.namedByTests(w.m.Packages[name].Dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		t := &typesOf{info: info, own: own, names: map[*types.Package]string{}, tests: named}
		for _, i := range f.file.Imports {
			o := info.Implicits[i]
			if i.Name != nil {
				o = info.Defs[i.Name]
			}
			if n, ok := o.(*types.PkgName); ok {
				t.names[n.Imported()] = n.Name()
			}
		}
		for _, p := range places(w.fset, f.file, f.name, f.text, t) {
			q := of[p.Key()]
			if q == nil {
				continue
			}
			if p.to == 0 {
				q.id = 0
				continue
			}
			q.switching = p.switching
			f.source.places = append(f.source.places, q)
		}
	}
	return nil
}

// namedByTests are the identifiers of a directory's test files.
func (w *switcher) namedByTests(dir string) (map[string]bool, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	named := map[string]bool{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		f, err := w.parse(name, text)
		if err != nil {
			return nil, err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				named[id.Name] = true
			}
			return true
		})
	}
	return named, err
}

// compile renders the files until their types are right: what an error is about is not switched.
func (w *switcher) compile(pkg, helper, help string, files []*parsed) error {
	for {
		var errs []types.Error
		conf := types.Config{Importer: w.from, Error: func(err error) {
			if e := (types.Error{}); errors.As(err, &e) {
				errs = append(errs, e)
			}
		}}
		w.texts[helper] = help + variables(files)
		first, err := w.parse(helper, []byte(w.texts[helper]))
		if err != nil {
			return err
		}
		all := []*ast.File{first}
		for _, f := range files {
			text := f.render(0, len(f.text))
			again, err := w.parse(f.name, []byte(text))
			if err != nil {
				return err
			}
			all = append(all, again)
			if w.texts[f.name] = text; len(f.source.places) == 0 {
				delete(w.texts, f.name) // one of a round before, with what is not switched after all
			}
		}
		if _, err := conf.Check(pkg, w.fset, all, nil); err == nil || !drop(files, errs) {
			return err
		}
	}
}

// variables are the declarations of constants that can be switched.
func variables(files []*parsed) string {
	values := map[string]string{}
	for _, f := range files {
		for _, p := range f.source.places {
			if p.name != "" {
				values[p.name] = fmt.Sprintf("mutantPick_[%s](%d, %s, %s)", p.typed, p.id,
					cmp.Or(values[p.name], p.is), p.becomes)
			}
		}
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&b, "\nvar %s = %s\n", name, values[name])
	}
	return b.String()
}

// drop takes out what errors are about: the constants that they name, or the smallest place on their line;
// where neither is there, every constant, or all. It says whether there was any.
func drop(files []*parsed, errs []types.Error) (some bool) {
	without := func(of func(f *parsed) []*Place) {
		for _, f := range files {
			for _, p := range of(f) {
				p.id, some = 0, true
			}
			f.source.places = slices.DeleteFunc(f.source.places, func(p *Place) bool { return p.id == 0 })
		}
	}
	constants := func(f *parsed) []*Place {
		return slices.DeleteFunc(slices.Clone(f.source.places), func(p *Place) bool { return p.name == "" })
	}
	for _, e := range errs {
		at := e.Fset.Position(e.Pos)
		words := strings.FieldsFunc(e.Msg, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r)
		})
		named := func(f *parsed) []*Place {
			return slices.DeleteFunc(constants(f), func(p *Place) bool {
				return !slices.Contains(words, p.name)
			})
		}
		if slices.ContainsFunc(files, func(f *parsed) bool { return len(named(f)) > 0 }) {
			without(named)
			continue
		}
		without(func(f *parsed) []*Place {
			if f.name != at.Filename {
				return nil
			}
			return f.least(at.Line)
		})
	}
	if !some {
		without(constants)
	}
	if !some {
		without(func(f *parsed) []*Place { return f.source.places })
	}
	return some
}

func (s *source) line(offset int) int { return 1 + bytes.Count(s.text[:offset], []byte("\n")) }

// least is the smallest place on a line.
func (s *source) least(line int) (least []*Place) {
	for _, p := range s.places {
		if s.line(p.from) <= line && line <= s.line(p.to) &&
			(least == nil || p.to-p.from < least[0].to-least[0].from) {
			least = []*Place{p}
		}
	}
	return least
}
