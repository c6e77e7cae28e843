package envelope

import (
	"regexp"
	"strconv"
	"strings"
)

// form is a kind of line prefix.
type form struct {
	name string
	at   func() *regexp.Regexp
	// sure forms are removed without asking the reader if every line of a file has one: no other text begins
	// so.
	sure bool
	// rising forms have a number, the last group, that grows from line to line.
	rising bool
}

const (
	day   = `\d{4}[-/]\d\d[-/]\d\d`
	clock = `\d\d:\d\d:\d\d(?:[.,]\d{1,9})?`
	zone  = `(?:Z|[+-]\d\d:?\d\d| UTC| GMT)?`
	month = `(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)`
)

// forms in the order in which they are tried. A pattern ends with the blank that all
// programs write which use the form; further blanks are the line's own, unless all
// lines have one (uniform).
var forms = []form{
	{"quotes", pattern(`^ {0,3}>(?: |$)`), true, false},
	{"quotes", pattern(`^ {0,3}>>+`), true, false},
	{"CRI", pattern(`^` + day + `T` + clock + zone + ` std(?:out|err) [FP] `), true, false},
	{"times of mpirun", pattern(`^\w{3} ` + month + ` {1,2}\d{1,2} ` + clock + ` \d{4}(?::? )?`), true,
		false},
	{"times", pattern(`^\[?` + day + `[T ]` + clock + zone + `\]?:?(?: |\t|$)`), true, false},
	{"journal", pattern(`^` + month + ` {1,2}\d{1,2} ` + clock + ` [\w.-]+ [^\s:\[]+(?:\[\d+\])?: `), true,
		false},
	{"times", pattern(`^\[?` + month + ` {1,2}\d{1,2} ` + clock + `(?: \d{4})?\]?:?(?: |\t)`), true, false},
	{"times", pattern(`^\[?` + clock + `\]?:?(?: |\t|$)`), true, false},
	{"times", pattern(`^\[ *\d+\.\d{3,9}\] `), true, false},
	{"times", pattern(`^\d{9,10}\.\d{3,9}:?(?: |\t)`), true, false},
	{"tags of mpirun", pattern(`^\[[^\[\]\s]*\d+,\d+\](?:<std\w+>:?|:)`), true, false},
	{"tags of mpirun", pattern(`^<std(?:out|err)>:?`), true, false},
	{"tags of torchrun", pattern(`^\[[A-Za-z_]+\d+\]:`), true, false},
	{"tags of Ray or vLLM", pattern(`^\([^()]*pid=\d+[^()]*\)`), true, false},
	{"tags of vLLM", pattern(`^(?:INFO|WARNING|DEBUG|ERROR) \d\d-\d\d ` + clock + ` \[[^\[\]]*\] `), true,
		false},
	{"pods", pattern(`^\[?pod/[^\s\[\]]+\]? `), true, false},
	{"ranks of srun", pattern(`^ *\d{1,7}: `), true, false},
	{"numbers of grep", pattern(`^(\d+)[:-]`), true, true},
	{"numbers of grep", pattern(`^[^\s:]+[:-](\d+)[:-]`), true, true},
	{"numbers of cat or nl", pattern(`^ *(\d+)\t`), true, true},
	{"ranks of srun", pattern(`^ *\d{1,7}:`), true, false},
	{"names of Compose", pattern(`^[\w./-]+-\d+ +\|(?: |$)`), true, false},
	{"levels", pattern(`^(?:\[(?:INFO|DEBUG|WARN|WARNING|ERROR)\]|(?:INFO|DEBUG|WARN|WARNING|ERROR):?) `),
		false, false},
	{"ranks", pattern(`^\[\s*[^\[\]]{1,200}\]:?`), false, false},
	{"tags", pattern(`^\([^()]{1,200}\):?`), false, false},
	{"hosts", pattern(`^[\w.@/-]{1,200}: `), false, false},
	{"hosts", pattern(`^[\w.@/-]{1,200}:`), false, false},
	{"names of Compose", pattern(`^[\w./-]{1,200} +\|(?: |$)`), false, false},
	{"hosts", pattern(`^[\w.@/-]{1,200}(?:\t| )`), false, false},
	{"quotes", pattern(`^[|>]`), false, false},
	{"blanks", pattern(`^[ \t]+`), false, false},
}

const (
	maxPrefixes   = 12   // forms before one line
	maxPrefixText = 2048 // bytes of a line that are looked at
)

// Payload removes the prefixes of a line until begins accepts the rest, which may start with blanks. ok is
// false if it never does; at is the number of bytes removed.
func Payload(line string, begins func(rest string) bool) (rest string, at int, ok bool) {
	for range maxPrefixes {
		if begins(line[at:]) {
			return line[at:], at, true
		}
		n := one(line[at:])
		if n == 0 || at+n > maxPrefixText {
			return line, 0, false
		}
		at += n
	}
	return line, 0, false
}

// one returns the length of the first form at the beginning of a line, 0 for none.
func one(line string) int {
	head := line[:min(len(line), maxPrefixText)]
	for _, f := range forms {
		if m := f.at().FindStringIndex(head); m != nil && m[1] > 0 {
			return m[1]
		}
	}
	return 0
}

// minUniform is the least number of lines whose common form is a prefix.
const minUniform = 3

// uniform removes forms that begin every line which is not blank.
func (t *Text) uniform() {
	for i := range forms {
		f := &forms[i]
		if !f.sure || !t.all(f) {
			continue
		}
		blank := f.blankAfter(t.Lines)
		var out []Line
		goes := false // the line before goes on, as CRI says
		for _, l := range t.Lines {
			m := f.at().FindStringIndex(l.Text)
			if m == nil {
				out = append(out, l)
				continue
			}
			partial := f.name == "CRI" && strings.HasSuffix(l.Text[:m[1]], " P ")
			l.cut(m[1])
			if blank && l.Text != "" {
				l.cut(1)
			}
			if goes && len(out) > 0 {
				out[len(out)-1].Text += l.Text
			} else {
				out = append(out, l)
			}
			goes = partial
		}
		t.Lines = out
		t.removed(f.name)
	}
}

// blankAfter reports whether a blank follows the form in every line: it is the form's.
func (f *form) blankAfter(lines []Line) bool {
	for _, l := range lines {
		m := f.at().FindStringIndex(l.Text)
		if m != nil && m[1] < len(l.Text) && l.Text[m[1]] != ' ' {
			return false
		}
	}
	return true
}

// all reports whether all lines begin with a form, except blank lines and the separators of grep's matches.
func (t *Text) all(f *form) bool {
	n, last := 0, int64(-1)
	for _, l := range t.Lines {
		if strings.TrimSpace(l.Text) == "" || f.rising && l.Text == "--" {
			continue
		}
		m := f.at().FindStringSubmatch(l.Text[:min(len(l.Text), maxPrefixText)])
		if m == nil {
			return false
		}
		if f.rising {
			v, err := strconv.ParseInt(m[len(m)-1], 10, 64)
			if err != nil || v <= last {
				return false
			}
			last = v
		}
		n++
	}
	return n >= minUniform
}

// fences drops the lines that begin and end blocks of Markdown.
func (t *Text) fences() {
	out := t.Lines[:0:0]
	for _, l := range t.Lines {
		if s := strings.TrimSpace(l.Text); fence().MatchString(s) {
			t.removed("fences")
			continue
		}
		out = append(out, l)
	}
	t.Lines = out
}

var fence = pattern("^(?:`{3,}|~{3,})[\\w+{}. -]*$")
