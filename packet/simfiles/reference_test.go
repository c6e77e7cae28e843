package simfiles

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/packet"
)

// reference is what the HPCC simulator printed (RngRun 1), in ns and bytes; the
// deepest queue by samples, 0 where there were none.
var reference = []struct {
	name                       string
	makespan, first, peak, xof int64
}{
	{"i_single_400g_mtu1000_65536", 5333, 5333, 0, 0},
	{"ii_incast_dctcp_8to1_1mb", 668091, 667510, 383568, 0},
	{"ii_incast_hpcc_2to1_1mb", 191854, 173458, 55590, 0},
	{"ii_incast_mlx_8to1_1mb", 1257989, 851922, 2269968, 0},
	{"ii_incast_pfc_8to1_1mb", 668091, 667510, 7337048, 0},
	{"ii_incast_timely_8to1_1mb", 676092, 675504, 7393056, 0},
	{"iv_victim_pfc", 3325095, 3274042, 1394888, 1201},
	{"ix_loss_gbn_0.0001", 1340723, 1340723, 0, 0},
	{"vi_perm_ls11_ecmp_pfc", 1032170, 355069, 6243984, 3},
	{"vii_a2a_16_pfc", 92591, 84888, 36996, 0},
	{"fat_perm_pfc", 518439, 181594, 0, 0},
	{"linkdown", 938373, 853825, 0, 0},
	{"x_simai400_2to1_10mb", 404182, 404162, 235248, 0},
}

func load(t testing.TB, name string) *NS3Scenario {
	t.Helper()
	x, err := LoadNS3("testdata/"+name+"/config.txt", os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	x.Config.Seed = 1
	return x
}

func run(t testing.TB, x *NS3Scenario) *packet.Result {
	t.Helper()
	r, err := packet.Run(&x.Network, x.Flows, &x.Config)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// within reports whether a figure is within a share of another.
func within(got, want int64, share float64) bool {
	d := float64(got - want)
	return d <= share*float64(want) && -d <= share*float64(want)
}

// exact is the makespan and the sum of the times of all flows that the HPCC simulator
// printed, in ns, by RngRun.
var exact = []struct {
	name          string
	run           uint64
	makespan, sum int64
}{
	{"ii_incast_mlx_8to1_1mb", 1, 1257989, 8851799},
	{"ii_incast_mlx_8to1_1mb", 2, 1258782, 8842728},
	{"ii_incast_mlx_8to1_1mb", 3, 1214495, 9450692},
	{"ii_incast_mlx_8to1_1mb", 4, 1203387, 9185549},
	{"ii_incast_mlx_8to1_1mb", 5, 1219111, 9529070},
	{"all_at_once", 1, 498898, 4511686}, // marks, pauses, losses, priorities, two paths
	{"all_at_once", 2, 492459, 4659956},
	{"all_at_once", 3, 489858, 4340608},
	{"hpcc_ls", 1, 184756, 1497059},
	{"hot_pfc", 1, 1126998, 33290180},     // no marks, so only with EventOrderAlways
	{"hpcc_resent", 1, 45420, 64390},      // frames sent again while the first ones still wait
	{"tied_starts", 5, 1744010, 44080396}, // flows that start when a frame ends at their host, marks, pauses
}

// TestExact: what is drawn is drawn as in the peer, and what happens at one instant
// happens in its order, so that each flow ends at the same ns.
func TestExact(t *testing.T) {
	for _, c := range exact {
		x, sum := load(t, c.name), int64(0)
		x.Config.Seed, x.Config.EventOrderAlways = c.run, c.name == "hot_pfc"
		r := run(t, x)
		for _, f := range r.Flows {
			sum += int64(f.End-f.Start) / 1000
		}
		if span(r) != c.makespan || sum != c.sum {
			t.Errorf("%s, run %d: makespan %d ns and %d of all flows, reference %d and %d", c.name, c.run,
				span(r), sum, c.makespan, c.sum)
		}
	}
}

// TestReference compares with the HPCC simulator: makespans are equal.
func TestReference(t *testing.T) {
	for _, c := range reference {
		t.Run(c.name, func(t *testing.T) {
			x := load(t, c.name)
			r := run(t, x)
			if got := span(r); got != c.makespan {
				t.Errorf("makespan %d ns, reference %d", got, c.makespan)
			}
			first := int64(1 << 62)
			for _, f := range r.Flows {
				first = min(first, int64(f.End-f.Start)/1000)
			}
			if !within(first, c.first, 0.005) {
				t.Errorf("shortest flow %d ns, reference %d", first, c.first)
			}
			if c.peak > 0 && !within(r.PeakQueue, c.peak, 0.15) {
				t.Errorf("deepest queue %d bytes, reference %d", r.PeakQueue, c.peak)
			}
			if (r.Pauses > 0) != (c.xof > 0) {
				t.Errorf("%d pause frames, reference %d", r.Pauses, c.xof)
			}
		})
	}
}

// span is the makespan in ns.
func span(r *packet.Result) int64 {
	first, last := int64(1<<62), int64(0)
	for _, f := range r.Flows {
		first, last = min(first, int64(f.Start)), max(last, int64(f.End))
	}
	return (last - first) / 1000
}

// TestVictim is the head-of-line blocking of PACKETS: a flow that crosses a
// trunk shared with an incast takes 3.31 ms under PFC, 2 % allowed.
func TestVictim(t *testing.T) {
	r := run(t, load(t, "iv_victim_pfc"))
	if v := int64(r.Flows[4].End-r.Flows[4].Start) / 1000; !within(v, 3_310_000, 0.02) {
		t.Errorf("the victim took %d ns", v)
	}
}

// TestSeedsRepeat: equal seeds give equal results, other seeds others.
func TestSeedsRepeat(t *testing.T) {
	x := load(t, "ii_incast_mlx_8to1_1mb")
	a, b := run(t, x), run(t, x)
	if span(a) != span(b) || a.Marks != b.Marks {
		t.Errorf("seed 1 twice: %d and %d ns", span(a), span(b))
	}
	x.Config.Seed = 2
	if span(run(t, x)) == span(a) {
		t.Errorf("seeds 1 and 2 give the same %d ns", span(a))
	}
}

// TestErrorsHavePlaces: each wrong input is refused with file, line and column.
func TestErrorsHavePlaces(t *testing.T) {
	base := "TOPOLOGY_FILE topo.txt\nFLOW_FILE flow.txt\nENABLE_QCN 0\nHAS_WIN 0\n" +
		"L2_ACK_INTERVAL 1\nRP_TIMER 300\n"
	topo, flow := "3 1 2\n2\n0 2 100Gbps 1000ns 0\n1 2 100Gbps 1000ns 0\n", "1\n0 1 3 100 1000 2.0\n"
	for _, c := range []struct{ config, topo, flow, want string }{
		{base + "CC_MODE x\n", topo, flow,
			"c/config.txt:7:9: CC_MODE: \"x\": write a whole number from 0 to 10"},
		{base + "RATE_AI 5parsecs\n", topo, flow, "c/config.txt:7:9: RATE_AI: \"5parsecs\" is not a rate"},
		{"FLOW_FILE flow.txt\n", topo, flow, "c/config.txt:2:1: no TOPOLOGY_FILE"},
		{base, "3 1\n", flow, "c/topo.txt:2:1: the file ends where the number of links is expected"},
		{base, strings.Replace(topo, "1 2 100", "1 9 100", 1), flow,
			"c/topo.txt:4:3: the second node of a link: \"9\": write a whole number from 0 to 2"},
		{base, strings.Replace(topo, "1000ns", "0ns", 1), flow,
			"c/topo.txt:3:13: a delay of 0ns: write at least 1ns"},
		{base, "3 1 3\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n0 2 100Gbps 1us 0\n", flow,
			"c/topo.txt:5:1: host 0 has a second link"},
		{base, topo, "1\n0 2 3 100 1000 2.0\n",
			"c/flow.txt:2:3: the destination of a flow: node 2 is a switch: name a host"},
		{base, topo, "1\n0 0 3 100 1000 2.0\n", "c/flow.txt:2:1: host 0 sends to itself"},
		{base, topo, "1\n0 1 3 100 1000 2.0 1 0\n", "c/flow.txt:2:22: flow 0 waits for itself"},
		{base, topo, "2\n0 1 3 100 1000 2.0\n",
			"c/flow.txt:3:1: the file ends where the source of a flow is expected"},
		{strings.Replace(base, "L2_ACK_INTERVAL 1\n", "", 1), topo, flow,
			"c/config.txt:6:1: L2_ACK_INTERVAL 0 sends no acknowledgements"},
		{base + "L2_CHUNK_SIZE 0\nL2_ACK_INTERVAL 8000\n", topo, flow,
			"c/config.txt:7:15: L2_CHUNK_SIZE 0 with L2_ACK_INTERVAL 8000"},
		{base + "L2_BACK_TO_ZERO 1\n", topo, flow, "c/config.txt:8:1: L2_BACK_TO_ZERO with L2_CHUNK_SIZE " +
			"0: write a multiple of PACKET_PAYLOAD_SIZE, 1000"},
		{base + "L2_BACK_TO_ZERO 1\nL2_CHUNK_SIZE 3500\n", topo, flow,
			"c/config.txt:8:15: L2_BACK_TO_ZERO with L2_CHUNK_SIZE 3500"},
		{strings.Replace(base, "RP_TIMER 300\n", "", 1), topo, flow, "c/config.txt:6:1: no RP_TIMER"},
		{base + "BUFFER_SIZE 1\n", strings.ReplaceAll(topo, "100Gbps 1000ns", "400Gbps 5000000ps"), flow,
			"c/config.txt:7:13: BUFFER_SIZE 1: the headroom and reserve of the ports of switch 2 take " +
				"1508192 bytes: write at least 2 MB"},
		{base + "BUFFER_SIZE 1\n", strings.ReplaceAll(topo, "1000ns", "1s"), flow,
			"c/config.txt:7:13: BUFFER_SIZE 1: the headroom and reserve of the ports of switch 2 take " +
				"75000008192 bytes: no BUFFER_SIZE up to 4095 MB is enough"},
		{strings.Replace(base, "ENABLE_QCN 0", "ENABLE_QCN 1", 1), topo, flow,
			"c/topo.txt:3:1: no marking for links of 100000000000 bit/s"},
	} {
		files := map[string]string{"c/config.txt": c.config, "c/topo.txt": c.topo, "c/flow.txt": c.flow}
		_, err := LoadNS3("c/config.txt", func(name string) ([]byte, error) {
			return []byte(files[name]),
				nil
		})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

// TestPintIsUnsupported: HPCC-PINT is refused as not simulated, with its place and the controls that are.
func TestPintIsUnsupported(t *testing.T) {
	config, err := os.ReadFile("testdata/hpcc_ls/config.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, err = LoadNS3("c/config.txt", func(string) ([]byte, error) {
		return regexp.MustCompile(`CC_MODE \d+`).ReplaceAll(config, []byte("CC_MODE 10")), nil
	})
	if !errors.Is(err, errors.ErrUnsupported) ||
		!regexp.MustCompile(`^c/config\.txt:\d+:9: HPCC-PINT .* write 3`).MatchString(err.Error()) {
		t.Error(err)
	}
}

// TestLinkDown: links that cannot go down are refused with their place.
func TestLinkDown(t *testing.T) {
	config, err := os.ReadFile("testdata/linkdown/config.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{{"50 8 9", "no link joins nodes 8 and 9"},
		{"50 0 8", "leaves it without a path"}, {"x 8 10", "LINK_DOWN"},
		{"50 4294967304 10", "the first node of LINK_DOWN"}} {
		_, err := LoadNS3("testdata/linkdown/config.txt", func(name string) ([]byte, error) {
			if strings.HasSuffix(name, "config.txt") {
				return bytes.Replace(config, []byte("LINK_DOWN 50 8 10"), []byte("LINK_DOWN "+c[0]), 1), nil
			}
			return os.ReadFile(name)
		})
		if place := (*fail.FileError)(nil); !errors.As(err, &place) || place.Line == 0 ||
			!strings.Contains(err.Error(), c[1]) {
			t.Errorf("LINK_DOWN %s: %v", c[0], err)
		}
	}
}

func FuzzLoad(f *testing.F) {
	dirs, _ := filepath.Glob("testdata/i*")
	for _, d := range dirs {
		var parts [3][]byte
		for i, n := range []string{"config.txt", "topo.txt", "flow.txt"} {
			parts[i], _ = os.ReadFile(filepath.Join(d, n))
		}
		f.Add(parts[0], parts[1], parts[2])
	}
	f.Fuzz(func(t *testing.T, config, topo, flow []byte) {
		if bytes.Contains(topo, []byte("000000")) || len(topo) > 1<<14 {
			return // a million nodes only take memory
		}
		n := 0
		x, err := LoadNS3("config.txt", func(string) ([]byte, error) {
			n++
			return [][]byte{config, topo, flow}[n-1], nil
		})
		if (x == nil) == (err == nil) {
			t.Fatalf("scenario %v and error %v", x, err)
		}
		if err == nil && len(x.Flows) < 10 {
			x.Config.Stop = 1
			if _, err := packet.Run(&x.Network, x.Flows, &x.Config); err != nil {
				_ = fmt.Sprint(err)
			}
		}
	})
}

// Benchmarks: data-packet-hops/s on one core, with PFC, ECN, DCQCN and an
// acknowledgement for each frame.
func BenchmarkReference(b *testing.B) {
	for _, name := range []string{"ii_incast_pfc_8to1_1mb", "ii_incast_mlx_8to1_1mb", "iv_victim_pfc",
		"vi_perm_ls11_ecmp_pfc", "vii_a2a_16_pfc"} {
		b.Run(name, func(b *testing.B) {
			x := load(b, name)
			var hops int64
			for b.Loop() {
				hops += run(b, x).DataPacketHops
			}
			b.ReportMetric(float64(hops)/b.Elapsed().Seconds()/1e6, "Mhops/s")
		})
	}
}
