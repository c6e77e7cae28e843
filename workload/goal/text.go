package goal

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// RecogniseText reports whether a text begins like a schedule in text form.
func RecogniseText(head []byte) bool {
	s := string(head)
	for {
		s = strings.TrimLeft(s, " \t\r\n")
		switch {
		case strings.HasPrefix(s, "//"):
			_, rest, ok := strings.Cut(s, "\n")
			if !ok {
				return false
			}
			s = rest
		case strings.HasPrefix(s, "/*"):
			_, rest, ok := strings.Cut(s, "*/")
			if !ok {
				return false
			}
			s = rest
		default:
			return strings.HasPrefix(s, "num_ranks")
		}
	}
}

// ReadText parses a schedule. It returns an *Error, or an error of in.
func ReadText(in io.Reader, file string) (*File, error) {
	r := &textReader{file: file, in: bufio.NewReaderSize(in, 256<<10), line: 1, f: &File{}}
	err := r.read()
	if err == nil && r.err != nil && r.err != io.EOF {
		err = fmt.Errorf("%s: %w", file, r.err)
	}
	if err != nil {
		return nil, err
	}
	return r.f, nil
}

type textReader struct {
	file      string
	in        *bufio.Reader
	line, col int // of the last byte read
	err       error
	back      bool // the last byte is read again
	last      byte
	token     token
	unread    bool
	f         *File
	total     int
}

// token is a word, a number or one of { } :
type token struct {
	text      string
	line, col int
}

func (r *textReader) failAt(t token, hint, format string, args ...any) error {
	return &Error{File: r.file, Line: t.line, Col: max(t.col, 1), Problem: fmt.Sprintf(format, args...),
		Hint: hint}
}

func (r *textReader) byte() (byte, bool) {
	if r.back {
		r.back = false
		return r.last, true
	}
	if r.last == '\n' {
		r.line++
		r.col = 0
		r.last = 0
	}
	b, err := r.in.ReadByte()
	if err != nil {
		r.err = err
		return 0, false
	}
	r.last = b
	r.col++
	return b, true
}

func word(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// next reads a token; its text is empty at the end.
func (r *textReader) next() token {
	if r.unread {
		r.unread = false
		return r.token
	}
	r.token = r.scan()
	return r.token
}

func (r *textReader) scan() token {
	for {
		c, ok := r.byte()
		t := token{"", r.line, r.col}
		switch {
		case !ok:
			return t
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		case c == '/':
			if !r.comment() {
				t.text = "/"
				return t
			}
		case word(c):
			buf := []byte{c}
			for {
				c, ok = r.byte()
				if !ok || !word(c) || len(buf) > 200 {
					r.back = ok
					t.text = string(buf)
					return t
				}
				buf = append(buf, c)
			}
		default:
			t.text = string(rune(c))
			return t
		}
	}
}

// comment passes over what follows the first slash of a comment.
func (r *textReader) comment() bool {
	c, ok := r.byte()
	switch {
	case ok && c == '/':
		for ok && c != '\n' {
			c, ok = r.byte()
		}
		return true
	case ok && c == '*':
		star := false
		for {
			c, ok = r.byte()
			if !ok || star && c == '/' {
				return true
			}
			star = c == '*'
		}
	}
	return false
}

func (r *textReader) number(what string, most uint64) (uint64, error) {
	t := r.next()
	n, err := strconv.ParseUint(t.text, 10, 64)
	if err != nil || n > most {
		return 0, r.failAt(t, "", "%q is no %s", t.text, what)
	}
	return n, nil
}

func (r *textReader) expect(text string) error {
	if t := r.next(); t.text != text {
		return r.failAt(t, "", "%q is expected here, not %q", text, t.text)
	}
	return nil
}

func (r *textReader) read() error {
	if err := r.expect("num_ranks"); err != nil {
		return err
	}
	n, err := r.number("number of ranks", maxRanks)
	if err != nil {
		return err
	}
	r.f.Ranks = make([]Rank, n)
	seen := make([]bool, n)
	for {
		t := r.next()
		if t.text == "" {
			break
		}
		if t.text != "rank" {
			return r.failAt(t, "", "\"rank\" is expected here, not %q", t.text)
		}
		at, err := r.number("rank", maxRanks)
		if err != nil {
			return err
		}
		switch {
		case at >= n:
			return r.failAt(r.token, "", "rank %d; there are ranks 0 to %d", at, int64(n)-1)
		case seen[at]:
			return r.failAt(r.token, "", "rank %d for the second time", at)
		}
		seen[at] = true
		if err := r.rank(&r.f.Ranks[at]); err != nil {
			return err
		}
	}
	for i, s := range seen {
		if !s {
			return r.failAt(token{"", r.line, r.col}, "", "rank %d has no schedule", i)
		}
	}
	return nil
}

// rank parses the operations of a rank between braces.
func (r *textReader) rank(to *Rank) error {
	if err := r.expect("{"); err != nil {
		return err
	}
	labels := map[string]uint32{}
	for {
		t := r.next()
		switch t.text {
		case "}":
			return nil
		case "":
			return r.failAt(t, "", "the file ends within a rank")
		case "send", "recv", "calc":
			if err := r.op(to, t); err != nil {
				return err
			}
			continue
		}
		if c := t.text[0]; c < 'A' {
			return r.failAt(t, "write send, recv, calc or a label", "%q is not known here", t.text)
		}
		switch d := r.next(); d.text {
		case ":":
			if _, twice := labels[t.text]; twice {
				return r.failAt(t, "", "label %s for the second time", t.text)
			}
			labels[t.text] = uint32(len(to.Ops))
			op := r.next()
			if op.text != "send" && op.text != "recv" && op.text != "calc" {
				return r.failAt(op, "write send, recv or calc", "%q is not known here", op.text)
			}
			if err := r.op(to, op); err != nil {
				return err
			}
		case "requires", "irequires":
			a, ok1 := labels[t.text]
			b := r.next()
			on, ok2 := labels[b.text]
			if !ok1 || !ok2 {
				if ok1 {
					t = b
				}
				return r.failAt(t, "a label is written before its use", "no operation has the label %q",
					t.text)
			}
			if d.text == "requires" {
				to.Ops[a].Requires = append(to.Ops[a].Requires, on)
			} else {
				to.Ops[a].Starts = append(to.Ops[a].Starts, on)
			}
		default:
			return r.failAt(d, "write a colon, requires or irequires behind a label", "%q is not known here",
				d.text)
		}
	}
}

// op parses an operation after its keyword send, recv or calc.
func (r *textReader) op(to *Rank, t token) error {
	if r.total++; r.total > maxOps {
		return r.failAt(t, "", "more than %d operations", maxOps)
	}
	op := Op{Kind: map[string]Kind{"send": Send, "recv": Recv, "calc": Calc}[t.text]}
	size := r.next()
	text, bytes := strings.CutSuffix(size.text, "b")
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || bytes != (op.Kind != Calc) {
		return r.failAt(size, "write 100b for send and recv, 100 for calc", "%q is no size", size.text)
	}
	op.Size = n
	if op.Kind != Calc {
		if err := r.expect(map[Kind]string{Send: "to", Recv: "from"}[op.Kind]); err != nil {
			return err
		}
		if op.Peer, err = r.anyNumber("rank", op.Kind == Recv, uint64(len(r.f.Ranks))-1); err != nil {
			return err
		}
	}
	for {
		t := r.next()
		switch {
		case t.text == "tag" && op.Kind != Calc:
			if op.Tag, err = r.anyNumber("tag", op.Kind == Recv, Any-1); err != nil {
				return err
			}
		case t.text == "cpu" || t.text == "nic":
			n, err := r.number(t.text, 255)
			if err != nil {
				return err
			}
			if t.text == "cpu" {
				op.CPU = uint8(n)
			} else {
				op.NIC = uint8(n)
			}
		default:
			r.unread = true
			to.Ops = append(to.Ops, op)
			return nil
		}
	}
}

// anyNumber reads a number, or -1 where any is allowed.
func (r *textReader) anyNumber(what string, any bool, most uint64) (uint32, error) {
	t := r.next()
	if t.text == "-1" && any {
		return Any, nil
	}
	n, err := strconv.ParseUint(t.text, 10, 32)
	if err != nil || n > most {
		return 0, r.failAt(t, "", "%q is no %s", t.text, what)
	}
	return uint32(n), nil
}

// WriteText writes a schedule with labels l1, l2 … on each rank.
func (f *File) WriteText(to io.Writer) error {
	b := bufio.NewWriter(to)
	fmt.Fprintf(b, "num_ranks %d\n", len(f.Ranks))
	name := func(n uint32) string {
		if n == Any {
			return "-1"
		}
		return strconv.FormatUint(uint64(n), 10)
	}
	for r := range f.Ranks {
		fmt.Fprintf(b, "\nrank %d {\n", r)
		for i := range f.Ranks[r].Ops {
			op := &f.Ranks[r].Ops[i]
			fmt.Fprintf(b, "l%d: ", i+1)
			switch op.Kind {
			case Send:
				fmt.Fprintf(b, "send %db to %d", op.Size, op.Peer)
			case Recv:
				fmt.Fprintf(b, "recv %db from %s", op.Size, name(op.Peer))
			default:
				fmt.Fprintf(b, "calc %d", op.Size)
			}
			if op.Kind != Calc {
				fmt.Fprintf(b, " tag %s", name(op.Tag))
			}
			if op.CPU > 0 {
				fmt.Fprintf(b, " cpu %d", op.CPU)
			}
			if op.NIC > 0 {
				fmt.Fprintf(b, " nic %d", op.NIC)
			}
			b.WriteByte('\n')
		}
		for i := range f.Ranks[r].Ops {
			for _, d := range f.Ranks[r].Ops[i].Requires {
				fmt.Fprintf(b, "l%d requires l%d\n", i+1, d+1)
			}
			for _, d := range f.Ranks[r].Ops[i].Starts {
				fmt.Fprintf(b, "l%d irequires l%d\n", i+1, d+1)
			}
		}
		b.WriteString("}\n")
	}
	return b.Flush()
}
