package decision

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/search/graphxml"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/tuning"
)

// Of returns the whole decision as JSON, ending with a line feed; settings are the variables in force, name
// and value. warn, if not nil, reports a graph file that cannot be written.
func Of(c *comm.Comm, cluster *fabric.Cluster, settings [][2]string) (text []byte, warn, err error) {
	host := cluster.Host(0)
	g := Given{Nodes: cluster.NHosts(), GPUsPerNode: host.NRanks(), Env: map[string]string{},
		Notes: []string{}}
	for _, row := range settings {
		g.Env[row[0]] = row[1]
	}
	if host.Dump != nil {
		g.TopoXML = string(topoxml.Write(host.Dump))
	}
	graphs, err := graphxml.Write(host.Systems[0], c.Domains[0].Graphs)
	if err != nil {
		warn = fmt.Errorf("no graph file: %w", err)
	}
	g.GraphXML = string(graphs)
	doc, err := New(c, g)
	if err != nil {
		return nil, warn, err
	}
	text, err = doc.Encode()
	return append(bytes.TrimRight(text, "\n"), '\n'), warn, err
}

// Text returns the decision for people; name is the machine's.
func Text(c *comm.Comm, name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d ranks on %d nodes", name, c.NRanks, c.NNodes)
	if c.Multicast {
		b.WriteString(", NVLink multicast")
	}
	b.WriteString("\n\n")
	fmt.Fprintf(&b, "%-16s %8s %10s %10s %6s %6s %9s\n", "graph", "channels", "intra GB/s", "inter GB/s",
		"intra", "inter", "cross NIC")
	for _, g := range c.Domains[0].Graphs {
		if g == nil || g.NChannels == 0 {
			continue
		}
		fmt.Fprintf(&b, "%-16s %8d %10.1f %10.1f %6s %6s %9d\n", g.Name, g.NChannels, g.BWIntra, g.BWInter,
			g.TypeIntra, g.TypeInter, g.CrossNIC)
	}
	fmt.Fprintf(&b, "\nchannels %d, for collectives %d, NVLS %d, send/recv %d (%d a peer)\n\n",
		c.NChannels, c.CollChannels, c.NVLSChannels, c.P2PChannels, c.P2PChannelsPerPeer)
	if c.NRanks > 1 {
		choicesText(&b, c)
	}
	return b.String()
}

// choicesText lists the chosen algorithm and protocol by range of sizes.
func choicesText(b *strings.Builder, c *comm.Comm) {
	fmt.Fprintf(b, "%-14s %16s %16s  %s\n", "collective", "from bytes", "to bytes", "choice")
	for _, f := range coll.CollFuncs() {
		segs, err := c.Model.Segments(tuning.Op{Func: f, Type: coll.Float32}, 16<<30)
		if err != nil {
			fmt.Fprintf(b, "%-14s %s\n", f.TestName(), err)
			continue
		}
		for _, s := range segs {
			fmt.Fprintf(b, "%-14s %16d %16d  %s/%s\n", f.TestName(), s.From, s.To, s.Algo, s.Proto)
		}
	}
}

// GraphText lists the graphs of the first node, a line a channel.
func GraphText(c *comm.Comm) string {
	var b strings.Builder
	d := &c.Domains[0]
	name := map[uint64]string{} // NCCL's id of a net → its name
	for _, n := range d.System.Of(topo.NET) {
		name[d.System.Nodes[n].Ident] = d.System.Name(n)
	}
	gpu := map[int]string{} // local rank → its name
	for _, n := range d.System.Of(topo.GPU) {
		gpu[d.System.Nodes[n].GPU.Rank] = d.System.Name(n)
	}
	for _, g := range d.Graphs {
		if g == nil || g.NChannels == 0 {
			continue
		}
		fmt.Fprintf(&b, "%s: %d channels, %.1f/%.1f GB/s, type %s/%s, crossNic %d\n", g.Name, g.NChannels,
			g.BWIntra, g.BWInter, g.TypeIntra, g.TypeInter, g.CrossNIC)
		for c := range g.NChannels {
			line := []string{}
			if g.Inter[c] != [2]uint64{} {
				line = append(line, name[g.Inter[c][0]])
			}
			for _, r := range g.Intra[c] {
				line = append(line, gpu[r])
			}
			if g.Inter[c] != [2]uint64{} {
				line = append(line, name[g.Inter[c][1]])
			}
			fmt.Fprintf(&b, "%3d : %s\n", c, strings.Join(line, " "))
		}
	}
	return b.String()
}

// Cost is one cell of NCCL's cost table.
type Cost struct {
	Func          string  `json:"collective"`
	Algo          string  `json:"algo"`
	Proto         string  `json:"proto"`
	LatencyUs     float32 `json:"latency_us"`
	BandwidthGBps float32 `json:"bandwidth_GBs"` // 0: off
}

// Costs returns the cost table: every collective, algorithm and protocol.
func Costs(m *tuning.Model) []Cost {
	rows := []Cost{}
	for _, f := range coll.CollFuncs() {
		for _, al := range coll.Algorithms() {
			for _, pr := range coll.Protocols() {
				rows = append(rows, Cost{f.TestName(), al.String(), pr.String(), m.Latency[f][al][pr],
					m.Bandwidth[f][al][pr]})
			}
		}
	}
	return rows
}

// CostText returns the cost table for people, latency and bandwidth by protocol.
func CostText(m *tuning.Model) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-14s %-14s", "latency/GB/s", "")
	for _, pr := range coll.Protocols() {
		fmt.Fprintf(&b, " %16s", pr)
	}
	for i, r := range Costs(m) {
		if i%int(coll.NumProtocols) == 0 {
			fmt.Fprintf(&b, "\n%-14s %-14s", r.Func, r.Algo)
		}
		fmt.Fprintf(&b, " %8.1f/%7.1f", r.LatencyUs, r.BandwidthGBps)
	}
	return b.String() + "\n"
}
