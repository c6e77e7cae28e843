// Package show shows a machine as NCCL sees it: the matrix of paths, the
// PCI tree with bandwidths, a drawing for Graphviz, the sections system and
// paths of the decision document, and the lines of NCCL's INFO log. It reads a
// built topo.Host and gives text; it prints nothing and decides nothing.
package show

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/simccl/simccl/topo"
)

// Doc is the output of `topo show --json`: the machine's Systems (parts that NCCL keeps together) with system
// and paths as in the decision document.
type Doc struct {
	Name  string `json:"name"`
	Hosts int    `json:"hosts"`
	Parts []Part `json:"parts"`
}

// Part is one System of the machine with its local ranks.
type Part struct {
	Ranks  []int         `json:"ranks"`
	System SystemSection `json:"system"`
	Paths  PathsSection  `json:"paths"`
}

// JSON returns the Doc of a host.
func JSON(h *topo.Host) Doc {
	d := Doc{Hosts: h.Systems[0].NHosts}
	if h.Spec != nil {
		d.Name = h.Spec.Name
	}
	for i, s := range h.Systems {
		d.Parts = append(d.Parts, Part{Ranks: ranksOf(h, i), System: System(s), Paths: Paths(s)})
	}
	return d
}

func ranksOf(h *topo.Host, system int) []int {
	var out []int
	for r, s := range h.SystemOf {
		if s == system {
			out = append(out, r)
		}
	}
	return out
}

// Text returns the text page of a host: summary, matrix of paths, bandwidths, PCI tree.
func Text(h *topo.Host, wide bool) string {
	var b strings.Builder
	for i, s := range h.Systems {
		if len(h.Systems) > 1 {
			fmt.Fprintf(&b, "%sPart %d of %d: neither P2P nor SHM joins it with the others\n",
				strings.Repeat("\n", min(i, 1)), i+1, len(h.Systems))
		}
		summary(&b, h, s)
		paths(&b, s, wide)
		b.WriteByte('\n')
		tree(&b, s)
	}
	return b.String()
}

func summary(b *strings.Builder, h *topo.Host, s *topo.System) {
	reach := "this machine alone"
	if s.Inter {
		reach = "several machines"
	}
	fmt.Fprintf(b,
		"GPUs %d, nets %d, CPUs %d, hosts %d\na channel gets at most %s GB/s, a GPU %s GB/s (%s)\n",
		len(s.Of(topo.GPU)), len(s.Of(topo.NET)), len(s.Of(topo.CPU)), s.NHosts, short(float32(s.MaxBW)),
		short(float32(s.TotalBW)), reach)
	for _, n := range h.MadeNets {
		fmt.Fprintf(b, "NCCL fuses %s into one net\n", strings.ReplaceAll(n, "+", " and "))
	}
	b.WriteByte('\n')
}

// label returns a short name of a GPU or net: "GPU3", "NET0".
func label(s *topo.System, n topo.NodeID) string {
	node := &s.Nodes[n]
	switch node.Kind {
	case topo.GPU:
		return fmt.Sprintf("GPU%d", node.GPU.Rank)
	case topo.NET:
		if node.Net.Host > 0 {
			return fmt.Sprintf("NET%d.%d", node.Net.Host, node.Net.Dev)
		}
		return fmt.Sprintf("NET%d", node.Net.Dev)
	case topo.CPU:
		return fmt.Sprintf("NUMA%d", node.CPU.NUMA)
	}
	return s.Name(n)
}

// Matrix writes the kinds and bandwidths of paths between GPUs and nets in the format of nvidia-smi topo -m;
// a row is the source. GPUs are ordered by local rank.
func Matrix(b *strings.Builder, s *topo.System) {
	gpus, nets := byRank(s), s.Of(topo.NET)
	ends := append(append([]topo.NodeID{}, gpus...), nets...)
	head := []string{""}
	for _, n := range ends {
		head = append(head, label(s, n))
	}
	rows := [][]string{append(head, "CPU", "GPUDirect")}
	for _, from := range ends {
		row := []string{label(s, from)}
		for _, to := range ends {
			if from == to {
				row = append(row, "X")
				continue
			}
			p := s.Path(from, to)
			row = append(row, fmt.Sprintf("%s %s", s.PathName(p.Kind), short(float32(p.BW))))
		}
		cpu := "-"
		if c := nearestCPU(s, from); c != topo.None {
			cpu = label(s, c)
		}
		rows = append(rows, append(row, cpu, direct(s, from)))
	}
	align(b, rows, 2)
	b.WriteString("\n  X itself  NVL NVLink  NVB NVLink through a GPU  C2C chip to chip\n" +
		"  PIX one PCIe switch  PXB PCIe switches  P2C C2C, then PCIe\n" +
		"  PXN through the net's own GPU  PHB through the CPU  SYS between CPUs\n" +
		"  NET network only; GB/s\n")
	if len(nets) > 0 {
		b.WriteByte('\n')
		netTable(b, s)
	}
}

func byRank(s *topo.System) []topo.NodeID {
	out := append([]topo.NodeID{}, s.Of(topo.GPU)...)
	for i := 1; i < len(out); i++ {
		for j := i; j > 0 && s.Nodes[out[j]].GPU.Rank < s.Nodes[out[j-1]].GPU.Rank; j-- {
			out[j], out[j-1] = out[j-1], out[j]
		}
	}
	return out
}

func nearestCPU(s *topo.System, n topo.NodeID) topo.NodeID {
	best, hops := topo.None, 0
	for _, c := range s.Of(topo.CPU) {
		if h := len(s.Path(n, c).Links); h > 0 && (hops == 0 || h < hops) {
			best, hops = c, h
		}
	}
	return best
}

func direct(s *topo.System, n topo.NodeID) string {
	node := &s.Nodes[n]
	on := node.Kind == topo.GPU && node.GPU.GDR || node.Kind == topo.NET && node.Net.GDR
	if on {
		return "yes"
	}
	return "no"
}

// short formats a bandwidth with four digits.
func short(f float32) string { return strconv.FormatFloat(float64(f), 'g', 4, 64) }

func netTable(b *strings.Builder, s *topo.System) {
	rows := [][]string{{"net", "name", "port", "GB/s", "own GPU", "guid"}}
	for _, n := range s.Of(topo.NET) {
		net := s.Nodes[n].Net
		own := "-"
		if net.LocalGPU >= 0 {
			own = label(s, s.Of(topo.GPU)[net.LocalGPU])
		}
		rows = append(rows, []string{label(s, n), net.Name, fmt.Sprint(net.Port), short(float32(net.BW)), own,
			fmt.Sprintf("0x%x", net.ASIC)})
	}
	align(b, rows, 2)
}

// align writes rows in columns to the left, which that many spaces part.
func align(b *strings.Builder, rows [][]string, gap int) {
	var width []int
	for _, r := range rows {
		for i, c := range r {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], len(c))
		}
	}
	for _, r := range rows {
		line := ""
		for i, c := range r {
			line += fmt.Sprintf("%-*s", width[i]+gap, c)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}
