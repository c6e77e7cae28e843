package sim

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/trace/nccltrace"
	"github.com/simccl/simccl/units"
)

// piece is when a thread group did what: it waited from since, began at start,
// and moved its bytes from joined to moved.
type piece struct {
	since, start, joined, moved units.Time
	data                        units.Time // of the wait, for data
	alone                       units.Time // what the bytes take at the group's own rate
	deps                        deps
}

// deps are the arrows from each receive of a piece to each of its sends: the
// numbers from first on, sends of the first receive first.
type deps struct {
	first, recvs, sends int64
	told                int // sends that have theirs
}

// of lists the arrows of the i-th connection on one side.
func (d *deps) of(side nccltrace.Dir, i int) (out []int64) {
	if side == nccltrace.Recv {
		for j := range d.sends {
			out = append(out, d.first+int64(i)*d.sends+j)
		}
		return out
	}
	for j := range d.recvs {
		out = append(out, d.first+j*d.sends+int64(i))
	}
	return out
}

// depend numbers a piece's arrows, where it has any and they are wanted.
func (t *tracer) depend(g *group) (d deps) {
	if n := int64(len(g.op.From) * len(g.op.To)); t.deps && n > 0 && g.op.Do&(plan.HoldRecv|plan.HoldSend) == 0 {
		d = deps{first: t.rec.Flow(), recvs: int64(len(g.op.From)), sends: int64(len(g.op.To))}
		for range n - 1 {
			t.rec.Flow()
		}
	}
	return d
}

// terms says what the time from since to moved consists of.
func (p *piece) terms() (t nccltrace.Terms) {
	t[nccltrace.Data] = p.data
	t[nccltrace.Room] = p.start - p.since - p.data
	t[nccltrace.Overhead] = p.joined - p.start
	t[nccltrace.Copy] = min(p.alone, p.moved-p.joined)
	t[nccltrace.Link] = p.moved - p.joined - t[nccltrace.Copy]
	return t
}

// told gives a piece's terms what passes until its flag is seen: the flag's own
// way, and before it a fence, or of a cut-through operation the last data.
func told(t nccltrace.Terms, proto coll.Protocol, flag, total units.Time) nccltrace.Terms {
	t[nccltrace.Flag] += max(0, min(flag, total-t.Sum()))
	if proto == coll.Simple {
		t.Rest(nccltrace.Fence, total)
	} else {
		t.Rest(nccltrace.Data, total)
	}
	return t
}

// starts notes that a group begins its next piece, and what it waited for.
func (t *tracer) starts(gi int32) {
	g := &t.e.groups[gi]
	if !t.follows(g.rank, nccltrace.DetailChannel) {
		return
	}
	came := g.since // when the last data did
	for _, id := range g.awaits(g.op.From) {
		c := &t.e.conns[id]
		came = max(came, c.head[(c.taken+int64(g.op.RecvAhead))%plan.FIFOSteps])
	}
	t.groups[gi].piece = piece{since: min(g.since, t.e.queue.Now), start: t.e.queue.Now, joined: -1, data: min(came, t.e.queue.Now) - min(g.since, t.e.queue.Now), deps: t.depend(g)}
}

// joins notes that a piece's bytes begin to move.
func (t *tracer) joins(gi int32, work float64, rate wire.Rate) {
	if t.follows(t.e.groups[gi].rank, nccltrace.DetailChannel) {
		p := &t.groups[gi].piece
		p.joined, p.alone = t.e.queue.Now, units.Time(work/float64(max(1, rate)))
	}
}

// moves notes that a piece's bytes are through.
func (t *tracer) moves(gi int32) {
	g := &t.e.groups[gi]
	if !t.follows(g.rank, nccltrace.DetailChannel) {
		return
	}
	p := &t.groups[gi].piece
	if p.moved = t.e.queue.Now; p.joined < 0 {
		p.joined = t.e.queue.Now
	}
	dst := g.rank
	if len(g.op.To) > 0 {
		dst = t.job.plan.Conn(g.op.To[0]).Dst
	}
	t.transfer(g.route, p.joined, g.rank, dst, g.pr.Channel, g.bytes)
}

// holds keeps the piece that has moved until its flag goes up.
func (t *tracer) holds(gi int32) {
	t.groups[gi].held = t.groups[gi].piece
}

// turns keeps a held piece until its turn over the heads is through.
func (t *tracer) turns(gi int32) {
	t.groups[gi].turn = append(t.groups[gi].turn, t.groups[gi].held)
}

// turned returns the i-th piece of a turn, and forgets all after the last.
func (t *tracer) turned(gi int32, i, n int) *piece {
	q := t.groups[gi].turn
	if i == n-1 {
		t.groups[gi].turn = q[:0]
	}
	return &q[i]
}

// done adds a piece to the group's time, which it occupies until free.
func (t *tracer) done(gi int32) {
	g := &t.e.groups[gi]
	if !t.follows(g.rank, nccltrace.DetailChannel) {
		return
	}
	p := &t.groups[gi].piece
	sum := p.terms()
	after := nccltrace.Overhead
	if g.pr.Proto == coll.Simple {
		after = nccltrace.Fence
	}
	sum[nccltrace.Data] += t.e.queue.Now - p.moved
	sum[after] += g.free - t.e.queue.Now
	t.groups[gi].sum.Add(&sum)
}

// ended takes the group that was the last of its multiprocessor's phase: its
// time is the phase's.
func (t *tracer) ended(gi int32) {
	if g := &t.e.groups[gi]; t.follows(g.rank, nccltrace.DetailChannel) {
		t.blocks[g.sm].Add(&t.groups[gi].sum)
	}
}

// kernel writes the slice of one channel's thread block; a copy has none.
func (t *tracer) kernel(si int32, at units.Time) {
	g := &t.e.groups[t.e.sms[si].first]
	if t.job.plan.OneRank() != plan.DeviceCopy && t.follows(g.rank, nccltrace.DetailChannel) {
		t.rec.Kernel(int(g.rank), 0, int(g.pr.Channel), t.e.devs[g.rank].begin-t.shift, at-t.shift, &t.blocks[si])
	}
}
