package port

import (
	"github.com/simccl/simccl/packet/cc"
	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/internal/qp"
)

// crowd is the number of queue pairs beyond which their state does not stay in the L2 cache.
const crowd = 512

// Prefetch reads the state that a host's arrivals will change, in one independent loop: the cache misses
// overlap. In the event loop, where each step depends on the one before, they would add up. The result only
// keeps the loads alive.
//
//go:noinline
func Prefetch(come []frames.Frame, senders []qp.Sender, receivers []qp.Receiver, flows *cc.Flows) (x uint32) {
	if len(senders) < crowd || len(come) < 2 {
		return 0
	}
	for i := range come {
		switch f := &come[i]; {
		case f.Flow < 0:
		case f.Flags&frames.Ack == 0:
			x += receivers[f.Flow].Expected
		default:
			x += senders[f.Flow].Una + flows.Touch(f.Flow, f.Aux)
		}
	}
	return x
}

// PrefetchRecords is Prefetch for the HPCC telemetry of frames that come to a switch.
//
//go:noinline
func PrefetchRecords(come []frames.Frame, senders int, flows *cc.Flows) (x uint32) {
	if senders < crowd || len(come) < 2 {
		return 0
	}
	for i := range come {
		if f := &come[i]; f.Flow >= 0 && f.Flags&frames.Ack == 0 {
			x += flows.TouchRecords(f.Aux)
		}
	}
	return x
}
