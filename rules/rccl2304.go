package rules

import "github.com/simccl/simccl/coll"

// rccl2304 makes the rules of RCCL 2.30.4 of 13 July 2026. It is NCCL 2.30.4, whose rules are those of
// 2.30.3, with AMD's changes. Citations are of RCCL's src/.
func rccl2304() *Ruleset {
	r := nccl2303()
	r.Release = Release{2, 30, 4}
	r.Edition = Edition{ROCm: "7.14", Date: "2026-07-13"}
	ofRCCL(r)
	c := &r.Connect
	// init.cc:1797, graph/paths.cc:1199
	c.OneRankChannels, c.PeersFit = 8, true
	c.PeerBatch = r.Plan.P2PBatch // include/device.h:538
	// enqueue.cc:760, 800, 1087, 1180, collectives.cc:429
	r.Plan.MinTraffic, r.Plan.KeepShare = 16<<10, true
	r.Plan.BatchArchs, r.Plan.HubChannels, r.Plan.StepChunks = []string{"gfx950"}, true, []string{"gfx950"}
	// graph/rome_models.cc:1761, init.cc:1567
	r.Search.Presets, r.Search.PresetsEven = 46, true
	r.Topo.XGMI = append([]ArchRate{{"gfx1250", 64}}, r.Topo.XGMI...) // graph/topo.h:41
	return r
}

// rccl2283 makes the rules of RCCL 2.28.3 of 21 January 2026. Citations are of 2.28.3 where one differs.
func rccl2283() *Ruleset {
	r := nccl2283()
	r.Edition = Edition{ROCm: "7.11", Date: "2026-01-21"}
	ofRCCL(r)
	r.Topo.DirectXGMI = true // graph/search.cc:1453
	r.Topo.NeedsNet = true   // graph/paths.cc:908
	r.Topo.InterByNets = true
	r.Search.Presets = 44 // graph/rome_models.cc:1446
	r.Search.RailsKeepPaths = true
	r.Connect.P2PNet = true
	r.Connect.WideLL128 = "gfx950" // rccl_wrap.cc:571
	old2283(&r.Tuning)
	return r
}

// old2283 are the differences of 2.28.3's cost model.
func old2283(t *Tuning) {
	for i := 5; i <= 6; i++ { // graph/tuning.cc:330, 375
		c := &t.Costs[i]
		for h := range c.HWLat {
			c.HWLat[h][coll.PAT] = protos{}
		}
		for n := range c.Share {
			c.Share[n][coll.PAT] = protos{}
		}
	}
	t.Costs[6].TreeShare[coll.Simple][25] = .1
	t.Costs[6].Channels[coll.ReduceScatter] = append(t.Costs[6].Channels[coll.ReduceScatter][:6],
		ChannelWindow{1, 1, 48}, ChannelWindow{512 << 10, 1 << 20, 56}, ChannelWindow{1 << 20, 268435457, 64})
	t.TablesAINIC, t.PATWindows, t.PATSteps, t.LL128Asked = nil, nil, false, false
	t.MostThreads = []ArchCount{{"gfx950", 512}, {"", 256}} // include/rccl_common.h:49
	t.AloneLLMost[1].To = 1 << 20                           // rccl_wrap.cc:99
	t.OneRankNodes = true
	t.LongestUs = 3600000000
	// rccl_wrap.cc:410: no direct ReduceScatter, and AMD's NICs do not matter
	t.Direct = t.Direct[:4]
	for i := range t.Direct {
		t.Direct[i].NoAINIC = false
	}
	t.Hierarchical, t.DDA, t.DirectAsked = nil, nil, false
}

// ofRCCL sets what all releases of RCCL that are known here have.
func ofRCCL(r *Ruleset) {
	r.Library = RCCL
	r.MaxChannels = 128 // include/device.h:146
	t := &r.Topo
	t.MaxNodes = 64 // include/graph.h:117
	// graph/topo.h:37
	t.XGMI = []ArchRate{{"gfx90a", 36}, {"gfx942", 48}, {"gfx95", 48}, {"", 24}}
	t.Archs = []string{"gfx906", "gfx908", "gfx90a", "gfx942", "gfx950"}
	t.FixedSM, t.LinkName, t.Accelerators, t.AMDModels = 60, "XGMI", true, true
	t.P2PLevel, t.P2PLevelAMD, t.P2PLevelOther, t.P2PAMDGPUs = PXB, SYS, SYS, t.MaxNodes // graph/paths.cc:356
	t.P2PLevelFirm, t.EndGPUs = true, true
	t.GDRByRoot, t.GDRReads = true, true
	t.NetIntraOff, t.PXNOff = true, true
	t.PXNC2C = false // graph/paths.cc:795
	t.PXNRanks = []ArchCount{{"gfx942", 64}, {"gfx950", 32}}
	t.NearBuses, t.NearArchs = []uint64{0x100000, 0x1000, 0xff00000}, []string{"gfx942", "gfx950"}
	t.WholeHosts, t.AsFile, t.FuseNICs = true, true, false // tools/topo_expl reads the file as it is
	t.FastPorts, t.NetsForP2P, t.TrimNets = true, true, true

	// graph/search.cc:1046
	speeds := []float32{48, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, .24, .12}
	r.Connect.AMDConnect = amdConnect()
	r.Connect.Buffers = [coll.NumProtocols]int64{coll.LL: 8 * 256 * 8 * 16, coll.LL128: 28 * 256 * 8 * 8,
		coll.Simple: 4 << 20} // rccl_wrap.cc:827
	r.Plan.AMDPlan = amdPlan()
	r.Connect.P2PReverseParts = true // include/device.h:366
	k := &r.Tuning
	k.AMDTuning = amdTuning()
	k.BaseLat = Cells{}
	for _, a := range []coll.Algorithm{coll.Tree, coll.Ring, coll.CollNetDirect, coll.CollNetChain} {
		k.BaseLat[a] = protos{12, 12, 17} // graph/tuning.cc:130
	}
	k.NetLatOfTree, k.NetRoundTrip, k.PATSM = true, false, 0
	s := &r.Search
	s.Speeds = []Speeds{{0, speeds, speeds}}
	s.MoreXGMI, s.NetsToStart, s.RomeRings, s.RingAndTreeOnly = true, true, 2, true
}
