package gpu

import (
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
		t.Errorf("aligned %.3f us, skewed floats %.3f us, skewed bytes %.3f us", aligned, at(floats), at(bytes))
	}
}

// A slice goes through the loops that its size takes: 15,552 bytes are three times eight
// packs a thread, six times one pack, and 48 floats.
func TestLoopsOfASlice(t *testing.T) {
	c := NVSwitch90()
	c.Simple.Loop, c.Simple.Turn = 1, 0.125
	for _, x := range []struct {
		threads       int
		n, elem, pack int64
		loops, turns  float64
	}{
		{256, 0, 4, 16, 0, 0}, {256, 4, 4, 16, 0, 0}, {256, 512, 4, 16, 0, 0}, {512, 64 << 10, 4, 16, 0, 0},
		{256, 15552, 4, 16, 2, 0}, {64, 2592, 4, 16, 1, 2}, {64, 3584, 4, 16, 0, 3},
		{64, 1001, 1, 1, 0, 15}, {512, 2048, 1, 1, 0, 0}, {512, 2049, 1, 1, 1, 0}, {256, 2046, 2, 2, 0, 3},
	} {
		if got := c.LoopsOverhead(Pass{Loads: 1, Stores: 1, Elem: x.elem}, x.threads, x.n, x.pack); got != x.loops+x.turns/8 {
			t.Errorf("%+v: %g us", x, got)
		}
	}
}

// Bytes that are reduced cost more than bytes that are copied, floats do not.
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
	for _, p := range []Pass{{Loads: 1, Stores: 1}, recvCopySend, {Loads: 2, Stores: 1}, {Loads: 2, Stores: 1, Local: true}, {Loads: 1, Local: true}} {
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
	far.Host = true
	if c.SimpleRate(far, 512, 512, 16) >= c.SimpleRate(near, 512, 512, 16) || c.LLTime(far, 512, 0, 1<<15, 0) <= c.LLTime(near, 512, 0, 1<<15, 0) ||
		c.LL128Time(far, 640, 1<<15, 0) <= c.LL128Time(near, 640, 1<<15, 0) {
		t.Error("host memory costs nothing")
	}
}

// Kernels of wider blocks, and such as reduce, begin later.
func TestGap(t *testing.T) {
	c := NVSwitch90()
	for p := range coll.NumProtocols {
		if c.Gap(p, coll.AllGather, 640) <= c.Gap(p, coll.AllGather, 64) || c.Gap(p, coll.Reduce, 64) <= c.Gap(p, coll.AllGather, 64) {
			t.Errorf("%v: %.2f us with 64 threads, %.2f with 640, %.2f where it reduces", p, c.Gap(p, coll.AllGather, 64), c.Gap(p, coll.AllGather, 640), c.Gap(p, coll.Reduce, 64))
		}
	}
}
