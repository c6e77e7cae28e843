package rules

import "github.com/simccl/simccl/coll"

// nccl2307 makes the rules of NCCL 2.30.7. Citations are of v2.30.7-1.
func nccl2307() *Ruleset {
	r := nccl2297()
	r.Release = Release{2, 30, 7}
	// graph/paths.cc:830, graph/search.cc:1464
	r.Topo.PXNNeedsGDR = true
	r.Topo.NetRails = true                                          // graph/topo.cc:427, graph/search.cc:598
	r.Topo.DevNodes, r.Topo.PathsByKind = true, true                // graph/topo.cc, graph/paths.cc:98
	r.Topo.GPUParts = true                                          // graph/topo.cc:590
	r.Topo.NearestCPU = true                                        // graph/paths.cc:189
	r.Topo.NetsByShare = true                                       // graph/topo.cc:2070
	r.Topo.FuseOneCPU = true                                        // graph/topo.cc:1565
	r.Topo.WidenPorts = false                                       // graph/topo.cc:1587
	r.Search.Speeds[0].Inter = insert(r.Search.Speeds[0].Inter, 86) // graph/search.cc:1107
	r.Search.GraphRanks = true                                      // graph/search.cc:1016
	r.Topo.GINPorts = true                                          // graph/topo.cc:1694
	r.Connect.NVLSTune = nvlsOfSM100                                // transport/nvls.cc:160
	r.Plan.NVLSRegistered = nvlsRegisteredByNets                    // transport/nvls.cc:1120
	r.Connect.NVLinkOfAll = true                                    // init.cc:1313
	r.Sym.CopyNodes = true                                          // ce_coll.cc:719, enqueue.cc:3054
	r.Connect.NVBPeers = true                                       // graph/paths.cc:927
	r.Tuning.NVLSTreeMax[3][2] = 80                                 // graph/tuning.cc:210
	r.Tuning.LL128MixedSM = 90                                      // graph/tuning.cc:560
	r.Tuning.CollNetChainHeads = true                               // transport/coll_net.cc:1730
	r.Log.NVLSTuning = true                                         // transport/nvls.cc:242
	r.Sym.AloneNVLink = true                                        // graph/paths.cc:1070
	r.Sym.GINPhysical = false                                       // init.cc:1669
	r.Sym.Avg, r.Sym.TMA = true, true                               // sym_kernels.cc:532, 581
	return r
}

// nccl2303 makes the rules of NCCL 2.30.3 and 2.30.4. Citations are of v2.30.4-1.
func nccl2303() *Ruleset {
	r := nccl2307()
	r.Release = Release{2, 30, 3}
	t := &r.Topo
	t.NetRails = false                            // graph/topo.cc:413, graph/search.cc:567
	t.PathsByKind = false                         // graph/paths.cc:80
	t.GPUParts = false                            // graph/topo.cc: since 2.30.7
	t.NearestCPU = false                          // graph/paths.cc:170
	t.NetsByShare = false                         // graph/topo.cc:1799
	t.FuseOneCPU = false                          // graph/topo.cc:1367
	t.WidenPorts = true                           // graph/topo.cc:1340
	t.GINPorts = false                            // graph/topo.cc:1119
	r.Sym.GINPhysical = true                      // init.cc:1610
	r.Connect.NVBPeers = false                    // graph/paths.cc:889
	r.Plan.NVLSRegistered = nvlsRegisteredByHeads // transport/nvls.cc:993
	r.Connect.NVLinkOfAll = false                 // init.cc:1429
	r.Sym.AloneNVLink = false                     // graph/paths.cc:1019
	r.Sym.CopyNodes = false                       // ce_coll.cc: since 2.30.7
	r.Tuning.CollNetChainHeads = false            // transport/coll_net.cc:1531
	return r
}

// nvlsRegisteredByNets: an AllReduce between nodes of Blackwell has ten for eight heads over
// nets of at least 96 GB/s (transport/nvls.cc:1120).
func nvlsRegisteredByNets(in NVLSRegistration) int {
	if in.Func == coll.AllReduce && in.Nodes > 1 && in.MinSM >= 100 && in.NetBW >= 96 {
		return (10*8 + in.Heads - 1) / in.Heads
	}
	return nvlsRegisteredByHeads(in)
}

// nvlsOfSM100 gives communicators of Blackwell GPUs on several nodes the channels and
// chunks of NVLS by the speed of their nets, the size of the nodes, and how far the
// nets are (transport/nvls.cc:160).
func nvlsOfSM100(s NVLSShape) NVLSTuned {
	const ki = 1 << 10
	if s.MinSM < 100 || s.Nodes < 2 {
		return NVLSTuned{}
	}
	t := NVLSTuned{Chunk: 128 * ki}
	near := s.TypeInter <= PXB
	switch {
	case s.NetBW < 48:
	case s.Nodes == 2:
		t.Channels, t.TreeChunk = 32, 128*ki
		switch {
		case s.PerNode <= 4:
			t.Chunk, t.TreeChunk = 256*ki, 256*ki
		case s.PerNode >= 16, s.PerNode <= 8 && near && s.NetBW < 96:
			t.TreeChunk = 64 * ki
		}
	case s.NetBW < 96:
		t.Channels, t.TreeChunk = 24, 128*ki
		if near {
			t.TreeChunk = 64 * ki
		}
	case s.PerNode <= 8:
		t = NVLSTuned{Channels: 24, Chunk: 256 * ki, TreeChunk: 256 * ki}
	case s.PerNode < 32:
		t.Channels, t.TreeChunk = 32, 128*ki
	default:
		t.Channels, t.TreeChunk = 32, 64*ki
	}
	return t
}
