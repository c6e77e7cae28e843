package envelope

import (
	"html"
	"strings"
)

// elements lists the elements that count as tags; others are text, such as [1,0]<stdout>:.
const elements = " html head body pre code div p span table thead tbody tr td th samp article section main " +
	"details summary blockquote " +
	"font b i u em strong a br hr center ul ol li h1 h2 h3 h4 h5 h6 title meta link script style button " +
	"svg path img nav header footer form input label !doctype !-- "

var entity = pattern(`&(?:lt|gt|amp|quot|apos|nbsp|#39|#34|#x27|#160|#xa0|#xA0);`)

// isPage reports whether a text begins as a page does.
func isPage(first string) bool {
	name, _ := element(first)
	return name != "" && name != "!--"
}

// element returns the name of the HTML element whose tag a text begins with, in lower case and with "/"
// before that of an end tag, and the length of the tag; 0 if the tag does not end on the line.
func element(text string) (name string, n int) {
	if !strings.HasPrefix(text, "<") {
		return "", 0
	}
	end := 1
	for end < len(text) && end < 12 && (text[end] == '/' && end == 1 || strings.IndexByte("!-", text[end]) >=
		0 || isAlnum(text[end])) {
		end++
	}
	name = strings.ToLower(text[1:end])
	if !strings.Contains(elements, " "+strings.TrimPrefix(name, "/")+" ") {
		return "", 0
	}
	return name, strings.IndexAny(text[end:], "<>") + end + 1
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// blanks replaces characters that would break or misalign a line.
var blanks = strings.NewReplacer("\u00a0", " ", "\n", " ", "\r", " ")

// html extracts the text of an HTML page, and replaces entities if the text was escaped. An XML document is
// neither: its entities are its own.
func (t *Text) html() {
	first := t.first()
	switch {
	case isPage(first):
		t.page()
		t.removed("HTML")
	case strings.HasPrefix(first, "<"):
		return
	}
	if strings.HasPrefix(first, "{") || strings.HasPrefix(first, "[{") {
		return
	}
	for i := range t.Lines {
		if l := &t.Lines[i]; strings.Contains(l.Text, "&") && entity().MatchString(l.Text) {
			l.Text = blanks.Replace(html.UnescapeString(l.Text))
			t.removed("HTML entities")
		}
	}
}

// page removes the tags of a page and the content of its scripts and styles. A block-level tag ends a line.
func (t *Text) page() {
	var out []Line
	hidden := "" // the tag that ends what is not shown
	for _, l := range t.Lines {
		var b strings.Builder
		put := func() {
			out = append(out, Line{l.Number, l.Column, b.String()})
			b.Reset()
		}
		text, tags := l.Text, 0
		for text != "" {
			at := strings.IndexByte(text, '<')
			if at < 0 {
				at = len(text)
			}
			if hidden == "" {
				b.WriteString(text[:at])
			}
			if text = text[at:]; text == "" {
				break
			}
			name, n := element(text)
			switch {
			case n == 0 || text[n-1] != '>': // not a tag, or not of this line
				if n = 1; hidden == "" {
					b.WriteByte('<')
				}
			case hidden != "":
				if name == hidden {
					hidden = ""
				}
			case name == "script" || name == "style":
				hidden = "/" + name
			case strings.Contains(" br /p /div /tr /li /pre /h1 /h2 /h3 /h4 /h5 /h6 ", " "+name+" ") &&
				b.Len() > 0:
				put()
			}
			text, tags = text[n:], tags+1
		}
		if b.Len() > 0 || tags == 0 && hidden == "" {
			put()
		}
	}
	t.Lines = out
}
