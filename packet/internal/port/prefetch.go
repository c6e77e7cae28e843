package port

import (
	"github.com/simccl/simccl/packet/cc"
	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/internal/qp"
)

// crowd is from how many queue pairs on a run's are not all in a near cache.
const crowd = 512

// Prefetch reads what frames that come to a host will change, at once: each is of another flow perhaps, and
// one by one, as what each does depends on the one before, a host would wait for memory each time. What it
// returns is not for use.
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

// PrefetchRecords reads the telemetry of data frames that come to a switch, which each port adds to, as
// Prefetch does for a host.
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
