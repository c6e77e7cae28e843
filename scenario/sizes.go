package scenario

import (
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
)

// defaultRange is the sweep of a workload that names no sizes: 8 B to 1 GiB,
// doubling.
var defaultRange = coll.Sweep{Min: 8, Max: 1 << 30, Factor: 2, StepBytes: 1 << 20}

// Bounds are the bytes of a range; what it leaves out is as in nccl-tests
// (common.cu:77): 32 MiB to 32 MiB in steps of 1 MiB. Errors are *FieldErrors.
func (r Range) Bounds() (coll.Sweep, error) {
	if r == (Range{}) {
		return defaultRange, nil
	}
	s := coll.Sweep{Min: 32 << 20, Max: 32 << 20, StepBytes: 1 << 20, Factor: r.Factor}
	for _, o := range []struct {
		path, text string
		to         *int64
	}{{"min", r.Min, &s.Min}, {"max", r.Max, &s.Max}, {"step", r.Step, &s.StepBytes}} {
		if o.text == "" {
			continue
		}
		n, err := units.ParseBytes(o.text)
		if err != nil {
			return s, &FieldError{Path: "workload.range." + o.path, Value: o.text, Problem: err.Error()}
		}
		*o.to = int64(n)
	}
	if r.Factor < 0 {
		return s, &FieldError{Path: "workload.range.factor", Value: fmt.Sprint(r.Factor),
			Problem: "must be at least 2"}
	}
	return s, nil
}

// Count is the size as NCCL's count of elements on so many ranks, and as it is
// shown.
func (z Size) Count(f coll.Func, typ coll.DataType, ranks int) (int64, units.Bytes) {
	if z.Exact {
		return coll.ExactSizes(f, z.Asked, typ, ranks).Count, z.Asked
	}
	counts := coll.TestSizes(f, z.Asked, typ, ranks)
	return counts.Count, counts.Bytes(typ)
}

// Bounds are the smallest and largest size, as nccl-tests' header shows them, with
// the factor or difference between sizes of a range.
func (w *Workload) Bounds() (coll.Sweep, error) {
	if len(w.Sizes) == 0 && len(w.Counts) == 0 {
		return w.Range.Bounds()
	}
	var b coll.Sweep
	list, err := w.AllSizes()
	for i, z := range list {
		n := int64(z.Asked)
		if i == 0 {
			b.Min = n
		}
		b.Min, b.Max = min(b.Min, n), max(b.Max, n)
	}
	return b, err
}
