package port

import (
	"testing"

	"github.com/simccl/simccl/packet/cc"
	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/internal/qp"
)

// TestTouch: it reads nothing beyond what there is: of a report the telemetry is not known, of PFC frames
// nothing.
func TestTouch(t *testing.T) {
	c, err := cc.Preset("hpcc", 100e9)
	if err != nil {
		t.Fatal(err)
	}
	flows, window := cc.NewFlows(&c, crowd, 1000, 60), int64(100_000)
	flows.Open(1, &cc.Rate{Rate: 100e9, Line: 100e9}, &window, 8_000_000, 3, 0)
	senders, receivers := make([]qp.Sender, crowd), make([]qp.Receiver, crowd)
	senders[1].Una, receivers[2].Expected = 3, 4
	come := []frames.Frame{{Flow: -1}, {Flow: 1, Flags: frames.Ack},
		{Flow: 1, Flags: frames.Ack | frames.Sack, Aux: 1 << 28}, {Flow: 2}}
	if got := Prefetch(come, senders, receivers, &flows); got != 10 {
		t.Errorf("read a sum of %d, want 10", got)
	}
	if got := Prefetch(come, senders[:4], receivers, &flows); got != 0 {
		t.Errorf("with few queue pairs read a sum of %d", got)
	}
}
