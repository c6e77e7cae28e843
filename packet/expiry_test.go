package packet

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/simccl/simccl/units"
)

// narrowed is a host at 100 Gb/s, a switch and a host at 10 Gb/s: frames of 1048 bytes last 83 ns
// there and 838 here, acknowledgements 4 and 47 (in binary 48 ns are a little
// less), pause frames 3.
func narrowed() *Network {
	return &Network{Nodes: 3, Switch: []bool{false, false, true}, Cables: []Cable{
		{A: 0, B: 2, Rate: 100e9, Delay: units.Microsecond},
		{A: 1, B: 2, Rate: 10e9, Delay: units.Microsecond}}}
}

// TestLostResume: a resume is lost. Frame n begins at 83 n and is at the switch at 83 n + 1083, where one
// leaves at 1083 and then each 838 ns. Frame 5 is the fifth that waits: a pause leaves the switch at 1498
// and is at the host at 2501, which has begun frame 30 then. The switch repeats it each half of 10,240 ns,
// at 6618, 11738, 16858 and 21978, and resumes the host as frame 29 leaves, at 25385. That is lost at 26388.
// The last pause came at 22981, so frame 31 begins at 33221, is at the switch at 34304, and the last of nine
// has left at 41846.
func TestLostResume(t *testing.T) {
	c := settings(NoCC)
	c.Marking, c.Buffer.XOff, c.Buffer.XOn = nil, 5*1048, 1048
	flows := []Flow{{Src: 0, Dst: 1, Bytes: 40_000, Priority: 3}}
	lost := []Fault{{Cable: 0, From: 26 * units.Microsecond, To: 27 * units.Microsecond, Down: true}}
	for _, x := range []struct {
		quanta int
		faults []Fault
		ns     int64 // when it ends; 0: never
		pauses int64
	}{
		// The second pause leaves at 27886 and is repeated at 33006, before the resume at 33337.
		{0, nil, 38064, 2},
		{2000, nil, 38064, 7},
		{0, lost, 0, 1},
		{2000, lost, 44897, 7}, // the second at 34719, repeated at 39839, the resume at 40170
		{2000, []Fault{{Cable: 0, From: 20 * units.Microsecond, Storm: true}}, 0, 0},
	} {
		c.Buffer.Quanta, c.Faults = x.quanta, x.faults
		r, err := Run(narrowed(), flows, c)
		if err != nil {
			t.Fatal(err)
		}
		f := &r.Flows[0]
		if f.Done != (x.ns > 0) || f.Done && f.End != units.Time(x.ns)*units.Nanosecond || x.pauses > 0 &&
			r.Pauses != x.pauses {
			t.Errorf("%d quanta, faults %v: ends at %v, %d pauses, stall %v; want %d ns, %d pauses", x.quanta,
				x.faults, f.End, r.Pauses, r.Stall, x.ns, x.pauses)
		}
		if x.ns == 0 && len(x.faults) > 0 && !x.faults[0].Storm && r.Stall.Paused != [2]int32{0, 2} {
			t.Errorf("stall %v, want the host whose resume was lost", r.Stall)
		}
	}
}

// TestLastingPausesAgree: pauses that are shorter than half their time are as without one, with any number
// of workers; shorter times repeat them and change nothing else than that.
func TestLastingPausesAgree(t *testing.T) {
	n, flows, c := leafSpine(4, 4, 3, 100e9, 0), mesh(16, 400_000), settings(NoCC)
	c.Marking = nil
	want, err := Run(n, flows, c)
	if err != nil || want.Pauses == 0 {
		t.Fatalf("%v: %s", err, brief(want))
	}
	for _, workers := range []int{1, 3} {
		c.Buffer.Quanta, c.Workers = 65535, workers
		got := crowded(t, n, flows, c, false)
		if !slices.Equal(ended(got), ended(want)) || got.Pauses != want.Pauses ||
			got.PeakQueue != want.PeakQueue {
			t.Errorf("%d workers: %s\nwithout: %s", workers, brief(got), brief(want))
		}
		c.Buffer.Quanta = 200
		some := crowded(t, n, flows, c, false)
		if some.Stall != nil || some.Drops > 0 || some.Pauses <= want.Pauses {
			t.Errorf("200 quanta, %d workers: %s, stall %v", workers, brief(some), some.Stall)
		}
		if workers == 1 {
			continue
		}
		c.Workers = 1
		if one := crowded(t, n, flows, c, false); !reflect.DeepEqual(ended(one), ended(some)) ||
			one.Pauses != some.Pauses {
			t.Errorf("200 quanta: %s\nwith 3 workers: %s", brief(one), brief(some))
		}
	}
}

func ended(r *Result) (all []units.Time) {
	for i := range r.Flows {
		all = append(all, r.Flows[i].End)
	}
	return all
}

// TestLastingDeadlock: switches that pause each other in a circle repeat their pauses for ever; the run ends,
// and names them.
func TestLastingDeadlock(t *testing.T) {
	n, flows := circle(3_000_000)
	c := settings(NoCC)
	c.Marking, c.Buffer.Bytes = nil, 256<<10
	for _, c.Buffer.Quanta = range []int{1000, 100} { // 100: one is always on its way
		r, err := Run(n, flows, c)
		if err != nil || r.Stall == nil || len(r.Stall.Deadlock) != 5 || r.Drops > 0 {
			t.Fatalf("%v: %s, stall %v", err, brief(r), r.Stall)
		}
	}
}

// TestQuantaAreChecked: a pause is long enough to be repeated, and goes with nothing that replaces it.
func TestQuantaAreChecked(t *testing.T) {
	for _, change := range []func(c *Config){
		func(c *Config) { c.Buffer.Quanta = 42 }, // half of it: 1344 bytes, less than 1048 and 7 times 43
		func(c *Config) { c.Buffer.Quanta = 65536 },
		func(c *Config) { c.Buffer.Quanta = -1 },
		func(c *Config) { c.Buffer.Quanta, c.Buffer.Credits = 100, 10_000 },
		func(c *Config) { c.Buffer.Quanta, c.EventOrder = 100, true },
	} {
		c := settings(NoCC)
		change(c)
		var wrong *InputError
		if _, err := Run(star(2, 100e9, 0), nil, c); !errors.As(err, &wrong) {
			t.Errorf("%+v: %v", c.Buffer, err)
		}
	}
	c := settings(NoCC)
	c.Buffer.Quanta = 43
	if _, err := Run(star(2, 100e9, 0), nil, c); err != nil {
		t.Error(err)
	}
}

// TestLastingPausesArePassedOver: in a deadlock five switches and five hosts wait for timeouts, 100 ms each.
// No window is spent on the pauses that are renewed each 2560 ns until then, but they count: those of five
// links at least.
func TestLastingPausesArePassedOver(t *testing.T) {
	n, flows := circle(3_000_000)
	c := settings(NoCC)
	c.Marking, c.Buffer.Bytes, c.Repair = nil, 256<<10, Repair{Selective: true, Reorder: 64,
		Timeout: 100 * units.Millisecond, Retries: 2}
	without, err := Run(n, flows, c)
	if err != nil {
		t.Fatal(err)
	}
	c.Buffer.Quanta = 1000
	r, err := Run(n, flows, c)
	if err != nil || r.Stall == nil || r.Stall.Failed != 5 || without.Stall == nil ||
		without.Stall.Failed != 5 {
		t.Fatalf("%v: %v, without %v", err, r.Stall, without.Stall)
	}
	if renewed := int64(5 * 300 * units.Millisecond / (2560 * units.Nanosecond)); r.Windows >
		2*without.Windows+10_000 || r.Pauses < renewed {
		t.Errorf("%d windows, %d without, %d pauses, want at least %d", r.Windows, without.Windows, r.Pauses,
			renewed)
	}
}
