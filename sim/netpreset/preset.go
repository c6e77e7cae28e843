package netpreset

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/topo/fabric"
)

// Preset is a network by name.
type Preset struct {
	Name, What string
	Packets    fabric.Packets
	Routing    fabric.Routing
	Layout     string // kind of fabric.Layout that it is built as
	PerLeaf    int    // hosts of a leaf, or of a group of rails
	// Source says where its figures are from, member by member.
	Source string
}

func v(x float64) *float64 { return &x }

// simaiMarks are the thresholds of SimAI.conf by speed (aliyun/SimAI, KMIN_MAP and
// KMAX_MAP in kB, PMAX_MAP).
var simaiMarks = []fabric.Mark{
	{Gbit: 25, KMin: 100, KMax: 400, PMax: 0.2}, {Gbit: 50, KMin: 200, KMax: 800, PMax: 0.2},
	{Gbit: 100, KMin: 400, KMax: 1600, PMax: 0.2},
	{Gbit: 200, KMin: 300, KMax: 1200, PMax: 0.8}, {Gbit: 400, KMin: 800, KMax: 3200, PMax: 0.2},
}

// ethernet is what presets of RoCE have in common: PFC by dynamic thresholds of
// Choudhury and Hahne, alpha 1/8 of ingress queues (ns-3 of HPCC, SONiC's common
// range 1/8 to 1/2), headroom of three delays of the cable and what is behind it.
func ethernet(p fabric.Packets) fabric.Packets {
	p.Link, p.Repair, p.Balance = "ethernet", "gbn", "queue-pair"
	p.MTU, p.AckEach, p.Hop = v(4096), v(4), v(0.3)
	p.Reserve, p.Resume, p.Delays = v(4), v(3), v(3)
	if p.Alpha == nil {
		p.Alpha = v(1.0 / 8)
	}
	return p
}

// adaptive lets each frame choose its route among ports whose queues differ by less
// than two frames.
func adaptive(p fabric.Packets) fabric.Packets {
	p.Balance, p.Repair, p.Quantum, p.AckEach = "packet", "sr", v(8), v(1)
	return p
}

// trimmed is adaptive, with switches that cut frames in place of pauses.
func trimmed(p fabric.Packets) fabric.Packets {
	p = adaptive(p)
	p.Repair, p.Trim = "trim", v(0)
	return p
}

// Default is the preset of a fabric that names none.
const Default = "dcqcn"

// Presets lists them.
func Presets() []Preset {
	return []Preset{
		{Name: "dcqcn",
			What:    "Broadcom switches (Arista 7060X5), DCQCN with increases in proportion to the port",
			Routing: fabric.ECMP, Layout: "rail", PerLeaf: 32,
			Packets: ethernet(fabric.Packets{Buffer: v(113e3), CC: "dcqcn:ns3", Marks: simaiMarks}),
			Source: "buffer: Tomahawk 4, 113 MB, of Arista's 7060DX5 data sheet; marks: SimAI.conf; " +
				"congestion control: run.py of the HPCC simulator (ConnectX-7's defaults, dcqcn:cx7, rise " +
				"by 5 Mbit/s, which does not recover at 400 Gbit/s); routes: ECMP by 5-tuple"},
		{Name: "spectrum-x",
			What: "Spectrum-4 switches and BlueField-3: each frame by the shortest queue, put in order by " +
				"the NIC", Routing: fabric.ECMP, Layout: "rail", PerLeaf: 32,
			Packets: adaptive(ethernet(fabric.Packets{Buffer: v(160e3), CC: "swift",
				Marks: []fabric.Mark{}})),
			Source: "buffer: Spectrum-4, 160 MB shared; per-packet adaptive routing with reordering at " +
				"the receiver: NVIDIA's Spectrum-X white paper; its congestion control by telemetry is not " +
				"public: Swift's, by delay, is used in its place"},
		{Name: "meta",
			What:    "Meta's backend: PFC alone, deep buffers, the queue pair in ECMP's hash (SIGCOMM'24)",
			Routing: fabric.ECMP, Layout: "leaf-spine", PerLeaf: 2,
			Packets: ethernet(fabric.Packets{Buffer: v(16e6), CC: "none", Marks: []fabric.Mark{}}),
			Source: "no congestion control at 400 Gbit/s, enhanced ECMP: RDMA over Ethernet for " +
				"Distributed AI Training at Meta Scale, 5.2 and 5.3; buffer: Jericho 2c+, 16 GB behind the " +
				"CTSW"},
		{Name: "hpn", What: "Alibaba HPN: two planes, switches of 51.2 Tbit/s (SIGCOMM'24)",
			Routing: fabric.ECMP, Layout: "planes", PerLeaf: 64,
			Packets: ethernet(fabric.Packets{Buffer: v(165e3), CC: "dcqcn:ns3", Marks: simaiMarks}),
			Source: "two planes of 2 x 200 Gbit/s ports: Alibaba HPN, 4; buffer: Tomahawk 5, 165 MB; " +
				"marks: SimAI.conf; the paper's own congestion control is not public: run.py's DCQCN is " +
				"used in its place"},
		{Name: "ultra-ethernet", What: "Ultra Ethernet: NSCC, frames sprayed by the shortest queue, frames " +
			"without room cut to their headers", Routing: fabric.ECMP, Layout: "rail", PerLeaf: 32,
			Packets: trimmed(ethernet(fabric.Packets{Buffer: v(165e3), CC: "nscc", Marks: []fabric.Mark{}})),
			Source: "NSCC, queues of a bandwidth-delay product, marks from 0.2 to 0.8 of it: htsim of the " +
				"Ultra Ethernet Consortium; no PFC: its best-effort network; switches choose routes where " +
				"the consortium's hosts choose entropies"},
		{Name: "infiniband-ndr", What: "Quantum-2 and ConnectX-7 over InfiniBand NDR, forwarding tables",
			Routing: fabric.Static, Layout: "rail", PerLeaf: 32,
			Packets: fabric.Packets{Link: "infiniband", Repair: "gbn", Balance: "queue-pair", CC: "none",
				MTU: v(4096), AckEach: v(4), Hop: v(0.3), Credits: v(128), Buffer: v(113e3),
				Reserve: v(4), Resume: v(3), Delays: v(3), Alpha: v(1.0 / 8), Marks: []fabric.Mark{}},
			Source: "credits: 128 kB behind a link for each virtual lane in use, the low end of public " +
				"figures; no FECN and BECN, as shipped; routes by destination LID"},
	}
}

// find is a preset by name.
func find(name string) (*Preset, error) {
	var names []string
	all := Presets()
	for i := range all {
		if all[i].Name == name {
			return &all[i], nil
		}
		names = append(names, all[i].Name)
	}
	return nil, &fabric.PacketsError{Key: "preset", Problem: fmt.Sprintf("preset %q: write one of %s", name,
		strings.Join(names, ", "))}
}
