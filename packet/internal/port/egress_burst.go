package port

import (
	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/internal/tiebreak"
)

// Burst sends frames of an egress port back to back. Times are in ps.
type Burst struct {
	Free     int64           // when the frame in transmission ends
	End      int64           // no frame starts then or later
	Delay    int64           // of the cable
	Lasts    *[2]int64       // how long frames of Sizes last
	Sizes    *[2]uint16      // bytes, of data and of acknowledgements
	Start    int64           // when the last one began
	Begun    tiebreak.Number // and its number
	Sent     int             // frames
	Acks     int             // those of them that are acknowledgements
	Calendar *tiebreak.Calendar
}

// Send sends frames in their order, up to the first that does not start in time or has a size that is not
// known. Calendar records them, if there is one. The loop calls nothing, so that what it needs stays in
// registers.
func (p *Burst) Send(some []frames.Frame) {
	var row []tiebreak.Entry
	var by, step tiebreak.Number // by which the one began that is in transmission
	if p.Calendar != nil {
		row, by, step = p.Calendar.Row(len(some))
	}
	joins, free, end, delay, n, acks := p.Free >= some[0].At, p.Free, p.End, p.Delay, 0, 0
	lasts, sizes := p.Lasts, p.Sizes
	for i := range some {
		f := &some[i]
		at, cause, what := free, by, f.Flags&frames.Ack
		if at < f.At {
			at, cause = f.At, tiebreak.Number(f.Tag)
		}
		if at >= end || sizes[what] != f.Size {
			break
		}
		if i < len(row) {
			row[i] = tiebreak.Began(cause, at)
		}
		by, free = (by+step)&^tiebreak.None, at+lasts[what]
		f.At, f.Tag = free+delay, uint32(by)
		acks += int(what)
		n = i + 1
	}
	if n > 0 && p.Calendar != nil {
		if joins {
			row[0] = tiebreak.Began(p.Begun, p.Free)
		}
		p.Calendar.Took(n)
		p.Start, p.Begun = row[n-1].At(), by
	}
	p.Free, p.Sent, p.Acks = free, n, acks
}
