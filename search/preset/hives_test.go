package preset

import (
	"slices"
	"testing"

	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
)

// hiveMachine has GPUs of which those of one remainder of the number of hives are joined, and a NIC beside
// each, in an order of their own: NIC i beside GPU 5i+3.
func hiveMachine(t *testing.T, gpus, hives, nics int) *machine {
	t.Helper()
	m := &machine{cpu: &topo.CPUInfo{Arch: topo.ArchX86, Vendor: topo.VendorAMD, Model: topo.ModelRome}}
	nodes := []topo.Node{{Kind: topo.CPU, CPU: m.cpu}}
	m.cpus, m.links = 1, gpus/hives-1
	for i := range gpus {
		nodes = append(nodes, topo.Node{Kind: topo.GPU, Ident: uint64(i) << 12,
			GPU: &topo.GPUInfo{Dev: i, Rank: i}})
		m.gpus, m.devs, m.gpuAt = append(m.gpus, device{}), append(m.devs, 100+i), append(m.gpuAt, i)
		for j := range gpus {
			joined := uint8(0)
			if i != j && i%hives == j%hives {
				joined = 1
			}
			m.xgmi = append(m.xgmi, joined)
		}
	}
	for i := range nics {
		nodes = append(nodes, topo.Node{Kind: topo.NET, Ident: uint64(i), Net: &topo.NetInfo{Dev: i}})
		m.nics = append(m.nics, device{})
		for g := range gpus {
			kind := topo.PathSYS
			if g == (5*i+3)%gpus {
				kind = topo.PathPIX
			}
			m.near = append(m.near, kind)
		}
	}
	m.sys = topo.Assemble(rules.Default(), nodes, nil, func(from, base topo.NodeID) topo.Path {
		return topo.Path{Kind: topo.PathSYS, BW: 10}
	})
	return m
}

// TestHivesAreGroupsInTheirOrder: GPUs that XGMI joins, in the order of the first of each group; none where
// one has other links, or where the groups are not as large as they should be (graph/rome_models.cc:3002).
func TestHivesAreGroupsInTheirOrder(t *testing.T) {
	want := []int{0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15}
	if got := hiveMachine(t, 16, 4, 0).hivesOf(4); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for what, change := range map[string]func(m *machine){
		"fewer links":            func(m *machine) { m.links = 2 },
		"more links":             func(m *machine) { m.links = 4 },
		"seventeen GPUs":         func(m *machine) { m.gpus = append(m.gpus, device{}) },
		"a GPU of no hive":       func(m *machine) { m.xgmi[15*16+3] = 0 },
		"a GPU of another hive":  func(m *machine) { m.xgmi[15*16+3], m.xgmi[15*16+2] = 0, 1 },
		"two hives that are one": func(m *machine) { m.xgmi[1*16+0] = 1 },
	} {
		m := hiveMachine(t, 16, 4, 0)
		if change(m); what == "seventeen GPUs" { // which none joins
			m.xgmi = slices.Grow(m.xgmi, 100)[:17*17]
		}
		if got := m.hivesOf(4); got != nil {
			t.Errorf("%s: %v", what, got)
		}
	}
}

// TestHivesWithANICBesideEachGPU: four hives of four GPUs with sixteen NICs have the rings of a model of
// their own (graph/rome_models.cc:3038), by the NIC that is beside each GPU; two hives of eight without NICs
// have those of another (graph/rome_models.cc:3158).
func TestHivesWithANICBesideEachGPU(t *testing.T) {
	four := func(m *machine) (*search.Graph, *Result) {
		f := &finder{m: m, res: &Result{Model: None, Tuning: -1}}
		return f.fourHives(search.RingID), f.res
	}
	m := hiveMachine(t, 16, 4, 16)
	g, r := four(m)
	if g == nil || g.NChannels == 0 || r.Model != Hives || r.Name != hives || r.Kinds != topo.Rome4P2H ||
		len(named(hives).options) > 0 { // which would count
		t.Fatalf("%+v, %+v", g, r)
	}
	for i, gpu := range m.hivesOf(4) {
		if r.GPUs[i] != 100+gpu || (5*r.NICs[i]+3)%16 != gpu {
			t.Errorf("place %d: GPU %d and NIC %d, want those of GPU %d", i, r.GPUs[i], r.NICs[i], gpu)
		}
	}
	for what, change := range map[string]func(m *machine){
		"another processor":       func(m *machine) { m.cpu.Model = topo.ModelRome + 1 },
		"fifteen NICs":            func(m *machine) { m.nics = m.nics[1:] },
		"fifteen GPUs":            func(m *machine) { m.gpus = m.gpus[1:] },
		"other hives":             func(m *machine) { m.links = 7 },
		"a NIC beside no GPU":     func(m *machine) { m.near[3] = topo.PathPXB },
		"two NICs beside one GPU": func(m *machine) { m.near[3], m.near[8] = topo.PathSYS, topo.PathPIX },
	} {
		m := hiveMachine(t, 16, 4, 16)
		change(m)
		if g, r := four(m); g != nil || r.Model != None || r.Kinds != 0 {
			t.Errorf("%s: %+v, %+v", what, g, r)
		}
	}
	two := func(m *machine) (*search.Graph, *Result) {
		f := &finder{m: m, res: &Result{Model: None, Tuning: -1}}
		return f.gigaIO(search.RingID), f.res
	}
	m = hiveMachine(t, 16, 2, 0)
	m.cpus = 2
	if g, r := two(m); g == nil || g.NChannels == 0 || r.Model != GigaIO || r.Kinds != topo.Rome4P2H {
		t.Errorf("%+v, %+v", g, r)
	}
	for what, change := range map[string]func(m *machine){
		"three processors": func(m *machine) { m.cpus = 3 },
		"a NIC":            func(m *machine) { m.nics = append(m.nics, device{}) },
		"eight GPUs":       func(m *machine) { *m = *hiveMachine(t, 8, 1, 0) },
		"four hives":       func(m *machine) { *m = *hiveMachine(t, 16, 4, 0) },
	} {
		m := hiveMachine(t, 16, 2, 0)
		change(m)
		if g, r := two(m); g != nil || r.Model != None || r.Kinds != 0 {
			t.Errorf("%s: %+v, %+v", what, g, r)
		}
	}
}
