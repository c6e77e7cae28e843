package scenario

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/units"
)

// Named is one operation by names: OP and SIZE as nccl-tests and a workload
// have them, element type and reduction as nccl-tests calls them.
type Named struct {
	Op, Size, Type, RedOp string
	Root                  int
	InPlace               bool
}

// Parse is the operation on so many ranks. Errors are *coll.UnknownNameErrors, or
// of package fail.
func (n *Named) Parse(ranks int) (comm.Op, error) {
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

// typesNamed reads a list of element types, of none float's; "all" is every type.
func typesNamed(names []string) ([]coll.DataType, error) {
	if len(names) == 0 {
		return []coll.DataType{coll.Float32}, nil
	}
	var out []coll.DataType
	for _, name := range names {
		if name == "all" {
			return coll.DataTypes(), nil
		}
		t, err := coll.ParseDataType(name)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// reductionsNamed reads a list of reductions of an operation, of none sum's; "all" is every one.
func reductionsNamed(names []string, f coll.Func) ([]coll.RedOp, error) {
	var out []coll.RedOp
	for _, name := range names {
		if name == "all" {
			if !f.Reduces() {
				return []coll.RedOp{coll.Sum}, nil
			}
			return coll.RedOps(), nil
		}
		o, err := coll.ParseRedOp(name)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	if len(out) == 0 {
		out = []coll.RedOp{coll.Sum}
	}
	return out, nil
}
