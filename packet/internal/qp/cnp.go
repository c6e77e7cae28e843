package qp

import (
	"github.com/simccl/simccl/packet/cc"
	"github.com/simccl/simccl/packet/internal/frames"
)

// cnpFlags mark a CNP: an acknowledgement that acknowledges nothing, with CE.
const cnpFlags = frames.Ack | frames.CE

// SendCNP clears a data frame's CE mark and queues a CNP in its place, unless the last CNP of the queue pair
// was less than CNPGap before. CNPs go ahead of queued acknowledgements.
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
