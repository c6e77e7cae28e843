package page

import (
	"fmt"
	"io"
)

// Section is a heading with what is drawn below it: markup in which all text is escaped.
type Section struct{ Title, Text, Markup string }

// WriteDocument writes a page of other drawings in the style of the report.
func WriteDocument(w io.Writer, title, command string, facts []Fact, sections []Section) error {
	d := &doc{Title: title, Command: command, Facts: facts}
	for i, s := range sections {
		d.Section(fmt.Sprintf("part%d", i+1), s.Title)
		if s.Text != "" {
			d.Raw("<p>%s</p>", text(s.Text))
		}
		d.WriteString(wide(s.Title, s.Markup))
	}
	_, err := io.WriteString(w, d.Page())
	return err
}

// Pre is text as it is printed, reached by Tab, since it scrolls where it is too wide.
func Pre(s string) string { return `<pre tabindex="0">` + text(s) + "</pre>" }

// Escape makes text markup.
func Escape(s string) string { return text(s) }
