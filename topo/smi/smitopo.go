// Package smi reads the matrix of nvidia-smi topo -m and describes the machine as far as the matrix
// determines it: NUMA nodes, host bridges, devices that share PCIe switches, NVLinks, names of NICs. Kinds of
// GPU, NIC and CPU are not in it: they are given, or guessed consistently with the matrix. Of returns the
// matrix of a machine, so that the result can be compared with the input cell by cell.
//
// What it must not know: files, what is decided on a machine.
package smi

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/topo/decl"
	"github.com/simccl/simccl/topo/machine"
)

// Kinds are the GPU and NIC models, which a matrix does not name; empty ones are guessed.
type Kinds = machine.Kinds

// Paths by how far they lead, as nvidia-smi names them (NVML's nvmlGpuTopologyLevel_t).
// A cell NV# hides how far apart two GPUs are on PCIe.
const (
	hidden = iota
	pix    // at most one PCIe switch
	pxb    // several
	phb    // a host bridge
	node   // host bridges of a NUMA node
	sys    // NUMA nodes
	apart  // nothing joins them
)

var words = []string{hidden: "NV", pix: "PIX", pxb: "PXB", phb: "PHB", node: "NODE", sys: "SYS"}

// Device is a row of the matrix. What it does not say is empty.
type Device struct {
	Name   string // GPU0, mlx5_0; NIC0 where there is no legend
	Cores  string // of a GPU: "0-23,48-71"
	NUMA   []int  // of a GPU, the NUMA nodes near it: {0}, {0, 1}
	Memory string // of a GPU: the number of the NUMA node that its memory is

	line int
	cols []int // of each cell
}

// Matrix is a parsed matrix: the kinds of paths between GPUs and NICs.
type Matrix struct {
	File    string
	Devices []Device // GPUs, then NICs
	GPUs    int
	Cells   [][]string // "X", "NV18", "PXB", …
	Notes   []string   // lines and cells that were skipped
}

// place returns a cell's position, "file:line:col".
func (m *Matrix) place(row, col int) string {
	d := &m.Devices[row]
	if col >= len(d.cols) {
		return fmt.Sprintf("%s:%d:1", m.File, d.line)
	}
	return fmt.Sprintf("%s:%d:%d", m.File, d.line, d.cols[col])
}

func (m *Matrix) fail(row, col int, format string, args ...any) error {
	return fail.File("%s: %s", m.place(row, col), fmt.Sprintf(format, args...))
}

// between names the two devices of a cell.
func (m *Matrix) between(a, b int) string { return m.Devices[a].Name + " – " + m.Devices[b].Name }

// level returns the distance that a cell states, hidden for NVLinks.
func level(cell string) int { return max(slices.Index(words, cell), hidden) }

// links returns the number of NVLinks of "NV12", 0 of other cells.
func links(cell string) int {
	digits, ok := strings.CutPrefix(cell, "NV")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 1 || n > 64 {
		return 0
	}
	return n
}

// Parse describes the machine whose own matrix is the one in text. Errors name the cell.
func Parse(text, file string, k Kinds) (*machine.Spec, error) {
	m, err := Read(text, file)
	if err != nil {
		return nil, err
	}
	return m.Spec(k)
}

// Spec describes the machine. Estimated Facts are guesses.
func (m *Matrix) Spec(k Kinds) (*machine.Spec, error) {
	far, err := m.distances()
	if err != nil {
		return nil, err
	}
	s := &machine.Spec{Name: "converted", Title: "of nvidia-smi topo -m"}
	for _, n := range m.Notes {
		s.Facts = append(s.Facts, machine.Fact{Of: "matrix", Source: n, Estimated: true})
	}
	if err := m.nvlinks(s); err != nil {
		return nil, err
	}
	m.places(s, far)
	if err := m.guess(s, k); err != nil {
		return nil, err
	}
	m.groups(s, far)
	root, err := s.Generate()
	if err != nil {
		return nil, fail.Input(fmt.Errorf("%s: %w", m.File, err))
	}
	return s, compare(m, Of(root))
}

// compare returns an error for the first cell of the input that the machine made from it would show
// differently.
func compare(read, made *Matrix) error {
	at := map[string]int{}
	for i, d := range made.Devices {
		at[d.Name] = i
	}
	for i, d := range read.Devices {
		if _, ok := at[d.Name]; !ok {
			return read.fail(i, 0, "%s is read, and not in the machine that was made of it", d.Name)
		}
	}
	if len(made.Devices) != len(read.Devices) {
		return fail.File("%s: %d GPUs and NICs are read, the machine that was made has %d", read.File,
			len(read.Devices), len(made.Devices))
	}
	for i, row := range read.Cells {
		for j, cell := range row {
			x, y := at[read.Devices[i].Name], at[read.Devices[j].Name]
			if got := made.Cells[x][y]; got != cell {
				return read.fail(i, j,
					"%s reads %s, the machine that was made has %s; no description of a machine says this",
					read.between(i, j), cell, got)
			}
		}
	}
	return nil
}

// Beside compares the matrix with a host that another source describes, by the names that
// both have: the first cell that differs to NCCL is an error. Other sources do not distinguish
// PHB and NODE, and count switches otherwise (PIX, PXB).
func (m *Matrix) Beside(root *decl.Element) error {
	made := Of(root)
	if made.GPUs != m.GPUs {
		return fail.File("%s: a matrix of %d GPUs beside a host of %d; give both of one host", m.File, m.GPUs,
			made.GPUs)
	}
	at := map[string]int{}
	for i, d := range made.Devices {
		at[d.Name] = i
	}
	same := map[string]string{"PXB": "PIX", "NODE": "PHB"}
	for i, row := range m.Cells {
		for j, cell := range row {
			x, okX := at[m.Devices[i].Name]
			y, okY := at[m.Devices[j].Name]
			if !okX || !okY {
				continue
			}
			if got := made.Cells[x][y]; got != cell && cmp.Or(same[got], got) != cmp.Or(same[cell], cell) {
				return m.fail(i, j, "%s reads %s, the host beside the matrix has %s; give both of one host",
					m.between(i, j), cell, got)
			}
		}
	}
	return nil
}
