package topo

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/internal/cnum"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo/internal/view"
	"github.com/simccl/simccl/units"
)

// Params are the settings that change the host as NCCL sees it and the transports that may be used. Unset
// members have NCCL's defaults.
type Params struct {
	Rules *rules.Ruleset // the release's; Build refuses nil

	// NRanks is the number of ranks of the whole communicator; 0 means the ranks of this Spec alone.
	NRanks int
	GPUs   units.Opt[int] // use only this many lowest local ranks, through the hosts of a domain in order
	// Keep lists the local ranks in use, ascending, and replaces GPUs; nil: GPUs decides. They are renumbered
	// from 0, as in NCCL's communicator over some GPUs of a host, whose XML contains no others (topo.cc,
	// ncclTopoTrimXml).
	Keep []int

	Access                                // who may use a path
	NetDevs           NetDevsPolicy       // NCCL_NETDEVS_POLICY
	MergeLevel        units.Opt[PathKind] // NCCL_NET_MERGE_LEVEL, see ParseMergeLevel
	ForceMerge        string              // NCCL_NET_FORCE_MERGE: "mlx5_0,mlx5_1;mlx5_2,mlx5_3"
	MergeNICsDisabled bool                // NCCL_IB_MERGE_NICS=0
	IBHCA             string              // NCCL_IB_HCA: "mlx5_0", "^mlx5_1", "=mlx5_2:1:0:0"
	SocketsOnly       bool                // NCCL_NET=Socket: no net of InfiniBand or of another plugin
	// NetRail is the rail and plane that the net plugin reports of nets for which neither
	// the file nor IBHCA gives one (SIMCCL_NET_RAIL); unset or -1: none.
	NetRail units.Opt[int]
	// Rails are the rails and planes of nets that a fabric file says.
	Rails []NetRail
	// SplitHosts treats the hosts of a multi-host Spec as separate machines (NCCL_MNNVL_ENABLE=0). Build then
	// returns an error, because it builds one Host.
	SplitHosts bool
	// CollNet enables in-network reduction on every net without coll="0", as a net plugin with collectives
	// would report (topo.cc:1360).
	CollNet bool

	// Cancelled is polled by long loops: nil to continue, else the reason to stop,
	// as a context's Err. It decides nothing. Nil: never.
	Cancelled func() error
}

// poll returns the error of Cancelled, if it is set and cancelled.
func (p *Params) poll() error {
	if p.Cancelled == nil {
		return nil
	}
	if err := p.Cancelled(); err != nil {
		return fmt.Errorf("build the topology: %w", err)
	}
	return nil
}

// DefaultParams returns NCCL's defaults in the release of rules.Default.
func DefaultParams() Params { return ParamsOf(rules.Default()) }

// ParamsOf returns NCCL's defaults in a release.
func ParamsOf(r *rules.Ruleset) Params {
	return Params{Rules: r, Access: Access{PXNC2C: r.Topo.PXNC2C, GDRC2C: r.Topo.GDRC2C,
		NetDisableIntra: r.Topo.NetIntraOff, PXNDisable: r.Topo.PXNOff, PXNAuto: len(r.Topo.PXNRanks) > 0}}
}

// oldLevels maps the numeric levels of NCCL 2.4 to path kinds (paths.cc:221).
var oldLevels = [...]PathKind{PathLOC, PathPIX, PathPXB, PathPHB, PathSYS, PathSYS}

// ParseLevel reads NCCL_P2P_LEVEL or NCCL_NET_GDR_LEVEL: a path kind from LOC
// to SYS, or an old number 0 to 5. Like NCCL it takes anything else as unset
// (paths.cc:222).
func ParseLevel(s string) units.Opt[PathKind] {
	for k := PathLOC; k <= PathSYS; k++ {
		if s == k.String() {
			return units.Some(k)
		}
	}
	if s == "" || s[0] < '0' || s[0] > '9' {
		return units.Opt[PathKind]{}
	}
	n, _ := cnum.Int(s)
	return units.Some(oldLevels[min(max(n, 0), int64(len(oldLevels)-1))])
}

// ParseMergeLevel reads NCCL_NET_MERGE_LEVEL by prefix, and takes what it does
// not know as LOC, which switches fusion off (topo.cc:1147).
func ParseMergeLevel(s string) PathKind {
	for _, l := range []struct {
		name string
		kind PathKind
	}{{"LOC", PathLOC}, {"PORT", PathKind(view.Port)}, {"PIX", PathPIX}, {"PXB", PathPXB}, {"P2C", PathP2C},
		{"PXN", PathPXN}, {"PHB", PathPHB}, {"SYS", PathSYS}} {
		if strings.HasPrefix(s, l.name) {
			return l.kind
		}
	}
	return PathLOC
}

// ParseNetDevsPolicy reads NCCL_NETDEVS_POLICY; like NCCL it takes what it does
// not know as AUTO, and says so in ok (topo.cc:1602).
func ParseNetDevsPolicy(s string) (p NetDevsPolicy, ok bool) {
	u := strings.ToUpper(s)
	switch {
	case u == "AUTO":
		return NetDevsPolicy{}, true
	case u == "ALL":
		return NetDevsPolicy{Mode: NetDevsAll}, true
	case strings.HasPrefix(u, "MAX:"):
		var n int
		if _, err := fmt.Sscanf(u[4:], "%d", &n); err == nil && n > 0 {
			return NetDevsPolicy{Mode: NetDevsMax, Max: n}, true
		}
	}
	return NetDevsPolicy{}, false
}
