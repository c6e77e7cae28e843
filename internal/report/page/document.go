package page

import (
	"io"
	"strings"
)

// Section is a heading with what is drawn below it: markup in which all text is escaped.
type Section struct{ Title, Text, Markup string }

// WriteDocument writes a page of other drawings in the style of the report.
func WriteDocument(w io.Writer, title, command string, facts []Fact, sections []Section) error {
	l := &layout{Page: &Page{Title: title, Command: command, Facts: facts}}
	l.head("")
	for _, s := range sections {
		l.raw("<h2>%s</h2>", text(s.Title))
		if s.Text != "" {
			l.raw("<p>%s</p>", text(s.Text))
		}
		l.raw("<div class=\"wide\">%s</div>\n", s.Markup)
	}
	l.raw("</body>\n</html>\n")
	_, err := io.Copy(w, strings.NewReader(l.String()))
	return err
}

// Escape makes text markup.
func Escape(s string) string { return text(s) }
