package packetrun

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/simccl/simccl/packet"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/topo/builtin"
	layout "github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/units"
)

// These are real networks that papers and vendors measured (docs/results/PACKETS.md has
// the sources), each as a small scenario with the same mechanism. None publishes all
// parameters, so a row has a sign and a band, set before the scenario was run.

const us, ms = units.Microsecond, units.Millisecond

// fabric is leaves of hosts, joined to each spine.
func fabric(leaves, per, spines int, rate int64) *packet.Network {
	h := leaves * per
	n := &packet.Network{Nodes: h + leaves + spines, Switch: make([]bool, h+leaves+spines)}
	for v := h; v < n.Nodes; v++ {
		n.Switch[v] = true
	}
	for i := range h {
		n.Cables = append(n.Cables, packet.Cable{A: int32(i), B: int32(h + i/per), Rate: rate, Delay: us})
	}
	for l := range leaves {
		for s := range spines {
			n.Cables = append(n.Cables, packet.Cable{A: int32(h + l), B: int32(h + leaves + s), Rate: rate,
				Delay: us})
		}
	}
	return n
}

// dumbbell is hosts on two switches that a trunk joins.
func dumbbell(left, right int, rate int64) *packet.Network {
	h := left + right
	n := &packet.Network{Nodes: h + 2, Switch: make([]bool, h+2)}
	n.Switch[h], n.Switch[h+1] = true, true
	for i := range h {
		at := h
		if i >= left {
			at = h + 1
		}
		n.Cables = append(n.Cables, packet.Cable{A: int32(i), B: int32(at), Rate: rate, Delay: us})
	}
	n.Cables = append(n.Cables, packet.Cable{A: int32(h), B: int32(h + 1), Rate: rate, Delay: us})
	return n
}

// setup is RoCEv2 on Ethernet with PFC, and marks in proportion to the rate.
func setup(t *testing.T, cc string, rate int64) *packet.Config {
	t.Helper()
	c := &packet.Config{Seed: 1, Frames: packet.Frames{Payload: 4096, Header: roceHeader, Ack: roceAck,
		Pause: rocePause}, AckFrom: 1, NackGap: 500 * us,
		// 802.1Qbb: two frames, two cables, two responses
		Buffer: packet.Buffer{Bytes: 32 << 20, Reserve: 4 << 10, ResumeOffset: 3 << 10, Shift: 3,
			HeadroomDelays: 8}}
	var err error
	if c.CC, err = packet.Preset(cc, rate); err != nil {
		t.Fatal(err)
	}
	if cc == "none" || cc == "swift" {
		return c
	}
	c.Marking = []packet.Marking{{Rate: rate, KMin: 4 * rate / 1e6, KMax: 16 * rate / 1e6, PMax: 0.2}}
	if cc == "dcqcn:paper" {
		c.Marking = []packet.Marking{{Rate: rate, KMin: 5e3, KMax: 200e3, PMax: 0.01}}
	}
	return c
}

// flow is one from a host to another, with a start in us.
func flow(src, dst int, bytes int64, start float64) packet.Flow {
	return packet.Flow{Src: int32(src), Dst: int32(dst), Bytes: bytes, Priority: 3, DstPort: 100,
		Start: units.FromMicros(start)}
}

// sim runs flows; the times are in us.
func sim(t *testing.T, n *packet.Network, flows []packet.Flow, c *packet.Config) (fct []float64,
	makespan float64, r *packet.Result) {
	t.Helper()
	r, err := packet.Run(n, flows, c)
	if err != nil || r.Stall != nil {
		t.Fatalf("%v, %v", err, r.Stall)
	}
	for _, f := range r.Flows {
		fct = append(fct, (f.End - f.Start).Micros())
		makespan = max(makespan, (f.End - flows[0].Start).Micros())
	}
	return fct, makespan, r
}

// shifted sends from each host to one some hosts on.
func shifted(hosts, by int, bytes int64) (flows []packet.Flow) {
	for i := range hosts {
		flows = append(flows, flow(i, (i+by)%hosts, bytes, 0))
	}
	return flows
}

// used is the share of a line that payload of one flow needs in a time.
func used(bytes int64, rate int64, micros float64) float64 {
	return float64(bytes) * (4096 + roceHeader) / 4096 * 8 / float64(rate) * 1e6 / micros
}

// quantile of a list.
func quantile(x []float64, q float64) float64 {
	s := slices.Sorted(slices.Values(x))
	return s[min(len(s)-1, int(q*float64(len(s))))]
}

// verdict is a figure and its band.
type verdict struct {
	source, what, theirs string
	ours, low, high      float64
	sign                 bool // the direction is theirs
}

func (v *verdict) row() string {
	hit := "hit"
	switch {
	case !v.sign:
		hit = "missed"
	case !(v.ours >= v.low && v.ours <= v.high):
		hit = "sign hit, band missed"
	}
	return fmt.Sprintf("| %s | %s | %s | %.3g | %.3g to %.3g | %s |\n", v.source, v.what, v.theirs, v.ours,
		v.low, v.high, hit)
}

// parkingLot is four senders to one, three of them behind one port: PFC shares
// by port, DCQCN by flow.
func parkingLot(t *testing.T) []verdict {
	n := dumbbell(3, 2, 40e9)
	share := map[string]float64{}
	for _, cc := range []string{"none", "dcqcn:paper"} {
		c := setup(t, cc, 40e9)
		c.Buffer.Bytes = 4 << 20
		flows := []packet.Flow{flow(3, 4, 20e6, 0)}
		for i := range 3 {
			flows = append(flows, flow(i, 4, 20e6, 0))
		}
		fct, _, _ := sim(t, n, flows, c)
		share[cc] = quantile(fct[1:], 0.5) / fct[0]
	}
	const src = "DCQCN, SIGCOMM'15"
	return []verdict{
		{src, "PFC alone: rate of the sender on a port of its own ÷ of those behind a shared one, at their " +
			"ends", "20 ÷ 7.5 Gb/s, at least 2", share["none"], 1.4, 4, share["none"] > 1.1},
		{src, "the same with DCQCN", "all near 10 Gb/s: 1", share["dcqcn:paper"], 0.8, 1.3,
			share["dcqcn:paper"] < share["none"]}}
}

// victim is a flow that shares a trunk with an incast to elsewhere.
func victimRow(t *testing.T) []verdict {
	n := dumbbell(2, 5, 40e9)
	slow := map[string]float64{}
	for _, cc := range []string{"none", "dcqcn:paper"} {
		c := setup(t, cc, 40e9)
		c.Buffer.Bytes = 4 << 20
		alone, _, _ := sim(t, n, []packet.Flow{flow(1, 6, 10e6, 0)}, c)
		flows := []packet.Flow{flow(1, 6, 10e6, 0), flow(0, 5, 20e6, 0), flow(2, 5, 20e6, 0),
			flow(3, 5, 20e6, 0), flow(4, 5, 20e6, 0)}
		fct, _, _ := sim(t, n, flows, c)
		slow[cc] = fct[0] / alone[0]
	}
	const src = "DCQCN, SIGCOMM'15"
	return []verdict{{src, "PFC alone: a victim's time ÷ without the incast",
		"20 to 10, then 4.5 Gb/s: 2 to 4.4", slow["none"], 2, 4.4, slow["none"] > 1.2},
		{src, "the same with DCQCN", "not affected: 1", slow["dcqcn:paper"], 0.95, 1.3,
			slow["dcqcn:paper"] < slow["none"]}}
}

// incasts use the line with the paper's constants, and do not pause. The paper's flows
// do not end: ours are looked at in the second half of the time until the first of them does.
func incasts(t *testing.T) []verdict {
	least, pauses := 1.0, [2]int64{}
	for _, k := range []int{2, 8, 16} {
		var flows []packet.Flow
		for i := range k {
			flows = append(flows, flow(i, 16, 200e6/int64(k), 0))
		}
		for i, cc := range []string{"none", "dcqcn:paper"} {
			c := setup(t, cc, 40e9)
			c.Buffer.Bytes, c.Frames.Payload = 12<<20, 1024 // Trident II, frames of 1500 bytes
			fct, _, r := sim(t, fabric(1, 17, 1, 40e9), flows, c)
			if pauses[i] += r.Pauses; i == 1 {
				sent, until := [2]float64{}, [2]float64{quantile(fct, 0) / 2, quantile(fct, 0)}
				for half, us := range until {
					c.Stop = units.FromMicros(us)
					r, err := packet.Run(fabric(1, 17, 1, 40e9), flows, c)
					if err != nil {
						t.Fatal(err)
					}
					// over two links each
					sent[half] = float64(r.DataPacketHops) / 2 * 8 * float64(c.Frames.Payload+c.Frames.Header)
				}
				least = min(least, (sent[1]-sent[0])/40e9/(until[1]-until[0])*1e6)
			}
		}
	}
	const src = "DCQCN, SIGCOMM'15"
	return []verdict{{src, "incast of 2, 8, 16 to 1 with the paper's constants: least use of the line in " +
		"the second half of the time that all send", "39 of 40 Gb/s: 0.97", least, 0.97, 1, least > 0.9},
		{src, "pauses with DCQCN ÷ with PFC alone", "6e6 to 3e2: 5e-5",
			float64(pauses[1]) / float64(pauses[0]), 0, 1e-3, pauses[1] < pauses[0]}}
}

// shortFlows cross long ones: HPCC keeps queues short.
func shortFlows(t *testing.T) []verdict {
	n := fabric(1, 10, 1, 100e9)
	p95, peak := map[string]float64{}, map[string]float64{}
	for _, cc := range []string{"dcqcn:ns3", "hpcc"} {
		c := setup(t, "dcqcn:ns3", 100e9)
		if cc == "hpcc" {
			c.Marking, c.Frames.Header = nil, roceHeader+42
			c.CC = packet.CC{Kind: packet.HPCC, MinRate: 100e6, AI: 40e6, HAI: 40e6, Window: 52000,
				BaseRTT: 4500 * units.Nanosecond, VarWindow: true, Utilisation: 0.95, Multi: 4,
				FastReact: true}
		}
		flows := []packet.Flow{}
		for i := range 4 {
			flows = append(flows, flow(i, 9, 8e6, 0))
		}
		for i := range 60 {
			flows = append(flows, flow(4+i%5, 9, 8e3, 100+30*float64(i)))
		}
		fct, _, r := sim(t, n, flows, c)
		p95[cc], peak[cc] = quantile(fct[4:], 0.95), float64(r.PeakQueue)
	}
	const src = "HPCC, SIGCOMM'19"
	q, f := peak["hpcc"]/peak["dcqcn:ns3"], p95["hpcc"]/p95["dcqcn:ns3"]
	return []verdict{{src, "deepest queue with HPCC ÷ with DCQCN", "near 0 ÷ hundreds of kB", q, 0, 0.3,
		q < 1},
		{src, "p95 of short flows with HPCC ÷ with DCQCN", "-95 %: 0.05", f, 0.02, 0.3, f < 1}}
}

// entropy is what more paths for a flow bring over hashing.
func entropy(t *testing.T) (all []verdict) {
	n, bytes := fabric(4, 8, 8, 100e9), int64(4e6)
	share := func(seed uint64, change func(c *packet.Config)) (median, worst float64, r *packet.Result) {
		c := setup(t, "none", 100e9)
		c.Repair = packet.Repair{Selective: true, Timeout: 4 * ms, Reorder: packet.Overtaken}
		change(c)
		flows := shifted(32, 11, bytes)
		for i := range flows {
			flows[i].DstPort = uint16(100 + seed)
		}
		fct, end, r := sim(t, n, flows, c)
		return used(bytes, 100e9, quantile(fct, 0.5)), used(bytes, 100e9, end), r
	}
	const seeds = 5
	var median, worst, qps, adaptive, low, high float64
	low = 1
	drops := int64(0)
	for s := range uint64(seeds) {
		m, w, r := share(s, func(*packet.Config) {})
		median, worst, drops = median+m/seeds, worst+w/seeds, drops+r.Drops
		low, high = min(low, w), max(high, m)
		_, w, _ = share(s, func(c *packet.Config) { c.Paths = 16 })
		qps += w / seeds
		_, w, _ = share(s, func(c *packet.Config) {
			c.Routing = packet.Routing{Balance: packet.PerPacket, Quantum: 8192}
		})
		adaptive += w / seeds
	}
	return []verdict{
		{"Meta, SIGCOMM'24", "16 QPs with hashes of their own ÷ 1, slowest flow of a permutation over 1:1",
			"up to +40 %: 1.4", qps / worst, 1.1, 3, qps > worst},
		{"Meta, SIGCOMM'24", "PFC alone at that load: frames dropped", "stable for a year: 0", float64(drops),
			0, 0, true},
		{"NVIDIA Spectrum-X (V)", "plain Ethernet: median flow of a permutation by hash", "0.60", median,
			0.45, 0.75, median < adaptive},
		{"NVIDIA Spectrum-X (V)", "adaptive routing by frame: slowest flow", "0.95", adaptive, 0.88, 1,
			adaptive > median},
		{"STrack, 2024 (simulated)", "spray over 16 paths: time ÷ by hash", "up to -27.4 %: 0.73",
			worst / qps, 0.3, 0.95, worst < qps},
		{"Meta, GenAI infrastructure, 2024", "least use of the line by hash, to the best median",
			"0.1 to 0.9", low, 0.1, 0.9, high < 0.95},
	}
}

// nccl is what the report of Asterfusion has: NCCL on two nodes of eight GPUs, each node on a leaf, as many
// spines as NICs. Its messages have gaps, where the flows of entropy have none.
func nccl(t *testing.T) []verdict {
	net, err := layout.Generate(layout.Layout{Kind: "leaf-spine", Hosts: 2, Nets: 8, Gbit: 400, PerLeaf: 1,
		Oversub: 1, Latency: 0.3})
	if err != nil {
		t.Fatal(err)
	}
	time := func(seed uint64, fabric, balance string, env map[string]string) float64 {
		return operation(t, net, "alltoall", "64M", 2, seed, scenario.Network{Fabric: fabric, Model: "packet",
			Balance: balance}, env)
	}
	const seeds = 3
	var hashed, split, flowlets float64
	for seed := uint64(1); seed <= seeds; seed++ {
		one := time(seed, "", "", nil)
		share := func(balance string, env map[string]string) float64 {
			return min(1, one/time(seed, "net.json", balance, env)) / seeds
		}
		hashed += share("", nil)
		split += share("", map[string]string{"NCCL_IB_QPS_PER_CONNECTION": "4",
			"NCCL_IB_SPLIT_DATA_ON_QPS": "1"})
		flowlets += share("flowlet", nil)
	}
	const src, what = "Asterfusion, 2025 (V)",
		"NCCL's alltoall on 2 x 8 GPUs over leaf-spine, share of one switch's bandwidth: "
	return []verdict{{src, what + "4 queue pairs, messages split", "0.88, by flow 0.845", split, 0.75, 1,
		split > hashed},
		{src, what + "flowlets", "0.97", flowlets, 0.9, 1, flowlets > hashed}}
}

// operation is the time in us of one on nodes of eight GPUs; net is the network net.json.
func operation(t *testing.T, net *layout.Network, op, size string, nodes int, seed uint64,
	how scenario.Network, env map[string]string) float64 {
	t.Helper()
	s := scenario.Spec{Seed: seed, Workload: scenario.Workload{Op: op, Sizes: []string{size}}}
	s.Machine.Nodes, s.NCCL.Env = []scenario.Nodes{{Topo: "a.xml", Count: nodes}}, env
	s.Network, s.Engine.NoProof = how, true
	r, err := scenario.Run(context.Background(), s,
		scenario.Options{Files: fstest.MapFS{"a.xml": {Data: builtin.DGXH100()},
			"net.json": {Data: net.Format()}}})
	if err != nil {
		t.Fatal(err)
	}
	return r.Rows[0].Out.Time.Micros()
}

// reduced is all_reduce by rings on eight nodes over leaves of two nodes, hashed: with the firmware's
// defaults, with ByteDance's settings, and beside a network in which all nodes meet in one
// leaf of each of two planes.
func reduced(t *testing.T) []verdict {
	layouts := layout.Layout{Kind: "leaf-spine", Hosts: 8, Nets: 8, Gbit: 400, PerLeaf: 2, Oversub: 1,
		Latency: 0.3}
	value := func(x float64) *float64 { return &x }
	const seeds = 3
	var plain, tuned, clos, planes float64
	for seed := uint64(1); seed <= seeds; seed++ {
		time := func(fabric string, p *layout.Packets) float64 {
			net, err := layout.Generate(layouts)
			if err != nil {
				t.Fatal(err)
			}
			net.Packets = p
			return operation(t, net, "all_reduce", "1G", 8, seed, scenario.Network{Fabric: fabric,
				Model: "packet"}, map[string]string{"NCCL_ALGO": "Ring"}) / seeds
		}
		plain += time("net.json", &layout.Packets{CC: "dcqcn:cx7"})
		tuned += time("net.json", &layout.Packets{CC: "dcqcn:cx7", DCQCN: &layout.DCQCN{TimeReset: value(60),
			AI: value(20), CNPs: value(2), MinDecFac: value(90)}})
		clos += time("net.json", &layout.Packets{Preset: "hpn"})
		planes += time("hpn", nil)
	}
	d, h := tuned/plain, planes/clos
	return []verdict{
		{"Barre, ATC'25",
			"NCCL's all_reduce of 1 GiB by rings on 8 x 8 GPUs, hashed leaf-spine: DCQCN tuned ÷ defaults",
			"1,024 GPUs, +19.5 %: 0.84", d, 0.6, 0.97, d < 1},
		{"Alibaba HPN, SIGCOMM'24",
			"the same on two planes, all nodes on one leaf of each ÷ hashed leaf-spine",
			"448 GPUs, +59 %: 0.63", h, 0.35, 0.95, h < 1}}
}

// lostSpine is a permutation with a tenth of the spines dead.
func lostSpine(t *testing.T) []verdict {
	ends := [2]float64{}
	for k := range ends {
		n := fabric(4, 10, 10, 100e9)
		c := setup(t, "none", 100e9)
		c.Repair, c.Routing = packet.Repair{Selective: true, Timeout: 4 * ms, Reorder: packet.Overtaken},
			packet.Routing{Balance: packet.PerPacket, Quantum: 8192}
		if k == 1 {
			n.Cables = slices.DeleteFunc(n.Cables, func(c packet.Cable) bool {
				return c.B == int32(n.Nodes-1)
			})
		}
		_, ends[k], _ = sim(t, n, shifted(40, 13, 2e6), c)
	}
	v := ends[1] / ends[0]
	return []verdict{{"Spectrum-X multiplane, 2026", "10 % of links dead, adaptive: time ÷ without",
		"bandwidth in proportion: 1.11", v, 1, 1.2, v >= 1}}
}

// losses cost less with selective repeat; sprayed, one bad link touches all.
func losses(t *testing.T) []verdict {
	n := dumbbell(1, 1, 200e9)
	goodput := map[bool]float64{}
	for _, selective := range []bool{false, true} {
		for s := range uint64(5) {
			c := setup(t, "none", 200e9)
			c.Seed, c.Repair = s, packet.Repair{Selective: selective, Timeout: ms}
			n.Cables[2].Loss = 0.002
			_, end, _ := sim(t, n, []packet.Flow{flow(0, 1, 16e6, 0)}, c)
			goodput[selective] += used(16e6, 200e9, end) / 5
		}
	}
	touched := map[packet.Balance]float64{}
	for _, b := range []packet.Balance{packet.Hashed, packet.PerPacket} {
		n := fabric(4, 8, 8, 100e9)
		c := setup(t, "none", 100e9)
		c.Repair, c.Routing.Balance = packet.Repair{Selective: true, Timeout: 200 * us, Reorder: 4096}, b
		flows := shifted(32, 11, 2e6)
		well, _, _ := sim(t, n, flows, c)
		n.Cables[32].Loss = 0.01
		fct, _, _ := sim(t, n, flows, c)
		for i := range fct {
			if fct[i] > 1.05*well[i] {
				touched[b]++
			}
		}
	}
	v, w := goodput[true]/goodput[false], touched[packet.PerPacket]/max(1, touched[packet.Hashed])
	return []verdict{
		{"Falcon, SIGCOMM'25", "0.2 % of frames lost, 200 Gb/s: goodput with selective repeat ÷ go-back-N",
			"up to +65 %: 1.65", v, 1.05, 2.5, v > 1},
		{"SprayCheck, 2026", "flows that 1 % loss on one link slows by 5 %: adaptive ÷ by hash",
			"visible in all", w, 1.5, 32, w > 1}}
}

// tuned is DCQCN with the firmware's defaults and with ByteDance's settings.
func tuned(t *testing.T) []verdict {
	end := map[string]float64{}
	for _, set := range []string{"default", "tuned"} {
		c := setup(t, "dcqcn:cx7", 400e9)
		if set == "tuned" {
			c.CC.IncreasePeriod, c.CC.AI, c.CC.CNPGap, c.CC.MostCut = 60*us, 20e6, 2*us, 0.1
		}
		var flows []packet.Flow
		for i := range 4 {
			flows = append(flows, flow(i, 4, 60e6, 500*float64(i)))
		}
		for s := range uint64(3) {
			c.Seed = s
			_, e, _ := sim(t, fabric(1, 5, 1, 400e9), flows, c)
			end[set] += e / 3
		}
	}
	d, u := end["tuned"]/end["default"], used(240e6, 400e9, end["tuned"])
	const src = "Barre, ATC'25"
	return []verdict{
		{src, "400 G, one switch, 4 clients join one by one: DCQCN's defaults ÷ tuned, mean rate",
			"0.84 (AllReduce +19.5 %)", d, 0.6, 0.95, d < 1},
		{src, "use of the line, tuned", "near full: 1", u, 0.9, 1, u > 0.7}}
}

// far is two flows over 500 km.
func far(t *testing.T) []verdict {
	end := map[string]float64{}
	for _, set := range []string{"default", "tuned"} {
		n := dumbbell(2, 1, 100e9)
		n.Cables[3].Delay = 2500 * us
		c := setup(t, "dcqcn:cx7", 100e9)
		c.Buffer = packet.Buffer{Bytes: 1 << 30, Reserve: 4 << 10, ResumeOffset: 3 << 10, HeadroomDelays: 3}
		if set == "tuned" {
			c.CC.IncreasePeriod, c.CC.MostCut, c.CC.ClampTarget = 6*ms, 0.05, true
		}
		_, end[set], _ = sim(t, n, []packet.Flow{flow(0, 2, 600e6, 0), flow(1, 2, 600e6, 0)}, c)
	}
	v := end["tuned"] / end["default"]
	return []verdict{
		{"Juniper, HPE, 2025",
			"500 km, 2 to 1 at 100 Gb/s: time with time_reset 6 ms, cuts of 5 %, clamp ÷ default",
			"needed: below 1", v, 0.2, 0.95, v < 1}}
}

// TestMeasuredPage runs the rows, and writes their table with SIMCCL_UPDATE=1.
// Only rows on which the page says "hit" may not be lost.
func TestMeasuredPage(t *testing.T) {
	if testing.Short() {
		t.Skip("1.5 million frames; without -short")
	}
	var all []verdict
	for _, f := range []func(*testing.T) []verdict{parkingLot, victimRow, incasts, shortFlows, tuned, far,
		entropy, nccl, reduced, lostSpine, losses} {
		all = append(all, f(t)...)
	}
	var b strings.Builder
	b.WriteString("| source | what | theirs | ours | band | verdict |\n|---|---|---|---|---|---|\n")
	for i := range all {
		b.WriteString(all[i].row())
		if !all[i].sign {
			t.Logf("%s: %s: %.3g", all[i].source, all[i].what, all[i].ours)
		}
	}
	rewrite(t, "<!-- measured -->\n", b.String())
}
