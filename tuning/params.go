package tuning

import (
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/units"
)

// Params are the settings that change the cost model; unset means NCCL's
// default, but for Rules, which New wants. The environment room fills them.
type Params struct {
	Rules *rules.Ruleset // the release's tables and switches; not nil

	Algo  units.Opt[string] // NCCL_ALGO: list per collective, see ParseList
	Proto units.Opt[string] // NCCL_PROTO: the same for protocols

	NThreads      units.Opt[int64] // NCCL_NTHREADS: threads of Ring/Tree LL and Simple
	LL128NThreads units.Opt[int64] // NCCL_LL128_NTHREADS: threads of Ring/Tree LL128

	PATEnable     units.Opt[int64] // NCCL_PAT_ENABLE: 0 off, 1 on, 2 only with one rank a node (default 2)
	NetOverheadNs units.Opt[int64] // NCCL_NET_OVERHEAD: ns of the host per network step (default by CPU)
	LL128C2C      units.Opt[int64] // NCCL_LL128_C2C: 0 keeps LL128 off C2C and PXN (default 1)

	// ThreadThresholds is NCCL_THREAD_THRESHOLDS: up to six integers, Tree
	// LL LL128 Simple then Ring LL LL128 Simple, in bytes per thread.
	ThreadThresholds units.Opt[string]

	AMD AMDParams // RCCL's own

	Plugin *Plugin // NCCL's example tuner with its file; nil for none
}
