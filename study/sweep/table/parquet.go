// Package table has tables of typed columns, and writes one as a Parquet file (parquet.apache.org/docs,
// format 2.x): flat, every column optional, values PLAIN, pages compressed with gzip. What
// readers need beyond that (dictionaries, statistics, nesting) it does not write.
//
// What it must not know: where a table comes from, files.
package table

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"math"
)

// Numbers of parquet.thrift.
const (
	physicalInt64, physicalDouble, physicalBytes = 2, 5, 6
	optional                                     = 1
	convertedUTF8                                = 0
	encodingPlain, encodingRLE                   = 0, 3
	codecGzip                                    = 2
	pageData                                     = 0
)

const magic = "PAR1"

// groupRows is the number of rows of a row group, whose pages are built in memory.
const groupRows = 1 << 16

// chunk is the position and size of a column chunk in the file.
type chunk struct{ at, plain, packed, values int }

// WriteParquet writes a table. The same table gives the same bytes. Errors are the
// writer's.
func WriteParquet(w io.Writer, t *Table) error {
	at := len(magic)
	if _, err := io.WriteString(w, magic); err != nil {
		return err
	}
	var groups [][]chunk
	for from := 0; from < t.Rows; from += groupRows {
		to := min(t.Rows, from+groupRows)
		group := make([]chunk, len(t.Columns))
		for i, c := range t.Columns {
			page, ch, err := column(c, from, to)
			if err != nil {
				return err
			}
			if _, err := w.Write(page); err != nil {
				return err
			}
			ch.at = at
			at += len(page)
			group[i] = ch
		}
		groups = append(groups, group)
	}
	foot := footer(t, groups)
	foot = binary.LittleEndian.AppendUint32(foot, uint32(len(foot)))
	_, err := w.Write(append(foot, magic...))
	return err
}

// column encodes a page of rows: its header, then levels and values, compressed.
func column(c *Column, from, to int) ([]byte, chunk, error) {
	levels := levels(c.Null[from:to])
	plain := binary.LittleEndian.AppendUint32(nil, uint32(len(levels)))
	plain = append(plain, levels...)
	for i := from; i < to; i++ {
		switch {
		case c.Null[i]:
		case c.Kind == Int:
			plain = binary.LittleEndian.AppendUint64(plain, uint64(c.Ints[i]))
		case c.Kind == Float:
			plain = binary.LittleEndian.AppendUint64(plain, math.Float64bits(c.Floats[i]))
		default:
			plain = binary.LittleEndian.AppendUint32(plain, uint32(len(c.Texts[i])))
			plain = append(plain, c.Texts[i]...)
		}
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(plain); err != nil {
		return nil, chunk{}, err
	}
	if err := z.Close(); err != nil {
		return nil, chunk{}, err
	}
	var m message
	m.element(func() {
		m.i32(1, pageData)
		m.i32(2, len(plain))
		m.i32(3, packed.Len())
		m.inner(5, func() {
			m.i32(1, to-from)
			m.i32(2, encodingPlain)
			m.i32(3, encodingRLE)
			m.i32(4, encodingRLE)
		})
	})
	head := m.Len()
	return append(m.Bytes(), packed.Bytes()...), chunk{plain: head + len(plain), packed: head + packed.Len(),
		values: to - from}, nil
}

// levels encodes for each row whether it has a value (1) or not (0), as runs: Parquet's hybrid encoding of
// width 1 without its bit-packed form.
func levels(null []bool) []byte {
	var out []byte
	for i := 0; i < len(null); {
		n := 1
		for i+n < len(null) && null[i+n] == null[i] {
			n++
		}
		out = binary.AppendUvarint(out, uint64(n)<<1)
		if null[i] {
			out = append(out, 0)
		} else {
			out = append(out, 1)
		}
		i += n
	}
	return out
}

// footer encodes Parquet's FileMetaData.
func footer(t *Table, groups [][]chunk) []byte {
	var m message
	m.element(func() {
		m.i32(1, 1)
		m.schema(t)
		m.i64(3, t.Rows)
		m.list(4, typeStruct, len(groups))
		for i, g := range groups {
			m.element(func() { m.group(t, g, min(groupRows, t.Rows-i*groupRows)) })
		}
		about := t.About
		for _, c := range t.Columns {
			if c.Unit != "" {
				about = append(about[:len(about):len(about)], [2]string{"unit." + c.Name, c.Unit})
			}
		}
		m.list(5, typeStruct, len(about))
		for _, a := range about {
			m.element(func() {
				m.text(1, a[0])
				m.text(2, a[1])
			})
		}
		m.text(6, "simccl")
	})
	return m.Bytes()
}

// schema encodes the list of columns below its root element.
func (m *message) schema(t *Table) {
	m.list(2, typeStruct, 1+len(t.Columns))
	m.element(func() {
		m.text(4, "sweep")
		m.i32(5, len(t.Columns))
	})
	for _, c := range t.Columns {
		m.element(func() {
			m.i32(1, physical(c.Kind))
			m.i32(3, optional)
			m.text(4, c.Name)
			if c.Kind == Text {
				m.i32(6, convertedUTF8)
				m.inner(10, func() { m.inner(1, func() {}) }) // LogicalType STRING
			}
		})
	}
}

// group encodes Parquet's RowGroup.
func (m *message) group(t *Table, group []chunk, rows int) {
	total := 0
	m.list(1, typeStruct, len(group))
	for i, ch := range group {
		total += ch.plain
		m.element(func() {
			m.i64(2, ch.at)
			m.inner(3, func() {
				m.i32(1, physical(t.Columns[i].Kind))
				m.list(2, typeI32, 2)
				m.zigzag(encodingPlain)
				m.zigzag(encodingRLE)
				m.list(3, typeBinary, 1)
				m.bare(t.Columns[i].Name)
				m.i32(4, codecGzip)
				m.i64(5, ch.values)
				m.i64(6, ch.plain)
				m.i64(7, ch.packed)
				m.i64(9, ch.at)
			})
		})
	}
	m.i64(2, total)
	m.i64(3, rows)
}

func physical(k Kind) int {
	switch k {
	case Int:
		return physicalInt64
	case Float:
		return physicalDouble
	}
	return physicalBytes
}
