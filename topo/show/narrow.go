package show

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/topo"
)

// columns is the assumed width of a terminal.
const columns = 80

// paths writes the matrix where it fits a terminal or wide is asked for, and otherwise
// kinds between GPUs and a row a net.
func paths(b *strings.Builder, s *topo.System, wide bool) {
	var full strings.Builder
	Matrix(&full, s)
	if wide || widest(full.String()) <= columns {
		b.WriteString(full.String())
		return
	}
	narrow(b, s)
}

// widest returns the length of the longest line of the matrix itself.
func widest(text string) int {
	n := 0
	matrix, _, _ := strings.Cut(text, "\n\n")
	for line := range strings.Lines(matrix) {
		n = max(n, len([]rune(strings.TrimRight(line, "\n"))))
	}
	return n
}

func narrow(b *strings.Builder, s *topo.System) {
	gpus, nets := byRank(s), s.Of(topo.NET)
	rates := &rates{seen: map[string]bool{}}
	head := []string{""}
	for _, g := range gpus {
		head = append(head, fmt.Sprint(s.Nodes[g].GPU.Rank))
	}
	rows := [][]string{append(head, "CPU", "GDR")}
	for _, from := range gpus {
		row := []string{label(s, from)}
		for _, to := range gpus {
			row = append(row, rates.kind(s, from, to))
		}
		cpu := "-"
		if c := nearestCPU(s, from); c != topo.None {
			cpu = label(s, c)
		}
		rows = append(rows, append(row, cpu, direct(s, from)))
	}
	align(b, rows, 1)
	if len(nets) > 0 {
		b.WriteByte('\n')
		narrowNets(b, s, gpus, rates)
	}
	b.WriteString("\n  GB/s:")
	column := len("  GB/s:")
	for _, r := range rates.text {
		if column += 2 + len(r); column > 64 { // and room for the last words
			b.WriteString("\n       ")
			column = 9 + len(r)
		}
		b.WriteString("  " + r)
	}
	b.WriteString("; --wide has each\n")
	b.WriteString("  NVL NVLink  NVB NVLink through a GPU  C2C chip to chip  PIX one PCIe switch\n" +
		"  PXB PCIe switches  P2C C2C, then PCIe  PXN through the net's own GPU\n" +
		"  PHB through the CPU  SYS between CPUs  GDR GPUDirect RDMA\n")
}

// narrowNets writes a row for each net; paths from GPUs are left out where both do not fit.
func narrowNets(b *strings.Builder, s *topo.System, gpus []topo.NodeID, r *rates) {
	for _, both := range []bool{true, false} {
		rows := [][]string{{"net", "name", "GB/s", "GDR", "to GPUs"}}
		if both {
			rows[0] = append(rows[0], "from GPUs")
		}
		for _, n := range s.Of(topo.NET) {
			net := s.Nodes[n].Net
			row := []string{label(s, n), cut(net.Name), short(float32(net.BW)), direct(s, n),
				kinds(gpus, s, func(g topo.NodeID) string { return r.kind(s, n, g) })}
			if both {
				row = append(row, kinds(gpus, s, func(g topo.NodeID) string { return r.kind(s, g, n) }))
			}
			rows = append(rows, row)
		}
		var text strings.Builder
		align(&text, rows, 2)
		if widest(text.String()) <= columns || !both {
			b.WriteString(text.String())
			return
		}
	}
}

// rates collects the different bandwidths of each kind of path, in order of appearance.
type rates struct {
	seen map[string]bool
	text []string
}

// kind formats the kind of a path for a cell of the matrix, "X" on the diagonal.
func (r *rates) kind(s *topo.System, from, to topo.NodeID) string {
	if from == to {
		return "X"
	}
	p := s.Path(from, to)
	if t := fmt.Sprintf("%s %s", s.PathName(p.Kind), short(float32(p.BW))); !r.seen[t] {
		r.seen[t] = true
		r.text = append(r.text, t)
	}
	return s.PathName(p.Kind)
}

// kinds sums up what GPUs have with a net: "PIX 0, PXN 1-7".
func kinds(gpus []topo.NodeID, s *topo.System, kind func(topo.NodeID) string) string {
	var order []string
	of := map[string][]int{}
	for _, g := range gpus {
		k := kind(g)
		if of[k] == nil {
			order = append(order, k)
		}
		of[k] = append(of[k], s.Nodes[g].GPU.Rank)
	}
	var out []string
	for _, k := range order {
		out = append(out, k+" "+ranges(of[k]))
	}
	return strings.Join(out, ", ")
}

// ranges formats ascending numbers: "0-3,7".
func ranges(n []int) string {
	var out []string
	for i := 0; i < len(n); {
		j := i
		for j+1 < len(n) && n[j+1] == n[j]+1 {
			j++
		}
		if i == j {
			out = append(out, fmt.Sprint(n[i]))
		} else {
			out = append(out, fmt.Sprintf("%d-%d", n[i], n[j]))
		}
		i = j + 1
	}
	return strings.Join(out, ",")
}

// cut shortens the long name of a fused NIC to 18 characters.
func cut(name string) string {
	const most = 18
	if r := []rune(name); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return name
}
