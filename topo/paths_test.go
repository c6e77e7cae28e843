package topo_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/refsys"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/units"
)

// cell is one path as references print it.
type cell struct {
	Type string
	BW   float32
	Hops int
	Via  []string
}

type matrices struct{ GPUGPU, GPUNet, NetGPU, GPUCpu, GPUNvs, NetCpu [][]cell }

// accessOf reads the few settings of the references that matter to paths; the
// config room reads all of them.
func accessOf(env map[string]string) *topo.Access {
	a := &topo.Access{PXNC2C: true, GDRC2C: true}
	level := func(s string) units.Opt[topo.PathKind] {
		for k := topo.PathLOC; k <= topo.PathSYS; k++ {
			if k.String() == s {
				return units.Some(k)
			}
		}
		return units.Opt[topo.PathKind]{}
	}
	if v, ok := env["NCCL_P2P_LEVEL"]; ok {
		a.P2PLevel = level(v)
	}
	if env["NCCL_P2P_DISABLE"] == "1" {
		a.P2PLevel = units.Some(topo.PathLOC)
	}
	if v, ok := env["NCCL_NET_GDR_LEVEL"]; ok {
		a.GDRLevel = level(v)
	}
	a.SHMDisable = env["NCCL_SHM_DISABLE"] == "1"
	a.NVBDisable = env["NCCL_NVB_DISABLE"] == "1"
	a.PXNDisable = env["NCCL_PXN_DISABLE"] == "1"
	a.PXNC2C = env["NCCL_PXN_C2C"] != "0"
	a.GDRC2C = env["NCCL_NET_GDR_C2C"] != "0"
	if env["NCCL_NET_GDR_READ"] == "0" {
		a.GDRRead = units.Some(0)
	}
	return a
}

// TestPathsOfReferenceSystems lays paths over the links of NCCL's own systems
// and compares every cell of every matrix (NCCL 2.28.9 graph/paths.cc,
// ncclTopoComputePaths).
func TestPathsOfReferenceSystems(t *testing.T) {
	equal, all := 0, 0
	for _, r := range golden.All(t) {
		r.Load(t)
		var want matrices
		r.Section(t, "paths", &want)
		raw := refsys.System(t, &r)
		var nRanks int
		r.Section(t, "nRanks", &nRanks)
		all++
		systems, err := topo.Complete(raw, accessOf(r.Env), nRanks)
		if err != nil {
			t.Errorf("%s: %v", r.Name, err)
			continue
		}
		ref := refsys.System(t, &r)
		s := systems[0]
		bad := differences(s, &want)
		if s.Inter != ref.Inter || !near(float32(s.MaxBW), float32(ref.MaxBW)) ||
			!near(float32(s.TotalBW), float32(ref.TotalBW)) {
			bad = append(bad, fmt.Sprintf("inter %v maxBw %v totalBw %v, want %v %v %v", s.Inter, s.MaxBW,
				s.TotalBW, ref.Inter, ref.MaxBW, ref.TotalBW))
		}
		for i, n := range s.Of(topo.NET) {
			if got, want := s.Nodes[n].Net.LocalGPU, ref.Nodes[ref.Of(topo.NET)[i]].Net.LocalGPU; got !=
				want {
				bad = append(bad, fmt.Sprintf("%s localGpu %d, want %d", s.Name(n), got, want))
			}
		}
		if len(bad) == 0 {
			equal++
		} else {
			t.Errorf("%s: %s", r.Name, strings.Join(bad[:min(3, len(bad))], "; "))
		}
	}
	t.Logf("paths equal on %d/%d", equal, all)
}

func differences(s *topo.System, want *matrices) (bad []string) {
	for _, m := range []struct {
		name     string
		from, to topo.NodeKind
		want     [][]cell
	}{{"gpuGpu", topo.GPU, topo.GPU, want.GPUGPU}, {"gpuNet", topo.GPU, topo.NET, want.GPUNet},
		{"netGpu", topo.NET, topo.GPU, want.NetGPU},
		{"gpuCpu", topo.GPU, topo.CPU, want.GPUCpu}, {"gpuNvs", topo.GPU, topo.NVS, want.GPUNvs},
		{"netCpu", topo.NET, topo.CPU, want.NetCpu}} {
		for i, from := range s.Of(m.from) {
			for j, to := range s.Of(m.to) {
				p := s.Path(from, to)
				got := cell{Type: p.Kind.String(), BW: float32(p.BW), Hops: len(p.Links), Via: []string{}}
				for _, l := range p.Links {
					got.Via = append(got.Via, s.Name(s.Links[l].To))
				}
				if i >= len(m.want) || j >= len(m.want[i]) {
					bad = append(bad, m.name+" has another size")
					continue
				}
				if w := m.want[i][j]; got.Type != w.Type || got.Hops != w.Hops || !near(got.BW, w.BW) ||
					strings.Join(got.Via, ">") != strings.Join(w.Via, ">") {
					bad = append(bad, fmt.Sprintf("%s %s to %s: %+v, want %+v", m.name, s.Name(from),
						s.Name(to), got, w))
				}
			}
		}
	}
	return bad
}

func near(a, b float32) bool {
	d := a - b
	return d <= 1e-5*max(a, b) && -d <= 1e-5*max(a, b)
}
