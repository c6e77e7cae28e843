package flight

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// PickleError is a fault of a pickle, or something that no dump has.
type PickleError struct {
	File    string
	Offset  int64
	Problem string
	Err     error // ErrForbidden, or nil
}

// Error states the position and the problem.
func (e *PickleError) Error() string {
	return fmt.Sprintf("%s: byte %d: %s", e.File, e.Offset, e.Problem)
}

// ErrForbidden is matched by the error of a pickle that would run code when Python
// loads it.
var ErrForbidden = errors.New("the pickle calls for code")

// Unwrap returns the kind of error, for errors.Is.
func (e *PickleError) Unwrap() error { return e.Err }

// RecognisePickle reports whether a file begins like a pickle of a dictionary.
func RecognisePickle(head []byte) bool {
	return len(head) >= 3 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5 &&
		(head[2] == '}' || head[2] == 0x95)
}

// Bounds of a pickle.
const (
	maxText  = 16 << 20
	maxStack = 16 << 20
)

// ReadPickle reads a dump as a pickle: of the opcodes of Python's protocol those that
// make dictionaries, lists, tuples, texts, numbers, true, false and None, and none
// that calls anything. The error is a *PickleError, matches ErrForbidden, or is a
// *FormatError.
func ReadPickle(in io.Reader, file string) (*Dump, error) {
	m := machine{in: bufio.NewReaderSize(in, 256<<10), file: file}
	v, err := m.run()
	if err != nil {
		return nil, err
	}
	t, ok := v.(tree)
	if !ok {
		return nil, m.fail("the pickle is no dictionary, as a dump is")
	}
	return dump(file, t)
}

// mark is the entry on the stack at which a tuple, list or dictionary begins.
type mark struct{}

// box is a list on the stack: it may grow, and several references may share it.
type box struct{ list []any }

// intList is torch.jit's function that makes a list of integers of a tuple.
type intList struct{}

// machine is the pickle virtual machine, reduced to the opcodes that dumps use.
type machine struct {
	in    *bufio.Reader
	file  string
	at    int64
	stack []any
	memo  []any
}

func (m *machine) fail(format string, args ...any) error {
	return &PickleError{m.file, m.at, fmt.Sprintf(format, args...), nil}
}

func (m *machine) forbid(format string, args ...any) error {
	return &PickleError{m.file, m.at, fmt.Sprintf(format, args...) +
		", which no dump of the Flight Recorder has; it is not read", ErrForbidden}
}

func (m *machine) bytes(n int) ([]byte, error) {
	if n < 0 || n > maxText {
		return nil, m.fail("a text of %d bytes; at most %d are read", n, maxText)
	}
	b := make([]byte, 0, min(n, 64<<10))
	for len(b) < n {
		from := len(b)
		b = append(b, make([]byte, min(n-from, 64<<10))...)
		k, err := io.ReadFull(m.in, b[from:])
		m.at += int64(k)
		if err != nil {
			return nil, m.fail("the file ends within a value")
		}
	}
	return b, nil
}

func (m *machine) push(v any) error {
	if len(m.stack) >= maxStack {
		return m.fail("more than %d values", maxStack)
	}
	m.stack = append(m.stack, v)
	return nil
}

func (m *machine) pop() (any, error) {
	if len(m.stack) == 0 {
		return nil, m.fail("the stack is empty")
	}
	v := m.stack[len(m.stack)-1]
	m.stack = m.stack[:len(m.stack)-1]
	return v, nil
}

// above removes and returns the values above the last mark, and the mark.
func (m *machine) above() ([]any, error) {
	for i := len(m.stack) - 1; i >= 0; i-- {
		if _, is := m.stack[i].(mark); is {
			out := append([]any(nil), m.stack[i+1:]...)
			m.stack = m.stack[:i]
			return out, nil
		}
	}
	return nil, m.fail("there is no mark")
}

// run executes opcodes until STOP and returns the pickled value.
func (m *machine) run() (any, error) {
	for {
		op, err := m.in.ReadByte()
		if err != nil {
			return nil, m.fail("the file ends before the pickle does")
		}
		m.at++
		if op == '.' {
			v, err := m.pop()
			if err != nil {
				return nil, err
			}
			u := unboxer{}
			v = u.unbox(v, 0)
			if u.n > maxStack {
				return nil, m.fail("more than %d values, some of them many times", maxStack)
			}
			return v, nil
		}
		if err := m.step(op); err != nil {
			return nil, err
		}
	}
}

// unboxer replaces boxes by lists. It limits the nesting to that of dumps and counts the values, because a
// pickle can refer to one value any number of times.
type unboxer struct{ n int }

// unbox replaces the unpickler's boxes (mutable lists) in a value by plain lists. It leaves out stack frames
// ("frames" of an entry); what is nested deeper than maxNest, or comes after maxStack values, is nil.
func (u *unboxer) unbox(v any, depth int) any {
	if u.n++; depth > maxNest || u.n > maxStack {
		return nil
	}
	switch x := v.(type) {
	case *box:
		out := make([]any, len(x.list))
		for i, e := range x.list {
			out[i] = u.unbox(e, depth+1)
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i, e := range x {
			out[i] = u.unbox(e, depth+1)
		}
		return out
	case tree:
		out := make(tree, len(x))
		for _, k := range sorted(x) {
			if k != "frames" {
				out[k] = u.unbox(x[k], depth+1)
			}
		}
		return out
	}
	return v
}

// step executes one opcode.
func (m *machine) step(op byte) error {
	switch op {
	case 0x80: // PROTO
		_, err := m.bytes(1)
		return err
	case 0x95: // FRAME
		_, err := m.bytes(8)
		return err
	case '}':
		return m.push(tree{})
	case ']':
		return m.push(&box{})
	case ')':
		return m.push([]any{})
	case '(':
		return m.push(mark{})
	case 'N':
		return m.push(nil)
	case 0x88:
		return m.push(true)
	case 0x89:
		return m.push(false)
	case 'K', 'M', 'J', 0x8a, 'G', 'X', 0x8c, 0x8d:
		return m.literal(op)
	case 'q', 'r', 0x94, 'h', 'j':
		return m.remember(op)
	case 's', 'u', 'a', 'e', 't', 0x85, 0x86, 0x87, 'l', 'd':
		return m.build(op)
	case 'c':
		return m.global()
	case 'R':
		return m.call()
	}
	return m.forbid("opcode 0x%02x (%q)", op, op)
}

// literal pushes a number or text.
func (m *machine) literal(op byte) error {
	size := map[byte]int{'K': 1, 'M': 2, 'J': 4, 0x8a: 1, 'G': 8, 'X': 4, 0x8c: 1, 0x8d: 8}[op]
	b, err := m.bytes(size)
	if err != nil {
		return err
	}
	switch op {
	case 'K':
		return m.push(int64(b[0]))
	case 'M':
		return m.push(int64(binary.LittleEndian.Uint16(b)))
	case 'J':
		return m.push(int64(int32(binary.LittleEndian.Uint32(b))))
	case 'G':
		return m.push(math.Float64frombits(binary.BigEndian.Uint64(b)))
	case 0x8a: // LONG1: little endian, two's complement
		if b, err = m.bytes(int(b[0])); err != nil {
			return err
		}
		return m.push(long(b))
	}
	var n uint64
	switch op {
	case 'X':
		n = uint64(binary.LittleEndian.Uint32(b))
	case 0x8c:
		n = uint64(b[0])
	default:
		n = binary.LittleEndian.Uint64(b)
	}
	if n > maxText {
		return m.fail("a text of %d bytes; at most %d are read", n, maxText)
	}
	if b, err = m.bytes(int(n)); err != nil {
		return err
	}
	return m.push(string(b))
}

// long returns an integer of any width; what exceeds 64 bits is cut to a float.
func long(b []byte) any {
	if len(b) > 8 {
		return math.Inf(1)
	}
	var n uint64
	for i, c := range b {
		n |= uint64(c) << (8 * i)
	}
	if k := len(b); k > 0 && k < 8 && b[k-1] >= 0x80 {
		n |= ^uint64(0) << (8 * k)
	}
	return int64(n)
}

// remember stores the top of the stack in the memo, or pushes a value from it.
func (m *machine) remember(op byte) error {
	size := map[byte]int{'q': 1, 'h': 1, 'r': 4, 'j': 4}[op]
	b, err := m.bytes(size)
	if err != nil {
		return err
	}
	i := len(m.memo)
	switch size {
	case 1:
		i = int(b[0])
	case 4:
		i = int(binary.LittleEndian.Uint32(b))
	}
	if op == 'h' || op == 'j' {
		if i >= len(m.memo) {
			return m.fail("value %d of the memo, which has %d", i, len(m.memo))
		}
		return m.push(m.memo[i])
	}
	if len(m.stack) == 0 || i > len(m.memo) {
		return m.fail("value %d is put into a memo of %d", i, len(m.memo))
	}
	if i == len(m.memo) {
		m.memo = append(m.memo, nil)
	}
	m.memo[i] = m.stack[len(m.stack)-1]
	return nil
}

// build creates or extends tuples, lists and dictionaries.
func (m *machine) build(op byte) error {
	var items []any
	var err error
	switch op {
	case 't', 'u', 'e', 'l', 'd':
		items, err = m.above()
	default:
		n := map[byte]int{'s': 2, 'a': 1, 0x85: 1, 0x86: 2, 0x87: 3}[op]
		if len(m.stack) < n {
			return m.fail("the stack is empty")
		}
		items = append(items, m.stack[len(m.stack)-n:]...)
		m.stack = m.stack[:len(m.stack)-n]
	}
	if err != nil {
		return err
	}
	switch op {
	case 't', 0x85, 0x86, 0x87:
		return m.push(items)
	case 'l':
		return m.push(&box{items})
	case 'd':
		if err := m.push(tree{}); err != nil {
			return err
		}
	}
	if len(m.stack) == 0 {
		return m.fail("the stack is empty")
	}
	top := m.stack[len(m.stack)-1]
	if op == 'a' || op == 'e' {
		l, ok := top.(*box)
		if !ok {
			return m.fail("what is appended to is no list")
		}
		l.list = append(l.list, items...)
		return nil
	}
	t, ok := top.(tree)
	if !ok || len(items)%2 != 0 {
		return m.fail("what is set is no member of a dictionary")
	}
	for i := 0; i < len(items); i += 2 {
		k, ok := items[i].(string)
		if !ok {
			k = fmt.Sprint(items[i])
		}
		t[k] = items[i+1]
	}
	return nil
}

// global reads a name of Python. Only torch.jit's functions that make lists are known.
func (m *machine) global() error {
	line := func() (string, error) {
		s, err := m.in.ReadSlice('\n')
		m.at += int64(len(s))
		if err != nil || len(s) > 200 {
			return "", m.fail("the file ends within a name")
		}
		return string(s[:len(s)-1]), nil
	}
	module, err := line()
	if err != nil {
		return err
	}
	name, err := line()
	if err != nil {
		return err
	}
	if module == "torch.jit._pickle" && (name == "build_intlist" || name == "build_doublelist" ||
		name == "build_boollist") {
		return m.push(intList{})
	}
	return m.forbid("it names %s.%s", module, name)
}

// call executes REDUCE: it applies the constructor that global pushed to a tuple with one list.
func (m *machine) call() error {
	args, err := m.pop()
	if err != nil {
		return err
	}
	f, err := m.pop()
	if err != nil {
		return err
	}
	if _, ok := f.(intList); !ok {
		return m.forbid("it calls a %T", f)
	}
	if a, ok := args.([]any); ok && len(a) == 1 {
		return m.push(a[0])
	}
	return m.fail("a list is made of %T", args)
}
