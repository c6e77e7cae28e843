package cuda

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/units"
)

// checkArgs mirrors CheckArgs of kernels/check.cu.
type checkArgs struct {
	at, n, off, block, wrong uint64
	size, mantissa           uint32
	bias                     int32
	mod                      uint32
	red, source, ranks       int32
	seed, slack, _           uint32
}

// format is a type's representation of small integers: bits of the mantissa (0: an integer type), bias of the
// exponent, and the largest integer up to which all are exact (0: no relevant bound).
type format struct {
	mantissa uint32
	bias     int32
	exact    int64
}

var formats = map[coll.DataType]format{
	coll.Int8: {exact: 1 << 7}, coll.Uint8: {exact: 1 << 8},
	coll.Int32: {}, coll.Uint32: {}, coll.Int64: {}, coll.Uint64: {},
	coll.Float64: {52, 1023, 1 << 53}, coll.Float32: {23, 127, 1 << 24}, coll.BFloat16: {7, 127, 1 << 8},
	coll.Float16: {10, 15, 1 << 11}, coll.Float8e4m3: {3, 7, 1 << 4}, coll.Float8e5m2: {2, 15, 1 << 3},
}

// Test describes an operation whose data are made and checked on the GPU, for rank Rank of Ranks. Count is
// NCCL's count.
type Test struct {
	Func        coll.Func
	Type        coll.DataType
	Red         coll.RedOp
	Rank, Ranks int
	Root        int
	Count       int64
	Pairs       *coll.Pairs // elements by pair of an unequal alltoall; nil: Count
	Seed        uint32
}

// Checker fills buffers and checks results on one device.
type Checker struct {
	dev         *Device
	fill, check Kernel
	wrong       Ptr
}

// NewChecker loads the kernels and allocates the checker's memory.
func NewChecker(k *Kernels) (c *Checker, err error) {
	c = &Checker{dev: k.dev}
	if c.fill, err = k.get("check", "fill"); err != nil {
		return nil, err
	}
	if c.check, err = k.get("check", "check"); err != nil {
		return nil, err
	}
	c.wrong, err = c.dev.Alloc(16)
	return c, err
}

// Close frees the checker's memory.
func (c *Checker) Close() error { return c.dev.Free(c.wrong) }

// args prepares the arguments that fill and check share. Inputs are so small that no order of reduction
// rounds; an error if a type cannot represent the sums of that many ranks.
func (t *Test) args() (*checkArgs, error) {
	f, ok := formats[t.Type]
	if !ok {
		return nil, &exec.NotImplementedError{Feature: fmt.Sprintf("check of %v", t.Type),
			Missing: "its number format"}
	}
	mod := int64(13)
	if f.exact > 0 && t.Func.Reduces() {
		mod = min(mod, f.exact/int64(t.Ranks)+1)
		if t.Red == coll.Avg {
			mod = min(mod, f.exact/int64(t.Ranks*t.Ranks)+1)
		}
	} else if f.exact > 0 {
		mod = min(mod, f.exact)
	}
	if mod < 2 {
		return nil, &exec.NotImplementedError{Feature: fmt.Sprintf("check of %v on %d ranks", t.Type,
			t.Ranks), Missing: "data whose sums are exact"}
	}
	a := &checkArgs{size: uint32(t.Type.Size()), mantissa: f.mantissa, bias: f.bias, mod: uint32(mod),
		ranks: int32(t.Ranks), seed: t.Seed, source: int32(t.Rank)}
	if t.Func.Reduces() {
		a.red = int32(t.Red)
		if t.Red == coll.Avg && f.mantissa > 0 && t.Ranks&(t.Ranks-1) != 0 {
			a.slack = uint32(t.Ranks) // 1/n is no binary number: each term may be rounded once
		}
	}
	return a, nil
}

const checkThreads, checkBlocks = 256, 1024

// Fill queues a kernel that writes the rank's input of n elements.
func (c *Checker) Fill(t *Test, at Ptr, n int64, s Stream) error {
	a, err := t.args()
	if err != nil {
		return err
	}
	a.at, a.n = uint64(at), uint64(n)
	return c.launch(c.fill, a, s)
}

func (c *Checker) launch(k Kernel, a *checkArgs, s Stream) error {
	if a.n == 0 {
		return nil
	}
	blocks := int(min((a.n+checkThreads-1)/checkThreads, checkBlocks))
	return c.dev.Launch(k, blocks, checkThreads, 0, s, []unsafe.Pointer{unsafe.Pointer(a)})
}

// Check compares all n elements of the rank's output with the expected values, and returns the number of
// wrong ones and the index of the first (-1: none). It waits for the stream.
func (c *Checker) Check(t *Test, at Ptr, n int64, s Stream) (wrong, first int64, err error) {
	if t.Pairs != nil {
		return c.checkPairs(t, at, s)
	}
	a, err := t.args()
	if err != nil {
		return 0, -1, err
	}
	a.at, a.n, a.block, a.wrong = uint64(at), uint64(n), uint64(max(t.Count, 1)), uint64(c.wrong)
	switch t.Func {
	case coll.AllReduce, coll.Reduce:
		a.source = -2
	case coll.ReduceScatter:
		a.source, a.off = -2, uint64(t.Rank)*uint64(t.Count)
	case coll.AllGather, coll.Gather:
		a.source = -1
	case coll.AllToAll:
		a.source, a.off = -1, uint64(t.Rank)*uint64(t.Count)
	case coll.Broadcast:
		a.source = int32(t.Root)
	case coll.Scatter:
		a.source, a.off = int32(t.Root), uint64(t.Rank)*uint64(t.Count)
	case coll.SendRecv:
		a.source = int32((t.Rank + t.Ranks - 1) % t.Ranks)
	default:
		return 0, -1, &exec.NotImplementedError{Feature: fmt.Sprintf("check of %v", t.Func),
			Missing: "its expected result"}
	}
	return c.compare(a, s)
}

// checkPairs is Check for an alltoall with unequal parts: it checks the part of each sender separately.
func (c *Checker) checkPairs(t *Test, at Ptr, s Stream) (wrong, first int64, err error) {
	first = -1
	for src := range int32(t.Ranks) {
		a, err := t.args()
		if err != nil {
			return 0, -1, err
		}
		begin, me := t.Pairs.To(src, int32(t.Rank)), int32(t.Rank)
		a.at, a.n, a.block, a.wrong = uint64(at)+uint64(begin)*uint64(a.size), uint64(t.Pairs.At(src, me)), 1,
			uint64(c.wrong)
		a.source, a.off = src, uint64(t.Pairs.From(src, me))
		n, which, err := c.compare(a, s)
		if err != nil {
			return 0, -1, err
		}
		if wrong += n; n > 0 && first < 0 {
			first = begin + which
		}
	}
	return wrong, first, nil
}

// compare runs the kernel and waits for its result.
func (c *Checker) compare(a *checkArgs, s Stream) (wrong, first int64, err error) {
	var words [16]byte
	binary.LittleEndian.PutUint64(words[8:], ^uint64(0))
	if err := c.dev.Upload(c.wrong, words[:]); err != nil {
		return 0, -1, err
	}
	if err := c.launch(c.check, a, s); err != nil {
		return 0, -1, err
	}
	if err := c.dev.Sync(s); err != nil {
		return 0, -1, err
	}
	if err := c.dev.Download(words[:], c.wrong); err != nil {
		return 0, -1, err
	}
	return int64(binary.LittleEndian.Uint64(words[:])), int64(binary.LittleEndian.Uint64(words[8:])), nil
}

// Poison queues filling a result buffer with a pattern that no result has, so that unwritten elements are
// detected.
func (c *Checker) Poison(at Ptr, n units.Bytes, s Stream) error { return c.dev.Set(at, 0xa5, n, s) }
