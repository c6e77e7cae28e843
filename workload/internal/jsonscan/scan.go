// Package jsonscan reads JSON of any length from a stream, value by value, without building a tree:
// recordings of profilers are hundreds of megabytes, of which a reader needs a tenth. Unwanted values are
// skipped at the speed of a search for the closing quote.
//
// Strings and numbers are slices of the scanner's window, valid until the next call. Errors have file, line
// and column.
//
// What it must not know: what a file means.
package jsonscan

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/simccl/simccl/internal/fail"
)

// Window is the number of bytes that are read at once; longer strings grow it.
const Window = 256 << 10

// maxString bounds one string: longer ones are no part of a recording.
const maxString = 64 << 20

// maxDepth is the maximum nesting; hostile files have millions of levels.
const maxDepth = 10000

// ErrTruncated is matched by errors at the end of a file that is not complete.
var ErrTruncated = errors.New("the file ends within a value")

// Scanner reads JSON values from a stream.
type Scanner struct {
	in   io.Reader
	file string
	buf  []byte
	pos  int // next byte in buf
	keep int // bytes from here are kept when more is read; -1 none
	err  error

	lines int   // newlines before buf
	begin int64 // offset of the last line's beginning before buf
	base  int64 // offset of buf
	depth int
	text  []byte // of unquoted strings
	inKey []byte
}

// New returns a Scanner of in; file is the name in errors.
func New(in io.Reader, file string) *Scanner {
	return &Scanner{in: in, file: file, buf: make([]byte, 0, Window), keep: -1}
}

// Fail returns an error positioned at the next byte.
func (s *Scanner) Fail(hint, format string, args ...any) error {
	return s.failAt(s.pos, nil, hint, fmt.Sprintf(format, args...))
}

func (s *Scanner) failAt(pos int, cause error, hint, problem string) error {
	pos = min(pos, len(s.buf))
	head := s.buf[:pos]
	line, begin := s.lines+bytes.Count(head, newline), s.begin
	if i := bytes.LastIndexByte(head, '\n'); i >= 0 {
		begin = s.base + int64(i) + 1
	}
	return &fail.FileError{File: s.file, Line: line + 1, Col: int(s.base+int64(pos)-begin) + 1,
		Problem: problem, Hint: hint, Err: cause}
}

var newline = []byte{'\n'}

// end is the error of a stream that ends here.
func (s *Scanner) end() error {
	if s.err != nil && s.err != io.EOF {
		return s.failAt(s.pos, s.err, "", "cannot be read: "+s.err.Error())
	}
	return s.failAt(s.pos, ErrTruncated, "", ErrTruncated.Error())
}

// more reads on; it reports whether there is at least one more byte.
func (s *Scanner) more() bool {
	if s.err != nil {
		return false
	}
	from := s.pos
	if s.keep >= 0 {
		from = s.keep
	}
	passed := s.buf[:from]
	s.lines += bytes.Count(passed, newline)
	if i := bytes.LastIndexByte(passed, '\n'); i >= 0 {
		s.begin = s.base + int64(i) + 1
	}
	s.base += int64(from)
	rest := copy(s.buf, s.buf[from:])
	s.buf = s.buf[:rest]
	s.pos -= from
	if s.keep >= 0 {
		s.keep = 0
	}
	if rest > cap(s.buf)/2 {
		if rest > maxString {
			s.err = errors.New("a string is longer than 64 MiB")
			return false
		}
		s.buf = append(make([]byte, 0, 2*cap(s.buf)), s.buf...)
	}
	for range 100 {
		n, err := s.in.Read(s.buf[rest:cap(s.buf)])
		s.buf = s.buf[:rest+n]
		if err != nil {
			s.err = err
		}
		if n > 0 || err != nil {
			return n > 0
		}
	}
	s.err = io.ErrNoProgress
	return false
}

// Peek returns the next byte that is no white space, 0 at the end.
func (s *Scanner) Peek() byte {
	for {
		for s.pos < len(s.buf) {
			switch c := s.buf[s.pos]; c {
			case ' ', '\n', '\t', '\r':
				s.pos++
			default:
				return c
			}
		}
		if !s.more() {
			return 0
		}
	}
}

// take consumes c, the next byte that is no white space.
func (s *Scanner) take(c byte) error {
	got := s.Peek()
	if got == c {
		s.pos++
		return nil
	}
	if s.pos >= len(s.buf) {
		return s.end()
	}
	return s.Fail("", "%q is expected here, not %q", c, got)
}

// Object reads an object: each is called with every key and must read or Skip
// the value. The key is valid until it does.
func (s *Scanner) Object(each func(key []byte) error) error {
	if err := s.take('{'); err != nil {
		return err
	}
	if s.depth++; s.depth > maxDepth {
		return s.Fail("", "nested more than %d deep", maxDepth)
	}
	for first := true; ; first = false {
		switch c := s.Peek(); {
		case c == '}':
			s.pos++
			s.depth--
			return nil
		case c == ',' && !first:
			s.pos++
		case !first:
			return s.take('}')
		}
		key, err := s.String()
		if err != nil {
			return err
		}
		s.inKey = append(s.inKey[:0], key...)
		if err := s.take(':'); err != nil {
			return err
		}
		if err := each(s.inKey); err != nil {
			return err
		}
	}
}

// Array reads an array: each is called before every element and must read or
// Skip it.
func (s *Scanner) Array(each func(i int) error) error {
	if err := s.take('['); err != nil {
		return err
	}
	if s.depth++; s.depth > maxDepth {
		return s.Fail("", "nested more than %d deep", maxDepth)
	}
	for i := 0; ; i++ {
		switch c := s.Peek(); {
		case c == ']':
			s.pos++
			s.depth--
			return nil
		case c == ',' && i > 0:
			s.pos++
		case i > 0:
			return s.take(']')
		}
		if err := each(i); err != nil {
			return err
		}
	}
}

// closing finds the closing quote of the string that begins at s.keep; end is relative to the window. escaped
// reports whether the string contains backslashes.
func (s *Scanner) closing() (end int, escaped bool, err error) {
	at := s.pos
	for {
		i := bytes.IndexByte(s.buf[at:], '"')
		if i < 0 {
			n := len(s.buf) - s.keep
			s.pos = len(s.buf)
			if !s.more() {
				return 0, false, s.end()
			}
			at = s.keep + n
			continue
		}
		end = at + i
		back := 0
		for end-back > s.keep && s.buf[end-back-1] == '\\' {
			back++
		}
		if back%2 == 0 {
			return end, bytes.IndexByte(s.buf[s.keep:end], '\\') >= 0, nil
		}
		at = end + 1
	}
}

// String reads a string and resolves its escapes.
func (s *Scanner) String() ([]byte, error) {
	if err := s.take('"'); err != nil {
		return nil, err
	}
	s.keep = s.pos
	end, escaped, err := s.closing()
	begin := s.keep
	s.keep = -1
	if err != nil {
		return nil, err
	}
	s.pos = end + 1
	raw := s.buf[begin:end]
	if !escaped {
		return raw, nil
	}
	s.text = unescape(s.text[:0], raw)
	return s.text, nil
}

// skipString passes over a string without keeping it in the window.
func (s *Scanner) skipString() error {
	s.pos++
	for {
		i := bytes.IndexByte(s.buf[s.pos:], '"')
		esc := i
		if i < 0 {
			esc = len(s.buf) - s.pos
		}
		if j := bytes.IndexByte(s.buf[s.pos:s.pos+esc], '\\'); j >= 0 {
			for s.pos+j+1 >= len(s.buf) {
				s.pos += j
				j = 0
				if !s.more() {
					return s.end()
				}
			}
			s.pos += j + 2
			continue
		}
		if i >= 0 {
			s.pos += i + 1
			return nil
		}
		s.pos = len(s.buf)
		if !s.more() {
			return s.end()
		}
	}
}

// Number reads the text of a number, or of a word as true, null or NaN.
func (s *Scanner) Number() ([]byte, error) {
	if s.Peek() == 0 && s.pos >= len(s.buf) {
		return nil, s.end()
	}
	s.keep = s.pos
	of := &bare
	if digit(s.buf[s.pos]) { // so that 4x2 is 4, and x where a comma is expected
		of = &numeric
	}
	for {
		for s.pos < len(s.buf) && of[s.buf[s.pos]] {
			s.pos++
		}
		if s.pos < len(s.buf) || !s.more() {
			break
		}
	}
	begin := s.keep
	s.keep = -1
	if begin == s.pos {
		return nil, s.Fail("", "a value is expected here, not %q", s.buf[s.pos])
	}
	return s.buf[begin:s.pos], nil
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// numeric marks the bytes of a number that begins with a digit, bare those, and those of words and -Infinity.
var numeric, bare = func() (n, t [256]bool) {
	for i := range t {
		c := byte(i)
		n[i] = digit(c) || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
		t[i] = n[i] || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
	}
	return
}()

// Text reads a string, or the text of a number or word.
func (s *Scanner) Text() ([]byte, error) {
	if s.Peek() == '"' {
		return s.String()
	}
	return s.Number()
}

// Int reads an integer, also one in quotes, one with a fraction (cut off), and
// null or a word that is no number as 0.
func (s *Scanner) Int() (int64, error) {
	return number(s, ParseInt)
}

// number reads a number by parse, also one in quotes; what is none is 0.
func number[T int64 | float64](s *Scanner, parse func(t []byte) (T, bool)) (T, error) {
	switch s.Peek() {
	case '{', '[':
		return 0, s.Skip()
	}
	t, err := s.Text()
	if err != nil {
		return 0, err
	}
	n, _ := parse(t)
	return n, nil
}

// ParseInt parses a decimal integer with optional sign and ignores what follows the digits. ok is false
// without digits, and for a number beyond 63 bits; n is then the nearest int64, so that a count that is too
// large stays too large.
func ParseInt(t []byte) (n int64, ok bool) {
	neg := len(t) > 0 && t[0] == '-'
	if neg {
		t = t[1:]
	}
	for i, c := range t {
		if c < '0' || c > '9' {
			if i == 0 {
				return 0, false
			}
			break
		}
		d := int64(c - '0')
		if n > (1<<63-1-d)/10 {
			n, ok = 1<<63-1, false
			break
		}
		n = n*10 + d
		ok = true
	}
	if neg {
		n = -n
	}
	return n, ok
}

// Milli parses a decimal number, also with an exponent, in thousandths, rounded down: microseconds become
// nanoseconds. ok is false for text that is no number.
func Milli(t []byte) (n int64, ok bool) {
	whole, ok := ParseInt(t)
	if !ok || whole > 1<<53 || whole < -1<<53 {
		return 0, false
	}
	dot := bytes.IndexByte(t, '.')
	if bytes.ContainsAny(t, "eE") {
		return exponent(t)
	}
	frac := int64(0)
	if dot >= 0 {
		for i := 1; i <= 3; i++ {
			frac *= 10
			if dot+i < len(t) && t[dot+i] >= '0' && t[dot+i] <= '9' {
				frac += int64(t[dot+i] - '0')
			}
		}
	}
	if t[0] == '-' {
		frac = -frac
	}
	return whole*1000 + frac, true
}

// Skip skips the next value.
func (s *Scanner) Skip() error {
	depth := 0
	for {
		c := s.Peek()
		switch c {
		case 0:
			if s.pos >= len(s.buf) {
				return s.end()
			}
			return s.Fail("", "a value is expected here")
		case '"':
			if err := s.skipString(); err != nil {
				return err
			}
		case '{', '[':
			s.pos++
			if depth++; depth > maxDepth {
				return s.Fail("", "nested more than %d deep", maxDepth)
			}
			continue
		case '}', ']':
			if depth == 0 {
				return s.Fail("", "a value is expected here, not %q", c)
			}
			s.pos++
			depth--
		case ',', ':':
			if depth == 0 {
				return s.Fail("", "a value is expected here, not %q", c)
			}
			s.pos++
			continue
		default:
			if _, err := s.Number(); err != nil {
				return err
			}
		}
		if depth == 0 {
			return nil
		}
	}
}

// unescape appends the text of a string between its quotes to to. What is no
// valid escape stays as it is.
func unescape(to, raw []byte) []byte {
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c != '\\' || i+1 >= len(raw) {
			to = append(to, c)
			continue
		}
		i++
		switch raw[i] {
		case 'n':
			to = append(to, '\n')
		case 't':
			to = append(to, '\t')
		case 'r':
			to = append(to, '\r')
		case 'b':
			to = append(to, '\b')
		case 'f':
			to = append(to, '\f')
		case 'u':
			r, ok := hex4(raw[i+1:])
			if !ok {
				to = append(to, '\\', 'u')
				continue
			}
			i += 4
			if utf16.IsSurrogate(r) && i+2 < len(raw) && raw[i+1] == '\\' && raw[i+2] == 'u' {
				if low, ok := hex4(raw[i+3:]); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
					r = utf16.DecodeRune(r, low)
					i += 6
				}
			}
			to = utf8.AppendRune(to, r)
		case '"', '\\', '/':
			to = append(to, raw[i])
		default:
			to = append(to, '\\', raw[i])
		}
	}
	return to
}

func hex4(t []byte) (rune, bool) {
	if len(t) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range t[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|32 >= 'a' && c|32 <= 'f':
			c = c | 32 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
