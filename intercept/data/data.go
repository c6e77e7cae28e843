// Package data carries out copies, fills and reductions in the memory of processes.
//
// What it must not know: communicators, streams, when data is moved.
package data

import (
	"encoding/binary"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/coll/num"
)

// Memory is that of processes, for --data.
type Memory interface {
	Read(pid int, at uint64, to []byte) error
	Write(pid int, at uint64, from []byte) error
}

// part is how many bytes are moved at a time.
const part = 4 << 20

// Place is an address in a process.
type Place struct {
	PID int
	At  uint64
}

// Input is what a rank gives to a reduction. Scaled inputs are multiplied by Scalar, or where
// Pointer is set by what is at that address of the rank (ncclRedOpCreatePreMulSum).
type Input struct {
	Place
	Scaled, Pointer bool
	Scalar          uint64
}

// Copy copies n bytes.
func Copy(m Memory, from, to Place, n int64) error {
	buf := make([]byte, min(n, part))
	for at := int64(0); at < n; at += part {
		b := buf[:min(n-at, part)]
		if err := m.Read(from.PID, from.At+uint64(at), b); err != nil {
			return err
		}
		if err := m.Write(to.PID, to.At+uint64(at), b); err != nil {
			return err
		}
	}
	return nil
}

// Fill writes n bytes of a value.
func Fill(m Memory, to Place, value byte, n int64) error {
	buf := make([]byte, min(n, part))
	for i := range buf {
		buf[i] = value
	}
	for at := int64(0); at < n; at += part {
		if err := m.Write(to.PID, to.At+uint64(at), buf[:min(n-at, part)]); err != nil {
			return err
		}
	}
	return nil
}

// Reduce reduces n bytes of inputs in their order, and stores the result at the places of to.
func Reduce(m Memory, typ coll.DataType, red coll.RedOp, in []Input, n int64, to []Place) error {
	for at := int64(0); at < n; at += part {
		size := min(n-at, part)
		sum, one := make([]byte, size), make([]byte, size)
		for r := range in {
			b := one
			if r == 0 {
				b = sum
			}
			if err := in[r].read(m, typ, at, b); err != nil {
				return err
			}
			if r > 0 {
				if err := num.Reduce(typ, red, sum, one); err != nil {
					return err
				}
			}
		}
		if red == coll.Avg {
			num.Divide(typ, sum, len(in))
		}
		for _, p := range to {
			if err := m.Write(p.PID, p.At+uint64(at), sum); err != nil {
				return err
			}
		}
	}
	return nil
}

// read reads a piece of an input, and scales it.
func (x *Input) read(m Memory, typ coll.DataType, at int64, b []byte) error {
	if err := m.Read(x.PID, x.At+uint64(at), b); err != nil || !x.Scaled {
		return err
	}
	scalar := make([]byte, 8)
	binary.LittleEndian.PutUint64(scalar, x.Scalar)
	if x.Pointer {
		if err := m.Read(x.PID, x.Scalar, scalar[:typ.Size()]); err != nil {
			return err
		}
	}
	num.Scale(typ, b, scalar)
	return nil
}
