package cuda

import (
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
)

// TestPartsMeet: what a rank sends another is what that one waits for, and lands where it looks for it; of a
// gather the root's output, of a scatter its input is covered.
func TestPartsMeet(t *testing.T) {
	for _, n := range []int{2, 3, 8} {
		for root := range n {
			for _, fn := range []coll.Func{coll.Broadcast, coll.Gather, coll.Scatter, coll.SendRecv} {
				o := &FreeOp{Func: fn, Shape: Direct, Bytes: 1000, Type: coll.Int8, Root: root}
				meet(t, n, o, func(src, dst int) uint64 {
					switch {
					case fn == coll.SendRecv && (src+1)%n == dst, fn == coll.Gather && dst == root,
						(fn == coll.Broadcast || fn == coll.Scatter) && src == root:
						return 1000
					}
					return 0
				})
			}
		}
		counts := make([]int64, n*n)
		for i := range counts {
			counts[i] = int64(i*7%5) * 3
		}
		x, err := coll.NewPairs(n, counts)
		if err != nil {
			t.Fatal(err)
		}
		o := &FreeOp{Func: coll.AllToAll, Shape: Direct, Bytes: 8, Type: coll.Float32, Pairs: x}
		meet(t, n, o, func(src, dst int) uint64 { return uint64(4 * x.At(int32(src), int32(dst))) })
	}
}

// meet checks the parts of all ranks against each other and against how much goes from one to another.
func meet(t *testing.T, n int, o *FreeOp, want func(src, dst int) uint64) {
	t.Helper()
	all := make([]parts, n)
	for r := range n {
		all[r] = (&Free{rank: r, n: n}).parts(o)
	}
	for a := range n {
		sent, came := uint64(0), uint64(0)
		for b := range n {
			p, q := &all[a], &all[b]
			if a != b && (p.size[b] != q.due[a] || p.size[b] > 0 && p.to[b] != q.at[a]) ||
				p.size[b] != want(a, b) {
				t.Errorf("%v of %d, root %d: %d sends %d %d bytes to %d, which waits for %d at %d; want %d",
					o.Func, n, o.Root, a, b, p.size[b], p.to[b], q.due[a], q.at[a], want(a, b))
			}
			if sorted := o.Func == coll.Scatter || o.uneven(); sorted && p.size[b] > 0 && p.from[b] != sent {
				t.Errorf("%v of %d: %d sends %d from %d, want %d", o.Func, n, a, b, p.from[b], sent)
			}
			if sorted := o.Func == coll.Gather || o.uneven(); sorted && p.due[b] > 0 && p.at[b] != came {
				t.Errorf("%v of %d: %d takes %d's at %d, want %d", o.Func, n, a, b, p.at[b], came)
			}
			sent, came = sent+p.size[b], came+p.due[b]
		}
	}
}

// TestSharesCoverTheBuffer: with a second hop each rank but the root has a share of whole packs; the shares
// are the same for all ranks, follow each other and cover the buffer.
func TestSharesCoverTheBuffer(t *testing.T) {
	for _, n := range []int{3, 4, 8} {
		for root := range n {
			for _, bytes := range []units.Bytes{4, 16, 48, 1000, 1 << 20} {
				reduces := &FreeOp{Func: coll.Reduce, Shape: TwoShot, Bytes: bytes, Root: root}
				relays := &FreeOp{Func: coll.Broadcast, Shape: TwoShot, Bytes: bytes, Root: root}
				at := uint64(0)
				for i := range n - 1 {
					r := (root + 1 + i) % n
					share := (&Free{rank: r, n: n}).parts(reduces)
					from, size := share.from[r], share.size[r]
					if size > 0 && (from != at || at%16 != 0) {
						t.Errorf("%d bytes of %d: the share of %d begins at %d, not %d", bytes, n, r, from,
							at)
					}
					at += size
					for rank := range n {
						agree(t, &Free{rank: rank, n: n}, reduces, relays, r, from, size)
					}
				}
				if at != uint64(bytes) {
					t.Errorf("shares of %d bytes are %d", bytes, at)
				}
			}
		}
	}
}

// agree checks that to a rank the share of another is the same in a reduction and in a broadcast.
func agree(t *testing.T, f *Free, reduces, relays *FreeOp, of int, from, size uint64) {
	t.Helper()
	p, q := f.parts(reduces), f.parts(relays)
	root := f.rank == reduces.Root
	if p.from[of] != from || p.size[of] != size || root && (p.at[of] != from || p.due[of] != size) {
		t.Errorf("reduce: to rank %d the share of %d is %d at %d, not %d at %d", f.rank, of, p.size[of],
			p.from[of], size, from)
	}
	at, has := q.at[of], q.due[of]
	if root || f.rank == of {
		at, has = q.from[of], q.size[of]
	}
	if at != from || has != size {
		t.Errorf("broadcast: to rank %d the share of %d is %d at %d, not %d at %d", f.rank, of, has, at, size,
			from)
	}
}

// TestShapesFitTheirArena: words take 16 bytes for 8, lines 128 for 120 in fours; of what two hops need there
// is half, and with two ranks none.
func TestShapesFitTheirArena(t *testing.T) {
	for _, c := range []struct {
		shape Shape
		most  units.Bytes // that fits; 0: none, -1: any
		least units.Bytes
	}{{Words, 512 << 10, 0}, {TwoWords, 3 * 256 << 10, 0}, {Lines, 31457280, 0}, {TwoShot, 3 * 15728640, 0},
		{Relay, -1, 0}, {Direct, -1, 0}, {Copies, -1, 256 << 10}} {
		for _, n := range []int{2, 4} {
			f := &Free{n: n}
			o := &FreeOp{Func: coll.Reduce, Shape: c.shape}
			fits := func(bytes units.Bytes) bool {
				o.Bytes = bytes
				return f.fitsPart(o)
			}
			two := c.shape == TwoWords || c.shape == TwoShot || c.shape == Relay
			if most := c.most; n == 2 && two {
				if fits(8) {
					t.Errorf("%v: fits with two ranks", c.shape)
				}
			} else if most > 0 && (!fits(most) || fits(most+1)) {
				t.Errorf("%v: %d fits: %t, one more: %t", c.shape, most, fits(most), fits(most+1))
			} else if most < 0 && !fits(1<<40) || c.least > 0 && (!fits(c.least) || fits(c.least-1)) {
				t.Errorf("%v of %d: least %d", c.shape, n, c.least)
			}
		}
	}
	f := &Free{n: 4}
	for bytes, want := range map[units.Bytes][3]uint64{1: {16, 16, 512}, 8: {16, 16, 512}, 9: {16, 32, 512},
		48: {16, 96, 512}, 49: {32, 112, 512}, 480: {160, 960, 512}, 481: {176, 976, 1024}} {
		words, lines := &FreeOp{Shape: Words, Bytes: bytes}, &FreeOp{Shape: Lines, Bytes: bytes}
		if got := [3]uint64{f.relayed(words), f.partSpan(words), f.partSpan(lines)}; got != want {
			t.Errorf("%d bytes: share, words and lines of %v, want %v", bytes, got, want)
		}
	}
}
