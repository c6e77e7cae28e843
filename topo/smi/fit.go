package smi

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/topo/machine"
)

// distances returns the distance of every two devices. A cell that hides it (NVLink) is replaced by the
// largest distance that the other cells allow. PCIe is a tree, so distances are ultrametric: of three devices
// the two largest of the three distances are equal, and a distance is at most the largest step of any path
// between the two. The error names a cell that violates this.
func (m *Matrix) distances() ([][]int, error) {
	n := len(m.Devices)
	far, via := make([][]int, n), make([][]int, n)
	for i := range far {
		far[i], via[i] = make([]int, n), make([]int, n)
		for j := range far[i] {
			via[i][j] = -1
			if far[i][j] = level(m.Cells[i][j]); i != j && far[i][j] == hidden {
				far[i][j] = apart
			}
		}
	}
	for k := range n {
		for i := range n {
			for j := range n {
				if d := max(far[i][k], far[k][j]); i != j && i != k && j != k && d < far[i][j] {
					far[i][j], via[i][j] = d, k
				}
			}
		}
	}
	for i := range n {
		for j := range n {
			if known := level(m.Cells[i][j]); known > far[i][j] {
				return nil,
					m.fail(i, j,
						"%s reads %s, but %s: devices that near to a third are as near to each other",
						m.between(i, j), m.Cells[i][j], m.way(via, i, j))
			}
		}
	}
	m.hints(far)
	return far, nil
}

// way lists the cells of the nearer way between two devices.
func (m *Matrix) way(via [][]int, i, j int) string {
	var steps []string
	var walk func(i, j int)
	walk = func(i, j int) {
		if k := via[i][j]; k >= 0 {
			walk(i, k)
			walk(k, j)
			return
		}
		steps = append(steps, m.between(i, j)+" "+m.Cells[i][j])
	}
	walk(i, j)
	return strings.Join(steps, " and ")
}

// hints merges devices that the affinities put on one NUMA node and that no cell separates: GPUs that see
// each other only over NVLinks.
func (m *Matrix) hints(far [][]int) {
	inside := phb
	for _, row := range m.Cells {
		if slices.Contains(row, "NODE") {
			inside = node
		}
	}
	for a := range m.GPUs {
		for b := range a {
			if far[a][b] <= node || m.locality(a) != m.locality(b) {
				continue
			}
			ofA, ofB := near(far, a, node), near(far, b, node)
			if m.parted(ofA, ofB) {
				continue
			}
			for _, x := range ofA {
				for _, y := range ofB {
					far[x][y], far[y][x] = inside, inside
				}
			}
		}
	}
}

// locality identifies the place of a GPU: its NUMA nodes, or its cores in matrices of old drivers.
func (m *Matrix) locality(i int) string {
	if d := &m.Devices[i]; len(d.NUMA) == 0 {
		return "cores " + d.Cores
	}
	return ranges(m.Devices[i].NUMA)
}

// parted reports whether a cell shows the distance between devices of two sets.
func (m *Matrix) parted(a, b []int) bool {
	for _, x := range a {
		for _, y := range b {
			if level(m.Cells[x][y]) != hidden {
				return true
			}
		}
	}
	return false
}

// near returns, in order, the devices at a distance of at most `most` from one, including itself.
func near(far [][]int, of, most int) []int {
	var out []int
	for i, d := range far[of] {
		if d <= most {
			out = append(out, i)
		}
	}
	return out
}

// clusters splits devices into sets that are at most so far apart, in order of their first.
func clusters(far [][]int, devices []int, most int) [][]int {
	var out [][]int
	for _, i := range devices {
		if !slices.ContainsFunc(out, func(c []int) bool { return slices.Contains(c, i) }) {
			all := near(far, i, most)
			out = append(out,
				slices.DeleteFunc(all, func(x int) bool { return !slices.Contains(devices, x) }))
		}
	}
	return out
}

// hosts groups the devices by NUMA node, in the order of NCCL's file: that of GPU0, those of the NICs, those
// of the other GPUs (init.cc: rank 0 finds its GPU and all NICs before the trees of the ranks are fused).
func (m *Matrix) hosts(far [][]int) [][]int {
	order := []int{0}
	for i := m.GPUs; i < len(m.Devices); i++ {
		order = append(order, i)
	}
	for i := 1; i < m.GPUs; i++ {
		order = append(order, i)
	}
	return clusters(far, order, node)
}

// places creates the NUMA nodes with distinct numbers: the number of the affinity, or the lowest unused one.
func (m *Matrix) places(s *machine.Spec, far [][]int) {
	taken, said := map[int]bool{}, map[int]bool{}
	for i := range m.Devices {
		for _, n := range m.Devices[i].NUMA {
			said[n] = true
		}
	}
	hosts := m.hosts(far)
	s.NUMA = make([]machine.NUMA, len(hosts))
	for pass := range 2 { // those with an affinity first
		for i, devices := range hosts {
			with := m.affinity(devices)
			if (with < 0) != (pass == 1) {
				continue
			}
			id := 0
			if with >= 0 {
				id = m.Devices[with].NUMA[0]
			}
			for _, x := range devices {
				s.NUMA[i].Cores = cmp.Or(s.NUMA[i].Cores, m.Devices[x].Cores)
			}
			if given := id; taken[id] || with < 0 {
				for id = 0; taken[id] || said[id]; {
					id++
				}
				if with >= 0 {
					s.Facts = append(s.Facts, machine.Fact{Of: "numa", Estimated: true,
						Source: fmt.Sprintf("%s has NUMA affinity %d, but only SYS to others that have it: "+
							"it is put on a NUMA node of its own, %d", m.Devices[with].Name, given, id)})
				}
			}
			taken[id] = true
			s.NUMA[i].ID = id
			m.odd(s, devices, with)
		}
	}
}

// affinity returns the first GPU that has one, -1 for none.
func (m *Matrix) affinity(devices []int) int {
	for _, i := range devices {
		if len(m.Devices[i].NUMA) > 0 {
			return i
		}
	}
	return -1
}

// odd notes GPUs that the cells put on one NUMA node and the affinities on two.
func (m *Matrix) odd(s *machine.Spec, devices []int, with int) {
	for _, i := range devices {
		if with >= 0 && len(m.Devices[i].NUMA) > 0 && !slices.Equal(m.Devices[i].NUMA, m.Devices[with].NUMA) {
			s.Facts = append(s.Facts, machine.Fact{Of: "numa", Estimated: true,
				Source: fmt.Sprintf("%s and %s have NUMA affinities %s and %s, but paths within a NUMA "+
					"node join them: they are put on one",
					m.Devices[with].Name, m.Devices[i].Name, ranges(m.Devices[with].NUMA),
					ranges(m.Devices[i].NUMA))})
			return
		}
	}
}

// groups creates one PCIe subtree for each set of devices joined by PIX and PXB, and one for each other
// device.
func (m *Matrix) groups(s *machine.Spec, far [][]int) {
	var gpus, nics []int
	var names []string
	devices := func(g *machine.Group, list []int) {
		for _, i := range list {
			if i < m.GPUs {
				g.GPUs++
				gpus = append(gpus, i)
			}
		}
		for _, i := range list {
			if i >= m.GPUs {
				g.NICs++
				nics, names = append(nics, i-m.GPUs), append(names, m.Devices[i].Name)
			}
		}
	}
	for i, host := range m.hosts(far) {
		slices.Sort(host)
		for bridge, behind := range clusters(far, host, phb) {
			for _, tree := range clusters(far, behind, pxb) {
				g := machine.Group{NUMA: s.NUMA[i].ID, Bridge: bridge}
				switch parts := clusters(far, tree, pix); {
				case len(tree) == 1:
					devices(&g, tree)
				case len(parts) == 1:
					g.Switches = []string{switchOf(s.GPU.Kind, false)}
					devices(&g, tree)
				default:
					g.Switches = []string{switchOf(s.GPU.Kind, true)}
					for _, p := range parts {
						below := machine.Group{Switches: g.Switches}
						devices(&below, p)
						g.Below = append(g.Below, below)
					}
				}
				s.Groups = append(s.Groups, g)
			}
		}
	}
	s.NIC.Names = names
	if !slices.IsSorted(gpus) {
		s.GPU.Devs = gpus
	}
	if !slices.IsSorted(nics) {
		s.NIC.Devs = nics
	}
}

// nvlinks describes the NVLinks of the Spec: to NVSwitches if a GPU's links are too many to lead to each peer
// separately.
func (m *Matrix) nvlinks(s *machine.Spec) error {
	most := m.most()
	least, uniform := slices.Min(most), true
	for a := range m.GPUs {
		for b := range a {
			n := links(m.Cells[a][b])
			uniform = uniform && n == min(most[a], most[b])
			if n > 0 {
				s.NVLink.Pairs = append(s.NVLink.Pairs, [3]int{b, a, n})
			}
		}
	}
	slices.SortFunc(s.NVLink.Pairs, func(a, b [3]int) int { return cmp.Or(a[0]-b[0], a[1]-b[1]) })
	all := slices.Max(most)
	if !uniform || all == 0 || slices.Max(m.sums()) <= maxLinks && all < 8 {
		return m.direct(s)
	}
	s.NVLink = machine.NVLink{Switch: true, Links: all}
	if least < all {
		s.NVLink = machine.NVLink{Switch: true, Each: most}
	}
	s.Facts = append(s.Facts,
		machine.Fact{Of: "nvlink", Source: fmt.Sprintf("NV%d of %d GPUs is taken for links to NVSwitches",
			all, m.GPUs), Estimated: true})
	return nil
}

// maxLinks is the largest number of NVLinks of a GPU.
const maxLinks = 18

// direct refuses links between GPUs that are more than a GPU has.
func (m *Matrix) direct(s *machine.Spec) error {
	for a, n := range m.sums() {
		if n <= maxLinks {
			continue
		}
		for b := range m.GPUs {
			if x := links(m.Cells[a][b]); a != b && x != min(m.most()[a], m.most()[b]) {
				return m.fail(a, b, "%s reads %s: GPU%d has %d NVLinks in its row, which no GPU has (%d is "+
					"the most), and behind NVSwitches this cell would be NV%d too",
					m.between(a, b), m.Cells[a][b], a, n, maxLinks, min(m.most()[a], m.most()[b]))
			}
		}
	}
	if len(s.NVLink.Pairs) > 0 {
		s.Facts = append(s.Facts,
			machine.Fact{Of: "nvlink", Source: "NVLinks are taken to join GPUs in pairs, without NVSwitches",
				Estimated: true})
	}
	return nil
}

// most returns, for each GPU, the largest number of NVLinks to one other GPU; sums returns the number to all.
func (m *Matrix) most() []int {
	out := make([]int, m.GPUs)
	for a := range m.GPUs {
		for b := range m.GPUs {
			out[a] = max(out[a], links(m.Cells[a][b]))
		}
	}
	return out
}

func (m *Matrix) sums() []int {
	out := make([]int, m.GPUs)
	for a := range m.GPUs {
		for b := range m.GPUs {
			out[a] += links(m.Cells[a][b])
		}
	}
	return out
}
