package chakra

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math"

	"github.com/simccl/simccl/internal/protowire"
)

// maxMessage is the largest accepted length of a message, in bytes.
const maxMessage = 64 << 20

// Recognise reports whether a file begins like a trace: a message of metadata, whose
// fields are a version (1) and attributes (2), or empty.
func Recognise(head []byte) bool {
	n, k := binary.Uvarint(head)
	if k <= 0 || n > maxMessage {
		return false
	}
	body := head[k:]
	whole := uint64(len(body)) >= n
	if whole {
		body = body[:n]
	}
	fields := 0
	ok := eachField(body, func(num, wire int, _ uint64, _ []byte) error {
		if (num != 1 && num != 2) || wire != 2 {
			return protowire.ErrField
		}
		fields++
		return nil
	})
	return (ok == nil || !whole && errors.Is(ok, protowire.ErrShort)) && (fields > 0 || n > 0 && !whole)
}

// eachField calls f with every field of a message: num its number, wire its encoding,
// v of numbers, b of text and messages.
func eachField(msg []byte, f func(num, wire int, v uint64, b []byte) error) error {
	for len(msg) > 0 {
		field, rest, err := protowire.Next(msg)
		if err != nil {
			return err
		}
		if err := f(field.Number, field.Kind, field.Value, field.Bytes); err != nil {
			return err
		}
		msg = rest
	}
	return nil
}

// packed appends the numbers of a repeated field, which protobuf writes packed or one by one.
func packed(to []uint64, wire int, v uint64, b []byte) []uint64 {
	if wire != 2 {
		return append(to, v)
	}
	for len(b) > 0 {
		v, k := binary.Uvarint(b)
		if k <= 0 {
			break
		}
		to = append(to, v)
		b = b[k:]
	}
	return to
}

// attribute is a named value of a node.
type attribute struct {
	name string
	num  int64
	text string
	kind int // number of the field
}

func readAttribute(msg []byte) (a attribute, err error) {
	err = eachField(msg, func(num, wire int, v uint64, b []byte) error {
		switch {
		case num == 1:
			a.name = string(b)
			return nil
		case num == 2:
			return nil
		}
		a.kind = num
		switch num {
		case 3:
			a.num = number(math.Float64frombits(v))
		case 5:
			a.num = number(float64(math.Float32frombits(uint32(v))))
		case 7, 9, 11, 13, 27, 19, 21:
			a.num = int64(v)
		case 15, 17:
			a.num = int64(v>>1) ^ -int64(v&1)
		case 23:
			a.num = int64(int32(uint32(v)))
		case 25:
			a.num = int64(v)
		case 29, 31:
			a.text = string(b)
		}
		return nil
	})
	return a, err
}

// number returns a floating-point value as an integer; 0 where it has none.
func number(f float64) int64 {
	if !(math.Abs(f) < 1<<62) {
		return 0
	}
	return int64(f)
}

// messages reads length-delimited messages from a stream.
type messages struct {
	in   *bufio.Reader
	file string
	at   int64
	n    int
	buf  []byte
}

// next returns the next message, io.EOF at the end. The slice is valid until the next call.
func (m *messages) next() ([]byte, error) {
	n, size := uint64(0), 0
	for shift := 0; ; shift += 7 {
		c, err := m.in.ReadByte()
		if err == io.EOF && shift == 0 {
			return nil, io.EOF
		}
		if err != nil {
			return nil, m.fail("the file ends within a length")
		}
		size++
		n |= uint64(c&0x7f) << shift
		if c < 0x80 {
			break
		}
		if shift > 56 {
			return nil, m.fail("this is no length of a message")
		}
	}
	if n > maxMessage {
		return nil, m.fail("a message of %d bytes; at most %d are read", n, maxMessage)
	}
	if uint64(cap(m.buf)) < n {
		// Grow with the data: a large length alone must not allocate memory.
		m.buf = make([]byte, 0, min(n, 1<<20))
	}
	m.buf = m.buf[:0]
	for uint64(len(m.buf)) < n {
		part := min(n-uint64(len(m.buf)), 1<<20)
		from := len(m.buf)
		m.buf = append(m.buf, make([]byte, part)...)
		if k, err := io.ReadFull(m.in, m.buf[from:]); err != nil {
			m.at += int64(size + from + k)
			return nil, m.fail("the file ends within a message of %d bytes", n)
		}
	}
	m.at += int64(size) + int64(n)
	m.n++
	return m.buf, nil
}
