package advise

import (
	"math"

	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim/gpu"
)

// regime is the mean error of simulated times of an operation, relative, of all sizes
// and from 1 MiB.
type regime struct{ all, large float64 }

// at returns the error at a size.
func (r regime) at(bytes int64) float64 {
	if bytes >= 1<<20 {
		return r.large
	}
	return r.all
}

// heldOut are the errors on sizes that no fit saw, 4 x H200 behind NVSwitch
// (docs/results/ACCURACY.md, rows "held out"; TestTrustIsThatOfAccuracy).
var heldOut = map[string]regime{
	"all_reduce": {.043, .035}, "all_gather": {.041, .033}, "reduce_scatter": {.036, .03},
	"broadcast": {.025, .027},
	"reduce":    {.074, .046}, "alltoall": {.045, .058}, "sendrecv": {.03, .023},
}

// ofKind is the relative error of simulated gains of settings that change the simulated time, by kind: below
// 1 MiB (all) and from there (large); from 2 x H200, which no fit saw (testdata/measured/h200x2/advise;
// TestSettingsAgainstMeasurement).
var ofKind = map[kind]regime{channels: {.042, .05}, threads: {.033, .08}, buffers: {0, .032}}

// trust returns the relative uncertainty of the ratio of two simulated times. If both make the same choice
// most of the error cancels and counts once; the errors of different choices count as independent.
func trust(site *scenario.Site, op string, k kind, was, is *cell) float64 {
	e := site.Uncertainty()
	if r, ok := heldOut[op]; ok && site.Class().Name == gpu.NVSwitch90().Name {
		doubt := e - site.Class().Uncertainty
		e = r.at(was.bytes) + doubt
		e = max(e, ofKind[k].at(was.bytes)+doubt)
	}
	key := map[gpu.Network]string{gpu.RDMA: "nic_wire", gpu.Sockets: "tcp_wire"}[site.Between()]
	e = max(e, site.Class().Origins[key].Uncertainty)
	if k == kernels {
		e = max(e, site.Class().Origins["peer_gap"].Uncertainty)
	}
	if was.algo != is.algo {
		e *= math.Sqrt2
	}
	return e
}
