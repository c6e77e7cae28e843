// Package protowire is protobuf's encoding (protobuf.dev, encoding): fields appended to a
// message, and taken off it one by one. It knows no schema, and no groups, which protobuf
// does not use any more.
package protowire

import (
	"encoding/binary"
	"errors"
	"math"
)

// Wire types (protobuf.dev, encoding).
const (
	Varint = 0
	Fixed8 = 1
	Bytes  = 2
	Fixed4 = 5
)

// Tag appends a field's tag: its number and wire type.
func Tag(b []byte, number, kind int) []byte {
	return binary.AppendUvarint(b, uint64(number)<<3|uint64(kind))
}

// AppendNumber appends a varint field.
func AppendNumber(b []byte, number int, v uint64) []byte {
	return binary.AppendUvarint(Tag(b, number, Varint), v)
}

// AppendDouble appends a field of 64 bits that holds a float.
func AppendDouble(b []byte, number int, v float64) []byte {
	return binary.LittleEndian.AppendUint64(Tag(b, number, Fixed8), math.Float64bits(v))
}

// AppendBytes appends a length-delimited field: text or a message.
func AppendBytes[T []byte | string](b []byte, number int, v T) []byte {
	return append(binary.AppendUvarint(Tag(b, number, Bytes), uint64(len(v))), v...)
}

// Field is one field of a message: Value of numbers, Bytes of texts and messages.
type Field struct {
	Number, Kind int
	Value        uint64
	Bytes        []byte
}

// Errors of Next.
var (
	ErrShort = errors.New("ends within a field")
	ErrField = errors.New("is no field of the schema")
)

// Next splits the first field off a message. It returns ErrShort if the message is truncated, and ErrField
// for a varint that is too long or an obsolete wire type.
func Next(b []byte) (f Field, rest []byte, err error) {
	tag, n := binary.Uvarint(b)
	if n <= 0 {
		return f, nil, broken(n)
	}
	if tag>>3 == 0 || tag>>3 > 1<<29-1 {
		return f, nil, ErrField
	}
	b = b[n:]
	f.Number, f.Kind = int(tag>>3), int(tag&7)
	switch f.Kind {
	case Varint:
		if f.Value, n = binary.Uvarint(b); n <= 0 {
			return f, nil, broken(n)
		}
		return f, b[n:], nil
	case Fixed8:
		if len(b) < 8 {
			return f, nil, ErrShort
		}
		f.Value = binary.LittleEndian.Uint64(b)
		return f, b[8:], nil
	case Fixed4:
		if len(b) < 4 {
			return f, nil, ErrShort
		}
		f.Value = uint64(binary.LittleEndian.Uint32(b))
		return f, b[4:], nil
	case Bytes:
		size, n := binary.Uvarint(b)
		if n < 0 {
			return f, nil, ErrField
		}
		if n == 0 || size > uint64(len(b)-n) {
			return f, nil, ErrShort
		}
		f.Bytes = b[n : n+int(size)]
		return f, b[n+int(size):], nil
	}
	return f, nil, ErrField
}

// broken returns the error for a failed varint, given the result of binary.Uvarint.
func broken(n int) error {
	if n == 0 {
		return ErrShort
	}
	return ErrField
}
