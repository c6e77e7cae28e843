package cuda

import (
	"fmt"
	"unsafe"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/units"
)

// partShapes lists the shapes of operations in which ranks have different parts (kernels/parts.cu); nil for
// others. TwoWords and TwoShot of a reduction are Words and Lines in shares, with a second hop to the root;
// TwoShot of a broadcast is Relay in lines.
func partShapes(f coll.Func) []Shape {
	switch f {
	case coll.Broadcast:
		return []Shape{Words, Lines, TwoShot, Direct, Relay, Copies}
	case coll.Gather, coll.Scatter, coll.SendRecv:
		return []Shape{Words, Lines, Direct, Copies}
	case coll.Reduce:
		return []Shape{Words, TwoWords, Lines, TwoShot, Direct, Copies}
	}
	return nil
}

// uneven reports whether the operation is an alltoall with unequal parts.
func (o *FreeOp) uneven() bool { return o.Pairs != nil }

// inParts reports whether kernels/parts.cu has the operation.
func (o *FreeOp) inParts() bool { return o.uneven() || partShapes(o.Func) != nil }

// UnevenShapes lists the shapes of an alltoall with unequal parts.
func UnevenShapes() []Shape { return []Shape{Words, Lines, Direct, Copies} }

// parts holds the ranges that this rank sends to and receives from other ranks, by rank. In a reduction from
// and size are the shares, by the rank that reduces them.
type parts struct {
	from [MaxRanks]uint64 // offset in this rank's input
	size [MaxRanks]uint64 // bytes
	to   [MaxRanks]uint64 // offset in the other rank's output
	at   [MaxRanks]uint64 // offset of the received part in this rank's output
	due  [MaxRanks]uint64 // bytes of the received part
}

// partArgs mirrors Parts of kernels/parts.cu.
type partArgs struct {
	freeArgs
	parts
	root, _ int32
}

// parts computes the ranges of an operation.
func (f *Free) parts(o *FreeOp) (p parts) {
	bytes, root := uint64(o.Bytes), f.rank == o.Root
	for r := range f.n {
		switch o.Func {
		case coll.Broadcast:
			if root {
				p.size[r] = bytes
			} else if r == o.Root {
				p.due[r] = bytes
			}
		case coll.Gather:
			p.to[r] = uint64(f.rank) * bytes
			if r == o.Root {
				p.size[r] = bytes
			}
			if root {
				p.at[r], p.due[r] = uint64(r)*bytes, bytes
			}
		case coll.Scatter:
			if root {
				p.from[r], p.size[r] = uint64(r)*bytes, bytes
			}
			if r == o.Root {
				p.due[r] = bytes
			}
		case coll.SendRecv:
			if r == (f.rank+1)%f.n {
				p.size[r] = bytes
			}
			if r == (f.rank-1+f.n)%f.n {
				p.due[r] = bytes
			}
		}
	}
	switch {
	case o.Func == coll.Reduce:
		f.shares(o, &p)
	case o.Func == coll.Broadcast && o.Shape == TwoShot:
		p = f.relays(o)
	}
	if o.uneven() {
		f.exchange(o, &p)
	}
	return p
}

// exchange computes the ranges of an alltoall with unequal parts: each rank's parts are contiguous in its
// input, ordered by receiver, and the received parts in its output, ordered by sender.
func (f *Free) exchange(o *FreeOp, p *parts) {
	x, me, size := o.Pairs, int32(f.rank), int64(o.Type.Size())
	for r := range int32(f.n) {
		p.from[r], p.size[r], p.to[r] = uint64(x.From(me, r)*size), uint64(x.At(me, r)*size),
			uint64(x.To(me, r)*size)
		p.at[r], p.due[r] = uint64(x.To(r, me)*size), uint64(x.At(r, me)*size)
	}
}

// shares divides a reduction: the root reduces all of it or, with a second hop, each of the other ranks an
// equal share of whole packs.
func (f *Free) shares(o *FreeOp, p *parts) {
	bytes := uint64(o.Bytes)
	if !f.spread(o) {
		p.size[o.Root] = bytes
		return
	}
	share := f.relayed(o)
	for i := range f.n - 1 {
		r := (o.Root + 1 + i) % f.n
		lo := min(uint64(i)*share, bytes)
		p.from[r], p.size[r] = lo, min(share, bytes-lo)
		if f.rank == o.Root {
			p.at[r], p.due[r] = lo, p.size[r]
		}
	}
}

// relays divides a broadcast: the root sends each other rank its share, which that rank forwards to the rest.
func (f *Free) relays(o *FreeOp) (p parts) {
	bytes, share := uint64(o.Bytes), f.relayed(o)
	for i := range f.n - 1 {
		r := (o.Root + 1 + i) % f.n
		lo := min(uint64(i)*share, bytes)
		size := min(share, bytes-lo)
		if f.rank == o.Root || f.rank == r {
			p.from[r], p.size[r] = lo, size
		} else {
			p.at[r], p.due[r] = lo, size
		}
	}
	if f.rank == o.Root {
		p.size[f.rank] = bytes // the local copy
	}
	return p
}

// spread reports whether the ranks other than the root reduce; with two ranks that would only add a hop.
func (f *Free) spread(o *FreeOp) bool {
	return o.Shape != Words && o.Shape != Lines && f.n > 2
}

// relayed returns the share of a buffer that each rank but the root has, a multiple of 16 bytes.
func (f *Free) relayed(o *FreeOp) uint64 {
	n := uint64(max(f.n-1, 1))
	return (uint64(o.Bytes) + 16*n - 1) / (16 * n) * 16
}

// longestPart returns the largest number of bytes that one rank sends to another.
func (f *Free) longestPart(o *FreeOp) uint64 {
	if o.Func == coll.Reduce && f.spread(o) || o.Func == coll.Broadcast && o.Shape == TwoShot {
		return f.relayed(o)
	}
	if o.uneven() {
		return uint64(max(o.Bytes, units.Bytes(o.Pairs.Largest())*o.Type.Size()))
	}
	return uint64(o.Bytes)
}

// partSpan returns the bytes that the words or lines of one rank occupy in an arena.
func (f *Free) partSpan(o *FreeOp) uint64 {
	if o.Shape == Words || o.Shape == TwoWords {
		return (f.longestPart(o) + 7) / 8 * 16
	}
	return ((f.longestPart(o)+119)/120 + 3) / 4 * 4 * 128
}

// fitsPart is Fits for the operations of this file.
func (f *Free) fitsPart(o *FreeOp) bool {
	switch o.Shape {
	case Words:
		return f.partSpan(o) <= uint64(wordHalf)/MaxRanks
	case TwoWords:
		return f.n > 2 && f.partSpan(o) <= uint64(wordHalf)/(2*MaxRanks)
	case Lines:
		return f.partSpan(o) <= uint64(arenaHalf)/MaxRanks
	case TwoShot:
		return f.n > 2 && f.partSpan(o) <= uint64(arenaHalf)/(2*MaxRanks)
	case Relay:
		return f.n > 2
	case Copies:
		return o.Bytes >= minCopies
	}
	return true
}

// findPart returns the kernel of an operation.
func (f *Free) findPart(o *FreeOp) (Kernel, error) {
	if o.Shape == Copies {
		if o.Func == coll.Reduce {
			return f.typed("free", "direct_reduce_scatter", o)
		}
		return f.typed("free", "gather_ranks", o)
	}
	name := map[Shape]string{Words: "part_words", TwoWords: "part_words", Lines: "part_lines",
		TwoShot: "part_lines",
		Direct:  "part_direct", Relay: "part_relay"}[o.Shape]
	if o.Shape == TwoShot && o.Func == coll.Broadcast {
		name = "part_two_shot"
	}
	if name == "" || o.Shape == Relay && o.Func != coll.Broadcast {
		return 0, &exec.NotImplementedError{Feature: fmt.Sprintf("free %v %v", o.Shape, o.Func),
			Missing: "a kernel"}
	}
	return f.typed("parts", name, o)
}

// queueParts queues the operation on the stream.
func (f *Free) queueParts(o *FreeOp, k Kernel, s Stream) error {
	p := f.parts(o)
	if o.Shape == Copies {
		return f.copyParts(o, &p, k, s)
	}
	a := &partArgs{freeArgs: *f.args(), parts: p, root: int32(o.Root)}
	a.in, a.out, a.bytes, a.chunk, a.piece, a.span = o.In, o.Out, uint64(o.Bytes), f.relayed(o),
		uint64(f.relayPiece(o)), f.partSpan(o)
	a.aligned = 1
	for i := range f.n {
		if (o.In[i]|o.Out[i])%16 != 0 {
			a.aligned = 0
		}
	}
	return f.dev.Launch(k, f.partGrid(o), freeThreads, 0, s, []unsafe.Pointer{unsafe.Pointer(a)})
}

// relayPiece returns the bytes that a block of Relay sends to a peer at a time.
func (f *Free) relayPiece(o *FreeOp) units.Bytes {
	if o.Piece > 0 {
		return o.Piece
	}
	return units.Bytes(min(max(f.relayed(o)/(16*relayBlocks)/16*16, 8<<10), 64<<10))
}

// relayBlocks is the largest number of blocks of Relay: each link needs several, and all must run at once.
const relayBlocks = 96

// partGrid returns the number of blocks.
func (f *Free) partGrid(o *FreeOp) int {
	if o.Blocks > 0 {
		return o.Blocks
	}
	threads := func(n uint64) uint64 { return (n + freeThreads - 1) / freeThreads }
	need, most := uint64(0), uint64(64)
	switch o.Shape {
	case Words, TwoWords:
		need = threads((f.longestPart(o) + 7) / 8)
	case Lines, TwoShot:
		need, most = threads((f.longestPart(o)+14)/15), 128
	case Relay:
		p := uint64(f.relayPiece(o))
		need, most = (f.relayed(o)+p-1)/p, relayBlocks
	default:
		longest := f.longestPart(o)
		need, most = threads(longest/16), 128
		if longest < 1<<20 {
			most = 16
		}
	}
	return int(min(max(need, 1), most))
}

// copyParts queues the copies of an operation between two barriers.
func (f *Free) copyParts(o *FreeOp, p *parts, k Kernel, s Stream) error {
	if err := f.gatherRanks(s); err != nil {
		return err
	}
	var err error
	switch {
	case o.Func == coll.Reduce:
		err = f.reduceToRoot(o, p, k, s)
	case o.Func == coll.Broadcast && f.n > 2:
		err = f.relayCopies(o, s)
	default:
		err = f.pushParts(o, p, s)
	}
	if err != nil {
		return err
	}
	return f.gatherRanks(s)
}

// pushParts queues a copy of every part to its destination; the rank's own part is copied at the same time.
func (f *Free) pushParts(o *FreeOp, p *parts, s Stream) error {
	own := func() error { return nil }
	if from, to := o.In[f.rank]+Ptr(p.from[f.rank]), o.Out[f.rank]+Ptr(p.at[f.rank]); p.size[f.rank] > 0 &&
		from != to {
		if err := f.fork(0, s, f.side); err != nil {
			return err
		}
		if err := f.dev.CopyAsync(to, from, units.Bytes(p.size[f.rank]), f.side); err != nil {
			return err
		}
		own = func() error { return f.fork(1, f.side, s) }
	}
	for i := 1; i < f.n; i++ {
		q := (f.rank + i) % f.n
		if p.size[q] == 0 {
			continue
		}
		if err := f.dev.CopyAsync(o.Out[q]+Ptr(p.to[q]), o.In[f.rank]+Ptr(p.from[q]), units.Bytes(p.size[q]),
			s); err != nil {
			return err
		}
	}
	return own()
}

// relayPieces divides a share for copy engines: while a piece is relayed the next one comes from the root.
// Each piece costs a barrier.
func relayPieces(share units.Bytes) (size units.Bytes, count int) {
	const least = 4 << 20
	size = max((share/8+15)/16*16, least)
	return size, int((share + size - 1) / size)
}

// relayCopies broadcasts in shares: in step k the root sends piece k of each share to its relay, and each
// relay forwards piece k-1 to the others.
func (f *Free) relayCopies(o *FreeOp, s Stream) error {
	share := units.Bytes(f.relayed(o))
	size, count := relayPieces(share)
	root := f.rank == o.Root
	keeps := root && o.In[f.rank] != o.Out[f.rank]
	if keeps {
		if err := f.fork(0, s, f.side); err != nil {
			return err
		}
		if err := f.dev.CopyAsync(o.Out[f.rank], o.In[f.rank], o.Bytes, f.side); err != nil {
			return err
		}
	}
	mine := (f.rank - o.Root + f.n) % f.n
	for step := range count + 1 {
		for i := 1; i < f.n; i++ {
			q := (f.rank + i) % f.n
			of, piece, src := mine, step-1, o.Out[f.rank]
			if root {
				of, piece, src = i, step, o.In[f.rank]
			}
			if q == o.Root || piece < 0 || piece >= count {
				continue
			}
			from := units.Bytes(piece) * size
			n := span(of-1, share, o.Bytes, from, size)
			if at := Ptr(units.Bytes(of-1)*share + from); n > 0 {
				if err := f.dev.CopyAsync(o.Out[q]+at, src+at, n, s); err != nil {
					return err
				}
			}
		}
		if err := f.gatherRanks(s); err != nil {
			return err
		}
	}
	if keeps {
		return f.fork(1, f.side, s)
	}
	return nil
}

// reduceToRoot lets every rank reduce its share, piece by piece; the results go to the root, except those of
// the root itself.
func (f *Free) reduceToRoot(o *FreeOp, p *parts, k Kernel, s Stream) error {
	var longest uint64
	for r := range f.n {
		longest = max(longest, p.size[r])
	}
	size, count, depth := pieces(units.Bytes(longest), f.n, f.spread(o))
	left := func(r, piece int) units.Bytes {
		return min(size, max(units.Bytes(p.size[r])-units.Bytes(piece)*size, 0))
	}
	at := func(r, piece int) Ptr { return Ptr(p.from[r]) + Ptr(units.Bytes(piece)*size) }
	result := func(piece int) Ptr { // its own slot, which no other rank writes
		if f.rank == o.Root {
			return o.Out[f.rank] + at(f.rank, piece)
		}
		return f.slot(f.rank, piece%depth, f.rank, size)
	}
	l := line{count: count, depth: depth, results: f.spread(o)}
	l.scatter = func(piece int) error {
		return f.toPeers(func(q int) error {
			return f.copySome(f.slot(q, piece%depth, f.rank, size), o.In[f.rank]+at(q, piece), left(q, piece),
				s)
		})
	}
	l.reduce = func(piece int) error {
		if piece >= depth && l.results { // the slot holds a result until that is pushed
			if err := f.fork(1, f.last, f.side); err != nil {
				return err
			}
		}
		return f.reduceSlots(k, piece%depth, size, left(f.rank, piece), o.In[f.rank]+at(f.rank, piece),
			result(piece))
	}
	l.gather = func(piece int) error {
		if f.rank == o.Root {
			return nil
		}
		return f.copySome(o.Out[o.Root]+at(f.rank, piece), result(piece), left(f.rank, piece), f.last)
	}
	if err := f.inLine(&l, s); err != nil || !l.results {
		return err
	}
	return f.fork(1, f.last, s)
}
