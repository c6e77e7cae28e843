package packet

import (
	"errors"
	"testing"

	"github.com/simccl/simccl/units"
)

// pairOf is hosts 0 and 1 on a switch, at these rates.
func pairOf(a, b int64) *Network {
	return &Network{Nodes: 3, Switch: []bool{false, false, true}, Cables: []Cable{
		{A: 0, B: 2, Rate: a, Delay: units.Microsecond}, {A: 1, B: 2, Rate: b, Delay: units.Microsecond}}}
}

// TestCutThrough: a switch begins to send a frame 1 us of cable after its first 128 bytes, 10 ns at 100 Gb/s
// and 2 at 400, if the link that it takes is no faster than the one by which it came. 1048 bytes last 83 and
// 20 ns, an acknowledgement, which is shorter than 128 bytes, 4 and 1.
func TestCutThrough(t *testing.T) {
	const g100, g400 = 100e9, 400e9
	for _, x := range []struct {
		a, b    int64
		bytes   int64
		through int
		ns      int64
	}{
		{g100, g100, 1000, 0, 83 + 1000 + 83 + 1000 + 2008},
		{g100, g100, 1000, 128, 10 + 1000 + 83 + 1000 + 2008},
		{g100, g100, 1000, 1048, 83 + 1000 + 83 + 1000 + 2008},
		// the others wait for the port, which is free as soon as they are there
		{g100, g100, 10_000, 128, 10 + 1000 + 10*83 + 1000 + 2008},
		// to a faster port: all of it first
		{g100, g400, 1000, 128, 83 + 1000 + 20 + 1000 + 1 + 1000 + 4 + 1000},
		{g400, g100, 1000, 128, 2 + 1000 + 83 + 1000 + 4 + 1000 + 1 + 1000},   // to a slower one
		{g400, g100, 2000, 128, 2 + 1000 + 2*83 + 1000 + 4 + 1000 + 1 + 1000}, // the second waits
	} {
		c := settings(NoCC)
		c.CutThrough = x.through
		r, err := Run(pairOf(x.a, x.b), []Flow{{Src: 0, Dst: 1, Bytes: x.bytes, Priority: 3}}, c)
		if err != nil || !r.Flows[0].Done || r.Flows[0].End != units.Time(x.ns)*units.Nanosecond {
			t.Errorf("%+v: %v, ends at %v", x, err, r.Flows[0].End)
		}
	}
}

// TestCutThroughWaits: what finds the port busy waits from when its first bytes are there, and two hosts
// that begin together share it: the first frame leaves at 1010, then one each 83 ns.
func TestCutThroughWaits(t *testing.T) {
	c := settings(NoCC)
	c.CutThrough = 128
	n := star(3, 100e9, 0)
	flows := []Flow{{Src: 0, Dst: 2, Bytes: 3000, Priority: 3}, {Src: 1, Dst: 2, Bytes: 3000, Priority: 3}}
	r, err := Run(n, flows, c)
	if err != nil {
		t.Fatal(err)
	}
	for i, ns := range []int64{1010 + 5*83 + 1000 + 2008, 1010 + 6*83 + 1000 + 2008} {
		if r.Flows[i].End != units.Time(ns)*units.Nanosecond {
			t.Errorf("flow %d ends at %v, want %d ns", i, r.Flows[i].End, ns)
		}
	}
}

// TestCutThroughPaths: over a leaf and a spine each switch takes the first bytes alone; where frames choose
// their ports, a leaf with faster ports stores what its hosts send.
func TestCutThroughPaths(t *testing.T) {
	for _, x := range []struct {
		up      int64
		balance Balance
		ns      int64 // of three switches there: 1000 a cable, 4 cables
	}{
		{100e9, Hashed, 4000 + 3*10 + 83}, {100e9, PerPacket, 4000 + 3*10 + 83},
		{400e9, Hashed, 4000 + 83 + 2 + 2 + 83}, // the spine has it after 20 ns, begins after 2
		{400e9, PerPacket, 4000 + 83 + 2 + 2 + 83},
	} {
		c := settings(NoCC)
		c.CutThrough, c.Routing.Balance = 128, x.balance
		c.Repair = Repair{Selective: true, Reorder: Overtaken}
		n := leafSpine(2, 2, 2, 100e9, 0)
		for i := range n.Cables[4:] {
			n.Cables[4+i].Rate = x.up
		}
		back := units.Time(4000 + 4*4) // acknowledgements of 60 bytes
		if x.up == 400e9 {
			back = 4000 + 2*4 + 2*1
		}
		r, err := Run(n, []Flow{{Src: 0, Dst: 2, Bytes: 1000, Priority: 3}}, c)
		if err != nil || r.Flows[0].End != (units.Time(x.ns)+back)*units.Nanosecond {
			t.Errorf("%+v: %v, ends at %v", x, err, r.Flows[0].End)
		}
		// Two hosts of a leaf: a port as fast as theirs is known where routes are.
		local := units.Time(10 + 1000 + 83 + 1000 + 2008)
		if x.balance == PerPacket && x.up == 400e9 {
			local = 83 + 1000 + 83 + 1000 + 2008
		}
		if r, err = Run(n, []Flow{{Src: 0, Dst: 1, Bytes: 1000, Priority: 3}}, c); err != nil ||
			r.Flows[0].End != local*units.Nanosecond {
			t.Errorf("%+v: %v, within the leaf it ends at %v, want %d ns", x, err, r.Flows[0].End, local)
		}
	}
}

// TestCutThroughWorkers: the same for any number of workers, with pauses, marks, losses and slow cables;
// nothing is lost that the others do not lose, and an incast is as long as with switches that store frames,
// but for the first ones.
func TestCutThroughWorkers(t *testing.T) {
	for _, kind := range []CCKind{NoCC, DCQCN, DCTCP} {
		n, flows, c := leafSpine(4, 4, 3, 100e9, 1e-4), mesh(16, 200_000), settings(kind)
		c.CutThrough, c.Stop = 128, 20*units.Millisecond
		c.Faults = []Fault{{Cable: 20, From: 10 * units.Microsecond, To: 50 * units.Microsecond, Slow: 0.3},
			{Cable: 3, From: 20 * units.Microsecond, To: 30 * units.Microsecond, Down: true}}
		want := crowded(t, n, flows, c, false)
		for _, workers := range []int{2, 5} {
			c.Workers = workers
			if got := crowded(t, n, flows, c, false); brief(got) != brief(want) {
				t.Errorf("%v, %d workers: %s\none: %s", kind, workers, brief(got), brief(want))
			}
		}
	}
	for _, through := range []int{0, 128} {
		c := settings(NoCC)
		c.CutThrough, c.Marking = through, nil
		var flows []Flow
		for i := range 8 {
			flows = append(flows, Flow{Src: int32(i), Dst: 8, Bytes: 1_000_000, Priority: 3})
		}
		us, r := last(t, star(9, 100e9, 0), flows, c)
		first := map[int]float64{0: 83, 128: 10}[through]
		if want := (first + 1000 + 8000*83 + 1000 + 2008) / 1000; us != want || r.Pauses == 0 || r.Drops > 0 {
			t.Errorf("an incast with %d bytes takes %.3f us, want %.3f; %s", through, us, want, brief(r))
		}
	}
}

// TestCutThroughIsChecked refuses what is no frame's begin, and the order of events of a simulator that
// stores frames.
func TestCutThroughIsChecked(t *testing.T) {
	for _, change := range []func(c *Config){
		func(c *Config) { c.CutThrough = 63 }, func(c *Config) { c.CutThrough = -1 }, func(c *Config) {
			c.CutThrough = 1 << 16
		},
		func(c *Config) { c.CutThrough, c.EventOrder = 128, true },
	} {
		c := settings(NoCC)
		change(c)
		var wrong *InputError
		if _, err := Run(star(2, 100e9, 0), nil, c); !errors.As(err, &wrong) {
			t.Errorf("%d: %v", c.CutThrough, err)
		}
	}
}
