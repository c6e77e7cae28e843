package tuning

import "github.com/simccl/simccl/coll"

const (
	nFuncs  = coll.NumCollFuncs
	nAlgos  = int(coll.NumAlgorithms)
	nProtos = int(coll.NumProtocols)
)
