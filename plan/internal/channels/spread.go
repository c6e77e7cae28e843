package channels

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
)

// Task is a collective as the channels of a kernel see it.
type Task struct {
	Count    int64 // elements
	ElemSize int64
	PerByte  int64 // traffic of one byte of Count
	Traffic  int64 // of all elements
}

// TrafficPerByte is how often a byte of count crosses a rank's ports
// (enqueue.cc:86).
func TrafficPerByte(f coll.Func, nRanks int) int64 {
	switch f {
	case coll.AllReduce:
		return 2
	case coll.AllGather, coll.ReduceScatter:
		return int64(nRanks)
	}
	return 1
}

// TaskOf is the task of a request whose algorithm and protocol are chosen. LL's flags
// count as traffic, in the task's sum and in the size of a cell (enqueue.cc:417, 600).
func TaskOf(c *connect.Layout, r *plan.Request) Task {
	count, es := r.Elements()
	t := Task{Count: count, ElemSize: int64(es), PerByte: TrafficPerByte(r.Func, c.NRanks)}
	if r.Proto == coll.LL {
		t.PerByte *= c.Rules.Plan.LLTraffic
	}
	t.Traffic = count * t.ElemSize * t.PerByte
	return t
}

// Spread lays the tasks of a kernel on its channels, one after another: each channel
// gets its share of the traffic of all, by whole cells of data, so that none has less
// than the rules' MinTraffic while another could take it. A channel may end one task
// and begin the next (enqueue.cc:519-660).
type Spread struct {
	comm     *connect.Layout
	channels int   // most channels
	share    int64 // traffic of a channel
	at       int   // channel in progress
	traffic  int64 // that it has
}

// NewSpread begins with empty channels. traffic is the sum of LeastTraffic over the
// tasks, width the sum of the channels that the cost model allows them, both of tasks
// of one kind; most are the channels of the communicator for that kind.
func NewSpread(c *connect.Layout, most int, traffic int64, width int) Spread {
	r := &c.Rules.Plan
	s := Spread{comm: c, channels: most}
	n := int64(max(min(width, most), 1))
	s.share = max(r.MinTraffic, traffic) / n
	if r.RoundShare {
		s.share = AlignUp(s.share, 16)
	}
	if !r.RoundShare || r.KeepShare {
		s.share = max(r.MinTraffic, s.share)
	}
	return s
}

// LeastTraffic is what a task counts for in the sum of New (enqueue.cc:543).
func LeastTraffic(c *connect.Layout, t Task) int64 {
	if r := &c.Rules.Plan; !r.SmallCells { // enqueue.cc:182 of v2.22.3
		return max(r.MinTraffic, t.Traffic)
	}
	return t.Traffic
}

// cells is a division of a channel range by whole cells of data: lo for the
// first channel, mid for each of nMid, hi for the last.
type cells struct{ lo, mid, hi, nMid int64 }

// Place lays a task on the channels.
func (s *Spread) Place(t Task) plan.Cut {
	rules := &s.comm.Rules.Plan
	cell := AlignUp(DivUp(rules.MinTraffic, t.PerByte), 16)
	if rules.SmallCells {
		cell = 16
	}
	perCell := cell * t.PerByte
	total := DivUp(t.Count*t.ElemSize, cell)
	want := DivUp(s.share-s.traffic, perCell)
	if rules.SmallCells { // enqueue.cc:658 of v2.22.3
		want = (s.share - s.traffic) / perCell
	}
	d := divide(total, DivUp(s.share, perCell), want, s.channels-s.at)
	if d.lo == 0 { // nothing for the channel in progress
		s.at, s.traffic, d = s.at+1, 0, d.shift()
	}
	elems := cell / t.ElemSize
	cut := plan.Cut{ChannelLo: s.at, NChannels: 1, Lo: d.lo * elems, Mid: d.mid * elems, Hi: d.hi * elems}
	// The last cell may be incomplete.
	rest := total*elems - t.Count
	if d.hi != 0 {
		cut.Hi -= rest
		cut.NChannels += int(d.nMid) + 1
	} else {
		cut.Lo -= rest
	}
	s.advance(t, &cut, d, elems)
	return cut
}

// advance notes what a task has put on the last of its channels.
func (s *Spread) advance(t Task, cut *plan.Cut, d cells, elems int64) {
	perElem := t.ElemSize * t.PerByte
	last := d.hi
	own := cut.Hi
	if d.hi != 0 {
		s.at, s.traffic = cut.ChannelHi(), 0
	} else {
		last, own = d.lo, cut.Lo
	}
	if s.comm.Rules.Plan.SmallCells { // enqueue.cc:306 of v2.22.3
		s.traffic += own * perElem
	} else {
		s.traffic += last * elems * perElem
	}
	if s.traffic >= s.share && s.at+1 != s.channels {
		s.at, s.traffic = s.at+1, 0
	}
}

// divide gives each channel the cells that match its share of the traffic, want to
// the first, following enqueue.cc:605-628.
//
// Ten cells at three a channel are 3 + 2·3 + 1: lo 3, two channels with mid 3,
// hi 1. With at most three channels they are 3 + 3 + 4, for the last takes what
// an even division of the rest leaves over.
func divide(total, perChannel, want int64, maxChannels int) cells {
	perChannel = min(total, perChannel)
	lo := want
	if maxChannels == 1 {
		lo = total
	}
	lo = min(total, lo)
	d := cells{lo: lo}
	d.nMid = (total - lo) / perChannel
	d.hi = (total - lo) % perChannel
	n := d.nMid
	if d.lo != 0 {
		n++
	}
	if d.hi != 0 {
		n++
	}
	if int64(maxChannels) < n {
		d.nMid = int64(maxChannels) - 2
		perChannel = (total - lo) / (d.nMid + 1)
		d.hi = perChannel + (total-lo)%(d.nMid+1)
	}
	if d.hi == 0 && d.nMid != 0 {
		d.hi = perChannel
		d.nMid--
	}
	if d.nMid != 0 {
		d.mid = perChannel
	}
	return d
}

// shift moves the cells of the other channels up by one.
func (d cells) shift() cells {
	if d.nMid == 0 {
		return cells{lo: d.hi}
	}
	d.lo = d.mid
	if d.nMid--; d.nMid == 0 {
		d.mid = 0
	}
	return d
}
