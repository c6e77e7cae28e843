package table

import (
	"bytes"
	"encoding/binary"
)

// Types of fields in Thrift's compact protocol (thrift-compact-protocol.md, "Struct
// encoding").
const (
	typeI32    = 5
	typeI64    = 6
	typeBinary = 8
	typeList   = 9
	typeStruct = 12
)

// message writes structures in Thrift's compact protocol: a field is the difference
// to the number of the one before it with its type in a byte, then its value.
type message struct {
	bytes.Buffer
	last []int16 // number of the last field of each structure that is open
}

func (m *message) varint(v uint64) { m.Write(binary.AppendUvarint(nil, v)) }

func (m *message) zigzag(v int64) { m.varint(uint64(v)<<1 ^ uint64(v>>63)) }

// open begins a struct, close ends it.
func (m *message) open() { m.last = append(m.last, 0) }

func (m *message) close() {
	m.WriteByte(0)
	m.last = m.last[:len(m.last)-1]
}

// field begins a field. Field numbers must ascend by at most 15, as they do in Parquet.
func (m *message) field(number int16, kind byte) {
	at := &m.last[len(m.last)-1]
	m.WriteByte(byte(number-*at)<<4 | kind)
	*at = number
}

func (m *message) i32(number int16, v int) {
	m.field(number, typeI32)
	m.zigzag(int64(v))
}

func (m *message) i64(number int16, v int) {
	m.field(number, typeI64)
	m.zigzag(int64(v))
}

func (m *message) text(number int16, s string) {
	m.field(number, typeBinary)
	m.bare(s)
}

// bare appends a text without a field header, as a list element.
func (m *message) bare(s string) {
	m.varint(uint64(len(s)))
	m.WriteString(s)
}

// list begins a list of n elements.
func (m *message) list(number int16, kind byte, n int) {
	m.field(number, typeList)
	if n < 15 {
		m.WriteByte(byte(n)<<4 | kind)
		return
	}
	m.WriteByte(15<<4 | kind)
	m.varint(uint64(n))
}

// inner encodes a struct as a field.
func (m *message) inner(number int16, body func()) {
	m.field(number, typeStruct)
	m.element(body)
}

// element encodes a struct as a list element.
func (m *message) element(body func()) {
	m.open()
	body()
	m.close()
}
