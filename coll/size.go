package coll

import "github.com/simccl/simccl/units"

var elementSizes = [NumDataTypes]units.Bytes{
	Int8: 1, Uint8: 1, Float8e4m3: 1, Float8e5m2: 1,
	Float16: 2, BFloat16: 2,
	Int32: 4, Uint32: 4, Float32: 4,
	Int64: 8, Uint64: 8, Float64: 8,
}

// Size returns the bytes of one element, 0 for a value that is no data type.
func (t DataType) Size() units.Bytes {
	if t >= NumDataTypes {
		return 0
	}
	return elementSizes[t]
}

// Rooted reports whether the operation has a root rank.
func (f Func) Rooted() bool {
	return f == Broadcast || f == Reduce || f == Gather || f == Scatter
}

// Reduces reports whether the operation reduces, and so heeds a RedOp.
func (f Func) Reduces() bool {
	return f == AllReduce || f == ReduceScatter || f == Reduce
}

// PrintsRedOp reports whether nccl-tests prints a reduction for f: those that
// reduce, and sendrecv, which prints its -o although it has no use for it
// (sendrecv.cu:120).
func (f Func) PrintsRedOp() bool { return f.Reduces() || f == SendRecv }

// PerRank reports whether the operation's count is that of one rank's part
// rather than of the whole buffer.
func (f Func) PerRank() bool {
	switch f {
	case AllGather, ReduceScatter, AllToAll, Gather, Scatter:
		return true
	}
	return false
}

// Sizes is what nccl-tests makes of one size on its command line; counts and
// offsets are in elements.
type Sizes struct {
	Count     int64 // the count argument of the NCCL call, and the table's column
	SendCount int64 // elements of a rank's send buffer
	RecvCount int64 // elements of a rank's receive buffer
	// In place, rank r sends from SendInPlace·r and receives at RecvInPlace·r
	// of the one buffer.
	SendInPlace, RecvInPlace int64
}

// Bytes returns the table's size column: the larger of the two buffers.
func (s Sizes) Bytes(t DataType) units.Bytes {
	return units.Bytes(max(s.SendCount, s.RecvCount)) * t.Size()
}

// TestSizes turns a size in bytes into counts as nccl-tests does
// (<test>.cu, ...GetCollByteCount; common.cu:899): size ÷ element, and for the
// operations that work in parts, one part per rank, rounded down to a multiple
// of 16 bytes. ranks must be positive.
func TestSizes(f Func, size units.Bytes, t DataType, ranks int) Sizes {
	count := int64(size / t.Size())
	if f.PerRank() {
		part := int64(16 / t.Size()) // elements in 16 bytes; a power of two
		count = count / int64(ranks) / part * part
	}
	return CountSizes(f, count, ranks)
}

// ExactSizes is TestSizes without the rounding to 16 bytes: the counts of
// `--sizes`, floor(size ÷ element) or floor(size ÷ element ÷ ranks).
func ExactSizes(f Func, size units.Bytes, t DataType, ranks int) Sizes {
	count := int64(size / t.Size())
	if f.PerRank() {
		count /= int64(ranks)
	}
	return CountSizes(f, count, ranks)
}

// CountSizes returns the buffers of an operation whose NCCL count is given.
func CountSizes(f Func, count int64, ranks int) Sizes {
	s := Sizes{Count: count, SendCount: count, RecvCount: count}
	all := count * int64(ranks)
	switch f {
	case AllGather, Gather:
		s.RecvCount, s.SendInPlace = all, count
	case ReduceScatter, Scatter:
		s.SendCount, s.RecvInPlace = all, count
	case AllToAll:
		s.SendCount, s.RecvCount = all, all
	}
	return s
}

// BusFactor returns busbw ÷ algbw for n ranks: the share of the algorithm's
// bytes that the busiest rank's port must carry (nccl-tests, ...GetBw).
func (f Func) BusFactor(n int) float64 {
	switch f {
	case AllReduce:
		return float64(2*(n-1)) / float64(n)
	case AllGather, ReduceScatter, AllToAll, Gather, Scatter:
		return float64(n-1) / float64(n)
	}
	return 1
}

// Bandwidth returns algbw and busbw in GB/s (10⁹ bytes per second) of an
// operation with the given NCCL count that took t, in nccl-tests' double
// arithmetic. A time of zero gives 0 rather than infinity.
func Bandwidth(f Func, count int64, typ DataType, ranks int, t units.Time) (alg, bus float64) {
	if t <= 0 {
		return 0, 0
	}
	bytes := count * int64(typ.Size())
	if f.PerRank() {
		bytes *= int64(ranks)
	}
	alg = float64(bytes) / 1e9 / (float64(t) / float64(units.Second))
	return alg, alg * f.BusFactor(ranks)
}
