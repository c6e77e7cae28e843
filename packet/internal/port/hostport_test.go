package port

import (
	"testing"

	"github.com/simccl/simccl/packet/cc"
	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/internal/qp"
	"github.com/simccl/simccl/packet/spec"
)

// setup is a port at 8 Gb/s, a byte a nanosecond, whose flow has three frames of 100 bytes and a last of 50.
func setup(c *spec.Config) (x *HostSender, p *HostPort, s *qp.Sender) {
	c.Frames = spec.Frames{Payload: 100, Ack: 10}
	links := []Link{{ID: 0, Delay: 1000, Rate: 8e9}, {ID: 1, Delay: 1000, Rate: 8e9}}
	s = &qp.Sender{Frames: 4, Bytes: 350, Rate: cc.Rate{Rate: 8e9, Line: 8e9}, Window: 200}
	p = &HostPort{RoundRobin: qp.RoundRobin{Only: s, Pairs: []int32{0}}, Timer: never, First: never,
		In: &links[1], Out: &links[0], Wake: 1}
	return NewHostSender(c, nil, nil, []int64{never, never}), p, s
}

func TestSender(t *testing.T) {
	x, p, s := setup(&spec.Config{})
	if came, quiet := x.Run(p, 1000); came != 0 || quiet != 100_001 || s.Nxt != 1 || x.due[0] != 101_001 {
		t.Fatalf("%d frames came, quiet until %d, next %d, arrives at %d", came, quiet, s.Nxt, x.due[0])
	}
	x.Run(p, 1e6) // the window holds two
	if s.Nxt != 2 || p.InFlight || p.Paced != 200_001 {
		t.Fatalf("next %d, in flight %v, paced until %d", s.Nxt, p.InFlight, p.Paced)
	}
	p.In.Wire.Push(&frames.Frame{At: 1_500_000, Psn: 2, Size: 10, Flags: frames.Ack})
	came, quiet := x.Run(p, 2e6)
	if came != 1 || quiet != never || s.Nxt != 4 || x.Sent != 4 || p.Out.TxBytes != 350 ||
		p.Out.Wire.Last().At != 1_651_000 {
		t.Fatalf("%d came, quiet until %d, next %d, %d sent, %d bytes, the last at %d", came, quiet, s.Nxt,
			x.Sent, p.Out.TxBytes, p.Out.Wire.Last().At)
	}
	p.In.Wire.Push(&frames.Frame{At: 2_500_000, Psn: 4, Size: 10, Flags: frames.Ack})
	if came, quiet = x.Run(p, 3e6); came != 0 || quiet != 0 {
		t.Fatalf("the end of a flow is for others: %d came, quiet until %d", came, quiet)
	}
}

func TestSenderNeedsPlainSettings(t *testing.T) {
	for _, c := range []spec.Config{
		{Repair: spec.Repair{Timeout: 1}}, {Repair: spec.Repair{Selective: true}},
		{Repair: spec.Repair{BackTo: 100}},
		{Buffer: spec.Buffer{Credits: 1}}, {Buffer: spec.Buffer{Trim: 1}}, {Paths: 2},
		{CC: cc.Params{Kind: cc.Swift}},
	} {
		if x, _, _ := setup(&c); x != nil {
			t.Errorf("%+v: sends", c)
		}
	}
}
