package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/units"
)

// MaxRanks is the largest number of ranks of the free algorithms: one NVLink domain.
const MaxRanks = 8

// Sizes of an arena's parts (kernels/free.cu): epochs and flags, two halves of words, two halves of lines,
// slots in which copy engines store pieces to be reduced.
const (
	arenaHeader units.Bytes = 64 << 10
	wordHalf    units.Bytes = 8 << 20
	arenaHalf   units.Bytes = 256 << 20
	slotsSize   units.Bytes = 512 << 20
	slotStart               = arenaHeader + 2*wordHalf + 2*arenaHalf
	arenaSize               = slotStart + slotsSize
)

// Shape is a free algorithm, that is, one of ours instead of an NCCL plan.
type Shape uint8

// Shapes; an operation has only some of them (see FreeShapes).
const (
	OneShot  Shape = iota // LL lines, every rank reduces everything
	TwoWords              // LL words, every rank reduces its share
	TwoShot               // the same in LL128 lines
	Push                  // in plain stores, piece by piece
	Direct                // loads and stores of peers' memory between two barriers
	Copies                // copy engines move data, kernels only reduce
	Words                 // LL words, one hop, for operations with a root (parts.go)
	Lines                 // the same in LL128 lines
	Relay                 // peers forward the data that the root sent them
)

// String returns a shape's name in tables.
func (s Shape) String() string {
	return [...]string{"one-shot", "two-words", "two-shot", "push", "direct", "copies", "words", "lines",
		"relay"}[s]
}

// FreeShapes lists the shapes that an operation has.
func FreeShapes(f coll.Func) []Shape {
	switch f {
	case coll.AllReduce:
		return []Shape{OneShot, TwoWords, TwoShot, Push, Direct, Copies}
	case coll.AllGather, coll.ReduceScatter, coll.AllToAll:
		return []Shape{TwoWords, TwoShot, Direct, Copies}
	}
	return partShapes(f)
}

// freeArgs mirrors Args of kernels/free.cu.
type freeArgs struct {
	arena, in, out     [MaxRanks]Ptr
	bytes, chunk, half uint64
	span, slots        uint64
	piece, stop        uint64
	rank, n            int32
	aligned, _         int32
}

// Free executes one rank's part of the free algorithms: an arena in device memory, streams and events.
type Free struct {
	dev     *Device
	rank, n int
	arena   [MaxRanks]Ptr
	kernels *Kernels
	stop    *Stop
	side    Stream              // in addition to the user's stream: reductions, local copies
	last    Stream              // copies of results
	events  [2 + maxDepth]Event // for joining streams, and one per slot
}

// maxDepth is the largest number of pieces in slots.
const maxDepth = 8

// NewFree allocates this rank's arena. The ranks then exchange their arenas' addresses (as mapped on each
// device) with SetPeers. The caller keeps ownership of the kernels.
func NewFree(k *Kernels, rank, n int, stop *Stop) (_ *Free, err error) {
	if n < 1 || n > MaxRanks {
		return nil, &exec.UnsupportedError{Feature: "free algorithms",
			Needs: fmt.Sprintf("1 to %d ranks of one NVLink island", MaxRanks), Found: fmt.Sprintf("%d ranks",
				n)}
	}
	f := &Free{dev: k.dev, rank: rank, n: n, kernels: k, stop: stop}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	if f.arena[rank], err = f.dev.Alloc(arenaSize); err != nil {
		return nil, err
	}
	if err = f.dev.Set(f.arena[rank], 0, slotStart, 0); err != nil { // slots need no clearing
		return nil, err
	}
	for _, s := range []*Stream{&f.side, &f.last} {
		if *s, err = f.dev.NewStream(); err != nil {
			return nil, err
		}
	}
	for i := range f.events {
		if f.events[i], err = f.dev.NewEvent(); err != nil {
			return nil, err
		}
	}
	return f, f.dev.Sync(0)
}

// Done reports whether the streams other than the user's are idle.
func (f *Free) Done() (bool, error) {
	done, err := f.dev.Done(f.side)
	if err != nil || !done {
		return false, err
	}
	return f.dev.Done(f.last)
}

// Arena returns the arena's address, which peers need.
func (f *Free) Arena() Ptr { return f.arena[f.rank] }

// SetPeers sets the peers' arenas, by rank.
func (f *Free) SetPeers(arenas []Ptr) { copy(f.arena[:], arenas) }

// Close frees the arena and all other resources; no peer may use the arena any more.
func (f *Free) Close() error {
	var errs []error
	for i, e := range f.events {
		if e != 0 {
			errs = append(errs, f.dev.DestroyEvent(e))
		}
		f.events[i] = 0
	}
	for _, s := range []*Stream{&f.side, &f.last} {
		if *s != 0 {
			errs = append(errs, f.dev.DestroyStream(*s))
		}
		*s = 0
	}
	if p := f.arena[f.rank]; p != 0 {
		errs = append(errs, f.dev.Free(p))
		f.arena[f.rank] = 0
	}
	return errors.Join(errs...)
}

var typeNames = map[coll.DataType]string{
	coll.Float64: "f64", coll.Float32: "f32", coll.Float16: "f16", coll.BFloat16: "bf16",
	coll.Int8: "i8", coll.Uint8: "u8", coll.Int32: "i32", coll.Uint32: "u32", coll.Int64: "i64",
	coll.Uint64: "u64",
}

var opNames = [coll.NumRedOps]string{coll.Sum: "sum", coll.Prod: "prod", coll.Max: "max", coll.Min: "min",
	coll.Avg: "avg"}

// FreeOp is one operation. In and Out are by rank; only the rank's own entries are used unless Shape is
// Direct.
type FreeOp struct {
	Func    coll.Func
	Shape   Shape
	In, Out [MaxRanks]Ptr
	// Bytes is the size of the whole buffer for all_reduce, of one rank's part otherwise.
	Bytes units.Bytes
	Type  coll.DataType
	Red   coll.RedOp
	Root  int
	// Pairs are the elements that ranks exchange in an alltoall with unequal parts, by pair; nil: Bytes each.
	Pairs *coll.Pairs
	// Blocks is the size of the grid; Piece the bytes that a block of Push sends at a time, a multiple of 16;
	// 0: chosen by size.
	Blocks int
	Piece  units.Bytes
}

// Prepare loads the operation's kernel, which must not happen during a stream capture.
func (f *Free) Prepare(o *FreeOp) error {
	if o.Shape == Copies {
		for _, name := range []string{"gather_ranks", "await_copies"} {
			if _, err := f.kernels.get("free_moves", name); err != nil {
				return err
			}
		}
	}
	_, err := f.find(o)
	return err
}

// Known reports whether the operation has a kernel.
func (f *Free) Known(o *FreeOp) bool {
	if !reduces(o.Func) {
		return true
	}
	_, ok := typeNames[o.Type]
	return ok && o.Red.Valid()
}

// reduces reports whether an operation has a reduction.
func reduces(f coll.Func) bool {
	return f == coll.AllReduce || f == coll.ReduceScatter || f == coll.Reduce
}

func (f *Free) find(o *FreeOp) (Kernel, error) {
	if o.inParts() {
		return f.findPart(o)
	}
	name := map[coll.Func][Relay + 1]string{
		coll.AllReduce: {"one_shot", "two_words", "two_shot", "push_all_reduce", "direct_all_reduce",
			"direct_reduce_scatter"},
		coll.ReduceScatter: {"", "scatter_words", "scatter_reduce", "", "direct_reduce_scatter",
			"direct_reduce_scatter"},
		coll.AllGather: {"", "gather_words", "gather_lines", "", "direct_gather", "gather_ranks"},
		coll.AllToAll:  {"", "exchange_words", "exchange_lines", "", "direct_exchange", "gather_ranks"},
	}[o.Func][o.Shape]
	if name == "" {
		return 0, &exec.NotImplementedError{Feature: fmt.Sprintf("free %v %v", o.Shape, o.Func),
			Missing: "a kernel"}
	}
	return f.typed("free", name, o)
}

// typed returns the operation's kernel in a file with one for each type and reduction. Error: there is none.
func (f *Free) typed(file, name string, o *FreeOp) (Kernel, error) {
	if !reduces(o.Func) {
		return f.kernels.get(file+"_moves", name)
	}
	t, ok := typeNames[o.Type]
	if !ok || !o.Red.Valid() {
		return 0, &exec.NotImplementedError{Feature: fmt.Sprintf("free %v of %v, %v", o.Func, o.Type, o.Red),
			Missing: "a kernel for that type"}
	}
	return f.kernels.get(file+"_"+t, name+"_"+t+"_"+opNames[o.Red])
}

// Fits reports whether the arena is large enough for the operation in its shape.
func (f *Free) Fits(o *FreeOp) bool {
	if o.inParts() {
		return f.fitsPart(o)
	}
	switch {
	case o.Shape == Direct || o.Shape == Push:
		return true
	case o.Shape == Copies: // below, queueing the copies takes longer than moving the bytes
		return o.Bytes >= minCopies
	case o.Shape == OneShot:
		return f.span(o) <= uint64(wordHalf)/MaxRanks
	case o.Shape == TwoWords:
		return f.span(o) <= uint64(wordHalf)/(2*MaxRanks)
	}
	return f.span(o) <= uint64(arenaHalf)/(2*MaxRanks)
}

// span returns the bytes that the words or lines of one rank occupy in an arena.
func (f *Free) span(o *FreeOp) uint64 {
	switch o.Shape {
	case OneShot:
		return (uint64(o.Bytes) + 7) / 8 * 16
	case TwoWords:
		return (f.share(o) + 7) / 8 * 16
	}
	return ((f.share(o)+119)/120 + 3) / 4 * 4 * 128
}

// chunk returns a rank's share of an all_reduce in bytes: equal shares of whole 16-byte packs.
func (f *Free) chunk(o *FreeOp) uint64 {
	n := uint64(f.n)
	return (uint64(o.Bytes) + 16*n - 1) / (16 * n) * 16
}

// Launch geometry: measured on H200, see docs/results/HARDWARE.md.
const (
	freeThreads = 512
	pushDepth   = 4   // pieces that a block may be ahead of its receiver (kernels/free.cu, DEPTH)
	pushBlocks  = 128 // at most, so that all run at once
)

// share returns the bytes that one rank reduces or moves.
func (f *Free) share(o *FreeOp) uint64 {
	if o.Func == coll.AllReduce {
		return f.chunk(o)
	}
	return uint64(o.Bytes)
}

func (f *Free) grid(o *FreeOp) int {
	if o.Blocks > 0 {
		return o.Blocks
	}
	need, most := uint64(0), uint64(64)
	threads := func(n uint64) uint64 { return (n + freeThreads - 1) / freeThreads }
	switch o.Shape {
	case OneShot:
		need = threads((uint64(o.Bytes) + 7) / 8)
	case TwoWords:
		need = threads((f.share(o) + 7) / 8)
	case TwoShot:
		b := f.share(o)
		if need, most = threads((b+14)/15), 96; b > 1<<21 {
			most = 128
		}
	case Push:
		p := uint64(f.piece(o))
		need, most = (f.share(o)+p-1)/p, pushBlocks
	case Direct:
		need, most = threads(uint64(o.Bytes)/16), 96
		if f.n == 2 { // 96 was chosen on 4 GPUs; on 2 this is up to 17 % faster
			most = 128
		}
		if o.Bytes < 1<<20 {
			most = 16
		}
	}
	return int(min(max(need, 1), most))
}

// piece returns the bytes that a block of Push sends to a peer at a time.
func (f *Free) piece(o *FreeOp) units.Bytes {
	switch {
	case o.Piece > 0:
		return o.Piece
	case f.share(o) < 4<<20:
		return 16 << 10
	case f.share(o) < 16<<20:
		return 32 << 10
	}
	return 64 << 10
}

// args returns the arguments that all kernels share.
func (f *Free) args() *freeArgs {
	return &freeArgs{arena: f.arena, half: uint64(arenaHalf), slots: uint64(slotStart), stop: f.stop.at(),
		rank: int32(f.rank), n: int32(f.n)}
}

// Queue queues the operation on the stream. All ranks must queue the same operations in the same order.
func (f *Free) Queue(o *FreeOp, s Stream) error {
	k, err := f.find(o)
	if err != nil {
		return err
	}
	if o.Bytes == 0 {
		return nil
	}
	if o.inParts() {
		return f.queueParts(o, k, s)
	}
	if o.Shape == Copies {
		return f.queueCopies(o, k, s)
	}
	a := f.args()
	a.in, a.out, a.bytes, a.chunk, a.piece, a.span = o.In, o.Out, uint64(o.Bytes), f.chunk(o),
		uint64(f.piece(o)), f.span(o)
	a.aligned = 1
	for i := range f.n {
		if (o.In[i]|o.Out[i])%16 != 0 {
			a.aligned = 0
		}
	}
	if o.Func != coll.AllReduce && o.Bytes%16 != 0 {
		a.aligned = 0 // parts of other ranks may start at unaligned addresses
	}
	params := []unsafe.Pointer{unsafe.Pointer(a)}
	return f.dev.Launch(k, f.grid(o), freeThreads, 0, s, params)
}
