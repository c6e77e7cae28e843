package rules

import (
	"math"
	"slices"

	"github.com/simccl/simccl/coll"
)

// nccl2297 makes the rules of NCCL 2.29.7. Citations are of v2.29.7-1.
func nccl2297() *Ruleset {
	r := nccl2289()
	r.Release = Release{2, 29, 7}

	t := &r.Topo
	t.MaxNodes = 640                       // include/graph.h:94
	t.GINNodes = true                      // graph/topo.cc:437
	t.P2CLocalOnly = true                  // graph/paths.cc:688
	t.GDRLevelC2C, t.P2CAsC2C = P2C, false // graph/paths.cc:460
	r.Search.SYSBelowSM90 = true           // graph/search.cc:1039
	r.Search.NoGraphNets = true            // graph/search.cc:1195
	sm100 := &r.Search.Speeds[0]           // graph/search.cc:979
	sm100.Intra = insert(sm100.Intra, 45)
	sm100.Inter = insert(sm100.Inter, 80)

	c := &r.Connect
	c.P2PChunkARM = 2 // init.cc:775
	// graph/paths.cc:832, 872, device.h:325
	c.PeerChannels, c.PeersAgree, c.PeersByTurns, c.PeerBatch = peersByBandwidth, true, true, 8

	u := &r.Tuning
	u.RingLL128Max[3] = [3]float64{40, 40, 40} // graph/tuning.cc:180
	u.LongestUs = math.MaxFloat32              // enqueue.cc:1940
	u.NVLSTreeSM = 100                         // graph/tuning.cc:596

	r.Log.RankOfInit = true                               // init.cc:1699
	r.Plan.LLByParts = true                               // enqueue.cc:878
	r.Plan.MinTraffic, r.Plan.RoundShare = 32<<10, true   // enqueue.cc:581, 614
	r.Plan.EpochBatches, r.Plan.RoundsResume = true, true // enqueue.cc:139, 1123
	r.Plan.GathersCaptured = true                         // enqueue.cc:2946
	r.Plan.BroadcastsJoin = true                          // scheduler/allgatherv_sched.cc:27

	s := &r.Sym
	// include/sym_kernels.h: the communicator takes 288 bytes
	s.Tasks = 55
	s.NVLinkOnly, s.MulticastRanks = true, 3 // sym_kernels.cc:414, 560
	// sym_kernels.cc:31, init.cc:1471
	s.GIN = []GINKernel{{Name: "AllGather_RailRing_LsaSTMC", Func: coll.AllGather, Stores: true},
		{Name: "ReduceScatter_RailA2A_LsaLD", Func: coll.ReduceScatter},
		{Name: "ReduceScatter_RailA2A_LsaLDMC", Func: coll.ReduceScatter, Loads: true}}
	s.GINPhysical = true
	s.OneBuffer = true                                          // sym_kernels.cc:581
	s.CopySend, s.CopyGather, s.CopyRounds = false, 8<<20, true // ce_coll.cc:113, 389, enqueue.cc:31, 2966
	return r
}

// nccl2292 makes the rules of NCCL 2.29.2 and 2.29.3. Citations are of v2.29.3-1.
func nccl2292() *Ruleset {
	r := nccl2297()
	r.Release = Release{2, 29, 2}
	r.Topo.MaxNodes = 576        // include/graph.h:93
	r.Topo.GINNodes = false      // graph/topo.cc:409
	sm100 := &r.Search.Speeds[0] // graph/search.cc:987
	sm100.Inter = without(sm100.Inter, 80)
	r.Tuning.RingLL128Max[3] = [3]float64{34.5, 34.6, 34.5} // graph/tuning.cc:179
	r.Plan.RoundsResume = false                             // enqueue.cc:1114
	// include/sym_kernels.h: the communicator takes 216 bytes; sym_kernels.cc:279, 347;
	// scheduler/symmetric_sched.cc:116
	r.Sym.Tasks, r.Sym.MulticastRanks, r.Sym.LLByCost = 56, 2, true
	// sym_kernels.cc:28, init.cc:1440
	r.Sym.GIN = []GINKernel{{Name: "AllGather_GinHier_MCRing", Func: coll.AllGather, Stores: true}}
	return r
}

// without leaves a speed out of a list.
func without(list []float32, speed float32) []float32 {
	return slices.DeleteFunc(slices.Clone(list), func(v float32) bool { return v == speed })
}

// insert adds a speed to a list that falls.
func insert(list []float32, speed float32) []float32 {
	i := 0
	for i < len(list) && list[i] > speed {
		i++
	}
	return append(list[:i:i], append([]float32{speed}, list[i:]...)...)
}

// peersByBandwidth: enough channels for the nets of a GPU with ChannelBW each, at
// least one a net (graph/paths.cc:832, 851; NCCL_P2P_PER_CHANNEL_NET_BW).
func peersByBandwidth(p Peer) int {
	if p.NetsToFill == 0 {
		return 2
	}
	return max(p.NetsToFill, (int(p.NetsBW)+p.ChannelBW-1)/p.ChannelBW)
}
