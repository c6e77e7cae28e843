package simfiles

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/simccl/simccl/packet"
	"github.com/simccl/simccl/packet/uec"
	"github.com/simccl/simccl/units"
)

// htsimReference is when htsim_uec's last flow finished (one seed), in µs, and its
// retransmissions. Flows that are hashed or sprayed without feedback depend on the
// draws: their band is htsim's value within our spread.
var htsimReference = []struct {
	matrix, topo string
	balance      uec.Balance
	finish       float64
	resent       int64
	band         float64
}{
	{"incast4_1mb", "ls16x8", uec.Mixed, 343.8299, 115, 0.05},
	{"incast16_1mb", "ls16x8", uec.Mixed, 1330.58, 670, 0.05},
	{"perm32_4mb", "ls4x8", uec.Bitmap, 379.0842, -1, 0.05},
	{"perm32_4mb", "ls4x8", uec.REPS, 391.2275, -1, 0.05},
	{"perm32_4mb", "ls4x8", uec.Mixed, 373.944, -1, 0.05},
	{"perm32_4mb", "ls4x8o2", uec.Mixed, 757.0478, 798, 0.05},
	// the mean of its seeds 1 to 3: 835.7, 765.7, 879.7
	{"perm32_4mb", "ls4x8o2", uec.Oblivious, 827.0, -1, 0.05},
	{"alltoall16", "ls2x8", uec.Mixed, 85.8576, 0, 0.05},
	{"fat16", "fat16", uec.Mixed, 193.2, 0, 0.05}, // three tiers: means of its seeds 1 to 5
	{"fat16", "fat16", uec.REPS, 212.3, -1, 0.05},
}

func htsimRun(t testing.TB, x *HtsimScenario, b uec.Balance, seed uint64) *uec.Result {
	t.Helper()
	r, err := uec.Run(&x.Network, x.Flows, &uec.Config{Seed: seed, Balance: b, Paths: 64, MTU: 4150})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func htsimLoad(t testing.TB, matrix, topo string) *HtsimScenario {
	t.Helper()
	x, err := LoadHtsim("testdata/"+matrix+".cm", "testdata/"+topo+".topo", os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func last(r *uec.Result) (t units.Time) {
	for _, f := range r.Flows {
		t = max(t, f.End)
	}
	return t
}

// TestHtsimReference: the mean finish of five seeds lies within 5 % of htsim's.
func TestHtsimReference(t *testing.T) {
	for _, c := range htsimReference {
		x := htsimLoad(t, c.matrix, c.topo)
		mean, resent := 0.0, int64(0)
		for seed := range uint64(5) {
			r := htsimRun(t, x, c.balance, seed+1)
			mean += last(r).Micros() / 5
			resent += r.Retransmitted
		}
		if d := mean/c.finish - 1; d > c.band || d < -c.band {
			t.Errorf("%s on %s, %v: finish %.1f us as the mean of 5 seeds, htsim's %.1f", c.matrix, c.topo,
				c.balance, mean, c.finish)
		}
		if got := resent / 5; c.resent >= 0 && (got > c.resent*115/100+5 || got < c.resent*85/100-5) {
			t.Errorf("%s on %s, %v: %d packets sent again, htsim %d", c.matrix, c.topo, c.balance, got,
				c.resent)
		}
	}
}

// TestHashed: equal seeds hash flows to equal paths as htsim's, whose finishes are
// far apart.
func TestHashed(t *testing.T) {
	for _, c := range []struct {
		topo   string
		seed   uint64
		finish float64
	}{{"ls4x8", 1, 1084.4}, {"ls4x8", 3, 1392.0}, {"ls4x8o2", 2, 1374.4}, {"ls4x8o2", 3, 1987.6}} {
		got := last(htsimRun(t, htsimLoad(t, "perm32_4mb", c.topo), uec.ECMP, c.seed)).Micros()
		if d := got/c.finish - 1; d > 0.05 || d < -0.05 {
			t.Errorf("%s, seed %d: finish %.1f us, htsim's %.1f", c.topo, c.seed, got, c.finish)
		}
	}
}

// TestTriggers: a flow of the second step starts when the flow before it in the
// ring has ended.
func TestTriggers(t *testing.T) {
	x := htsimLoad(t, "ring8", "ls2x4")
	r := htsimRun(t, x, uec.Mixed, 1)
	for i := range 8 {
		second, before := r.Flows[8+i], r.Flows[(i+7)%8]
		if !second.Done || second.Start != before.End {
			t.Errorf("flow %d starts at %v, the flow that triggers it ended at %v", 8+i, second.Start,
				before.End)
		}
	}
}

// TestMultishot: each end of a flow that sets such a trigger off starts its next flow;
// what is not started is not done, and firing without any left is no harm.
func TestMultishot(t *testing.T) {
	topo, err := os.ReadFile("testdata/ls2x4.topo")
	if err != nil {
		t.Fatal(err)
	}
	for _, extra := range []string{"", "5->1 id 6 trigger 1 size 1000\n"} {
		files := map[string][]byte{"t.topo": topo, "m.cm": fmt.Appendf(nil, "Nodes 8\nConnections "+
			"%d\nTriggers 1\n0->4 id 1 start 0 size 400000 send_done_trigger 1\n"+
			"1->5 id 2 start 0 size 40000 send_done_trigger 1\n"+
			"2->6 id 3 start 0 size 1000000 send_done_trigger 1\n3->7 id 4 trigger 1 size 1000\n"+
			"4->0 id 5 trigger 1 size 1000\n%strigger id 1 multishot\n", 5+strings.Count(extra, "\n"), extra)}
		x, err := LoadHtsim("m.cm", "t.topo", func(name string) ([]byte, error) { return files[name], nil })
		if err != nil {
			t.Fatal(err)
		}
		r, err := uec.Run(&x.Network, x.Flows, &uec.Config{Seed: 1, Balance: uec.Mixed, Paths: 64, MTU: 4150,
			Pools: x.Pools})
		if err != nil {
			t.Fatal(err)
		}
		f := r.Flows // the second ends first, then the first
		if f[3].Start != f[1].End || f[4].Start != f[0].End || f[1].End >= f[0].End || !f[3].Done ||
			!f[4].Done {
			t.Errorf("%+v", f)
		}
		if extra != "" && (f[5].Start != f[2].End || !f[5].Done) {
			t.Errorf("the third: %+v", f)
		}
	}
}

// TestConservation: no byte is lost: what was sent arrived or was trimmed.
func TestConservation(t *testing.T) {
	r := htsimRun(t, htsimLoad(t, "perm32_4mb", "ls4x8o2"), uec.Oblivious, 3)
	if r.Trims != r.Retransmitted || r.Drops != 0 || r.Nacks != r.Trims {
		t.Errorf("%d trimmed, %d NACKs, %d sent again, %d dropped: the first three are equal, nothing is "+
			"dropped", r.Trims, r.Nacks, r.Retransmitted, r.Drops)
	}
	if want := int64(32 * 979); r.NewPackets != want { // 4 MB in packets of 4086 bytes
		t.Errorf("%d packets, want %d", r.NewPackets, want)
	}
}

// TestStart: the peer reads starts with single precision, and so also as 2.5e7.
func TestStart(t *testing.T) {
	topo, err := os.ReadFile("testdata/ls2x4.topo")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]units.Time{"0": 0, "1000000": 1_000_000, "2.5e7": 25_000_000,
		"100000001": 100_000_000, "1.9": 1} {
		files := map[string][]byte{"t.topo": topo,
			"m.cm": fmt.Appendf(nil, "Nodes 8\nConnections 1\n0->4 id 1 start %s size 1000\n", text)}
		x, err := LoadHtsim("m.cm", "t.topo", func(name string) ([]byte, error) { return files[name], nil })
		if err != nil || x.Flows[0].Start != want {
			t.Errorf("start %s: %v, want %d ps", text, err, want)
		}
	}
}

func TestHtsimErrorsHavePlaces(t *testing.T) {
	topo := "Nodes 4\nTiers 2\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 2\n" +
		"Radix_Up 2\nDownlink_Latency_ns 1000\nTier 1\nDownlink_speed_Gbps 100\n" +
		"Radix_Down 2\nDownlink_Latency_ns 1000\n"
	for _, c := range []struct{ cm, topo, want string }{
		{"Nodes 3\nConnections 1\n0->3 start 0 size 5\n", topo,
			"m.cm:3:1: \"0->3\": write SRC->DST of two of the hosts 0 to 2"},
		{"Connections 1\n0->3 start 0 size 5\nNodes 3\n", topo,
			"m.cm:2:1: \"0->3\": write SRC->DST of two of the hosts 0 to 2"},
		{"Connections 2\n1->0 start 0 size 5\n  3->1 start 0 size 5\nNodes 2\n", topo,
			"m.cm:3:3: \"3->1\": write SRC->DST of two of the hosts 0 to 1"},
		{"Nodes 3\nConnections 1\n0->2 start 0 size 5\nNodes 4\n", topo,
			"m.cm:4:1: Nodes is in line 1 already"},
		{"Nodes 4\nConnections 1\nConnections 1\n0->2 start 0 size 5\n", topo,
			"m.cm:3:1: Connections is in line 2 already"},
		{"Nodes 4\nConnections 1\nTriggers 2\n0->2 start 0 size 5\ntrigger id 1 oneshot\n" +
			"trigger id 1 oneshot\n", topo, "m.cm:6:1: a trigger of this id is defined already"},
		{"Nodes 4\nConnections 1\n0->9 start 0 size 5\n", topo,
			"m.cm:3:1: \"0->9\": write SRC->DST of two of the hosts 0 to 3"},
		{"Nodes 4\nConnections 1\n0->1 start 0\n", topo,
			"m.cm:3:1: a connection needs a size, and a start or a trigger"},
		{"Nodes 4\nConnections 2\n0->1 start 0 size 5\n", topo,
			"m.cm:4:1: 1 connections and 0 triggers, where 2 and 0 are announced"},
		{"Nodes 4\nConnections 1\n0->1 trigger 3 size 5\n", topo, "m.cm:3:6: trigger 3 is not defined"},
		{"Nodes 4\nConnections 1\n0->1 begin 0 size 5\n", topo,
			"m.cm:3:6: \"begin\": write id, start, size, trigger or send_done_trigger"},
		{"", strings.Replace(topo, "Radix_Up 2", "Radix_Up x", 1),
			"t.topo:6:10: Radix_Up: \"x\": write a whole number"},
		{"", strings.Replace(topo, "Tier 0\n", "", 1),
			"t.topo:3:1: \"Downlink_speed_Gbps\" comes before the first Tier"},
		{"", strings.Replace(topo, "Tiers 2", "Tiers 3", 1),
			"t.topo:12:1: Podsize 0: write a multiple of Radix_Down 2"},
		{"", strings.Replace(strings.Replace(topo, "Tiers 2", "Podsize 4\nTiers 3", 1), "Tier 1\n",
			"Tier 1\nRadix_Up 2\n", 1) +
			"Tier 2\nDownlink_speed_Gbps 100\nRadix_Down 3\nDownlink_Latency_ns 1000\n",
			"t.topo:18:1: tier 2 has Radix_Down 3, and there are 1 pods below: write Radix_Down 1"},
		{"", topo + "Tier 2\n", "t.topo:12:6: tier 2: write 0 to 1"},
		{"", strings.Replace(topo, "Tier 1\nDownlink_speed_Gbps 100\nRadix_Down 2",
			"Tier 1\nDownlink_speed_Gbps 100\nRadix_Down 7", 1),
			"t.topo:12:1: tier 1 has Radix_Down 7, and there are 2 switches below"},
	} {
		files := map[string]string{"m.cm": c.cm, "t.topo": c.topo}
		_, err := LoadHtsim("m.cm", "t.topo", func(name string) ([]byte, error) {
			return []byte(files[name]), nil
		})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	for _, c := range []struct{ cm, topo string }{
		{"", "Tiers 4\n"}, {"Nodes 4\nFailures 1\n", topo},
		{"Nodes 4\nConnections 1\n0->1 start 0 size 5 recv_done_trigger 1\n", topo},
	} {
		files := map[string]string{"m.cm": c.cm, "t.topo": c.topo}
		_, err := LoadHtsim("m.cm", "t.topo", func(name string) ([]byte, error) {
			return []byte(files[name]), nil
		})
		if lacks := (*packet.UnsupportedError)(nil); !errors.As(err, &lacks) {
			t.Errorf("%q: got %v, want an UnsupportedError", c.cm, err)
		}
	}
}

func FuzzHtsimLoad(f *testing.F) {
	topo, _ := os.ReadFile("testdata/ls2x4.topo")
	cm, _ := os.ReadFile("testdata/ring8.cm")
	f.Add(cm, topo)
	f.Fuzz(func(t *testing.T, cm, topo []byte) {
		n := 0
		x, err := LoadHtsim("m.cm", "t.topo", func(string) ([]byte, error) {
			n++
			return [][]byte{topo, cm}[n-1], nil
		})
		if (x == nil) == (err == nil) {
			t.Fatalf("scenario %v and error %v", x, err)
		}
		if err == nil {
			if err := uec.Check(&x.Network, x.Flows, &uec.Config{Paths: 64, MTU: 4150}); err != nil {
				_ = err.Error()
			}
		}
	})
}

// BenchmarkPermutation: data-packet-hops/s on one core.
func BenchmarkPermutation(b *testing.B) {
	x := htsimLoad(b, "perm32_4mb", "ls4x8")
	var hops int64
	for b.Loop() {
		hops += htsimRun(b, x, uec.REPS, 1).DataPacketHops
	}
	b.ReportMetric(float64(hops)/b.Elapsed().Seconds()/1e6, "Mhops/s")
}
