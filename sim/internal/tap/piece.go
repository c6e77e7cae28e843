package tap

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/internal/engine"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/trace/nccl"
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
// numbers starting at first, sends of the first receive first.
type deps struct {
	first, recvs, sends int64
	used                int // sends that have theirs
}

// of lists the arrows of the i-th connection on one side.
func (d *deps) of(side nccl.Dir, i int) (out []int64) {
	if side == nccl.Recv {
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
func (t *Tracer) depend(g *engine.Group) (d deps) {
	if n := int64(len(g.Op.From) * len(g.Op.To)); t.deps && n > 0 && g.Op.Do&(plan.HoldRecv|plan.HoldSend) ==
		0 {
		d = deps{first: t.rec.Flow(), recvs: int64(len(g.Op.From)), sends: int64(len(g.Op.To))}
		for range n - 1 {
			t.rec.Flow()
		}
	}
	return d
}

// terms says what the time from since to moved consists of.
func (p *piece) terms() (t nccl.Terms) {
	t[nccl.Data] = p.data
	t[nccl.Room] = p.start - p.since - p.data
	t[nccl.Overhead] = p.joined - p.start
	t[nccl.Copy] = min(p.alone, p.moved-p.joined)
	t[nccl.Link] = p.moved - p.joined - t[nccl.Copy]
	return t
}

// withFlag gives a piece's terms what passes until its flag is seen: the flag's own
// latency, and before it a fence, or of a cut-through operation the last data.
func withFlag(t nccl.Terms, proto coll.Protocol, flag, total units.Time) nccl.Terms {
	t[nccl.Flag] += max(0, min(flag, total-t.Sum()))
	if proto == coll.Simple {
		t.Rest(nccl.Fence, total)
	} else {
		t.Rest(nccl.Data, total)
	}
	return t
}

// starts notes that a group begins its next piece, and what it waited for.
func (t *Tracer) starts(gi int32) {
	g := &t.e.Groups[gi]
	if !t.follows(g.Rank, nccl.DetailChannel) {
		return
	}
	came := g.Since // when the last data did
	for _, id := range g.Awaits(g.Op.From) {
		c := &t.e.Conns[id]
		came = max(came, c.Slots[(c.Taken+int64(g.Op.RecvAhead))%plan.FIFOSteps].Head)
	}
	t.groups[gi].piece = piece{since: min(g.Since, t.e.Queue.Now), start: t.e.Queue.Now, joined: -1,
		data: min(came, t.e.Queue.Now) - min(g.Since, t.e.Queue.Now), deps: t.depend(g)}
}

// joins notes that a piece's bytes begin to move.
func (t *Tracer) joins(gi int32, work float64, rate wire.Rate) {
	if t.follows(t.e.Groups[gi].Rank, nccl.DetailChannel) {
		p := &t.groups[gi].piece
		p.joined, p.alone = t.e.Queue.Now, units.Time(work/float64(max(1, rate)))
	}
}

// moves notes that a piece's bytes are through.
func (t *Tracer) moves(gi int32) {
	g := &t.e.Groups[gi]
	if !t.follows(g.Rank, nccl.DetailChannel) {
		return
	}
	p := &t.groups[gi].piece
	if p.moved = t.e.Queue.Now; p.joined < 0 {
		p.joined = t.e.Queue.Now
	}
	dst := g.Rank
	if len(g.Op.To) > 0 {
		t.job.Plan.EndsInto(&t.ends, g.Op.To[0])
		dst = t.ends.Dst
	}
	t.transfer(g.Route, p.joined, g.Rank, dst, g.Program.Channel, g.Bytes)
}

// holds keeps the piece that has moved until its flag goes up.
func (t *Tracer) holds(gi int32) {
	t.groups[gi].held = t.groups[gi].piece
}

// joinsRound keeps a held piece until its round over the heads is through.
func (t *Tracer) joinsRound(gi int32) {
	t.groups[gi].round = append(t.groups[gi].round, t.groups[gi].held)
}

// inRound returns the i-th piece of a round, and forgets all after the last.
func (t *Tracer) inRound(gi int32, i, n int) *piece {
	q := t.groups[gi].round
	if i == n-1 {
		t.groups[gi].round = q[:0]
	}
	return &q[i]
}

// done adds a piece to the group's time, which it occupies until free.
func (t *Tracer) done(gi int32) {
	g := &t.e.Groups[gi]
	if !t.follows(g.Rank, nccl.DetailChannel) {
		return
	}
	p := &t.groups[gi].piece
	sum := p.terms()
	after := nccl.Overhead
	if g.Program.Proto == coll.Simple {
		after = nccl.Fence
	}
	sum[nccl.Data] += t.e.Queue.Now - p.moved
	sum[after] += g.Free - t.e.Queue.Now
	t.groups[gi].sum.Add(&sum)
}

// ended takes the group that was the last of its multiprocessor's phase: its
// time is the phase's.
func (t *Tracer) ended(gi int32) {
	if g := &t.e.Groups[gi]; t.follows(g.Rank, nccl.DetailChannel) {
		t.blocks[g.Sm].Add(&t.groups[gi].sum)
	}
}

// kernel writes the slice of one channel's thread block; a copy has none.
func (t *Tracer) kernel(si int32, at units.Time) {
	g := &t.e.Groups[t.e.SMs[si].First]
	if t.job.Plan.OneRank() != plan.DeviceCopy && t.follows(g.Rank, nccl.DetailChannel) {
		t.rec.Kernel(int(g.Rank), 0, int(g.Program.Channel), t.e.Devices[g.Rank].Begin-t.shift, at-t.shift,
			&t.blocks[si])
	}
}
