package envelope

import (
	"slices"
	"strings"
)

// Text is the lines of a file without their envelopes.
type Text struct {
	Lines []Line
	// Removed lists the envelopes that were removed, in order: "gzip", "terminal escapes", "JSON lines", ….
	Removed []string

	again bool // something was taken away in this pass
}

// Line is one line of text with the position of its first byte. Column counts bytes from 1 in the line of the
// unpacked file; within the text it is exact if nothing was removed from the middle of the line.
type Line struct {
	Number, Column int
	Text           string
}

// MaxBytes is the largest size of an unpacked file.
const MaxBytes = 1 << 30

// String returns the text with a line feed after each line.
func (t *Text) String() string {
	var b strings.Builder
	for _, l := range t.Lines {
		b.WriteString(l.Text)
		b.WriteByte('\n')
	}
	return b.String()
}

func (t *Text) removed(what string) {
	t.again = true
	if !slices.Contains(t.Removed, what) {
		t.Removed = append(t.Removed, what)
	}
}

// Open reads a file. XML and JSON documents stay as they are but for compression,
// encoding and line ends: of <system>…</system> no entity is replaced.
func Open(data []byte) (Text, error) { return open(data, MaxBytes) }

// open is Open with another limit on the unpacked size, in bytes.
func open(data []byte, most int) (Text, error) {
	var t Text
	data, err := t.unpack(data, most)
	if err != nil {
		return Text{}, err
	}
	t.split(t.decode(data))
	t.terminal()
	for range maxNested { // a quote in a fence, a JSON line with time and tag
		t.again = false
		t.html()
		t.jsonLines()
		t.fences()
		t.uniform()
		if !t.again {
			break
		}
	}
	return t, nil
}

// maxNested is the maximum nesting of envelopes.
const maxNested = 6

// split splits text into lines. A carriage return ends a line like a line feed; it counts as a line of the
// file only if the file has no line feeds.
func (t *Text) split(text string) {
	if text == "" {
		return
	}
	old := !strings.Contains(text, "\n")
	if strings.Contains(text, "\r\n") {
		t.removed("CRLF")
	}
	number := 0
	for whole := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		number++
		whole = strings.TrimSuffix(whole, "\r")
		column := 1
		for part := range strings.SplitSeq(whole, "\r") {
			if part != "" || column == 1 {
				t.Lines = append(t.Lines, Line{number, column, part})
			}
			if column += len(part) + 1; old {
				number, column = number+1, 1
			}
		}
		if strings.Contains(whole, "\r") {
			t.removed("carriage returns")
		}
	}
}

// first returns the first line that is not blank, without blanks around it.
func (t *Text) first() string {
	for _, l := range t.Lines {
		if s := strings.TrimSpace(l.Text); s != "" {
			return s
		}
	}
	return ""
}

// cut removes n bytes from the beginning of a line.
func (l *Line) cut(n int) {
	l.Text = l.Text[n:]
	l.Column += n
}
