package rules

import "github.com/simccl/simccl/coll"

// nccl2277 makes the rules of NCCL 2.27.7. Citations are of v2.27.7-1.
func nccl2277() *Ruleset {
	r := nccl2289()
	r.Release = Release{2, 27, 7}

	t := &r.Topo
	t.PXNC2C = false       // graph/paths.cc:627
	t.WidenFused = false   // graph/topo.cc:1113
	t.GUIDFallback = false // graph/topo.cc:321
	t.GUIDPrefixed = true  // graph/topo.cc:363
	t.TrimNets = true      // graph/paths.cc:779
	t.FusedDevice = false  // graph/topo.cc:1116

	r.Search.CapNets = false // there is no NCCL_NETDEVS_POLICY before 2.28.3

	c := &r.Connect
	c.NVLSMinGPUs = 3           // transport/nvls.cc:161
	c.CollNetOfNVLS = false     // transport/coll_net.cc:1480
	c.NVLSRaises = true         // graph/connect.cc:493
	c.P2PGroup = 0              // init.cc:1093
	c.P2PReverseParts = true    // include/device.h:269
	r.Plan.BatchByRound = false // enqueue.cc:73
	// enqueue.cc:339: a group of one collective alone; init.cc:1250
	r.Sym = Symmetric{Kernels: true, Tasks: 1, DirectP2P: true, MulticastRanks: 2}

	u := &r.Tuning
	u.HWLat[HopNet][coll.NVLSTree][coll.Simple] = 14 // graph/tuning.cc:160
	u.RingLL128Max[3] = [3]float64{2 * 36.7, 2 * 36.7, 2 * 36.7}
	u.TreeLL128Max[3] = [3]float64{2 * 36.7, 2 * 36.7, 2 * 29}
	u.TreeMax[3] = [3]float64{2 * 38.7, 2 * 41.4, 2 * 36}
	u.NVLSLeast, u.NVLSRatio, u.NVLSBandwidth = 0, 5.0/6.0, nvlsOfGraph // graph/tuning.cc:267, 324
	u.CollNetChainRanks = 0                                             // enqueue.cc:1765
	u.NVLSFewest = false                                                // enqueue.cc:1535
	return r
}

// nvlsOfGraph: the speeds of the graph, of which a gather has less
// (graph/tuning.cc:267-275 of v2.27.7-1).
func nvlsOfGraph(t *Tuning, in NVLS) float32 {
	switch {
	case in.Tree && in.Nodes <= 2:
		return min(in.Intra, in.Inter)
	case in.Tree:
		return min(in.Intra, in.Inter/2)
	case in.AllReduce:
		return min(in.Intra, in.Inter)
	}
	return min(in.Intra*(in.PerNode-1)/in.PerNode, in.Inter*0.9)
}
