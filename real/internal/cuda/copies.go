package cuda

import (
	"unsafe"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
)

// Copies: copy engines use a link fully, which a kernel's stores do not (397 against 350 GB/s on H200). In
// step i rank r pushes to rank r+i, so that no two ranks push to the same one. Reductions are divided into
// pieces: while a kernel reduces one piece, the engines move others.

// minCopies is the least size of a rank's part for which copies are used.
const minCopies units.Bytes = 256 << 10

// pieces returns the division of a part of n bytes: every piece but the last has size bytes, a multiple of
// 16. Each piece costs some 10 us of launches and barriers. If results go to peers, two are best, since
// results travel while the second piece is reduced; otherwise four or more leave less to reduce after the
// last has arrived (measured on 2 x H200, 64 MiB to 1 GiB). depth is the number of slots of a rank for pieces
// that are not reduced yet.
func pieces(part units.Bytes, ranks int, results bool) (size units.Bytes, count, depth int) {
	const least, most = 4 << 20, 64 << 20
	slots := slotsSize / units.Bytes(ranks)
	if size = (part + 1) / 2; !results {
		size = min((part+3)/4, most)
	}
	size = min(max(size, least), slots/2)
	size = min((size+15)/16*16, slots/2/16*16)
	return size, int((part + size - 1) / size), int(min(slots/size, maxDepth))
}

// queueCopies queues the operation: after a barrier if it writes to a peer's output, and until all copies of
// the peers have arrived. Data to be reduced go into slots of the arena, which the peer's last operation no
// longer uses (all shapes end when all peers have read the sent data); each reduction begins and ends with a
// barrier of its own.
func (f *Free) queueCopies(o *FreeOp, k Kernel, s Stream) error {
	switch o.Func {
	case coll.ReduceScatter:
		return f.reducePieces(o, k, o.Bytes, o.Bytes*units.Bytes(f.n), false, s)
	case coll.AllReduce:
		if err := f.reducePieces(o, k, units.Bytes(f.chunk(o)), o.Bytes, true, s); err != nil {
			return err
		}
		return f.awaitCopies(f.last, s)
	}
	if err := f.gatherRanks(s); err != nil {
		return err
	}
	if err := f.moveParts(o, s); err != nil {
		return err
	}
	return f.awaitCopies(s, s)
}

// copiedFlag is the offset of the flags COPIED, by peer, in a rank's arena.
const copiedFlag = 4096 + 4*5*256*MaxRanks

// awaitCopies ends an operation whose copies are queued on the stream moved: s continues when this rank's
// copies are done and the peers' have arrived. The number of the call is copied after the data, and a kernel
// on the side stream, launched before that copy, waits for it: no launch follows the data (256 MiB all_reduce
// on 2 x H200: 711 us; with a barrier instead 718, without either 703).
func (f *Free) awaitCopies(moved, s Stream) error {
	k, err := f.kernels.get("free_moves", "await_copies")
	if err != nil {
		return err
	}
	err = f.toPeers(func(p int) error {
		return f.dev.CopyAsync(f.arena[p]+copiedFlag+Ptr(4*f.rank), f.arena[f.rank], 4, moved)
	})
	if err != nil {
		return err
	}
	if err := f.dev.Launch(k, 1, 32, 0, f.side, []unsafe.Pointer{unsafe.Pointer(f.args())}); err != nil {
		return err
	}
	if moved != s {
		if err := f.fork(1, moved, s); err != nil {
			return err
		}
	}
	return f.fork(1, f.side, s)
}

// gatherRanks queues a barrier of all ranks.
func (f *Free) gatherRanks(s Stream) error {
	k, err := f.kernels.get("free_moves", "gather_ranks")
	if err != nil {
		return err
	}
	return f.dev.Launch(k, 1, 32, 0, s, []unsafe.Pointer{unsafe.Pointer(f.args())})
}

// fork lets to continue from the present point of from; which selects the event.
func (f *Free) fork(which int, from, to Stream) error {
	if err := f.dev.Record(f.events[which], from); err != nil {
		return err
	}
	return f.dev.After(to, f.events[which])
}

// moveParts pushes the parts of an all_gather or alltoall, the rank's own part on the side stream.
func (f *Free) moveParts(o *FreeOp, s Stream) error {
	part := func(p Ptr, i int) Ptr { return p + Ptr(i)*Ptr(o.Bytes) }
	source := func(to int) Ptr {
		if o.Func == coll.AllToAll {
			return part(o.In[f.rank], to)
		}
		return o.In[f.rank]
	}
	if err := f.fork(0, s, f.side); err != nil {
		return err
	}
	if own := part(o.Out[f.rank], f.rank); own != source(f.rank) {
		if err := f.dev.CopyAsync(own, source(f.rank), o.Bytes, f.side); err != nil {
			return err
		}
	}
	return f.toPeers(func(p int) error {
		return f.dev.CopyAsync(part(o.Out[p], f.rank), source(p), o.Bytes, s)
	})
}

// slot returns the address in the owner's arena where rank from stores a piece.
func (f *Free) slot(owner, which, from int, size units.Bytes) Ptr {
	return f.arena[owner] + Ptr(slotStart+units.Bytes(which*f.n+from)*size)
}

// span returns the length of the piece at from of rank p's part of the total.
func span(p int, part, total, from, size units.Bytes) units.Bytes {
	left := min(part, max(total-units.Bytes(p)*part, 0))
	return min(size, max(left-from, 0))
}

// reducePieces reduces this rank's part of all inputs and, with gather, pushes the result to all ranks.
func (f *Free) reducePieces(o *FreeOp, k Kernel, part, total units.Bytes, gather bool, s Stream) error {
	size, count, depth := pieces(part, f.n, gather)
	at := func(p, piece int) Ptr { return Ptr(units.Bytes(p)*part + units.Bytes(piece)*size) }
	left := func(p, piece int) units.Bytes { return span(p, part, total, units.Bytes(piece)*size, size) }
	l := line{count: count, depth: depth, results: gather}
	l.scatter = func(piece int) error {
		return f.toPeers(func(p int) error {
			return f.copySome(f.slot(p, piece%depth, f.rank, size), o.In[f.rank]+at(p, piece), left(p, piece),
				s)
		})
	}
	l.reduce = func(piece int) error {
		out := o.Out[f.rank] + Ptr(units.Bytes(piece)*size)
		if gather {
			out = o.Out[f.rank] + at(f.rank, piece)
		}
		return f.reduceSlots(k, piece%depth, size, left(f.rank, piece), o.In[f.rank]+at(f.rank, piece), out)
	}
	l.gather = func(piece int) error {
		from := at(f.rank, piece)
		return f.toPeers(func(p int) error {
			return f.copySome(o.Out[p]+from, o.Out[f.rank]+from, left(f.rank, piece), f.last)
		})
	}
	return f.inLine(&l, s)
}

// toPeers calls to for every peer, the next rank first.
func (f *Free) toPeers(to func(p int) error) error {
	for i := 1; i < f.n; i++ {
		if err := to((f.rank + i) % f.n); err != nil {
			return err
		}
	}
	return nil
}

// copySome queues a copy unless n is 0.
func (f *Free) copySome(dst, src Ptr, n units.Bytes, s Stream) error {
	if n == 0 {
		return nil
	}
	return f.dev.CopyAsync(dst, src, n, s)
}

// line is a reduction in pieces: scatter queues the copies of a piece into the peers' slots on the user's
// stream, reduce a kernel on the side stream that all ranks run, gather the copies of its result on the last
// stream.
type line struct {
	count, depth            int
	results                 bool // gather is called
	scatter, reduce, gather func(piece int) error
}

// inLine queues the pieces. Three streams keep the links busy: while a piece is scattered, the piece before
// is reduced and the results of the one before that are pushed. A slot is refilled when its reduction has
// ended on all ranks: the kernel ends with a barrier. Results may still be in flight.
func (f *Free) inLine(l *line, s Stream) error {
	reduced := func(piece int) Event { return f.events[2+piece%l.depth] }
	for piece := range l.count {
		if piece >= l.depth {
			if err := f.dev.After(s, reduced(piece)); err != nil {
				return err
			}
		}
		if err := l.scatter(piece); err != nil {
			return err
		}
		if err := f.fork(0, s, f.side); err != nil {
			return err
		}
		if err := l.reduce(piece); err != nil {
			return err
		}
		if err := f.dev.Record(reduced(piece), f.side); err != nil {
			return err
		}
		if !l.results {
			continue
		}
		if err := f.dev.After(f.last, reduced(piece)); err != nil {
			return err
		}
		if err := l.gather(piece); err != nil {
			return err
		}
	}
	if !l.results {
		return f.dev.After(s, reduced(l.count-1))
	}
	return nil
}

// reduceSlots queues the kernel of a direct reduce_scatter whose inputs are the slots of a piece and n of the
// rank's own bytes, shifted such that this rank's share begins at its piece. All ranks queue it: it begins
// and ends with a barrier.
func (f *Free) reduceSlots(k Kernel, which int, size, n units.Bytes, own, out Ptr) error {
	shift := Ptr(units.Bytes(f.rank) * n)
	a := f.args()
	a.bytes, a.aligned = uint64(n), 1
	for r := range f.n {
		a.in[r] = f.slot(f.rank, which, r, size) - shift
	}
	a.in[f.rank] = own - shift
	a.out[f.rank] = out
	if own%16 != 0 || out%16 != 0 {
		a.aligned = 0
	}
	blocks := int(min(max((size+16*freeThreads-1)/(16*freeThreads), 1), 128))
	return f.dev.Launch(k, blocks, freeThreads, 0, f.side, []unsafe.Pointer{unsafe.Pointer(a)})
}
