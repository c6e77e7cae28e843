package lint

import (
	"go/ast"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// phrase is wording that is not of the field, and the better wording.
type phrase struct {
	deny, write string // deny is a regular expression, of whole words
}

// phrases are not used in comments, strings, identifiers and documents.
var phrases = []phrase{
	{`tells?|telling|told`, `"reports", "says" or "returns"; "distinguishes"; of a user "warns"`},
	{`alike`, `"equal", "equivalent" or "in the same way"`},
	{`nobody|somebody|anybody|whoever`, `the subject: "no rank", "the caller", "the user"; or the passive`},
	{`patience`, `"timeout"`},
	{`stands?|stood`, `"is", "is listed" or "position"; for "stands for" write "represents" or "means"`},
	{`from (?:\d+|zero|one|two) on`, `"at least N", or "numbered from N"`},
	{`made[- ]up`, `"synthetic" or "fake"`},
	{`spokes(?:man|men|person)`, `"representative"`},
	{`strewn`, `"spread"`},
	{`mend(?:s|ed|ing)?`, `"repair"`},
	{`at hand`, `"available", "given" or "current"`},
	{`newcomers?`, `"new connection", "new rank" or "new reader"`},
	{`lets? go of`, `"releases", "unmaps" or "rejects"`},
	{`strangers?`, `"unknown peer" or "other users"`},
	{`(?:in )?(?:the )?company of`, `"with"`},
	{`hears?|heard`, `"is called with", "receives" or "detects"`},
	{`in the mean`, `"on average"`},
	{`many an?`, `"most" or "many"`},
	{`(?:one|ones|\d+|%d) (?:more )?like (?:it|them)`, `"equal ones" or "of this kind"`},
	{`under way`, `"in flight", "outstanding" or "in progress"`},
	{`gone`, `"down", "failed", "removed" or "closed"`},
	{`dear(?:er|est|ly)?`, `"expensive"`},
	{`other way (?:a)?round`, `"reverse", or "in the opposite direction"`},
	{`now and then`, `"periodically"`},
	{`taken for (?:equal|even|one|equivalent)`, `"treated as"`},
	{`speaks?|talks?`, `"uses", "sends" or "communicates"`},
	{`surveys?`, `"scan" or "fingerprint"`},
	{`forests?`, `"trees"`},
	{`go(?:es)? before`, `"takes precedence over", "overrides" or "precedes"`},
	{`comes? about`, `"is derived" or "results"`},
	{`guests?`, `"third-party module" or "caller"`},
	{`no way (?:from|to|between)|shortest ways?|equally (?:short|long) ways?`, `"route"`},
	{`a look`, `"a poll" or "a check"`},
	{`farewells?`, `"goodbye message" or "end"`},
	{`held up by nothing|holds? (?:nothing|anything|nobody) up`, `"never saturated" or "does not block"`},
	{`friends?|brood|kin`, `"group"`},
}

// wordException permits a phrase under a path, for a reason.
type wordException struct{ under, deny, why string }

var wordExceptions = []wordException{
	{"dev/lint/words.go", "", "it lists the phrases"},
}

// denied matches any phrase; eachDenied the one of each place in phrases.
var (
	denied     = regexp.MustCompile(`(?i)\b(?:` + strings.Join(patterns(), "|") + `)\b`)
	eachDenied = compiled()
)

func patterns() []string {
	out := make([]string, len(phrases))
	for i, p := range phrases {
		out[i] = p.deny
	}
	return out
}

func compiled() []*regexp.Regexp {
	out := make([]*regexp.Regexp, len(phrases))
	for i, p := range phrases {
		out[i] = regexp.MustCompile(`(?i)^(?:` + p.deny + `)$`)
	}
	return out
}

// deniedIn yields the offset of each phrase in a text of a file, the phrase and
// what to write instead.
func deniedIn(file, text string, found func(at int, phrase, write string)) {
	for _, m := range denied.FindAllStringIndex(text, -1) {
		words := text[m[0]:m[1]]
		for i, p := range phrases {
			if eachDenied[i].MatchString(words) && !excepted(file, p.deny) {
				found(m[0], words, p.write)
				break
			}
		}
	}
}

func excepted(file, deny string) bool {
	return slices.ContainsFunc(wordExceptions, func(x wordException) bool {
		return under(file, x.under) && (x.deny == "" || x.deny == deny)
	})
}

// checkWords reports phrases in comments, in the string literals of files that
// are not tests, and in the names that they declare.
func checkWords(r *reporter) {
	for _, f := range r.p.Files {
		say := func(pos token.Pos, kind, text string) {
			deniedIn(f.Name, text, func(at int, words, write string) {
				r.report(f, pos+token.Pos(at), "words", "%s has %q; write %s", kind, words, write)
			})
		}
		for _, group := range f.Syn.Comments {
			for _, c := range group.List {
				say(c.Pos(), "the comment", c.Text)
			}
		}
		if f.Test {
			continue
		}
		tags := map[*ast.BasicLit]bool{} // names in files and JSON are a contract
		ast.Inspect(f.Syn, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.Field:
				tags[n.Tag] = true
			case *ast.BasicLit:
				if n.Kind == token.STRING && !tags[n] {
					say(n.Pos(), "the text", n.Value)
				}
			}
			for _, id := range declared(n) {
				deniedIn(f.Name, camelWords(id.Name), func(_ int, words, write string) {
					r.report(f, id.Pos(), "words", "the name %s has %q; write %s", id.Name, words, write)
				})
			}
			return true
		})
	}
}

// declared lists the names that a node itself declares.
func declared(n ast.Node) []*ast.Ident {
	var out []*ast.Ident
	switch n := n.(type) {
	case *ast.FuncDecl:
		out = append(out, n.Name)
	case *ast.TypeSpec:
		out = append(out, n.Name)
	case *ast.ValueSpec:
		out = append(out, n.Names...)
	case *ast.Field:
		out = append(out, n.Names...)
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return nil
		}
		for _, e := range n.Lhs {
			if id, ok := e.(*ast.Ident); ok {
				out = append(out, id)
			}
		}
	case *ast.RangeStmt:
		if n.Tok != token.DEFINE {
			return nil
		}
		for _, e := range []ast.Expr{n.Key, n.Value} {
			if id, ok := e.(*ast.Ident); ok {
				out = append(out, id)
			}
		}
	}
	return out
}

// camelWords separates the words of an identifier by spaces: "toldOnce" is
// "told once".
func camelWords(name string) string {
	var b strings.Builder
	last := rune(0)
	for _, c := range name {
		if c == '_' || unicode.IsUpper(c) && !unicode.IsUpper(last) {
			b.WriteByte(' ')
		}
		if c != '_' {
			b.WriteRune(unicode.ToLower(c))
		}
		last = c
	}
	return b.String()
}

// CheckWords reports the phrases of the list of denied words in README.md and the pages below docs.
func CheckWords(fsys fs.FS) ([]Finding, error) {
	var found []Finding
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && !under(name, "docs"):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".md" || !under(name, "docs") && name != "README.md":
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(text), "\n") {
			deniedIn(name, line, func(at int, words, write string) {
				found = append(found, Finding{Pos: token.Position{Filename: name, Line: i + 1, Column: at +
					1}, Rule: "words",
					Message: "the document has \"" + words + "\"; write " + write})
			})
		}
		return nil
	})
	return found, err
}
