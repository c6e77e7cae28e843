package tuning

import "github.com/simccl/simccl/coll"

const (
	nFuncs  = coll.NumCollFuncs
	nAlgos  = int(coll.NumAlgorithms)
	nProtos = int(coll.NumProtocols)
)

// Hardware classes of a hop, rows of table.hwLat.
const (
	hwNVLink = iota
	hwPCI
	hwNet
	nHW
)

// table holds the constants of one NCCL version. Rows of the bandwidth caps
// are compute capability classes (below sm_80, sm_80, sm_90, sm_100), columns
// 1, 2 and more nodes. GB/s and microseconds.
type table struct {
	baseLat [nAlgos][nProtos]float64
	hwLat   [nHW][nAlgos][nProtos]float64

	llMax        [4][3]float64
	ringLL128Max [4][3]float64 // per channel
	treeLL128Max [4][3]float64 // per channel
	treeMax      [4][3]float64 // per channel
	nvlsTreeMax  [4][3]float64 // per channel
	nvlsEff      [4]float32

	treeCorrection [nProtos][23]float32 // by log2(bytes / 64)
}

// Version is the NCCL release whose rules are the default.
const Version = "2.28.9"

var tables = map[string]*table{Version: &table2289}

// table2289: NCCL v2.28.9 graph/tuning.cc:128-196 and 577-583. Columns of the
// latencies are LL, LL128, Simple; rows Tree, Ring, CollNetDirect,
// CollNetChain, NVLS, NVLSTree, PAT.
var table2289 = table{
	baseLat: [nAlgos][nProtos]float64{
		{6.8, 14.0, 8.4}, {6.6, 14.0, 8.4}, {}, {}, {}, {}, {8, 8, 8},
	},
	hwLat: [nHW][nAlgos][nProtos]float64{
		hwNVLink: {{.6, 1.25, 4}, {.6, 1.9, 3.4}, {0, 0, 3.7}, {0, 0, 2.8}, {0, 0, 25}, {0, 0, 25}, {0, 0, 4}},
		hwPCI:    {{1, 1.9, 4}, {1, 2.5, 5.7}, {0, 0, 3.7}, {0, 0, 2.8}, {}, {}, {0, 0, 4}},
		hwNet:    {{5, 8.5, 14}, {2.7, 4, 14}, {0, 0, 31}, {0, 0, 30}, {0, 0, 18}, {0, 0, 20.9}, {0, 0, 14}},
	},
	llMax:        [4][3]float64{{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}},
	ringLL128Max: [4][3]float64{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {73.4, 34.6, 73.4}},
	treeLL128Max: [4][3]float64{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {55.6, 31.67, 20}},
	treeMax:      [4][3]float64{{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}},
	nvlsTreeMax:  [4][3]float64{{26.5, 18.5, 10}, {24, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96, 43.8}},
	nvlsEff:      [4]float32{0, 0, .85, .74},
	treeCorrection: [nProtos][23]float32{
		{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
		{1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
		{.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9},
	},
}

// smClass is the row of the bandwidth caps (tuning.cc:246).
func smClass(sm int) int {
	switch {
	case sm >= 100:
		return 3
	case sm >= 90:
		return 2
	case sm >= 80:
		return 1
	}
	return 0
}
