package collector

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/simccl/simccl/coll"
)

// testMemory is that of a process of some bytes.
type testMemory []byte

var errOutside = errors.New("outside")

func (m testMemory) place(at int64, n int) ([]byte, error) {
	if at+int64(n) > int64(len(m)) {
		return nil, errOutside
	}
	return m[at:][:n], nil
}

func (m testMemory) ReadAt(to []byte, at int64) (int, error) {
	b, err := m.place(at, len(to))
	return copy(to, b), err
}

func (m testMemory) WriteAt(from []byte, at int64) (int, error) {
	b, err := m.place(at, len(from))
	return copy(b, from), err
}

// TestPieces: what is longer than a piece arrives whole.
func TestPieces(t *testing.T) {
	const n = 9<<20 + 5
	a, b := make(testMemory, n), make(testMemory, n+3)
	for i := range a {
		a[i] = byte(i * 7 / 3)
	}
	if err := copyData(dataPlace{In: a}, dataPlace{In: b, At: 3}, n); err != nil || !bytes.Equal(b[3:], a) {
		t.Errorf("a copy of %d bytes differs: %v", n, err)
	}
	if err := fillData(dataPlace{In: b, At: 1}, 9, n); err != nil || bytes.Count(b, []byte{9}) < n ||
		b[0] != 0 {
		t.Errorf("a fill of %d bytes differs: %v", n, err)
	}
	if err := copyData(dataPlace{In: a}, dataPlace{In: b, At: 4}, n); !errors.Is(err, errOutside) {
		t.Errorf("a copy to memory that is not there: %v", err)
	}
}

// TestLengths: a length below 0 is an error of the program.
func TestLengths(t *testing.T) {
	at := dataPlace{In: make(testMemory, 8)}
	for _, err := range []error{copyData(at, at, -1), fillData(at, 1, -1<<62),
		reduceData(coll.Int32, coll.Sum, nil, -4, nil)} {
		if !errors.Is(err, errLength) {
			t.Errorf("%v", err)
		}
	}
}

// TestReduce: inputs are scaled each by its own scalar, given or in the rank's memory.
func TestReduce(t *testing.T) {
	m := [2]testMemory{make(testMemory, 16), make(testMemory, 16)}
	le := binary.LittleEndian
	for i, b := range m {
		le.PutUint32(b, uint32(10*(i+1)))
		le.PutUint32(b[4:], uint32(10*(i+1)+1))
		le.PutUint32(b[8:], 5)
	}
	in := []reduceInput{{dataPlace: dataPlace{In: m[0]}, Scaled: true, Scalar: 3},
		{dataPlace: dataPlace{In: m[1]}, Scaled: true, Pointer: true, Scalar: 8}}
	if err := reduceData(coll.Int32, coll.Sum, in, 8, []dataPlace{{In: m[0], At: 8}, {In: m[1]}}); err !=
		nil {
		t.Fatal(err)
	}
	for _, b := range [][]byte{m[0][8:], m[1]} {
		if x, y := le.Uint32(b), le.Uint32(b[4:]); x != 3*10+5*20 || y != 3*11+5*21 {
			t.Errorf("sums of %d and %d", x, y)
		}
	}
}
