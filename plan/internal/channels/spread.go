package channels

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
)

// Task is a collective for which a kernel's channels are chosen.
type Task struct {
	Count    int64 // elements
	ElemSize int64
	PerByte  int64 // traffic in bytes per byte of Count
	Traffic  int64 // traffic of all elements
}

// TrafficPerByte returns how many times a byte of count crosses a rank's ports (enqueue.cc:86).
func TrafficPerByte(f coll.Func, nRanks int) int64 {
	switch f {
	case coll.AllReduce:
		return 2
	case coll.AllGather, coll.ReduceScatter:
		return int64(nRanks)
	}
	return 1
}

// TaskOf returns the task of a request with a chosen algorithm and protocol. LL's flags count as traffic, in
// the task's sum and in the size of a cell (enqueue.cc:417, 600).
func TaskOf(c *connect.Layout, r *plan.Request) Task {
	count, es := r.Elements()
	t := Task{Count: count, ElemSize: int64(es), PerByte: TrafficPerByte(r.Func, c.NRanks)}
	if r.Proto == coll.LL {
		t.PerByte *= c.Rules.Plan.LLTraffic
	}
	t.Traffic = count * t.ElemSize * t.PerByte
	return t
}

// Spread assigns the tasks of a kernel to its channels, one task after another: each channel gets its share
// of the total traffic, in whole cells of data, so that none has less than the rules' MinTraffic while
// another could take it. A channel may end one task and begin the next (enqueue.cc:519-660).
type Spread struct {
	comm     *connect.Layout
	channels int   // largest number of channels
	share    int64 // traffic of a channel
	at       int   // channel in progress
	traffic  int64 // traffic that it has so far
}

// NewSpread begins with empty channels. traffic is the sum of LeastTraffic over the tasks, width the sum of
// the channels that the cost model allows them, both for tasks of one kind; most is the number of the
// communicator's channels for that kind.
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

// LeastTraffic returns a task's contribution to NewSpread's traffic (enqueue.cc:543).
func LeastTraffic(c *connect.Layout, t Task) int64 {
	if r := &c.Rules.Plan; !r.SmallCells { // enqueue.cc:182 of v2.22.3
		return max(r.MinTraffic, t.Traffic)
	}
	return t.Traffic
}

// cells is a division of a range of channels by whole cells of data: lo for the first channel, mid for each
// of the nMid next, hi for the last.
type cells struct{ lo, mid, hi, nMid int64 }

// Place assigns a task to the channels and returns its Cut.
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
	if d.lo == 0 { // no cell for the channel in progress
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

// advance adds a task's traffic on the last of its channels.
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

// divide gives each channel the cells that match its share of the traffic, want cells to the first, following
// enqueue.cc:605-628.
//
// Ten cells at three a channel are 3 + 2·3 + 1: lo 3, two channels with mid 3, hi 1. With at most three
// channels they are 3 + 3 + 4: the last channel takes the remainder of an even division.
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

// shift drops the first channel, which has no cells: the cells of each channel move one field up.
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
