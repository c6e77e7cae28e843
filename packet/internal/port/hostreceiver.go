package port

import (
	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/internal/qp"
	"github.com/simccl/simccl/packet/internal/tiebreak"
	"github.com/simccl/simccl/packet/spec"
)

// HostReceiver simulates hosts that only receive: it acknowledges each data frame in order, over both cables
// to the sender at once (see Link.Both).
type HostReceiver struct {
	config    *spec.Config
	calendar  *tiebreak.Calendar // nil: events have no order
	links     []Link
	hops      []int32 // routes
	receivers []qp.Receiver
	due       []int64 // by link: arrival of its first frame
}

// NewHostReceiver returns nil for settings that HostReceiver does not handle: coalesced acknowledgements,
// selective repeat, CNPs, trimming.
func NewHostReceiver(c *spec.Config, calendar *tiebreak.Calendar, links []Link, hops []int32,
	receivers []qp.Receiver, due []int64) *HostReceiver {
	if c.AckFrom > 1 || c.Repair.Selective || c.CC.CNPGap > 0 || c.Buffer.Trim > 0 {
		return nil
	}
	return &HostReceiver{config: c, calendar: calendar, links: links, hops: hops, receivers: receivers,
		due: due}
}

// Run acknowledges the leading frames of come while they are in order and the links idle, and returns their
// number.
func (x *HostReceiver) Run(l *Link, come []frames.Frame) (n int) {
	size := uint16(x.config.Frames.Ack)
	if !l.Ahead || l.Sizes[1] != size {
		return 0
	}
	lasts, onward := l.Lasts[1], l.Lasts[1]+l.Delay
	for ; n < len(come); n++ {
		f := &come[n]
		if f.Flow < 0 || f.Flags&^frames.CE != 0 || l.Free >= f.At {
			break
		}
		r, at := &x.receivers[f.Flow], f.At+onward
		next := &x.links[x.hops[r.Back+1]]
		if f.Psn != r.Expected || !next.Ahead || next.Free >= at || next.Sizes[1] != size {
			break
		}
		r.Expected++
		tag := tiebreak.Number(0)
		if c := x.calendar; c != nil {
			c.Fit(2)
			l.Start, l.Begun = f.At, c.Plan(tiebreak.Of(tiebreak.Number(f.Tag)).Sends(), f.At)
			tag = c.Plan(tiebreak.Of(l.Begun).Sends(), at)
			next.Start, next.Begun = at, tag
		}
		l.Free, next.Free = f.At+lasts, at+next.Lasts[1]
		next.Sent++
		next.TxBytes += int64(size)
		next.Peak = max(next.Peak, int64(size))
		class := f.Class
		if x.config.AckHigh {
			class = 0
		}
		if class != 0 {
			next.Turn = class
		}
		q, come := &next.Wire, next.Free+next.Delay
		if q.Empty() {
			x.due[next.ID] = come
		}
		if q.Full() {
			q.Grow()
		}
		g := q.Next()
		g.At, g.Flow, g.Psn, g.Route, g.Aux = come, f.Flow, r.Expected, r.Back+1, f.Aux
		g.Size, g.Flags, g.Class, g.Tag = size, f.Flags|frames.Ack, class, uint32(tag)
	}
	l.Sent += uint64(n)
	l.TxBytes += int64(n) * int64(size)
	return n
}

// RefuseTrimmed fills ack with a request for a frame that was trimmed to its header. It returns false if that
// frame has arrived before.
func RefuseTrimmed(r *qp.Receiver, f, ack *frames.Frame, size uint16) bool {
	if f.Psn < r.Expected {
		return false
	}
	*ack = frames.Frame{Flow: f.Flow, Psn: r.Expected, Route: r.Back, Aux: f.Psn, Size: size,
		Flags: frames.Ack | frames.Trim}
	return true
}
