// Package named reads one operation that is given by names.
package named

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/units"
)

// Operation is one operation by names: OP and SIZE as nccl-tests and a workload
// have them, element type and reduction as nccl-tests calls them.
type Operation struct {
	Op, Size, Type, RedOp string
	Root                  int
	InPlace               bool
}

// Parse is the operation on so many ranks. Errors are *coll.UnknownNameErrors, or
// of package fail.
func (n *Operation) Parse(ranks int) (comm.Op, error) {
	f, err := coll.ParseFunc(n.Op)
	if err != nil {
		return comm.Op{}, err
	}
	size, err := units.ParseBytes(n.Size)
	if err != nil {
		return comm.Op{}, fail.Usage("%s: %v", n.Op, err)
	}
	typ, err := coll.ParseDataType(n.Type)
	if err != nil {
		return comm.Op{}, err
	}
	red, err := coll.ParseRedOp(n.RedOp)
	if err != nil {
		return comm.Op{}, err
	}
	if n.Root < 0 || n.Root >= ranks {
		return comm.Op{}, fail.Usage("{Root} %d: must be a rank from 0 to %d", n.Root, ranks-1)
	}
	count := coll.ExactSizes(f, size, typ, ranks).Count
	return comm.Op{Func: f, Count: count, Type: typ, RedOp: red, Root: int32(n.Root), InPlace: n.InPlace}, nil
}
