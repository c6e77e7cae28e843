package page

import (
	_ "embed"
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/simccl/simccl/app/report/chart"
)

//go:embed style.css
var style string

// Style is the style sheet of pages, and of drawings that are files of their own.
func Style() string { return style }

// Fact is a line of what a page says about itself.
type Fact struct{ Name, Value string }

// tile is a figure of the summary on top. Code is set apart as a command or a setting.
type tile struct {
	Name, Value, Note, Code string
	Alt                     bool // what is compared with, or is to be done
}

// Text escapes text for HTML.
func Text(s string) string { return strings.ReplaceAll(chart.EscapeXML(s), "+", "&#43;") }

// doc is a page in the making: a summary, contents, facts, and the sections in the
// order in which they are begun.
type doc struct {
	Title, Command string
	CSS            string // beside the common style
	Answer         string // the summary in one line, may be empty
	Tiles          []tile
	Facts          []Fact

	strings.Builder // of the sections: markup in which all text is escaped
	contents        []Fact
}

// Raw adds markup; arguments are numbers, or markup themselves.
func (d *doc) Raw(format string, args ...any) { fmt.Fprintf(d, format, args...) }

// Section begins a section, which ends where the next one begins.
func (d *doc) Section(id, title string) {
	d.end()
	d.contents = append(d.contents, Fact{id, title})
	d.Raw("<section><h2 id=\"%[1]s\">%[2]s</h2>\n", id, Text(title))
}

func (d *doc) end() {
	if len(d.contents) > 0 {
		d.WriteString("</section>\n")
	}
}

// wide is a frame that scrolls by itself, by keys too.
func wide(label, markup string) string {
	return `<div class="wide" tabindex="0" role="region" aria-label="` + Text(label) + `">` + markup +
		"</div>\n"
}

// Page returns the finished file.
func (d *doc) Page() string {
	d.end()
	var b strings.Builder
	fmt.Fprintf(&b, `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%s</title>
<style>
%s%s
</style>
</head>
<body>
<header>
<h1>%s</h1>
`, Text(d.Title), style, d.CSS, Text(d.Title))
	d.summary(&b)
	fmt.Fprintf(&b, "<p><code>%s</code></p>\n", option.ReplaceAllString(Text(d.Command), `<span>$0</span>`))
	if len(d.Facts) > 0 {
		b.WriteString("<dl>")
		for _, f := range d.Facts {
			fmt.Fprintf(&b, `<div><dt>%s</dt><dd>%s</dd></div>`, Text(f.Name), joined(f.Value))
		}
		b.WriteString("</dl>\n")
	}
	b.WriteString("</header>\n")
	if len(d.contents) > 1 {
		b.WriteString(`<nav aria-label="Contents"><ul>`)
		for _, c := range d.contents {
			fmt.Fprintf(&b, `<li><a href="#%s">%s</a></li>`, c.Name, Text(c.Value))
		}
		b.WriteString("</ul></nav>\n")
	}
	b.WriteString("<main>\n" + d.String() + "</main>\n</body>\n</html>\n")
	return b.String()
}

// unit is a number before its unit.
var unit = regexp.MustCompile(`(\d) ((?:[mnµu]?s|[GM]B/s|Gb/s|[KMG]?i?B|%|×)(?:[^\pL\d]|$))`)

// option is an option of a command line, after whose hyphens no line is to end.
var option = regexp.MustCompile(`(?:^|\B)--?[a-z][\w-]*`)

// htmlSpan is a range of numbers, as of equal links: GPU0–7.
var htmlSpan = regexp.MustCompile(`(\d–)(\d)`)

// joined is Text in which no line ends between a number and its unit, or within a range of numbers; one may
// end after the arrow of a link.
func joined(s string) string {
	s = htmlSpan.ReplaceAllString(unit.ReplaceAllString(Text(s), "$1\u00a0$2"), "$1\u2060$2")
	return strings.ReplaceAll(s, "→", "→<wbr>")
}

func (d *doc) summary(b *strings.Builder) {
	if d.Answer != "" {
		fmt.Fprintf(b, "<p class=\"answer\">%s</p>\n", joined(d.Answer))
	}
	if len(d.Tiles) == 0 {
		return
	}
	b.WriteString(`<div class="tiles">`)
	for _, t := range d.Tiles {
		class := ""
		if t.Alt {
			class = ` class="alt"`
		}
		fmt.Fprintf(b, `<div%s><b>%s</b><strong>%s</strong>`, class, Text(t.Name), joined(t.Value))
		if t.Note != "" {
			fmt.Fprintf(b, `<span>%s</span>`, joined(t.Note))
		}
		if t.Code != "" {
			fmt.Fprintf(b, `<span><code>%s</code></span>`, Text(t.Code))
		}
		b.WriteString(`</div>`)
	}
	b.WriteString("</div>\n")
}

// steps of the ramp of amounts: classes r0 (little) to r6 (much) of the style.
const steps = 7

// Amount is the step of the ramp for 0 to 1.
func Amount(x float64) int {
	if !(x > 0) {
		return 0
	}
	return int(min(steps-1, math.Floor(x*steps)))
}
