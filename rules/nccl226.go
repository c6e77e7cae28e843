package rules

import "github.com/simccl/simccl/coll"

// nccl2287 makes the rules of NCCL 2.28.7. Citations are of v2.28.7-1.
func nccl2287() *Ruleset {
	r := nccl2289()
	r.Release = Release{2, 28, 7}
	r.Connect.P2PGroupAlone = true // init.cc:772

	u := &r.Tuning
	u.HWLat[HopNet][coll.NVLSTree][coll.Simple] = 14 // graph/tuning.cc:165
	u.NVLSTreeMax[3][2] = 43.1                       // graph/tuning.cc:197
	return r
}

// nccl2283 makes the rules of NCCL 2.28.3. Citations are of v2.28.3-1.
func nccl2283() *Ruleset {
	r := nccl2287()
	r.Release = Release{2, 28, 3}
	r.Topo.GUIDFallback = false // graph/topo.cc:317
	r.Topo.GUIDPrefixed = true  // graph/topo.cc:365
	r.Topo.TrimNets = true      // graph/paths.cc:680
	r.Connect.NVLSMinGPUs = 3   // transport/nvls.cc:137
	r.Connect.P2PGroup = 0      // init.cc
	r.Connect.P2PGroupAlone = false
	r.Search.CapNets = false    // graph/search.cc:522
	r.Plan.BatchByRound = false // enqueue.cc:73
	// include/sym_kernels.h: the communicator takes 112 bytes; init.cc:1331
	r.Sym.Tasks, r.Sym.DirectP2P = 58, true

	r.Tuning.RingLL128Max[3] = [3]float64{2 * 36.7, 2 * 36.7, 2 * 36.7} // graph/tuning.cc:185
	return r
}

// nccl2275 makes the rules of NCCL 2.27.5. Citations are of v2.27.5-1.
func nccl2275() *Ruleset {
	r := nccl2277()
	r.Release = Release{2, 27, 5}
	r.Topo.PXNFrom = PXB      // graph/paths.cc:705: its limit, with NCCL_PXN_C2C=0
	r.Topo.PeersByC2C = false // graph/search.cc:1310
	sm100 := &r.Search.Speeds[0]
	sm100.Inter = sm100.Inter[1:] // graph/search.cc:916: no 96
	return r
}

// nccl2273 makes the rules of NCCL 2.27.3. Citations are of v2.27.3-1.
func nccl2273() *Ruleset {
	r := nccl2275()
	r.Release = Release{2, 27, 3}
	r.Topo.NVLinkBW[0].BW = 40                          // graph/topo.h:20
	r.Tuning.LL128AlsoPXN = true                        // graph/tuning.cc:460
	r.Topo.P2CFromPHB, r.Topo.PXNBeforeP2C = true, true // graph/paths.cc:585, graph/topo.h:80
	// search.cc: no such order before 2.27.5
	r.Search.ScatterNets = false
	r.Log.GPURanks = true                                               // graph/search.cc:1139
	r.Search.FirstGPUs = NearestGPUs                                    // graph/search.cc:603
	r.Search.Speeds[0].Inter[0], r.Search.Speeds[0].Inter[1] = 47.9, 45 // graph/search.cc:866
	return r
}

// nccl2266 makes the rules of NCCL 2.26.6. Citations are of v2.26.6-1.
func nccl2266() *Ruleset {
	r := nccl2273()
	r.Release = Release{2, 26, 6}
	r.Sym = Symmetric{} // symmetric.cc: since 2.27.3

	t := &r.Topo
	t.MaxNodes = 256                        // include/graph.h:77
	t.P2CPaths, t.P2CFromPHB = false, false // graph/topo.h:80
	t.PXNBeforeP2C = false                  // no P2C
	t.GDRC2C, t.GDRLevelC2C = false, PXB    // graph/paths.cc:329
	t.P2CAsC2C = false                      // graph/paths.cc:429
	r.Tuning.LL128AlsoPXN = false           // the variable is 2.27.3's
	t.FlattenSecond = true                  // graph/topo.cc:254
	t.FuseAlone = true                      // graph/topo.cc:972
	t.FusedBelowCards = true                // graph/topo.cc:1141
	t.Trims = TrimBranches                  // graph/xml.cc:964

	s := &r.Search
	s.FirstGPUs = FewestHops                       // graph/search.cc:612
	sm100 := &s.Speeds[0]                          // graph/search.cc:877
	sm100.Intra = sm100.Intra[:len(sm100.Intra)-1] // no 18
	sm100.Inter[0] = 48

	r.Connect.NVLSSM100OneDomain = r.Connect.NVLSSM100 // transport/nvls.cc:108

	r.Plan.NVLSRegistered = nvlsRegisteredFixed // register/coll_reg.cc:80

	u := &r.Tuning
	u.LL128SMs = []int{70, 80, 90, 100, 120} // graph/tuning.cc:429
	u.NVLSBandwidth = nvlsOfSlower           // graph/tuning.cc:248
	u.CollNetGather = collNetByNICs          // graph/tuning.cc:264
	u.CollNetMean = true                     // graph/tuning.cc:271
	u.NVLSGathersInter = false               // enqueue.cc:1399
	return r
}

// nvlsRegisteredFixed: a number for any heads (register/coll_reg.cc:80 of v2.26.6-1).
func nvlsRegisteredFixed(in NVLSRegistration) int {
	n := nvlsRegisteredFirst(in)
	switch {
	case in.MinSM < 100:
	case in.Nodes == 1 && in.Func != coll.ReduceScatter:
		n = 8
	default:
		n++
	}
	return n
}

// nvlsRegisteredFirst: the same on all GPUs (register/coll_reg.cc:80 of v2.24.3-1).
func nvlsRegisteredFirst(in NVLSRegistration) int {
	switch {
	case in.Nodes > 1:
		return 6
	case in.Func == coll.ReduceScatter:
		return 5
	}
	return 4
}

// nvlsOfSlower: the slower of the speeds of the graph (graph/tuning.cc:248 of
// v2.26.6-1).
func nvlsOfSlower(_ *Tuning, in NVLS) float32 {
	if in.Tree && in.Nodes > 2 {
		return min(in.Intra, in.Inter/2)
	}
	return min(in.Intra, in.Inter)
}

// collNetByNICs: the speed of all ranks of a node, of which more ranks lose more
// (graph/tuning.cc:264 of v2.26.6-1).
func collNetByNICs(perNode, intra, _ float32, _ bool) float32 {
	w := float64((perNode - 1) / (8 - 1))
	return float32(float64(perNode*intra) * (float64(w*0.85) + float64((1-w)*0.95)))
}

// nccl2262 makes the rules of NCCL 2.26.2: those of 2.26.6, which only repairs what
// decides nothing.
func nccl2262() *Ruleset {
	r := nccl2266()
	r.Release = Release{2, 26, 2}
	return r
}
