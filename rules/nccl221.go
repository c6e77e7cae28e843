package rules

import "github.com/simccl/simccl/coll"

// nccl2251 makes the rules of NCCL 2.25.1. Citations are of v2.25.1-1.
func nccl2251() *Ruleset {
	r := nccl2262()
	r.Release = Release{2, 25, 1}
	r.Topo.NewestSKL = true         // graph/topo.cc:514
	r.Topo.C2CLinks = false         // graph/topo.cc:652
	r.Search.TwoIslands = false     // search.cc: since 2.26.2
	r.Connect.SwapAnyCross = true   // graph/connect.cc:393
	r.Connect.OwnTreePattern = true // graph/tuning.cc:258
	r.Tuning.PATSM = 0              // graph/tuning.cc:191
	r.Plan.LLTraffic = 1            // enqueue.cc:503
	return r
}

// nccl2243 makes the rules of NCCL 2.24.3. Citations are of v2.24.3-1.
func nccl2243() *Ruleset {
	r := nccl2251()
	r.Release = Release{2, 24, 3}
	r.Connect.AnyNVLink = true                  // graph/paths.cc:832
	r.Plan.NVLSRegistered = nvlsRegisteredFirst // register/coll_reg.cc:80
	r.MaxChannels = 32                          // include/device.h:62
	r.Topo.MaxLinks = 128                       // graph/topo.h:94
	r.Topo.NVLinkBW = r.Topo.NVLinkBW[1:]       // graph/topo.h:16: sm_100 as sm_90
	r.Search.Speeds = r.Search.Speeds[1:]       // graph/search.cc:886
	r.Search.KindsOfSystem = false              // graph/search.cc:949
	r.Search.MaxCollNetHeads = r.MaxChannels    // graph/search.cc:976
	c := &r.Connect
	c.DoubleExact = true                                       // graph/connect.cc:450
	c.NVLSSM100, c.NVLSSM100OneDomain = c.NVLSSM90, c.NVLSSM90 // transport/nvls.cc:87

	u := &r.Tuning
	// graph/tuning.cc:147
	for _, caps := range []*Caps{&u.LLMax, &u.RingLL128Max, &u.TreeLL128Max, &u.TreeMax} {
		caps[3] = caps[2]
	}
	u.LL128SMs = []int{70, 80, 90} // graph/tuning.cc:420
	u.NVLSGatherRanks = 1 << 30    // enqueue.cc:1313
	return r
}

// nccl2234 makes the rules of NCCL 2.23.4. Citations are of v2.23.4-1.
func nccl2234() *Ruleset {
	r := nccl2243()
	r.Release = Release{2, 23, 4}
	r.Topo.FuseNICs = false       // topo.cc: since 2.24.3
	r.Topo.FuseAlone = false      // topo.cc: since 2.24.3
	r.Topo.NICsByCard = true      // graph/topo.cc:433
	r.Tuning.PATEff = .85         // graph/tuning.cc:215
	r.Tuning.LLMixedAsAMD = false // graph/tuning.cc:173
	r.Tuning.ListsOfAll = true    // graph/tuning.cc:21, 311
	r.Log.FirstNetTwice = true    // graph/search.cc:1145
	r.Log.NoColl = true           // graph/topo.cc:299
	r.Log.OpTime = true           // enqueue.cc:1855
	return r
}

// nccl2223 makes the rules of NCCL 2.22.3. Citations are of v2.22.3-1.
func nccl2223() *Ruleset {
	r := nccl2234()
	r.Release = Release{2, 22, 3}
	t := &r.Topo
	t.P2PLevelOther, t.P2PAMDGPUs = SYS, 1<<30 // graph/paths.cc:284
	r.Plan.RegistersP2P = false                // enqueue.cc:240: since 2.23.4 (enqueue.cc:345)
	r.Connect.CollNetRanks = 8                 // init.cc:1037
	r.Search.CollNetDirectFile = 2             // init.cc:872
	r.Search.HeadsKeepBW = true                // graph/search.cc:634
	r.Search.CrossAny = true                   // graph/search.cc:491, 571, 969
	// graph/topo.cc:284, graph/paths.cc:121, graph/search.cc:1115
	r.Log.RawIDs, r.Log.FirstNetTwice = true, false
	r.Log.WideRings = true // graph/rings.cc:12
	r.Log.OpNoFunc = true  // enqueue.cc:1613

	t.SignedIDs = true // graph/topo.h:108

	u := &r.Tuning
	u.PAT = false                         // tuning.cc: since 2.23.4
	u.BaseLat[coll.Tree][coll.Simple] = 0 // graph/tuning.cc:48
	for hop := range NumHops {            // graph/tuning.cc:64
		u.HWLat[hop][coll.Tree][coll.Simple] = 28
	}
	u.RingLL128Sparse = .7                           // graph/tuning.cc:201
	u.NVLSRatioAll = true                            // graph/tuning.cc:229
	u.NetLatOfTree = false                           // graph/tuning.cc:240
	u.NetRoundTrip = true                            // graph/tuning.cc:182
	u.CorrectAllTrees = true                         // graph/tuning.cc:462
	r.Plan.NVLSGrain = 16                            // device/all_reduce.h:385
	r.Plan.MinTraffic, r.Plan.SmallCells = 512, true // enqueue.cc:614, 650
	return r
}

// nccl2215 makes the rules of NCCL 2.21.5. Citations are of v2.21.5-1.
func nccl2215() *Ruleset {
	r := nccl2223()
	r.Release = Release{2, 21, 5}
	r.Connect.NVLSApart = true      // graph/connect.cc:472, enqueue.cc:1568, graph/tuning.cc:438
	r.Search.FirstNetHeads = true   // graph/search.cc:594
	r.Search.OneCollNetGraph = true // init.cc:906, 1087, 1314
	r.Tuning.KeepAllRings = true    // graph/tuning.cc:334, 426: since 2.22.3 (318)
	r.Topo.SelfLinks = true         // graph/topo.cc:112
	r.Tuning.CorrectLeast = true    // graph/tuning.cc:434, include/utils.h:46
	r.Tuning.NVLSNoAllGather = true // enqueue.cc:773, misc/argcheck.cc:56, include/device.h:423
	r.Topo.WholeHosts = true        // graph/topo.cc:690
	r.Connect.MixedCPUs = false     // graph/tuning.cc:146: each rank's own
	r.Tuning.TreeThreads = true     // enqueue.cc:1612
	r.Plan.EvenBytes = true         // enqueue.cc:432, 815
	r.Plan.P2PPieces = true         // enqueue.cc:511, 872, 882
	r.Topo.PCILinks = false         // graph/xml.cc:360
	r.Topo.Trims = TrimEmpty        // graph/xml.cc:927
	r.Log.SkipLOC = true            // graph/topo.cc:282
	c := &r.Connect
	c.P2PHalves, c.P2PReverseParts = true, false // init.cc:1315, include/channel.h:15, 36
	return r
}
