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
