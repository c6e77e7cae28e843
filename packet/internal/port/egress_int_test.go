package port

import (
	"testing"

	"github.com/simccl/simccl/packet/cc"
	"github.com/simccl/simccl/packet/internal/arrivals"
	"github.com/simccl/simccl/packet/internal/frames"
)

// TestINTEgressSends: frames start when the port is free and they have come, what waits behind each is counted, and a
// frame that would be marked, or starts too late, does not start.
func TestINTEgressSends(t *testing.T) {
	c, err := cc.Preset("hpcc", 100e9)
	if err != nil {
		t.Fatal(err)
	}
	of := func(at int64, flags uint8, size uint16) frames.Frame {
		return frames.Frame{At: at, Flags: flags, Size: size}
	}
	come := []frames.Frame{of(5, 0, 1000), of(6, 1, 60), of(7, 0, 1000), of(8, 0, 1000), of(400, 0, 1000), of(401, 0, 1000)}
	for _, x := range []struct {
		end, alert int64
		sent, data int
		free, peak int64
		behind     int64
	}{
		{1000, 5000, 6, 5, 560, 3060, 0},
		{481, 5000, 6, 5, 560, 3060, 0},
		{480, 5000, 5, 4, 480, 3060, 1000},
		{1000, 2000, 0, 0, 20, 3060, 3060},
		{1000, 2060, 6, 5, 560, 3060, 0},
	} {
		flows := cc.NewFlows(&c, 1, 1000, 60)
		window := int64(10_000)
		flows.Open(0, &cc.Rate{Rate: 100e9, Line: 100e9}, &window, 8_000_000, 2, 0)
		l := &Link{Free: 20, Delay: 7, Marks: true, Alert: x.alert, Lasts: [2]int64{80, 10}, Sizes: [2]uint16{1000, 60}, Rate: 100e9, Queues: make([]Queue, 2)}
		p := INTEgress{Link: l, Flows: &flows, Full: 1000, Ack: 60, Arrived: come}
		for i, f := range come {
			p.Keys = append(p.Keys, arrivals.Key(f.At, i))
		}
		p.Send(x.end)
		if p.Sent != x.sent || p.Data != x.data || l.Free != x.free || l.Peak != x.peak || l.Queues[1].Bytes != x.behind {
			t.Errorf("up to %d, marks from %d: sent %d, of them %d of data, free at %d, at most %d waited, %d wait; want %+v", x.end, x.alert, p.Sent, p.Data, l.Free, l.Peak, l.Queues[1].Bytes, x)
		}
		for i, want := range []int64{107, 117, 197, 277, 487, 567}[:p.Sent] {
			if f := l.Wire.At(uint32(i)); f.At != want {
				t.Errorf("frame %d is at the end at %d, want %d", i, f.At, want)
			}
		}
	}
}
