package port

import (
	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/internal/tiebreak"
)

// Burst transmits frames back to back from an egress port whose queue length has no effect. Times are in ps.
type Burst struct {
	Free     int64           // end of the transmission in progress
	End      int64           // end of the window: no frame starts then or later
	Delay    int64           // of the cable
	Lasts    *[2]int64       // transmission times of frames of Sizes
	Sizes    *[2]uint16      // bytes of a data frame and of an acknowledgement
	Start    int64           // start of the last transmission
	Begun    tiebreak.Number // its number
	Sent     int             // frames sent
	Acks     int             // acknowledgements among them
	Calendar *tiebreak.Calendar
}

// Send transmits frames in order (Sent says how many), up to the first that does not start before End or
// whose transmission time is not cached. The loop calls no function, so that its state stays in registers.
// A frame that finds the port idle is caused by its own arrival, any other by the end of the transmission
// before it.
func (p *Burst) Send(some []frames.Frame) {
	var row []tiebreak.Entry
	var by, step tiebreak.Number // cause of the transmission in progress
	if p.Calendar != nil {
		row, by, step = p.Calendar.Reserve(len(some))
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
		p.Calendar.Commit(n)
		p.Start, p.Begun = row[n-1].At(), by
	}
	p.Free, p.Sent, p.Acks = free, n, acks
}
