package tuning

import (
	"cmp"
	"math"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
)

// Thread bounds (include/device.h:86-109) and bytes per thread
// (include/comm.h:41-43).
const (
	warp             = 32
	maxThreads       = 640
	simpleMaxThreads = 512
	llMaxThreads     = 512
	ll128MaxThreads  = 640

	llThreshold      = 8
	ll128Threshold   = 8
	simpleThreshold  = 64
	collNetThreshold = 512

	// slowRing is the ring bandwidth in GB/s up to which 256 threads do
	// (graph/topo.h:22, PCI Gen3 x16).
	slowRing = 12.0
)

// threads applies a user's thread count within its bounds (tuning.cc:16-33).
func threads(user units.Opt[int64], lo, hi, def int) int {
	return blockThreads(user, warp, lo, hi, def)
}

// blockThreads is threads for warps of so many lanes.
func blockThreads(user units.Opt[int64], lanes, lo, hi, def int) int {
	nt := int(int32(user.Or(0)))
	switch {
	case nt <= 0:
		return def
	case nt%lanes != 0 || nt > hi:
		return hi
	case nt < lo:
		return lo
	}
	return nt
}

func (m *Model) setMaxThreads() {
	g := m.In.graph(coll.Ring)
	def := simpleMaxThreads
	slow := float64(float32(g.BWIntra)*float32(g.NChannels)) <= slowRing
	if slow {
		def = 256
	}
	if m.cost != nil {
		m.amdThreads(slow)
		return
	}
	p := &m.Params
	m.MaxThreads[coll.Ring][coll.Simple] = threads(p.NThreads, 2*warp, simpleMaxThreads, def)
	m.MaxThreads[coll.Tree][coll.Simple] = threads(p.NThreads, 2*warp, simpleMaxThreads, simpleMaxThreads)
	for _, a := range []coll.Algorithm{coll.CollNetDirect, coll.CollNetChain, coll.NVLS, coll.NVLSTree} {
		m.MaxThreads[a][coll.Simple] = maxThreads
	}
	for _, a := range []coll.Algorithm{coll.Ring, coll.Tree} {
		m.MaxThreads[a][coll.LL] = threads(p.NThreads, 2*warp, llMaxThreads, llMaxThreads)
		m.MaxThreads[a][coll.LL128] = threads(p.LL128NThreads, ll128MaxThreads/4, ll128MaxThreads,
			ll128MaxThreads)
	}
}

// setThresholds: tuning.cc:541-562.
func (m *Model) setThresholds() {
	t := &m.ThreadThreshold
	for a := range t {
		t[a] = [nProtos]int64{llThreshold, ll128Threshold, simpleThreshold}
	}
	t[coll.Ring][coll.LL] *= int64(m.In.NRanks)
	grain := cmp.Or(m.tab.CollNetGrain, collNetThreshold)
	t[coll.CollNetDirect][coll.Simple], t[coll.CollNetChain][coll.Simple] = grain, grain
	if s := m.Params.ThreadThresholds; s.Set {
		for i, v := range scanLongs(s.Value, 2*nProtos) {
			if v >= 0 {
				t[i/nProtos][i%nProtos] = v
			}
		}
	}
}

// scanLongs reads up to n decimal integers as sscanf's %ld does: blanks are
// skipped, the first that is no number ends the reading.
func scanLongs(s string, n int) []int64 {
	var out []int64
	for i := 0; len(out) < n; {
		for i < len(s) && (s[i] == ' ' || s[i] >= '\t' && s[i] <= '\r') {
			i++
		}
		neg := false
		if i < len(s) && (s[i] == '-' || s[i] == '+') {
			neg = s[i] == '-'
			i++
		}
		start, v := i, int64(0)
		for ; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
			d := int64(s[i] - '0')
			if v > (math.MaxInt64-d)/10 {
				v = math.MaxInt64
			} else {
				v = v*10 + d
			}
		}
		if i == start {
			break
		}
		if neg {
			v = -v
		}
		out = append(out, v)
	}
	return out
}
