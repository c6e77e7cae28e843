package rules

import "github.com/simccl/simccl/coll"

// protos are figures by protocol.
type protos = [coll.NumProtocols]float64

// hop makes figures of Tree, Ring, CollNetDirect, CollNetChain, and of PAT with Simple.
func hop(tree, ring, direct, chain protos, pat float64) Cells {
	return Cells{coll.Tree: tree, coll.Ring: ring, coll.CollNetDirect: direct, coll.CollNetChain: chain,
		coll.PAT: {coll.Simple: pat}}
}

// rcclTables are the tables of RCCL 2.30.4 by index (graph/tuning.cc:166-573). Tables 7 and 9 are of
// architectures that have no rules here.
func rcclTables() []CostTable {
	return []CostTable{costTable0(), costTable1(), costTable2(), costTable3(), costTable4(), costTable5(),
		costTable6(), {}, costTable8()}
}

// costTable0 is the table of architectures without one of their own.
func costTable0() CostTable {
	return CostTable{
		HWLat: [NumHops]Cells{
			hop(protos{0.8, 1.4, 2.5}, protos{0.8, 2.2, 3.6}, protos{0, 0, 0.8}, protos{0, 0, 1.4}, 3.6),
			hop(protos{2.2, 2.2, 5.7}, protos{2.2, 2.2, 5.7}, protos{0, 0, 5.7}, protos{0, 0, 5.7}, 5.7),
			hop(protos{11.8, 18.2, 20.8}, protos{9.5, 19.8, 15.1}, protos{0, 0, 11.8},
				protos{0, 0, 18.2}, 15.1),
		},
		Share: [2]Cells{
			hop(protos{0.04, 0.22, 0.91}, protos{0.04, 0.34, 1}, protos{0, 0, 1}, protos{0, 0, 1}, 0),
			hop(protos{0.04, 0.22, 0.95}, protos{0.04, 0.34, 1}, protos{0, 0, 1}, protos{0, 0, 1}, 1),
		},
		TreeShare: [coll.NumProtocols][FactorSizes]float32{
			{0.1, 0.2, 0.1, 0.1, 0.9, 0.3, 0.4, 0.1, 0.2, 0.4, 0.2, 0.1, 0.3, 0.3, 0.2, 0.2, 0.2, 0.1,
				0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1},
			{0.1, 0.3, 1, 0.1, 0.5, 1, 0.9, 1, 1, 1, 0.3, 0.1, 0.4, 0.5, 0.5, 0.4, 0.4, 0.3, 0.3, 0.2,
				0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2},
			{0.2, 1, 0.1, 0.1, 0.7, 0.2, 0.4, 0.1, 0.1, 0.3, 0.4, 0.3, 0.6, 0.8, 1, 1, 1, 1, 0.9, 0.8,
				0.8, 0.8, 0.8, 0.8, 0.9, 0.9, 0.9},
		},
		RingShare: [coll.NumProtocols][FactorSizes]float32{
			{0.1, 0.1, 0.1, 0.1, 0.1, 0.2, 0.4, 0.2, 0.3, 0.5, 0.3, 0.1, 0.5, 0.5, 0.3, 0.2, 0.2, 0.1,
				0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1},
			{0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.3, 1, 1, 1, 1, 1, 1, 0.8, 0.7, 0.5, 0.4, 0.4,
				0.3, 0.3, 0.3, 0.3, 0.3, 0.3},
			{1, 0.8, 0.2, 1, 1, 0.3, 1, 0.1, 0.1, 0.2, 0.2, 0.1, 0.5, 1, 0.8, 0.8, 1, 0.9, 1, 1, 1, 1, 1,
				1, 1, 1, 1},
		},
	}
}

// costTable1 is what models ask for by tuning=1.
func costTable1() CostTable {
	return CostTable{
		HWLat: [NumHops]Cells{
			hop(protos{1.5, 1.5, 4.5}, protos{1.5, 1.5, 4.5}, protos{0, 0, 4.5}, protos{0, 0, 4.5}, 0),
			hop(protos{2.2, 2.2, 5.7}, protos{2.2, 2.2, 5.7}, protos{0, 0, 5.7}, protos{0, 0, 5.7}, 0),
			hop(protos{33, 33, 15.8}, protos{5.1, 5.1, 68.8}, protos{0, 0, 15.8}, protos{0, 0, 15.8}, 0),
		},
		Share: [2]Cells{
			hop(protos{0.12, 1, 0.99}, protos{0.12, 1, 1}, protos{0, 0, 1}, protos{0, 0, 1}, 0),
			hop(protos{0.15, 1, 0.42}, protos{0.2, 1, 1}, protos{0, 0, 1}, protos{0, 0, 1}, 0),
		},
		TreeShare: [coll.NumProtocols][FactorSizes]float32{
			{0.5, 0.4, 0.7, 0.6, 1, 1, 0.5, 0.4, 0.1, 0.5, 0.4, 0.6, 1, 1, 1, 1, 1, 0.8, 0.6, 0.5, 0.4,
				0.4, 0.3, 0.2, 0.1, 0.1, 0.1},
			{0.5, 0.4, 0.7, 0.6, 1, 1, 0.5, 0.4, 0.1, 0.5, 0.4, 0.6, 1, 1, 1, 1, 1, 0.8, 0.6, 0.5, 0.4,
				0.4, 0.3, 0.2, 0.1, 0.1, 0.1},
			{0.1, 0.1, 0.1, 0.1, 0.1, 0.3, 0.4, 0.5, 0.1, 0.6, 1, 1, 1, 0.6, 0.5, 0.7, 1, 1, 1, 1, 1, 1,
				1, 0.7, 0.5, 0.3, 0.3},
		},
		RingShare: [coll.NumProtocols][FactorSizes]float32{
			{1, 0.5, 1, 1, 0.6, 0.7, 1, 1, 0.2, 1, 0.9, 0.7, 1, 1, 1, 0.9, 0.9, 0.8, 0.8, 0.7, 0.6, 0.5,
				0.5, 0.3, 0.2, 0.1, 0.1},
			{1, 0.5, 1, 1, 0.6, 0.7, 1, 1, 0.2, 1, 0.9, 0.7, 1, 1, 1, 0.9, 0.9, 0.8, 0.8, 0.7, 0.6, 0.5,
				0.5, 0.3, 0.2, 0.1, 0.1},
			{0.3, 1, 0.3, 0.1, 0.1, 0.1, 0.3, 0.7, 1, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1,
				0.2, 0.3, 0.5, 0.9, 1, 1, 1, 1},
		},
	}
}

// costTable2 is what models ask for by tuning=2.
func costTable2() CostTable {
	return CostTable{
		HWLat: [NumHops]Cells{
			hop(protos{1.5, 1.5, 4.5}, protos{1.5, 1.5, 4.5}, protos{0, 0, 4.5}, protos{0, 0, 4.5}, 0),
			hop(protos{2.2, 2.2, 5.7}, protos{2.2, 2.2, 5.7}, protos{0, 0, 5.7}, protos{0, 0, 5.7}, 0),
			hop(protos{27.9, 27.9, 15.8}, protos{12.1, 12.1, 68.8}, protos{0, 0, 15.8},
				protos{0, 0, 15.8}, 0),
		},
		Share: [2]Cells{
			hop(protos{0.07, 1, 0.99}, protos{0.08, 1, 1}, protos{0, 0, 1}, protos{0, 0, 1}, 0),
			hop(protos{0.07, 1, 0.42}, protos{0.08, 1, 1}, protos{0, 0, 1}, protos{0, 0, 1}, 0),
		},
		TreeShare: [coll.NumProtocols][FactorSizes]float32{
			{0.1, 0.4, 0.3, 0.3, 0.2, 0.4, 0.5, 0.1, 0.1, 0.6, 0.7, 0.7, 0.8, 1, 0.9, 0.7, 0.6, 0.5, 0.4,
				0.3, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2},
			{0.1, 0.4, 0.3, 0.3, 0.2, 0.4, 0.5, 0.1, 0.1, 0.6, 0.7, 0.7, 0.8, 1, 0.9, 0.7, 0.6, 0.5, 0.4,
				0.3, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2},
			{1, 0.1, 0.1, 0.1, 0.1, 0.2, 0.3, 0.5, 0.1, 0.6, 0.9, 0.8, 0.7, 0.9, 1, 1, 1, 1, 1, 1, 1,
				0.7, 0.9, 0.9, 1, 1, 1},
		},
		RingShare: [coll.NumProtocols][FactorSizes]float32{
			{0.1, 1, 1, 1, 1, 1, 1, 1, 0.4, 1, 1, 1, 1, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.2, 0.1, 0.1, 0.1,
				0.1, 0.1, 0.1, 0.1},
			{0.1, 1, 1, 1, 1, 1, 1, 1, 0.4, 1, 1, 1, 1, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.2, 0.1, 0.1, 0.1,
				0.1, 0.1, 0.1, 0.1},
			{0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 1, 0.2, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.2, 0.4, 0.5,
				0.6, 0.9, 1, 1, 1, 1, 1, 1},
		},
	}
}

// costTable3 is what models ask for by tuning=3.
func costTable3() CostTable {
	return CostTable{
		HWLat: [NumHops]Cells{
			hop(protos{0.8, 0, 2.5}, protos{0.8, 0, 3.6}, protos{0, 0, 0.8}, protos{0, 0, 0}, 0),
			hop(protos{2.2, 2.2, 5.7}, protos{2.2, 2.2, 5.7}, protos{0, 0, 5.7}, protos{0, 0, 5.7}, 0),
			hop(protos{12.5, 0, 22.4}, protos{9.5, 0, 19.8}, protos{0, 0, 12.5}, protos{0, 0, 0}, 0),
		},
		Share: [2]Cells{
			hop(protos{0.2, 0, 1.75}, protos{0.2, 0, 1}, protos{0, 0, 1}, protos{0, 0, 1}, 0),
			hop(protos{0.2, 0, 0.96}, protos{0.2, 0, 1}, protos{0, 0, 1}, protos{0, 0, 1}, 0),
		},
		TreeShare: [coll.NumProtocols][FactorSizes]float32{
			{0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 1, 1, 0.2, 1, 0.9, 1, 0.6, 0.4, 0.6, 0.4, 0.3, 0.3, 0.3, 0.3,
				0.3, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2},
			{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
			{1, 1, 1, 1, 1, 1, 0.1, 0.1, 0.1, 0.2, 1, 0.8, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0.8, 0.7, 0.8, 0.9,
				0.7, 0.7},
		},
		RingShare: [coll.NumProtocols][FactorSizes]float32{
			{0.1, 0.1, 0.1, 0.1, 0.1, 0.3, 0.1, 0.2, 0.1, 0.4, 0.4, 0.2, 0.2, 0.3, 0.7, 0.5, 0.4, 0.3,
				0.3, 0.3, 0.3, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2},
			{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
			{0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.5, 1, 0.1, 0.3, 0.1, 0.1, 0.1, 0.2, 0.2, 0.2, 0.3, 0.4,
				0.7, 1, 1, 1, 1, 1, 1, 1},
		},
	}
}

// costTable4 is what models ask for by tuning=4.
func costTable4() CostTable {
	return CostTable{
		HWLat: [NumHops]Cells{
			hop(protos{0.8, 1.4, 2.5}, protos{0.8, 2.2, 3.6}, protos{0.8, 1.4, 2.5},
				protos{0.8, 1.4, 2.5}, 0),
			hop(protos{2.2, 2.2, 5.7}, protos{2.2, 2.2, 5.7}, protos{0, 0, 5.7}, protos{0, 0, 5.7}, 0),
			hop(protos{32.2, 34.4, 47.6}, protos{35.4, 87.8, 209.2}, protos{0, 0, 47.6},
				protos{0, 0, 47.6}, 0),
		},
		Share: [2]Cells{
			hop(protos{0.16, 1.09, 1.61}, protos{0.15, 0.41, 1}, protos{0, 0, 1}, protos{0, 0, 1}, 0),
			hop(protos{0.16, 1.09, 1.08}, protos{0.15, 0.41, 1}, protos{0, 0, 1}, protos{0, 0, 1}, 0),
		},
		TreeShare: [coll.NumProtocols][FactorSizes]float32{
			{0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 1, 0.1, 0.1, 0.2, 0.4, 0.6, 0.5, 0.1, 0.1, 0.1, 0.1,
				0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1},
			{0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.2, 0.1, 0.1, 0.2, 1, 0.5, 0.2, 0.2, 0.2, 0.2,
				0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2},
			{1, 1, 1, 1, 1, 1, 1, 1, 0.8, 0.4, 0.3, 0.3, 0.1, 0.1, 1, 1, 0.7, 0.5, 0.6, 0.5, 0.6, 0.6,
				0.5, 0.6, 0.6, 0.6, 0.7},
		},
		RingShare: [coll.NumProtocols][FactorSizes]float32{
			{0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.2, 0.2, 0.1, 0.3, 0.1, 0.1, 0.1,
				0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1},
			{0.4, 0.5, 0.5, 0.4, 0.4, 0.4, 0.4, 0.2, 0.2, 0.1, 0.3, 1, 1, 0.7, 0.8, 0.5, 1, 1, 1, 1, 1,
				0.9, 0.8, 0.5, 0.4, 0.3, 0.3},
			{0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 1, 1, 0.8, 0.5, 0.1, 0.7, 0.2, 0.4, 0.4, 0.6,
				0.7, 0.9, 1, 1, 1, 1, 1, 1},
		},
	}
}

// costTable5 is the table of gfx942.
func costTable5() CostTable {
	return CostTable{
		HWLat: [NumHops]Cells{
			hop(protos{0.9, 0.9, 2.3}, protos{0.8, 0.8, 2.1}, protos{0, 0, 0.9}, protos{0, 0, 0}, 0),
			hop(protos{2.2, 2.2, 5.7}, protos{2.2, 2.2, 5.7}, protos{0, 0, 5.7}, protos{0, 0, 5.7}, 5.7),
			hop(protos{10.5, 10.5, 25}, protos{9.5, 9.5, 320}, protos{0, 0, 10.5}, protos{0, 0, 0}, 320),
		},
		Share: [2]Cells{
			hop(protos{0.06, 0.06, 0.11}, protos{0.08, 0.08, 1}, protos{0, 0, 1}, protos{0, 0, 1}, 0),
			hop(protos{0.06, 0.06, 0.59}, protos{0.08, 0.08, 1}, protos{0, 0, 1}, protos{0, 0, 1}, 1),
		},
		TreeShare: [coll.NumProtocols][FactorSizes]float32{
			{0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 1, 1, 1, 1, 1, 0.6, 1, 0.9, 1, 1, 0.1, 0.1, 0.1, 0.1, 0.1,
				0.1, 0.1, 0.1, 0.1, 0.1, 0.1},
			{0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 1, 1, 1, 1, 1, 0.6, 1, 0.9, 1, 1, 0.1, 0.1, 0.1, 0.1, 0.1,
				0.1, 0.1, 0.1, 0.1, 0.1, 0.1},
			{0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.7, 1, 1, 1, 1,
				1, 0.7, 0.7, 0.5, 0.6, 0.6, 0.6},
		},
		RingShare: [coll.NumProtocols][FactorSizes]float32{
			{0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 1, 0.2, 1, 0.4, 0.4, 0.1, 0.2, 0.2,
				0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1},
			{0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 1, 0.2, 1, 0.4, 0.4, 0.1, 0.2, 0.2,
				0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1},
			{0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1,
				0.1, 0.1, 0.1, 0.1, 0.7, 0.2, 1, 1, 1},
		},
		Ranges: [coll.NumCollFuncs][2]ProtoRange{
			coll.ReduceScatter: {{0, 655360, 1, 16}, {131072, 3211264, 1, 64}},
			coll.AllGather:     {{0, 98304, 1, 16}, {98304, 5046272, 1, 64}},
			coll.AllReduce:     {{0, 524288, 1, 0}, {524288, 4415057, 3145728, 0}},
			coll.Reduce:        {{0, 4096, 1, 0}, {4096, 16777216, 1, 0}},
			coll.Broadcast:     {{0, 8192, 1, 0}, {8192, 33554432, 1, 0}},
		},
	}
}

// costTable6 is the table of gfx950, with the latencies and the shares of LL of gfx942.
func costTable6() CostTable {
	t := costTable5()
	t.TreeShare[coll.LL128] = [FactorSizes]float32{
		0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 1, 1, 1, 1, 1, 0.6, 1, 0.9, 1, 1, 1, 1, 1, 2, 2, 1, 0.1, 0.9, 0.9,
		0.1, 0.1,
	}
	t.TreeShare[coll.Simple] = [FactorSizes]float32{
		0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.7, 1, 0.1, 0.1, 0.1,
		0.1, 0.1, 0.7, 0.15, 0.6, 0.7, 0.6,
	}
	t.RingShare[coll.LL128] = [FactorSizes]float32{
		0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 1, 0.2, 1, 0.4, 0.4, 0.1, 0.2, 0.1, 0.1, 0.1,
		0.1, 5.5, 0.1, 0.1, 1, 1,
	}
	t.RingShare[coll.Simple] = [FactorSizes]float32{
		0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1,
		0.9, 0.1, 1, 0.1, 0.6, 1, 1,
	}
	t.Ranges = [coll.NumCollFuncs][2]ProtoRange{
		coll.ReduceScatter: {{0, 65536, 1, 16}, {65536, 8388608, 1, 64}},
		coll.AllGather:     {{0, 65536, 1, 16}, {65536, 8388608, 1, 64}},
		coll.AllReduce:     {{0, 262144, 1, 0}, {262144, 70640910, 3145728, 0}},
		coll.Reduce:        {{0, 16383, 1, 0}, {16383, 16777216, 1, 0}},
		coll.Broadcast:     {{0, 2048, 1, 0}, {2048, 16777216, 1, 0}},
	}
	t.Channels = [coll.NumCollFuncs][]ChannelWindow{
		coll.ReduceScatter: {{512, 1024, 2}, {1024, 2048, 4}, {2048, 4096, 8}, {4096, 65536, 16},
			{65536, 262144, 32}, {262144, 524288, 40}, {524288, 1048576, 48}, {1048576, 2097152, 56},
			{2097152, 268435457, 64}},
		coll.AllGather: {{2048, 4096, 2}, {4096, 8192, 4}, {8192, 16384, 8}, {16384, 262144, 16},
			{262144, 524288, 32}, {524288, 1048576, 40}, {1, 1, 48}, {1048576, 4194304, 56},
			{4194304, 268435457, 64}},
	}
	return t
}

// costTable8 is the table of gfx942 with AI NICs: that of gfx942 but for PAT, rings of Simple and AllReduce.
func costTable8() CostTable {
	t := costTable5()
	t.HWLat[1][coll.PAT], t.HWLat[2][coll.PAT], t.Share[1][coll.PAT] = protos{}, protos{}, protos{}
	t.RingShare[coll.Simple] = [FactorSizes]float32{
		0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1,
		0.1, 0.1, 1, 0.8, 1, 1, 1,
	}
	t.Ranges[coll.AllReduce][1] = ProtoRange{524288, 9437184, 3145728, 0}
	return t
}
