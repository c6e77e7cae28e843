package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func drawFuncs() {
	n := flag.Int("n", 40, "how many are drawn; 0: all, in the order of files")
	seed := flag.Uint64("seed", 1, "equal seeds and equal trees draw equal functions")
	lines := flag.Int("lines", 8, "functions shorter than that are left out")
	types := flag.Bool("types", false,
		"draw from all documented declarations: functions of any length, types")
	bodies := flag.Bool("bodies", false, "print the bodies, too")
	flag.Parse()
	if err := draw(os.Stdout, flag.Args(), *n, *seed, *lines, *types, *bodies); err != nil {
		fmt.Fprintln(os.Stderr, "draw:", err)
		os.Exit(1)
	}
}

// drawn is a declaration with its comment, as printed.
type drawn struct {
	file string
	line int
	text string
}

func draw(w io.Writer, roots []string, n int, seed uint64, lines int, types, bodies bool) error {
	if len(roots) == 0 {
		return errors.New("name at least one folder, such as packet, or . for the whole tree")
	}
	var all []drawn
	for _, root := range roots {
		err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && name != root && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")):
				return fs.SkipDir
			case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			list, err := declarations(name, lines, types, bodies)
			all = append(all, list...)
			return err
		})
		if err != nil {
			return err
		}
	}
	if n > 0 {
		chance := rand.New(rand.NewPCG(seed, seed))
		chance.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = all[:min(n, len(all))]
		slices.SortFunc(all, func(a, b drawn) int {
			return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line))
		})
	}
	for i, x := range all {
		if _, err := fmt.Fprintf(w, "%d. %s:%d\n%s\n\n", i+1, x.file, x.line, x.text); err != nil {
			return err
		}
	}
	return nil
}

// declarations lists those functions of a file that have at least so many lines; with types, all
// functions and types that have a comment.
func declarations(name string, lines int, types, bodies bool) (out []drawn, err error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	for _, d := range f.Decls {
		from, to := fset.Position(d.Pos()).Line, fset.Position(d.End()).Line
		comment := (*ast.CommentGroup)(nil)
		switch d := d.(type) {
		case *ast.FuncDecl:
			if !types && to-from+1 < lines || types && d.Doc == nil {
				continue
			}
			if comment = d.Doc; !bodies {
				d.Body = nil
			}
			d.Doc = nil
		case *ast.GenDecl:
			if !types || d.Doc == nil || d.Tok != token.TYPE {
				continue
			}
			comment, d.Doc = d.Doc, nil
		}
		var text strings.Builder
		for i := 0; comment != nil && i < len(comment.List); i++ {
			text.WriteString(comment.List[i].Text + "\n")
		}
		var node any = d
		if bodies { // with the comments inside
			node = &printer.CommentedNode{Node: d, Comments: f.Comments}
		}
		if err := printer.Fprint(&text, fset, node); err != nil {
			return nil, err
		}
		out = append(out, drawn{name, from, text.String()})
	}
	return out, nil
}
