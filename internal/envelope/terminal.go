package envelope

import (
	"regexp"
	"strings"
	"sync"
)

// pattern returns a function that compiles an expression when it is first called.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

var (
	// Control sequences (ECMA-48): CSI with parameters and a final byte, OSC, DCS and
	// the like up to BEL or ST, other sequences of two or three characters.
	escape = pattern("(?:\x1b\\[|\u009b)[0-?]*[ " +
		"-/]*[@-~]|\x1b[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\)?|\x1b[ -/]*[0-~]")
	// The same as cat -v, JSON, Python and shells write the escape character.
	written = pattern(`(?:\^\[|\\x1[bB]|\\u001[bB]|\\033|\\e|` + "\u241b" +
		`)(?:\[[0-9;?]*[A-Za-z]|\([A-Z0-9])`)
	// Colours whose escape character was lost in pasting.
	bare = pattern(`\[(?:\d{1,3}(?:;\d{1,3})*)m`)
)

// terminal removes escape sequences for cursor and colours. Colours that have lost their escape character are
// removed only if one of them is the reset, "[0m".
func (t *Text) terminal() {
	ended := false
	for i := range t.Lines {
		ended = ended || strings.Contains(t.Lines[i].Text, "[0m") && bare().MatchString(t.Lines[i].Text)
	}
	for i := range t.Lines {
		l := &t.Lines[i]
		text := l.Text
		if strings.ContainsAny(text, "\x1b\u009b") {
			text = escape().ReplaceAllString(text, "")
		}
		if strings.ContainsAny(text, "^\\\u241b") {
			text = written().ReplaceAllString(text, "")
		}
		if ended && strings.Contains(text, "m") {
			text = bare().ReplaceAllString(text, "")
		}
		if strings.ContainsAny(text, unseen) {
			text = controls(text)
		}
		if text != l.Text {
			t.removed("terminal escapes")
			l.Text = text
		}
	}
}

// unseen are characters that are not seen, and the blank that does not break.
const unseen = "\b\x00\a\x0e\x0f\x1b\x7f\u00a0\u200b\ufeff"

// controls applies backspaces, makes blanks of those that do not break, and drops
// the others.
func controls(text string) string {
	var out []rune
	for _, r := range text {
		switch {
		case r == '\b':
			out = out[:max(0, len(out)-1)]
		case r == '\u00a0':
			out = append(out, ' ')
		case !strings.ContainsRune(unseen, r):
			out = append(out, r)
		}
	}
	return string(out)
}
