package packet

import (
	"errors"
	"testing"

	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/internal/qp"
	"github.com/simccl/simccl/units"
)

// TestNotifications: a host at 100 Gb/s sends frames of 83 ns to one at 80 Gb/s, where they last 104. Frame
// n comes to the switch at 83 n + 1083 and leaves at 104 n + 1083, so frame 4 is the first that leaves
// another behind, and is marked. It is at its receiver at 2603, whose notification of 98 bytes takes 9 +
// 1000 + 7 + 1000 ns to the sender. That is halved at 4619, in frame 55. Frame 56 follows at 4648, and then
// one each 167 ns, the last of 200 at 28529. It finds no queue. Its acknowledgement lasts 5 ns (in binary 6
// are a little less) and 4.
func TestNotifications(t *testing.T) {
	n := pairOf(100e9, 80e9)
	flows := []Flow{{Src: 0, Dst: 1, Bytes: 200_000, Priority: 3}}
	c := settings(DCQCN)
	c.Marking = []Marking{{Rate: 80e9, PMax: 1}}
	c.CC.Immediate, c.CC.CNPGap, c.CC.CNPBytes = true, units.Millisecond, 98
	c.CC.AlphaPeriod, c.CC.IncreasePeriod = 55*units.Microsecond, 55*units.Microsecond
	for _, turns := range []bool{false, true} {
		e, err := build(n, flows, c, false, turns)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.run(); err != nil {
			t.Fatal(err)
		}
		r := e.collect(0)
		if want := units.Time(28529 + 1083 + 104 + 1000 + 5 + 1000 + 4 + 1000); r.Flows[0].End !=
			want*units.Nanosecond {
			t.Errorf("ends at %v, want %d ns; %s", r.Flows[0].End, want, brief(r))
		}
		if cnps := (r.FrameHops - 2*400) / 2; cnps != 1 || r.Marks < 10 {
			t.Errorf("%d notifications of %d marks", cnps, r.Marks)
		}
	}
	c.CC.Immediate, c.CC.CNPGap = false, 0
	r, err := Run(n, flows, c)
	if err != nil || r.Marks < 10 || (r.FrameHops-2*400)/2 != r.Marks {
		t.Errorf("%v: %d frames over links for 400, %d marks", err, r.FrameHops, r.Marks)
	}
	c.AckFrom = 200_000 // one acknowledgement in all: notifications do not wait for it
	if r, err = Run(n, flows, c); err != nil || r.FrameHops != 2*(200+1+r.Marks) || r.Marks < 10 {
		t.Errorf("%v: %d frames over links, %d marks", err, r.FrameHops, r.Marks)
	}
}

// TestNotificationsPrecede: they precede the acknowledgements that wait, in order.
func TestNotificationsPrecede(t *testing.T) {
	var r receiver
	var acks frames.Ring
	for i := range uint32(3) {
		acks.Push(&frame{Psn: i, Flags: flagAck})
	}
	c := CC{CNPBytes: 98, CNPGap: 4 * units.Microsecond}
	for at, flow := range []int32{7, 8, 9} {
		f := frame{At: 4_000_000 * int64(at), Flow: flow, Flags: flagCE}
		if qp.SendCNP(&r, &f, &c, &acks); f.Flags != 0 {
			t.Errorf("frame of flow %d is still marked", flow)
		}
		f = frame{At: 4_000_000*int64(at) + 3_999_999, Flow: flow, Flags: flagCE}
		qp.SendCNP(&r, &f, &c, &acks)
	}
	for i, want := range []frame{{Flow: 7, Size: 98, Flags: flagAck | flagCE},
		{Flow: 8, Size: 98, Flags: flagAck | flagCE}, {Flow: 9, Size: 98, Flags: flagAck | flagCE},
		{Flags: flagAck}, {Psn: 1, Flags: flagAck}, {Psn: 2, Flags: flagAck}} {
		if got := *acks.At(uint32(i)); got != want {
			t.Errorf("%d: %+v, want %+v", i, got, want)
		}
	}
	if acks.Tail != 6 {
		t.Errorf("%d wait", acks.Tail)
	}
}

// TestNotificationsWork: an incast of 8 with DCQCN as ConnectX has it takes about as long with CNPs as with
// marks on acknowledgements, pauses included, with any number of workers.
func TestNotificationsWork(t *testing.T) {
	var us [2]float64
	for i, bytes := range []int{0, 98} {
		c := settings(NoCC)
		var err error
		if c.CC, err = Preset("dcqcn:cx7", 100e9); err != nil {
			t.Fatal(err)
		}
		c.CC.CNPBytes, c.AckHold = bytes, 3
		n, flows := leafSpine(4, 4, 3, 100e9, 0), mesh(16, 500_000)
		want := crowded(t, n, flows, c, false)
		if want.Stall != nil || want.Marks == 0 {
			t.Fatalf("%s: %v", brief(want), want.Stall)
		}
		c.Workers = 3
		if got := crowded(t, n, flows, c, false); brief(got) != brief(want) {
			t.Errorf("3 workers: %s\none: %s", brief(got), brief(want))
		}
		for _, f := range want.Flows {
			us[i] = max(us[i], f.End.Micros())
		}
	}
	if share := us[1] / us[0]; share < 0.8 || share > 1.25 {
		t.Errorf("%.0f us with marks on acknowledgements, %.0f with CNPs", us[0], us[1])
	}
}

// TestNotificationsAreChecked: CNPs are DCQCN's, and no part of the order of events of a simulator without
// them.
func TestNotificationsAreChecked(t *testing.T) {
	for _, change := range []func(c *Config){
		func(c *Config) { c.CC.Kind = Swift },
		func(c *Config) { c.CC.CNPBytes = 1 << 16 },
		func(c *Config) { c.CC.CNPBytes = -1 },
		func(c *Config) { c.EventOrder = true },
	} {
		c := settings(DCQCN)
		c.CC.CNPBytes = 98
		change(c)
		var wrong *InputError
		if _, err := Run(star(2, 100e9, 0), nil, c); !errors.As(err, &wrong) {
			t.Errorf("%+v: %v", c.CC, err)
		}
	}
}
