// Package exectest holds what every executor is tested with: plans of every
// kind over synthetic communicators, a reference executor that moves real
// numbers, and a conformance suite.
//
// It knows executors by the exec.Executor interface only.
package exectest

import (
	"bytes"
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/check"
	"github.com/simccl/simccl/units"
)

// Data is the memory of all ranks of a plan, with inputs filled in. Where the
// operation is in place, Input and Output of a rank are parts of one buffer.
type Data struct {
	Plan   *plan.Plan
	Input  [][]byte // by rank
	Output [][]byte
}

// NewData allocates and fills the memory of a plan. Inputs are small whole
// numbers whose reductions over all ranks are exact in every type; outputs
// hold a pattern that is no result.
func NewData(p *plan.Plan) *Data {
	n := p.Comm.NRanks
	d := &Data{Plan: p, Input: make([][]byte, n), Output: make([][]byte, n)}
	for r := range int32(n) {
		l := p.Layout(r)
		if l.Shared {
			all := poison(l.Size())
			d.Input[r] = all[l.InputAt : l.InputAt+l.Input]
			d.Output[r] = all[l.OutputAt : l.OutputAt+l.Output]
		} else {
			d.Input[r], d.Output[r] = poison(l.Input), poison(l.Output)
		}
		for i := range len(d.Input[r]) / int(p.Req.Type.Size()) {
			coll.PutElement(p.Req.Type, d.Input[r], i, InputValue(p, r, int64(i)))
		}
	}
	return d
}

func poison(n units.Bytes) []byte { return bytes.Repeat([]byte{0xa5}, int(n)) }

// InputValue is element i of a rank's input. At most eight ranks contribute
// more than the neutral element to a reduction, so that sums stay exact down
// to FP8; operations that only copy get more variety.
func InputValue(p *plan.Plan, rank int32, i int64) float64 {
	h := uint64(i)*0x9e3779b97f4a7c15 + uint64(rank)*0xd1b54a32d192ed03
	h ^= h >> 31
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 29
	if !p.Req.Func.Reduces() {
		return float64(h % 13)
	}
	// A window of ranks that moves with the element.
	n := int64(p.Comm.NRanks)
	chosen := (int64(rank)+n-i%n)%n < 8
	switch {
	case p.Req.Op == coll.Prod && chosen && int64(rank)%2 == i%2:
		return float64(1 + h%2)
	case p.Req.Op == coll.Prod:
		return 1
	case chosen && (p.Req.Op == coll.Sum || p.Req.Op == coll.Avg):
		return float64(h % 2)
	case p.Req.Op == coll.Max || p.Req.Op == coll.Min:
		return float64(h % 7)
	}
	return 0
}

// Expect computes the output of a rank element by element, knowing nothing of
// how the plan moves data.
func (d *Data) Expect(rank int32) []byte {
	p := d.Plan
	want := poison(p.Layout(rank).Output)
	typ, size := p.Req.Type, p.Req.Type.Size()
	p.Want(rank, func(off, n units.Bytes, from plan.Places) {
		for i := range int64(n / size) {
			at := int64(from.Off/size) + i
			k := int(int64(off/size) + i)
			if from.Rank != plan.AllRanks {
				coll.PutElement(typ, want, k, InputValue(p, from.Rank, at))
				continue
			}
			coll.PutElement(typ, want, k, reference(p, at))
		}
	})
	return want
}

// reference reduces element i of all inputs in float64, where it is exact.
func reference(p *plan.Plan, i int64) float64 {
	v := InputValue(p, 0, i)
	for r := int32(1); r < int32(p.Comm.NRanks); r++ {
		x := InputValue(p, r, i)
		switch p.Req.Op {
		case coll.Prod:
			v *= x
		case coll.Max:
			v = max(v, x)
		case coll.Min:
			v = min(v, x)
		default:
			v += x
		}
	}
	if p.Req.Op == coll.Avg {
		v /= float64(p.Comm.NRanks)
		if !p.Req.Type.IsFloat() {
			v = float64(int64(v))
		}
	}
	return v
}

// Wrong counts the output elements of all ranks that are not what they should
// be, and describes the first. Where the operation does not define its output
// (plan.DataDefined), nothing is counted.
func (d *Data) Wrong() (count int64, first string) {
	if !d.Plan.DataDefined() {
		return 0, ""
	}
	typ, size := d.Plan.Req.Type, int(d.Plan.Req.Type.Size())
	for r := range d.Output {
		want := d.Expect(int32(r))
		for i := range len(want) / size {
			if bytes.Equal(want[i*size:(i+1)*size], d.Output[r][i*size:(i+1)*size]) {
				continue
			}
			if count++; count == 1 {
				first = fmt.Sprintf("rank %d element %d is %v, should be %v", r, i,
					coll.Element(typ, d.Output[r], i), coll.Element(typ, want, i))
			}
		}
	}
	return count, first
}

// Data is a check.Memory that moves the real bytes.
var _ check.Memory[[]byte] = (*Data)(nil)

func (d *Data) place(rank int32, at plan.Ref, n units.Bytes) []byte {
	b := d.Output[rank]
	if at.Buf == plan.Input {
		b = d.Input[rank]
	}
	if n == 0 {
		return nil
	}
	return b[at.Off : at.Off+n]
}

// Read copies n bytes out of a rank's memory.
func (d *Data) Read(rank int32, at plan.Ref, n units.Bytes) ([]byte, error) {
	return bytes.Clone(d.place(rank, at, n)), nil
}

// Write copies a payload into a rank's memory.
func (d *Data) Write(rank int32, at plan.Ref, n units.Bytes, v []byte) error {
	copy(d.place(rank, at, n), v)
	return nil
}

// Reduce combines two payloads by the plan's reduction.
func (d *Data) Reduce(_ *plan.Op, a, b []byte) ([]byte, error) {
	sum := bytes.Clone(a)
	return sum, coll.ReduceElements(d.Plan.Req.Type, d.Plan.Req.Op, sum, b)
}

// Post divides an average's sum.
func (d *Data) Post(_ *plan.Op, v []byte) ([]byte, error) {
	if d.Plan.Req.Op != coll.Avg {
		return v, nil
	}
	v = bytes.Clone(v)
	coll.DivideElements(d.Plan.Req.Type, v, d.Plan.Comm.NRanks)
	return v, nil
}
