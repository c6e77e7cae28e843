package check

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// Sends and receives are independent of each other. So it is enough that each rank
// sends every peer what that one should have, and receives it where it belongs, and that
// both ends of a connection cut it equally. All ranks are looked at, or the root and as many
// that are drawn as maxTransfers allows. That the transfers of a batch end is not: the schedule
// is taken as Plan proves it for fewer ranks.

// maxTransfers is how many programs of sends and receives are looked at, some 0.1 s of a processor: all of an
// alltoall of 256 ranks, those of a quarter of 512. At least six ranks are.
const maxTransfers = 1 << 17

// transfers are those of a plan's ranks.
type transfers struct {
	p     *plan.Plan
	n     int32
	count units.Bytes
	taken map[int32]bool   // ranks that are looked at; nil: all
	ends  map[connEnd]size // of connections whose other end comes later
	each  []size           // the same by id, where ids are few and not shared; else nil
	left  int              // of each, how many
	progs []plan.Program
	spans []spanOf // of the rank, by peer and place
	dealt []spanOf // room for them
	next  []int32  // by peer and direction: where the next one belongs
	// waits is set where a rank other than the root has a batch behind another, which
	// might wait for it.
	waits bool
}

// size is how a connection's end is cut.
type size struct {
	bytes, chunk units.Bytes
	src, channel int32
	there        bool
}

// fewConns are kept by id.
const fewConns = 1 << 21

// connEnd names a connection where ids are shared by nodes.
type connEnd struct{ conn, src, channel int32 }

// span is what a rank sends a peer, or receives from it.
type span struct {
	peer  int32
	sends bool
}

type spanOf struct {
	span
	t plan.Transfer
}

// ofTransfers proves sends and receives.
func ofTransfers(p *plan.Plan) (missing string, err error) {
	switch p.Req.Func {
	case coll.AllToAll, coll.Gather, coll.Scatter, coll.SendRecv, coll.Send:
	default:
		return tooLarge(p), nil
	}
	return "", newTransfers(p).prove()
}

// rootedTransfers reports whether a gather or scatter is proved, its end included: the
// root's batches wait for ranks that wait for no batch of their own. All ranks are looked
// at.
func rootedTransfers(p *plan.Plan) bool {
	if f := p.Req.Func; f != coll.Gather && f != coll.Scatter || p.Distinct() != nil {
		return false
	}
	x := newTransfers(p)
	return x.prove() == nil && !x.waits && x.taken == nil
}

func newTransfers(p *plan.Plan) *transfers {
	x := &transfers{p: p, n: int32(p.Comm.NRanks), count: units.Bytes(p.Req.Count) * p.Req.Type.Size(),
		ends: map[connEnd]size{}}
	if n := p.NumConns(); n <= fewConns && p.Distinct() == nil {
		x.each = make([]size, n)
	}
	return x
}

// prove looks at all ranks, or at some.
func (x *transfers) prove() error {
	p := x.p
	var ranks []int32
	each := len(p.Programs((p.Req.Root + 1) % x.n))
	if most := maxTransfers / max(1, each); int(x.n) <= most {
		ranks = allRanks(p)
	} else {
		ranks = append(drawnOf(int(x.n), max(fewDrawn, most)), p.Req.Root)
		x.taken = map[int32]bool{}
		slices.Sort(ranks)
		ranks = slices.Compact(ranks)
		for _, r := range ranks {
			x.taken[r] = true
		}
	}
	for _, r := range ranks {
		if err := p.Req.Params.Poll(); err != nil {
			return err
		}
		if err := x.ofRank(r); err != nil {
			return err
		}
	}
	if x.left > 0 {
		id := slices.IndexFunc(x.each, func(s size) bool { return s.there })
		left := &x.each[id]
		return &Error{left.src, left.channel, -1, -1,
			fmt.Sprintf("connection %d has %d bytes at one end only", id, left.bytes)}
	}
	if len(x.ends) > 0 {
		left := slices.SortedFunc(maps.Keys(x.ends), func(a, b connEnd) int {
			return cmp.Or(cmp.Compare(a.src, b.src), cmp.Compare(a.conn, b.conn))
		})[0]
		return &Error{left.src, left.channel, -1, -1,
			fmt.Sprintf("connection %d has %d bytes at one end only", left.conn, x.ends[left].bytes)}
	}
	return nil
}

// meet notes one end of a connection, or returns the other that was noted before.
func (x *transfers) meet(end connEnd, s size) (other size, met bool) {
	if x.each != nil {
		at := &x.each[end.conn]
		if other = *at; other.there {
			at.there = false
			x.left--
			return other, true
		}
		*at = s
		x.left++
		return s, false
	}
	if other, met = x.ends[end]; met {
		delete(x.ends, end)
		return other, true
	}
	x.ends[end] = s
	return s, false
}

// ofRank checks what a rank sends and receives.
func (x *transfers) ofRank(rank int32) error {
	x.spans, x.progs = x.spans[:0], x.p.AppendPrograms(x.progs[:0], rank)
	for i := range x.progs {
		if err := x.ofProgram(rank, i); err != nil {
			return err
		}
	}
	x.sort()
	return x.covered(rank)
}

// sort orders spans by peer, direction and place. Most peers have a few parts, in order already, so the spans
// are dealt out by peer and direction, unless they are few beside the ranks.
func (x *transfers) sort() {
	inOrder := func(a, b spanOf) int {
		return cmp.Or(cmp.Compare(a.peer, b.peer), directions(a.sends, b.sends),
			cmp.Compare(a.t.Off, b.t.Off), cmp.Compare(a.t.Bytes, b.t.Bytes))
	}
	if 8*len(x.spans) < int(x.n) {
		slices.SortFunc(x.spans, inOrder)
		return
	}
	key := func(s *spanOf) int {
		if s.sends {
			return 2*int(s.peer) + 1
		}
		return 2 * int(s.peer)
	}
	next := append(x.next[:0], make([]int32, 2*x.n+1)...)
	for i := range x.spans {
		next[key(&x.spans[i])+1]++
	}
	for i := range next[1:] {
		next[i+1] += next[i]
	}
	dealt := append(x.dealt[:0], x.spans...)
	for i := range x.spans {
		at := &next[key(&x.spans[i])]
		dealt[*at] = x.spans[i]
		*at++
	}
	if !slices.IsSortedFunc(dealt, inOrder) {
		slices.SortFunc(dealt, inOrder)
	}
	x.spans, x.dealt, x.next = dealt, x.spans, next
}

// directions orders receives before sends.
func directions(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// ofProgram checks a program's connection, and with the other end how it is cut.
func (x *transfers) ofProgram(rank int32, i int) error {
	pr := &x.progs[i]
	fault := func(format string, args ...any) error {
		return &Error{rank, pr.Channel, pr.Group, -1, fmt.Sprintf(format, args...)}
	}
	if before := &x.progs[max(0, i-1)]; rank != x.p.Req.Root && (before.Channel > pr.Channel ||
		before.Channel == pr.Channel && before.Phase != pr.Phase) {
		x.waits = true
	}
	t := pr.Transfer
	if pr.Role == plan.RoleCopy {
		x.spans = append(x.spans, spanOf{span{rank, true}, t})
		t.Off = t.Dst
		x.spans = append(x.spans, spanOf{span{rank, false}, t})
		return nil
	}
	if pr.Role != plan.RoleSend && pr.Role != plan.RoleRecv {
		return fault("%v among sends and receives", pr.Role)
	}
	c, sends := x.p.Conn(t.Conn), pr.Role == plan.RoleSend
	first := (rank - c.Dst + x.n) % x.n
	if sends {
		first = (rank - c.Src + x.n) % x.n
	}
	src, dst := (c.Src+first)%x.n, (c.Dst+first)%x.n
	peer := src
	if sends {
		peer = dst
	}
	if c.Channel != pr.Channel || first != 0 && x.p.Sharing() < 2 {
		return fault("connection %d is from rank %d to %d on channel %d", c.ID, c.Src, c.Dst, c.Channel)
	}
	x.spans = append(x.spans, spanOf{span{peer, sends}, t})
	if x.taken != nil && !x.taken[peer] {
		return nil
	}
	other, met := x.meet(connEnd{t.Conn, src, pr.Channel}, size{t.Bytes, t.Chunk, src, pr.Channel, true})
	if met && (other.bytes != t.Bytes || other.chunk != t.Chunk || other.src != src ||
		other.channel != pr.Channel) {
		return fault("moves %d bytes in chunks of %d, rank %d %d in chunks of %d", t.Bytes, t.Chunk, peer,
			other.bytes, other.chunk)
	}
	return nil
}

// covered checks that a rank's transfers are those of the operation.
func (x *transfers) covered(rank int32) error {
	for peer := range x.peersOf(rank) {
		for _, sends := range [2]bool{true, false} {
			of := span{peer, sends}
			if _, met := x.spanAt(of); met {
				continue // below
			}
			if err := x.tiled(rank, of, nil); err != nil {
				return err
			}
		}
	}
	for i := 0; i < len(x.spans); {
		first := i
		for i < len(x.spans) && x.spans[i].span == x.spans[first].span {
			i++
		}
		if err := x.tiled(rank, x.spans[first].span, x.spans[first:i]); err != nil {
			return err
		}
	}
	return nil
}

// spanAt finds the first part of a span.
func (x *transfers) spanAt(of span) (int, bool) {
	return slices.BinarySearchFunc(x.spans, of, func(s spanOf, of span) int {
		return cmp.Or(cmp.Compare(s.peer, of.peer), directions(s.sends, of.sends))
	})
}

// peersOf yields the ranks with which a rank exchanges something, and maybe others.
func (x *transfers) peersOf(rank int32) iter.Seq[int32] {
	r := &x.p.Req
	return func(yield func(int32) bool) {
		switch {
		case r.Func == coll.SendRecv:
			_ = yield((rank+1)%x.n) && (x.n < 3 || yield((rank-1+x.n)%x.n))
		case r.Func == coll.Send:
			_ = yield(r.Root) && (r.Peer == r.Root || yield(r.Peer))
		case r.Func == coll.AllToAll, rank == r.Root:
			for peer := range x.n {
				if !yield(peer) {
					return
				}
			}
		default:
			yield(r.Root)
		}
	}
}

// tiled checks that what a rank sends a peer, or receives from it, lies side by side and
// is all that it should be.
func (x *transfers) tiled(rank int32, of span, parts []spanOf) error {
	at, n := x.wants(rank, of.peer, of.sends)
	if of.peer == rank && len(parts) == 0 && x.inPlace(rank) {
		return nil
	}
	end := at
	for i := range parts {
		t := &parts[i].t
		if t.Off != end && t.Bytes > 0 {
			return &Error{rank, -1, -1, -1,
				fmt.Sprintf("what goes to or from rank %d continues at byte %d, not %d", of.peer, t.Off, end)}
		}
		end += t.Bytes
	}
	if end != at+n {
		return &Error{rank, -1, -1, -1, fmt.Sprintf("%d bytes go to or from rank %d, should be %d", end-at,
			of.peer, n)}
	}
	return nil
}

// inPlace reports whether what a rank would send itself lies where it belongs.
func (x *transfers) inPlace(rank int32) bool {
	l := x.p.Layout(rank)
	src, _ := x.wants(rank, rank, true)
	dst, _ := x.wants(rank, rank, false)
	return l.Shared && l.InputAt+src == l.OutputAt+dst
}

// wants is what of its input a rank sends a peer, or where of its output it receives
// what comes from it: a place and a number of bytes.
func (x *transfers) wants(rank, peer int32, sends bool) (at, n units.Bytes) {
	from, to := peer, rank
	if sends {
		from, to = rank, peer
	}
	r := &x.p.Req
	block := units.Bytes(peer) * x.count
	switch r.Func {
	case coll.AllToAll:
		if p := r.Pairs; p != nil {
			at, size := p.To(from, to), r.Type.Size()
			if sends {
				at = p.From(from, to)
			}
			return units.Bytes(at) * size, units.Bytes(p.At(from, to)) * size
		}
		if r.Same && sends {
			return 0, x.count
		}
		return block, x.count
	case coll.SendRecv:
		if to == (from+1)%x.n {
			return 0, x.count
		}
	case coll.Send:
		if from == r.Root && to == r.Peer {
			return 0, x.count
		}
	case coll.Gather:
		if to == r.Root && !sends {
			return block, x.count
		} else if to == r.Root {
			return 0, x.count
		}
	case coll.Scatter:
		if from == r.Root && sends {
			return block, x.count
		} else if from == r.Root {
			return 0, x.count
		}
	}
	return 0, 0
}
