package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/decision"
)

// beside is what was last written beside real files; they are not part of the repository.
//
//go:embed beside.md
var beside string

// besides are machines by name beside public files of such machines, and why they differ.
var besides = []struct{ name, file, what, why string }{
	{"aws-p4d.24xlarge", "nvidia/aws-p4d-24xl.xml", "vendor's",
		"that file has no latency of EFA, ours the plugin's 75 us: table and 4 choices"},
	{"azure-nd96asr-v4", "nvidia/azure-ndv4.xml", "vendor's", ""},
	{"azure-nd96isr-h100-v5", "nvidia/azure-ndv5.xml", "vendor's", ""},
	{"azure-nd96isr-h200-v5", "nvidia/azure-ndv5.xml", "vendor's, of H100", ""},
	{"azure-nd40rs-v2", "nvidia/azure-ndv2.xml", "vendor's",
		"that file names PCI places without NVLinks; ours has the cube mesh"},
	{"azure-nc96ads-a100-v4", "nvidia/azure-ncv4.xml", "vendor's", "its NVLinks lead from a GPU to itself " +
		"and eth0 is on every NUMA node; ours bridges pairs and has eth0 once"},
	{"oci-bm.gpu.b4.8", "nvidia/oci-a100-b4-flattened.xml", "vendor's", "8 nets there, 16 ports here"},
	{"oci-bm.gpu.h100.8", "nvidia/oci-h100-bm.xml", "vendor's", "180,000 Mb/s a port there, 200,000 here"},
	{"gb300-nvl72", "nvidia/gb300-nvl72-1tray.xml", "dump",
		"that host has one bonded 100G NIC; ours are two trays of one NVLink domain, there two hosts"},
	{"vast-hgx-h200-8", "nvidia/vastai-hgx-h200x8-socket.xml", "dump", ""},
	{"dgx-spark", "nvidia/recon-gb10-dgx-spark.xml", "dump", ""},
	{"dgx-a100", "nvidia/recon-dgx-a100.xml", "reconstruction of published tables",
		"two of the nets there are storage ports, which no graph takes"},
	{"dgx-h100", "nvidia/recon-dgx-h100.xml", "reconstruction of published tables", ""},
	{"dgx-1v", "nvidia/dgx1v-v100x8.xml", "dump", "that host has 1 and 10 Gb/s Ethernet alone"},
	{"dgx-b200", "nvidia/modal-b200-vm.xml", "dump of a VM", "its 13 NICs of 100 to 400G hang off the CPUs"},
}

// writeBeside writes the table of machines beside the files of a folder.
func writeBeside(dir, file string) error {
	var b strings.Builder
	b.WriteString("| name | file | nodes | GPUs, NVLinks | nets | graphs | channels | table | choices | " +
		"why not all |\n|---|---|---:|---|---|---|---|---|---|---|\n")
	for _, p := range besides {
		for _, nodes := range []int{1, 2} {
			ours, err := decide(p.name, nodes, scenario.Options{})
			if err != nil {
				return err
			}
			theirs, err := decide(filepath.Base(p.file), nodes,
				scenario.Options{Files: os.DirFS(filepath.Join(dir, filepath.Dir(p.file)))})
			if err != nil {
				return err
			}
			cells := []string{"", "", "", p.why}
			copy(cells, []string{fmt.Sprintf("`%s`", p.name), p.what, fmt.Sprint(nodes)})
			if nodes > 1 {
				cells[0], cells[1], cells[3] = "", "", ""
			}
			row := append(cells[:3:3], sections(ours, theirs)...)
			fmt.Fprintf(&b, "| %s | %s |\n", strings.Join(row, " | "), cells[3])
		}
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

// decide is the decision on nodes of a machine, without what the plugin of a cloud sets: a
// file does not say where it is.
func decide(topo string, nodes int, opt scenario.Options) (*decision.Document, error) {
	opt.Settings = config.Sources{NoEnv: true}
	spec := scenario.Spec{Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: topo, Count: nodes}}},
		Network: scenario.Network{Class: "infiniband"}}
	x, err := scenario.Load(&spec, opt)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", topo, err)
	}
	d, err := decision.New(x.Comm, decision.Given{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", topo, err)
	}
	for i := range d.Graphs { // what these lead over is not compared
		d.Graphs[i].Channels, d.Graphs[i].NHops = nil, 0
	}
	d.Channels.Ranks, d.Channels.RingOrder = decision.Channels{}.Ranks, nil
	return d, nil
}

// sections says for each section how much is equal.
func sections(a, b *decision.Document) []string {
	equal := func(of func(d *decision.Document) []string) string {
		return map[bool]string{true: "equal", false: "differ"}[slices.Equal(of(a), of(b))]
	}
	ratio := func(of func(d *decision.Document) []string) string {
		n, x, y := 0, of(a), of(b)
		for i := range min(len(x), len(y)) {
			if x[i] == y[i] {
				n++
			}
		}
		return fmt.Sprintf("%d of %d", n, max(len(x), len(y)))
	}
	out := []string{equal(gpus), equal(nets), ratio(graphs), equal(channels), ratio(costs), ratio(choices)}
	if len(a.System.Nets) != len(b.System.Nets) {
		out[1] = fmt.Sprintf("%d, there %d", len(a.System.Nets), len(b.System.Nets))
	}
	return out
}

func gpus(d *decision.Document) (out []string) {
	for _, g := range d.System.GPUs {
		for _, l := range g.Links {
			out = append(out, fmt.Sprint(g.SM, l.Type, l.BW))
		}
	}
	return out
}

func nets(d *decision.Document) (out []string) {
	for _, n := range d.System.Nets {
		out = append(out, fmt.Sprint(n.BW, n.Latency, n.GDR))
	}
	return out
}

func graphs(d *decision.Document) (out []string) {
	for _, g := range d.Graphs {
		out = append(out, fmt.Sprintf("%+v", g))
	}
	return out
}

func channels(d *decision.Document) []string { return []string{fmt.Sprintf("%+v", d.Channels)} }

// costs are the cells of latencies and bandwidths.
func costs(d *decision.Document) []string {
	return strings.Fields(fmt.Sprint(d.Tuning.Latencies, d.Tuning.Bandwidths))
}

func choices(d *decision.Document) (out []string) {
	for _, c := range d.Selection {
		text := fmt.Sprint(c.Func, c.Size)
		if c.Chosen != nil {
			text += c.Algo + c.Proto
			if c.Chunking != nil {
				text = fmt.Sprint(text, c.NChannels)
			}
		}
		out = append(out, text)
	}
	return out
}
