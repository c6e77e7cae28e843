package advise

import (
	"math"

	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim/gpu"
)

// regime is the mean error of simulated times of an operation, relative, of all sizes
// and from 1 MiB.
type regime struct{ all, large float64 }

// heldOut are the errors on sizes that no fit saw, 4 x H200 behind NVSwitch
// (docs/ACCURACY.md, rows "held out"; TestTrustIsThatOfAccuracy).
var heldOut = map[string]regime{
	"all_reduce": {.042, .033}, "all_gather": {.040, .030}, "reduce_scatter": {.034, .029}, "broadcast": {.026, .030},
	"reduce": {.074, .044}, "alltoall": {.053, .080}, "sendrecv": {.038, .037},
}

// trust is the relative uncertainty of a ratio of two simulated times. Where both make
// the same choice most of an error is common to them and counts once; of different
// choices the errors are taken for independent.
func trust(site *scenario.Site, op string, was, is *cell) float64 {
	e := site.Uncertainty()
	if r, ok := heldOut[op]; ok && site.Class().Name == gpu.NVSwitch90().Name {
		doubt := e - site.Class().Uncertainty
		if e = r.all + doubt; was.bytes >= 1<<20 {
			e = r.large + doubt
		}
	}
	key := map[gpu.Network]string{gpu.RDMA: "nic_wire", gpu.Sockets: "tcp_wire"}[site.Between()]
	e = max(e, site.Class().Origins[key].Uncertainty)
	if was.algo != is.algo {
		e *= math.Sqrt2
	}
	return e
}
