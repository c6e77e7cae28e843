package cuda

import (
	"math/rand/v2"
	"structs"
	"sync/atomic"
	"unsafe"

	"github.com/simccl/simccl/units"
)

// computeArgs mirrors Args of kernels/compute.cu.
type computeArgs struct {
	_                           structs.HostLayout
	from, to, packs, gate, stop uint64
}

// Compute is work for a GPU that runs at the same time as its collectives.
type Compute struct {
	k     *Kernels
	stop  *Stop
	blas  *Blas // nil: no matrix products
	parts [3]Ptr
	size  units.Bytes // size of each array
	gate  []byte
}

// NewCompute allocates three arrays of size bytes, a multiple of 2 KiB. lib is cuBLAS, or nil.
func NewCompute(k *Kernels, stop *Stop, lib *BlasLib, size units.Bytes) (c *Compute, err error) {
	c = &Compute{k: k, stop: stop, size: size}
	for i := range c.parts {
		if c.parts[i], err = k.dev.Alloc(size); err != nil {
			return c, err
		}
		if err = c.fill(c.parts[i]); err != nil {
			return c, err
		}
	}
	if c.gate, err = k.dev.HostAlloc(64); err != nil {
		return c, err
	}
	if lib != nil {
		c.blas, err = lib.open()
	}
	return c, err
}

// fill writes floats with random bits: the power of a product, and so the GPU's clock rate, depends on the
// data.
func (c *Compute) fill(p Ptr) error {
	text := randomHalves(min(c.size, 1<<20), uint64(c.size))
	for at := units.Bytes(0); at < c.size; at += units.Bytes(len(text)) {
		n := min(units.Bytes(len(text)), c.size-at)
		if err := c.k.dev.Upload(p+Ptr(at), text[:n]); err != nil {
			return err
		}
	}
	return nil
}

// randomHalves are so many bytes of half-precision floats from 1 to 2, of either sign, by a seed.
func randomHalves(size units.Bytes, seed uint64) []byte {
	const one, fraction, sign = 0x3c00, 0x3ff, 0x8000
	text := make([]byte, size)
	rng := rand.New(rand.NewPCG(1, seed))
	for i := 0; i+1 < len(text); i += 2 {
		v := one | rng.Uint32()&fraction | rng.Uint32()&sign
		text[i], text[i+1] = byte(v), byte(v>>8)
	}
	return text
}

// addThreads is the number of threads of a block of an addition.
const addThreads = 128

// Prepare loads the kernels; this is not allowed while a stream is captured.
func (c *Compute) Prepare() error {
	for _, name := range []string{"add_ones", "hold_stream"} {
		if _, err := c.k.get("compute", name); err != nil {
			return err
		}
	}
	return nil
}

// Add queues an addition that reads n bytes of one array, a multiple of 2 KiB, and writes as many of another.
func (c *Compute) Add(n units.Bytes, s Stream) error {
	a := &computeArgs{from: uint64(c.parts[0]), to: uint64(c.parts[1]), packs: uint64(min(n, c.size)) / 16}
	return c.launch("add_ones", int(a.packs)/addThreads, addThreads, a, s)
}

// Products reports whether matrices can be multiplied.
func (c *Compute) Products() bool { return c.blas != nil }

// Multiply queues a product of n x n matrices of half-precision floats, each at most an array.
func (c *Compute) Multiply(n int, s Stream) error {
	return c.blas.multiply(n, c.parts[0], c.parts[1], c.parts[2], s)
}

// Shut closes the gate: Hold blocks streams until Release.
func (c *Compute) Shut() { atomic.StoreUint64(c.word(), 0) }

// Hold queues a kernel that blocks the stream until Release.
func (c *Compute) Hold(s Stream) error {
	return c.launch("hold_stream", 1, warpSize, &computeArgs{gate: uint64(uintptr(unsafe.Pointer(c.word()))),
		stop: c.stop.at()}, s)
}

// Release opens the gate for held streams.
func (c *Compute) Release() { atomic.StoreUint64(c.word(), 1) }

func (c *Compute) word() *uint64 { return (*uint64)(unsafe.Pointer(&c.gate[0])) }

func (c *Compute) launch(name string, blocks, threads int, a *computeArgs, s Stream) error {
	f, err := c.k.get("compute", name)
	if err != nil {
		return err
	}
	return c.k.dev.Launch(f, blocks, threads, 0, s, []unsafe.Pointer{unsafe.Pointer(a)})
}

// Free frees the memory; no kernel may run.
func (c *Compute) Free() error {
	var first error
	keep := func(err error) {
		if first == nil {
			first = err
		}
	}
	if c.blas != nil {
		keep(c.blas.close())
	}
	for _, p := range c.parts {
		if p != 0 {
			keep(c.k.dev.Free(p))
		}
	}
	if c.gate != nil {
		keep(c.k.dev.HostFree(c.gate))
	}
	return first
}
