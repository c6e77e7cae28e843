package check

import (
	"fmt"
	"math"
	"slices"

	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// Parts is as the function, but proves once what several plans repeat.
func (s *Proofs) Parts(p *plan.Plan) (missing string, err error) {
	ops := opsOf(p)
	why := tooMany(p, ops)
	switch {
	case why == "":
		return "", s.whole(p, ops)
	case p.Members() != nil, p.Req.Cut != nil:
		return why + ", of an operation among others", nil
	// as which chunks are numbered
	case p.Turns() > 0 && ops/float64(p.Split.NChannels)/float64(p.Comm.NRanks) < math.MaxInt32:
		return "", ofRing(p, drawnWithin(p, mostTurned))
	case p.Req.Func.IsP2P():
		return ofTransfers(p)
	case isChain(p):
		return "", ofChain(p, drawnWithin(p, mostTurned))
	}
	short, err := fewIterations(p, drawnWithin(p, mostRepeated))
	if err != nil {
		return "", err
	}
	if tooLarge(short) == "" {
		return "", s.short(p, short)
	}
	if ok, err := ofTree(short); ok && err == nil { // otherwise what can be run says what is at fault
		return "", nil
	}
	return fewChannels(short)
}

// keptIterations are those that represent all; fewer than fewIterated are proved.
const (
	keptIterations = 2
	fewIterated    = 4
)

// mostRepeated is how many ops of drawn ranks are compared with those of other iterations,
// where two ranks have no more.
const mostRepeated = 500_000

// fewIterations returns a plan of some iterations whose programs those of the given
// one's ranks repeat; the plan itself where there is none.
func fewIterations(p *plan.Plan, ranks []int32) (*plan.Plan, error) {
	all := p.Iterations()
	if all < fewIterated {
		return p, nil
	}
	short, err := p.Smaller(keptIterations)
	if err != nil || short == nil {
		return p, err
	}
	later := make([]units.Bytes, p.Split.NChannels) // by channel: what its iterations that are left out move
	for i := range later {
		later[i] = -1
	}
	x := repetition{p: p, left: all - keptIterations}
	for _, rank := range ranks {
		long, kept := p.Programs(rank), short.Programs(rank)
		if len(long) != len(kept) {
			return p, nil
		}
		for i := range long {
			x.rank = rank
			if !x.holds(short, &long[i], &kept[i]) {
				return p, nil
			}
			if of := &later[long[i].Channel-int32(p.Split.ChannelLo)]; *of < 0 {
				*of = x.moved
			} else if x.moved >= 0 && *of != x.moved {
				return p, nil
			}
		}
	}
	count := units.Bytes(p.Req.Count-short.Req.Count) * p.Req.Type.Size()
	for _, n := range later {
		count -= max(0, n)
	}
	if count != 0 {
		return p, nil
	}
	return short, nil
}

// repetition compares a program with the same of fewer iterations.
type repetition struct {
	p     *plan.Plan
	rank  int32
	left  int64       // iterations that are left out
	moved units.Bytes // by which what follows them lies further on; -1 where no op has an address
	ops   []plan.Op   // room for those of an iteration
}

// holds reports whether a program's ops are those of the shorter one, with the second
// iteration repeated further on in the buffers.
func (x *repetition) holds(short *plan.Plan, long, kept *plan.Program) bool {
	n, k := x.p.NumOps(long), short.NumOps(kept)
	if (n-k)%x.left != 0 {
		return false
	}
	per := (n - k) / x.left
	ops := x.ops[:0] // of the first iteration, at the places of the one before
	var a, b plan.Cursor
	var op, other plan.Op
	x.p.OpenInto(&a, long)
	short.OpenInto(&b, kept)
	x.moved = -1
	var turn, first distance // to the next iteration, and of the shorter plan's first ones
	at := int64(0)           // i modulo per
	for i := int64(0); i < n; i++ {
		if !a.Next(&op) {
			return false
		}
		if i < keptIterations*per || i >= (keptIterations+x.left)*per { // as in the shorter plan
			if !b.Next(&other) || !sameButPlace(&op, &other) {
				return false
			}
			to := &first
			if i >= keptIterations*per {
				to = &distance{known: first.known && turn.known, by: first.by + turn.by*units.Bytes(x.left)}
			}
			if !to.holds(&op, &other) {
				return false
			}
		}
		switch {
		case i < per:
			ops = appendOp(ops, &op)
		case i < (keptIterations+x.left)*per:
			was := &ops[at]
			if !sameButPlace(&op, was) || !turn.holds(&op, was) {
				return false
			}
			was.Src.Off, was.Dst.Off = op.Src.Off, op.Dst.Off
		}
		if at++; at >= per {
			at = 0
		}
	}
	x.ops = ops
	if turn.known {
		x.moved = turn.by * units.Bytes(x.left)
	}
	return !b.Next(&other)
}

// appendOp adds an op with lists of its own, as a cursor overwrites its, in the room of
// the one that was there.
func appendOp(ops []plan.Op, op *plan.Op) []plan.Op {
	n := len(ops)
	if n == cap(ops) {
		ops = append(ops, plan.Op{})
	} else {
		ops = ops[:n+1]
	}
	from, to := append(ops[n].From[:0], op.From...), append(ops[n].To[:0], op.To...)
	ops[n] = *op
	ops[n].From, ops[n].To = from, to
	return ops
}

// sameButPlace reports whether two ops do the same over the same connections.
func sameButPlace(a, b *plan.Op) bool {
	return a.Do == b.Do && a.Bytes == b.Bytes && a.Src.Buf == b.Src.Buf && a.Dst.Buf == b.Dst.Buf &&
		slices.Equal(a.From, b.From) && slices.Equal(a.To, b.To) &&
		a.RecvOff == b.RecvOff && a.SendOff == b.SendOff && a.RecvAhead == b.RecvAhead &&
		a.SendAhead == b.SendAhead
}

// distance is how much further on in the buffers one op is than another.
type distance struct {
	by    units.Bytes
	known bool
}

// holds reports whether two ops are so far from each other, or, where the distance is
// not known yet, equally far with all they use.
func (d *distance) holds(a, b *plan.Op) bool {
	return d.same(a.Src, b.Src) && d.same(a.Dst, b.Dst)
}

func (d *distance) same(a, b plan.Ref) bool {
	if a.Buf == plan.NoBuffer {
		return true
	}
	by := a.Off - b.Off
	if !d.known {
		*d = distance{by, true}
	}
	return by == d.by
}

// fewChannels proves some channels of a plan, each for itself.
func fewChannels(p *plan.Plan) (missing string, err error) {
	why := tooLarge(p)
	ops, most := opsOf(p)/float64(max(1, p.Split.NChannels)), float64(maxChannelOps)
	switch {
	case p.ConnsPerRank() == 0 || p.Split.NChannels < 2 || p.Split.Striped || len(p.NetGroups()) > 0:
		return why, nil
	case ops > most || int64(p.Comm.NRanks)*int64(p.ConnsPerRank()) > maxConns:
		return fmt.Sprintf("%s; a channel alone has %.3g", why, ops), nil
	}
	n := max(1, min(p.Split.NChannels, int(most/ops)))
	for i := range n {
		ch := int32(p.Split.ChannelLo + i*(p.Split.NChannels-1)/max(1, n-1))
		if err := proveChannel(p, ch); err != nil {
			return "", err
		}
	}
	return "", nil
}

// maxChannelOps are proved of one channel at most, in some 2 s of a processor.
const maxChannelOps = 2e6

// maxConns is of how many connections the FIFOs are held at a time, of 300 bytes each.
const maxConns = 1 << 21

// proveChannel proves what a plan does on one channel.
func proveChannel(p *plan.Plan, ch int32) error {
	m := newSymbols(p, maxSetRanks)
	c, err := newRunner[value](p, m, ch, m.ranks)
	if err != nil {
		return err
	}
	if err := c.run(); err != nil {
		return err
	}
	if err := c.drained(); err != nil {
		return err
	}
	return m.ofChannel(ch)
}

// ofChannel compares what a channel does of every output.
func (m *symbols) ofChannel(ch int32) error {
	k := int(ch) - m.p.Split.ChannelLo
	begin := units.Bytes(0)
	for i := range k {
		begin += partBytes(m.p, i)
	}
	return m.outputs(begin, begin+partBytes(m.p, k))
}

// partBytes is what the k-th channel of the split does of a rank's block.
func partBytes(p *plan.Plan, k int) units.Bytes {
	part := &p.Split.Mid
	switch k {
	case 0:
		part = &p.Split.Lo
	case p.Split.NChannels - 1:
		part = &p.Split.Hi
	}
	return units.Bytes(part.Count) * p.Split.ElemSize
}
