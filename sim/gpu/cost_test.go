package gpu

import (
	"math"
	"testing"

	"github.com/simccl/simccl/coll"
)

// recvCopySend is the pass in the middle of an all_gather.
var recvCopySend = Pass{Loads: 1, Stores: 1, Local: true, Elem: 1}

// In LL a thread stores its 8 bytes by the element, so that all_gather, whose
// elements are bytes to the kernel, goes slower than what moves floats, and
// data that does not begin with a line goes slower still (prims_ll.h:193).
func TestLLStoresElements(t *testing.T) {
	c := NVSwitch90()
	last := 0.0
	for _, elem := range []int64{8, 4, 2, 1} {
		p := recvCopySend
		p.Elem = elem
		us := c.LLTime(p, 512, 0, 32<<10, 0)
		if us <= last {
			t.Errorf("elements of %d bytes: %.3f us, of twice as many %.3f us", elem, us, last)
		}
		p.Unaligned128 = true
		if a := c.LLTime(p, 512, 0, 32<<10, 0); a <= us {
			t.Errorf("elements of %d bytes astride lines: %.3f us, else %.3f us", elem, a, us)
		}
		last = us
	}
}

// LL128 stores 16 bytes at a time, whatever the elements, unless they are not
// aligned to that (prims_ll128.h:159).
func TestLL128StoresElementsWhereSkewed(t *testing.T) {
	c := NVSwitch90()
	bytes, floats := recvCopySend, recvCopySend
	floats.Elem = 4
	at := func(p Pass) float64 { return c.LL128Time(p, 640, 576000, 0) }
	if at(bytes) != at(floats) {
		t.Errorf("aligned bytes take %.3f us, floats %.3f us", at(bytes), at(floats))
	}
	aligned := at(floats)
	bytes.Skew, floats.Skew = true, true
	if !(aligned < at(floats) && at(floats) < at(bytes)) {
		t.Errorf("aligned %.3f us, skewed floats %.3f us, skewed bytes %.3f us", aligned, at(floats),
			at(bytes))
	}
}

// A slice goes through the loops that its size takes: 15,552 bytes are three times eight
// packs a thread, six times one pack, and 48 floats.
func TestLoopsOfASlice(t *testing.T) {
	c := NVSwitch90()
	c.Simple.Loop, c.Simple.Turn, c.Simple.Latency = 1, 0.125, 0
	for _, x := range []struct {
		threads       int
		n, elem, pack int64
		loops, turns  float64
	}{
		{256, 0, 4, 16, 0, 0}, {256, 4, 4, 16, 0, 0}, {256, 512, 4, 16, 0, 0}, {512, 64 << 10, 4, 16, 0, 0},
		{256, 15552, 4, 16, 2, 0}, {64, 2592, 4, 16, 1, 2}, {64, 3584, 4, 16, 0, 3},
		{64, 1001, 1, 1, 0, 15}, {512, 2048, 1, 1, 0, 0}, {512, 2049, 1, 1, 1, 0}, {256, 2046, 2, 2, 0, 3},
	} {
		if got := c.LoopsOverhead(Pass{Loads: 1, Stores: 1, Elem: x.elem}, x.threads, x.n, x.pack); got !=
			x.loops+x.turns/8 {
			t.Errorf("%+v: %g us", x, got)
		}
	}
}

// HBM slows Simple in proportion to the thread blocks that load from it, up to 32.
func TestHBMSlowsByThreadBlocks(t *testing.T) {
	for blocks, want := range map[int]float64{0: 0, 1: 0.5 / 24, 12: 0.25, 24: 0.5, 32: 0.5 * 32 / 24,
		64: 0.5 * 32 / 24} {
		if got := CrowdedMiss(0.5, blocks); math.Abs(got-want) > 1e-12 {
			t.Errorf("%d blocks: %g, want %g", blocks, got, want)
		}
	}
}

// Bytes that are reduced cost more than floats that are reduced.
func TestReducedBytes(t *testing.T) {
	c := NVSwitch90()
	floats := Pass{Loads: 2, Stores: 1, Elem: 4}
	bytes := floats
	bytes.Elem, bytes.Sums = 1, 1
	for _, pack := range []int64{16, 1} {
		plain := bytes
		plain.Sums = 0
		if a, b := c.SimpleRate(bytes, 512, 512, pack), c.SimpleRate(plain, 512, 512, pack); a >= b {
			t.Errorf("by %d bytes: %.1f GB/s reduced, %.1f else", pack, a, b)
		}
	}
	if a, b := c.SimpleRate(floats, 512, 512, 16), c.SimpleRate(bytes, 512, 512, 16); b >= a {
		t.Errorf("floats %.1f GB/s, bytes %.1f", a, b)
	}
}

// What is not aligned to 16 bytes is copied by the element: never faster than
// by 16 bytes, and slower the smaller the elements are.
func TestSimpleByElements(t *testing.T) {
	c := NVSwitch90()
	for _, p := range []Pass{{Loads: 1, Stores: 1}, recvCopySend, {Loads: 2, Stores: 1},
		{Loads: 2, Stores: 1, Local: true}, {Loads: 1, Local: true}} {
		last := c.SimpleRate(p, 512, 512, 16)
		for _, pack := range []int64{8, 4, 2, 1} {
			r := c.SimpleRate(p, 512, 512, pack)
			if r > last {
				t.Errorf("%+v: %.1f GB/s by %d bytes, %.1f by twice as many", p, r, pack, last)
			}
			last = r
		}
	}
}

// An operand in host memory comes over PCIe: every protocol waits for it.
func TestHostOperands(t *testing.T) {
	c := NVSwitch90()
	near := recvCopySend
	far := near
	far.From = HostMemory
	if c.SimpleRate(far, 512, 512, 16) >= c.SimpleRate(near, 512, 512, 16) || c.LLTime(far, 512, 0, 1<<15,
		0) <= c.LLTime(near, 512, 0, 1<<15, 0) ||
		c.LL128Time(far, 640, 1<<15, 0) <= c.LL128Time(near, 640, 1<<15, 0) {
		t.Error("host memory costs nothing")
	}
}

// Kernels of wider blocks, and such as reduce, begin later.
func TestGap(t *testing.T) {
	c := NVSwitch90()
	for p := range coll.NumProtocols {
		if c.Gap(p, coll.AllGather, 640) <= c.Gap(p, coll.AllGather, 64) || c.Gap(p, coll.Reduce, 64) <=
			c.Gap(p, coll.AllGather, 64) {
			t.Errorf("%v: %.2f us with 64 threads, %.2f with 640, %.2f where it reduces", p,
				c.Gap(p, coll.AllGather, 64), c.Gap(p, coll.AllGather, 640), c.Gap(p, coll.Reduce, 64))
		}
	}
}

// TestWaitsAreHidden: a warp's wait for its loads shows where threads are few, is hidden
// where the SM is busy, and is longer for user data that is not in L2; a last turn of few
// warps takes at least the wait.
func TestWaitsAreHidden(t *testing.T) {
	c := NVSwitch90()
	plain := c
	c.Simple.Latency, c.Simple.HBM = 0.25, 0.6
	p := Pass{Loads: 2, Local: true, User: true, Elem: 4}
	far := p
	far.Miss = 1
	per := func(c *Class, p Pass, threads int) float64 {
		return float64(threads) / c.SimpleRate(p, threads, threads, 16)
	}
	if many, few := per(&c, p, 512)/per(&plain, p, 512), per(&c, p, 64)*8/per(&c, p, 512); many > 1.05 ||
		few < 1.5 {
		t.Errorf("512 threads take %.3f times as long with waits; a warp's turn on 64 of them %.3f of that "+
			"on 512", many, few/8)
	}
	if few, many := c.SimpleRate(p, 128, 128, 16)/c.SimpleRate(far, 128, 128, 16),
		c.SimpleRate(p, 512, 512, 16)/c.SimpleRate(far, 512, 512, 16); few < 1.2 || many > few {
		t.Errorf("memory slows 128 threads by %.3f, 512 by %.3f", few, many)
	}
	whole, more := c.LoopsOverhead(p, 512, 16*packsTurn, 16), c.LoopsOverhead(p, 512, 17*packsTurn, 16)
	if wait := c.Simple.wait(p, 1); whole != 0 || more < wait/2 || more > wait {
		t.Errorf("16 warps' whole turn has %.3f us on top, one warp's more %.3f, its wait is %.3f", whole,
			more, wait)
	}
	by := func(pack int64) float64 { // what HBM makes of the time of a MiB by few threads, which wait
		return 1/c.SimpleRate(far, 128, 128, pack) - 1/c.SimpleRate(p, 128, 128, pack)
	}
	c.Simple.Pack4, c.Simple.Latency = 0, 1 // waits alone, of half as many bytes a turn
	if wide, narrow := by(16), by(4); narrow > 1.1*wide {
		t.Errorf("HBM makes elements %.4f ns a byte slower, packs %.4f", narrow, wide)
	}
}

// TestTripsThatReduceOrPass: both take longer, and latency and instructions hide each
// other by the norm.
func TestTripsThatReduceOrPass(t *testing.T) {
	c := NVSwitch90()
	at := func(c *Class, p Pass) float64 { return c.LLTime(p, 128, 0, 32<<10, 0) }
	recv, reduce, pass := Pass{Loads: 1, Local: true, Elem: 4}, Pass{Loads: 2, User: true, Local: true,
		Elem: 4}, Pass{Loads: 1, Stores: 1, Local: true, Elem: 4}
	more := c
	more.LL.Trip.Reduce, more.LL.Trip.Pass = 0.1, 0.2
	if at(&more, recv) != at(&c, recv) || at(&more, reduce) <= at(&c, reduce) ||
		at(&more, pass) <= at(&c, pass) {
		t.Error("a trip that reduces or passes on takes no longer, or one that does neither does")
	}
	hidden := c
	hidden.LL.Overlap, hidden.LL128.Overlap = 1, 1
	if a, b := at(&hidden, pass), at(&c, pass); math.Abs(a/b-1) > 1e-12 {
		t.Errorf("exponent 1 takes %.6f, the sum %.6f", a, b)
	}
	hidden.LL.Overlap, hidden.LL128.Overlap = 3, 3
	if at(&hidden, pass) >= at(&c, pass) || hidden.LL128Time(pass, 640, 1<<20, 0) >= c.LL128Time(pass, 640,
		1<<20, 0) {
		t.Error("what hides each other takes no less than the sum")
	}
}
