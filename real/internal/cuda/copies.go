package cuda

import (
	"unsafe"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
)

// Copies: a copy engine fills a link to the last per cent, which stores of a
// kernel do not (397 against 350 GB/s on H200). In each step rank r pushes to
// rank r+i, so that no two ranks push to one. Reductions are cut into pieces:
// while a kernel reduces one piece, the engine moves the next.

// minCopies is the least size of a rank's part for which copies are tried.
const minCopies units.Bytes = 256 << 10

// pieces says how a part of n bytes is cut: every piece but the last has size
// bytes, a multiple of 16. Each piece costs some 50 us of barriers and starts,
// so there are few: two, or four of at least 32 MiB, or what the slots force.
func pieces(part units.Bytes, ranks int) (size units.Bytes, count int) {
	const least = 32 << 20
	most := slotSize / units.Bytes(ranks) / 16 * 16
	size = min((part+1)/2, max(part/4, least))
	size = min((size+15)/16*16, most)
	return size, int((part + size - 1) / size)
}

// queueCopies puts the operation on the stream.
func (f *Free) queueCopies(o *FreeOp, k Kernel, s Stream) error {
	if err := f.gatherRanks(s); err != nil {
		return err
	}
	var err error
	switch o.Func {
	case coll.AllGather, coll.AllToAll:
		err = f.moveParts(o, s)
	case coll.ReduceScatter:
		err = f.reducePieces(o, k, o.Bytes, o.Bytes*units.Bytes(f.n), false, s)
	default:
		err = f.reducePieces(o, k, units.Bytes(f.chunk(o)), o.Bytes, true, s)
	}
	if err != nil {
		return err
	}
	return f.gatherRanks(s)
}

// gatherRanks queues a barrier of all ranks.
func (f *Free) gatherRanks(s Stream) error {
	k, err := f.kernels.get("free_moves", "gather_ranks")
	if err != nil {
		return err
	}
	return f.dev.Launch(k, 1, 32, 0, s, []unsafe.Pointer{unsafe.Pointer(f.args())})
}

// fork makes to continue from where from is; which picks the event.
func (f *Free) fork(which int, from, to Stream) error {
	if err := f.dev.Record(f.events[which], from); err != nil {
		return err
	}
	return f.dev.After(to, f.events[which])
}

// moveParts pushes what an all_gather or alltoall moves.
func (f *Free) moveParts(o *FreeOp, s Stream) error {
	part := func(p Ptr, i int) Ptr { return p + Ptr(i)*Ptr(o.Bytes) }
	source := func(to int) Ptr {
		if o.Func == coll.AllToAll {
			return part(o.In[f.rank], to)
		}
		return o.In[f.rank]
	}
	own := part(o.Out[f.rank], f.rank)
	if own != source(f.rank) {
		if err := f.fork(0, s, f.side); err != nil {
			return err
		}
		if err := f.dev.CopyAsync(own, source(f.rank), o.Bytes, f.side); err != nil {
			return err
		}
	}
	for i := 1; i < f.n; i++ {
		p := (f.rank + i) % f.n
		if err := f.dev.CopyAsync(part(o.Out[p], f.rank), source(p), o.Bytes, s); err != nil {
			return err
		}
	}
	if own != source(f.rank) {
		return f.fork(1, f.side, s)
	}
	return nil
}

// slot is where rank from leaves its piece for the owner of the arena.
func (f *Free) slot(owner, piece, from int, size units.Bytes) Ptr {
	return f.arena[owner] + Ptr(slotStart+units.Bytes(piece%2)*slotSize+units.Bytes(from)*size)
}

// span is the length of a piece of rank p's part of the total.
func span(p int, part, total, from, size units.Bytes) units.Bytes {
	left := min(part, max(total-units.Bytes(p)*part, 0))
	return min(size, max(left-from, 0))
}

// reducePieces reduces this rank's part of all inputs and, with gather, pushes
// the result to all. The stream only copies; the side stream only reduces. A
// slot is filled again two pieces later, when the reduction of the piece has
// ended on all ranks: its kernel ends with a barrier.
func (f *Free) reducePieces(o *FreeOp, k Kernel, part, total units.Bytes, gather bool, s Stream) error {
	size, count := pieces(part, f.n)
	at := func(p int, from units.Bytes) Ptr { return Ptr(units.Bytes(p)*part + from) }
	for piece := range count + 1 {
		from := units.Bytes(piece) * size
		if piece < count {
			for i := 1; i < f.n; i++ {
				p := (f.rank + i) % f.n
				if n := span(p, part, total, from, size); n > 0 {
					if err := f.dev.CopyAsync(f.slot(p, piece, f.rank, size), o.In[f.rank]+at(p, from), n, s); err != nil {
						return err
					}
				}
			}
			if err := f.fork(piece%2, s, f.side); err != nil {
				return err
			}
		}
		if piece > 0 { // the piece before was reduced meanwhile
			if err := f.dev.After(s, f.events[2+(piece-1)%2]); err != nil {
				return err
			}
			if err := f.gatherPiece(o, part, total, from-size, size, gather, s); err != nil {
				return err
			}
		}
		if piece < count {
			if err := f.reducePiece(o, k, part, total, piece, size, gather); err != nil {
				return err
			}
			if err := f.dev.Record(f.events[2+piece%2], f.side); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *Free) gatherPiece(o *FreeOp, part, total, from, size units.Bytes, gather bool, s Stream) error {
	n := span(f.rank, part, total, from, size)
	if !gather || n == 0 {
		return nil
	}
	at := Ptr(units.Bytes(f.rank)*part + from)
	for i := 1; i < f.n; i++ {
		p := (f.rank + i) % f.n
		if err := f.dev.CopyAsync(o.Out[p]+at, o.Out[f.rank]+at, n, s); err != nil {
			return err
		}
	}
	return nil
}

// reducePiece queues the kernel that reduces a piece of this rank's part.
func (f *Free) reducePiece(o *FreeOp, k Kernel, part, total units.Bytes, piece int, size units.Bytes, gather bool) error {
	from := units.Bytes(piece) * size
	own := o.In[f.rank] + Ptr(units.Bytes(f.rank)*part+from)
	out := o.Out[f.rank] + Ptr(from)
	if gather {
		out += Ptr(units.Bytes(f.rank) * part)
	}
	return f.reduceSlots(k, piece, size, span(f.rank, part, total, from, size), own, out)
}

// reduceSlots queues the kernel of a direct reduce_scatter whose inputs are the
// slots of a piece and n own bytes, so shifted that this rank's share begins
// where its piece lies. All ranks queue it: it begins and ends with a barrier.
func (f *Free) reduceSlots(k Kernel, piece int, size, n units.Bytes, own, out Ptr) error {
	shift := Ptr(units.Bytes(f.rank) * n)
	a := f.args()
	a.bytes, a.aligned = uint64(n), 1
	for r := range f.n {
		a.in[r] = f.slot(f.rank, piece, r, size) - shift
	}
	a.in[f.rank] = own - shift
	a.out[f.rank] = out
	if own%16 != 0 || out%16 != 0 {
		a.aligned = 0
	}
	blocks := int(min(max((size+16*freeThreads-1)/(16*freeThreads), 1), 128))
	return f.dev.Launch(k, blocks, freeThreads, 0, f.side, []unsafe.Pointer{unsafe.Pointer(a)})
}
