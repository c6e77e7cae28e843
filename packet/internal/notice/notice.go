// Package notice reports congestion to senders by frames of their own (CNPs of RoCEv2), in place of marks on
// acknowledgements.
//
// In: data frames that come to a receiver. Out: what it sends. It must not know hosts or links.
package notice

import (
	"github.com/simccl/simccl/packet/cc"
	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/internal/pair"
)

// flags are those of a notification: an acknowledgement of nothing, with a mark.
const flags = frames.Ack | frames.CE

// Report takes the mark off a data frame that came to a receiver, and lets its host send a notification if
// the last one of that queue pair was long enough before. It precedes the acknowledgements that wait.
func Report(r *pair.Receiver, f *frames.Frame, c *cc.Params, acks *frames.Ring) {
	if f.Flags&frames.CE == 0 {
		return
	}
	if f.Flags &^= frames.CE; !r.Notifies(f.At, int64(c.CNPGap)) {
		return
	}
	acks.Push(&frames.Frame{Flow: f.Flow, Route: r.Back, Size: uint16(c.CNPBytes), Flags: flags})
	for i := acks.Tail - 1; i != acks.Head && acks.At(i-1).Flags&frames.CE == 0; i-- {
		*acks.At(i), *acks.At(i - 1) = *acks.At(i - 1), *acks.At(i)
	}
}
