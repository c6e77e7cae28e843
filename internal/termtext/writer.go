package termtext

import (
	"bytes"
	"io"
	"sync"
	"unicode/utf8"
)

// Writer passes text on with its control characters escaped, all but newline and
// tab, which lay a page out. What is to be printed in one line goes through
// Escape first. It is safe for concurrent use.
type Writer struct {
	to   io.Writer
	mu   sync.Mutex
	mark []byte // ESC and the secret word behind it
	rest []byte // an unfinished character, or the beginning of a mark
	buf  []byte
}

// NewWriter returns a Writer to w. If mark is not empty, an escape character followed by mark passes as a
// plain escape character: this distinguishes the program's own colours from those of its input, so mark must
// not be guessable.
func NewWriter(w io.Writer, mark string) *Writer {
	f := &Writer{to: w}
	if mark != "" {
		f.mark = append([]byte{0x1b}, mark...)
	}
	return f
}

// Unwrap returns the underlying writer, for output that must not be escaped.
func (f *Writer) Unwrap() io.Writer { return f.to }

// Write escapes p and writes it. A character that is not complete waits for the
// next call.
func (f *Writer) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.rest) == 0 && plain(p) {
		return f.to.Write(p)
	}
	f.rest = append(f.rest, p...)
	f.buf = f.buf[:0]
	f.rest = append(f.rest[:0], f.rest[f.escape(false):]...)
	if _, err := f.to.Write(f.buf); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes an incomplete character or escape at the end of the output.
func (f *Writer) Flush() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.rest) == 0 {
		return nil
	}
	f.buf = f.buf[:0]
	f.escape(true)
	f.rest = f.rest[:0]
	_, err := f.to.Write(f.buf)
	return err
}

// plain reports whether p is ASCII without control characters except line feed and tab.
func plain(p []byte) bool {
	for _, c := range p {
		if c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// escape appends rest to buf and returns how much of it was complete.
func (f *Writer) escape(last bool) int {
	in := f.rest
	for i := 0; i < len(in); {
		c := in[i]
		switch {
		case c == '\n' || c == '\t' || c >= ' ' && c < 0x7f:
			f.buf = append(f.buf, c)
			i++
			continue
		case c == 0x1b && len(f.mark) > 0:
			if bytes.HasPrefix(in[i:], f.mark) {
				f.buf = append(f.buf, 0x1b)
				i += len(f.mark)
				continue
			}
			if !last && bytes.HasPrefix(f.mark, in[i:]) {
				return i
			}
		case c >= utf8.RuneSelf && !last && !utf8.FullRune(in[i:]):
			return i
		}
		r, n := utf8.DecodeRune(in[i:])
		if Control(r) {
			f.buf = appendEscaped(f.buf, r)
		} else {
			f.buf = utf8.AppendRune(f.buf, r) // U+FFFD for what is no UTF-8
		}
		i += n
	}
	return len(in)
}
