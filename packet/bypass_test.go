package packet

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/simccl/simccl/units"
)

// played is what became of a run, and of each link.
type played struct {
	result *Result
	links  []string
	ahead  int  // links that were ahead to the end
	shut   bool // some were not
	turns  bool // switches with hosts had later windows to the end
}

// either runs flows with or without what makes a run faster: frames that are ahead, windows that take turns.
func either(t *testing.T, n *Network, flows []Flow, c *Config, plain bool) played {
	t.Helper()
	e, err := build(n, flows, c, c.EventOrder, !plain)
	if err != nil {
		t.Fatal(err)
	}
	e.noFastPath, e.crowd = plain, 0
	switch _, err = e.run(); {
	case err == errAgain && !plain:
		if e, err = build(n, flows, c, c.EventOrder, false); err == nil {
			e.crowd = 0
			_, err = e.run()
		}
		fallthrough
	case err != nil:
		if err != nil {
			t.Fatal(err)
		}
	}
	return e.played()
}

// played is what became of it.
func (e *engine) played() (p played) {
	p.turns = e.lag > 0
	for i := range e.links {
		if l := &e.links[i]; l.Ahead && l.Feeder >= 0 {
			p.ahead++
		} else if l.Feeder >= 0 {
			p.shut = true
		}
	}
	p.result = e.collect(0)
	for i := range e.links {
		l := &e.links[i]
		p.links = append(p.links, fmt.Sprint(l.Sent, l.TxBytes, l.Wire.Tail-l.Wire.Head, l.Stats))
	}
	return p
}

// TestAheadIsPlain: random incasts, with pauses, marks and times at which they are cut short, have
// the same bits whether or not acknowledgements cross a switch at once, which they do with one worker.
func TestAheadIsPlain(t *testing.T) {
	ahead, shut, pauses, marks := 0, 0, int64(0), int64(0)
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 7))
		hosts, rate := 3+r.IntN(12), []int64{25e9, 100e9, 400e9}[r.IntN(3)]
		n := leafSpine(1+r.IntN(2), hosts, 1, rate, 0)
		c := settings([]CCKind{NoCC, DCQCN, HPCC, Timely, DCTCP}[r.IntN(5)])
		c.Seed, c.Marking[0].Rate, c.WholeNanos, c.EventOrder = seed, rate, true, r.IntN(2) == 0
		c.Buffer.Bytes = []int64{2 << 20, 3 << 20, 32 << 20}[r.IntN(3)] + int64(hosts)*30<<10*(rate/25e9)
		c.AckFrom, c.AckHigh = int64(1+r.IntN(2)*3), r.IntN(4) == 0
		if c.EventOrder {
			c.Stream = 8
		}
		if r.IntN(3) == 0 {
			c.Stop = units.Time(20+r.IntN(100)) * units.Microsecond
		}
		var flows []Flow
		for x := 2; x < hosts; x++ {
			for range 1 + r.IntN(2) {
				flows = append(flows, Flow{Src: int32(x), Dst: int32(r.IntN(3) / 2), Bytes: 1 +
					r.Int64N(500_000), Priority: uint8(3 + r.IntN(2)), DstPort: 100,
					Start: units.Time(r.IntN(20)) * units.Microsecond * units.Time(r.IntN(2))})
			}
		}
		got, want := either(t, n, flows, c, false), either(t, n, flows, c, true)
		c.Workers = 3
		if many := either(t, n, flows, c, false); many.ahead > 0 && c.CC.Kind != HPCC ||
			!reflect.DeepEqual(got.result, many.result) {
			t.Errorf("seed %d: %s\nthree workers: %s", seed, brief(got.result), brief(many.result))
		}
		if want.ahead > 0 {
			t.Fatal("a plain run has frames ahead")
		}
		if !reflect.DeepEqual(got.result, want.result) || !reflect.DeepEqual(got.links, want.links) {
			t.Errorf("seed %d, %v, %d hosts at %d: %s\nplain: %s", seed, c.CC.Kind, hosts, rate,
				brief(got.result), brief(want.result))
		}
		ahead += got.ahead
		if got.shut {
			shut++
		}
		pauses, marks = pauses+got.result.Pauses, marks+got.result.Marks
	}
	if ahead == 0 || shut == 0 || pauses == 0 || marks == 0 {
		t.Errorf("%d links ahead, in %d runs not to the end, %d pauses, %d marks: each should occur", ahead,
			shut, pauses, marks)
	}
}

// TestRelayIsPlain: random flows between two leaves, over spines whose two ports pass frames on as they come,
// have the same bits as where those are put apart, with pauses, marks, priorities and ends of several
// workers.
func TestRelayIsPlain(t *testing.T) {
	pauses, marks := int64(0), int64(0)
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 9))
		hosts, spines := 2+r.IntN(6), 1+r.IntN(3)
		n := leafSpine(2, hosts, spines, 100e9, 0)
		for i := 2 * hosts; i < len(n.Cables); i++ {
			n.Cables[i].Rate = []int64{25e9, 100e9, 400e9}[r.IntN(3)]
		}
		c := settings([]CCKind{NoCC, DCQCN, HPCC, Timely, DCTCP}[r.IntN(5)])
		c.Seed, c.WholeNanos, c.EventOrder = seed, true, r.IntN(2) == 0
		c.Buffer.Bytes = []int64{2 << 20, 32 << 20}[r.IntN(2)] + int64(hosts)*120<<10
		c.Buffer.Shift = []int{3, 5, 8}[r.IntN(3)]
		c.AckFrom, c.AckHigh = int64(1+r.IntN(2)*3), r.IntN(4) == 0
		if c.EventOrder {
			c.Stream = 8
		}
		var flows []Flow
		for range 3 * hosts {
			src, by, bytes := r.IntN(2*hosts), 1+r.IntN(2*hosts-1), int64(200_000)
			if seed%3 == 0 && src > 0 { // an incast
				by, bytes = 2*hosts-src, 800_000
			}
			flows = append(flows, Flow{Src: int32(src), Dst: int32((src + by) % (2 * hosts)), Bytes: 1 +
				r.Int64N(bytes), Priority: uint8(3 + r.IntN(8)/7*int(seed%2)),
				DstPort: 100, Start: units.Time(r.IntN(20)) * units.Microsecond * units.Time(r.IntN(2)),
				Window: []int64{0, 0, 9_000, 60_000}[r.IntN(4)]})
		}
		got, want := either(t, n, flows, c, false), either(t, n, flows, c, true)
		if !reflect.DeepEqual(got.result, want.result) || !reflect.DeepEqual(got.links, want.links) {
			t.Errorf("seed %d, %v, %d hosts, %d spines: %s\nplain: %s", seed, c.CC.Kind, hosts, spines,
				brief(got.result), brief(want.result))
		}
		c.Workers = 3
		if many := either(t, n, flows, c, false); !reflect.DeepEqual(got.result, many.result) {
			t.Errorf("seed %d: %s\nthree workers: %s", seed, brief(got.result), brief(many.result))
		}
		pauses, marks = pauses+got.result.Pauses, marks+got.result.Marks
	}
	if pauses == 0 || marks == 0 {
		t.Errorf("%d pauses, %d marks: each should occur", pauses, marks)
	}
}

// TestPacedHostsAreLookedAtInTime: hosts whose queue pairs are paced, and which begin flows between
// that, send after acknowledgements what they send when they are looked at for each of those.
func TestPacedHostsAreLookedAtInTime(t *testing.T) {
	marks := int64(0)
	for seed := range uint64(24) {
		r := rand.New(rand.NewPCG(seed, 11))
		hosts := 4 + r.IntN(4)
		n := leafSpine(1, hosts, 1, 100e9, 0)
		c := settings([]CCKind{DCQCN, DCQCN, HPCC, Timely, DCTCP}[r.IntN(5)])
		c.Seed, c.WholeNanos = seed, true
		var flows []Flow
		for x := 1; x < hosts; x++ {
			flows = append(flows, Flow{Src: int32(x), Dst: 0, Bytes: 400_000, Priority: 3, DstPort: 100})
			for range 40 {
				flows = append(flows, Flow{Src: int32(x), Dst: int32((x + 1 + r.IntN(hosts-1)) % hosts),
					Bytes: 1 + r.Int64N(6_000), Priority: 3, DstPort: 100,
					Start:  units.Time(r.IntN(200_000)) * units.Nanosecond,
					Window: []int64{0, 1_000, 3_000}[r.IntN(3)]})
			}
		}
		got, want := either(t, n, flows, c, false), either(t, n, flows, c, true)
		if !reflect.DeepEqual(got.result, want.result) || !reflect.DeepEqual(got.links, want.links) {
			t.Errorf("seed %d, %v, %d hosts: %s\nplain: %s", seed, c.CC.Kind, hosts, brief(got.result),
				brief(want.result))
		}
		marks += want.result.Marks
	}
	if marks == 0 {
		t.Error("no marks: some should occur")
	}
}
