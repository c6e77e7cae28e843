package qp

import (
	"github.com/simccl/simccl/packet/cc"
	"github.com/simccl/simccl/packet/internal/frames"
)

// cnpFlags are those of a notification: an acknowledgement of nothing, with a mark.
const cnpFlags = frames.Ack | frames.CE

// SendCNP takes the mark off a data frame that came to a receiver, and lets its host send a notification if
// the last one of that queue pair was long enough before. It precedes the acknowledgements that wait.
func SendCNP(r *Receiver, f *frames.Frame, c *cc.Params, acks *frames.Ring) {
	if f.Flags&frames.CE == 0 {
		return
	}
	if f.Flags &^= frames.CE; !r.Notifies(f.At, int64(c.CNPGap)) {
		return
	}
	acks.Push(&frames.Frame{Flow: f.Flow, Route: r.Back, Size: uint16(c.CNPBytes), Flags: cnpFlags})
	for i := acks.Tail - 1; i != acks.Head && acks.At(i-1).Flags&frames.CE == 0; i-- {
		*acks.At(i), *acks.At(i - 1) = *acks.At(i - 1), *acks.At(i)
	}
}
