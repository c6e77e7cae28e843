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

// lexer splits JSON into tokens with their positions, in constant memory.
type lexer struct {
	in   *bufio.Reader
	line int
	col  int
	off  int64 // bytes read
	from int64 // offset of the present event, 0 between events
	buf  []byte
}

// event records that an event begins here, or has ended.
func (l *lexer) event(begins bool) {
	l.from = 0
	if begins {
		l.from = l.off
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
	return &SyntaxError{l.line, l.col, fmt.Sprintf(format, args...)}
}

func (l *lexer) byte() (byte, error) {
	c, err := l.in.ReadByte()
	if err != nil {
		return 0, err
	}
	l.off++
	if c == '\n' {
		l.line, l.col = l.line+1, 0
	} else {
		l.col++
	}
	return c, nil
}

func (l *lexer) back() {
	_ = l.in.UnreadByte() // only after a successful read, and never of a newline
	l.col--
	l.off--
}

var punctuation = [256]tokenKind{'{': tokOpen, '}': tokClose, '[': tokList, ']': tokEndList, ':': tokColon,
	',': tokComma}

func (l *lexer) next() (token, error) {
	var c byte
	var err error
	for blank := l.off; ; {
		if c, err = l.byte(); err == io.EOF {
			return token{kind: tokEOF, line: l.line, col: l.col}, nil
		} else if err != nil {
			return token{}, err
		}
		if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			break
		}
		if l.off-blank > maxBlank {
			return token{}, &trace.LimitError{Line: l.line,
				Problem: fmt.Sprintf("more than %d MiB of white space", maxBlank>>20), Hint: "leave it out"}
		}
	}
	if l.off-l.from > maxEvent && l.from > 0 {
		return token{}, &trace.LimitError{Line: l.line,
			Problem: fmt.Sprintf("an event of more than %d MiB of text", maxEvent>>20)}
	}
	t := token{line: l.line, col: l.col}
	if k := punctuation[c]; k != 0 {
		t.kind = k
		return t, nil
	}
	if c == '"' {
		t.kind = tokString
		t.text, err = l.str()
		return t, err
	}
	l.buf = append(l.buf[:0], c)
	for {
		if c, err = l.byte(); err == io.EOF {
			break
		} else if err != nil {
			return token{}, err
		}
		if punctuation[c] != 0 || c <= ' ' || c == '"' {
			if c == '\n' { // white space: a newline cannot be pushed back with its position
				break
			}
			l.back()
			break
		}
		if l.buf = append(l.buf, c); len(l.buf) > maxToken {
			return token{}, l.fail("a value of more than %d bytes", maxToken)
		}
	}
	t.text, t.kind = l.buf, tokWord
	if isNumber(l.buf) {
		t.kind = tokNumber
	}
	return t, nil
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

func (l *lexer) str() ([]byte, error) {
	l.buf = l.buf[:0]
	for {
		c, err := l.byte()
		if err == io.EOF {
			return nil, l.fail("the file ends inside a string")
		} else if err != nil {
			return nil, err
		}
		switch {
		case c == '"':
			return l.buf, nil
		case c == '\\':
			if err := l.escape(); err != nil {
				return nil, err
			}
		case c < ' ':
			return nil, l.fail("control character %#x inside a string", c)
		default:
			l.buf = append(l.buf, c)
		}
		if len(l.buf) > maxToken {
			return nil, l.fail("a string of more than %d bytes", maxToken)
		}
	}
}

// cut converts io.EOF inside a string to a SyntaxError.
func (l *lexer) cut(err error) error {
	if err != io.EOF {
		return err
	}
	return l.fail("the file ends inside a string")
}

var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func (l *lexer) escape() error {
	c, err := l.byte()
	if err != nil {
		return l.cut(err)
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
			return l.cut(err)
		}
	}
	v, err := strconv.ParseUint(string(hex[:]), 16, 16)
	if err != nil {
		return l.fail("%s is no character", termtext.Quote("\\u"+string(hex[:]), 0))
	}
	l.buf = utf8.AppendRune(l.buf, rune(v)) // halves of surrogate pairs become U+FFFD
	return nil
}
