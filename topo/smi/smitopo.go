// Package smi reads the matrix of nvidia-smi topo -m and describes the machine as far
// as it says: NUMA nodes, what shares a PCIe switch, NVLinks, names of NICs. Kinds of GPU,
// NIC and CPU are not in it: they are guessed from the NVLinks, or given.
//
// What it must not know: files, what is decided on a machine.
package smi

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/topo/machine"
)

// Kinds are what the matrix does not say; empty ones are guessed.
type Kinds = machine.Kinds

// matrix is what was read.
type matrix struct {
	file  string
	names []string // GPU0, …, NIC0 or mlx5_0, …
	gpus  int
	cells [][]string
	cores []string // of GPUs, "" where it is not known
	numa  []int    // of all, -1 where it is not known
	lines []int    // of rows
}

// Is reports whether text is such a matrix.
func Is(text string) bool {
	for line := range strings.Lines(text) {
		if w := strings.Fields(line); len(w) > 0 {
			return w[0] == "GPU0" && strings.Contains(text, " = ")
		}
	}
	return false
}

// Parse describes the machine. Errors name the line.
func Parse(text, file string, k Kinds) (*machine.Spec, error) {
	m, err := read(text, file)
	if err != nil {
		return nil, fail.Input(err)
	}
	return m.spec(k)
}

func (m *matrix) fail(line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d:1: %s", m.file, line, fmt.Sprintf(format, args...))
}

// read takes the rows and the legend of NICs.
func read(text, file string) (*matrix, error) {
	m := &matrix{file: file}
	legend := map[string]string{}
	for i, line := range strings.Split(text, "\n") {
		w := strings.Fields(line)
		switch {
		case len(w) == 0:
		case m.names == nil:
			m.header(w)
		case len(m.cells) < len(m.names) && w[0] == m.names[len(m.cells)]:
			if err := m.row(w[1:], i+1); err != nil {
				return nil, err
			}
		case len(w) == 2 && strings.HasPrefix(w[0], "NIC") && strings.HasSuffix(w[0], ":"):
			legend[strings.TrimSuffix(w[0], ":")] = w[1]
		}
	}
	if m.gpus == 0 || len(m.cells) < len(m.names) {
		return nil, m.fail(1, "%d rows of %d; write the whole output of nvidia-smi topo -m", len(m.cells), len(m.names))
	}
	for i, n := range m.names {
		if l := legend[n]; l != "" {
			m.names[i] = l
		}
	}
	return m, nil
}

func (m *matrix) header(w []string) {
	for _, name := range w {
		if name == "CPU" {
			break
		}
		if m.names = append(m.names, name); strings.HasPrefix(name, "GPU") {
			m.gpus++
		}
	}
}

// row reads cells and, of GPUs, the cores and the NUMA node behind them.
func (m *matrix) row(w []string, line int) error {
	n := len(m.names)
	if len(w) < n {
		return m.fail(line, "%d cells of %d", len(w), n)
	}
	for _, c := range w[:n] {
		if !slices.Contains([]string{"X", "SYS", "NODE", "PHB", "PXB", "PIX"}, c) && links(c) == 0 {
			return m.fail(line, "%q is no kind of path; known are X, SYS, NODE, PHB, PXB, PIX and NV with a number", c)
		}
	}
	cores, numa := "", -1
	if len(w) >= n+2 && strings.ContainsAny(w[n], "0123456789") {
		cores = w[n]
		if v, err := strconv.Atoi(w[n+1]); err == nil {
			numa = v
		}
	}
	m.cells, m.cores, m.numa, m.lines = append(m.cells, w[:n]), append(m.cores, cores), append(m.numa, numa), append(m.lines, line)
	return nil
}

// links is the number of NVLinks of "NV12", 0 of other cells.
func links(cell string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(cell, "NV"))
	if err != nil || !strings.HasPrefix(cell, "NV") || n < 1 || n > 64 {
		return 0
	}
	return n
}

// spec makes the description.
func (m *matrix) spec(k Kinds) (*machine.Spec, error) {
	s := &machine.Spec{Name: "converted", Title: "of nvidia-smi topo -m"}
	guess := func(of *string, given, usual, what, why string) {
		if *of = given; given == "" {
			*of = usual
			s.Facts = append(s.Facts, machine.Fact{Of: what, Source: why, Estimated: true})
		}
	}
	most := m.nvlinks(s)
	guess(&s.GPU.Kind, k.GPU, gpuOf(most), "gpu", "guessed from the number of NVLinks; nvidia-smi topo -m does not say the kind")
	guess(&s.CPU, k.CPU, cpuOf(s.GPU.Kind), "cpu", "what such machines usually have; nvidia-smi topo -m does not say")
	if m.gpus < len(m.names) {
		guess(&s.NIC.Kind, k.NIC, nicOf(s.GPU.Kind), "nic", "what such machines usually have; nvidia-smi topo -m does not say")
	}
	m.places()
	s.NUMA = m.nodes()
	m.groups(s)
	if data, err := s.Generate(); err != nil || data == nil {
		return nil, fail.Input(fmt.Errorf("%s: %w", m.file, err))
	}
	return s, nil
}

// nvlinks describes NVLinks and returns the most of a pair.
func (m *matrix) nvlinks(s *machine.Spec) int {
	most, least := 0, 1<<10
	for a := range m.gpus {
		for b := range a {
			n := links(m.cells[a][b])
			if most, least = max(most, n), min(least, n); n > 0 {
				s.NVLink.Pairs = append(s.NVLink.Pairs, [3]int{b, a, n})
			}
		}
	}
	if m.gpus > 1 && most == least && most > 0 && (m.gpus > 4 || most >= 8) { // more than a GPU could give every peer
		s.NVLink = machine.NVLink{Switch: true, Links: most}
	}
	return most
}

func gpuOf(links int) string {
	switch {
	case links >= 16:
		return "h100-sxm"
	case links == 8:
		return "h800-sxm"
	case links >= 7 || links == 4:
		return "a100-sxm"
	case links > 0:
		return "v100-sxm2"
	}
	return "l40s"
}

func cpuOf(gpu string) string {
	switch {
	case strings.HasPrefix(gpu, "v100"):
		return "broadwell"
	case strings.HasPrefix(gpu, "a100"):
		return "rome"
	case strings.HasPrefix(gpu, "b"):
		return "emerald-rapids"
	case strings.HasPrefix(gpu, "g"):
		return "grace"
	}
	return "sapphire-rapids"
}

func nicOf(gpu string) string {
	switch {
	case strings.HasPrefix(gpu, "v100"):
		return "connectx-4"
	case strings.HasPrefix(gpu, "a100"), strings.HasPrefix(gpu, "l40"):
		return "connectx-6"
	}
	return "connectx-7"
}

// places gives NICs the NUMA node of the GPUs near them.
func (m *matrix) places() {
	for _, near := range [][]string{{"PIX", "PXB"}, {"PHB"}, {"NODE"}} {
		for i := m.gpus; i < len(m.names); i++ {
			for g := range m.gpus {
				if m.numa[i] < 0 && slices.Contains(near, m.cells[i][g]) {
					m.numa[i] = m.numa[g]
				}
			}
		}
	}
	for i := range m.numa {
		m.numa[i] = max(m.numa[i], 0)
	}
}

// nodes lists NUMA nodes in order of their numbers.
func (m *matrix) nodes() []machine.NUMA {
	var out []machine.NUMA
	for i, n := range m.numa {
		if !slices.ContainsFunc(out, func(x machine.NUMA) bool { return x.ID == n }) {
			out = append(out, machine.NUMA{ID: n, Cores: m.cores[i]})
		}
	}
	slices.SortFunc(out, func(a, b machine.NUMA) int { return a.ID - b.ID })
	return out
}

// groups makes a PCIe subtree of what PIX and PXB join, and of each of the others.
func (m *matrix) groups(s *machine.Spec) {
	of := make([]int, len(m.names))
	for i := range of {
		of[i] = i
		for j := range i {
			if c := m.cells[i][j]; c == "PIX" || c == "PXB" {
				was := of[i]
				for k := range i + 1 {
					if of[k] == was {
						of[k] = of[j]
					}
				}
			}
		}
	}
	var nics []string
	for root := range of {
		g := machine.Group{NUMA: m.numa[root]}
		near := ""
		for i := range of {
			switch {
			case of[i] != root:
				continue
			case i < m.gpus:
				g.GPUs++
			default:
				g.NICs++
				nics = append(nics, m.names[i])
			}
			if i != root && m.cells[i][root] == "PXB" {
				near = "PXB"
			}
		}
		if g.GPUs+g.NICs == 0 {
			continue
		}
		if g.GPUs+g.NICs > 1 {
			g.Switches = []string{switchOf(s.GPU.Kind)}
			if near == "PXB" && g.GPUs > 0 && g.NICs > 0 { // two below one
				g.Switches, g.Apart = append(g.Switches, g.Switches[0]), true
			}
		}
		s.Groups = append(s.Groups, g)
	}
	s.NIC.Names = nics
}

// switchOf is the kind of PCIe switch of a GPU's generation.
func switchOf(gpu string) string {
	switch {
	case strings.HasPrefix(gpu, "v100"):
		return "plx-gen3"
	case strings.HasPrefix(gpu, "a100"), strings.HasPrefix(gpu, "l40"), strings.HasPrefix(gpu, "rtx"), strings.HasPrefix(gpu, "a10"):
		return "broadcom-gen4"
	}
	return "broadcom-gen5"
}
