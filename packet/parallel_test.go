package packet

import (
	"fmt"
	"reflect"
	"syscall"
	"testing"

	"github.com/simccl/simccl/units"
)

// leafSpine is a network of leaves with hosts, each leaf joined to each spine.
func leafSpine(leaves, per, spines int, rate int64, loss float64) *Network {
	h := leaves * per
	n := &Network{Nodes: h + leaves + spines, Switch: make([]bool, h+leaves+spines)}
	for v := h; v < n.Nodes; v++ {
		n.Switch[v] = true
	}
	for i := range h {
		n.Cables = append(n.Cables, Cable{A: int32(i), B: int32(h + i/per), Rate: rate,
			Delay: units.Microsecond, Loss: loss})
	}
	for l := range leaves {
		for s := range spines {
			n.Cables = append(n.Cables, Cable{A: int32(h + l), B: int32(h + leaves + s), Rate: rate,
				Delay: units.Microsecond, Loss: loss})
		}
	}
	return n
}

// settings are those of the HPCC simulator's DCQCN at 100 Gb/s.
func settings(kind CCKind) *Config {
	c := &Config{Seed: 7, Frames: Frames{Payload: 1000, Header: 48, Ack: 60, Pause: 43}, WholeNanos: true,
		AckFrom: 1, NackGap: 500 * units.Microsecond,
		Buffer:  Buffer{Bytes: 4 << 20, Reserve: 4 << 10, ResumeOffset: 3 << 10, Shift: 3, HeadroomDelays: 3},
		Marking: []Marking{{Rate: 100e9, KMin: 100e3, KMax: 400e3, PMax: 0.2}},
		CC: CC{Kind: kind, MinRate: 100e6, AI: 20e6, HAI: 200e6, Gain: 1.0 / 256,
			AlphaPeriod: units.Microsecond, DecreasePeriod: 4 * units.Microsecond,
			IncreasePeriod: 300 * units.Microsecond, FastRecovery: 1, Utilisation: 0.95, Multi: 4,
			BaseRTT: 8320 * units.Nanosecond, RateAI: 615e6}}
	if kind == HPCC {
		c.CC.Window = 104000
	}
	return c
}

// mesh is flows that collide: a permutation, an incast, and a ring of steps.
func mesh(hosts int, bytes int64) []Flow {
	var flows []Flow
	for i := range hosts {
		flows = append(flows, Flow{Src: int32(i), Dst: int32((i*7 + 11) % hosts), Bytes: bytes, Priority: 3,
			DstPort: 100})
	}
	for i := 1; i < 9; i++ {
		flows = append(flows, Flow{Src: int32(i * 3 % hosts), Dst: 0, Bytes: bytes, Priority: 4, DstPort: 100,
			Start: units.Time(i) * units.Microsecond})
	}
	for i := range hosts {
		flows = append(flows, Flow{Src: int32(i), Dst: int32((i + 1) % hosts), Bytes: bytes / 4, Priority: 3,
			DstPort: 100, Deps: []int32{int32(i), int32((i + hosts - 1) % hosts)}})
	}
	for i := range flows {
		if flows[i].Src == flows[i].Dst {
			flows[i].Dst = (flows[i].Dst + 1) % int32(hosts)
		}
	}
	return flows
}

// TestWorkersAgree: the result has the same bits for any number of workers,
// with pauses, marks, losses and dependencies.
func TestWorkersAgree(t *testing.T) {
	for _, kind := range []CCKind{NoCC, DCQCN, HPCC, Timely, DCTCP} {
		for _, loss := range []float64{0, 1e-4} {
			n, flows, c := leafSpine(4, 4, 3, 100e9, loss), mesh(16, 200_000), settings(kind)
			c.Stop = 20 * units.Millisecond
			want, err := Run(n, flows, c)
			if err != nil {
				t.Fatal(err)
			}
			if loss == 0 && want.Stall != nil {
				t.Errorf("%v: %v", kind, want.Stall)
			}
			for _, workers := range []int{2, 3, 7} {
				c.Workers = workers
				got := crowded(t, n, flows, c, false)
				if got.Windows = want.Windows; !reflect.DeepEqual(got, want) {
					t.Errorf("%v, loss %g: %d workers: %s\none: %s", kind, loss, workers, brief(got),
						brief(want))
				}
			}
			c.Workers = 1
		}
	}
}

func brief(r *Result) string {
	return fmt.Sprintf("pauses %d, marks %d, lost %d, again %d, hops %d, peak %d, last %v", r.Pauses, r.Marks,
		r.Lost, r.Retransmitted, r.FrameHops, r.PeakQueue, r.Flows[len(r.Flows)-1])
}

// TestPausesHappen: the mesh without congestion control pauses, with it marks.
func TestPausesHappen(t *testing.T) {
	c := settings(NoCC)
	r, err := Run(leafSpine(4, 4, 3, 100e9, 0), mesh(16, 1_000_000), c)
	if err != nil || r.Pauses == 0 || r.Marks == 0 || r.Drops != 0 || r.Stall != nil {
		t.Errorf("%v: %s, stall %v", err, brief(r), r.Stall)
	}
}

// BenchmarkLarge: a permutation over many hosts, 1 MB each, by workers.
func BenchmarkLarge(b *testing.B) {
	for _, hosts := range []int{128, 1024} {
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("hosts=%d/workers=%d", hosts, workers), func(b *testing.B) {
				per := 8
				if hosts > 128 {
					per = 32
				}
				n, c := leafSpine(hosts/per, per, per, 100e9, 0), settings(DCQCN)
				c.Buffer.Bytes, c.Workers = 32<<20, workers
				var flows []Flow
				for i := range hosts {
					flows = append(flows, Flow{Src: int32(i), Dst: int32((i + hosts/2 + 3) % hosts),
						Bytes: 1_000_000, Priority: 3, DstPort: 100})
				}
				var hops int64
				before := cpu(b)
				for b.Loop() {
					r, err := Run(n, flows, c)
					if err != nil {
						b.Fatal(err)
					}
					hops += r.DataPacketHops
				}
				b.ReportMetric(float64(hops)/b.Elapsed().Seconds()/1e6, "Mhops/s")
				b.ReportMetric(float64(hops)/(cpu(b)-before)/1e6, "Mhops/CPU-s")
			})
		}
	}
}

// cpu is the user time of this process in seconds.
func cpu(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()) / 1e9
}

// TestWorkersOrder: the order of events, its marks and its losses have the same bits
// for any number of workers.
func TestWorkersOrder(t *testing.T) {
	n, flows, c := leafSpine(4, 4, 3, 100e9, 1e-3), mesh(16, 200_000), settings(DCQCN)
	c.Stop, c.WholeNanos, c.EventOrder, c.Stream, c.LossStream = 5*units.Millisecond, true, true, 8, 1<<63
	var want *Result
	for _, workers := range []int{1, 2, 3} {
		c.Workers = workers
		got := crowded(t, n, flows, c, true)
		if want == nil {
			want = got
		}
		if got.Marks == 0 || got.Lost == 0 || got.Pauses == 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%d workers: %s\none: %s", workers, brief(got), brief(want))
		}
	}
}

// crowded runs flows with all of the workers that are asked for, however few the flows.
func crowded(t *testing.T, n *Network, flows []Flow, c *Config, ordered bool) *Result {
	t.Helper()
	e, err := build(n, flows, c, ordered, true)
	if err != nil {
		t.Fatal(err)
	}
	e.crowd = 0
	windows, err := e.run()
	if err != nil {
		t.Fatal(err)
	}
	return e.collect(windows)
}

// TestDivided: workers have ranges that follow each other, to the ends, as large as their part of the sizes.
func TestDivided(t *testing.T) {
	sizes := []int{4, 1, 1, 1, 1, 4, 4, 4}
	some, others := divided(4, 10, len(sizes), func(i int) int { return sizes[i] })
	if got := fmt.Sprint(some, others); got != "[[0 2] [2 5] [5 7] [7 10]] [[0 2] [2 6] [6 7] [7 8]]" {
		t.Error(got)
	}
	if _, none := divided(2, 0, 0, nil); fmt.Sprint(none) != "[[0 0] [0 0]]" {
		t.Error(none)
	}
}
