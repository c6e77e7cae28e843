package table

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"testing"
)

func small(rows int) *Table {
	t := &Table{Rows: rows, About: [][2]string{{"about", "ä"}}, Columns: []*Column{{Name: "text"},
		{Name: "int", Kind: Int}, {Name: "float", Kind: Float, Unit: "us"}}}
	for i := range rows {
		t.Columns[0].Add([]any{"", "µ", nil}[i%3])
		t.Columns[1].Add([]any{int64(-1), int64(1) << 62, nil, nil}[i%4])
		t.Columns[2].Add([]any{0.1, int64(2), nil}[i%3])
	}
	return t
}

// TestWrite: the file has its frame, equal tables give equal bytes, and a table of more
// rows than a group has as many groups as it takes. That the bytes are Parquet is
// shown in tools/readers, by a library of others.
func TestWrite(t *testing.T) {
	for _, rows := range []int{0, 1, 1000, groupRows + 1} {
		var a, b bytes.Buffer
		if err := errors.Join(WriteParquet(&a, small(rows)), WriteParquet(&b, small(rows))); err != nil {
			t.Fatal(err)
		}
		data := a.Bytes()
		foot := int(binary.LittleEndian.Uint32(data[len(data)-8:]))
		if !bytes.Equal(data, b.Bytes()) || !bytes.HasPrefix(data, []byte(magic)) ||
			!bytes.HasSuffix(data, []byte(magic)) || foot <= 0 || foot > len(data)-12 {
			t.Errorf("%d rows: %d bytes, %d of them footer", rows, len(data), foot)
		}
		if want := (rows + groupRows - 1) / groupRows * 3; bytes.Count(data, []byte{0x1f, 0x8b, 8}) != want {
			t.Errorf("%d rows: not %d pages", rows, want)
		}
	}
}

// TestFooter pins the bytes of the metadata that parquet-go v0.32 has read.
func TestFooter(t *testing.T) {
	sum := sha256.Sum256(footer(small(5), [][]chunk{{{4, 50, 60, 5}, {64, 70, 80, 5}, {144, 90, 95, 5}}}))
	if got, want := hex.EncodeToString(sum[:8]), "31aaaf5c49290572"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
	if got := levels([]bool{true, true, false, true}); !bytes.Equal(got, []byte{4, 0, 2, 1, 2, 0}) {
		t.Errorf("levels % x", got)
	}
}

type full struct{ left int }

func (f *full) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errors.New("full")
	}
	return len(p), nil
}

// TestFullDisk: every write that fails is reported.
func TestFullDisk(t *testing.T) {
	for left := range 100 {
		if WriteParquet(&full{left}, small(10)) == nil {
			t.Errorf("no error after %d bytes", left)
		}
	}
}
