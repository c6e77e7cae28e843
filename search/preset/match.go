package preset

import (
	"fmt"

	"github.com/simccl/simccl/topo"
)

// mapping says which GPU and NIC of the machine, by place, is each of a model's.
type mapping struct{ gpus, nics []int }

// root are the bits of a bus number that name a root complex of Rome.
const root = 0xf0000

// turned is the order in which places are permuted first.
func turned(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = (i + 2) % n
	}
	return out
}

// permute finds the first order, in RCCL's sequence of exchanges, in which each place fits those before it
// (graph/rome_models.cc:2369, 2413). Where one does not fit, no order of the rest can, so that leaving it
// changes nothing but the time.
func permute(order []int, fits func(i int) bool) bool {
	var rec func(n int) bool
	rec = func(n int) bool {
		if n == len(order) {
			return true
		}
		for i := n; i < len(order); i++ {
			order[n], order[i] = order[i], order[n]
			if fits(n) && rec(n+1) {
				return true
			}
			order[n], order[i] = order[i], order[n]
		}
		return false
	}
	return rec(0)
}

// fitGPUs maps the GPUs: NUMA nodes, links and the order of bus numbers are the model's, and with roots the
// root complexes.
func (m *machine) fitGPUs(ref *model, numa, roots bool) []int {
	g, n := turned(len(m.gpus)), len(m.gpus)
	pair := func(i, j int) bool {
		if ref.xgmi[i*n+j] != m.xgmi[g[i]*n+g[j]] {
			return false
		}
		was, is := ref.gpus[i].bus-ref.gpus[j].bus, m.gpus[g[i]].bus-m.gpus[g[j]].bus
		if was < 0 && is > 0 || was > 0 && is < 0 {
			return false
		}
		return !roots || i == j ||
			(ref.gpus[i].bus&root == ref.gpus[j].bus&root) == (m.gpus[g[i]].bus&root == m.gpus[g[j]].bus&root)
	}
	ok := permute(g, func(i int) bool {
		if numa && ref.gpus[i].numa != m.gpus[g[i]].numa {
			return false
		}
		for j := 0; j <= i; j++ {
			if !pair(i, j) || !pair(j, i) {
				return false
			}
		}
		return true
	})
	if !ok {
		return nil
	}
	return g
}

// fitNICs maps the NICs: NUMA nodes and paths to the GPUs are the model's.
func (m *machine) fitNICs(ref *model, g []int, numa bool) []int {
	n, gpus := turned(len(m.nics)), len(m.gpus)
	fits := make([][]bool, len(n)) // by NIC of the model and of the machine
	for i := range fits {
		fits[i] = make([]bool, len(n))
		for k := range fits[i] {
			fits[i][k] = !numa || ref.nics[i].numa == m.nics[k].numa
			for j := range gpus {
				fits[i][k] = fits[i][k] && matches(ref.near[i*gpus+j], m.near[k*gpus+g[j]])
			}
		}
	}
	// An order that the NICs left cannot complete is cut off here: else bad files take for ever.
	ok := permute(n, func(i int) bool { return fits[i][n[i]] && completes(fits, n, i+1) })
	if !ok {
		return nil
	}
	return n
}

// matches reports whether a path is as in a model: PXN is any, and PIX is PXB.
func matches(was, is topo.PathKind) bool {
	return is == topo.PathPXN || was == is || was == topo.PathPXB && is == topo.PathPIX ||
		was == topo.PathPIX && is == topo.PathPXB
}

// completes reports whether the NICs from a place of an order on fit the model's in some order (augmenting
// paths).
func completes(fits [][]bool, order []int, from int) bool {
	taken := make(map[int]int, len(order))
	var place func(i int, tried map[int]bool) bool
	place = func(i int, tried map[int]bool) bool {
		for _, k := range order[from:] {
			if !fits[i][k] || tried[k] {
				continue
			}
			tried[k] = true
			if was, ok := taken[k]; !ok || place(was, tried) {
				taken[k] = i
				return true
			}
		}
		return false
	}
	for i := from; i < len(order); i++ {
		if !place(i, map[int]bool{}) {
			return false
		}
	}
	return true
}

// takeNICs maps the NICs of machines with several a GPU one after the other (graph/rome_models.cc:2751).
func (m *machine) takeNICs(ref *model, numa bool) []int {
	var n []int
	gpus := len(m.gpus)
	taken := make([]bool, len(m.nics))
	for j := range m.nics {
		found := -1
		for k := range m.nics {
			if taken[k] || numa && ref.nics[j].numa != m.nics[k].numa {
				continue
			}
			same := true
			for g := range gpus {
				if is := m.near[k*gpus+g]; is != topo.PathPXN && is != ref.near[j*gpus+g] {
					same = false
					break
				}
			}
			if same {
				found = k
				break
			}
		}
		if found < 0 {
			return nil
		}
		taken[found] = true
		n = append(n, found)
	}
	return n
}

// misfit is what of a model's counts is not the machine's, "" for nothing; with numa, counts by NUMA node.
func (m *machine) misfit(ref *model, numa bool) string {
	differs := func(what string, was, is any) string {
		return fmt.Sprintf("has %s %v, the machine %v", what, was, is)
	}
	switch {
	case len(m.gpus) != len(ref.gpus):
		return differs("GPUs", len(ref.gpus), len(m.gpus))
	case len(m.nics) != len(ref.nics):
		return differs("NICs", len(ref.nics), len(m.nics))
	case m.links != ref.links:
		return differs("XGMI neighbours", ref.links, m.links)
	case numa && m.cpus != ref.cpus:
		return differs("NUMA nodes", ref.cpus, m.cpus)
	case numa && m.pattern != ref.pattern:
		return differs("GPUs and NICs by NUMA node", ref.pattern, m.pattern)
	}
	return ""
}

// What keeps the devices of a machine from being a model's.
const (
	gpusDiffer = "no order of the GPUs has its XGMI links, NUMA nodes and bus numbers"
	nicsDiffer = "no order of the NICs has its NUMA nodes and paths to GPUs"
)

// several reports whether each GPU has more than one NIC.
func (m *machine) several() bool { return len(m.nics)%len(m.gpus) == 0 && len(m.nics)/len(m.gpus) > 1 }

// fit maps a machine of up to eight GPUs to a model, or says why it is not one (graph/rome_models.cc:2738).
func (m *machine) fit(ref *model) (to mapping, why string) {
	anyCPU, numa := ref.on("noCpuCheck"), !ref.on("disableNumaMatching")
	if !anyCPU && !m.rome() {
		return to, "needs processors of Zen 2 to 4"
	}
	if why := m.misfit(ref, numa); why != "" {
		return to, why
	}
	if to.gpus = m.fitGPUs(ref, numa, !anyCPU && m.toCPU <= 2); to.gpus == nil {
		return to, gpusDiffer
	}
	switch {
	case m.several():
		to.nics = m.takeNICs(ref, numa)
	case len(m.nics) > 1:
		to.nics = m.fitNICs(ref, to.gpus, numa)
	default:
		return to, ""
	}
	if to.nics == nil {
		return to, nicsDiffer
	}
	return to, ""
}

// fitByNUMA maps a machine of four GPUs a CPU to a model.
func (m *machine) fitByNUMA(ref *model) (to mapping, ok bool) {
	ok = m.byNUMA(ref, func(g []int) bool {
		to.gpus = append([]int(nil), g...)
		if len(m.nics) < 2 {
			return true
		}
		to.nics = m.fitNICs(ref, g, true)
		return to.nics != nil
	})
	return to, ok
}

// byNUMA maps GPUs CPU by CPU, four on each: in every order of the first CPU's, and for each in every order
// of the next CPU's (graph/rome_models.cc:2527, 2887). then maps the NICs.
func (m *machine) byNUMA(ref *model, then func(g []int) bool) bool {
	const each = 4
	if m.misfit(ref, true) != "" {
		return false
	}
	g := make([]int, 0, len(m.gpus))
	for c := range m.cpus {
		of, here := 0, []int{}
		for k := range m.gpus {
			if ref.gpus[k].numa == int64(c) {
				of++
			}
			if m.gpus[k].numa == int64(c) {
				here = append(here, k)
			}
		}
		if of != each || len(here) != each {
			return false
		}
		g = append(g, here...)
	}
	n := len(g)
	return m.orders(g, 0, each, func(i int) bool {
		for j := 0; j <= i; j++ {
			if ref.xgmi[i*n+j] != m.xgmi[g[i]*n+g[j]] || ref.xgmi[j*n+i] != m.xgmi[g[j]*n+g[i]] {
				return false
			}
		}
		return true
	}, then)
}

// orders goes through the orders of g, in lexicographic order, in which each group of so many stays together.
func (m *machine) orders(g []int, at, each int, fits func(i int) bool, then func([]int) bool) bool {
	if at == len(g) {
		return then(g)
	}
	end := at/each*each + each
	for i := at; i < end; i++ {
		v := g[i]
		copy(g[at+1:i+1], g[at:i]) // the rest stays sorted
		g[at] = v
		if fits(at) && m.orders(g, at+1, each, fits, then) {
			return true
		}
		copy(g[at:i], g[at+1:i+1])
		g[i] = v
	}
	return false
}

// hivesOf groups the GPUs that XGMI joins, so many in each, in their order; nil where they do not fall so
// (graph/rome_models.cc:3002).
func (m *machine) hivesOf(each int) []int {
	n := len(m.gpus)
	if m.links+1 != each || n%each != 0 {
		return nil
	}
	groups := make([][]int, 0, n/each)
	for i := range n {
		at := -1
		for h := range groups {
			if m.xgmi[i*n+groups[h][0]] != 0 {
				at = h
				break
			}
		}
		if at < 0 {
			at, groups = len(groups), append(groups, nil)
		}
		if at >= n/each || len(groups[at]) == each {
			return nil
		}
		groups[at] = append(groups[at], i)
	}
	var out []int
	for _, g := range groups {
		out = append(out, g...)
	}
	return out
}
