package collector

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/simccl/simccl/coll"
)

// dataMemory reads and writes a process's memory; offsets are addresses.
type dataMemory interface {
	io.ReaderAt
	io.WriterAt
}

// part is the number of bytes that are moved at a time: it bounds the memory of the collector.
const part = 4 << 20

// dataPlace is an address in a process.
type dataPlace struct {
	In dataMemory
	At uint64
}

func (p dataPlace) read(at int64, to []byte) error {
	_, err := p.In.ReadAt(to, int64(p.At)+at)
	return err
}

func (p dataPlace) write(at int64, from []byte) error {
	_, err := p.In.WriteAt(from, int64(p.At)+at)
	return err
}

// reduceInput is what a rank gives to a reduction. Scaled inputs are multiplied by Scalar, or where
// Pointer is set by what is at that address of the rank (ncclRedOpCreatePreMulSum).
type reduceInput struct {
	dataPlace
	Scaled, Pointer bool
	Scalar          uint64
}

// errLength is a number of bytes below 0: that of a program that counts wrongly.
var errLength = errors.New("a length below 0")

// copyData copies n bytes.
func copyData(from, to dataPlace, n int64) error {
	if n < 0 {
		return errLength
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

// fillData writes n bytes of a value.
func fillData(to dataPlace, value byte, n int64) error {
	if n < 0 {
		return errLength
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

// reduceData reduces n bytes of inputs in their order, and stores the result at the places of to.
func reduceData(typ coll.DataType, red coll.RedOp, in []reduceInput, n int64, to []dataPlace) error {
	if n < 0 {
		return errLength
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
				if err := coll.ReduceElements(typ, red, sum, one); err != nil {
					return err
				}
			}
		}
		if red == coll.Avg {
			coll.DivideElements(typ, sum, len(in))
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
func (x *reduceInput) scaled(typ coll.DataType, at int64, b []byte) error {
	if err := x.read(at, b); err != nil || !x.Scaled {
		return err
	}
	scalar := make([]byte, 8)
	binary.LittleEndian.PutUint64(scalar, x.Scalar)
	if x.Pointer {
		if err := (dataPlace{x.In, x.Scalar}).read(0, scalar[:typ.Size()]); err != nil {
			return err
		}
	}
	coll.ScaleElements(typ, b, scalar)
	return nil
}
