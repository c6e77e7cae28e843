package packetrun

import (
	"math"
	"os"
	"strings"
	"testing"
)

const example = "../../testdata/packets/config.txt"

func runExample(t *testing.T, v Override) (*Report, error) {
	t.Helper()
	return NS3(example, Options{Read: os.ReadFile, Seed: 1, Workers: 1, Compat: "ns3", Override: v,
		Warn: t.Logf})
}

// TestOverrides: each setting acts: the victim of the example's head-of-line
// blocking is faster under DCQCN, slower behind a slow link, and credits need no
// pause.
func TestOverrides(t *testing.T) {
	plain, err := runExample(t, Override{})
	if err != nil {
		t.Fatal(err)
	}
	victim := func(r *Report) int64 {
		if r.Flows[4].FctNs == nil {
			t.Fatalf("the victim did not end: %s", r.Unfinished)
		}
		return *r.Flows[4].FctNs
	}
	for _, c := range []struct {
		v    Override
		good func(r *Report) bool
	}{
		{Override{CC: "dcqcn:ns3"}, func(r *Report) bool {
			return r.Marks > 0 && victim(r) < victim(plain)*3/4
		}},
		{Override{CC: "none"}, func(r *Report) bool { return r.MakespanNs == plain.MakespanNs }},
		{Override{CC: "nscc", Repair: "trim"}, func(r *Report) bool {
			return r.Trims > 0 && r.Trims == r.Retransmitted && r.Pauses == 0 &&
				victim(r) < victim(plain)/2 && r.Unfinished == ""
		}},
		{Override{CC: "dcqcn:ns3", MarkAt: "enqueue"}, func(r *Report) bool {
			return r.Marks > 0 && victim(r) < victim(plain)*3/4
		}},
		{Override{CC: "none", Alpha: 1.0 / 8}, func(r *Report) bool {
			return r.MakespanNs == plain.MakespanNs && r.Pauses == plain.Pauses
		}},
		{Override{CC: "none", Alpha: 8}, func(r *Report) bool {
			return r.PeakQueueBytes > plain.PeakQueueBytes*3/2 && r.Drops == 0 && r.Unfinished == ""
		}},
		{Override{CC: "none", Through: 128}, func(r *Report) bool {
			return r.MakespanNs < plain.MakespanNs && r.MakespanNs > plain.MakespanNs-1000
		}},
		{Override{CC: "none", Quanta: 100}, func(r *Report) bool {
			return r.Pauses > plain.Pauses && r.Unfinished == ""
		}},
		// one flow a host
		{Override{CC: "none", Messages: 0.01}, func(r *Report) bool {
			return r.MakespanNs == plain.MakespanNs
		}},
		{Override{CC: "none", Credits: 100_000}, func(r *Report) bool {
			return r.Pauses == 0 && r.Unfinished == ""
		}},
		{Override{Faults: []string{"1-7:slow=0.1"}}, func(r *Report) bool {
			return victim(r) > 2*victim(plain)
		}},
		{Override{Faults: []string{"0-7:down@100-300"}, TimeoutUs: 500}, func(r *Report) bool {
			return r.Lost > 0 && r.Retransmitted > 0 && r.Unfinished == ""
		}},
		// Node 8 pauses node 7: the trunk carries nothing for 2 ms.
		{Override{Faults: []string{"7-8:storm@100-2100"}}, func(r *Report) bool {
			return victim(r) > 2_000_000 && r.MakespanNs > plain.MakespanNs+500_000
		}},
	} {
		r, err := runExample(t, c.v)
		if err != nil || !c.good(r) {
			t.Errorf("%+v: %v, makespan %v", c.v, err, r)
		}
	}
}

// TestNoOrderToKeep: what the simulator does not do leaves nothing of its order of events to keep.
func TestNoOrderToKeep(t *testing.T) {
	for _, v := range []Override{{MarkAt: "enqueue"}, {Quanta: 100}, {Through: 128}} {
		_, err := NS3(example, Options{Read: os.ReadFile, Seed: 1, Workers: 1, Compat: "ns3:exact",
			Override: v, Warn: t.Logf})
		if err == nil || !strings.Contains(err.Error(), "ns3:exact with") {
			t.Errorf("%+v: %v", v, err)
		}
	}
}

func TestOverridesAreChecked(t *testing.T) {
	for _, c := range []struct {
		v    Override
		want string
	}{
		{Override{CC: "cubic"}, "is not a congestion control"},
		{Override{Repair: "fec"}, "write gbn, sr or trim"},
		{Override{Paths: 4}, "Paths 4: frames of several paths overtake each other"},
		{Override{Paths: 4000, Repair: "sr"}, "write at most 1024"},
		{Override{Credits: 100}, "Credits 100: a frame of 1048 bytes must fit"},
		{Override{Through: 63}, "Through 63: write 64 to 65535 bytes"},
		{Override{Through: -1}, "Through -1: write"},
		{Override{CNP: "frame", CC: "dcqcn:cx7"}, "CNP frame: is of DCQCN, with frames of RoCE: add"},
		{Override{CNP: "mail"}, "write ack or frame"},
		{Override{Alpha: 3}, "Alpha 3: switches shift by it"},
		{Override{Alpha: 16}, "Alpha 16: switches shift by it: write a power of two from 0.0009765625 to 8"},
		{Override{Alpha: math.NaN()}, "Alpha NaN: switches"},
		{Override{Alpha: -1}, "Alpha -1: switches"},
		{Override{Alpha: 2, Repair: "trim"}, "nothing pauses there"},
		{Override{Quanta: 42}, "Quanta 42: write 43 to 65535"},
		{Override{Quanta: 65536}, "Quanta 65536: write 43 to 65535"},
		{Override{Quanta: 100, Credits: 100_000}, "nothing pauses there"},
		{Override{MarkAt: "arrival"}, "write dequeue or enqueue"},
		{Override{Messages: -1}, "write millions of messages"},
		{Override{Messages: 1e-300}, "write millions of messages"},
		{Override{Messages: math.NaN()}, "write millions of messages"},
		{Override{TimeoutUs: -1}, "write 0 (never), or 0.001 to 1e9 us"},
		{Override{TimeoutUs: math.NaN()}, "write 0 (never), or 0.001 to 1e9 us"},
		{Override{TimeoutUs: 1e-12}, "write 0 (never), or 0.001 to 1e9 us"},
		{Override{WatchUs: 1e300}, "write 0 (never), or 0.001 to 1e9 us"},
		{Override{WatchUs: 10, Credits: 100_000}, "links with credits pause nothing"},
		{Override{Repair: "trim", Credits: 100_000}, "cut nothing"},
		{Override{Paths: -1}, "none may be negative"},
		{Override{Retries: 3}, "counts timeouts, and there are none"},
		{Override{Faults: []string{"7-8"}}, "write link=A~B:down"},
		{Override{Faults: []string{"7-8:slow=2"}}, "write link=A~B:down"},
		{Override{Faults: []string{"7-8:down@5-1"}}, "write link=A~B:down"},
		{Override{Faults: []string{"7-8:flap=20/100"}}, "write when, as 7-8:flap=20/100@0-1000"},
		{Override{Faults: []string{"7-8:slow=1e-9"}}, "leaves less than 1 Mb/s"},
		{Override{Faults: []string{"7-8:loss=1"}, TimeoutUs: 100}, "without an end: add Retries"},
		{Override{Faults: []string{"7-8:down@50"}, TimeoutUs: 100}, "link of nodes 7 and 8"},
		{Override{Faults: []string{"nic=7:down"}}, "a switch has no NIC"},
		{Override{Faults: []string{"nic=0~7:down"}}, "write link=A~B:down"},
		{Override{Faults: []string{"link=0~7:latency=5@1-2"}}, "leave out @1-2"},
		{Override{Faults: []string{"0-8:down"}}, "no link joins nodes 0 and 8"},
		{Override{Faults: []string{"7-8:flap=20/10@0-100"}}, "write link=A~B:down"},
		{Override{Routing: "random"}, "write ecmp, adaptive or flowlet"},
		{Override{Routing: "adaptive"}, "add Repair sr"},
		{Override{Routing: "flowlet", FlowletUs: -1}, "write 0 (at each frame), or 0.001 to 1e9 us"},
	} {
		if _, err := runExample(t, c.v); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %q", c.v, err, c.want)
		}
	}
}

// TestFaultsOfNICs: a NIC's fault is one of its host's link, which the NIC pauses where it storms; latency
// adds to both ways.
func TestFaultsOfNICs(t *testing.T) {
	for nic, link := range map[string]string{"nic=1:slow=10": "link=1~7:slow=10",
		"nic=1:storm@100-2100": "link=7~1:storm@100-2100"} {
		a, err1 := runExample(t, Override{Faults: []string{nic}})
		b, err2 := runExample(t, Override{Faults: []string{link}})
		if err1 != nil || err2 != nil || a.MakespanNs != b.MakespanNs || a.Pauses != b.Pauses {
			t.Errorf("%s: %v, %v\n%v\n%v", nic, err1, err2, a, b)
		}
	}
	plain, err1 := runExample(t, Override{CC: "none"})
	late, err2 := runExample(t, Override{CC: "none", Faults: []string{"nic=1:latency=50"}})
	if err1 != nil || err2 != nil || late.Flows[4].IdealNs != plain.Flows[4].IdealNs+100_000 ||
		late.Flows[0].IdealNs != plain.Flows[0].IdealNs || *late.Flows[4].FctNs == *plain.Flows[4].FctNs {
		t.Errorf("%v, %v: %v, without %v", err1, err2, late.Flows, plain.Flows)
	}
}

// TestEndlessStorm: what a storm without an end holds is named; nothing was lost.
func TestEndlessStorm(t *testing.T) {
	for _, c := range []struct{ fault, want string }{
		{"7-8:storm", "2 flows did not end, the first is flow 0: a pause storm blocks 7 > 8"},
		{"8-7:storm@5", "a pause storm blocks 8 > 7"},
	} {
		r, err := runExample(t, Override{CC: "none", Faults: []string{c.fault}})
		if err != nil || !strings.HasSuffix(r.Unfinished, c.want) || r.Lost+r.Drops > 0 {
			t.Errorf("%s: %v, %q, %d lost", c.fault, err, r.Unfinished, r.Lost+r.Drops)
		}
	}
}

// TestResumeLost: where the frame that resumes a port is lost, the report says so.
func TestResumeLost(t *testing.T) {
	r, err := runExample(t, Override{Faults: []string{"7-8:loss=0.02"}})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(r.Unfinished, "node 7 is still paused: the XON from node 8 was lost") {
		t.Errorf("unfinished: %q", r.Unfinished)
	}
}

// TestExactOrder: ns-3 ends this incast under pauses, where nothing is marked, at
// 1126998 ns; with simultaneous events in the order of ports it takes another time.
func TestExactOrder(t *testing.T) {
	const config = "../../packet/simfiles/testdata/hot_pfc/config.txt"
	for _, compat := range []string{"ns3", "ns3:exact"} {
		r, err := NS3(config, Options{Read: os.ReadFile, Seed: 1, Workers: 1, Compat: compat, Warn: t.Logf})
		if err != nil {
			t.Fatal(err)
		}
		if r.MakespanNs != 1126998 {
			t.Errorf("%s: %d ns", compat, r.MakespanNs)
		}
	}
}
