package cuda

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io"
	"unsafe"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/units"
)

//go:embed kernels/*.ptx.gz
var kernelFiles embed.FS

// MaxRanks is the largest team of the free algorithms: one NVLink island.
const MaxRanks = 8

// Arena sizes (kernels/free.cu): epochs and flags, two halves of words, two
// halves of lines, two slots in which copy engines leave parts to reduce.
const (
	arenaHeader units.Bytes = 64 << 10
	wordHalf    units.Bytes = 8 << 20
	arenaHalf   units.Bytes = 256 << 20
	slotSize    units.Bytes = 256 << 20
	slotStart               = arenaHeader + 2*wordHalf + 2*arenaHalf
	arenaSize               = slotStart + 2*slotSize
)

// Shape is a free algorithm.
type Shape uint8

// Shapes; which exist depends on the operation (see FreeShapes).
const (
	OneShot Shape = iota // LL lines, every rank reduces everything
	TwoShot              // LL128 lines, every rank reduces its share
	Direct               // peer loads and stores between two barriers
	Copies               // copy engines move, kernels only reduce
)

// String names a shape as tables print it.
func (s Shape) String() string { return [...]string{"one-shot", "two-shot", "direct", "copies"}[s] }

// FreeShapes lists the shapes that an operation has.
func FreeShapes(f coll.Func) []Shape {
	switch f {
	case coll.AllReduce:
		return []Shape{OneShot, TwoShot, Direct, Copies}
	case coll.AllGather, coll.ReduceScatter, coll.AllToAll:
		return []Shape{TwoShot, Direct, Copies}
	}
	return nil
}

// freeArgs mirrors Args of kernels/free.cu.
type freeArgs struct {
	arena, in, out     [MaxRanks]Ptr
	bytes, chunk, half uint64
	rank, n            int32
	aligned, _         int32
}

// Free is one rank's side of the free algorithms.
type Free struct {
	dev     *Device
	rank, n int
	arena   [MaxRanks]Ptr
	kernels map[string]Kernel
	modules map[string]Module
	side    Stream   // beside the user's stream: reductions, local copies
	events  [4]Event // two of each stream, used in turn
}

// NewFree takes this rank's arena. The ranks then tell each other their
// arenas' addresses (as mapped on each device) with SetPeers.
func NewFree(dev *Device, rank, n int) (*Free, error) {
	if n < 1 || n > MaxRanks {
		return nil, &exec.UnsupportedError{Feature: "free algorithms", Needs: fmt.Sprintf("1 to %d ranks of one NVLink island", MaxRanks), Found: fmt.Sprintf("%d ranks", n)}
	}
	f := &Free{dev: dev, rank: rank, n: n, kernels: map[string]Kernel{}, modules: map[string]Module{}}
	p, err := dev.Alloc(arenaSize)
	if err != nil {
		return nil, err
	}
	f.arena[rank] = p
	if err := dev.Set(p, 0, arenaSize, 0); err != nil {
		return nil, err
	}
	if f.side, err = dev.NewStream(); err != nil {
		return nil, err
	}
	for i := range f.events {
		if f.events[i], err = dev.NewEvent(); err != nil {
			return nil, err
		}
	}
	return f, dev.Sync(0)
}

// Arena returns the address that peers need.
func (f *Free) Arena() Ptr { return f.arena[f.rank] }

// SetPeers gives the peers' arenas by rank.
func (f *Free) SetPeers(arenas []Ptr) { copy(f.arena[:], arenas) }

// Close frees the arena and the kernels.
func (f *Free) Close() error {
	for _, m := range f.modules {
		if err := f.dev.call("cuModuleUnload", f.dev.d.fn.moduleUnload, uintptr(m)); err != nil {
			return err
		}
	}
	for _, e := range f.events {
		if err := f.dev.DestroyEvent(e); err != nil {
			return err
		}
	}
	if err := f.dev.DestroyStream(f.side); err != nil {
		return err
	}
	return f.dev.Free(f.arena[f.rank])
}

var typeNames = map[coll.DataType]string{
	coll.Float32: "f32", coll.Float16: "f16", coll.BFloat16: "bf16",
	coll.Int8: "i8", coll.Int32: "i32", coll.Int64: "i64",
}

var opNames = [coll.NumRedOps]string{coll.Sum: "sum", coll.Prod: "prod", coll.Max: "max", coll.Min: "min", coll.Avg: "avg"}

// kernel finds a kernel, loading its file on first use.
func (f *Free) kernel(file, name string) (Kernel, error) {
	if k, ok := f.kernels[name]; ok {
		return k, nil
	}
	m, ok := f.modules[file]
	if !ok {
		image, err := ptx("free_" + file)
		if err != nil {
			return 0, err
		}
		if m, err = f.dev.Load(image); err != nil {
			return 0, err
		}
		f.modules[file] = m
	}
	k, err := f.dev.Kernel(m, name)
	if err == nil {
		f.kernels[name] = k
	}
	return k, err
}

func ptx(file string) ([]byte, error) {
	raw, err := kernelFiles.ReadFile("kernels/" + file + ".ptx.gz")
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// FreeOp is one operation. In and Out are by rank; only the own entries are
// used unless Shape is Direct.
type FreeOp struct {
	Func    coll.Func
	Shape   Shape
	In, Out [MaxRanks]Ptr
	// Bytes is the whole buffer for all_reduce, one rank's part otherwise.
	Bytes units.Bytes
	Type  coll.DataType
	Red   coll.RedOp
}

// Prepare loads the operation's kernel, which a stream capture must not do.
func (f *Free) Prepare(o *FreeOp) error {
	if o.Shape == Copies {
		if _, err := f.kernel("moves", "gather_ranks"); err != nil {
			return err
		}
	}
	_, err := f.find(o)
	return err
}

// Known tells whether the operation has a kernel.
func (f *Free) Known(o *FreeOp) bool {
	if o.Func != coll.AllReduce && o.Func != coll.ReduceScatter {
		return true
	}
	_, ok := typeNames[o.Type]
	return ok && o.Red < coll.NumRedOps
}

func (f *Free) find(o *FreeOp) (Kernel, error) {
	reduces := o.Func == coll.AllReduce || o.Func == coll.ReduceScatter
	name := map[coll.Func][4]string{
		coll.AllReduce:     {"one_shot", "two_shot", "direct_all_reduce", "direct_reduce_scatter"},
		coll.ReduceScatter: {"", "scatter_reduce", "direct_reduce_scatter", "direct_reduce_scatter"},
		coll.AllGather:     {"", "gather_lines", "direct_gather", "gather_ranks"},
		coll.AllToAll:      {"", "exchange_lines", "direct_exchange", "gather_ranks"},
	}[o.Func][o.Shape]
	if name == "" {
		return 0, &exec.NotImplementedError{Feature: fmt.Sprintf("free %v %v", o.Shape, o.Func), Missing: "a kernel"}
	}
	if !reduces {
		return f.kernel("moves", name)
	}
	t, ok := typeNames[o.Type]
	if !ok || o.Red >= coll.NumRedOps {
		return 0, &exec.NotImplementedError{Feature: fmt.Sprintf("free %v of %v, %v", o.Func, o.Type, o.Red), Missing: "a kernel for that type"}
	}
	return f.kernel(t, name+"_"+t+"_"+opNames[o.Red])
}

// Fits tells whether the arena can take the operation in its shape.
func (f *Free) Fits(o *FreeOp) bool {
	b := uint64(o.Bytes)
	switch {
	case o.Shape == Direct:
		return true
	case o.Shape == Copies: // below, queueing the copies takes longer than moving the bytes
		return o.Bytes >= minCopies
	case o.Shape == OneShot:
		return (b+7)/8*16 <= uint64(wordHalf)/MaxRanks
	case o.Func == coll.AllReduce:
		b = f.chunk(o)
	}
	return ((b+119)/120+3)/4*4*128 <= uint64(arenaHalf)/(2*MaxRanks)
}

// chunk is a rank's share of an all_reduce: equal shares of whole packs.
func (f *Free) chunk(o *FreeOp) uint64 {
	n := uint64(f.n)
	return (uint64(o.Bytes) + 16*n - 1) / (16 * n) * 16
}

// Launch geometry: measured on H200, see docs/HARDWARE.md.
const freeThreads = 512

func (f *Free) grid(o *FreeOp) int {
	need, most := uint64(0), 64
	switch o.Shape {
	case OneShot:
		need = ((uint64(o.Bytes)+7)/8 + freeThreads - 1) / freeThreads
	case TwoShot:
		b := uint64(o.Bytes)
		if o.Func == coll.AllReduce {
			b = f.chunk(o)
		}
		need = ((b+479)/480 + freeThreads/32 - 1) / (freeThreads / 32)
		if b > 1<<20 {
			most = 128
		}
	case Direct:
		need, most = (uint64(o.Bytes)+16*freeThreads-1)/(16*freeThreads), 128
	}
	return int(min(max(need, 1), uint64(most)))
}

// Queue puts the operation on the stream. All ranks queue the same operations
// in the same order.
func (f *Free) Queue(o *FreeOp, s Stream) error {
	k, err := f.find(o)
	if err != nil {
		return err
	}
	if o.Bytes == 0 {
		return nil
	}
	if o.Shape == Copies {
		return f.queueCopies(o, k, s)
	}
	a := &freeArgs{arena: f.arena, in: o.In, out: o.Out, bytes: uint64(o.Bytes), chunk: f.chunk(o),
		half: uint64(arenaHalf), rank: int32(f.rank), n: int32(f.n), aligned: 1}
	for i := range f.n {
		if (o.In[i]|o.Out[i])%16 != 0 {
			a.aligned = 0
		}
	}
	if o.Func != coll.AllReduce && o.Bytes%16 != 0 {
		a.aligned = 0 // parts of other ranks start off the 16-byte grid
	}
	params := []unsafe.Pointer{unsafe.Pointer(a)}
	return f.dev.Launch(k, f.grid(o), freeThreads, 0, s, params)
}
