package packetrun

import (
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/simccl/simccl/packet"
	"github.com/simccl/simccl/units"
)

// oneSwitch is a network of so many hosts, each at 100 Gb/s, and one switch.
func oneSwitch(hosts int) *packet.Network {
	n := &packet.Network{Nodes: hosts + 1, Switch: make([]bool, hosts+1)}
	n.Switch[hosts] = true
	for i := range hosts {
		n.Cables = append(n.Cables, packet.Cable{A: int32(i), B: int32(hosts), Rate: 100e9,
			Delay: units.Microsecond})
	}
	return n
}

// TestTrafficIsWhatItsNameSays: an incast has N senders and one receiver; in a permutation each host sends
// and receives once, none to itself; an alltoall has each pair once. Equal seeds give equal flows,
// others other ones.
func TestTrafficIsWhatItsNameSays(t *testing.T) {
	for _, hosts := range []int{2, 3, 17, 64} {
		n := oneSwitch(hosts)
		for _, c := range []struct {
			kind              string
			flows, sent, come int // in all, of a host at most
		}{{fmt.Sprintf("incast:%d", hosts-1), hosts - 1, 1, hosts - 1}, {"permutation", hosts, 1, 1},
			{"alltoall", hosts * (hosts - 1), hosts - 1, hosts - 1}} {
			x := Traffic{Kind: c.kind, Bytes: 5000}
			flows, err := x.generate(n, units.Second, 3)
			if err != nil || len(flows) != c.flows {
				t.Fatalf("%s of %d hosts: %d flows, %v", c.kind, hosts, len(flows), err)
			}
			pairs, sent, come := map[[2]int32]bool{}, map[int32]int{}, map[int32]int{}
			for _, f := range flows {
				sent[f.Src]++
				come[f.Dst]++
				if at := [2]int32{f.Src, f.Dst}; pairs[at] || f.Src == f.Dst || f.Start != units.Second ||
					f.Bytes != 5000 || sent[f.Src] > c.sent || come[f.Dst] > c.come {
					t.Errorf("%s of %d hosts: %+v", c.kind, hosts, f)
				}
				pairs[[2]int32{f.Src, f.Dst}] = true
			}
			if again, _ := x.generate(n, units.Second, 3); !reflect.DeepEqual(again, flows) {
				t.Errorf("%s of %d hosts: equal seeds give other flows", c.kind, hosts)
			}
		}
	}
	x := Traffic{Kind: "permutation", Bytes: 1}
	a, _ := x.generate(oneSwitch(64), 0, 1)
	if b, _ := x.generate(oneSwitch(64), 0, 2); reflect.DeepEqual(a, b) {
		t.Error("two seeds give one permutation of 64 hosts")
	}
}

// TestLoadIsWhatIsAskedFor: hosts start as many bytes as load their lines, within what chance allows (three
// standard errors), in the order of time and within the span, to all others in the same way; sizes follow the
// distribution at each of its points.
func TestLoadIsWhatIsAskedFor(t *testing.T) {
	for kind, sizes := range map[string][]knot{"websearch": websearch, "hadoop": hadoop} {
		const hosts, span, load = 32, 3e5, 40.0
		x := Traffic{Kind: kind, Load: load, SpanUs: span}
		flows, err := x.generate(oneSwitch(hosts), units.Second, 5)
		if err != nil {
			t.Fatal(err)
		}
		bytes, squares, last := 0.0, 0.0, units.Second
		atMost := make([]int, len(sizes))
		for _, f := range flows {
			if f.Start < last || f.Start > units.Second+units.FromMicros(span) || f.Src == f.Dst {
				t.Fatalf("%s: flow %+v after %v", kind, f, last)
			}
			last, bytes = f.Start, bytes+float64(f.Bytes)
			squares += float64(f.Bytes) * float64(f.Bytes)
			for i, k := range sizes {
				if float64(f.Bytes) <= k.bytes {
					atMost[i]++
				}
			}
		}
		want := hosts * 100e9 / 8 * span / 1e6 * load / 100
		if math.Abs(bytes-want) > 3*math.Sqrt(squares) { // variance of a compound Poisson sum
			t.Errorf("%s: %g bytes, want %g", kind, bytes, want)
		}
		for i, k := range sizes {
			p := k.percent / 100
			off := 3.5*math.Sqrt(p*(1-p)/float64(len(flows))) + 0.003 // sizes are whole bytes
			if got := float64(atMost[i]) / float64(len(flows)); math.Abs(got-p) > off {
				t.Errorf("%s: %.4f of %d flows have at most %g bytes, want %.4f", kind, got, len(flows),
					k.bytes, p)
			}
		}
	}
}

// TestWrongTraffic: what cannot be is refused with what to write.
func TestWrongTraffic(t *testing.T) {
	for _, x := range []Traffic{{Kind: "incast"}, {Kind: "incast:0", Bytes: 1}, {Kind: "incast:4", Bytes: 1},
		{Kind: "incast:x", Bytes: 1}, {Kind: "permutation:3", Bytes: 1}, {Kind: "alltoall"},
		{Kind: "alltoall", Bytes: -1}, {Kind: "websearch", Load: 0, SpanUs: 10},
		{Kind: "websearch", Load: 101, SpanUs: 10}, {Kind: "hadoop", Load: math.NaN(), SpanUs: 10},
		{Kind: "hadoop", Load: 30}, {Kind: "hadoop", Load: 0.01, SpanUs: 1}, {Kind: "storage"}} {
		if flows, err := x.generate(oneSwitch(4), 0, 1); err == nil {
			t.Errorf("%+v: %d flows and no error", x, len(flows))
		}
	}
	if _, err := (&Traffic{Kind: "permutation", Bytes: 1}).generate(oneSwitch(1), 0, 1); err == nil {
		t.Error("one host sends to itself")
	}
}

// TestFaultsOfBothLanguages: link=A~B is run's language, in which slow is a factor; A-B has the share of the
// speed that is left.
func TestFaultsOfBothLanguages(t *testing.T) {
	n := oneSwitch(3)
	for own, common := range map[string]string{"0-3:slow=0.25@5-9": "link=0~3:slow=4@5-9",
		"3-1:storm@2-3": "link=3~1:storm@2-3", "2-3:down": "link=2~3:down",
		"1-3:loss=0.01":       "link=1~3:loss=0.01",
		"0-3:flap=2/10@0-100": "link=0~3:flap=2/10@0-100"} {
		a, err := parseFault(n, numbered, own)
		b, err2 := parseFault(n, numbered, common)
		if err != nil || err2 != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%s is %+v, %v; %s is %+v, %v", own, a, err, common, b, err2)
		}
	}
	for _, text := range []string{"link=0~3:slow=0.5", "link=0-3:down", "0~3:down", "link=0~9:down",
		"link=0~3:slow=NaN", "link=0~3:slow=2:loss=0.1"} {
		if f, err := parseFault(n, numbered, text); err == nil {
			t.Errorf("%s is %+v", text, f)
		}
	}
}
