package search

import (
	"errors"
	"fmt"

	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/units"
)

// Params are the settings that change a search; unset means NCCL's default.
type Params struct {
	CrossNIC    units.Opt[int]  // NCCL_CROSS_NIC: 0 same rail, 1 free, 2 try 0 then alternate (default 2)
	RailPerHost units.Opt[bool] // NCCL_MNNVL_RAIL_PER_HOST: rails go by PCI address between hosts (default off)
	ScatterNets units.Opt[bool] // NCCL_MNNVL_SCATTER_NETS_ENABLE: nets by GPU first in a multi-host domain (default on)
	CollNet     bool            // search the two CollNet graphs (NCCL_COLLNET_ENABLE and a plugin that can)
	NVLS        bool            // search the NVLS graph (NVLink multicast is there and not switched off)
	Given       []*Graph        // NCCL_GRAPH_FILE: graphs that replace the search of their ID when they have channels
}

// Want names one search: what NCCL's init asks for one pattern
// (init.cc:1015-1058).
type Want struct {
	ID                       int
	Pattern                  Pattern
	CollNet                  bool
	MinChannels, MaxChannels int
}

// ErrNotYet marks what this package does not do yet.
var ErrNotYet = errors.New("search: not available yet")

// Set holds the five graphs of one System by graph id (RingID …); those that
// were not asked for have no channels.
type Set [NumGraphs]*Graph

// Order lists graph ids in the order in which NCCL keeps and dumps them
// (init.cc:1066): ring, tree, collnet direct, collnet chain, NVLS.
var Order = [NumGraphs]int{RingID, TreeID, CollNetDirectID, CollNetChainID, NVLSID}

// Compute searches one graph as ncclTopoCompute does (search.cc:991).
func Compute(sys *topo.System, want Want, p Params) (*Graph, error) {
	return nil, fmt.Errorf("pattern %d: %w", want.Pattern, ErrNotYet)
}

// All searches the five graphs with the channel limits by which NCCL's init
// ties them together (init.cc:1015-1058): the tree gets exactly the ring's
// channels, and so does the CollNet chain.
func All(sys *topo.System, p Params) (Set, error) {
	return Set{}, ErrNotYet
}
