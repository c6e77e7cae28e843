package search

import "github.com/simccl/simccl/topo"

// AllToTheLetter is All without any shortcut: NCCL's float32 arithmetic on
// every link, every attempt searched, everything reserved and given back even
// where it has no effect. It is the slow twin that All is held against.
func AllToTheLetter(sys *topo.System, p Params) (Set, error) {
	e, err := prepareEngine(sys, p)
	if err != nil {
		return Set{}, err
	}
	e.exactFloat = true
	return e.all(p)
}

// Compute searches one graph as ncclTopoCompute does (search.cc:991). The
// graphs of one System influence each other slightly (see All), so a full
// decision comes from All.
func Compute(sys *topo.System, want Want, p Params) (*Graph, error) {
	e, err := prepareEngine(sys, p)
	if err != nil {
		return nil, err
	}
	return e.compute(want, p)
}
