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
// both ends of a connection cut it equally. All ranks are looked at, or drawn ones and the
// root where there are too many. That the transfers of a batch end is not: the schedule
// is taken as Plan proves it for fewer ranks.

// maxTransfers is how many programs of sends and receives are looked at.
const maxTransfers = 1 << 20

// transfers are those of a plan's ranks.
type transfers struct {
	p     *plan.Plan
	n     int32
	count units.Bytes
	taken map[int32]bool            // ranks that are looked at; nil: all
	ends  map[connEnd]plan.Transfer // of connections whose other end comes later
	spans map[span][]plan.Transfer  // of the rank
}

// connEnd names a connection where ids are shared by nodes.
type connEnd struct{ conn, src, channel int32 }

// span is what a rank sends a peer, or receives from it.
type span struct {
	peer  int32
	sends bool
}

// ofTransfers proves sends and receives.
func ofTransfers(p *plan.Plan) (missing string, err error) {
	switch p.Req.Func {
	case coll.AllToAll, coll.Gather, coll.Scatter, coll.SendRecv, coll.Send:
	default:
		return TooLarge(p), nil
	}
	x := &transfers{p: p, n: int32(p.Comm.NRanks), count: units.Bytes(p.Req.Count) * p.Req.Type.Size(), ends: map[connEnd]plan.Transfer{}}
	ranks := append(drawn(p.Comm.NRanks), p.Req.Root)
	if each := len(p.Programs((p.Req.Root + 1) % x.n)); each*int(x.n) <= maxTransfers {
		ranks = ranks[:0]
		for r := range x.n {
			ranks = append(ranks, r)
		}
	} else {
		x.taken = map[int32]bool{}
		slices.Sort(ranks)
		ranks = slices.Compact(ranks)
		for _, r := range ranks {
			x.taken[r] = true
		}
	}
	for _, r := range ranks {
		if err := p.Req.Params.Poll(); err != nil {
			return "", err
		}
		if err := x.ofRank(r); err != nil {
			return "", err
		}
	}
	if len(x.ends) > 0 {
		left := slices.SortedFunc(maps.Keys(x.ends), func(a, b connEnd) int { return cmp.Or(cmp.Compare(a.src, b.src), cmp.Compare(a.conn, b.conn)) })[0]
		return "", &Error{left.src, left.channel, -1, -1, fmt.Sprintf("connection %d has %d bytes at one end only", left.conn, x.ends[left].Bytes)}
	}
	return "", nil
}

// ofRank checks what a rank sends and receives.
func (x *transfers) ofRank(rank int32) error {
	x.spans = map[span][]plan.Transfer{}
	for _, pr := range x.p.Programs(rank) {
		fault := func(format string, args ...any) error {
			return &Error{rank, pr.Channel, pr.Group, -1, fmt.Sprintf(format, args...)}
		}
		t := pr.Transfer
		if pr.Role == plan.RoleCopy {
			x.spans[span{rank, true}] = append(x.spans[span{rank, true}], t)
			t.Off = t.Dst
			x.spans[span{rank, false}] = append(x.spans[span{rank, false}], t)
			continue
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
		x.spans[span{peer, sends}] = append(x.spans[span{peer, sends}], t)
		if x.taken != nil && !x.taken[peer] {
			continue
		}
		end := connEnd{t.Conn, src, pr.Channel}
		other, met := x.ends[end]
		if !met {
			x.ends[end] = t
			continue
		}
		delete(x.ends, end)
		if other.Bytes != t.Bytes || other.Chunk != t.Chunk {
			return fault("moves %d bytes in chunks of %d, rank %d %d in chunks of %d", t.Bytes, t.Chunk, peer, other.Bytes, other.Chunk)
		}
	}
	return x.covered(rank)
}

// covered checks that a rank's transfers are those of the operation.
func (x *transfers) covered(rank int32) error {
	for peer := range x.peersOf(rank) {
		for _, sends := range [2]bool{true, false} {
			of := span{peer, sends}
			if err := x.tiled(rank, of, x.spans[of]); err != nil {
				return err
			}
			delete(x.spans, of)
		}
	}
	for _, of := range slices.SortedFunc(maps.Keys(x.spans), func(a, b span) int { return cmp.Compare(a.peer, b.peer) }) {
		if err := x.tiled(rank, of, x.spans[of]); err != nil {
			return err
		}
	}
	return nil
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
func (x *transfers) tiled(rank int32, of span, parts []plan.Transfer) error {
	at, n := x.wants(rank, of.peer, of.sends)
	if of.peer == rank && len(parts) == 0 && x.inPlace(rank) {
		return nil
	}
	slices.SortFunc(parts, func(a, b plan.Transfer) int { return cmp.Or(cmp.Compare(a.Off, b.Off), cmp.Compare(a.Bytes, b.Bytes)) })
	end := at
	for _, t := range parts {
		if t.Off != end && t.Bytes > 0 {
			return &Error{rank, -1, -1, -1, fmt.Sprintf("what goes to or from rank %d continues at byte %d, not %d", of.peer, t.Off, end)}
		}
		end += t.Bytes
	}
	if end != at+n {
		return &Error{rank, -1, -1, -1, fmt.Sprintf("%d bytes go to or from rank %d, should be %d", end-at, of.peer, n)}
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
