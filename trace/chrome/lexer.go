package chrome

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/simccl/simccl/internal/termtext"
	"github.com/simccl/simccl/trace"
)

// SyntaxError reports a place where a file is not JSON and cannot be repaired.
type SyntaxError struct {
	Line, Column int
	Problem      string
}

// Error prints line, column and problem.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Problem)
}

type tokenKind uint8

const (
	tokEOF tokenKind = iota
	tokOpen
	tokClose
	tokList
	tokEndList
	tokColon
	tokComma
	tokString
	tokNumber
	tokWord // true, false, null, or a bare value that only NCCL's profiler writes
)

// token is one JSON token; text is valid until the next one.
type token struct {
	kind tokenKind
	text []byte
	line int
	col  int
}

// lexer splits JSON into tokens with their positions, in constant memory. Tokens are slices of the window,
// but for strings with escapes and what the window's end cuts.
type lexer struct {
	in     *bufio.Reader
	win    []byte // the buffered bytes
	i      int    // index of the next byte in win
	off    int64  // offset of win in the text
	line   int
	lineAt int64 // offset of the line's first byte
	from   int64 // offset of the present event, 0 between events
	buf    []byte
}

// offset returns the number of bytes read.
func (l *lexer) offset() int64 { return l.off + int64(l.i) }

// col returns the column of the last byte read.
func (l *lexer) col() int { return int(l.offset() - l.lineAt) }

// event records that an event begins here, or has ended.
func (l *lexer) event(begins bool) {
	l.from = 0
	if begins {
		l.from = l.offset()
	}
}

const (
	maxToken = 16 << 20
	window   = 1 << 18 // bytes of the text in memory
)

// newLexer returns a lexer with a window of size bytes of the text; 0: the usual size.
func newLexer(r io.Reader, size int) *lexer {
	return &lexer{in: bufio.NewReaderSize(r, cmp.Or(size, window)), line: 1}
}

func (l *lexer) fail(format string, args ...any) error {
	return &SyntaxError{l.line, l.col(), fmt.Sprintf(format, args...)}
}

// more reads on where the window is used up.
func (l *lexer) more() error {
	l.off += int64(len(l.win))
	_, _ = l.in.Discard(len(l.win)) // the bytes are buffered
	l.win, l.i = nil, 0
	_, err := l.in.Peek(1)
	l.win, _ = l.in.Peek(l.in.Buffered())
	return err
}

// byte reads a byte within a string.
func (l *lexer) byte() (byte, error) {
	if l.i == len(l.win) {
		if err := l.more(); err == io.EOF {
			return 0, l.fail("the file ends inside a string")
		} else if err != nil {
			return 0, err
		}
	}
	c := l.win[l.i]
	l.i++
	if c == '\n' {
		l.newline()
	}
	return c, nil
}

// newline begins a line at the next byte.
func (l *lexer) newline() { l.line, l.lineAt = l.line+1, l.offset() }

var punctuation = [256]tokenKind{'{': tokOpen, '}': tokClose, '[': tokList, ']': tokEndList, ':': tokColon,
	',': tokComma}

// take reads a byte where it is the next one of the window.
func (l *lexer) take(c byte) bool {
	if l.i < len(l.win) && l.win[l.i] == c {
		l.i++
		return true
	}
	return false
}

// blanks reads white space and returns the byte behind it, which is read as well.
func (l *lexer) blanks() (byte, error) {
	for blank := l.offset(); ; {
		for l.i < len(l.win) {
			c := l.win[l.i]
			l.i++
			switch c {
			case '\n':
				l.newline()
			case ' ', '\t', '\r':
			default:
				return c, nil
			}
		}
		if l.offset()-blank > maxBlank {
			return 0, &trace.LimitError{Line: l.line,
				Problem: fmt.Sprintf("more than %d MiB of white space", maxBlank>>20), Hint: "leave it out"}
		}
		if err := l.more(); err != nil {
			return 0, err
		}
	}
}

func (l *lexer) next() (token, error) {
	var c byte
	var err error
	if l.i < len(l.win) && l.win[l.i] > ' ' {
		c = l.win[l.i]
		l.i++
	} else if c, err = l.blanks(); err == io.EOF {
		return token{kind: tokEOF, line: l.line, col: l.col()}, nil
	} else if err != nil {
		return token{}, err
	}
	if l.offset()-l.from > maxEvent && l.from > 0 {
		return token{}, &trace.LimitError{Line: l.line,
			Problem: fmt.Sprintf("an event of more than %d MiB of text", maxEvent>>20)}
	}
	t := token{kind: punctuation[c], line: l.line, col: l.col()}
	switch {
	case t.kind != tokEOF:
		return t, nil
	case c == '"':
		t.kind = tokString
		t.text, err = l.str()
		return t, err
	}
	l.i--
	if t.text, err = l.word(); err != nil {
		return token{}, err
	}
	if t.kind = tokWord; isNumber(t.text) {
		t.kind = tokNumber
	}
	return t, nil
}

// word reads a byte, whichever it is, and on up to white space, a quote or punctuation.
func (l *lexer) word() ([]byte, error) {
	l.buf = l.buf[:0]
	for n := 1; ; n = 0 {
		rest := l.win[l.i:]
		for n < len(rest) && punctuation[rest[n]] == 0 && rest[n] > ' ' && rest[n] != '"' {
			n++
		}
		l.i += n
		if n < len(rest) && len(l.buf) == 0 {
			return rest[:n], nil
		}
		if l.buf = append(l.buf, rest[:n]...); len(l.buf) > maxToken {
			return nil, l.fail("a value of more than %d bytes", maxToken)
		}
		if n < len(rest) {
			return l.buf, nil
		}
		if err := l.more(); err == io.EOF {
			return l.buf, nil
		} else if err != nil {
			return nil, err
		}
	}
}

// isNumber reports whether a token is a JSON number; NCCL's bare 0x… is a word.
func isNumber(b []byte) bool {
	i := 0
	if b[0] == '-' {
		i = 1
	}
	digits := func() bool {
		from := i
		for i < len(b) && b[i] >= '0' && b[i] <= '9' {
			i++
		}
		return i > from
	}
	if !digits() {
		return false
	}
	if i < len(b) && b[i] == '.' {
		if i++; !digits() {
			return false
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return false
		}
	}
	return i == len(b)
}

// special marks the bytes at which the plain part of a string ends.
var special = func() (t [256]bool) {
	for c := range 0x20 {
		t[c] = true
	}
	t['"'], t['\\'] = true, true
	return t
}()

// str reads a string whose opening quote was read.
func (l *lexer) str() ([]byte, error) {
	for l.buf = l.buf[:0]; ; {
		rest, n := l.win[l.i:], 0
		for n < len(rest) && !special[rest[n]] {
			n++
		}
		l.i += n
		if n < len(rest) && rest[n] == '"' && len(l.buf) == 0 {
			l.i++
			return rest[:n], nil
		}
		if l.buf = append(l.buf, rest[:n]...); len(l.buf) > maxToken {
			return nil, l.fail("a string of more than %d bytes", maxToken)
		}
		switch c, err := l.byte(); {
		case err != nil:
			return nil, err
		case c == '"':
			return l.buf, nil
		case c == '\\':
			if err := l.escape(); err != nil {
				return nil, err
			}
		case special[c]:
			return nil, l.fail("control character %#x inside a string", c)
		default: // the first byte of the next window
			l.buf = append(l.buf, c)
		}
	}
}

var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func (l *lexer) escape() error {
	c, err := l.byte()
	if err != nil {
		return err
	}
	if e := escapes[c]; e != 0 {
		l.buf = append(l.buf, e)
		return nil
	}
	if c != 'u' {
		return l.fail("unknown escape %s", termtext.Quote("\\"+string(rune(c)), 0))
	}
	var hex [4]byte
	for i := range hex {
		if hex[i], err = l.byte(); err != nil {
			return err
		}
	}
	v, err := strconv.ParseUint(string(hex[:]), 16, 16)
	if err != nil {
		return l.fail("%s is no character", termtext.Quote("\\u"+string(hex[:]), 0))
	}
	l.buf = utf8.AppendRune(l.buf, rune(v)) // halves of surrogate pairs become U+FFFD
	return nil
}
