package sym

import (
	"math"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/units"
)

// Limits of the kernels (include/sym_kernels.h:17-20).
const (
	maxBlocks = 64
	// Threads is the number of threads of a block.
	Threads = 512
	// CellSize is the size in bytes of the units in which a task is divided.
	CellSize = 1024
)

// Comm holds the properties of a communicator that symmetric kernels depend on.
type Comm struct {
	Rules        *rules.Symmetric
	Ranks, Nodes int
	SM           int // lowest compute capability of the GPUs, 90 for sm_90
	NVLS         bool
	P2P          bool // all GPUs can access each other's memory
	DirectP2P    bool // and no pair is further apart than NCCL_P2P_LEVEL
	DirectNVLink bool // and every pair is connected by NVLink without a third GPU in between
	PerNode      int  // ranks per node: the greatest common divisor over all nodes (dev_runtime.cc:74)
	GIN          bool // GPUs drive every NIC of every node
	FusedNICs    bool // a node has virtual NICs
	WindowsOff   bool // NCCL_WIN_ENABLE=0, or NCCL_CUMEM_ENABLE=0
	Params       Params
}

// Params are NCCL's settings of symmetric kernels and copy engines.
type Params struct {
	Kernel     units.Opt[string] // NCCL_SYM_KERNEL
	CTAs       units.Opt[int64]  // NCCL_SYM_CTAS, 0 for none
	MinCTAs    units.Opt[int64]  // NCCL_MIN_CTAS, 1
	MaxCTAs    units.Opt[int64]  // NCCL_MAX_CTAS, 64
	TMA        bool              // NCCL_SYM_TMA_ENABLE
	GINOff     bool              // NCCL_SYM_GIN_KERNELS_ENABLE=0, or NCCL_GIN_ENABLE=0
	CTAPolicy  int               // NCCL_CTA_POLICY: 0 default, 1 efficiency, 2 no blocks
	CopyGather units.Opt[int64]  // NCCL_SYM_CE_THRESHOLD, elements
}

// Windows says which buffers of a task are in symmetric windows.
type Windows uint8

// Windows. nccl-tests uses Both with -R 2.
const (
	NoWindow   Windows = 0
	SendWindow Windows = 1
	RecvWindow Windows = 2
	Both               = SendWindow | RecvWindow
)

// Task is one collective. Count is NCCL's: for AllGather the elements that a rank sends, for ReduceScatter
// those it receives, for AllReduce those of the buffer.
type Task struct {
	Func    coll.Func
	Op      coll.RedOp // AllReduce and ReduceScatter
	Type    coll.DataType
	Count   int64
	Windows Windows
	// InPlace: the task has one buffer. It affects no choice, but the task takes less time.
	InPlace bool
}

// normal returns a task as NCCL handles it: AllGather counts bytes (enqueue.cc:2471).
func (t Task) normal() Task {
	if t.Func == coll.AllGather {
		t.Count, t.Type, t.Op = t.Count*int64(t.Type.Size()), coll.Int8, coll.Sum
	}
	return t
}

// Choice is a kernel for one or several tasks of one function, reduction and type.
type Choice struct {
	Kernel Kernel
	Blocks int // at most this many; Spread may need fewer
	Warps  int
	TimeUs float32 // NCCL's estimate; 0 if NCCL_SYM_KERNEL names the kernel
	// IfLL: one buffer is in no window, so NCCL uses the kernel only if it would otherwise have chosen LL
	// (symmetric_sched.cc:116 of v2.29.7-1).
	IfLL bool
}

// Supported reports whether a communicator has symmetric windows, and if not, why (init.cc:1376).
func (c *Comm) Supported() (ok bool, why string) {
	r := c.Rules
	switch {
	case r == nil || !r.Kernels:
		return false, "this release has no symmetric kernels; 2.27.3 is the first"
	case c.Ranks < 2:
		return false, "one rank: NCCL copies"
	case c.WindowsOff:
		return false, "windows are off; they need NCCL_WIN_ENABLE=1 and NCCL_CUMEM_ENABLE not 0"
	case c.Nodes > 1:
		return false, "symmetric kernels need one node or one NVLink domain"
	case r.DirectP2P && !c.DirectP2P || !c.P2P:
		return false, "not all GPUs can access each other's memory"
	case r.NVLinkOnly && !c.DirectNVLink:
		return false, "not all GPUs are joined by NVLink"
	}
	return true, ""
}

// Available reports whether NCCL uses a symmetric kernel for a task; NCCL compares them with no other
// algorithm (sym_kernels.cc:316, symmetric_sched.cc:30).
func (c *Comm) Available(t Task) bool {
	ok, _ := c.Supported()
	if !ok || t.Windows == NoWindow || t.Windows != Both && !c.Rules.OneBuffer {
		return false
	}
	t = t.normal()
	return c.implemented(t) && c.mask(t) != 0
}

// implemented reports whether a kernel exists: AllReduce and ReduceScatter only sum floating-point types,
// except double (sym_kernels.cc:248).
func (c *Comm) implemented(t Task) bool {
	switch t.Func {
	case coll.AllGather:
		return true
	case coll.AllReduce, coll.ReduceScatter:
		return (t.Op == coll.Sum || t.Op == coll.Avg && c.Rules.Avg) && t.Type.IsFloat() &&
			t.Type != coll.Float64
	}
	return false
}

// mask returns a bit set of the kernels that can execute a task (sym_kernels.cc:275-314).
func (c *Comm) mask(t Task) (m uint32) {
	named, found := None, true
	if k := c.Params.Kernel; k.Set && k.Value != "^" {
		named, found = Named(k.Value)
	}
	if !found {
		return 0
	}
	stores := c.NVLS && c.Ranks >= c.Rules.MulticastRanks
	loads := stores && c.reducesInSwitch(t)
	bytes := uint64(t.Count) * uint64(t.Type.Size())
	if t.Func != coll.AllReduce {
		bytes *= uint64(c.Ranks)
	}
	for k := None + 1; k < numKernels; k++ {
		d := &table[k]
		switch {
		case d.fn != t.Func, named != None && k != named,
			d.stores && !stores, d.loads && !(loads && stores),
			d.tma && !(c.Rules.TMA && c.Params.TMA && c.SM >= 100),
			d.how == PushLL && bytes >= 2<<30, bytes >= 64<<30:
			continue
		}
		m |= 1 << k
	}
	return m
}

// reducesInSwitch reports whether NVLink SHARP can reduce a task: integers of 4 and 8 bytes and floats (8-bit
// floats from sm_100 on); floats of 4 and 8 bytes only as a sum (sym_kernels.cc:284-303).
func (c *Comm) reducesInSwitch(t Task) bool {
	sum := t.Op == coll.Sum || t.Op == coll.Avg
	extreme := t.Op == coll.Min || t.Op == coll.Max
	switch t.Type {
	case coll.Int32, coll.Uint32, coll.Int64, coll.Uint64, coll.Float16, coll.BFloat16:
		return sum || extreme
	case coll.Float8e4m3, coll.Float8e5m2:
		return (sum || extreme) && c.SM >= 100
	case coll.Float32, coll.Float64:
		return sum
	}
	return false
}

// one restricts the kernels for a task with a buffer in no window (sym_kernels.cc:581 of v2.29.7-1).
func (c *Comm) one(t Task, m uint32) uint32 {
	enough := t.Windows == Both ||
		t.Func == coll.AllGather && t.Windows == RecvWindow || t.Func == coll.ReduceScatter &&
		t.Windows == SendWindow
	if !enough {
		m &= llMask
	}
	return m
}

var llMask = func() (m uint32) {
	for k := None + 1; k < numKernels; k++ {
		if k.LL() {
			m |= 1 << k
		}
	}
	return m
}()

// pick chooses the kernel for tasks that share t's function, reduction, type and windows: total is the sum of
// their elements, each rounded up to whole cells, and most the elements of the largest task
// (sym_kernels.cc:325). ok is false if no kernel remains.
func (c *Comm) pick(t Task, total, most int64, tasks int) (ch Choice, ok bool) {
	t = t.normal()
	t.Count = most
	m := c.mask(t)
	if tasks > 1 {
		m &^= llMask
	}
	if c.Rules.OneBuffer {
		m = c.one(t, m)
	}
	bytes := uint64(total) * uint64(t.Type.Size())
	const penalty = float32(.025) // of a block, for the SM that it occupies
	best := float32(1e30) * (1 + penalty*999)
	for k := None + 1; k < numKernels; k++ {
		if m>>k&1 == 0 {
			continue
		}
		us, blocks := c.query(k, bytes)
		if cost := us * (1 + float32(penalty*float32(blocks))); cost < best {
			ch, best, ok = Choice{Kernel: k, Blocks: blocks, Warps: Threads / 32, TimeUs: us}, cost, true
		}
	}
	if k := c.Params.Kernel; k.Set && k.Value != "^" {
		ch.TimeUs = 0
	} else {
		ch.IfLL = (t.Windows != Both || c.Rules.LLByCost) && ch.Kernel.LL()
	}
	return ch, ok
}

// busBytes returns the bytes on the busier direction of a GPU's links, by NCCL's own estimate; mul is the
// factor by which an SM moves more (sym_kernels.cc:142-180).
func (c *Comm) busBytes(k Kernel, bytes uint64) (bus uint64, mul float64) {
	n := uint64(c.Ranks)
	switch d := &table[k]; {
	case d.how == PushLL:
		if mul = 1; d.stores {
			mul = 1.1
		}
		return uint64(float64(n*bytes) * 9), mul
	case k == AllReduceMC:
		return bytes/n + bytes, float64(n)
	case d.fn == coll.AllReduce:
		return 2 * bytes * (n - 1) / n, 1
	case d.how == Multicast:
		return (n - 1) * bytes, .55 * float64(n)
	}
	return (n - 1) * bytes, 1
}

// query returns NCCL's estimate of a kernel's time in microseconds and the least number of blocks within 2.5
// % of the best bandwidth (sym_kernels.cc:129-217).
func (c *Comm) query(k Kernel, bytes uint64) (us float32, blocks int) {
	bus, mul := c.busBytes(k, bytes)
	most := maxBlocks
	if table[k].how == Multicast {
		most = 16
		if c.SM >= 100 {
			most = 32
		}
		most = (most + c.Ranks - 1) / c.Ranks
	}
	least := int(c.Params.MinCTAs.Or(1))
	most = min(most, int(c.Params.MaxCTAs.Or(maxBlocks)))
	if n := min(maxBlocks, c.Params.CTAs.Or(0)); n > 0 {
		least, most = int(n), int(n)
	}
	base, perSM, peak := c.rates(k)
	blocks, us = most, estimate(bus, base, most, perSM, mul, peak)
	for n := least; n < most; n++ {
		if t := estimate(bus, base, n, perSM, mul, peak); float64(t) <= 1.025*float64(us) {
			return t, n
		}
	}
	return us, blocks
}

// rates returns a kernel's latency in microseconds, and the bandwidths of an SM and of a GPU's links in bytes
// per microsecond (sym_kernels.cc:190-202).
func (c *Comm) rates(k Kernel) (base, perSM, peak float64) {
	const gbps = (1 << 30) / 1e6
	d := &table[k]
	ll, reduces := d.how == PushLL, d.fn == coll.AllReduce
	if c.SM < 100 {
		base, perSM, peak = 7.8, 44*gbps, 320*gbps
		if ll {
			base = 4.5
		}
		if reduces {
			perSM = 65 * gbps
		}
		if k == AllReduceMC {
			peak = 480 * gbps
		}
		return base, perSM, peak
	}
	perSM, peak = 55*gbps, 600*gbps
	switch {
	case ll && d.fn == coll.AllGather:
		base = 8.5
	case ll:
		base = 11
	case reduces:
		base = 19.5
	default:
		base = 13
	}
	if k == AllReduceMC {
		peak = 1000 * gbps
	}
	return base, perSM, peak
}

// estimate is NCCL's model of the time (sym_kernels.cc:108-126): the bandwidth is a smooth minimum of that of
// the blocks and of the links; the time is the latency plus a smooth maximum of 0 and the transfer time
// beyond the first microsecond.
func estimate(bus uint64, base float64, blocks int, perSM, mul, peak float64) float32 {
	bw := peak - float64(perSM*math.Log1p((math.Exp(peak/perSM)-1)*math.Exp(-(float64(blocks)*perSM*mul)/
		perSM)))
	x := float64(bus)/bw - 1
	if x < 100 {
		x = math.Log1p(math.Exp(x))
	}
	return float32(base + x)
}

func alignUp(n, to int64) int64 { return (n + to - 1) / to * to }
