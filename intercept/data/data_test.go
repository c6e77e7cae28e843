package data_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/intercept/data"
)

// memory is that of processes of some bytes each.
type memory map[int][]byte

var errOutside = errors.New("outside")

func (m memory) place(pid int, at uint64, n int) ([]byte, error) {
	if at+uint64(n) > uint64(len(m[pid])) {
		return nil, errOutside
	}
	return m[pid][at:][:n], nil
}

func (m memory) Read(pid int, at uint64, to []byte) error {
	b, err := m.place(pid, at, len(to))
	copy(to, b)
	return err
}

func (m memory) Write(pid int, at uint64, from []byte) error {
	b, err := m.place(pid, at, len(from))
	copy(b, from)
	return err
}

// TestPieces: what is longer than a piece arrives whole.
func TestPieces(t *testing.T) {
	const n = 9<<20 + 5
	m := memory{1: make([]byte, n), 2: make([]byte, n+3)}
	for i := range m[1] {
		m[1][i] = byte(i * 7 / 3)
	}
	if err := data.Copy(m, data.Place{PID: 1}, data.Place{PID: 2, At: 3}, n); err != nil || !bytes.Equal(m[2][3:], m[1]) {
		t.Errorf("a copy of %d bytes differs: %v", n, err)
	}
	if err := data.Fill(m, data.Place{PID: 2, At: 1}, 9, n); err != nil || bytes.Count(m[2], []byte{9}) < n || m[2][0] != 0 {
		t.Errorf("a fill of %d bytes differs: %v", n, err)
	}
	if err := data.Copy(m, data.Place{PID: 1}, data.Place{PID: 2, At: 4}, n); !errors.Is(err, errOutside) {
		t.Errorf("a copy to memory that is not there: %v", err)
	}
}

// TestReduce: inputs are scaled each by its own scalar, given or in the rank's memory.
func TestReduce(t *testing.T) {
	m := memory{1: make([]byte, 16), 2: make([]byte, 16)}
	le := binary.LittleEndian
	for pid := range m {
		le.PutUint32(m[pid], uint32(10*pid))
		le.PutUint32(m[pid][4:], uint32(10*pid+1))
		le.PutUint32(m[pid][8:], 5)
	}
	in := []data.Input{{Place: data.Place{PID: 1}, Scaled: true, Scalar: 3}, {Place: data.Place{PID: 2}, Scaled: true, Pointer: true, Scalar: 8}}
	if err := data.Reduce(m, coll.Int32, coll.Sum, in, 8, []data.Place{{PID: 1, At: 8}, {PID: 2}}); err != nil {
		t.Fatal(err)
	}
	for _, b := range [][]byte{m[1][8:], m[2]} {
		if x, y := le.Uint32(b), le.Uint32(b[4:]); x != 3*10+5*20 || y != 3*11+5*21 {
			t.Errorf("sums of %d and %d", x, y)
		}
	}
}
