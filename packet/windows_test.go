package packet

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/simccl/simccl/units"
)

// TestMarkAtEnqueueInAnyWindow: whether a frame is marked does not depend on whether its switch was near a
// threshold in that window, and so not on how long windows are.
func TestMarkAtEnqueueInAnyWindow(t *testing.T) {
	marks, pauses := int64(0), int64(0)
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 14))
		n, c := leafSpine(2, 3, 1, 100e9, 0), settings([]CCKind{NoCC, DCQCN}[seed%2])
		c.Seed, c.MarkAtEnqueue, c.Buffer.Bytes, c.Buffer.Shift = seed, true, 1<<20, 5
		c.Marking[0].KMin = 3e3
		var flows []Flow
		for range 12 {
			f := Flow{Src: int32(r.IntN(6)), Dst: int32(r.IntN(2)), Bytes: 1 + r.Int64N(100_000), Priority: 3,
				DstPort: 100, Start: units.Time(r.IntN(20)) * units.Microsecond}
			if f.Src == f.Dst {
				f.Dst += 3
			}
			flows = append(flows, f)
		}
		got, want := either(t, n, flows, c, false), either(t, n, flows, c, true)
		if !got.turns || !reflect.DeepEqual(got.result, want.result) {
			t.Errorf("seed %d, in turns %v: %s\nplain: %s", seed, got.turns, brief(got.result),
				brief(want.result))
		}
		marks, pauses = marks+want.result.Marks, pauses+want.result.Pauses
	}
	if marks == 0 || pauses == 0 {
		t.Errorf("%d marks, %d pauses: each should occur", marks, pauses)
	}
}

// waiting is random flows of equal hosts of which most wait for one or two others and may start only later.
func waiting(r *rand.Rand, hosts int) (flows []Flow) {
	most := int64(1+r.IntN(30)) * 10_000
	for i := range 6 + r.IntN(20) {
		f := Flow{Src: int32(r.IntN(hosts)), Dst: int32(r.IntN(hosts)), Bytes: 1 + r.Int64N(most),
			Priority: 3, DstPort: 100}
		if f.Src == f.Dst {
			f.Dst = (f.Dst + 1) % int32(hosts)
		}
		if i > 2 && r.IntN(2) == 0 {
			for range 1 + r.IntN(2) {
				f.Deps = append(f.Deps, int32(r.IntN(i)))
			}
			f.Start = units.Time(r.IntN(2)*(1+r.IntN(3))) * 50 * units.Microsecond
		}
		flows = append(flows, f)
	}
	return flows
}

// TestWaitingStartsInAnyWindow: flows of a host that wait for others and then start at one time do so in the
// order in which those ended, also if they ended in one window.
func TestWaitingStartsInAnyWindow(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 15))
		leaves, per := 1+r.IntN(4), 2+r.IntN(4)
		n, c := leafSpine(leaves, per, min(leaves-1, 1+r.IntN(3)), 100e9, 0), settings(NoCC)
		if leaves == 1 {
			n = leafSpine(1, per, 0, 100e9, 0)
		}
		c.Seed, c.Buffer.Bytes = seed, 32<<20
		flows := waiting(r, leaves*per)
		if got, want := either(t, n, flows, c, false),
			either(t, n, flows, c, true); !reflect.DeepEqual(got.result, want.result) {
			t.Errorf("seed %d: flows %v\nplain: %v", seed, got.result.Flows, want.result.Flows)
		}
	}
}

// TestWorkersOrderAlike: whether a run takes the order of events up does not depend on the number of
// workers, where that follows from how long queues get.
func TestWorkersOrderAlike(t *testing.T) {
	anew := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 16))
		leaves, per := 1+r.IntN(4), 2+r.IntN(4)
		n, c := leafSpine(leaves, per, 2, 100e9, 0), settings(NoCC)
		c.Seed, c.EventOrder, c.Stream, c.Buffer.Bytes = seed, true, 8, []int64{4 << 20, 32 << 20}[r.IntN(2)]
		flows := waiting(r, leaves*per)
		var all []*Result
		for c.Workers = range 3 {
			got, how := asked(t, n, flows, c)
			if all = append(all, got); c.Workers == 0 && slices.Contains(how, errOrder) {
				anew++
			}
		}
		if !reflect.DeepEqual(all[0], all[1]) || !reflect.DeepEqual(all[0], all[2]) {
			t.Errorf("seed %d: windows %d, %d and %d; flows\n%v\n%v\n%v", seed, all[0].Windows,
				all[1].Windows, all[2].Windows, all[0].Flows, all[1].Flows, all[2].Flows)
		}
	}
	if anew == 0 {
		t.Error("no run began anew")
	}
}

// asked is Run with all of the workers that are asked for, however few the flows, and why it began anew.
func asked(t *testing.T, n *Network, flows []Flow, c *Config) (r *Result, how []error) {
	t.Helper()
	for ordered, inTurn := false, true; ; {
		e, err := build(n, flows, c, ordered, inTurn)
		if err != nil {
			t.Fatal(err)
		}
		e.crowd = 0
		windows, err := e.run()
		switch how = append(how, err); err {
		case nil:
			r := e.collect(windows)
			if e.ordered { // which has windows of all nodes on several workers
				r.Windows = 0
			}
			return r, how
		case errOrder:
			ordered = true
		case errAgain:
			inTurn = false
		default:
			t.Fatal(err)
		}
	}
}
