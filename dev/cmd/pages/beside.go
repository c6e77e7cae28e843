package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
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

// document is a decision, as far as it is compared.
type document struct {
	System struct {
		GPUs []struct {
			SM    int `json:"sm"`
			Links []struct {
				Type string  `json:"type"`
				BW   float64 `json:"bw"`
			} `json:"links"`
		} `json:"gpus"`
		Nets []struct {
			BW      float64 `json:"bw"`
			Latency float64 `json:"latency"`
			GDR     int     `json:"gdr"`
		} `json:"nets"`
	} `json:"system"`
	Graphs   []map[string]any `json:"graphs"`
	Channels map[string]any   `json:"channels"`
	Tuning   struct {
		Latencies  [][][]float64 `json:"latencies"`
		Bandwidths [][][]float64 `json:"bandwidths"`
	} `json:"tuning"`
	Selection []map[string]any `json:"selection"`
}

// decide is the decision on nodes of a machine, without what the plugin of a cloud sets: a
// file does not say where it is.
func decide(topo string, nodes int, opt scenario.Options) (*document, error) {
	opt.Settings = config.Sources{NoEnv: true}
	spec := scenario.Spec{Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: topo, Count: nodes}}},
		Network: scenario.Network{Class: "infiniband"}}
	x, err := scenario.Load(&spec, opt)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", topo, err)
	}
	text, _, err := decision.Of(x.Comm, x.Cluster, x.Settings())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", topo, err)
	}
	d := &document{}
	return d, json.Unmarshal(text, d)
}

// sections says for each section how much is equal.
func sections(a, b *document) []string {
	equal := func(same bool) string { return map[bool]string{true: "equal", false: "differ"}[same] }
	nets := func(d *document) string { return fmt.Sprint(d.System.Nets) }
	out := []string{equal(reflect.DeepEqual(a.System.GPUs, b.System.GPUs)), equal(nets(a) == nets(b))}
	if len(a.System.Nets) != len(b.System.Nets) {
		out[1] = fmt.Sprintf("%d, there %d", len(a.System.Nets), len(b.System.Nets))
	}
	same := 0
	for i, g := range a.Graphs {
		if h := b.Graphs[i]; reflect.DeepEqual(without(g, "channels", "nHops"),
			without(h, "channels", "nHops")) {
			same++
		}
	}
	out = append(out, fmt.Sprintf("%d of %d", same, len(a.Graphs)),
		equal(reflect.DeepEqual(without(a.Channels, "ranks", "ringOrder"), without(b.Channels, "ranks",
			"ringOrder"))))
	out = append(out, ratio(cells(&a.Tuning.Latencies, &a.Tuning.Bandwidths),
		cells(&b.Tuning.Latencies, &b.Tuning.Bandwidths)))
	var x, y []string
	for i := range max(len(a.Selection), len(b.Selection)) {
		x, y = append(x, choice(a.Selection, i)), append(y, choice(b.Selection, i))
	}
	return append(out, ratio(x, y))
}

func choice(list []map[string]any, i int) string {
	if i >= len(list) {
		return ""
	}
	c := list[i]
	return fmt.Sprint(c["func"], c["size"], c["algo"], c["proto"], c["nChannels"])
}

// cells are the entries of tables that one of the protocols can have.
func cells(tables ...*[][][]float64) []string {
	var out []string
	for _, t := range tables {
		for _, f := range *t {
			for _, a := range f {
				for _, p := range a {
					out = append(out, fmt.Sprint(p))
				}
			}
		}
	}
	return out
}

// ratio counts what is equal, entry by entry.
func ratio(a, b []string) string {
	n := 0
	for i := range a {
		if i < len(b) && a[i] == b[i] {
			n++
		}
	}
	return fmt.Sprintf("%d of %d", n, max(len(a), len(b)))
}

func without(m map[string]any, keys ...string) map[string]any {
	out := map[string]any{}
	for k, v := range m {
		out[k] = v
	}
	for _, k := range keys {
		delete(out, k)
	}
	return out
}
