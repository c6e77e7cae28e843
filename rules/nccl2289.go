package rules

import "github.com/simccl/simccl/coll"

// nccl2289 makes the rules of NCCL 2.28.9.
func nccl2289() *Ruleset {
	return &Ruleset{
		Release:     Release{2, 28, 9},
		MaxChannels: 64, // device.h:86
		Topo:        topo2289(),
		Search:      search2289(),
		Connect:     connect2289(),
		Tuning:      tuning2289(),
		Plan: Plan{
			// 32 KiB from 2.29.2, which also rounds a share up to 16 bytes instead of raising
			// it to this: the same for one operation, whose cells are multiples of both.
			MinTraffic:   16 << 10, // enqueue.cc:529
			BatchByRound: true,     // enqueue.cc:138; since 2.28.7
			// enqueue.cc:419, 600; 1 before 2.26.2 (2.25.1 enqueue.cc:503)
			LLTraffic: 4,
			NVLSGrain: 16 << 10,                  // device/all_reduce.h:413; 16 before 2.23.4
			SlowNVLS:  150, SlowNVLSChunk: 32768, // enqueue.cc:2046
			NVLSTreeChunk: 65536, NVLSTreeNodes: 4, // enqueue.cc:2063

			NVLSRegistered: nvlsRegisteredByHeads,
			RegistersP2P:   true, // register/coll_reg.cc:120; since 2.23.4
		},
		Sym: symmetric2289(),
	}
}

func topo2289() Topo {
	return Topo{
		// graph/topo.h:15-21, 274. sm_86 alone has 12: the row of 87 ends it.
		// 40.0 for sm_100 before 2.27.5, 20.6 before 2.25.1.
		NVLinkBW: []SMRow{{100, 40.1}, {90, 20.6}, {87, 20}, {86, 12}, {70, 20}, {60, 18}, {0, 20}},
		// graph/topo.h:24-27; NewestSKL before 2.26.2.
		IntelBDW: 6, IntelSKL: 10, IntelSRP: 22, IntelERP: 40,
		MaxNodes: 576, MaxLinks: 576, // graph.h:89, graph/topo.h:110
		P2PLevel: PXB, P2PLevelAMD: SYS, P2PAMDGPUs: 2, // graph/paths.cc:319-324
		P2PLevelOther: PXB,                  // graph/paths.cc:319; SYS before 2.23.4
		PXNFrom:       PXN,                  // graph/paths.cc:730; PXB before 2.27.7
		FusedDevice:   true,                 // graph/topo.cc:1217; since 2.28.3
		C2CLinks:      true, P2CPaths: true, // graph/topo.h:73-98, paths.cc:181
		P2CLocalOnly: false,                                 // paths.cc:700-711; true from 2.29
		PXNC2C:       true,                                  // paths.cc:639
		PeersByC2C:   true,                                  // search.cc:1335; since 2.27.7
		GDRC2C:       true,                                  // paths.cc:416
		GDRLevel:     PXB, GDRLevelC2C: PXB, P2CAsC2C: true, // paths.cc:453, 467; P2C outright from 2.29
		PXNNeedsGDR:  false, // paths.cc:723-733; true from 2.30
		FuseNICs:     true,  // graph/topo.cc:1261
		PCILinks:     true,  // graph/topo.cc:621
		WidenFused:   true,  // graph/topo.cc:1240; since 2.28.3
		WidenPorts:   true,  // graph/topo.cc:1240; false from 2.30.7 (2.30.7 topo.cc:1587)
		GUIDFallback: true,  // graph/topo.cc:367; since 2.28.7
	}
}

func search2289() Search {
	return Search{
		// graph/search.cc:976-988. Rows of sm_100 change with nearly every release.
		Speeds: []Speeds{
			{100, []float32{90, 80, 70, 60, 50, 40, 30, 24, 20, 19, 18},
				[]float32{96, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12}},
			{90, []float32{60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3},
				[]float32{48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12}},
			{0, []float32{40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3},
				[]float32{48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12}},
		},
		MaxNVLSHeads: 32, // search.cc:1038, device.h:207; the number of GPUs before 2.25
		// search.cc:1039, device.h:206; the number of GPUs before 2.25
		MaxCollNetHeads:   8,
		CollNetDirectFile: 4,     // init.cc:1039; the chain's 2 before 2.23.4
		KindsOfSystem:     true,  // search.cc:1000-1011; false before 2.25 (2.24.3 search.cc:949)
		SYSBelowSM90:      false, // true from 2.29 (2.29.2 search.cc:1038)
		TwoIslands:        true,  // search.cc:1049; since 2.26.2
		ScatterNets:       true,  // search.cc:507; since 2.27.5
		CapNets:           true,  // search.cc:523; since 2.28.7
	}
}

func connect2289() Connect {
	const steps = 8 // NCCL_STEPS, device.h:24
	return Connect{
		// graph/connect.cc:396; true before 2.26 (2.25.1 connect.cc:393)
		SwapAnyCross: false,
		// init.cc:1111-1117; since 2.22.3
		MixedCPUs: true,
		// init.cc:1187; true before 2.26.2
		OwnTreePattern: false,
		// connect.cc:473; exactly sm_90 before 2.25
		DoubleSM: 90, DoubleExact: false, DoubleBW: 45, DoubleBelow: 16,
		// transport/nvls.cc:148; 16 before 2.25.1, no 24 before 2.27.3
		NVLSSM90: 16, NVLSSM100: 32, NVLSSM100OneDomain: 24,
		NVLSMinGPUs: 2,     // transport/nvls.cc:161; 3 before 2.28.7
		NVLSRaises:  false, // true before 2.28 (2.27.7 connect.cc:493)

		CollNetRanks:  0,    // 8 before 2.23.4 (2.22.3 init.cc:1037)
		CollNetOfNVLS: true, // transport/coll_net.cc:1492; since 2.28.3

		// init.cc:697
		Buffers: [coll.NumProtocols]int64{coll.LL: 8 * 512 * steps * 16, coll.LL128: 120 * 640 * steps * 8,
			coll.Simple: 4 << 20},
		// init.cc:704
		P2PChunk: 128 << 10, P2PNVLChunk: 512 << 10,
		NVLSChunk: 128 << 10, // transport/nvls.cc:153
		P2PGroup:  8,         // init.cc:768, device.h:364

		// graph/paths.cc:837, 861; by bandwidth and exchanged from 2.29
		PeerChannels: peersByNICs, PeersAgree: false,
	}
}

// nvlsRegisteredByHeads: eights of channels, shared among the heads (transport/nvls.cc:902).
func nvlsRegisteredByHeads(in NVLSRegistration) int {
	k, sm100 := 4, in.MinSM >= 100
	switch {
	case in.Nodes == 1 && in.Func == coll.ReduceScatter:
		k = 5
		if sm100 {
			k = 6
		}
	case in.Nodes == 1 && in.Func == coll.AllReduce && sm100:
		k = 8
	case in.Nodes > 1:
		k = 6
		if in.Func == coll.AllReduce && sm100 || in.Func == coll.ReduceScatter && in.BusBW > 400 {
			k = 7
		}
	}
	return (k*8 + in.Heads - 1) / in.Heads
}

// peersByNICs: two channels a peer, halved while the peers together would take
// four times the channels there are, but as many as there are NICs to fill
// (graph/paths.cc:837).
func peersByNICs(p Peer) int {
	n := 2
	for n > 1 && n*p.Ranks > p.P2PChannels*4 {
		n /= 2
	}
	return max(n, p.NetsToFill)
}

// tuning2289: tables of graph/tuning.cc:128-196 and 577-583. Columns of the
// latencies are LL, LL128, Simple; rows Tree, Ring, CollNetDirect,
// CollNetChain, NVLS, NVLSTree, PAT.
func tuning2289() Tuning {
	return Tuning{
		BaseLat: Cells{{6.8, 14.0, 8.4}, {6.6, 14.0, 8.4}, {}, {}, {}, {}, {8, 8, 8}},
		HWLat: [NumHops]Cells{
			HopNVLink: {{.6, 1.25, 4}, {.6, 1.9, 3.4}, {0, 0, 3.7}, {0, 0, 2.8}, {0, 0, 25}, {0, 0, 25},
				{0, 0, 4}},
			HopPCI: {{1, 1.9, 4}, {1, 2.5, 5.7}, {0, 0, 3.7}, {0, 0, 2.8}, {}, {}, {0, 0, 4}},
			HopNet: {{5, 8.5, 14}, {2.7, 4, 14}, {0, 0, 31}, {0, 0, 30}, {0, 0, 18}, {0, 0, 20.9},
				{0, 0, 14}},
		},
		LLMax:        Caps{{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}},
		RingLL128Max: Caps{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {73.4, 34.6, 73.4}},
		TreeLL128Max: Caps{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {55.6, 31.67, 20}},
		TreeMax:      Caps{{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}},
		NVLSTreeMax:  Caps{{26.5, 18.5, 10}, {24, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96, 43.8}},
		NVLSEff:      [Classes]float32{0, 0, .85, .74},
		TreeCorrection: [coll.NumProtocols][24]float32{
			{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},
			{1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1},
			{.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9},
		},
		CorrectAllTrees: false, // tuning.cc:592; true before 2.23 (2.22.3 tuning.cc:434)
		// tuning.cc:305; .7 where sparse before 2.23.4 (2.22.3 tuning.cc:179)
		RingLL128: .92, RingLL128Sparse: .92,
		NetLatOfTree: true,                         // tuning.cc:352; since 2.23.4
		NetRoundTrip: false,                        // tuning.cc:378; true before 2.23 (2.22.3 tuning.cc:159)
		LLMixedAsAMD: true,                         // tuning.cc:252; since 2.24.3
		LL128MinSM:   70,                           // tuning.cc:493; 70, 80 and 90 alone before 2.27.3
		LL128MixedSM: 0,                            // tuning.cc:492; 90 from 2.30.3 (2.30.3 tuning.cc:501)
		PAT:          true, PATSM: 60, PATEff: .75, // tuning.cc:202-208, 310; .85 in 2.23.4, none before

		LongestUs: 3600000000, // an hour: enqueue.cc:1828; none from 2.29.2 (2.29.2 enqueue.cc:1935)

		NVLSLeast:     2, // tuning.cc:288; 0 before 2.28.3
		NVLSBandwidth: nvlsByEfficiency,
		// tuning.cc:311
		CollNetGather: func(perNode, intra, inter float32, _ bool) float32 {
			return perNode * min(intra, inter*0.9)
		},
		CollNetMean:       false, // tuning.cc:337; true before 2.27.3 (2.26.6 tuning.cc:271)
		CollNetChainRanks: 8,     // enqueue.cc:1801; 0 before 2.28.3
		CollNetChainHeads: false, // true from 2.30.7 (2.30.7 transport/coll_net.cc:1730)
		// enqueue.cc:1802; one node alone before 2.27.3 (2.26.2 enqueue.cc:1672)
		NVLSGathersInter: true, NVLSGatherRanks: 32,
		NVLSFewest: true, // enqueue.cc:1882; since 2.28
	}
}

// nvlsByEfficiency: a share of the speed within the node, twice that for an
// AllReduce, and no more than the network brings; of two nodes both directions
// (graph/tuning.cc:286-300).
func nvlsByEfficiency(t *Tuning, in NVLS) float32 {
	n := float32(in.Channels)
	intra := in.Intra * t.NVLSEff[in.Class] * (n - 1) / n
	if in.AllReduce {
		intra *= 2
	} else {
		intra *= (in.PerNode - 1) / in.PerNode
	}
	inter := in.Inter
	if !in.Tree {
		return min(intra, inter)
	}
	if in.Nodes <= 2 {
		inter *= 2
	}
	return min(intra, inter, float32(t.NVLSTreeMax[in.Class][in.Scale]))
}
