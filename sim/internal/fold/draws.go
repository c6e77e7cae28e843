package fold

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
)

// Who shares jitter is decided by slices of a kernel: of a ring of more than FewWork, ranks
// do that are nearly equivalent, but where an exact quotient has fewer, of an all_reduce
// no more than reduceWork, or manyWork where one part represents manyByOne.
const (
	fewWork    = 1 << 14
	reduceWork = 1 << 16
	manyWork   = 1 << 17
	manyByOne  = 8
)

// large reports whether nearly equivalent ranks share jitter, though there is an exact quotient
// of so many slices and parts.
func large(p *plan.Plan, work int64, parts int) bool {
	most := int64(fewWork)
	switch {
	case int64(parts)*manyByOne <= int64(p.Comm.NRanks)*int64(p.Split.NChannels):
		most = manyWork
	case p.Req.Func == coll.AllReduce:
		most = reduceWork
	}
	return work > most
}
