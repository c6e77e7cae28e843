// Package data carries out copies, fills and reductions in the memory of processes.
//
// What it must not know: communicators, streams, when data is moved.
package data

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/coll/num"
)

// Memory is that of a process, by address.
type Memory interface {
	io.ReaderAt
	io.WriterAt
}

// part is how many bytes are moved at a time.
const part = 4 << 20

// Place is an address in a process.
type Place struct {
	In Memory
	At uint64
}

func (p Place) read(at int64, to []byte) error {
	_, err := p.In.ReadAt(to, int64(p.At)+at)
	return err
}

func (p Place) write(at int64, from []byte) error {
	_, err := p.In.WriteAt(from, int64(p.At)+at)
	return err
}

// Input is what a rank gives to a reduction. Scaled inputs are multiplied by Scalar, or where
// Pointer is set by what is at that address of the rank (ncclRedOpCreatePreMulSum).
type Input struct {
	Place
	Scaled, Pointer bool
	Scalar          uint64
}

// ErrLength is a number of bytes below 0: that of a program that counts wrongly.
var ErrLength = errors.New("a length below 0")

// Copy copies n bytes.
func Copy(from, to Place, n int64) error {
	if n < 0 {
		return ErrLength
	}
	buf := make([]byte, min(n, part))
	for at := int64(0); at < n; at += part {
		b := buf[:min(n-at, part)]
		if err := from.read(at, b); err != nil {
			return err
		}
		if err := to.write(at, b); err != nil {
			return err
		}
	}
	return nil
}

// Fill writes n bytes of a value.
func Fill(to Place, value byte, n int64) error {
	if n < 0 {
		return ErrLength
	}
	buf := make([]byte, min(n, part))
	for i := range buf {
		buf[i] = value
	}
	for at := int64(0); at < n; at += part {
		if err := to.write(at, buf[:min(n-at, part)]); err != nil {
			return err
		}
	}
	return nil
}

// Reduce reduces n bytes of inputs in their order, and stores the result at the places of to.
func Reduce(typ coll.DataType, red coll.RedOp, in []Input, n int64, to []Place) error {
	if n < 0 {
		return ErrLength
	}
	for at := int64(0); at < n; at += part {
		size := min(n-at, part)
		sum, one := make([]byte, size), make([]byte, size)
		for r := range in {
			b := one
			if r == 0 {
				b = sum
			}
			if err := in[r].scaled(typ, at, b); err != nil {
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
			if err := p.write(at, sum); err != nil {
				return err
			}
		}
	}
	return nil
}

// scaled reads a piece of an input, and scales it.
func (x *Input) scaled(typ coll.DataType, at int64, b []byte) error {
	if err := x.read(at, b); err != nil || !x.Scaled {
		return err
	}
	scalar := make([]byte, 8)
	binary.LittleEndian.PutUint64(scalar, x.Scalar)
	if x.Pointer {
		if err := (Place{x.In, x.Scalar}).read(0, scalar[:typ.Size()]); err != nil {
			return err
		}
	}
	num.Scale(typ, b, scalar)
	return nil
}
